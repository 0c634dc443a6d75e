//! What AAEP has no field for, under `extensions.banister`: small, without credentials, and only where it is asked for.

use serde::Serialize;
use serde_json::Value;

use super::{At, Writer};
use crate::activity::{Action, ActionKind, Context, Gate};
use crate::text;
use crate::written::{Field, Fields, most_value};

/// The largest value that travels along, in bytes of JSON.
const VALUE_BYTES: usize = 2_048;

/// The longest name that travels along, in bytes: a shorter one would be another name.
const NAME_BYTES: usize = 512;

/// How deep a value that travels along may be nested, so that the event stays within eight levels.
const DEPTH: usize = 4;

/// Numbers beyond this lose digits on the way.
const EXACT: u64 = 1 << 53;

/// The facts of one event. No name of ours is one that credentials go by.
#[derive(Debug, Default)]
pub(super) struct Facts(Fields);

impl Facts {
    /// A fact that people must have, carried or not. It is one of our own words.
    pub(super) fn must(&mut self, name: &'static str, value: impl Into<Field>) {
        self.0.put(name, value);
    }

    /// What travels.
    pub(super) fn finish(self) -> Fields {
        self.0
    }

    /// A value that is small enough to travel.
    pub(super) fn value(&mut self, name: &'static str, value: Option<&Value>) {
        if let Some(value) = value.filter(|value| travels(value)) {
            self.0.put(name, text::redacted(value.clone()));
        }
    }

    /// A name that is short enough to travel.
    pub(super) fn name(&mut self, name: &'static str, value: Option<&str>) {
        if let Some(value) = value.filter(|value| value.len() <= NAME_BYTES) {
            self.0.put(name, text::redact(value));
        }
    }

    /// Anything else that has a JSON form.
    pub(super) fn data(&mut self, name: &'static str, data: &impl Serialize) {
        if let Some(value) = serde_json::to_value(data).ok().filter(travels) {
            self.0.put(name, text::redacted(value));
        }
    }

    /// An action, except what its event says anyway.
    pub(super) fn action(&mut self, action: &Action) {
        let mut facts = Self::default();
        facts.name("id", Some(&action.id));
        facts.name("tool", Some(&action.tool));
        if action.kind != ActionKind::Tool {
            facts.data("kind", &action.kind);
        }
        facts.name("server", action.server.as_deref());
        facts.name("original_name", action.original_name.as_deref());
        facts.value("input", action.input.as_ref());
        facts.name("rationale", action.rationale.as_deref());
        self.0.put("action", facts.0);
    }

    /// What the gate said.
    pub(super) fn gate(&mut self, gate: Option<&Gate>) {
        if let Some(gate) = gate {
            self.data("gate", gate);
        }
    }
}

/// Whether a value is small and flat enough to travel, and comes back as it went.
fn travels(value: &Value) -> bool {
    let is_small = || {
        most_value(value) <= VALUE_BYTES
            || serde_json::to_string(value).is_ok_and(|text| text.len() <= VALUE_BYTES)
    };
    fits(value, DEPTH) && is_small()
}

fn fits(value: &Value, depth: usize) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => true,
        Value::Number(number) => {
            let whole = number.as_u64().or_else(|| number.as_i64().map(i64::unsigned_abs));
            #[expect(clippy::cast_precision_loss, reason = "a power of two is exact")]
            let exact = EXACT as f64;
            whole.map_or_else(
                || number.as_f64().is_some_and(|number| number.abs() <= exact),
                |whole| whole <= EXACT,
            )
        }
        Value::Array(items) => depth > 0 && items.iter().all(|item| fits(item, depth - 1)),
        Value::Object(fields) => depth > 0 && fields.values().all(|field| fits(field, depth - 1)),
    }
}

impl Writer {
    /// Facts that travel only where they are asked for.
    pub(super) fn carry(&self, fill: impl FnOnce(&mut Facts)) -> Facts {
        let mut facts = Facts::default();
        if self.voice.carry {
            fill(&mut facts);
        }
        facts
    }

    /// Adds who did it and in which surroundings, where that is not what it was before.
    pub(super) fn carry_context(&mut self, at: At<'_>, facts: &mut Facts) {
        if !self.voice.carry {
            return;
        }
        let known = self.carried.as_ref().is_some_and(|known| {
            std::sync::Arc::ptr_eq(known, at.context)
                || surroundings(known) == surroundings(at.context)
        });
        let empty = surroundings(at.context).iter().all(|(_, value)| value.is_none());
        if !(known || empty && self.carried.is_none()) {
            let mut context = Facts::default();
            for (name, value) in surroundings(at.context) {
                context.name(name, value);
            }
            facts.0.put("context", context.0);
        }
        self.carried = Some(at.context.clone());
    }
}

fn surroundings(context: &Context) -> [(&'static str, Option<&str>); 6] {
    [
        ("session", context.session.as_deref()),
        ("turn", context.turn.as_deref()),
        ("subagent", context.subagent.as_deref()),
        ("hook", context.hook.as_deref()),
        ("permission_mode", context.permission_mode.as_deref()),
        ("cwd", context.cwd.as_deref()),
    ]
}
