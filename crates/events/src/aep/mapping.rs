//! Native hook payloads → AEP events, by the rules of a mapping file (`aep.mapping/v1`).
//!
//! One YAML file per coding agent, under `agents/`; a new agent or a renamed field is a change of data. A payload that no
//! rule knows still becomes an event: of type `x.<hook>`, so that nothing is dropped.
//!
//! The keys `schema_version`, `agent`, `display_name`, `events`, `id`, `source_event`, `when`, `canonical_event`, `fields`
//! and `content` are the protocol's; `x-mapping: 1` marks Banister's completions: `name`, `common`, `sources`, `value`,
//! `default`, `transform`, `emit`, `gated`, `control`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use regex::Regex;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::dialect::Control;

/// What is wrong with a mapping file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The YAML does not have the shape of a mapping file.
    #[error("{file}: {source}")]
    Yaml {
        /// The file.
        file: String,
        /// Where and what, with line and column.
        source: Box<serde_saphyr::Error>,
    },
    /// The YAML has the shape but does not make sense.
    #[error("{file}: rule {rule}: {message}")]
    Rule {
        /// The file.
        file: String,
        /// The rule's id.
        rule: String,
        /// What is wrong.
        message: String,
    },
}

/// The mapping of one agent.
#[derive(Debug)]
pub struct Mapping {
    /// The AEP slug, such as `claude`.
    pub agent: String,
    /// The install name, such as `claude-code`.
    pub name: String,
    /// The name for people.
    pub display_name: String,
    /// How this agent is answered, per hook; `*` is any other hook.
    control: BTreeMap<String, Control>,
    rules: Vec<Rule>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    schema_version: String,
    #[serde(rename = "x-mapping", default)]
    completions: u32,
    agent: String,
    name: Option<String>,
    display_name: Option<String>,
    #[serde(default)]
    common: BTreeMap<String, Spec>,
    events: Vec<RuleText>,
    #[serde(default)]
    control: BTreeMap<String, Control>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleText {
    id: String,
    source_event: String,
    #[serde(default)]
    when: BTreeMap<String, Condition>,
    #[serde(default)]
    gated: bool,
    canonical_event: Option<String>,
    #[serde(default)]
    fields: BTreeMap<String, Spec>,
    #[serde(default)]
    content: Vec<ContentSpec>,
    /// Several events from one payload, each only when all its required fields are there.
    #[serde(default)]
    emit: Vec<Body>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    canonical_event: String,
    #[serde(default)]
    fields: BTreeMap<String, Spec>,
    #[serde(default)]
    content: Vec<ContentSpec>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Spec {
    source: Option<String>,
    #[serde(default)]
    sources: Vec<String>,
    value: Option<Value>,
    default: Option<Value>,
    transform: Option<String>,
    #[serde(default)]
    required: bool,
    /// A hint for consumers that render fields by themselves.
    #[serde(rename = "display_style")]
    _display_style: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ContentSpec {
    r#type: String,
    text: Spec,
    style: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Condition {
    Test(Test),
    Equals(Value),
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Test {
    exists: Option<bool>,
    prefix: Option<String>,
    r#in: Option<Vec<Value>>,
}

#[derive(Debug)]
struct Rule {
    source_event: String,
    when: Vec<(String, Condition)>,
    gated: bool,
    bodies: Vec<Compiled>,
}

#[derive(Debug)]
struct Compiled {
    kind: String,
    fields: Vec<(String, Spec, Option<Transform>)>,
    content: Vec<ContentSpec>,
}

#[derive(Debug, Clone)]
enum Transform {
    ToString,
    Capture(Regex),
}

/// The mapping files that are embedded: name and text.
const EMBEDDED: [(&str, &str); 1] =
    [("claude-code.yaml", include_str!("../../agents/claude-code.yaml"))];

/// The known coding agents.
#[derive(Debug)]
pub struct Agents(Vec<Mapping>);

impl Agents {
    /// The agents whose mapping files are embedded.
    ///
    /// ```
    /// let agents = banister_events::aep::mapping::Agents::builtin()?;
    /// assert_eq!(agents.find("claude").map(|agent| agent.name.as_str()), Some("claude-code"));
    /// # Ok::<(), banister_events::aep::mapping::Error>(())
    /// ```
    pub fn builtin() -> Result<Self, Error> {
        EMBEDDED
            .iter()
            .map(|(file, yaml)| Mapping::load(file, yaml))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// An agent by its install name or its AEP slug.
    pub fn find(&self, name: &str) -> Option<&Mapping> {
        self.0.iter().find(|mapping| mapping.name == name || mapping.agent == name)
    }

    /// All agents.
    pub fn iter(&self) -> impl Iterator<Item = &Mapping> {
        self.0.iter()
    }
}

/// What one native payload became.
#[derive(Debug, Clone, PartialEq)]
pub struct Mapped {
    /// The AEP events, in order.
    pub events: Vec<Value>,
    /// Whether the agent waits for an answer that decides something.
    pub gated: bool,
}

/// What the receiver adds to a payload: the id and the time of the events made from it.
#[derive(Debug, Clone)]
pub struct Stamp<'a> {
    /// Banister's session id.
    pub session: &'a str,
    /// The record's number in its session.
    pub seq: u64,
    /// When it was received.
    pub time: Timestamp,
}

impl Mapping {
    /// Loads a mapping from YAML; `file` is its name in messages.
    pub fn load(file: &str, yaml: &str) -> Result<Self, Error> {
        let text: File = serde_saphyr::from_str(yaml)
            .map_err(|source| Error::Yaml { file: file.to_owned(), source: Box::new(source) })?;
        let wrong = |rule: &str, message: String| Error::Rule {
            file: file.to_owned(),
            rule: rule.to_owned(),
            message,
        };
        if text.schema_version != "aep.mapping/v1" || text.completions > 1 {
            return Err(wrong("-", "schema_version must be aep.mapping/v1, x-mapping 1".into()));
        }
        if text.events.is_empty() {
            return Err(wrong("-", "events is empty".into()));
        }
        let mut rules = Vec::with_capacity(text.events.len());
        let mut ids = std::collections::BTreeSet::new();
        for rule in text.events {
            if !ids.insert(rule.id.clone()) {
                return Err(wrong(&rule.id, "this id is used twice".into()));
            }
            for pointer in rule.when.keys() {
                check_pointer(pointer).map_err(|message| wrong(&rule.id, message))?;
            }
            let mut bodies = Vec::new();
            if let Some(kind) = rule.canonical_event {
                bodies.push(Body {
                    canonical_event: kind,
                    fields: rule.fields.clone(),
                    content: rule.content.clone(),
                });
            }
            bodies.extend(rule.emit);
            let bodies = bodies
                .into_iter()
                .map(|body| compile(&text.common, body))
                .collect::<Result<Vec<_>, _>>()
                .map_err(|message| wrong(&rule.id, message))?;
            rules.push(Rule {
                source_event: rule.source_event,
                when: rule.when.into_iter().collect(),
                gated: rule.gated,
                bodies,
            });
        }
        // A rule with conditions is more specific than one without; otherwise the file's order holds.
        rules.sort_by_key(|rule| rule.when.is_empty());
        Ok(Self {
            name: text.name.unwrap_or_else(|| text.agent.clone()),
            display_name: text.display_name.unwrap_or_else(|| text.agent.clone()),
            agent: text.agent,
            control: text.control,
            rules,
        })
    }

    /// The answers this agent understands on a hook.
    pub fn control(&self, hook: &str) -> Option<&Control> {
        self.control.get(hook).or_else(|| self.control.get("*"))
    }

    /// The hooks that are answered in a way of their own; `*` is any other.
    pub fn hooks(&self) -> impl Iterator<Item = (&str, &Control)> {
        self.control.iter().map(|(hook, control)| (hook.as_str(), control))
    }

    /// The hooks whose answer decides something.
    pub fn gated_hooks(&self) -> Vec<&str> {
        let mut hooks: Vec<&str> = self
            .rules
            .iter()
            .filter(|rule| rule.gated)
            .map(|rule| rule.source_event.as_str())
            .collect();
        hooks.sort_unstable();
        hooks.dedup();
        hooks
    }

    /// Turns one native payload into AEP events.
    pub fn map(&self, hook: &str, payload: &Value, stamp: &Stamp<'_>) -> Mapped {
        let rule = self.rules.iter().find(|rule| {
            rule.source_event == hook && rule.when.iter().all(|(at, test)| holds(payload, at, test))
        });
        let mut events: Vec<Value> = rule
            .iter()
            .flat_map(|rule| &rule.bodies)
            .filter_map(|body| body.build(payload))
            .enumerate()
            .map(|(n, (kind, fields))| self.envelope(&kind, hook, fields, stamp, n))
            .collect();
        if events.is_empty() {
            let kind = format!("x.{}", hook.to_lowercase());
            let mut fields = Map::new();
            if let Some(id) = payload.get("session_id").and_then(Value::as_str) {
                fields.insert("session".into(), json!({ "id": id }));
            }
            events.push(self.envelope(&kind, hook, fields, stamp, 0));
        }
        Mapped { events, gated: rule.is_some_and(|rule| rule.gated) }
    }

    fn envelope(
        &self,
        kind: &str,
        hook: &str,
        fields: Map<String, Value>,
        stamp: &Stamp<'_>,
        n: usize,
    ) -> Value {
        let id =
            crate::id::derive("evt_", &[stamp.session, &stamp.seq.to_string(), &n.to_string()]);
        let mut event = Map::new();
        event.insert("aep_version".into(), json!(super::event::VERSION));
        event.insert("id".into(), json!(id));
        event.insert("type".into(), json!(kind));
        event.insert("time".into(), json!(crate::event::time_text(stamp.time)));
        event.insert("hook".into(), json!(hook));
        event.insert(
            "agent".into(),
            json!({ "slug": self.agent, "display_name": self.display_name }),
        );
        event.extend(fields);
        Value::Object(event)
    }
}

fn compile(common: &BTreeMap<String, Spec>, body: Body) -> Result<Compiled, String> {
    let mut specs = common.clone();
    specs.extend(body.fields);
    let mut fields = Vec::with_capacity(specs.len());
    for (path, spec) in specs {
        for pointer in spec.source.iter().chain(&spec.sources) {
            check_pointer(pointer)?;
        }
        let transform = spec.transform.as_deref().map(parse_transform).transpose()?;
        fields.push((path, spec, transform));
    }
    for content in &body.content {
        for pointer in content.text.source.iter().chain(&content.text.sources) {
            check_pointer(pointer)?;
        }
    }
    Ok(Compiled { kind: body.canonical_event, fields, content: body.content })
}

fn check_pointer(pointer: &str) -> Result<(), String> {
    if pointer.is_empty() || pointer.starts_with('/') {
        Ok(())
    } else {
        Err(format!("{pointer:?} is not a JSON Pointer: it must start with /"))
    }
}

fn parse_transform(text: &str) -> Result<Transform, String> {
    if text == "to_string" {
        return Ok(Transform::ToString);
    }
    let pattern = text
        .strip_prefix("regex:")
        .and_then(|rest| rest.rsplit_once(':'))
        .filter(|(_, group)| *group == "1")
        .map(|(pattern, _)| pattern)
        .ok_or_else(|| format!("unknown transform {text:?}: use to_string or regex:PATTERN:1"))?;
    Regex::new(pattern).map(Transform::Capture).map_err(|error| error.to_string())
}

fn holds(payload: &Value, pointer: &str, condition: &Condition) -> bool {
    let found = payload.pointer(pointer).filter(|value| !value.is_null());
    match condition {
        Condition::Equals(wanted) => found == Some(wanted),
        Condition::Test(test) => {
            let word = found.and_then(Value::as_str);
            test.exists.is_none_or(|wanted| found.is_some() == wanted)
                && test.prefix.as_ref().is_none_or(|p| word.is_some_and(|word| word.starts_with(p)))
                && test.r#in.as_ref().is_none_or(|list| found.is_some_and(|v| list.contains(v)))
        }
    }
}

impl Spec {
    fn find(&self, payload: &Value) -> Option<Value> {
        if let Some(value) = &self.value {
            return Some(value.clone());
        }
        self.source
            .iter()
            .chain(&self.sources)
            .filter_map(|pointer| payload.pointer(pointer))
            .find(|value| !value.is_null() && value.as_str() != Some(""))
            .or(self.default.as_ref())
            .cloned()
    }
}

impl Compiled {
    /// The event's type and fields, or `None` when a required field or all content is missing.
    fn build(&self, payload: &Value) -> Option<(String, Map<String, Value>)> {
        let mut fields = Map::new();
        for (path, spec, transform) in &self.fields {
            let value = spec.find(payload).and_then(|value| match transform {
                None => Some(value),
                Some(Transform::ToString) => Some(match value {
                    Value::String(text) => Value::String(text),
                    other => Value::String(other.to_string()),
                }),
                Some(Transform::Capture(pattern)) => value
                    .as_str()
                    .and_then(|text| pattern.captures(text))
                    .and_then(|found| found.get(1))
                    .map(|found| json!(found.as_str())),
            });
            match value {
                Some(value) => put(&mut fields, path, value),
                None if spec.required => return None,
                None => {}
            }
        }
        if !self.content.is_empty() {
            let content: Vec<Value> = self
                .content
                .iter()
                .filter_map(|spec| {
                    let text = match spec.text.find(payload)? {
                        Value::String(text) => text,
                        other => other.to_string(),
                    };
                    let mut entry = json!({ "type": spec.r#type, "text": text });
                    if let (Some(style), Some(entry)) = (&spec.style, entry.as_object_mut()) {
                        entry.insert("style".into(), json!(style));
                    }
                    Some(entry)
                })
                .collect();
            if content.is_empty() {
                return None;
            }
            fields.insert("content".into(), Value::Array(content));
        }
        Some((self.kind.clone(), fields))
    }
}

/// Puts a value at a dotted path (`session.parent.relation`), making objects on the way.
fn put(target: &mut Map<String, Value>, path: &str, value: Value) {
    match path.split_once('.') {
        None => {
            target.insert(path.to_owned(), value);
        }
        Some((head, rest)) => {
            let inner = target.entry(head).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(inner) = inner {
                put(inner, rest, value);
            }
        }
    }
}

#[cfg(test)]
#[path = "mapping_tests.rs"]
mod tests;
