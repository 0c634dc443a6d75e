//! One door to the rules of every protocol: a [`Checker`] takes a stream message by message.
//!
//! A checker never fails: what cannot be read is a finding too. Its memory is bounded whatever the stream does, and
//! the cost of a message does not depend on how many came before. It changes nothing and decides nothing: what to do
//! about a finding is up to the caller.

use serde_json::Value;

use crate::event::Protocol;
use crate::finding::{Finding, Rule};
use crate::{aaep, aep, agui, frame, limits};

pub(crate) mod recent;
pub(crate) mod shape;
pub(crate) mod time;

/// Declares rules and the list of them. Each line: name = code, severity, who it binds, what it demands, the remedy.
macro_rules! rules {
    ($($name:ident = $code:literal $severity:ident $binds:ident $text:literal, $remedy:literal;)*) => {
        $(pub(crate) static $name: $crate::finding::Rule = $crate::finding::Rule {
            code: $code,
            severity: $crate::finding::Severity::$severity,
            binds: $crate::finding::Binds::$binds,
            text: $text,
            remedy: $remedy,
        };)*
        /// Every rule enforced here.
        pub const RULES: &[&$crate::finding::Rule] = &[$(&$name),*];
    };
}
pub(crate) use rules;

/// Everything wrong with one message, seen alone.
pub fn event(protocol: Protocol, message: &Value) -> Vec<Finding> {
    match protocol {
        Protocol::Aaep => aaep::check::event(message),
        Protocol::Agui => agui::check::event(message),
        Protocol::Aep => aep::check::event(message),
    }
}

/// Parses one message; what cannot be parsed is a finding.
pub fn parse(protocol: Protocol, bytes: &[u8]) -> Result<Value, Finding> {
    if bytes.len() > limits::MESSAGE_BYTES {
        return Err(unframed(protocol, frame::Error::TooLarge { limit: limits::MESSAGE_BYTES }));
    }
    serde_json::from_slice(bytes)
        .map_err(|error| json_rule(protocol).at("", format!("the message is not JSON: {error}")))
}

/// The finding for a message that could not even be cut out of the stream.
pub fn unframed(protocol: Protocol, error: frame::Error) -> Finding {
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
}

#[derive(Debug, Clone)]
enum Order {
    Aaep(aaep::sequence::Sequence),
    Agui(agui::sequence::Sequence),
    Aep(aep::sequence::Sequence),
}

impl Checker {
    /// A checker at the beginning of a stream.
    pub fn new(protocol: Protocol) -> Self {
        let order = match protocol {
            Protocol::Aaep => Order::Aaep(aaep::sequence::Sequence::default()),
            Protocol::Agui => Order::Agui(agui::sequence::Sequence::default()),
            Protocol::Aep => Order::Aep(aep::sequence::Sequence::default()),
        };
        Self { protocol, order }
    }

    /// Everything wrong with the next message, from its bytes.
    ///
    /// ```
    /// use banister_events::check::Checker;
    /// use banister_events::event::Protocol;
    /// let findings = Checker::new(Protocol::Aep).message(b"{\"aep_version\": ");
    /// assert_eq!(findings[0].rule.code, "AEP-REQ-01");
    /// ```
    pub fn message(&mut self, bytes: &[u8]) -> Vec<Finding> {
        match parse(self.protocol, bytes) {
            Ok(message) => self.value(&message),
            Err(finding) => vec![finding],
        }
    }

    /// Everything wrong with the next message: seen alone, and after those before it.
    pub fn value(&mut self, message: &Value) -> Vec<Finding> {
        let mut findings = event(self.protocol, message);
        findings.append(&mut self.order(message));
        findings
    }

    /// What is wrong with the next message only because of those before it. Use either this or
    /// [`Checker::value`] for a message, not both.
    pub fn order(&mut self, message: &Value) -> Vec<Finding> {
        match &mut self.order {
            Order::Aaep(sequence) => sequence.step(message),
            Order::Agui(sequence) => sequence.step(message),
            Order::Aep(sequence) => sequence.step(message),
        }
    }

    /// Everything that is wrong because the stream ends here.
    pub fn finish(&mut self) -> Vec<Finding> {
        match &mut self.order {
            Order::Aaep(sequence) => sequence.finish(),
            Order::Agui(sequence) => sequence.finish(),
            Order::Aep(sequence) => sequence.finish(),
        }
    }
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
