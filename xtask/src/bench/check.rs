//! The checker and the follower against mere parses of the same bytes, and against the protocols' own software.
//!
//! Everything runs in one thread on recordings in memory that break no rule, in turns. AAEP and AEP are checked; AG-UI
//! is followed, from bytes to the messages and the state that a client would show, each run as a stream of its own.
//! What one event costs in a session of any length is measured on sessions that are written while they are read; peak
//! memory is that of the real program on a real file.

use std::hint::black_box;
use std::time::Duration;

use anyhow::ensure;
use banister_events::check::Checker;
use banister_events::event::Protocol;
use banister_events::frame::ndjson::Lines;
use banister_events::limits::MESSAGE_BYTES;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::now;
use super::stats::Runs;

mod agui;
pub(super) mod corpus;
mod follow;
mod lengths;
mod memory;
mod peer;
mod report;
mod translate;

use agui::{Framing, Recording};
use peer::{Part, Peer};
pub(crate) use translate::translate;

/// How much is handed to the framing at once, as `banister check` does.
const PIECE: usize = 64 * 1024;
const AAEP_BYTES: usize = 32 << 20;
const AEP_BYTES: usize = 8 << 20;
const AGUI_BYTES: usize = 8 << 20;
/// Slow peers get less, and fewer runs.
const SUITE_BYTES: usize = 256 << 10;
const CLIENT_BYTES: usize = 1 << 20;
const SLOW_RUNS: usize = 10;

const AAEP: &str = "banister, AAEP";
const AAEP_VALUE: &str = "serde_json::Value, AAEP";
const SUITE: &str = "aaep-conformance";
const AGUI: &str = "banister, AG-UI, SSE";
const OPERATORS: &str = "@ag-ui/client, verify + apply";
const RUN_AGENT: &str = "@ag-ui/client, runAgent";
const LIBRARY: &str = "crate ag-ui";

pub(crate) fn check(runs: usize) -> anyhow::Result<()> {
    if cfg!(debug_assertions) {
        return super::optimized("check", runs);
    }
    let (large, events) = corpus::recording(Protocol::Aaep, AAEP_BYTES, 0)?;
    let (other, other_events) = corpus::recording(Protocol::Aep, AEP_BYTES, 0)?;
    let (slice, slice_events) = corpus::recording(Protocol::Aaep, SUITE_BYTES, 0)?;
    let sse = Recording::write(Framing::Sse, AGUI_BYTES)?;
    let lines = Recording::write(Framing::Lines, AGUI_BYTES)?;
    let short = Recording::write(Framing::Sse, CLIENT_BYTES)?;
    let row = |name, work, text, events| Row { name, work, text, events, runs: Runs::default() };
    let mut rows = vec![
        row(AAEP, Work::Check(Protocol::Aaep), &*large, events),
        row(AAEP_VALUE, Work::Parse, &large, events),
        row("serde IgnoredAny, AAEP", Work::Skip, &large, events),
        row("banister, AEP", Work::Check(Protocol::Aep), &other, other_events),
        row("serde_json::Value, AEP", Work::Parse, &other, other_events),
        row(AGUI, Work::Follow(&sse), &sse.text, sse.events),
        row("banister, AG-UI, NDJSON", Work::Follow(&lines), &lines.text, lines.events),
        row("serde_json::Value, AG-UI", Work::Parse, &lines.text, lines.events),
    ];
    for (name, peer, text, events, most) in [
        (SUITE, Peer::suite(&slice), &*slice, slice_events, SLOW_RUNS),
        (
            OPERATORS,
            Peer::client(Part::Operators, &short.text),
            &short.text,
            short.events,
            SLOW_RUNS,
        ),
        (
            RUN_AGENT,
            Peer::client(Part::RunAgent, &short.text),
            &short.text,
            short.events,
            SLOW_RUNS,
        ),
        (LIBRARY, Peer::library(&sse.text), &sse.text, sse.events, usize::MAX),
    ] {
        match peer {
            Ok(peer) => rows.push(row(name, Work::Peer { peer, most }, text, events)),
            Err(error) => crate::tell(&format!("bench: SKIPPED {name}: {error:#}")),
        }
    }
    crate::tell(&format!("bench: {runs} runs of each, in turns"));
    // The first round warms up.
    for round in 0..=runs {
        for row in &mut rows {
            row.run(round)?;
        }
        rows.rotate_left(1);
    }
    crate::tell("bench: sessions of different lengths");
    let lengths = lengths::measure(runs)?;
    crate::tell("bench: a recording of 1 GB");
    let memory = memory::measure()?;
    report::report(rows, &lengths, memory.as_ref())
}

/// One thing that is measured.
struct Row<'a> {
    name: &'static str,
    work: Work<'a>,
    text: &'a str,
    events: u64,
    runs: Runs,
}

enum Work<'a> {
    /// Framing, parsing, every rule, the order of events.
    Check(Protocol),
    /// All of that for each run, and what its events make.
    Follow(&'a Recording),
    /// A `serde_json::Value` per line.
    Parse,
    /// The same without keeping anything.
    Skip,
    /// Somebody else's program, measured this many times at most.
    Peer { peer: Peer, most: usize },
}

impl Row<'_> {
    fn run(&mut self, round: usize) -> anyhow::Result<()> {
        let took = match &mut self.work {
            Work::Peer { most, .. } if round > *most => return Ok(()),
            Work::Peer { peer, .. } => peer.run()?,
            Work::Check(protocol) => {
                let began = now();
                let mut checker = Checker::new(*protocol);
                let findings = checked(&mut checker, self.text)? + checker.finish().len();
                let took = began.elapsed();
                ensure!(findings == 0, "{findings} findings in a recording without fault");
                took
            }
            Work::Follow(recording) => followed(recording)?,
            Work::Parse => parsed::<Value>(self.text)?,
            Work::Skip => parsed::<IgnoredAny>(self.text)?,
        };
        if round > 0 {
            self.runs.add(took);
        }
        Ok(())
    }

    /// Nanoseconds per event, by the median.
    fn cost(&self) -> f64 {
        per_event(self.runs.median(), self.events)
    }

    #[expect(clippy::cast_precision_loss, reason = "sizes stay far below 2^52")]
    fn mean_bytes(&self) -> f64 {
        self.text.len() as f64 / self.events.max(1) as f64
    }
}

/// Checks lines as `banister check` does; gives the number of findings.
fn checked(checker: &mut Checker, text: &str) -> anyhow::Result<usize> {
    let mut lines = Lines::new(MESSAGE_BYTES);
    let mut findings = 0;
    for mut piece in text.as_bytes().chunks(PIECE) {
        while let Some((_, line)) = lines.read(&mut piece) {
            findings += checker.message(line?).len();
        }
    }
    Ok(findings)
}

fn followed(recording: &Recording) -> anyhow::Result<Duration> {
    let began = now();
    for bytes in recording.runs() {
        let mut run = follow::Run::new();
        run.read(recording.framing, bytes)?;
        run.finish()?;
        black_box(run);
    }
    Ok(began.elapsed())
}

fn parsed<'a, T: serde::Deserialize<'a>>(text: &'a str) -> anyhow::Result<Duration> {
    let began = now();
    for line in text.as_bytes().split(|byte| *byte == b'\n') {
        if !line.is_empty() {
            black_box(serde_json::from_slice::<T>(line)?);
        }
    }
    Ok(began.elapsed())
}

#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
fn per_event(took: Duration, events: u64) -> f64 {
    took.as_secs_f64() * 1e9 / events.max(1) as f64
}
