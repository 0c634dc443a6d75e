//! What comes from elsewhere, brought into AAEP's shapes and limits.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use crate::activity::Context;
use crate::text;

/// How much of an agent's name for itself is passed on.
const NAME_CHARS: usize = 256;

pub(super) fn producer(context: &Context) -> Value {
    let mut producer = object([("agent_id", json!(non_empty(name(&context.agent))))]);
    let optional = [
        ("agent_name", &context.agent_name),
        ("agent_version", &context.agent_version),
        ("model", &context.model),
    ];
    for (key, value) in optional {
        if let Some(value) = value.as_ref().filter(|value| !value.is_empty()) {
            producer.insert(key.into(), json!(name(value)));
        }
    }
    Value::Object(producer)
}

/// Whether both have the same [`producer`].
pub(super) fn same_producer(a: &Context, b: &Context) -> bool {
    (&a.agent, &a.agent_name, &a.agent_version, &a.model)
        == (&b.agent, &b.agent_name, &b.agent_version, &b.model)
}

/// A name for people to read.
pub(super) fn name(text: &str) -> String {
    if is_plain(text) { text.to_owned() } else { text::for_people(text, NAME_CHARS) }
}

/// Whether a name is so plain that nothing can be hidden in it. Most are, and every event has some.
pub(super) fn is_plain(text: &str) -> bool {
    let has = |word: &str| {
        text.as_bytes().windows(word.len()).any(|it| it.eq_ignore_ascii_case(word.as_bytes()))
    };
    text.len() <= NAME_CHARS
        && text.bytes().all(|byte| byte.is_ascii_alphabetic() || matches!(byte, b' ' | b'.'))
        && !["bearer", "akia", "asia", "pass", "secret", "key", "auth"].into_iter().any(has)
}

/// AAEP's required texts may not be empty; a person still has to be told that there was none.
pub(super) fn non_empty(text: String) -> String {
    if text.is_empty() { "-".to_owned() } else { text }
}

/// A name that fits AAEP's pattern for tools.
pub(super) fn tool_name(name: &str) -> String {
    let mut fitting: String = name
        .chars()
        .take(255)
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-') { c } else { '_' })
        .collect();
    if !fitting.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        fitting.insert(0, '_');
    }
    fitting
}

/// The size of an event that every transport takes, with room for its frame.
const EVENT_BYTES: usize = 65_000;

/// What an event takes without its fields, its producer and its summaries, at most.
const ENVELOPE_BYTES: usize = 1_024;

/// What a sentence begins with may come from elsewhere: no text begins inside a character.
pub(super) fn begin_whole(text: &mut String) {
    if !is_whole(text) {
        *text = whole(text).into_owned();
    }
}

pub(super) fn is_whole(text: &str) -> bool {
    !text.starts_with(joins)
}

/// Whether an event whose fields take so many bytes is certainly short enough.
pub(super) fn is_short(most: usize) -> bool {
    most + ENVELOPE_BYTES < EVENT_BYTES
}

/// Brings an event down to the size that subscribers take, the longest text first; whether that was needed.
pub(super) fn within(fields: &mut Map<String, Value>) -> bool {
    let length = |value: &Value| value.as_str().map_or(0, str::len);
    let mut shortened = false;
    while serde_json::to_string(fields).is_ok_and(|text| text.len() > EVENT_BYTES) {
        let texts = fields.iter_mut().filter(|(name, _)| *name != "chunk");
        let longest = texts.map(|(_, value)| value).max_by_key(|value| length(value));
        let Some(text) = longest.and_then(|value| match value {
            Value::String(text) if text.len() > NAME_CHARS => Some(text),
            _ => None,
        }) else {
            return shortened;
        };
        *text = text::shorten(text, text.chars().count() / 2).into_owned();
        shortened = true;
    }
    shortened
}

/// A code that fits AAEP's pattern, in capitals if that is all it lacks.
pub(super) fn error_code(code: &str) -> Option<String> {
    let code = code.to_ascii_uppercase().replace(['-', ' ', '.'], "_");
    let fits = (2..=64).contains(&code.len())
        && code.starts_with(|first: char| first.is_ascii_uppercase())
        && code.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    fits.then_some(code)
}

/// A word that fits AAEP's pattern, in small letters if that is all it lacks.
pub(super) fn reason_word(reason: &str) -> Option<String> {
    error_code(reason).map(|word| word.to_ascii_lowercase())
}

/// Whether a text breaks off inside an emoji.
pub(super) fn is_broken(text: &str) -> bool {
    text.ends_with(JOINER)
}

/// Pieces of at most `limit` characters; never before a mark that belongs to the character before it.
pub(super) fn split(text: &str, limit: usize) -> Vec<&str> {
    if text.len() <= limit {
        return vec![text];
    }
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((cut, _)) = rest.char_indices().nth(limit) {
        let mut cut = cut;
        let inside = |cut: usize| {
            rest.get(cut..).is_some_and(|tail| tail.starts_with(joins))
                || rest.get(..cut).is_some_and(|head| head.ends_with(JOINER))
        };
        while cut > 0 && inside(cut) {
            cut = rest.get(..cut).and_then(|h| h.char_indices().last()).map_or(0, |(at, _)| at);
        }
        let (piece, tail) = match rest.split_at_checked(cut) {
            Some(parts) if cut > 0 => parts,
            // A text of nothing but marks is cut anyway.
            _ => match rest.char_indices().nth(limit).and_then(|(at, _)| rest.split_at_checked(at))
            {
                Some(parts) => parts,
                None => break,
            },
        };
        pieces.push(piece);
        rest = tail;
    }
    pieces.push(rest);
    pieces
}

/// What joins two emoji into one.
const JOINER: char = '\u{200d}';

/// A text that begins with a whole character: a mark without a letter gets a circle to stand on.
pub(super) fn whole(text: &str) -> Cow<'_, str> {
    if is_whole(text) { Cow::Borrowed(text) } else { Cow::Owned(format!("\u{25cc}{text}")) }
}

fn joins(character: char) -> bool {
    text::extends(character)
        || matches!(character, '\u{1f3fb}'..='\u{1f3ff}' | '\u{64b}'..='\u{65f}' | '\u{3099}' | '\u{309a}')
}

pub(super) fn object<const N: usize>(fields: [(&str, Value); N]) -> Map<String, Value> {
    fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}
