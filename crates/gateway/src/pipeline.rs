//! One message becomes history: read, check, gate, journal, publish.
//!
//! What cannot be read is recorded all the same, with the reason, and is never allowed.

use std::sync::Arc;
use std::time::Duration;

use banister_events::activity::{Action, Decision, Gate, Risk};
use banister_events::aep::mapping::{Mapped, Mapping, Stamp};
use banister_events::event::Protocol;
use banister_events::finding::{Binds, Finding, Rule, Severity};
use banister_events::{aep, check as checks, id};
use banister_journal::{Appended, Draft, Durability, Entry, Kind, Level, Record, Source};
use bytes::Bytes;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::desk::AskDraft;
use crate::policy::{Asked, Gated};
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
    /// What kept it from arriving whole, if anything did.
    pub cut: Option<Cut>,
    /// How long the sender waits for an answer.
    pub wait: Duration,
    /// Where it was kept, if there was no gateway when it happened.
    pub kept: Option<Kept>,
}

#[cfg(test)]
impl Incoming {
    /// A payload of Claude Code's, through the socket.
    pub(crate) fn of_claude(hook: &str, payload: &Value) -> Self {
        Self {
            agent: "claude-code".to_owned(),
            hook: hook.to_owned(),
            door: "socket",
            key: "agent".to_owned(),
            event_id: None,
            body: Bytes::from(payload.to_string()),
            cut: None,
            wait: Duration::from_mins(5),
            kept: None,
        }
    }
}

/// What kept a payload from arriving whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// It was too large; this many bytes in all, as far as they were counted.
    TooLarge(u64),
    /// The sender stopped, or took too long.
    BrokenOff,
}

/// A payload that a hook kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// Whether the hook has refused it by itself already.
    pub refused: bool,
    /// When it happened.
    pub time: Option<Timestamp>,
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
    opt_in: false,
    binds: Binds::Producer,
    text: "A hook payload is one JSON object",
    remedy: "Send the payload as the agent gave it to the hook, whole and unchanged",
};
/// The payload is too large.
pub static TOO_LARGE: Rule = Rule {
    code: "HOOK-02",
    severity: Severity::Error,
    opt_in: false,
    binds: Binds::Producer,
    text: "A hook payload is at most 8 MiB",
    remedy: "Let the agent work in smaller steps; the first MiB was kept as evidence",
};
/// The agent is not known.
pub static UNKNOWN_AGENT: Rule = Rule {
    code: "HOOK-03",
    severity: Severity::Error,
    opt_in: false,
    binds: Binds::Producer,
    text: "A hook payload names an agent that has a mapping file",
    remedy: "Use the agent's install name, such as claude-code",
};
/// Somebody waits for a decision on something that was not said.
pub static NO_ACTION: Rule = Rule {
    code: "HOOK-04",
    severity: Severity::Error,
    opt_in: false,
    binds: Binds::Producer,
    text: "A payload that waits for a decision says which tool would run, and under which id",
    remedy: "Send the payload as the agent gave it to the hook, whole and unchanged",
};
/// Other bytes under a known id.
pub static ID_REUSED: Rule = Rule {
    code: "HOOK-05",
    severity: Severity::Error,
    opt_in: false,
    binds: Binds::Producer,
    text: "An idempotency key stands for one message",
    remedy: "Draw a new key for each message",
};

/// A payload that the agent waits on came through a hook that decides nothing, or the other way round.
pub static MISNAMED: Rule = Rule {
    code: "HOOK-06",
    severity: Severity::Error,
    opt_in: false,
    binds: Binds::Producer,
    text: "A hook is registered under the name that its payloads bear, where one of the two waits for a decision",
    remedy: "Correct the event's name in the agent's settings: it is the last word of the hook's command",
};
/// The payload broke off.
pub static BROKEN_OFF: Rule = Rule {
    code: "HOOK-07",
    severity: Severity::Error,
    opt_in: false,
    binds: Binds::Producer,
    text: "A hook payload arrives whole, within ten seconds",
    remedy: "Send it again under the same idempotency key",
};
/// The hook kept it while there was no gateway.
pub static KEPT: Rule = Rule {
    code: "HOOK-08",
    severity: Severity::Note,
    opt_in: false,
    binds: Binds::Producer,
    text: "A payload is recorded when it happens",
    remedy: "Keep the gateway running while agents work",
};

/// The rules of the hook door.
pub static RULES: [&Rule; 8] =
    [&NOT_JSON, &TOO_LARGE, &UNKNOWN_AGENT, &NO_ACTION, &ID_REUSED, &MISNAMED, &BROKEN_OFF, &KEPT];

impl Gateway {
    /// Takes one message from the outside and makes it part of history.
    pub async fn accept(self: &Arc<Self>, incoming: &Incoming) -> Result<Accepted, Error> {
        let now = self.clock.now();
        let read = match self.read(incoming, now) {
            Ok(read) => read,
            Err(finding) => return self.unreadable(incoming, now, finding).await,
        };
        let findings = check(incoming, &read);
        let gated = read.mapped.gated.then(|| self.gate(incoming, &read));
        let gate = gated.as_ref().map(|gated| gated.gate.clone());
        let ask = match &gate {
            Some(gate) if gate.decision == Decision::Ask => {
                let what = (read.action.clone(), gate.clone());
                let ask = AskDraft::new(incoming, &read.session, what, read.context(), now)?;
                Some(ask.within(self.settings.ask_time))
            }
            _ => None,
        };
        let event = draft(incoming, &read, now, &findings, gated.as_ref());
        let protocol = event.source.protocol.clone();
        let event = self.keeper.message(event);
        let quick = gate.as_ref().is_none_or(|gate| gate.decision == Decision::Allow);
        let durability = if quick && !self.settings.sync_allow {
            Durability::Written
        } else {
            Durability::Synced
        };
        match self.record(event, ask, durability).await? {
            (Appended::Recorded(records), ask) => {
                Ok(Accepted { records, duplicate: false, gate, ask })
            }
            (Appended::Duplicate { first, same_bytes: true }, _)
                if first.source.protocol == protocol =>
            {
                Ok(again(first, gate))
            }
            (Appended::Duplicate { .. }, _) => {
                let message = "this idempotency key was used for another message";
                let fresh = Incoming { event_id: None, ..incoming.clone() };
                self.unreadable(&fresh, now, ID_REUSED.at("", message)).await
            }
        }
    }

    /// Durable, then on the desk, then visible: all three or none, also when the sender has gone meanwhile.
    pub(crate) async fn record(
        self: &Arc<Self>,
        event: Entry,
        ask: Option<AskDraft>,
        durability: Durability,
    ) -> Result<(Appended, Option<String>), Error> {
        let gateway = Arc::clone(self);
        let recorded = self.tasks.spawn(async move {
            let mut entries = vec![event];
            entries.extend(ask.as_ref().map(|ask| ask.entry(&gateway.keeper)));
            let expected = ask.map(|ask| gateway.desk.expect(ask));
            let appended = gateway.journal.append(entries, durability).await?;
            let mut opened = None;
            if let Appended::Recorded(records) = &appended {
                opened = expected.zip(records.last()).map(|(ask, record)| ask.open(record));
                gateway.hub.publish(records);
            }
            Ok((appended, opened))
        });
        recorded.await.unwrap_or_else(|error| Err(Error::Task(error.to_string())))
    }

    fn read(&self, incoming: &Incoming, now: Timestamp) -> Result<Read<'_>, Finding> {
        let mapping = self.agents.find(&incoming.agent).ok_or_else(|| {
            UNKNOWN_AGENT.at("", format!("there is no mapping for the agent {:?}", incoming.agent))
        })?;
        match incoming.cut {
            Some(Cut::TooLarge(bytes)) => {
                return Err(TOO_LARGE.at("", format!("the payload had {bytes} bytes")));
            }
            Some(Cut::BrokenOff) => return Err(BROKEN_OFF.at("", "the payload broke off")),
            None => {}
        }
        let payload: Value = serde_json::from_slice(&incoming.body)
            .map_err(|error| NOT_JSON.at("", format!("the payload is not JSON: {error}")))?;
        if !payload.is_object() {
            return Err(NOT_JSON.at("", "the payload is not a JSON object"));
        }
        let hook = hook_name(mapping, &incoming.hook, &payload)?;
        let foreign = mapping.session_of(&payload).unwrap_or_else(|| "-".to_owned());
        let session = id::derive("s_", &[&incoming.key, &mapping.name, &foreign]);
        let stamp = Stamp { session: &session, seq: 0, time: now };
        let mapped = mapping.map(&hook, &payload, &stamp);
        let request = mapped
            .events
            .iter()
            .find(|event| event.get("type").and_then(Value::as_str) == Some("action.requested"));
        let action = request.and_then(aep::read::action);
        Ok(Read { mapping, hook, session, mapped, action })
    }

    fn gate(&self, incoming: &Incoming, read: &Read<'_>) -> Gated {
        if incoming.kept.is_some_and(|kept| kept.refused) {
            return denied("no-gateway", "There was no gateway, so the hook refused.", None).into();
        }
        let Some(action) = &read.action else {
            let unseen = Some("no tool or no id in the payload".to_owned());
            let reason = "The payload does not say what would run.";
            return denied(NO_ACTION.code, reason, unseen).into();
        };
        let context = read.context();
        self.judge(
            &incoming.agent,
            &Asked {
                agent: &read.mapping.agent,
                session: Some(&read.session),
                action,
                cwd: context.cwd.as_deref(),
                project: None,
                own: &self.own,
                now: self.clock.now(),
            },
        )
    }

    /// Records what could not be read, so that nothing is lost, and refuses it.
    async fn unreadable(
        self: &Arc<Self>,
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
        let entry = self.keeper.message(draft);
        let (appended, _) = self.record(entry, None, Durability::Synced).await?;
        let (records, duplicate) = match appended {
            Appended::Recorded(records) => (records, false),
            Appended::Duplicate { first, .. } => (vec![first], true),
        };
        Ok(Accepted { records, duplicate, gate: Some(gate), ask: None })
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

fn check(incoming: &Incoming, read: &Read<'_>) -> Vec<Finding> {
    let mut findings: Vec<Finding> =
        read.mapped.events.iter().flat_map(|event| checks::value(Protocol::Aep, event)).collect();
    if read.mapped.gated && read.action.is_none() {
        findings.push(NO_ACTION.at("", "the payload names no tool, or no id"));
    }
    findings.retain(|finding| finding.rule.severity > Severity::Note);
    if let Some(kept) = incoming.kept {
        let time = kept.time.map(banister_events::event::time_text).unwrap_or_default();
        findings.push(KEPT.at("", format!("the hook kept this since {time}")));
    }
    findings
}

/// The name the hook was registered under counts; the payload fills in where there was none. Where the two differ and
/// one of them waits for a decision, nobody can tell whether the agent does.
fn hook_name(mapping: &Mapping, registered: &str, payload: &Value) -> Result<String, Finding> {
    let borne = mapping.hook_of(payload);
    let borne = borne.as_deref();
    let name = match registered {
        "" | "-" => borne.unwrap_or("-"),
        named => named,
    };
    let gated = mapping.gated_hooks();
    let waits = |name: &str| {
        let exactly = gated.iter().find(|hook| **hook == name);
        exactly.or_else(|| gated.iter().find(|hook| hook.eq_ignore_ascii_case(name))).copied()
    };
    match borne {
        Some(borne) if borne != name && (waits(borne).is_some() || waits(name).is_some()) => {
            let message = format!("the hook is registered as {name}, the payload says {borne}");
            let place = mapping.event_name().first().map_or("", String::as_str);
            Err(MISNAMED.at(place, message))
        }
        _ => Ok(waits(name).unwrap_or(name).to_owned()),
    }
}

fn draft(
    incoming: &Incoming,
    read: &Read<'_>,
    now: Timestamp,
    findings: &[Finding],
    gate: Option<&Gated>,
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
pub(crate) fn denied(rule: &str, reason: &str, opaque: Option<String>) -> Gate {
    Gate {
        decision: Decision::Deny,
        rule: rule.to_owned(),
        reason: reason.to_owned(),
        risk: Risk::High,
        irreversible: None,
        opaque,
        safer: None,
    }
}

/// The same message again: the first verdict stands unless today's is stricter, and the ask that it opened is waited on
/// again.
pub(crate) fn again(first: Arc<Record>, today: Option<Gate>) -> Accepted {
    // A verdict that cannot be read back is not an allow.
    let unread = || denied("journal", "The recorded verdict cannot be read.", None);
    let then = match &first.gate {
        // The verdict was not kept: there is no other than today's.
        None if first.captured.level == Level::None => today.clone(),
        recorded => {
            recorded.as_ref().map(|gate| Gate::deserialize(gate).unwrap_or_else(|_| unread()))
        }
    };
    let lax = |gate: &Option<Gate>| gate.as_ref().is_none_or(|g| g.decision == Decision::Allow);
    let gate = if lax(&then) && !lax(&today) { today } else { then };
    let asked = gate.as_ref().is_some_and(|gate| gate.decision == Decision::Ask);
    let ask = first
        .event_id
        .as_ref()
        .filter(|_| asked)
        .map(|event_id| AskDraft::id_for(&first.source.key, event_id));
    Accepted { records: vec![first], duplicate: true, gate, ask }
}
