//! What agents send: whole turns, cut into batches, some of them bent.

use std::collections::VecDeque;
use std::sync::OnceLock;

use banister_events::aaep::voice::Voice;
use banister_events::event::Protocol;
use banister_events::translate::{Source, Translator};
use serde_json::{Value, json};

use super::dice::Dice;

/// One agent's stream of events.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) protocol: Protocol,
    /// Its name in everything it sends.
    name: String,
    turns: usize,
    pushes: usize,
    ahead: VecDeque<Value>,
    /// What it has sent, to send again.
    pub(super) sent: Vec<Batch>,
}

/// Events that are pushed together.
#[derive(Debug, Clone)]
pub(super) struct Batch {
    pub(super) path: String,
    /// The name of the push, where its events have none.
    pub(super) idempotency: Option<String>,
    pub(super) lines: Vec<Line>,
}

/// One event as it is sent.
#[derive(Debug, Clone)]
pub(super) struct Line {
    /// What it is known again by.
    pub(super) id: Option<String>,
    pub(super) text: String,
}

impl Batch {
    pub(super) fn body(&self) -> Vec<u8> {
        let lines: Vec<&str> = self.lines.iter().map(|line| line.text.as_str()).collect();
        lines.join("\n").into_bytes()
    }
}

impl Stream {
    pub(super) fn new(protocol: Protocol, name: &str) -> Self {
        let name = name.to_owned();
        Self { protocol, name, turns: 0, pushes: 0, ahead: VecDeque::new(), sent: Vec::new() }
    }

    /// The next batch, mostly right.
    pub(super) fn next(&mut self, dice: &mut Dice) -> Batch {
        let mut events = Vec::new();
        for _ in 0..=dice.below(4) {
            if self.ahead.is_empty() {
                self.turns += 1;
                self.ahead = self.turn(dice).into();
            }
            events.extend(self.ahead.pop_front());
        }
        if dice.chance(8) {
            let (one, other) = (dice.below(events.len()), dice.below(events.len()));
            events.swap(one, other);
        }
        if dice.chance(8) {
            let at = dice.below(events.len());
            events.push(events[at].clone());
        }
        if dice.chance(5) {
            let at = dice.below(events.len());
            events.remove(at);
        }
        if dice.chance(5)
            && let Some(mut other) = events.first().cloned()
        {
            // The same id for something else.
            other["simulated"] = json!(true);
            events.push(other);
        }
        self.pushes += 1;
        let idempotency =
            (self.protocol == Protocol::Agui).then(|| format!("{}-{}", self.name, self.pushes));
        let mut lines: Vec<Line> = events
            .iter()
            .enumerate()
            .map(|(index, event)| Line {
                id: match &idempotency {
                    Some(push) => Some(format!("{push}/{index}")),
                    None => ["event_id", "id"]
                        .iter()
                        .find_map(|name| event[*name].as_str())
                        .map(str::to_owned),
                },
                text: event.to_string(),
            })
            .collect();
        if dice.chance(5) || lines.is_empty() {
            lines.push(Line { id: None, text: "{\"type\": ".to_owned() });
        }
        let path = match self.protocol {
            Protocol::Aep => "/aep/v0.1/events".to_owned(),
            Protocol::Aaep => "/aaep/v1/events".to_owned(),
            Protocol::Agui => format!("/agui/threads/{}/events", self.name),
        };
        let batch = Batch { path, idempotency, lines };
        self.sent.push(batch.clone());
        batch
    }

    fn turn(&self, dice: &mut Dice) -> Vec<Value> {
        let (name, turn) = (&self.name, self.turns);
        match self.protocol {
            Protocol::Agui => agui_turn(name, turn, dice),
            Protocol::Aep => aep_turn(name, turn, dice),
            Protocol::Aaep => aaep_turn(name, turn),
        }
    }
}

fn agui_turn(thread: &str, turn: usize, dice: &mut Dice) -> Vec<Value> {
    let run = |kind: &str| json!({ "type": kind, "threadId": thread, "runId": format!("r{turn}") });
    let mut started = run("RUN_STARTED");
    started["protocolVersion"] = json!("1.0");
    let mut events = vec![started];
    let message = format!("m{turn}");
    events.push(json!({ "type": "TEXT_MESSAGE_START", "messageId": message, "role": "assistant" }));
    for piece in 0..=dice.below(3) {
        let delta = format!("Part {piece}. ");
        events
            .push(json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": message, "delta": delta }));
    }
    events.push(json!({ "type": "TEXT_MESSAGE_END", "messageId": message }));
    if dice.chance(60) {
        let call = format!("c{turn}");
        events.extend([
            json!({ "type": "TOOL_CALL_START", "toolCallId": call, "toolCallName": "look" }),
            json!({ "type": "TOOL_CALL_ARGS", "toolCallId": call, "delta": "{\"where\":\"shed\"}" }),
            json!({ "type": "TOOL_CALL_END", "toolCallId": call }),
            json!({
                "type": "TOOL_CALL_RESULT", "messageId": format!("m{turn}r"), "toolCallId": call,
                "content": "a rake", "role": "tool",
            }),
        ]);
    }
    if dice.chance(85) {
        events.push(run("RUN_FINISHED"));
    }
    events
}

/// An AEP event of an agent's session.
pub(super) fn aep_event(agent: &str, id: &str, kind: &str, more: &Value) -> Value {
    let mut event = json!({
        "aep_version": "0.1", "id": id, "type": kind, "time": "2026-11-15T09:00:00.000Z",
        "agent": { "slug": "finch" }, "session": { "id": agent },
        "workspace": { "cwd": "/home/dev/orbit" },
    });
    event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    event
}

/// An AEP event that waits for a decision.
pub(super) fn aep_request(agent: &str, id: &str, command: &str) -> Value {
    let more = json!({
        "action": { "type": "tool_call", "id": format!("act_{id}"), "input": { "command": command } },
        "tool": { "type": "native", "name": "Bash" },
    });
    aep_event(agent, id, "action.requested", &more)
}

fn aep_turn(agent: &str, turn: usize, dice: &mut Dice) -> Vec<Value> {
    let content = |kind: &str, text: &str| json!({ "content": [{ "type": kind, "text": text }] });
    let id = |number: usize| format!("evt_{agent}_{turn}_{number}");
    let mut events = Vec::new();
    if turn == 1 {
        events.push(aep_event(agent, &id(1), "session.start", &json!({})));
    }
    events.push(aep_event(agent, &id(2), "prompt.submitted", &content("prompt", "Tidy up.")));
    if dice.chance(70) {
        events.push(aep_request(agent, &id(3), "ls shed"));
        let done = json!({
            "action": { "type": "tool_call", "id": format!("act_{}", id(3)), "status": "success", "output": "ok" },
            "tool": { "type": "native", "name": "Bash" },
        });
        events.push(aep_event(agent, &id(4), "action.completed", &done));
    }
    events.push(aep_event(agent, &id(5), "model.response", &content("response", "It is tidy.")));
    if dice.chance(80) {
        events.push(aep_event(agent, &id(6), "agent.stop", &json!({})));
    }
    events
}

/// What our own writer makes of an AG-UI run, under names of its own.
fn aaep_turn(agent: &str, turn: usize) -> Vec<Value> {
    static RUN: OnceLock<Vec<Value>> = OnceLock::new();
    let run = RUN.get_or_init(|| {
        let mut translator =
            Translator::new(Source::Protocol(Protocol::Agui), Protocol::Aaep, Voice::default());
        let now = "2026-11-15T09:00:00Z".parse().unwrap();
        let mut told = Vec::new();
        for event in agui_turn("shed", 1, &mut Dice::new(1)) {
            told.extend(translator.message(event.to_string().as_bytes(), now).unwrap());
        }
        told.extend(translator.finish());
        let plain = |told: banister_events::translate::Translated| {
            let mut event = told.event.into_value();
            event.as_object_mut().unwrap().remove("extensions");
            event
        };
        told.into_iter().map(plain).collect()
    });
    let named = |(number, event): (usize, &Value)| {
        let mut event = event.clone();
        event["event_id"] = json!(format!("evt_{agent}t{turn}n{number}"));
        event["session_id"] = json!(format!("sess_{agent}t{turn}"));
        event
    };
    run.iter().enumerate().map(named).collect()
}
