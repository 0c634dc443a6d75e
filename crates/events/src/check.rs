//! One door to the rules of every protocol: a [`Checker`] takes a stream message by message.
//!
//! A checker never fails: what cannot be read is a finding too. Its memory is bounded whatever the stream does, and
//! the cost of a message does not depend on how many came before. It changes nothing and decides nothing: what to do
//! about a finding is up to the caller.

use crate::aaep::check::seen::Seen;
use crate::agui::enforce::Boundary;
use crate::event::Protocol;
use crate::finding::{Finding, Rule};
use crate::json::{Document, Nodes, Parser};
use crate::message::{Message, Unreadable};
use crate::{aaep, aep, agui, frame, limits};
use shape::Known;

pub(crate) mod recent;
pub(crate) mod shape;
pub(crate) mod time;

/// Declares rules and the list of them. Each line: name = code, severity, `opt_in` if only strict checking applies it,
/// who it binds, what it demands, the remedy.
macro_rules! rules {
    (@opt_in) => { false };
    (@opt_in opt_in) => { true };
    ($($name:ident = $code:literal $severity:ident $(($opt_in:ident))? $binds:ident $text:literal, $remedy:literal;)*) => {
        $(pub(crate) static $name: $crate::finding::Rule = $crate::finding::Rule {
            code: $code,
            severity: $crate::finding::Severity::$severity,
            opt_in: $crate::check::rules!(@opt_in $($opt_in)?),
            binds: $crate::finding::Binds::$binds,
            text: $text,
            remedy: $remedy,
        };)*
        /// Every rule enforced here.
        pub(crate) const RULES: &[&$crate::finding::Rule] = &[$(&$name),*];
    };
}
pub(crate) use rules;

/// Everything wrong with one message, seen alone.
///
/// ```
/// use banister_events::check;
/// use banister_events::event::Protocol;
/// let findings = check::alone(Protocol::Aep, br#"{"aep_version": "0.1", "id": "evt_1"}"#);
/// assert!(findings.iter().any(|finding| finding.rule.code == "AEP-REQ-07"));
/// ```
pub fn alone(protocol: Protocol, bytes: &[u8]) -> Vec<Finding> {
    match parse(protocol, bytes, &mut Parser::default()) {
        Ok(document) => event(protocol, &document, false, &mut Known::default()),
        Err(finding) => vec![finding],
    }
}

/// [`alone`], for a message that was parsed already.
pub fn message(protocol: Protocol, message: &Message) -> Vec<Finding> {
    document(protocol, &message.document())
}

/// [`alone`], for a message that was built here and has no bytes yet.
pub fn value(protocol: Protocol, message: &serde_json::Value) -> Vec<Finding> {
    let (text, nodes) = Nodes::compose(message);
    document(protocol, &nodes.document(&text))
}

fn document(protocol: Protocol, message: &Document<'_>) -> Vec<Finding> {
    match refused(protocol, message) {
        None => event(protocol, message, false, &mut Known::default()),
        Some(finding) => vec![finding],
    }
}

fn event(
    protocol: Protocol,
    message: &Document<'_>,
    strict: bool,
    known: &mut Known,
) -> Vec<Finding> {
    match protocol {
        Protocol::Aaep => {
            aaep::check::event(message, &Seen::new(message.root(), strict), strict, known)
        }
        Protocol::Agui => {
            let mut findings = Vec::new();
            agui::check::event(message, &mut Boundary::new(strict), known, &mut findings);
            findings
        }
        Protocol::Aep => aep::check::event(message, strict, known),
    }
}

/// Parses one message; what cannot be parsed is a finding.
fn parse<'a>(
    protocol: Protocol,
    bytes: &'a [u8],
    parser: &'a mut Parser,
) -> Result<Document<'a>, Finding> {
    if bytes.len() > limits::MESSAGE_BYTES {
        return Err(unframed(protocol, frame::Error::TooLarge { limit: limits::MESSAGE_BYTES }));
    }
    parser
        .parse(bytes)
        .map_err(|error| json_rule(protocol).at("", format!("the message is not JSON: {error}")))
}

/// The finding for a document that no door would have let in.
fn refused(protocol: Protocol, message: &Document<'_>) -> Option<Finding> {
    let error = if message.bytes().len() > limits::MESSAGE_BYTES {
        Unreadable::TooLarge(frame::Error::TooLarge { limit: limits::MESSAGE_BYTES })
    } else {
        Unreadable::Json(message.too_deep()?)
    };
    Some(unreadable(protocol, &error))
}

/// The finding for bytes that are no message.
pub fn unreadable(protocol: Protocol, error: &Unreadable) -> Finding {
    json_rule(protocol).at("", error.to_string())
}

fn unframed(protocol: Protocol, error: frame::Error) -> Finding {
    json_rule(protocol).at("", error.to_string())
}

fn json_rule(protocol: Protocol) -> &'static Rule {
    match protocol {
        Protocol::Aaep => &aaep::check::JSON,
        Protocol::Agui => &agui::check::JSON,
        Protocol::Aep => &aep::check::JSON,
    }
}

/// Checks a stream of one protocol, message by message.
#[derive(Debug, Clone)]
pub struct Checker {
    protocol: Protocol,
    order: Order,
    parser: Parser,
    known: Known,
    strict: bool,
}

#[derive(Debug, Clone)]
enum Order {
    Aaep(Box<aaep::sequence::Sequence>),
    Agui(Box<agui::follow::Verifier>),
    Aep(Box<aep::sequence::Sequence>),
}

impl Checker {
    /// A checker at the beginning of a stream.
    pub fn new(protocol: Protocol) -> Self {
        let order = match protocol {
            Protocol::Aaep => Order::Aaep(Box::default()),
            Protocol::Agui => Order::Agui(Box::default()),
            Protocol::Aep => Order::Aep(Box::default()),
        };
        Self { protocol, order, parser: Parser::default(), known: Known::default(), strict: false }
    }

    /// The same, with the rules that apply only on request.
    #[must_use]
    pub fn strict(mut self) -> Self {
        self.strict = true;
        match &mut self.order {
            Order::Aaep(sequence) => sequence.strict = true,
            Order::Agui(verifier) => verifier.be_strict(),
            Order::Aep(_) => {}
        }
        self
    }

    /// The same, for what one client reads live. An AAEP stream is joined while it runs: what came before excuses what
    /// is missing. An AG-UI agent has no two runs at once, of whatever threads.
    #[must_use]
    pub fn live(mut self) -> Self {
        match &mut self.order {
            Order::Aaep(sequence) => sequence.joined = true,
            Order::Agui(verifier) => verifier.be_single(),
            Order::Aep(_) => {}
        }
        self
    }

    /// The finding for a message that could not be cut out of the stream. What it may have told is not missed later.
    pub fn unframed(&mut self, error: frame::Error) -> Finding {
        if error.is_message() {
            self.lose();
        }
        unframed(self.protocol, error)
    }

    /// Everything wrong with the frames that the stream's messages came in, if these were server-sent events.
    ///
    /// ```
    /// use banister_events::check::Checker;
    /// use banister_events::event::Protocol;
    /// use banister_events::frame::sse::Parser;
    /// let mut parser = Parser::new(1024);
    /// parser.push(b"data: {}\r\n\r\n")?;
    /// let findings = Checker::new(Protocol::Agui).frames(&parser.quirks());
    /// assert_eq!(findings[0].rule.code, "AGUI-SSE-01");
    /// # Ok::<(), banister_events::frame::Error>(())
    /// ```
    pub fn frames(&self, quirks: &frame::sse::Quirks) -> Vec<Finding> {
        match self.protocol {
            Protocol::Agui => agui::check::frames(quirks, self.strict),
            // Their readers take every line end, and fields of frames have a meaning.
            Protocol::Aaep | Protocol::Aep => Vec::new(),
        }
    }

    fn lose(&mut self) {
        match &mut self.order {
            Order::Aaep(sequence) => sequence.lose(),
            Order::Agui(verifier) => verifier.lose(),
            Order::Aep(_) => {}
        }
    }

    /// Everything wrong with a message seen alone, which is not part of the stream.
    pub fn alone(&mut self, bytes: &[u8]) -> Vec<Finding> {
        match parse(self.protocol, bytes, &mut self.parser) {
            Ok(document) => event(self.protocol, &document, self.strict, &mut self.known),
            Err(finding) => vec![finding],
        }
    }

    /// Everything wrong with the next message: seen alone, and after those before it.
    ///
    /// ```
    /// use banister_events::check::Checker;
    /// use banister_events::event::Protocol;
    /// let findings = Checker::new(Protocol::Aep).message(b"{\"aep_version\": ");
    /// assert_eq!(findings[0].rule.code, "AEP-REQ-01");
    /// ```
    pub fn message(&mut self, bytes: &[u8]) -> Vec<Finding> {
        let mut parser = std::mem::take(&mut self.parser);
        let findings = match parse(self.protocol, bytes, &mut parser) {
            Ok(document) => self.next(&document),
            Err(finding) => {
                self.lose();
                vec![finding]
            }
        };
        self.parser = parser;
        findings
    }

    /// [`Checker::message`], for a message that was parsed already.
    pub fn parsed(&mut self, message: &Message) -> Vec<Finding> {
        self.document(&message.document())
    }

    /// The finding for bytes that are no message. What they may have told is not missed later.
    pub fn unreadable(&mut self, error: &Unreadable) -> Finding {
        self.lose();
        unreadable(self.protocol, error)
    }

    fn document(&mut self, message: &Document<'_>) -> Vec<Finding> {
        let Some(finding) = refused(self.protocol, message) else { return self.next(message) };
        self.lose();
        vec![finding]
    }

    fn next(&mut self, document: &Document<'_>) -> Vec<Finding> {
        match &mut self.order {
            Order::Aaep(sequence) => {
                // One look at the fields serves both.
                let seen = Seen::new(document.root(), self.strict);
                let mut findings =
                    aaep::check::event(document, &seen, self.strict, &mut self.known);
                sequence.step(document.root(), &seen, &mut findings);
                findings
            }
            Order::Agui(verifier) => {
                let mut findings = Vec::new();
                verifier.step(document, &mut self.known, &mut findings, &mut |_| {});
                findings
            }
            Order::Aep(sequence) => {
                let mut findings = aep::check::event(document, self.strict, &mut self.known);
                sequence.step(document, &mut findings);
                findings
            }
        }
    }

    /// [`Checker::message`], for a message that was built here and has no bytes yet.
    pub fn value(&mut self, message: &serde_json::Value) -> Vec<Finding> {
        let (text, nodes) = Nodes::compose(message);
        self.document(&nodes.document(&text))
    }

    /// Everything that is wrong because the stream ends here.
    pub fn finish(&mut self) -> Vec<Finding> {
        match &mut self.order {
            Order::Aaep(sequence) => sequence.finish(),
            Order::Agui(verifier) => verifier.finish(),
            Order::Aep(sequence) => sequence.finish(),
        }
    }
}

/// A value as the document that its bytes are.
#[cfg(test)]
pub(crate) fn with_document<R>(
    value: &serde_json::Value,
    see: impl FnOnce(&Document<'_>) -> R,
) -> R {
    let bytes = value.to_string();
    see(&Parser::default().parse(bytes.as_bytes()).unwrap())
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
