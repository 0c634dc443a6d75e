//! The messages of one input on their way to the checker, and its findings on their way to the report.
//!
//! A recording of one message is one event and is not judged by the order of events, so the first message waits until
//! a second one comes. So do messages that come before one that tells the protocol. AG-UI frames, and what an endpoint
//! sends, are a stream however few they are.

use std::io::{self, Write};

use banister_events::check::Checker;
use banister_events::event::Protocol;
use banister_events::finding::Finding;
use banister_events::frame::{self, sse::Quirks};
use banister_events::json;
use banister_events::limits::MESSAGE_BYTES;

use super::Settings;
use super::exchange::Exchange;
use super::framing::{Label, Labelled};
use super::progress::Progress;
use super::report::{Found, Report, Source, Spot, Tally};
use super::window::{Around, Measure, Place, Window};

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
    /// Whether the input that is read is packed.
    pub(crate) packed: bool,
}

impl Sink<'_> {
    fn found(
        &mut self,
        tally: &mut Tally,
        name: &str,
        source: Option<Source<'_>>,
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
            let spot = source.map(|source| Spot::new(source, finding));
            let packed = self.packed;
            self.report.finding(self.out, &Found { name, severity, finding, spot, packed })?;
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
pub(crate) struct Held {
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) around: Around,
    pub(crate) label: Label,
    pub(crate) bytes: Result<Vec<u8>, frame::Error>,
}

impl Held {
    fn is_event(&self, protocol: Protocol) -> bool {
        self.bytes.as_ref().map_or(true, |bytes| self.label.is_event(protocol, bytes))
    }

    fn is_message(&self) -> bool {
        self.bytes.as_ref().err().is_none_or(|error| error.is_message())
    }
}

/// The messages of one input.
pub(crate) struct Stream<'s, 'a> {
    pub(crate) sink: &'s mut Sink<'a>,
    pub(crate) tally: Tally,
    checker: Option<(Protocol, Checker)>,
    held: Vec<Held>,
    held_bytes: usize,
    /// What the frames of the input have that stricter parsers do not read.
    pub(crate) quirks: Quirks,
    /// Whether one message is a stream.
    pub(crate) ordered: bool,
    /// What was asked, where the stream is the answer of an AG-UI agent.
    pub(crate) exchange: Option<Exchange>,
    /// What is wrong with the end of the input.
    pub(crate) last: Option<Finding>,
    /// Whether the stream began before we saw it.
    joined: bool,
    /// More came than could be held before a message told the protocol: what came cannot be checked any more.
    given_up: bool,
}

/// Why an input was not checked although it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unchecked {
    /// What is there instead, if anything.
    NoEvents(Option<String>),
    NoProtocol,
}

impl<'s, 'a> Stream<'s, 'a> {
    pub(crate) fn new(sink: &'s mut Sink<'a>, joined: bool) -> Self {
        let protocol = sink.settings.protocol;
        let tally = Tally { protocol, ..Tally::default() };
        let (checker, held, held_bytes, given_up) = (None, Vec::new(), 0, false);
        let quirks = Quirks::default();
        let (ordered, exchange, last) = (false, None, None);
        let mut stream = Self {
            sink,
            tally,
            checker,
            held,
            held_bytes,
            quirks,
            ordered,
            exchange,
            last,
            joined,
            given_up,
        };
        if let Some(protocol) = protocol {
            stream.begin(protocol);
        }
        stream
    }

    /// The protocol is known now.
    fn begin(&mut self, protocol: Protocol) {
        let checker = self.sink.settings.checker(protocol);
        let checker = if self.joined { checker.live() } else { checker };
        self.tally.protocol = Some(protocol);
        self.checker = Some((protocol, checker));
        self.held.retain(|held| held.is_event(protocol));
        self.tally.events = self.held.iter().filter(|held| held.is_message()).count() as u64;
    }

    /// Whether one message alone is judged by the order of events.
    fn is_ordered(&self) -> bool {
        let agui = self.checker.as_ref().is_some_and(|(protocol, _)| *protocol == Protocol::Agui);
        self.ordered && agui
    }

    /// Whether the run that was asked for has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.exchange.as_ref().is_some_and(Exchange::has_ended)
    }

    /// Takes what is wrong with an answer before its first event.
    pub(crate) fn answered(&mut self, name: &str, findings: &[Finding]) -> io::Result<()> {
        self.at(name, Place::FIRST, findings)
    }

    /// Tells what is wrong at a place where no message is.
    fn at(&mut self, name: &str, place: Place, findings: &[Finding]) -> io::Result<()> {
        let source = Source { place, message: &[], around: &Around::default() };
        self.sink.found(&mut self.tally, name, Some(source), findings)
    }

    /// Takes the next message.
    pub(crate) fn message(
        &mut self,
        name: &str,
        ((at, bytes), label): Labelled<'_>,
        (window, measure): (&Window, Measure),
    ) -> io::Result<()> {
        self.ordered |= measure == Measure::Sse;
        let around = || window.around(at, bytes.map_or(0, <[u8]>::len), measure);
        if self.tally.events > 0
            && self.held.is_empty()
            && let Some((protocol, checker)) = &mut self.checker
        {
            let findings = match bytes {
                Ok(bytes) if !label.is_event(*protocol, bytes) => return Ok(()),
                Ok(bytes) => judged(checker, &mut self.exchange, bytes),
                Err(error) => vec![checker.unframed(error)],
            };
            self.tally.events += u64::from(bytes.err().is_none_or(frame::Error::is_message));
            if findings.is_empty() {
                return Ok(());
            }
            let (place, around) = (window.place(at, measure), around());
            let source = Source { place, message: bytes.unwrap_or_default(), around: &around };
            return self.sink.found(&mut self.tally, name, Some(source), &findings);
        }
        self.hold(Held {
            name: name.to_owned(),
            place: window.place(at, measure),
            around: around(),
            label,
            bytes: bytes.map(<[u8]>::to_vec),
        })
    }

    /// Takes a message that may have to wait.
    pub(crate) fn hold(&mut self, held: Held) -> io::Result<()> {
        let told = self.checker.as_ref().map(|(protocol, _)| *protocol);
        if told.is_some_and(|protocol| !held.is_event(protocol)) {
            return Ok(());
        }
        let tells = if told.is_none() && !self.given_up { tells(&held) } else { None };
        let size = held.bytes.as_ref().map_or(0, Vec::len);
        let known = told.is_some() || tells.is_some();
        self.tally.events += u64::from(held.is_message());
        if known || self.held.len() < PATIENCE && self.held_bytes + size <= 2 * MESSAGE_BYTES {
            self.held_bytes += size;
            self.held.push(held);
        } else {
            self.given_up = true;
        }
        if let Some(protocol) = tells {
            self.begin(protocol);
        }
        if known && (self.is_ordered() || self.tally.events > 1 || self.held.len() > PATIENCE) {
            return self.release(false);
        }
        Ok(())
    }

    /// Checks what waits; a message that is `alone` is not judged by order.
    fn release(&mut self, alone: bool) -> io::Result<()> {
        let Some((_, checker)) = &mut self.checker else {
            return Ok(());
        };
        for Held { name, place, around, bytes, .. } in std::mem::take(&mut self.held) {
            let findings = match &bytes {
                Ok(bytes) if alone => checker.alone(bytes),
                Ok(bytes) => judged(checker, &mut self.exchange, bytes),
                Err(error) => vec![checker.unframed(*error)],
            };
            let message = bytes.as_deref().unwrap_or_default();
            let source = Source { place, message, around: &around };
            self.sink.found(&mut self.tally, &name, Some(source), &findings)?;
        }
        Ok(())
    }

    /// Ends the stream. `whole` says whether its end is the producer's own: one that we cut off owes nothing.
    pub(crate) fn finish(
        mut self,
        name: &str,
        whole: bool,
    ) -> io::Result<(Tally, Option<Unchecked>)> {
        let stream = self.is_ordered() || self.tally.events > 1;
        self.release(!stream)?;
        let Some((_, checker)) = &mut self.checker else {
            let unchecked = if self.held.iter().any(looks_like_event) {
                Unchecked::NoProtocol
            } else {
                Unchecked::NoEvents(self.held.first().map(instead))
            };
            return Ok((self.tally, Some(unchecked)));
        };
        let frames: Vec<_> = each_quirk(self.quirks)
            .filter_map(|(place, quirk)| Some((place?, checker.frames(&quirk))))
            .collect();
        let end = if whole && stream { checker.finish() } else { Vec::new() };
        for (at, findings) in &frames {
            let place = Place { line: at.line, column: 1, offset: at.offset, indent: 0 };
            self.at(name, place, findings)?;
        }
        if self.tally.events == 0 {
            let instead = frames.into_iter().flat_map(|(_, findings)| findings).next();
            let instead = instead.map(|finding| finding.message);
            return Ok((self.tally, Some(Unchecked::NoEvents(instead))));
        }
        self.sink.found(&mut self.tally, name, None, &end)?;
        self.sink.found(&mut self.tally, name, None, self.last.as_slice())?;
        Ok((self.tally, None))
    }
}

/// Everything wrong with the next message, as an event and as an answer.
fn judged(checker: &mut Checker, exchange: &mut Option<Exchange>, bytes: &[u8]) -> Vec<Finding> {
    let mut findings = checker.message(bytes);
    findings.extend(exchange.as_mut().and_then(|exchange| exchange.see(bytes)));
    findings
}

/// The quirks one by one, with their places.
fn each_quirk(all: Quirks) -> impl Iterator<Item = (Option<frame::Place>, Quirks)> {
    let Quirks { carriage_return, mark, bare, other_field } = all;
    let none = Quirks::default();
    [
        (carriage_return, Quirks { carriage_return, ..none }),
        (bare, Quirks { bare, ..none }),
        (mark, Quirks { mark, ..none }),
        (other_field, Quirks { other_field, ..none }),
    ]
    .into_iter()
}

/// The protocol that a message shows.
fn tells(held: &Held) -> Option<Protocol> {
    let bytes = held.bytes.as_deref().ok()?;
    let protocol = Protocol::sniff_bytes(bytes)?;
    // Under a name of its own may stand anything; that AEP was meant has to be said.
    let version = b"\"aep_version\"";
    let said = protocol != Protocol::Aep
        || held.label == Label::Plain
        || bytes.windows(version.len()).any(|window| window == version);
    said.then_some(protocol)
}

fn looks_like_event(held: &Held) -> bool {
    held.bytes.as_ref().map_or(true, |bytes| bytes.first() == Some(&b'{'))
}

/// What stands in the place of the first event.
fn instead(held: &Held) -> String {
    let line = held.place.line;
    let bytes = held.bytes.as_deref().unwrap_or_default();
    if bytes.contains(&0) || std::str::from_utf8(bytes).is_err() {
        format!("line {line} is binary data, not JSON")
    } else if json::Parser::default().parse(bytes).is_ok() {
        format!("line {line} is not a JSON object")
    } else {
        format!("line {line} is not JSON")
    }
}
