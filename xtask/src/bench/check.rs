//! The checker against a mere parse of the same bytes, and against the protocol's own suite.
//!
//! Everything runs in one thread on a recording in memory that breaks no rule, in turns. What one event costs in a
//! session of any length is measured on sessions that are written while they are checked; peak memory is that of the
//! real program on a real file.

use std::fmt::Write;
use std::hint::black_box;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};
use banister_events::check::Checker;
use banister_events::event::Protocol;
use banister_events::frame::ndjson::Lines;
use banister_events::limits::MESSAGE_BYTES;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::stats::Runs;
use super::{merge, now, target};

mod corpus;
mod memory;
mod peer;

use corpus::Session;
use peer::Suite;

/// How much is handed to the framing at once, as `banister check` does.
const PIECE: usize = 64 * 1024;
const AAEP_BYTES: usize = 32 << 20;
const AEP_BYTES: usize = 8 << 20;
/// The suite is slow: it gets less, and fewer runs.
const SUITE_BYTES: usize = 256 << 10;
const SUITE_RUNS: usize = 10;
/// The lengths of one session, and how many events are checked at least to measure one.
const LENGTHS: [u64; 4] = [1_000, 10_000, 100_000, 1_000_000];
const LENGTH_EVENTS: u64 = 200_000;
const LENGTH_RUNS: usize = 5;

const AAEP: &str = "banister, AAEP";
const AAEP_VALUE: &str = "serde_json::Value, AAEP";
const SUITE: &str = "aaep-conformance";

pub(crate) fn check(runs: usize) -> anyhow::Result<()> {
    if cfg!(debug_assertions) {
        return optimized(runs);
    }
    let (large, events) = corpus::recording(Protocol::Aaep, AAEP_BYTES, 0)?;
    let (other, other_events) = corpus::recording(Protocol::Aep, AEP_BYTES, 0)?;
    let row = |name, work, text, events| Row { name, work, text, events, runs: Runs::default() };
    let mut rows = vec![
        row(AAEP, Work::Check(Protocol::Aaep), &*large, events),
        row(AAEP_VALUE, Work::Parse, &large, events),
        row("serde IgnoredAny, AAEP", Work::Skip, &large, events),
        row("banister, AEP", Work::Check(Protocol::Aep), &other, other_events),
        row("serde_json::Value, AEP", Work::Parse, &other, other_events),
    ];
    let (slice, slice_events) = corpus::recording(Protocol::Aaep, SUITE_BYTES, 0)?;
    match Suite::start(&slice) {
        Ok(suite) => rows.push(row(SUITE, Work::Suite(suite), &slice, slice_events)),
        Err(error) => crate::tell(&format!("bench: SKIPPED {SUITE}: {error:#}")),
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
    let lengths = lengths(runs.min(LENGTH_RUNS))?;
    crate::tell("bench: a recording of 1 GB");
    let memory = memory::measure()?;
    report(rows, &lengths, memory.as_ref())
}

/// Builds this program as users get it, and lets that measure.
fn optimized(runs: usize) -> anyhow::Result<()> {
    crate::tell("bench: building (release)");
    crate::run(crate::cargo()?.args(["build", "--quiet", "--release", "-p", "xtask"]))?;
    let program = target()?.join("release/xtask");
    crate::run(Command::new(program).args(["bench", "check", "--runs", &runs.to_string()]))
}

/// One thing that is measured.
struct Row<'a> {
    name: &'static str,
    work: Work,
    text: &'a str,
    events: u64,
    runs: Runs,
}

enum Work {
    /// Framing, parsing, every rule, the order of events.
    Check(Protocol),
    /// A `serde_json::Value` per line.
    Parse,
    /// The same without keeping anything.
    Skip,
    /// The protocol's own suite.
    Suite(Suite),
}

impl Row<'_> {
    fn run(&mut self, round: usize) -> anyhow::Result<()> {
        let took = match &mut self.work {
            Work::Suite(_) if round > SUITE_RUNS => return Ok(()),
            Work::Suite(suite) => suite.run()?,
            Work::Check(protocol) => {
                let began = now();
                let mut checker = Checker::new(*protocol);
                let findings = checked(&mut checker, self.text)? + checker.finish().len();
                let took = began.elapsed();
                ensure!(findings == 0, "{findings} findings in a recording without fault");
                took
            }
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

/// What one event costs, in nanoseconds, for each length of a session.
fn lengths(runs: usize) -> anyhow::Result<Vec<(u64, f64)>> {
    let mut measured = LENGTHS.map(|length| (length, Vec::new()));
    for _ in 0..runs {
        for (length, costs) in &mut measured {
            costs.push(length_cost(*length)?);
        }
    }
    Ok(measured
        .into_iter()
        .map(|(length, mut costs)| {
            costs.sort_by(f64::total_cmp);
            (length, costs.get(costs.len() / 2).copied().unwrap_or_default())
        })
        .collect())
}

/// Writes sessions of one length piece by piece, and measures the checks alone.
fn length_cost(length: u64) -> anyhow::Result<f64> {
    let mut text = String::with_capacity(2 * PIECE);
    let (mut took, mut events) = (Duration::ZERO, 0);
    let mut id = 0;
    while events < LENGTH_EVENTS {
        let mut session = Session::new(Protocol::Aaep, id, length);
        let mut checker = Checker::new(Protocol::Aaep);
        let mut findings = 0;
        loop {
            text.clear();
            while text.len() < PIECE && session.write(&mut text)? {}
            if text.is_empty() {
                break;
            }
            let began = now();
            findings += checked(&mut checker, &text)?;
            took += began.elapsed();
        }
        ensure!(findings == 0, "{findings} findings in a session without fault");
        events += session.events();
        id += 1;
    }
    Ok(per_event(took, events))
}

/// A promise of the design: what it is about, the number, the goal, and whether that is the least or the most.
struct Goal {
    what: String,
    number: f64,
    unit: &'static str,
    wanted: f64,
    bound: &'static str,
}

impl Goal {
    fn at_least(what: &str, number: f64, wanted: f64) -> Self {
        Self { what: what.to_owned(), number, unit: "x", wanted, bound: "at least" }
    }

    fn at_most(what: &str, number: f64, unit: &'static str, wanted: f64) -> Self {
        Self { what: what.to_owned(), number, unit, wanted, bound: "at most" }
    }

    fn met(&self) -> bool {
        match self.bound {
            "at least" => self.number >= self.wanted,
            _ => self.number <= self.wanted,
        }
    }
}

fn report(
    mut rows: Vec<Row<'_>>,
    lengths: &[(u64, f64)],
    memory: Option<&memory::Peak>,
) -> anyhow::Result<()> {
    rows.sort_by(|one, other| one.cost().total_cmp(&other.cost()));
    let mut text = String::from("\nChecking recordings, one thread, medians:\n\n");
    writeln!(text, "{:<26} {:>12} {:>12} {:>9}", "", "ns/event", "events/s", "MB/s")?;
    let mut told = Vec::new();
    for row in &rows {
        let cost = row.cost();
        let (events, megabytes) = (1e9 / cost, row.mean_bytes() * 1e3 / cost);
        writeln!(text, "{:<26} {cost:>12.0} {events:>12.0} {megabytes:>9.0}", row.name)?;
        told.push(json!({
            "name": row.name, "runs": row.runs.count(), "events": row.events,
            "bytes": row.text.len(), "ns_per_event": cost,
        }));
    }
    writeln!(text, "\nOne session, nanoseconds per event:\n")?;
    for (length, cost) in lengths {
        writeln!(text, "{length:>10} events {cost:>12.0}")?;
    }
    let goals = goals(&rows, lengths, memory)?;
    if let Some(peak) = memory {
        writeln!(
            text,
            "\nbanister check on {} MB: {:.1} s, {:.0} MB/s, peak memory {:.1} MB",
            peak.bytes >> 20,
            peak.took.as_secs_f64(),
            peak.rate(),
            peak.megabytes(),
        )?;
    }
    writeln!(text, "\nGoals:\n")?;
    let mut judged = Vec::new();
    for goal in &goals {
        let Goal { what, number, unit, wanted, bound } = goal;
        let verdict = if goal.met() { "met" } else { "MISSED" };
        writeln!(text, "{what}: {number:.2} {unit}   (goal: {bound} {wanted} {unit}, {verdict})")?;
        judged.push(json!({
            "what": what, "number": number, "unit": unit, "goal": wanted, "bound": bound,
            "met": goal.met(),
        }));
    }
    crate::say(text.trim_end_matches('\n'));
    let lengths: Vec<Value> = lengths
        .iter()
        .map(|(length, cost)| json!({ "events": length, "ns_per_event": cost }))
        .collect();
    merge(
        "check",
        json!({
            "rows": told, "lengths": lengths, "goals": judged,
            "memory": memory.map(|peak| json!({
                "bytes": peak.bytes, "peak_bytes": peak.memory, "seconds": peak.took.as_secs_f64(),
            })),
        }),
    )
}

fn goals(
    rows: &[Row<'_>],
    lengths: &[(u64, f64)],
    memory: Option<&memory::Peak>,
) -> anyhow::Result<Vec<Goal>> {
    let cost = |name| rows.iter().find(|row| row.name == name).map(Row::cost);
    let ours = cost(AAEP).context("our own cost was not measured")?;
    let costs = || lengths.iter().map(|(_, cost)| *cost);
    let flat = costs().fold(0.0, f64::max) / costs().fold(f64::INFINITY, f64::min);
    let mut goals = Vec::new();
    if let Some(suite) = cost(SUITE) {
        goals.push(Goal::at_least(&format!("speed over {SUITE}"), suite / ours, 500.0));
    }
    if let Some(value) = cost(AAEP_VALUE) {
        goals.push(Goal::at_least("speed over a mere parse into a Value", value / ours, 1.0));
    }
    goals.push(Goal::at_most("dearest over cheapest length of a session", flat, "x", 1.3));
    if let Some(peak) = memory {
        goals.push(Goal::at_most("peak memory on 1 GB", peak.megabytes(), "MB", 96.0));
    }
    Ok(goals)
}
