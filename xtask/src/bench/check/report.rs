//! What was measured, in words and as JSON, and how it compares with what the design promises.

use std::fmt::Write;

use anyhow::Context;
use serde_json::{Value, json};

use super::lengths::Measured;
use super::memory::Peak;
use super::{AAEP, AAEP_VALUE, AGUI, LIBRARY, OPERATORS, RUN_AGENT, Row, SUITE};
use crate::bench::merge;

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

pub(super) fn report(
    mut rows: Vec<Row<'_>>,
    lengths: &[Measured],
    memory: Option<&Peak>,
) -> anyhow::Result<()> {
    rows.sort_by(|one, other| one.cost().total_cmp(&other.cost()));
    let mut text = String::from("\nReading recordings, one thread, medians:\n\n");
    writeln!(text, "{:<32} {:>12} {:>12} {:>9}", "", "ns/event", "events/s", "MB/s")?;
    let mut told = Vec::new();
    for row in &rows {
        let cost = row.cost();
        let (events, megabytes) = (1e9 / cost, row.mean_bytes() * 1e3 / cost);
        writeln!(text, "{:<32} {cost:>12.0} {events:>12.0} {megabytes:>9.0}", row.name)?;
        told.push(json!({
            "name": row.name, "runs": row.runs.count(), "events": row.events,
            "bytes": row.text.len(), "ns_per_event": cost,
        }));
    }
    let lengths_told = tell_lengths(&mut text, lengths)?;
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
    for goal in &goals(&rows, lengths, memory)? {
        let Goal { what, number, unit, wanted, bound } = goal;
        let verdict = if goal.met() { "met" } else { "MISSED" };
        writeln!(text, "{what}: {number:.2} {unit}   (goal: {bound} {wanted} {unit}, {verdict})")?;
        judged.push(json!({
            "what": what, "number": number, "unit": unit, "goal": wanted, "bound": bound,
            "met": goal.met(),
        }));
    }
    crate::say(text.trim_end_matches('\n'));
    merge(
        "check",
        json!({
            "rows": told, "lengths": lengths_told, "goals": judged,
            "memory": memory.map(|peak| json!({
                "bytes": peak.bytes, "peak_bytes": peak.memory, "seconds": peak.took.as_secs_f64(),
            })),
        }),
    )
}

fn tell_lengths(text: &mut String, lengths: &[Measured]) -> anyhow::Result<Vec<Value>> {
    let mut told = Vec::new();
    writeln!(text, "\nOne of any length, nanoseconds per event:\n")?;
    write!(text, "{:>17}", "")?;
    for Measured { what, .. } in lengths {
        write!(text, " {what:>16}")?;
    }
    writeln!(text)?;
    let events = lengths.first().map(|kind| kind.costs.as_slice()).unwrap_or_default();
    for (at, (events, _)) in events.iter().enumerate() {
        write!(text, "{events:>10} events")?;
        for Measured { what, costs } in lengths {
            let cost = costs.get(at).map_or(f64::NAN, |(_, cost)| *cost);
            write!(text, " {cost:>16.0}")?;
            told.push(json!({ "what": what, "events": events, "ns_per_event": cost }));
        }
        writeln!(text)?;
    }
    Ok(told)
}

fn goals(
    rows: &[Row<'_>],
    lengths: &[Measured],
    memory: Option<&Peak>,
) -> anyhow::Result<Vec<Goal>> {
    let cost = |name| rows.iter().find(|row| row.name == name).map(Row::cost);
    let mut goals = Vec::new();
    for (ours, peer, what, wanted) in [
        (AAEP, SUITE, "aaep-conformance", 500.0),
        (AAEP, AAEP_VALUE, "a mere parse into a Value", 1.0),
        (AGUI, OPERATORS, OPERATORS, 30.0),
        (AGUI, RUN_AGENT, RUN_AGENT, 60.0),
        (AGUI, LIBRARY, LIBRARY, 1.2),
    ] {
        let ours = cost(ours).context("our own cost was not measured")?;
        if let Some(theirs) = cost(peer) {
            goals.push(Goal::at_least(&format!("speed over {what}"), theirs / ours, wanted));
        }
    }
    for kind in lengths {
        let what = format!("dearest over cheapest length of one {}", kind.what);
        goals.push(Goal::at_most(&what, kind.spread(), "x", 1.3));
    }
    if let Some(peak) = memory {
        goals.push(Goal::at_most("peak memory on 1 GB", peak.megabytes(), "MB", 96.0));
    }
    Ok(goals)
}
