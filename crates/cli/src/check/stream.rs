//! The messages of one input on their way to the checker, and its findings on their way to the report.
//!
//! A recording of one message is one event and is not judged by the order of events, so the first message waits until
//! a second one comes. So do messages that come before one that tells the protocol.

use std::io::{self, Write};

use banister_events::check::{self, Checker};
use banister_events::event::Protocol;
use banister_events::finding::Finding;
use banister_events::frame::{self, Framed};
use banister_events::limits::MESSAGE_BYTES;

use super::Settings;
use super::progress::Progress;
use super::report::{Found, Report, Spot, Tally};
use super::window::{Measure, Place, Window};

/// How many messages may pass before one has to tell its protocol.
const PATIENCE: usize = 16;

/// Where findings go.
pub(crate) struct Sink<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) out: &'a mut dyn Write,
    pub(crate) err: &'a mut dyn Write,
    pub(crate) report: Box<dyn Report>,
    pub(crate) progress: Progress,
    pub(crate) printed: u64,
    /// Whether something was written and not flushed.
    pub(crate) fresh: bool,
}

impl Sink<'_> {
    fn found(
        &mut self,
        tally: &mut Tally,
        name: &str,
        message: Option<(Place, &[u8])>,
        findings: &[Finding],
    ) -> io::Result<()> {
        for finding in findings {
            let Some(severity) = self.settings.severity(finding) else {
                continue;
            };
            tally.count(severity, finding.rule.code);
            if self.printed >= self.settings.max {
                continue;
            }
            self.printed += 1;
            self.fresh = true;
            self.progress.erase(self.err)?;
            let spot = message.map(|(place, bytes)| Spot::new(place, bytes, finding));
            self.report.finding(self.out, &Found { name, severity, finding, spot })?;
        }
        Ok(())
    }

    /// Shows what was found so far, and how far the check is.
    pub(crate) fn refresh(&mut self, tally: &Tally, bytes: u64) -> io::Result<()> {
        if std::mem::take(&mut self.fresh) {
            self.out.flush()?;
        }
        self.progress.draw(self.err, bytes, tally.events, tally.findings())
    }
}

/// A message that waits.
struct Held {
    name: String,
    place: Place,
    bytes: Result<Vec<u8>, frame::Error>,
}

/// The messages of one input.
pub(crate) struct Stream<'s, 'a> {
    pub(crate) sink: &'s mut Sink<'a>,
    pub(crate) tally: Tally,
    checker: Option<(Protocol, Checker)>,
    held: Vec<Held>,
    held_bytes: usize,
    /// More came than could be held before a message told the protocol: what came cannot be checked any more.
    given_up: bool,
}

/// Why an input was not checked although it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unchecked {
    NoEvents,
    NoProtocol,
}

impl<'s, 'a> Stream<'s, 'a> {
    pub(crate) fn new(sink: &'s mut Sink<'a>) -> Self {
        let protocol = sink.settings.protocol;
        let checker = protocol.map(|protocol| (protocol, sink.settings.checker(protocol)));
        let tally = Tally { protocol, ..Tally::default() };
        Self { sink, tally, checker, held: Vec::new(), held_bytes: 0, given_up: false }
    }

    /// Takes the next message.
    pub(crate) fn message(
        &mut self,
        name: &str,
        (at, bytes): Framed<'_, [u8]>,
        (window, measure): (&Window, Measure),
    ) -> io::Result<()> {
        self.tally.events += 1;
        if self.tally.events > 1
            && self.held.is_empty()
            && let Some((protocol, checker)) = &mut self.checker
        {
            let findings = match bytes {
                Ok(bytes) => checker.message(bytes),
                Err(error) => vec![check::unframed(*protocol, error)],
            };
            if findings.is_empty() {
                return Ok(());
            }
            let message = Some((window.place(at, measure), bytes.unwrap_or_default()));
            return self.sink.found(&mut self.tally, name, message, &findings);
        }
        self.hold(name, window.place(at, measure), bytes)
    }

    /// Takes a message that may have to wait.
    pub(crate) fn hold(
        &mut self,
        name: &str,
        place: Place,
        bytes: Result<&[u8], frame::Error>,
    ) -> io::Result<()> {
        if self.checker.is_none()
            && !self.given_up
            && let Some(protocol) = bytes.ok().and_then(Protocol::sniff_bytes)
        {
            self.tally.protocol = Some(protocol);
            self.checker = Some((protocol, self.sink.settings.checker(protocol)));
        }
        let size = bytes.map_or(0, <[u8]>::len);
        let known = self.checker.is_some();
        if known || self.held.len() < PATIENCE && self.held_bytes + size <= 2 * MESSAGE_BYTES {
            self.held_bytes += size;
            self.held.push(Held { name: name.to_owned(), place, bytes: bytes.map(<[u8]>::to_vec) });
        } else {
            self.given_up = true;
        }
        if known && self.tally.events > 1 {
            return self.release();
        }
        Ok(())
    }

    fn release(&mut self) -> io::Result<()> {
        let Some((protocol, checker)) = &mut self.checker else {
            return Ok(());
        };
        let alone = self.tally.events == 1;
        for Held { name, place, bytes } in std::mem::take(&mut self.held) {
            let findings = match &bytes {
                Ok(bytes) if alone => checker.alone(bytes),
                Ok(bytes) => checker.message(bytes),
                Err(error) => vec![check::unframed(*protocol, *error)],
            };
            let message = Some((place, bytes.as_deref().unwrap_or_default()));
            self.sink.found(&mut self.tally, &name, message, &findings)?;
        }
        Ok(())
    }

    /// Ends the stream. `whole` says whether its end is the producer's own: one that we cut off owes nothing.
    pub(crate) fn finish(
        mut self,
        name: &str,
        whole: bool,
    ) -> io::Result<(Tally, Option<Unchecked>)> {
        self.release()?;
        let Some((_, checker)) = &mut self.checker else {
            let unchecked = if self.held.iter().any(looks_like_event) {
                Unchecked::NoProtocol
            } else {
                Unchecked::NoEvents
            };
            return Ok((self.tally, Some(unchecked)));
        };
        if self.tally.events == 0 {
            return Ok((self.tally, Some(Unchecked::NoEvents)));
        }
        if whole && self.tally.events > 1 {
            let findings = checker.finish();
            self.sink.found(&mut self.tally, name, None, &findings)?;
        }
        Ok((self.tally, None))
    }
}

fn looks_like_event(held: &Held) -> bool {
    held.bytes.as_ref().map_or(true, |bytes| bytes.first() == Some(&b'{'))
}
