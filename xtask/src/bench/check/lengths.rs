//! What one event costs in a session of any length.
//!
//! Sessions are written piece by piece while they are read; only the reading is measured.

use std::fmt;
use std::time::Duration;

use anyhow::ensure;
use banister_events::check::Checker;
use banister_events::event::Protocol;

use super::agui::{Framing, Long, LongRun};
use super::corpus::Session;
use super::follow::Run;
use super::{PIECE, checked, per_event};
use crate::bench::now;

/// The lengths of one session, and how many events are read at least to measure one.
const LENGTHS: [u64; 4] = [1_000, 10_000, 100_000, 1_000_000];
const EVENTS: u64 = 200_000;
const RUNS: usize = 5;

/// What a session consists of, and nanoseconds per event for each length.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) what: &'static str,
    pub(super) costs: Vec<(u64, f64)>,
}

impl Measured {
    /// The dearest length over the cheapest.
    pub(super) fn spread(&self) -> f64 {
        let costs = || self.costs.iter().map(|(_, cost)| *cost);
        costs().fold(0.0, f64::max) / costs().fold(f64::INFINITY, f64::min)
    }
}

pub(super) fn measure(runs: usize) -> anyhow::Result<Vec<Measured>> {
    Ok(vec![
        kind("AAEP session", runs, |id, length| Checking {
            session: Session::new(Protocol::Aaep, id, length),
            checker: Checker::new(Protocol::Aaep),
        })?,
        kind("AG-UI message", runs, |_, length| Following::new(Long::Message, length))?,
        kind("AG-UI tool call", runs, |_, length| Following::new(Long::Call, length))?,
        kind("AG-UI state", runs, |_, length| Following::new(Long::State, length))?,
    ])
}

/// One session that is written and read in turns.
trait Reading {
    fn write(&mut self, out: &mut String) -> Result<bool, fmt::Error>;
    fn read(&mut self, text: &str) -> anyhow::Result<()>;
    /// Fails where the session was not read to its end. Not measured.
    fn end(&mut self) -> anyhow::Result<()>;
    fn events(&self) -> u64;
}

struct Checking {
    session: Session,
    checker: Checker,
}

impl Reading for Checking {
    fn write(&mut self, out: &mut String) -> Result<bool, fmt::Error> {
        self.session.write(out)
    }

    fn read(&mut self, text: &str) -> anyhow::Result<()> {
        let findings = checked(&mut self.checker, text)?;
        ensure!(findings == 0, "{findings} findings in a session without fault");
        Ok(())
    }

    fn end(&mut self) -> anyhow::Result<()> {
        let findings = self.checker.finish();
        ensure!(findings.is_empty(), "a session without fault has not ended: {findings:?}");
        Ok(())
    }

    fn events(&self) -> u64 {
        self.session.events()
    }
}

struct Following {
    written: LongRun,
    read: Run,
}

impl Following {
    fn new(what: Long, length: u64) -> Self {
        Self { written: LongRun::new(what, length), read: Run::new() }
    }
}

impl Reading for Following {
    fn write(&mut self, out: &mut String) -> Result<bool, fmt::Error> {
        self.written.write(out)
    }

    fn read(&mut self, text: &str) -> anyhow::Result<()> {
        self.read.read(Framing::Lines, text.as_bytes())
    }

    fn end(&mut self) -> anyhow::Result<()> {
        self.read.finish()
    }

    fn events(&self) -> u64 {
        self.written.events()
    }
}

fn kind<S: Reading>(
    what: &'static str,
    runs: usize,
    open: impl Fn(u64, u64) -> S,
) -> anyhow::Result<Measured> {
    let mut measured = LENGTHS.map(|length| (length, Vec::new()));
    for _ in 0..runs.min(RUNS) {
        for (length, costs) in &mut measured {
            costs.push(cost(|id| open(id, *length))?);
        }
    }
    let median = |mut costs: Vec<f64>| {
        costs.sort_by(f64::total_cmp);
        costs.get(costs.len() / 2).copied().unwrap_or_default()
    };
    let costs = measured.into_iter().map(|(length, costs)| (length, median(costs))).collect();
    Ok(Measured { what, costs })
}

fn cost<S: Reading>(open: impl Fn(u64) -> S) -> anyhow::Result<f64> {
    let mut text = String::with_capacity(2 * PIECE);
    let (mut took, mut events) = (Duration::ZERO, 0);
    let mut id = 0;
    while events < EVENTS {
        let mut session = open(id);
        loop {
            text.clear();
            while text.len() < PIECE && session.write(&mut text)? {}
            if text.is_empty() {
                break;
            }
            let began = now();
            session.read(&text)?;
            took += began.elapsed();
        }
        session.end()?;
        events += session.events();
        id += 1;
    }
    Ok(per_event(took, events))
}
