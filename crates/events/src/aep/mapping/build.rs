//! A payload and the specs of a rule → the fields of one event.
//!
//! A value that is missing, null or an empty string is left out. Ids that others could not take as they are become
//! hashes, so that equal ids stay equal; the original is kept beside.

use serde_json::{Map, Value, json};

use super::path::{self, MOST_ITEMS, kind_at, names};
use super::rule::{When, is_pointer, not_a_pointer};
use super::transform::{self, Made, Transform};
use super::tree::{At, Node, Problems, Tree};
use crate::aep::event::EVENT;
use crate::aep::types::{CONTENT_KINDS, Type};
use crate::check::shape::Kind;

const SPEC: &[&str] = &[
    "source",
    "sources",
    "value",
    "const",
    "template",
    "default",
    "transform",
    "required",
    "when",
    "display_style",
];
pub(super) const BODY: &[&str] =
    &["canonical_event", "fields", "content", "attachments", "when", "when_any"];
const STYLES: &[&str] = &[
    "plain_text",
    "markdown",
    "indented_json",
    "key_value",
    "path",
    "url",
    "image",
    "video",
    "audio",
    "badge",
    "duration",
    "timestamp",
];
/// Ids that other consumers take only in a certain form.
const IDS: &[&str] = &[
    "action.id",
    "agent.instance_id",
    "decision.policy_id",
    "session.conversation_id",
    "session.id",
    "session.parent.conversation_id",
    "session.parent.spawning_action_id",
    "session.root_conversation_id",
    "session.turn_id",
    "skill.id",
    "tool.id",
];
const MOST_ID: usize = 160;

/// One event of a rule.
#[derive(Debug, Clone)]
pub(super) struct Body {
    pub(super) kind: String,
    pub(super) when: When,
    fields: Vec<(String, Spec)>,
    content: Vec<Entry>,
    attachments: Vec<Entry>,
}

/// Where a value comes from.
#[derive(Debug, Clone, Default)]
pub(super) struct Spec {
    sources: Vec<String>,
    value: Option<Value>,
    template: Vec<Piece>,
    default: Option<Value>,
    transforms: Vec<Transform>,
    required: bool,
    when: When,
}

/// A piece of a `template`.
#[derive(Debug, Clone)]
enum Piece {
    Literal(String),
    Pointer(String),
}

/// One member of `content` or `attachments`, or one per item of a list in the payload.
#[derive(Debug, Clone)]
struct Entry {
    each: Option<String>,
    when: When,
    members: Vec<(String, Spec)>,
}

impl Body {
    /// Reads the part of a rule that is one event.
    pub(super) fn read(
        node: &Node,
        kind: String,
        kind_at: At,
        common: &[(String, Spec)],
        problems: &mut Problems,
    ) -> Self {
        if Type::parse(&kind).is_none() {
            problems.warning(kind_at, format!("`{kind}` is not a canonical event type"));
        }
        // Keys were looked at by the caller, who knows which ones belong here.
        let mut quiet = Problems::default();
        let members = node.members("a rule", &[], &mut quiet);
        let mut fields = common.to_vec();
        for (path, spec) in
            members.get("fields").map(|f| read_fields(f, problems)).unwrap_or_default()
        {
            fields.retain(|(known, _)| *known != path);
            fields.push((path, spec));
        }
        fields.sort_by(|left, right| left.0.cmp(&right.0));
        let mut entries = |name: &str| -> Vec<Entry> {
            let Some(list) = members.get(name) else { return Vec::new() };
            let items = list.list(&format!("`{name}`"), problems);
            items.iter().map(|item| Entry::read(name, item, problems)).collect()
        };
        let content = entries("content");
        let attachments = entries("attachments");
        Self { kind, when: When::default(), fields, content, attachments }
    }

    /// Whether a field is set.
    pub(super) fn sets(&self, path: &str) -> bool {
        self.fields.iter().any(|(known, _)| known == path)
    }

    /// Adds the fields to an event; `None` where a required one, or all content, is missing.
    pub(super) fn build(&self, payload: &Value, event: Map<String, Value>) -> Option<Value> {
        let mut event = Value::Object(event);
        let mut speaks = !self.content.is_empty();
        for (name, entries) in [("content", &self.content), ("attachments", &self.attachments)] {
            let items: Vec<Value> =
                entries.iter().flat_map(|entry| entry.build(payload)).take(MOST_ITEMS).collect();
            if let (false, Some(event)) = (items.is_empty(), event.as_object_mut()) {
                event.insert(name.to_owned(), Value::Array(items));
            }
        }
        for (path, spec) in &self.fields {
            speaks |= path.starts_with("content.");
            match spec.find(payload) {
                Some(made) => put_field(&mut event, path, made),
                None if spec.required => return None,
                None => {}
            }
        }
        let object = event.as_object_mut()?;
        for (name, needed) in [("content", "text"), ("attachments", "type")] {
            let Some(Value::Array(items)) = object.get_mut(name) else { continue };
            items.retain(|item| item.get(needed).is_some_and(Value::is_string));
            if items.is_empty() {
                object.remove(name);
            }
        }
        (!speaks || object.contains_key("content")).then_some(event)
    }
}

/// Reads `fields` or `common`.
pub(super) fn read_fields(node: &Node, problems: &mut Problems) -> Vec<(String, Spec)> {
    let mut fields = Vec::new();
    for (key, spec) in node.entries("`fields`", problems) {
        path::check(key, problems);
        fields.push((key.name.clone(), Spec::read(spec, problems)));
    }
    fields
}

impl Entry {
    fn read(list: &str, node: &Node, problems: &mut Problems) -> Self {
        let mut known: Vec<&str> = Vec::new();
        if let Some(Kind::List { item: Kind::Record(shape), .. }) = kind_at(&EVENT, list) {
            known.extend(names(shape));
        }
        let specs = known.clone();
        known.extend(["each", "when", "when_any"]);
        let members = node.members(list, &known, problems);
        let when = When::read(members.get("when"), members.get("when_any"), problems);
        let each = members.text("each", problems);
        if let (Some(pointer), Some(node)) = (&each, members.get("each"))
            && !is_pointer(pointer)
        {
            problems.error(node.at, not_a_pointer(pointer));
        }
        let mut found = Vec::new();
        for name in specs {
            let Some(node) = members.get(name) else { continue };
            let spec = match &node.tree {
                Tree::Map(_) => Spec::read(node, problems),
                _ => Spec { value: Some(node.json()), ..Spec::default() },
            };
            if let (Some(Value::String(word)), "content", "type") = (&spec.value, list, name)
                && !CONTENT_KINDS.contains(&word.as_str())
            {
                problems.unknown(node.at, "content type", word, CONTENT_KINDS);
            }
            found.push((name.to_owned(), spec));
        }
        let needed: &[&str] = if list == "content" { &["type", "text"] } else { &["type"] };
        for name in needed.iter().filter(|name| members.get(name).is_none()) {
            problems.error(node.at, format!("a member of `{list}` has no `{name}`"));
        }
        Self { each, when, members: found }
    }

    fn build(&self, payload: &Value) -> Vec<Value> {
        let items = match &self.each {
            None => std::slice::from_ref(payload),
            Some(pointer) => {
                payload.pointer(pointer).and_then(Value::as_array).map_or(&[][..], Vec::as_slice)
            }
        };
        items
            .iter()
            .take(MOST_ITEMS)
            .filter(|item| self.when.holds(item))
            .filter_map(|item| self.one(item))
            .collect()
    }

    fn one(&self, item: &Value) -> Option<Value> {
        let mut entry = Map::new();
        for (name, spec) in &self.members {
            let Some(made) = spec.find(item) else {
                if spec.required || name == "text" || name == "type" {
                    return None;
                }
                continue;
            };
            let value = if name == "text" {
                Value::String(transform::text_of(&made.value))
            } else {
                made.value
            };
            entry.insert(name.clone(), value);
            if let (Some(length), "text") = (made.cut_from, name.as_str()) {
                entry.insert("truncated".into(), json!(true));
                entry.insert("original_length".into(), json!(length));
            }
        }
        Some(Value::Object(entry))
    }
}

impl Spec {
    fn read(node: &Node, problems: &mut Problems) -> Self {
        let members = node.members("a field", SPEC, problems);
        let mut spec = Self {
            value: members.get("value").or_else(|| members.get("const")).map(Node::json),
            default: members.get("default").map(Node::json),
            required: members.flag("required", problems),
            when: When::read(members.get("when"), None, problems),
            ..Self::default()
        };
        for name in ["source", "sources"] {
            for pointer in members.get(name).map(Node::one_or_more).unwrap_or_default() {
                let Some(text) = pointer.text("a source", problems) else { continue };
                if is_pointer(&text) {
                    spec.sources.push(text);
                } else {
                    problems.error(pointer.at, not_a_pointer(&text));
                }
            }
        }
        if let (Some(node), Some(text)) =
            (members.get("template"), members.text("template", problems))
        {
            spec.template = pieces(&text);
            for piece in &spec.template {
                if let Piece::Pointer(pointer) = piece
                    && !is_pointer(pointer)
                {
                    problems.error(node.at, not_a_pointer(pointer));
                }
            }
        }
        for transform in members.get("transform").map(Node::one_or_more).unwrap_or_default() {
            spec.transforms.extend(transform::parse(transform, problems));
        }
        if let (Some(node), Some(style)) =
            (members.get("display_style"), members.text("display_style", problems))
            && !STYLES.contains(&style.as_str())
        {
            problems.warning(node.at, format!("`{style}` is not a display style"));
        }
        let given = [members.get("source"), members.get("sources"), members.get("template")];
        if given.iter().all(Option::is_none) && spec.value.is_none() && spec.default.is_none() {
            problems.error(node.at, "a field needs source, sources, template, value or default");
        }
        spec
    }

    fn find(&self, payload: &Value) -> Option<Made> {
        if !self.when.holds(payload) {
            return None;
        }
        let plain = |value: &Value| Made { value: value.clone(), cut_from: None };
        if let Some(value) = &self.value {
            return Some(plain(value));
        }
        let found = self
            .sources
            .iter()
            .filter_map(|pointer| payload.pointer(pointer))
            .find(|value| is_something(value))
            .cloned()
            .or_else(|| self.written(payload));
        found
            .and_then(|value| transform::apply(&self.transforms, value))
            .filter(|made| is_something(&made.value))
            .or_else(|| self.default.as_ref().map(plain))
    }

    /// The template filled in; nothing where one of its values is missing.
    fn written(&self, payload: &Value) -> Option<Value> {
        if self.template.is_empty() {
            return None;
        }
        let mut text = String::new();
        for piece in &self.template {
            match piece {
                Piece::Literal(literal) => text.push_str(literal),
                Piece::Pointer(pointer) => {
                    let value = payload.pointer(pointer).filter(|value| is_something(value))?;
                    text.push_str(&transform::text_of(value));
                }
            }
        }
        Some(Value::String(text))
    }
}

fn is_something(value: &Value) -> bool {
    !value.is_null() && value.as_str() != Some("")
}

/// `{/pointer}` is a value of the payload, anything else is itself.
fn pieces(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{/") {
        let Some((pointer, tail)) = after.split_once('}') else { break };
        if !before.is_empty() {
            pieces.push(Piece::Literal(before.to_owned()));
        }
        pieces.push(Piece::Pointer(format!("/{pointer}")));
        rest = tail;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Literal(rest.to_owned()));
    }
    pieces
}

fn put_field(event: &mut Value, path: &str, made: Made) {
    let mut value = made.value;
    if path == "time" {
        let Some(time) = value.as_str().and_then(|text| text.parse().ok()) else { return };
        value = json!(crate::event::time_text(time));
    }
    if let (Some(Kind::Text { .. }), Value::Number(_) | Value::Bool(_)) =
        (kind_at(&EVENT, path), &value)
    {
        value = Value::String(value.to_string());
    }
    if let (Some(id), true) = (value.as_str(), IDS.contains(&path))
        && !is_safe_id(id)
    {
        let original: String = id.chars().take(512).collect();
        put(event, &["extensions", "x-banister", "original_ids", path], json!(original));
        value = json!(crate::id::derive("h_", &[id]));
    }
    let segments: Vec<&str> = path.split('.').collect();
    put(event, &segments, value);
    if let (Some(length), Some(("text", parents))) =
        (made.cut_from, segments.split_last().map(|(l, p)| (*l, p)))
    {
        for (name, value) in [("truncated", json!(true)), ("original_length", json!(length))] {
            let beside: Vec<&str> = parents.iter().copied().chain([name]).collect();
            put(event, &beside, value);
        }
    }
}

fn is_safe_id(id: &str) -> bool {
    id.len() <= MOST_ID
        && id.starts_with(|first: char| first.is_ascii_alphanumeric())
        && id.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b':' | b'-'))
}

/// Puts a value at a path, making objects and lists on the way.
pub(super) fn put(target: &mut Value, path: &[&str], value: Value) {
    let Some((head, rest)) = path.split_first() else {
        *target = value;
        return;
    };
    if let Ok(index) = head.parse::<usize>() {
        if !target.is_array() {
            *target = Value::Array(Vec::new());
        }
        if let (Value::Array(items), true) = (target, index < MOST_ITEMS) {
            if items.len() <= index {
                items.resize(index + 1, Value::Null);
            }
            if let Some(item) = items.get_mut(index) {
                put(item, rest, value);
            }
        }
        return;
    }
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    if let Value::Object(members) = target {
        put(members.entry(*head).or_insert(Value::Null), rest, value);
    }
}
