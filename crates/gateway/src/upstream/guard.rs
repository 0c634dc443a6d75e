//! What is done about events that break the protocol: repaired, refused, or only told.

use banister_events::Message;
use banister_events::agui::rejoin::{RunEdge, run_error};
use banister_events::agui::repair::Repairer;
use banister_events::check::Checker;
use banister_events::event::Protocol;
use banister_events::finding::{Finding, Severity};
use banister_events::json::Error;
use banister_events::message::Unreadable;
use bytes::Bytes;

use super::UpstreamPolicy;
use super::call::{Framed, Sent};

/// How many findings are kept of one message.
const FINDINGS: usize = 32;

/// What became of one message.
#[derive(Debug, Default)]
pub(super) struct Passed {
    /// The message as it came, where something else goes on instead of it.
    pub(super) instead: Option<Bytes>,
    /// What is wrong with it.
    pub(super) findings: Vec<Finding>,
    /// What goes on, each with what is wrong with it all the same.
    pub(super) events: Vec<(Sent, Vec<Finding>)>,
    /// Whether the run ends here.
    pub(super) ends: bool,
}

/// Judges one stream.
#[derive(Debug)]
pub(super) struct Guard {
    policy: UpstreamPolicy,
    checker: Checker,
    repairer: Repairer,
    /// Whether the run's end came.
    ended: bool,
}

impl Guard {
    pub(super) fn new(policy: UpstreamPolicy) -> Self {
        let (checker, repairer) = (Checker::new(Protocol::Agui), Repairer::default());
        Self { policy, checker, repairer, ended: false }
    }

    /// Whether the run's end came; more may follow it.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// What becomes of the next message.
    pub(super) fn message(&mut self, framed: Framed) -> Passed {
        let sent = match framed {
            Ok(sent) => sent,
            Err(error) if self.policy == UpstreamPolicy::Repair => {
                self.repairer.unframed(error);
                return self.repaired(Some(Bytes::new()), Vec::new());
            }
            Err(error) => {
                let finding = self.checker.unframed(error);
                return self.judged(Sent::Bytes(Bytes::new()), vec![finding]);
            }
        };
        let parsed = match sent {
            Sent::Event(message) => Ok(message),
            Sent::Bytes(bytes) => {
                Message::recorded(Protocol::Agui, bytes.clone()).map_err(|error| (bytes, error))
            }
        };
        match parsed {
            Ok(message) => self.event(message),
            Err((bytes, error)) => self.broken(bytes, error),
        }
    }

    fn event(&mut self, message: Message) -> Passed {
        self.ended = match RunEdge::of(&message) {
            Some(edge) => edge == RunEdge::Ended,
            None => self.ended,
        };
        if self.policy == UpstreamPolicy::Repair {
            let events = self.repairer.message(&message);
            return self.repaired(Some(message.bytes().clone()), events);
        }
        let findings = self.checker.parsed(&message);
        self.judged(Sent::Event(message), findings)
    }

    /// What becomes of bytes that are no JSON.
    fn broken(&mut self, bytes: Bytes, error: Error) -> Passed {
        if self.policy == UpstreamPolicy::Repair {
            let events = self.repairer.broken(bytes.clone(), error.reason);
            return self.repaired(Some(bytes), events);
        }
        let finding = self.checker.unreadable(&Unreadable::Json(error));
        self.judged(Sent::Bytes(bytes), vec![finding])
    }

    /// What is missing at the end of the stream. `why` is told where the run has no end of its own.
    pub(super) fn finish(&mut self, why: Option<(&str, &str)>) -> Passed {
        let why = why.filter(|_| !self.ended);
        if self.policy == UpstreamPolicy::Repair {
            let mut events = Vec::new();
            if let Some((code, message)) = why {
                events.extend(self.repairer.message(&run_error(code, message)));
            }
            events.extend(self.repairer.finish());
            let mut passed = self.repaired(None, events);
            if !self.ended && passed.events.is_empty() {
                // Nothing came at all, which is no run either.
                let end = Sent::Event(run_error("truncated", "the agent sent nothing"));
                passed.events.push((end, Vec::new()));
            }
            return Passed { ends: true, ..passed };
        }
        let (code, message) = why.unwrap_or(("truncated", "the stream ended before the run did"));
        let missing = (!self.ended).then(|| (Sent::Event(run_error(code, message)), Vec::new()));
        let events: Vec<_> = missing.into_iter().collect();
        Passed { ends: true, findings: kept(self.checker.finish()), events, ..Passed::default() }
    }

    fn repaired(&mut self, came: Option<Bytes>, events: Vec<Message>) -> Passed {
        let changes = self.repairer.changes();
        let instead = came.filter(|_| !changes.is_empty());
        let findings = changes.into_iter().map(|change| change.rule.at("", change.what));
        let findings = kept(findings.collect());
        let judge = |event: Message| {
            let findings = kept(self.checker.parsed(&event));
            (Sent::Event(event), findings)
        };
        Passed { instead, findings, events: events.into_iter().map(judge).collect(), ends: false }
    }

    fn judged(&mut self, sent: Sent, findings: Vec<Finding>) -> Passed {
        let broken = findings.iter().find(|finding| finding.rule.severity == Severity::Error);
        let broken = broken.filter(|_| self.policy == UpstreamPolicy::Strict);
        if let Some(Finding { rule, message, .. }) = broken {
            let reason = format!("the agent broke the protocol: {message} ({})", rule.code);
            self.ended = true;
            return Passed {
                instead: Some(sent.bytes().clone()),
                findings: kept(findings),
                events: vec![(Sent::Event(run_error("upstream-protocol", &reason)), Vec::new())],
                ends: true,
            };
        }
        let findings = kept(findings);
        if sent.bytes().is_empty() {
            return Passed { instead: Some(Bytes::new()), findings, ..Passed::default() };
        }
        Passed { events: vec![(sent, findings)], ..Passed::default() }
    }
}

fn kept(mut findings: Vec<Finding>) -> Vec<Finding> {
    findings.retain(|finding| finding.rule.severity > Severity::Note);
    findings.truncate(FINDINGS);
    findings
}
