//! The conversation so far, for who comes late.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Mode, Type, Writer};
use crate::activity::Activity;
use crate::agui::reduce::{Message, Reducer};
use crate::agui::step::Step;
use crate::json::Parser;
use crate::limits;

/// How much history one snapshot restates: what an event may hold, with room for the rest of it.
const SNAPSHOT_BYTES: usize = limits::MESSAGE_BYTES / 2;

/// What a client has that was there from the start: the writer's own events, reduced as clients do.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(into = "Saved", from = "Saved")]
pub struct History {
    writer: Writer,
    reducer: Reducer,
    parser: Parser,
}

/// A history as it is saved.
#[derive(Serialize, Deserialize)]
struct Saved {
    writer: Writer,
    messages: Vec<Value>,
    state: Value,
}

impl From<History> for Saved {
    fn from(history: History) -> Self {
        let messages = history.reducer.messages().map(Message::to_value).collect();
        Self { messages, state: history.reducer.state().clone(), writer: history.writer }
    }
}

impl From<Saved> for History {
    fn from(saved: Saved) -> Self {
        let Saved { writer, messages, state } = saved;
        Self { writer, reducer: Reducer::with(messages, state), parser: Parser::default() }
    }
}

impl Default for History {
    fn default() -> Self {
        Saved {
            writer: Writer::with(Mode::History, Some(String::new()), ""),
            messages: Vec::new(),
            state: Value::Object(Map::new()),
        }
        .into()
    }
}

impl History {
    /// Whether the agent is at work on a request.
    pub fn turn_open(&self) -> bool {
        self.writer.is_open() && self.writer.turn
    }

    /// Takes one activity in.
    pub fn add(&mut self, activity: &Activity) {
        let mut events = Vec::new();
        self.writer.write_to(activity, &mut events);
        // Nobody reads what a fold of events was noted for.
        self.writer.notes();
        for event in events {
            let (kind, bytes) = (Type::parse(event.kind()), event.to_json());
            if let (Some(kind), Ok(document)) = (kind, self.parser.parse(&bytes))
                && let Some(step) = Step::new(kind, document.root())
            {
                self.reducer.apply(&step, &mut Vec::new());
            }
        }
    }

    /// The messages. Of a history that no event can hold, the newest ones.
    pub fn messages(&self) -> Vec<Value> {
        let all: Vec<Value> = self.reducer.messages().map(Message::to_value).collect();
        let mut room = SNAPSHOT_BYTES;
        let mut kept = Vec::new();
        for message in all.into_iter().rev() {
            let Some(left) = room.checked_sub(message.to_string().len() + 1) else {
                // A result without its call says nothing.
                while kept.last().is_some_and(|oldest: &Value| {
                    oldest.get("role").is_some_and(|role| role == "tool")
                }) {
                    kept.pop();
                }
                break;
            };
            room = left;
            kept.push(message);
        }
        kept.reverse();
        kept
    }

    /// The state that agent and front end share.
    pub fn state(&self) -> &Value {
        self.reducer.state()
    }

    pub(super) fn writer(&self) -> &Writer {
        &self.writer
    }
}
