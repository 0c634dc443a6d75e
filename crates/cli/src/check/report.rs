//! What a report is given, whatever its format: findings one by one, and the sums of each input.
//!
//! A report is written as findings come, so that none has to be held.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::ops::Range;

use banister_events::event::Protocol;
use banister_events::finding::{Finding, Severity};
use banister_events::json;

use super::window::{Around, DATA, NEAR, Place, characters, is_line_end};

/// One finding at its place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found<'a> {
    /// The input's name, as a person typed it.
    pub(crate) name: &'a str,
    pub(crate) severity: Severity,
    pub(crate) finding: &'a Finding,
    /// None where it is the end of the input that is wrong.
    pub(crate) spot: Option<Spot<'a>>,
    /// Whether the input was packed, so that no offset is one in the file.
    pub(crate) packed: bool,
}

/// A message in its input.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) place: Place,
    /// Empty where the message could not be held.
    pub(crate) message: &'a [u8],
    pub(crate) around: &'a Around,
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
    pub(crate) source: Source<'a>,
    /// Where the value begins in the message.
    pub(crate) start: usize,
    /// Where the value ends in the message.
    pub(crate) end: usize,
}

impl<'a> Spot<'a> {
    /// The place of a finding in a message.
    pub(crate) fn new(source: Source<'a>, finding: &Finding) -> Self {
        let Source { place, message, .. } = source;
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
        Self { line: place.line + lines, column, offset, source, start, end }
    }

    /// The line of the input that the value begins on, as far as it is needed, and where the value stands in it.
    pub(crate) fn line(&self) -> (Vec<u8>, Range<usize>) {
        let Source { place, message, around } = self.source;
        let (before, after) = message.split_at_checked(self.start).unwrap_or((message, &[]));
        let mut line = Vec::new();
        match before.iter().rposition(|byte| is_line_end(*byte)) {
            None if before.len() <= NEAR => {
                line.extend_from_slice(&around.before);
                line.extend_from_slice(before);
            }
            Some(end) if before.len() - end <= NEAR => {
                let indent = usize::try_from(place.indent).unwrap_or_default();
                line.extend_from_slice(DATA.get(..indent).unwrap_or_default());
                line.extend_from_slice(before.get(end + 1..).unwrap_or_default());
            }
            _ => line.extend_from_slice(before.get(before.len() - NEAR..).unwrap_or_default()),
        }
        let start = line.len();
        let near = after.get(..NEAR).unwrap_or(after);
        let end = near.iter().position(|byte| is_line_end(*byte));
        line.extend_from_slice(near.get(..end.unwrap_or(near.len())).unwrap_or_default());
        if end.is_none() && near.len() == after.len() {
            line.extend_from_slice(&around.after);
        }
        (line, start..start + (self.end - self.start))
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
