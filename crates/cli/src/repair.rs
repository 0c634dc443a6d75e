//! `banister repair`: the nearest stream that a client runs clean.
//!
//! Reads whatever `banister check` reads. The events go to `out`, one per line or as server-sent events; what was
//! changed goes to `err`, a line each. What is right is not touched. Messages that cannot be cut out of their frames
//! are told and not mended.

use std::io::Write;

use anyhow::Result;
use banister_events::agui::repair::{Change, Repairer};
use banister_events::check::Checker;
use banister_events::event::Protocol;
use banister_events::frame::sse;
use banister_events::{Message, text};
use bytes::Bytes;
use serde_json::json;

use crate::check::framing::Framing;
use crate::check::input::{self, Input};
use crate::check::live::LiveOptions;
use crate::check::messages::{Stop, messages};
use crate::failure::{FAILED, GOOD, REFUSED};

/// What `banister repair` takes.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(
    after_help = "Exit codes: 0 events were written, whatever was changed; 1 there is nothing to repair from, or \
                        --check found something to change; 2 wrong usage; 3 the input is not readable"
)]
pub(crate) struct RepairArgs {
    /// Write server-sent events, as an agent would send them, instead of JSON lines
    #[arg(long)]
    pub(crate) sse: bool,
    /// Write no events, and exit with 1 if anything is to be changed
    #[arg(long)]
    pub(crate) check: bool,
    /// Print the changes as JSON lines: {"message", "rule", "what"}; message 0 is the framing
    #[arg(long)]
    pub(crate) json: bool,
    /// An AG-UI recording, packed or not: .jsonl, .json, .sse; - is standard input
    #[arg(default_value = "-", value_name = "FILE")]
    pub(crate) input: String,
}

/// Repairs a recording. Returns the exit code: 0 where there are events, 1 where there are none or `--check` found
/// something, 2 usage, 3 not readable.
pub(crate) fn run(args: &RepairArgs, out: &mut dyn Write, err: &mut dyn Write) -> Result<u8> {
    let name = text::one_line(input::name(&args.input));
    if args.input.contains("://") {
        writeln!(
            err,
            "error: repair reads recordings; pipe a live stream in: … | banister repair -"
        )?;
        return Ok(crate::failure::USAGE);
    }
    let mut source = match input::open(&args.input, &LiveOptions::default()) {
        Ok(source) => source,
        Err(refusal) => {
            writeln!(err, "error: {name}: {}", refusal.reason)?;
            return Ok(FAILED);
        }
    };
    let mut work = Work { args, out, err, repairer: Repairer::default(), events: 0, changes: 0 };
    let failure = work.read(&mut source)?;
    let last = work.repairer.finish();
    work.write(last)?;
    let Work { err, events, changes, .. } = work;
    if let Some((failure, code)) = failure {
        writeln!(err, "error: {name}: {failure}")?;
        return Ok(code);
    }
    if events == 0 {
        writeln!(err, "error: {name}: the input has no events")?;
        return Ok(REFUSED);
    }
    let plural =
        |count: u64, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    writeln!(err, "{}, {}", plural(events, "event"), plural(changes, "change"))?;
    Ok(if args.check && changes > 0 { REFUSED } else { GOOD })
}

struct Work<'a> {
    args: &'a RepairArgs,
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
    repairer: Repairer,
    events: u64,
    changes: u64,
}

impl Work<'_> {
    /// Repairs everything that can be read; says why where not all could, and the exit code of that.
    fn read(&mut self, source: &mut Input) -> Result<Option<Stop>> {
        let mut framing = Framing::new();
        let mut first = true;
        let stop = messages(source, &mut framing, |message| {
            if std::mem::take(&mut first)
                && let Some(protocol) = message.ok().and_then(Protocol::sniff_bytes)
                && protocol != Protocol::Agui
            {
                let what = format!("this is {protocol}; repair knows AG-UI only");
                return Ok(Some((what, REFUSED)));
            }
            let events = match message {
                Ok(bytes) => self.repairer.bytes(Bytes::copy_from_slice(bytes)),
                Err(error) => {
                    self.repairer.unframed(error);
                    Vec::new()
                }
            };
            self.write(events)?;
            Ok(None)
        })?;
        if stop.is_none() {
            self.tell_frames(&framing)?;
        }
        Ok(stop)
    }

    /// Frames that stricter parsers do not read are written anew, whatever is in them.
    fn tell_frames(&mut self, framing: &Framing) -> Result<()> {
        for finding in Checker::new(Protocol::Agui).frames(&framing.quirks()) {
            let what = format!("replaced the frames, as {}", finding.message);
            self.tell(&Change { message: 0, rule: finding.rule, what })?;
        }
        Ok(())
    }

    fn tell(&mut self, Change { message, rule, what }: &Change) -> Result<()> {
        self.changes += 1;
        let what = text::one_line(what);
        if self.args.json {
            let line = json!({ "message": message, "rule": rule.code, "what": what });
            writeln!(self.err, "{line}")?;
        } else if *message == 0 {
            writeln!(self.err, "framing: {what} ({})", rule.code)?;
        } else {
            writeln!(self.err, "message {message}: {what} ({})", rule.code)?;
        }
        Ok(())
    }

    fn write(&mut self, events: Vec<Message>) -> Result<()> {
        self.events += events.len() as u64;
        for event in events.into_iter().filter(|_| !self.args.check) {
            if self.args.sse {
                let mut framed = Vec::new();
                let data = &String::from_utf8_lossy(event.bytes());
                sse::write(&mut framed, &sse::Outgoing { data, ..Default::default() });
                self.out.write_all(&framed)?;
            } else {
                // A line that came with line ends inside was laid out for people.
                let bytes = event.bytes().iter().copied();
                let line: Vec<u8> = bytes.filter(|byte| !b"\r\n".contains(byte)).collect();
                self.out.write_all(&line)?;
                self.out.write_all(b"\n")?;
            }
        }
        for change in self.repairer.changes() {
            self.tell(&change)?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "repair_tests.rs"]
mod tests;
