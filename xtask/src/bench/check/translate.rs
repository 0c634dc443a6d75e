//! Translating against checking the same bytes, and the memory it takes.

use std::fmt::Write as _;
use std::hint::black_box;
use std::process::Command;
use std::time::Duration;

use anyhow::Context;
use banister_events::aaep::voice::Voice;
use banister_events::check::Checker;
use banister_events::event::Protocol;
use banister_events::frame::ndjson::Lines;
use banister_events::limits::MESSAGE_BYTES;
use banister_events::translate::{Source, Translator};
use jiff::Timestamp;
use serde_json::json;

use super::agui::{Framing, Recording};
use super::memory::{self, Peak};
use super::{AEP_BYTES, AGUI_BYTES, PIECE, Runs, corpus, per_event};
use crate::bench::{merge, now, target};

/// How fast one protocol becomes another, at least, over the speed of checking the same stream.
fn goal(from: Protocol, to: Protocol) -> f64 {
    match (from, to) {
        (Protocol::Agui, Protocol::Aaep) => 0.5,
        _ => 0.2,
    }
}

/// How much more memory a recording eight times as long may take.
const FLAT: f64 = 1.3;
const SHORT: u64 = 32 << 20;
const LONG: u64 = 256 << 20;

pub(crate) fn translate(runs: usize) -> anyhow::Result<()> {
    if cfg!(debug_assertions) {
        return optimized(runs);
    }
    let agui = Recording::write(Framing::Lines, AGUI_BYTES)?;
    let spoken = corpus::recording(Protocol::Aaep, AEP_BYTES, 0)?;
    let hooked = corpus::recording(Protocol::Aep, AEP_BYTES, 0)?;
    let of = |protocol| match protocol {
        Protocol::Aaep => (&*spoken.0, spoken.1),
        Protocol::Agui => (&*agui.text, agui.events),
        Protocol::Aep => (&*hooked.0, hooked.1),
    };
    let mut rows = Vec::new();
    for from in Protocol::ALL {
        let (text, events) = of(from);
        rows.push(Row { from, to: None, text, events, runs: Runs::default(), wrote: 0 });
        for to in Protocol::ALL.into_iter().filter(|to| *to != from) {
            rows.push(Row { from, to: Some(to), text, events, runs: Runs::default(), wrote: 0 });
        }
    }
    crate::tell(&format!("bench: {runs} runs of each, in turns"));
    // The first round warms up.
    for round in 0..=runs {
        for row in &mut rows {
            let took = row.run()?;
            if round > 0 {
                row.runs.add(took);
            }
        }
        rows.rotate_left(1);
    }
    crate::tell("bench: recordings of 32 MB and 256 MB");
    let peaks = memory::translated(SHORT)?.zip(memory::translated(LONG)?);
    report(&rows, peaks.as_ref())
}

/// Builds this program as users get it, and lets that measure.
fn optimized(runs: usize) -> anyhow::Result<()> {
    crate::tell("bench: building (release)");
    crate::run(crate::cargo()?.args(["build", "--quiet", "--release", "-p", "xtask"]))?;
    let program = target()?.join("release/xtask");
    crate::run(Command::new(program).args(["bench", "translate", "--runs", &runs.to_string()]))
}

/// One thing that is measured: bytes in, and where something is written, bytes out.
struct Row<'a> {
    from: Protocol,
    /// Checked only, where there is none.
    to: Option<Protocol>,
    text: &'a str,
    events: u64,
    runs: Runs,
    wrote: usize,
}

impl Row<'_> {
    fn run(&mut self) -> anyhow::Result<Duration> {
        let began = now();
        let mut lines = Lines::new(MESSAGE_BYTES);
        match self.to {
            None => {
                let mut checker = Checker::new(self.from);
                for mut piece in self.text.as_bytes().chunks(PIECE) {
                    while let Some((_, line)) = lines.read(&mut piece) {
                        black_box(checker.message(line?));
                    }
                }
                black_box(checker.finish());
            }
            Some(to) => {
                let voice = Voice { carry: true, ..Voice::default() };
                let mut translator = Translator::new(Source::Protocol(self.from), to, voice);
                let mut out = Vec::new();
                self.wrote = 0;
                let time = Timestamp::from_second(1_800_000_000)?;
                for mut piece in self.text.as_bytes().chunks(PIECE) {
                    while let Some((_, line)) = lines.read(&mut piece) {
                        for translated in translator.message(line?, time)? {
                            translated.event.write_json(&mut out);
                            out.push(b'\n');
                        }
                    }
                    self.wrote += black_box(&out).len();
                    out.clear();
                }
                black_box(translator.finish());
            }
        }
        Ok(began.elapsed())
    }

    fn name(&self) -> String {
        match self.to {
            Some(to) => format!("{} to {}", self.from, to),
            None => format!("check {}", self.from),
        }
    }

    /// Nanoseconds per event read, by the median.
    fn cost(&self) -> f64 {
        per_event(self.runs.median(), self.events)
    }
}

fn report(rows: &[Row<'_>], peaks: Option<&(Peak, Peak)>) -> anyhow::Result<()> {
    let check = |from| {
        let row = rows.iter().find(|row| row.from == from && row.to.is_none());
        row.map(Row::cost).context("checking was not measured")
    };
    let mut text = String::from("\nBytes in, bytes out, one thread, medians:\n\n");
    writeln!(
        text,
        "{:<16} {:>12} {:>14} {:>18}",
        "", "ns/event", "bytes written", "of check's speed"
    )?;
    let mut measured = Vec::new();
    let mut goals = String::from("\nGoals:\n\n");
    let verdict = |met| if met { "met" } else { "MISSED" };
    let mut ordered: Vec<&Row<'_>> = rows.iter().collect();
    ordered.sort_by_key(|row| (row.from, row.to));
    for row in ordered {
        let ratio = check(row.from)? / row.cost();
        writeln!(
            text,
            "{:<16} {:>12.0} {:>14} {ratio:>16.2} x",
            row.name(),
            row.cost(),
            row.wrote
        )?;
        let goal = row.to.map(|to| goal(row.from, to));
        measured.push(json!({
            "name": row.name(), "ns_per_event": row.cost(), "of_check": ratio, "goal": goal,
        }));
        if let Some(goal) = goal {
            writeln!(
                goals,
                "{} over checking: {ratio:.2} x   (goal: at least {goal} x, {})",
                row.name(),
                verdict(ratio >= goal)
            )?;
        }
    }
    text.push_str(&goals);
    let growth = peaks.map(|(short, long)| long.megabytes() / short.megabytes());
    if let (Some((short, long)), Some(growth)) = (peaks, growth) {
        writeln!(
            text,
            "peak memory on {} MB over that on {} MB: {growth:.2} x, {:.1} MB and {:.1} MB   (goal: at most {FLAT} x, {})",
            long.bytes >> 20,
            short.bytes >> 20,
            long.megabytes(),
            short.megabytes(),
            verdict(growth <= FLAT)
        )?;
    }
    crate::say(text.trim_end_matches('\n'));
    merge("translate", json!({ "rows": measured, "memory_growth": growth }))
}
