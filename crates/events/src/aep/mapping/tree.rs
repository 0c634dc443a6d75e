//! YAML as a tree that knows where each of its parts stands.
//!
//! Everything wrong with a file is collected, not only the first thing, each with line and column. A key that occurs
//! twice counts as its last occurrence and is warned about: published mapping files have such keys.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::{DuplicateKeyPolicy, Spanned};

use crate::text::nearest;

/// A place in a file, counted from 1; 0 where it is not known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct At {
    /// The line.
    pub line: u64,
    /// The column.
    pub column: u64,
}

/// Something that is wrong with a mapping file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// Whether the file works all the same.
    pub warning: bool,
    /// Where.
    pub at: At,
    /// What.
    pub message: String,
    /// What was probably meant.
    pub hint: Option<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)?;
        if self.at.line > 0 {
            write!(out, " at line {}, column {}", self.at.line, self.at.column)?;
        }
        match &self.hint {
            Some(hint) => write!(out, ": did you mean `{hint}`?"),
            None => Ok(()),
        }
    }
}

/// The problems found so far.
#[derive(Debug, Default)]
pub(super) struct Problems(pub(super) Vec<Problem>);

impl Problems {
    pub(super) fn error(&mut self, at: At, message: impl Into<String>) {
        self.0.push(Problem { warning: false, at, message: message.into(), hint: None });
    }

    pub(super) fn warning(&mut self, at: At, message: impl Into<String>) {
        self.0.push(Problem { warning: true, at, message: message.into(), hint: None });
    }

    /// A word that is not one of those that are known here.
    pub(super) fn unknown(&mut self, at: At, what: &str, word: &str, known: &[&str]) {
        self.0.push(Problem {
            warning: false,
            at,
            message: format!("unknown {what} `{word}`"),
            hint: nearest(word, known.iter().copied()).map(str::to_owned),
        });
    }
}

/// A value and where it stands.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) at: At,
    pub(super) tree: Tree,
}

#[derive(Debug, Clone)]
pub(super) enum Tree {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

#[derive(Debug, Clone)]
pub(super) struct Key {
    pub(super) at: At,
    pub(super) name: String,
}

/// Reads a file; what is no YAML is one problem.
pub(super) fn parse(yaml: &str) -> Result<Node, Problem> {
    let options = serde_saphyr::options! {
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        strict_booleans: true,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(yaml, options).map_err(|error| {
        let at = error.location().map(|at| At { line: at.line(), column: at.column() });
        let text = error.to_string();
        let message = match text.rfind(" at line ") {
            Some(end) if at.is_some() => text.get(..end).unwrap_or(&text).to_owned(),
            _ => text,
        };
        Problem { warning: false, at: at.unwrap_or_default(), message, hint: None }
    })
}

impl Node {
    /// The value without its places.
    pub(super) fn json(&self) -> Value {
        match &self.tree {
            Tree::Null => Value::Null,
            Tree::Bool(value) => Value::Bool(*value),
            Tree::Number(value) => Value::Number(value.clone()),
            Tree::Text(value) => Value::String(value.clone()),
            Tree::List(items) => items.iter().map(Self::json).collect(),
            Tree::Map(entries) => {
                let mut map = Map::new();
                for (key, value) in entries {
                    map.insert(key.name.clone(), value.json());
                }
                Value::Object(map)
            }
        }
    }

    pub(super) fn text(&self, what: &str, problems: &mut Problems) -> Option<String> {
        match &self.tree {
            Tree::Text(text) => Some(text.clone()),
            // A name such as 7 or true is a name all the same.
            Tree::Number(number) => Some(number.to_string()),
            Tree::Bool(word) => Some(word.to_string()),
            _ => {
                problems.error(self.at, format!("{what} must be a string"));
                None
            }
        }
    }

    pub(super) fn flag(&self, what: &str, problems: &mut Problems) -> bool {
        if let Tree::Bool(value) = self.tree {
            return value;
        }
        problems.error(self.at, format!("{what} must be true or false"));
        false
    }

    pub(super) fn number(&self, what: &str, most: u64, problems: &mut Problems) -> Option<u64> {
        let number = match &self.tree {
            Tree::Number(number) => number.as_u64(),
            _ => None,
        };
        let fits = number.filter(|number| *number <= most);
        if fits.is_none() {
            problems.error(self.at, format!("{what} must be a whole number up to {most}"));
        }
        fits
    }

    pub(super) fn list(&self, what: &str, problems: &mut Problems) -> &[Self] {
        match &self.tree {
            Tree::List(items) => items,
            Tree::Null => &[],
            _ => {
                problems.error(self.at, format!("{what} must be a list"));
                &[]
            }
        }
    }

    /// One or several of something.
    pub(super) fn one_or_more(&self) -> &[Self] {
        match &self.tree {
            Tree::List(items) => items,
            Tree::Null => &[],
            _ => std::slice::from_ref(self),
        }
    }

    /// The entries of a mapping, each key once.
    pub(super) fn entries(&self, what: &str, problems: &mut Problems) -> Vec<(&Key, &Self)> {
        let entries = match &self.tree {
            Tree::Map(entries) => entries.as_slice(),
            Tree::Null => &[],
            _ => {
                problems.error(self.at, format!("{what} must be a mapping"));
                &[]
            }
        };
        let mut found: Vec<(&Key, &Self)> = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            match found.iter_mut().find(|(known, _)| known.name == key.name) {
                None => found.push((key, value)),
                Some(first) => {
                    let message =
                        format!("the key `{}` occurs twice, the last one counts", key.name);
                    problems.warning(key.at, message);
                    *first = (key, value);
                }
            }
        }
        found
    }

    /// The members of a mapping whose keys are all known; keys that begin with `x-` are somebody else's.
    pub(super) fn members(
        &self,
        what: &str,
        known: &[&str],
        problems: &mut Problems,
    ) -> Members<'_> {
        let entries = self.entries(what, problems);
        for (key, _) in &entries {
            if !known.contains(&key.name.as_str()) && !key.name.starts_with("x-") {
                problems.unknown(key.at, "key", &key.name, known);
            }
        }
        Members { at: self.at, entries }
    }
}

/// The members of a mapping.
pub(super) struct Members<'a> {
    pub(super) at: At,
    entries: Vec<(&'a Key, &'a Node)>,
}

impl<'a> Members<'a> {
    pub(super) fn get(&self, name: &str) -> Option<&'a Node> {
        self.entries.iter().find(|(key, _)| key.name == name).map(|(_, node)| *node)
    }

    pub(super) fn text(&self, name: &str, problems: &mut Problems) -> Option<String> {
        self.get(name)?.text(&format!("`{name}`"), problems)
    }

    pub(super) fn flag(&self, name: &str, problems: &mut Problems) -> bool {
        self.get(name).is_some_and(|node| node.flag(&format!("`{name}`"), problems))
    }

    /// A string that has to be there.
    pub(super) fn needed(&self, name: &str, what: &str, problems: &mut Problems) -> Option<String> {
        if self.get(name).is_none() {
            problems.error(self.at, format!("{what} has no `{name}`"));
        }
        self.text(name, problems).filter(|text| {
            if text.is_empty() {
                problems.error(self.at, format!("`{name}` is empty"));
            }
            !text.is_empty()
        })
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let found = Spanned::<Tree>::deserialize(deserializer)?;
        Ok(Self {
            at: At { line: found.defined.line(), column: found.defined.column() },
            tree: found.value,
        })
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any)
    }
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Tree;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("YAML")
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }

    fn visit_none<E>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Tree, E> {
        Ok(Tree::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Tree, E> {
        Ok(Tree::Number(value.into()))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Tree, E> {
        Number::from_f64(value)
            .map(Tree::Number)
            .ok_or_else(|| E::custom("JSON has no such number"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Tree, E> {
        Ok(Tree::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Tree, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Tree::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Tree, A::Error> {
        let mut map = Vec::new();
        while let Some(key) = entries.next_key::<Spanned<String>>()? {
            let at = At { line: key.defined.line(), column: key.defined.column() };
            map.push((Key { at, name: key.value }, entries.next_value()?));
        }
        Ok(Tree::Map(map))
    }
}
