//! `banister replay`: a recording, played into a running gateway through the push door of its protocol.
//!
//! It comes in with the agent's key, like anything an agent pushes: nothing in it is believed that would not be believed
//! from an agent. Events that have ids are recorded once, however often they are played.

use std::collections::BTreeSet;
use std::io::Write;
use std::time::Duration;

use anyhow::Result;
use banister_client::{Outbox, Receipt, Status};
use banister_events::event::Protocol;
use banister_events::json::{Parser, View};
use banister_events::{reader, text};
use bytes::Bytes;
use clap::Args;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::check::framing::Framing;
use crate::check::input;
use crate::check::live::LiveOptions;
use crate::check::messages::messages;
use crate::data_dir::DataDir;
use crate::failure::{FAILED, Failure, GOOD, REFUSED};

/// How many events are pushed at once, and about how many bytes.
const BATCH: usize = 256;
const BATCH_BYTES: usize = 1024 * 1024;
/// How many refusals are told.
const TOLD: usize = 10;

#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 every event is recorded, or was before; 1 some were refused, or there are none; 2 wrong \
                  usage; 3 the input is not readable, or there is no gateway"
)]
pub(crate) struct ReplayArgs {
    #[command(flatten)]
    data_dir: DataDir,
    /// The protocol of the recording: aaep, agui or aep; detected from the first message if not given
    #[arg(long, value_name = "PROTOCOL")]
    protocol: Option<String>,
    /// Keep the pauses between events, so many times shorter: 1 as it was, 10 ten times as fast; none if not given
    #[arg(long, value_name = "FACTOR", value_parser = speed)]
    speed: Option<f64>,
    /// The thread of AG-UI events that come before one is named
    #[arg(long, value_name = "NAME", default_value = "replay")]
    thread: String,
    /// Print JSON: {"schema", "recorded", "duplicate", "refused", "sessions"}
    #[arg(long)]
    json: bool,
    /// A recording, packed or not: .jsonl, .json, .sse; - is standard input
    #[arg(default_value = "-", value_name = "FILE")]
    input: String,
}

fn speed(word: &str) -> Result<f64, String> {
    let speed: f64 = word.parse().map_err(|_| "this is no number".to_owned())?;
    if speed.is_finite() && speed > 0.0 { Ok(speed) } else { Err("more than 0".to_owned()) }
}

pub(crate) fn run(args: &ReplayArgs, out: &mut dyn Write, err: &mut dyn Write) -> Result<u8> {
    let named = match &args.protocol {
        Some(name) => Some(Protocol::parse(name).ok_or_else(|| {
            Failure::usage(format!("{} is no protocol: aaep, agui or aep", text::one_line(name)))
        })?),
        None => None,
    };
    let client = args.data_dir.emitter()?;
    let name = text::one_line(input::name(&args.input));
    let mut source = match input::open(&args.input, &LiveOptions::default()) {
        Ok(source) if !source.live => source,
        Ok(_) => return Err(Failure::usage("replay reads recordings, not addresses").into()),
        Err(refusal) => {
            writeln!(err, "error: {name}: {}", refusal.reason)?;
            return Ok(FAILED);
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut player = Player {
        push: &|outbox, lines| Ok(runtime.block_on(client.emit_lines(outbox, lines))?),
        pause: &std::thread::sleep,
        speed: args.speed,
        protocol: named,
        thread: args.thread.clone(),
        lines: Vec::new(),
        count: 0,
        last: None,
        tally: Tally::default(),
    };
    let stop = messages(&mut source, &mut Framing::new(), |message| {
        match message {
            Ok(bytes) => player.play(bytes)?,
            Err(error) => player.tally.refuse(&error.to_string()),
        }
        Ok(None)
    })?;
    player.flush()?;
    let tally = player.tally;
    if let Some((failure, code)) = stop {
        writeln!(err, "error: {name}: {failure}")?;
        return Ok(code);
    }
    tally.tell(args.json, out, err)
}

/// Pushes lines to where they belong.
type Pushes<'a> = &'a dyn Fn(&Outbox, Bytes) -> Result<Vec<Receipt>>;

struct Player<'a> {
    push: Pushes<'a>,
    pause: &'a dyn Fn(Duration),
    speed: Option<f64>,
    protocol: Option<Protocol>,
    thread: String,
    /// What is to be pushed next, one a line.
    lines: Vec<u8>,
    count: usize,
    /// The time of the event before.
    last: Option<Timestamp>,
    tally: Tally,
}

impl Player<'_> {
    fn play(&mut self, message: &[u8]) -> Result<()> {
        let Some(protocol) = self.protocol.or_else(|| Protocol::sniff_bytes(message)) else {
            return Err(Failure::usage("the protocol is not known; use --protocol").into());
        };
        self.protocol = Some(protocol);
        let mut parser = Parser::default();
        if let Ok(document) = parser.parse(message) {
            let event = document.root();
            self.wait_for(reader::time(protocol, event))?;
            let begins = event.get("type").is_some_and(|kind| kind.is("RUN_STARTED"));
            let thread = event.get("threadId").and_then(View::as_str);
            if let Some(thread) = thread.filter(|it| begins && *it != self.thread) {
                self.flush()?;
                self.thread = thread.into_owned();
            }
        }
        // What is one message there is one line here.
        if message.contains(&b'\n') || message.contains(&b'\r') {
            match serde_json::from_slice::<Value>(message) {
                Ok(event) => self.lines.extend(event.to_string().as_bytes()),
                Err(error) => {
                    self.tally.refuse(&format!("it is not JSON: {error}"));
                    return Ok(());
                }
            }
        } else {
            self.lines.extend_from_slice(message);
        }
        self.lines.push(b'\n');
        self.count += 1;
        if self.count >= BATCH || self.lines.len() >= BATCH_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    /// Keeps the pause before an event.
    fn wait_for(&mut self, time: Option<Timestamp>) -> Result<()> {
        let (Some(speed), Some(time)) = (self.speed, time) else { return Ok(()) };
        if let Some(last) = self.last
            && let Ok(pause) = Duration::try_from(time.duration_since(last))
            && !pause.is_zero()
        {
            self.flush()?;
            (self.pause)(Duration::try_from_secs_f64(pause.as_secs_f64() / speed)?);
        }
        self.last = Some(time);
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let (Some(protocol), false) = (self.protocol, self.lines.is_empty()) else {
            return Ok(());
        };
        let lines = Bytes::from(std::mem::take(&mut self.lines));
        self.count = 0;
        let receipts = (self.push)(&Outbox::of(protocol, &self.thread), lines)?;
        for receipt in &receipts {
            self.tally.count(receipt);
        }
        Ok(())
    }
}

/// What became of a recording.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    recorded: u64,
    duplicate: u64,
    refused: u64,
    sessions: BTreeSet<String>,
    /// Why the first ones were refused.
    reasons: Vec<String>,
}

impl Tally {
    fn count(&mut self, receipt: &Receipt) {
        match receipt.status {
            Status::Recorded => self.recorded += 1,
            Status::Duplicate => self.duplicate += 1,
            Status::Refused => {
                let said = |name: &str| receipt.findings.first()?.get(name)?.as_str();
                let code = said("code").unwrap_or("refused");
                let message = said("message").unwrap_or_default();
                self.refuse(&format!("{code} {message}"));
                return;
            }
        }
        self.sessions.insert(receipt.session.clone());
    }

    fn refuse(&mut self, reason: &str) {
        self.refused += 1;
        if self.reasons.len() < TOLD {
            self.reasons.push(text::one_line(reason));
        }
    }

    fn tell(&self, json: bool, out: &mut dyn Write, err: &mut dyn Write) -> Result<u8> {
        let Self { recorded, duplicate, refused, sessions, reasons } = self;
        if json {
            let told = json!({
                "schema": "banister.replay/v1", "recorded": recorded, "duplicate": duplicate,
                "refused": refused, "sessions": sessions,
            });
            writeln!(out, "{told}")?;
        } else {
            writeln!(err, "{recorded} recorded, {duplicate} known already, {refused} refused")?;
            for session in sessions {
                writeln!(out, "{session}")?;
            }
        }
        for reason in reasons {
            writeln!(err, "refused: {reason}")?;
        }
        Ok(if *refused > 0 || recorded + duplicate == 0 { REFUSED } else { GOOD })
    }
}

#[cfg(test)]
#[path = "replay_tests.rs"]
mod tests;
