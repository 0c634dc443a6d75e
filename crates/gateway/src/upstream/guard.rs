//! What is done about events that break the protocol: repaired, refused, or only told.

use banister_events::agui::repair::Repairer;
use banister_events::check::Checker;
use banister_events::event::Protocol;
use banister_events::finding::{Finding, Severity};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use super::UpstreamPolicy;
use super::call::Message;

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
    pub(super) events: Vec<(Bytes, Vec<Finding>)>,
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
    pub(super) fn message(&mut self, message: Message) -> Passed {
        let bytes = match message {
            Ok(bytes) => bytes,
            Err(error) if self.policy == UpstreamPolicy::Repair => {
                self.repairer.unframed(error);
                return self.repaired(Some(Bytes::new()), Vec::new());
            }
            Err(error) => {
                let finding = self.checker.unframed(error);
                return self.judged(Bytes::new(), vec![finding]);
            }
        };
        self.ended = match kind(&bytes).as_deref() {
            Some("RUN_FINISHED" | "RUN_ERROR") => true,
            Some("RUN_STARTED") => false,
            _ => self.ended,
        };
        if self.policy == UpstreamPolicy::Repair {
            let events = self.repairer.message(&bytes);
            return self.repaired(Some(bytes), events);
        }
        let findings = self.checker.message(&bytes);
        self.judged(bytes, findings)
    }

    /// What is missing at the end of the stream. `why` is told where the run has no end of its own.
    pub(super) fn finish(&mut self, why: Option<(&str, &str)>) -> Passed {
        let why = why.filter(|_| !self.ended);
        if self.policy == UpstreamPolicy::Repair {
            let mut events = Vec::new();
            if let Some((code, message)) = why {
                events.extend(self.repairer.message(failed(code, message).as_bytes()));
            }
            events.extend(self.repairer.finish());
            let mut passed = self.repaired(None, events);
            if !self.ended && passed.events.is_empty() {
                // Nothing came at all, which is no run either.
                passed.events.push((failed("truncated", "the agent sent nothing").into(), vec![]));
            }
            return Passed { ends: true, ..passed };
        }
        let (code, message) = why.unwrap_or(("truncated", "the stream ended before the run did"));
        let missing = (!self.ended).then(|| (failed(code, message).into(), Vec::new()));
        let events: Vec<_> = missing.into_iter().collect();
        Passed { ends: true, findings: kept(self.checker.finish()), events, ..Passed::default() }
    }

    fn repaired(&mut self, came: Option<Bytes>, events: Vec<Vec<u8>>) -> Passed {
        let changes = self.repairer.changes();
        let instead = came.filter(|_| !changes.is_empty());
        let findings = changes.into_iter().map(|change| change.rule.at("", change.what));
        let findings = kept(findings.collect());
        let judge = |event: Vec<u8>| {
            let findings = kept(self.checker.message(&event));
            (Bytes::from(event), findings)
        };
        Passed { instead, findings, events: events.into_iter().map(judge).collect(), ends: false }
    }

    fn judged(&mut self, bytes: Bytes, findings: Vec<Finding>) -> Passed {
        let broken = findings.iter().find(|finding| finding.rule.severity == Severity::Error);
        let broken = broken.filter(|_| self.policy == UpstreamPolicy::Strict);
        if let Some(Finding { rule, message, .. }) = broken {
            let reason = format!("the agent broke the protocol: {message} ({})", rule.code);
            self.ended = true;
            return Passed {
                instead: Some(bytes),
                findings: kept(findings),
                events: vec![(failed("upstream-protocol", &reason).into(), Vec::new())],
                ends: true,
            };
        }
        let findings = kept(findings);
        if bytes.is_empty() {
            return Passed { instead: Some(bytes), findings, ..Passed::default() };
        }
        Passed { events: vec![(bytes, findings)], ..Passed::default() }
    }
}

/// The end of a run that failed.
pub(super) fn failed(code: &str, message: &str) -> String {
    json!({ "type": "RUN_ERROR", "message": message, "code": code }).to_string()
}

fn kept(mut findings: Vec<Finding>) -> Vec<Finding> {
    findings.retain(|finding| finding.rule.severity > Severity::Note);
    findings.truncate(FINDINGS);
    findings
}

/// The type of an event.
pub(super) fn kind(event: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Head {
        r#type: Value,
    }
    let head: Head = serde_json::from_slice(event).ok()?;
    head.r#type.as_str().map(str::to_owned)
}
