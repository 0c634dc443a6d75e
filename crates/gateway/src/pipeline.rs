//! One message becomes history: read, check, gate, journal, publish.
//!
//! What cannot be read is recorded all the same, with the reason, and is never allowed.

use std::sync::Arc;
use std::time::Duration;

use banister_events::activity::Action;
use banister_events::aep::mapping::{Mapped, Mapping, Stamp};
use banister_events::event::Protocol;
use banister_events::finding::{Binds, Finding, Rule, Severity};
use banister_events::{Message, aep, check as checks, id};
use banister_journal::{Appended, Draft, Durability, Kind, Source};
use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::admission::{Accepted, Admitted, Judged, denied};
use crate::asks::Asker;
use crate::facts::HOOK;
use crate::policy::{Gated, PolicyQuestion};
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

impl Incoming {
    /// Who waits for the answer.
    fn asker(&self) -> Asker<'_> {
        Asker {
            agent: &self.agent,
            door: self.door,
            key: &self.key,
            event_id: self.event_id.as_deref(),
            wait: self.wait,
        }
    }
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
        let gated = if read.gated { Some(self.gate(incoming, &read).await) } else { None };
        let gate = gated.as_ref().map(|gated| gated.gate.clone());
        let about = (read.action.clone(), read.context());
        let ask = self.ask_for(gate.as_ref(), &incoming.asker(), &read.session, about, now)?;
        let event = draft(incoming, &read, now, &findings, gated.as_ref());
        let protocol = event.source.protocol.clone();
        let entry = self.keeper.message(event);
        let message = Some(read.payload);
        match self.admit(Judged { entry, message, protocol, gate, ask }).await? {
            Admitted::Accepted(accepted) => Ok(accepted),
            Admitted::Reused => {
                let message = "this idempotency key was used for another message";
                let fresh = Incoming { event_id: None, ..incoming.clone() };
                self.unreadable(&fresh, now, ID_REUSED.at("", message)).await
            }
        }
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
        let payload = Message::payload(incoming.body.clone())
            .map_err(|error| NOT_JSON.at("", format!("the payload is not JSON: {error}")))?;
        if !payload.document().root().is_object() {
            return Err(NOT_JSON.at("", "the payload is not a JSON object"));
        }
        let hook = hook_name(mapping, &incoming.hook, payload.value())?;
        let foreign = mapping.session_of(payload.value()).unwrap_or_else(|| "-".to_owned());
        let session = id::derive("s_", &[&incoming.key, &mapping.name, &foreign]);
        let stamp = Stamp { session: &session, seq: 0, time: now };
        let Mapped { events, gated, .. } = mapping.map(&hook, payload.value(), &stamp);
        let events = events.into_iter().map(|event| Message::of_value(Protocol::Aep, event));
        let events: Vec<Message> = events.collect();
        let is_request = |event: &&Message| {
            event.document().root().get("type").is_some_and(|kind| kind.is("action.requested"))
        };
        let request = events.iter().find(is_request);
        let action = request.and_then(|event| aep::read::action(event.document().root()));
        Ok(Read { mapping, hook, session, payload, events, gated, action })
    }

    async fn gate(self: &Arc<Self>, incoming: &Incoming, read: &Read<'_>) -> Gated {
        if incoming.kept.is_some_and(|kept| kept.refused) {
            return denied("no-gateway", "There was no gateway, so the hook refused.", None).into();
        }
        let Some(action) = &read.action else {
            let unseen = Some("no tool or no id in the payload".to_owned());
            let reason = "The payload does not say what would run.";
            return denied(NO_ACTION.code, reason, unseen).into();
        };
        let context = read.context();
        let question = PolicyQuestion {
            agent: &read.mapping.agent,
            session: Some(&read.session),
            action,
            cwd: context.cwd.as_deref(),
            project: None,
            own: &self.own,
            now: self.clock.now(),
        };
        self.judge(&incoming.agent, question).await
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
        let appended = self.history.commit(vec![entry.into()], Durability::Synced).await?;
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
    payload: Message,
    /// The events that it is.
    events: Vec<Message>,
    /// Whether the agent waits for an answer that decides something.
    gated: bool,
    action: Option<Action>,
}

impl Read<'_> {
    fn context(&self) -> banister_events::activity::Context {
        let context = |event: &Message| aep::read::context(event.document().root());
        self.events.first().map(context).unwrap_or_default()
    }
}

fn check(incoming: &Incoming, read: &Read<'_>) -> Vec<Finding> {
    let mut findings: Vec<Finding> =
        read.events.iter().flat_map(|event| checks::message(Protocol::Aep, event)).collect();
    if read.gated && read.action.is_none() {
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
