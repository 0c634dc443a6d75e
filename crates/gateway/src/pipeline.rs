//! One message becomes history: read, check, gate, journal, publish.
//!
//! What cannot be read is recorded all the same, with the reason, and is never allowed.

use std::sync::Arc;
use std::time::Duration;

use banister_events::activity::{Action, Decision, Gate, Risk};
use banister_events::aep::mapping::{Mapped, Mapping, Stamp};
use banister_events::finding::{Binds, Finding, Rule, Severity};
use banister_events::{aep, id};
use banister_journal::{Appended, Draft, Durability, Kind, Record, Source};
use bytes::Bytes;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::desk::AskDraft;
use crate::project::HOOK;
use crate::{Error, Gateway};

/// The version of the reading that is recorded with each message.
const READER: u32 = 1;

/// A native hook payload, as it came in.
#[derive(Debug, Clone)]
pub struct Incoming {
    /// The agent's name as the hook gave it.
    pub agent: String,
    /// The hook's name as the hook gave it.
    pub hook: String,
    /// The door it came through: `socket`, `http`, `spool`.
    pub door: &'static str,
    /// The id of the key it came with.
    pub key: String,
    /// The sender's id of this message, so that sending it again changes nothing.
    pub event_id: Option<String>,
    /// The payload, or the first part of one that was too large.
    pub body: Bytes,
    /// How large it really was, where it was too large.
    pub truncated: Option<u64>,
    /// How long the sender waits for an answer.
    pub wait: Duration,
    /// Whether the hook has refused it by itself already, because there was no gateway.
    pub refused: bool,
}

/// What became of a message.
#[derive(Debug, Clone)]
pub struct Accepted {
    /// The records that were written, or the first one where the message was known.
    pub records: Vec<Arc<Record>>,
    /// Whether the message was known already.
    pub duplicate: bool,
    /// What the gate said; `None` where nothing had to be decided.
    pub gate: Option<Gate>,
    /// The ask that was opened, where a person decides.
    pub ask: Option<String>,
}

/// The payload is not JSON.
pub static NOT_JSON: Rule = Rule {
    code: "HOOK-01",
    severity: Severity::Error,
    binds: Binds::Producer,
    text: "A hook payload is one JSON object",
    remedy: "Send the payload as the agent gave it to the hook, whole and unchanged",
};
/// The payload is too large.
pub static TOO_LARGE: Rule = Rule {
    code: "HOOK-02",
    severity: Severity::Error,
    binds: Binds::Producer,
    text: "A hook payload is at most 8 MiB",
    remedy: "Let the agent work in smaller steps; the first MiB was kept as evidence",
};
/// The agent is not known.
pub static UNKNOWN_AGENT: Rule = Rule {
    code: "HOOK-03",
    severity: Severity::Error,
    binds: Binds::Producer,
    text: "A hook payload names an agent that has a mapping file",
    remedy: "Use the agent's install name, such as claude-code",
};
/// Somebody waits for a decision on something that was not said.
pub static NO_ACTION: Rule = Rule {
    code: "HOOK-04",
    severity: Severity::Error,
    binds: Binds::Producer,
    text: "A payload that waits for a decision says which tool would run, and under which id",
    remedy: "Send the payload as the agent gave it to the hook, whole and unchanged",
};
/// Other bytes under a known id.
pub static ID_REUSED: Rule = Rule {
    code: "HOOK-05",
    severity: Severity::Error,
    binds: Binds::Producer,
    text: "An idempotency key stands for one message",
    remedy: "Draw a new key for each message",
};

/// The rules of the hook door.
pub static RULES: [&Rule; 5] = [&NOT_JSON, &TOO_LARGE, &UNKNOWN_AGENT, &NO_ACTION, &ID_REUSED];

impl Gateway {
    /// Takes one message from the outside and makes it part of history.
    pub async fn accept(&self, incoming: &Incoming) -> Result<Accepted, Error> {
        let now = self.clock.now();
        let read = match self.read(incoming, now) {
            Ok(read) => read,
            Err(finding) => return self.unreadable(incoming, now, finding).await,
        };
        let findings = check(&read);
        let gate = read.mapped.gated.then(|| {
            if incoming.refused {
                denied("no-gateway", "There was no gateway, so the hook refused.", None)
            } else {
                self.gate(&read)
            }
        });
        let ask = match &gate {
            Some(gate) if gate.decision == Decision::Ask => {
                let what = (read.action.clone(), gate.clone());
                Some(AskDraft::new(incoming, &read.session, what, read.context(), now)?)
            }
            _ => None,
        };
        let mut drafts = vec![draft(incoming, &read, now, &findings, gate.as_ref())];
        drafts.extend(ask.as_ref().map(AskDraft::draft));
        let quick = gate.as_ref().is_none_or(|gate| gate.decision == Decision::Allow);
        let durability = if quick && !self.settings.sync_allow {
            Durability::Written
        } else {
            Durability::Synced
        };
        match self.journal.append(drafts, durability).await? {
            Appended::Recorded(records) => {
                let opened = ask.map(|ask| self.desk.open(ask));
                self.hub.publish(&records);
                Ok(Accepted { records, duplicate: false, gate, ask: opened })
            }
            Appended::Duplicate { first, same_bytes: true } => Ok(again(first)),
            Appended::Duplicate { same_bytes: false, .. } => {
                let message = "this idempotency key was used for another payload";
                let fresh = Incoming { event_id: None, ..incoming.clone() };
                self.unreadable(&fresh, now, ID_REUSED.at("", message)).await
            }
        }
    }

    fn read(&self, incoming: &Incoming, now: Timestamp) -> Result<Read<'_>, Finding> {
        let mapping = self.agents.find(&incoming.agent).ok_or_else(|| {
            UNKNOWN_AGENT.at("", format!("there is no mapping for the agent {:?}", incoming.agent))
        })?;
        if let Some(bytes) = incoming.truncated {
            return Err(TOO_LARGE.at("", format!("the payload had {bytes} bytes")));
        }
        let payload: Value = serde_json::from_slice(&incoming.body)
            .map_err(|error| NOT_JSON.at("", format!("the payload is not JSON: {error}")))?;
        if !payload.is_object() {
            return Err(NOT_JSON.at("", "the payload is not a JSON object"));
        }
        // The name the hook was registered under counts; the payload fills in where there was none.
        let hook = match incoming.hook.as_str() {
            "" | "-" => payload.get("hook_event_name").and_then(Value::as_str).unwrap_or("-"),
            named => named,
        }
        .to_owned();
        let foreign = payload.get("session_id").and_then(Value::as_str).unwrap_or("-");
        let session = id::derive("s_", &[&incoming.key, &mapping.name, foreign]);
        let stamp = Stamp { session: &session, seq: 0, time: now };
        let mapped = mapping.map(&hook, &payload, &stamp);
        let request = mapped
            .events
            .iter()
            .find(|event| event.get("type").and_then(Value::as_str) == Some("action.requested"));
        let action = request.and_then(aep::read::action);
        Ok(Read { mapping, hook, session, mapped, action })
    }

    fn gate(&self, read: &Read<'_>) -> Gate {
        let Some(action) = &read.action else {
            let unseen = Some("no tool or no id in the payload".to_owned());
            return denied(NO_ACTION.code, "The payload does not say what would run.", unseen);
        };
        let context = read.context();
        let home = self.settings.home.as_ref().map(|home| home.to_string_lossy());
        banister_policy::evaluate(
            &self.rules,
            &banister_policy::Request {
                agent: &read.mapping.agent,
                action,
                cwd: context.cwd.as_deref(),
                home: home.as_deref(),
                own: &self.own,
            },
        )
    }

    /// Records what could not be read, so that nothing is lost, and refuses it.
    async fn unreadable(
        &self,
        incoming: &Incoming,
        now: Timestamp,
        finding: Finding,
    ) -> Result<Accepted, Error> {
        let reason = format!("{}: {}.", finding.rule.code, finding.message);
        let gate = denied(finding.rule.code, &reason, Some(finding.message.clone()));
        let draft = Draft {
            session: id::derive("s_", &[&incoming.key, &incoming.agent, "unreadable"]),
            time: now,
            kind: Kind::Unreadable,
            source: source(incoming, &incoming.hook),
            turn: None,
            action: None,
            event_id: incoming.event_id.clone(),
            reader: READER,
            body: incoming.body.clone(),
            findings: json!([finding]),
            gate: serde_json::to_value(&gate).ok(),
        };
        match self.journal.append(vec![draft], Durability::Synced).await? {
            Appended::Recorded(records) => {
                self.hub.publish(&records);
                Ok(Accepted { records, duplicate: false, gate: Some(gate), ask: None })
            }
            Appended::Duplicate { first, .. } => {
                Ok(Accepted { records: vec![first], duplicate: true, gate: Some(gate), ask: None })
            }
        }
    }
}

/// A payload that was understood.
struct Read<'a> {
    mapping: &'a Mapping,
    hook: String,
    session: String,
    mapped: Mapped,
    action: Option<Action>,
}

impl Read<'_> {
    fn context(&self) -> banister_events::activity::Context {
        self.mapped.events.first().map(aep::read::context).unwrap_or_default()
    }
}

fn check(read: &Read<'_>) -> Vec<Finding> {
    let mut findings: Vec<Finding> =
        read.mapped.events.iter().flat_map(aep::check::event).collect();
    if read.mapped.gated && read.action.is_none() {
        findings.push(NO_ACTION.at("", "the payload names no tool, or no id"));
    }
    findings.retain(|finding| finding.rule.severity > Severity::Note);
    findings
}

fn draft(
    incoming: &Incoming,
    read: &Read<'_>,
    now: Timestamp,
    findings: &[Finding],
    gate: Option<&Gate>,
) -> Draft {
    Draft {
        session: read.session.clone(),
        time: now,
        kind: Kind::Event,
        source: source(incoming, &read.hook),
        turn: read.context().turn,
        action: read.action.as_ref().map(|action| action.id.clone()),
        event_id: incoming.event_id.clone(),
        reader: READER,
        body: incoming.body.clone(),
        findings: if findings.is_empty() { Value::Null } else { json!(findings) },
        gate: gate.and_then(|gate| serde_json::to_value(gate).ok()),
    }
}

fn source(incoming: &Incoming, hook: &str) -> Source {
    Source {
        protocol: format!("{HOOK}{}:{hook}", incoming.agent),
        agent: incoming.agent.clone(),
        door: incoming.door.to_owned(),
        key: incoming.key.clone(),
    }
}

/// A refusal that needs no rule of anybody's.
fn denied(rule: &str, reason: &str, opaque: Option<String>) -> Gate {
    Gate {
        decision: Decision::Deny,
        rule: rule.to_owned(),
        reason: reason.to_owned(),
        risk: Risk::High,
        irreversible: false,
        opaque,
        safer: None,
    }
}

/// The same message again: the first verdict stands, and the ask it opened is waited on again.
fn again(first: Arc<Record>) -> Accepted {
    let gate = first.gate.as_ref().map(|gate| {
        Gate::deserialize(gate)
            .unwrap_or_else(|_| denied("journal", "The recorded verdict cannot be read.", None))
    });
    let asked = gate.as_ref().is_some_and(|gate| gate.decision == Decision::Ask);
    let ask = first
        .event_id
        .as_ref()
        .filter(|_| asked)
        .map(|event_id| AskDraft::id_for(&first.source.key, event_id));
    Accepted { records: vec![first], duplicate: true, gate, ask }
}
