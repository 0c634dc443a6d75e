//! The chunk streams that are open, so that a reader can be saved: each as a chunk that opens it again.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::agui::event::Type;
use crate::agui::expand::Lanes;
use crate::agui::step::{Item, Opener, Step};
use crate::json::Nodes;

/// Chunks that open what is open, in the order in which it opened.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Chunks(Vec<(String, Value)>);

impl Chunks {
    /// The lanes that these chunks open.
    pub(super) fn lanes(&self) -> Lanes {
        let mut lanes = Lanes::default();
        for (_, chunk) in &self.0 {
            let kind = chunk.get("type").and_then(Value::as_str).and_then(Type::parse);
            let (text, nodes) = Nodes::compose(chunk);
            if let Some(kind) = kind {
                let document = nodes.document(&text);
                lanes.expand(kind, document.root(), &mut Vec::new(), &mut |_, _| {});
            }
        }
        lanes
    }

    /// Follows a step of an event of some type.
    pub(super) fn follow(&mut self, kind: Type, step: &Step<'_>) {
        match step {
            Step::Open { item, id, tag, opener, .. } if is_chunk(kind) => {
                let chunk = chunk(kind, *item, id, tag.as_deref(), opener);
                self.0.push((key(*item, id), chunk));
            }
            Step::Close { item, id, .. } if !self.0.is_empty() => {
                let key = key(*item, id);
                self.0.retain(|(own, _)| *own != key);
            }
            _ => {}
        }
    }
}

fn is_chunk(kind: Type) -> bool {
    matches!(kind, Type::TextMessageChunk | Type::ToolCallChunk | Type::ReasoningMessageChunk)
}

fn key(item: Item, id: &str) -> String {
    format!("{} {id}", item.name())
}

fn chunk(kind: Type, item: Item, id: &str, tag: Option<&str>, opener: &Opener<'_>) -> Value {
    let mut chunk = json!({ "type": kind.name(), item.id_field(): id });
    let told = [&opener.role, &opener.name, &opener.parent];
    if let Some(fields) = chunk.as_object_mut() {
        for (name, value) in item.opener_fields().into_iter().zip(told) {
            if let (Some(name), Some(value)) = (name, value) {
                fields.insert(name.to_owned(), value.as_ref().into());
            }
        }
        if let Some(tag) = tag {
            fields.insert("subagentRunId".into(), tag.into());
        }
    }
    chunk
}
