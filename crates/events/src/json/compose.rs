//! Value → text and nodes, in one pass: a message that is made here is read like one that came, without being parsed.

use serde_json::Value;

use super::{DEEPEST, Node, Noticed, Tag, is_plain};

/// The text of a value as [`serde_json`] writes it, and the nodes that a parser would find in it.
pub(super) fn compose(value: &Value) -> (String, Vec<Node>, Noticed) {
    let mut compose = Compose { text: Vec::new(), nodes: Vec::new(), noticed: Noticed::default() };
    compose.value(value, 0);
    // Offsets are kept in 32 bits. What is larger than all limits of the doors together is nothing.
    if u32::try_from(compose.text.len()).is_err() {
        return self::compose(&Value::Null);
    }
    // Values hold text only, and their writer writes text only.
    let text = String::from_utf8(compose.text).unwrap_or_default();
    (text, compose.nodes, compose.noticed)
}

struct Compose {
    text: Vec<u8>,
    nodes: Vec<Node>,
    noticed: Noticed,
}

#[expect(clippy::cast_possible_truncation, reason = "the length of the text is checked at the end")]
impl Compose {
    fn push(&mut self, start: usize, tag: Tag) {
        let next = self.nodes.len() as u32 + 1;
        self.nodes.push(Node { start: start as u32, end: self.text.len() as u32, next, tag });
    }

    fn value(&mut self, value: &Value, depth: usize) {
        let start = self.text.len();
        match value {
            Value::Null => self.word("null", Tag::Null),
            Value::Bool(false) => self.word("false", Tag::False),
            Value::Bool(true) => self.word("true", Tag::True),
            Value::Number(number) => {
                // Writing to memory does not fail.
                serde_json::to_writer(&mut self.text, number).ok();
                if number.is_f64() {
                    self.push(start, Tag::Float);
                } else {
                    let length = self.text.len() - start;
                    self.noticed.longest_integer = self.noticed.longest_integer.max(length);
                    self.push(start, Tag::Integer);
                }
            }
            Value::String(words) => self.string(words),
            Value::Array(items) => {
                let node = self.open(depth + 1, b'[', Tag::Array);
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        self.text.push(b',');
                    }
                    self.value(item, depth + 1);
                }
                self.close(node, b']');
            }
            Value::Object(fields) => {
                let node = self.open(depth + 1, b'{', Tag::Object);
                for (at, (name, field)) in fields.iter().enumerate() {
                    if at > 0 {
                        self.text.push(b',');
                    }
                    self.string(name);
                    self.text.push(b':');
                    self.value(field, depth + 1);
                }
                self.close(node, b'}');
            }
        }
    }

    fn word(&mut self, word: &str, tag: Tag) {
        let start = self.text.len();
        self.text.extend_from_slice(word.as_bytes());
        self.push(start, tag);
    }

    fn string(&mut self, words: &str) {
        let start = self.text.len();
        let tag = if is_plain(words) {
            self.text.push(b'"');
            self.text.extend_from_slice(words.as_bytes());
            self.text.push(b'"');
            Tag::Plain
        } else {
            // Writing to memory does not fail.
            serde_json::to_writer(&mut self.text, words).ok();
            Tag::Escaped
        };
        let length = self.text.len() - start - 1;
        self.noticed.longest_string = self.noticed.longest_string.max(length);
        self.push(start, tag);
    }

    fn open(&mut self, depth: usize, bracket: u8, tag: Tag) -> usize {
        let (node, start) = (self.nodes.len(), self.text.len());
        self.noticed.depth = self.noticed.depth.max(depth);
        if depth > DEEPEST {
            self.noticed.too_deep.get_or_insert(start as u32);
        }
        self.text.push(bracket);
        self.push(start, tag);
        node
    }

    fn close(&mut self, node: usize, bracket: u8) {
        self.text.push(bracket);
        let (end, next) = (self.text.len() as u32, self.nodes.len() as u32);
        if let Some(node) = self.nodes.get_mut(node) {
            (node.end, node.next) = (end, next);
        }
    }
}
