//! What a report is given, whatever its format: findings one by one, and the sums of each input.
//!
//! A report is written as findings come, so that none has to be held.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::ops::Range;

use banister_events::event::Protocol;
use banister_events::finding::{Finding, Severity};
use banister_events::json;

use super::window::{Place, characters};

/// One finding at its place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found<'a> {
    /// The input's name, as a person typed it.
    pub(crate) name: &'a str,
    pub(crate) severity: Severity,
    pub(crate) finding: &'a Finding,
    /// None where it is the end of the input that is wrong.
    pub(crate) spot: Option<Spot<'a>>,
}

/// A value, or a whole message, in its input.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spot<'a> {
    /// Counted from 1.
    pub(crate) line: u64,
    /// In characters, counted from 1.
    pub(crate) column: u64,
    /// In bytes, from 0. None where the message is not in one piece in its input.
    pub(crate) offset: Option<u64>,
    /// The message; empty where it could not be held.
    pub(crate) message: &'a [u8],
    /// Where the value begins in the message.
    pub(crate) start: usize,
    /// Where the value ends in the message.
    pub(crate) end: usize,
}

impl<'a> Spot<'a> {
    /// The place of a finding in a message.
    pub(crate) fn new(place: Place, message: &'a [u8], finding: &Finding) -> Self {
        let Range { start, end } = span(message, &finding.pointer);
        let before = message.get(..start).unwrap_or_default();
        let lines = before.split(|byte| *byte == b'\n').count() as u64 - 1;
        let (column, offset) = match before.iter().rposition(|byte| *byte == b'\n') {
            Some(last) => {
                let on_line = before.get(last + 1..).unwrap_or_default();
                let in_one_piece = place.indent == 0;
                let offset = in_one_piece.then_some(place.offset + start as u64);
                (1 + place.indent + characters(on_line), offset)
            }
            None => (place.column + characters(before), Some(place.offset + start as u64)),
        };
        Self { line: place.line + lines, column, offset, message, start, end }
    }
}

/// Where in a message a finding points; where the message is no JSON, the place at which it stops being that.
fn span(message: &[u8], pointer: &str) -> Range<usize> {
    let range = json::locate(message, pointer).unwrap_or_else(|| {
        match json::Parser::default().parse(message) {
            Ok(_) => 0..message.len(),
            Err(error) => error.offset..error.offset.saturating_add(1),
        }
    });
    let end = range.end.min(message.len());
    range.start.min(end)..end
}

/// What was found in one input.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    pub(crate) protocol: Option<Protocol>,
    pub(crate) events: u64,
    pub(crate) errors: u64,
    pub(crate) warnings: u64,
    pub(crate) notes: u64,
    /// How often each rule was broken.
    pub(crate) codes: BTreeMap<&'static str, u64>,
    /// Why the input could not be checked, or not to its end.
    pub(crate) failure: Option<String>,
}

impl Tally {
    pub(crate) fn count(&mut self, severity: Severity, code: &'static str) {
        match severity {
            Severity::Error => self.errors += 1,
            Severity::Warning => self.warnings += 1,
            Severity::Note => self.notes += 1,
        }
        *self.codes.entry(code).or_default() += 1;
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.events += other.events;
        self.errors += other.errors;
        self.warnings += other.warnings;
        self.notes += other.notes;
        for (code, times) in &other.codes {
            *self.codes.entry(code).or_default() += times;
        }
    }

    pub(crate) fn findings(&self) -> u64 {
        self.errors + self.warnings + self.notes
    }
}

/// Writes findings in one format.
pub(crate) trait Report {
    /// A finding.
    fn finding(&mut self, out: &mut dyn Write, found: &Found<'_>) -> io::Result<()>;

    /// An input was read to its end, or could not be.
    fn input(&mut self, out: &mut dyn Write, name: &str, tally: &Tally) -> io::Result<()>;

    /// All inputs were read.
    fn finish(&mut self, out: &mut dyn Write, total: &Tally) -> io::Result<()>;
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
