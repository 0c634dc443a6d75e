//! Native hook payloads → AEP events, by the rules of a mapping file (`aep.mapping/v1`).
//!
//! One YAML file per coding agent, under `agents/`; a new agent or a renamed field is a change of data. The grammar is
//! in `docs/reference/mapping.md`. A payload that no rule knows still becomes an event: of type `x.<hook>`, so that
//! nothing is dropped; and where a hook waits for a decision, one that no rule knows waits too.
//!
//! | module | what it does |
//! |---|---|
//! | `tree` | YAML with places, and problems |
//! | `load` | a file, and what it extends |
//! | `rule` | which rule a payload falls under |
//! | `build` | a payload → the fields of an event |
//! | `path` | paths into an event |
//! | `transform` | what may be done to a value on the way |
//! | `correlate` | action ids for agents that give none |
//! | `control` | how the agent is answered, and where its hooks are registered |
//! | `example` | examples, and whether they hold |

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::dialect::Control;
use rule::Rule;

mod build;
mod control;
mod correlate;
mod example;
mod load;
mod path;
mod rule;
mod transform;
mod tree;

pub use control::{Install, InstallHook};
pub use correlate::Correlator;
pub use tree::{At, Problem};

/// What is wrong with a mapping file.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file is no mapping file.
    #[error("{file}: {}", list(problems))]
    Invalid {
        /// The file.
        file: String,
        /// Everything that is wrong, in the file's order, warnings included.
        problems: Vec<Problem>,
    },
}

fn list(problems: &[Problem]) -> String {
    let errors: Vec<String> =
        problems.iter().filter(|problem| !problem.warning).map(ToString::to_string).collect();
    errors.join("; ")
}

macro_rules! embedded {
    ($name:literal) => {
        ($name, include_str!(concat!("../../agents/", $name, ".yaml")))
    };
}

/// The mapping files that are embedded, one line each: name and text. What extends another comes after it.
const EMBEDDED: &[(&str, &str)] = &[
    embedded!("claude-code"),
    embedded!("codex"),
    embedded!("cursor"),
    embedded!("gemini-cli"),
    embedded!("copilot-cli"),
    embedded!("vscode-copilot"),
    embedded!("qwen-code"),
    embedded!("factory-droid"),
    embedded!("windsurf"),
    embedded!("kiro"),
    embedded!("kimi-code"),
    embedded!("hermes"),
    embedded!("openhands"),
    embedded!("opencode"),
    embedded!("pi"),
    embedded!("cline"),
    embedded!("goose"),
    embedded!("amp"),
    embedded!("antigravity"),
];

/// The mapping of one agent.
#[derive(Debug)]
pub struct Mapping {
    /// The AEP slug, such as `claude`.
    pub agent: String,
    /// The install name, such as `claude-code`.
    pub name: String,
    /// The name for people.
    pub display_name: String,
    /// Other names it goes by.
    pub aliases: Vec<String>,
    /// Where a payload bears its hook's name.
    event_name: Vec<String>,
    /// Where a payload bears the id of its conversation.
    session: Vec<String>,
    /// How this agent is answered, per hook; `*` is any other hook.
    control: BTreeMap<String, Control>,
    install: Option<Install>,
    rules: Vec<Rule>,
    examples: example::Examples,
    warnings: Vec<Problem>,
}

/// What becomes of one hook's payloads.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Row<'a> {
    /// The hook.
    pub hook: &'a str,
    /// The types of events that it may become.
    pub events: Vec<&'a str>,
    /// Whether it waits for a decision.
    pub gated: bool,
}

/// The known coding agents.
#[derive(Debug, Clone)]
pub struct Agents(Arc<[Mapping]>);

/// Read once per process.
static BUILTIN: LazyLock<Result<Agents, Error>> = LazyLock::new(|| {
    EMBEDDED
        .iter()
        .map(|(name, yaml)| Mapping::load(&format!("{name}.yaml"), yaml))
        .collect::<Result<_, _>>()
        .map(Agents)
});

impl Agents {
    /// The agents whose mapping files are embedded.
    ///
    /// ```
    /// let agents = banister_events::aep::mapping::Agents::builtin()?;
    /// assert_eq!(agents.find("claude").map(|agent| agent.name.as_str()), Some("claude-code"));
    /// # Ok::<(), banister_events::aep::mapping::Error>(())
    /// ```
    pub fn builtin() -> Result<Self, Error> {
        BUILTIN.clone()
    }

    /// An agent by its install name, its AEP slug or an alias, in this order.
    pub fn find(&self, name: &str) -> Option<&Mapping> {
        let by = |fits: fn(&Mapping, &str) -> bool| self.0.iter().find(|agent| fits(agent, name));
        by(|agent, name| agent.name == name)
            .or_else(|| by(|agent, name| agent.agent == name))
            .or_else(|| by(|agent, name| agent.aliases.iter().any(|alias| alias == name)))
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
    /// A request that was told before and is asked about again: not among the events, but decided on.
    pub repeated: Option<Value>,
}

impl Mapped {
    /// The request that is decided on.
    pub fn request(&self) -> Option<&Value> {
        let told =
            |event: &&Value| event.get("type").and_then(Value::as_str) == Some("action.requested");
        self.events.iter().find(told).or(self.repeated.as_ref())
    }
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
        load::load(file, yaml)
    }

    /// What is odd in the file, though it works.
    pub fn warnings(&self) -> &[Problem] {
        &self.warnings
    }

    /// The answers this agent understands on a hook.
    pub fn control(&self, hook: &str) -> Option<&Control> {
        self.control.get(hook).or_else(|| self.control.get("*"))
    }

    /// The hooks that are answered in a way of their own; `*` is any other.
    pub fn hooks(&self) -> impl Iterator<Item = (&str, &Control)> {
        self.control.iter().map(|(hook, control)| (hook.as_str(), control))
    }

    /// Where its hooks are registered.
    pub fn install(&self) -> Option<&Install> {
        self.install.as_ref()
    }

    /// The hooks whose answer decides something.
    pub fn gated_hooks(&self) -> Vec<&str> {
        let gated = self.rules.iter().filter(|rule| rule.gated);
        let mut hooks: Vec<&str> = gated.flat_map(|rule| &rule.hooks).map(String::as_str).collect();
        hooks.sort_unstable();
        hooks.dedup();
        hooks
    }

    /// What becomes of each hook that has a rule, by name.
    pub fn rows(&self) -> Vec<Row<'_>> {
        let mut rows: BTreeMap<&str, Row<'_>> = BTreeMap::new();
        for rule in &self.rules {
            for hook in &rule.hooks {
                let row = rows.entry(hook).or_insert_with(|| Row {
                    hook,
                    events: Vec::new(),
                    gated: false,
                });
                row.gated |= rule.gated;
                for body in rule.bodies() {
                    if !row.events.contains(&body.kind.as_str()) {
                        row.events.push(&body.kind);
                    }
                }
            }
        }
        rows.into_values().collect()
    }

    /// The hook that a payload says it is of.
    pub fn hook_of(&self, payload: &Value) -> Option<String> {
        word_at(&self.event_name, payload)
    }

    /// Where a payload says which hook it is of.
    pub fn event_name(&self) -> &[String] {
        &self.event_name
    }

    /// The agent's own id of the conversation that a payload is of.
    pub fn session_of(&self, payload: &Value) -> Option<String> {
        word_at(&self.session, payload)
    }

    /// Turns one native payload into AEP events. A function of its arguments: an action without an id of the agent's
    /// gets one that the same request has again; see [`Mapping::map_with`].
    pub fn map(&self, hook: &str, payload: &Value, stamp: &Stamp<'_>) -> Mapped {
        let (rule, mut mapped) = self.select(hook, payload, stamp);
        if let Some(role) = rule.and_then(|rule| rule.correlate.as_ref()) {
            correlate::alone(role, payload, stamp, &mut mapped.events);
        }
        mapped
    }

    /// Turns one native payload into AEP events, with the memory of its session: requests and results that bear no id
    /// are brought together, and what was told before is left out.
    pub fn map_with(
        &self,
        correlator: &mut Correlator,
        hook: &str,
        payload: &Value,
        stamp: &Stamp<'_>,
    ) -> Mapped {
        let (rule, mut mapped) = self.select(hook, payload, stamp);
        let part = rule.and_then(|rule| rule.correlate.as_ref());
        correlator.settle(part, hook, payload, stamp, &mut mapped);
        mapped
    }

    /// The id of the rule that a payload falls under.
    fn rule_for(&self, hook: &str, payload: &Value) -> Option<&str> {
        let stamp = Stamp { session: "", seq: 0, time: Timestamp::UNIX_EPOCH };
        self.select(hook, payload, &stamp).0.map(|rule| rule.id.as_str())
    }

    /// The first rule that fits and has all it needs, and what it makes of the payload.
    fn select(&self, hook: &str, payload: &Value, stamp: &Stamp<'_>) -> (Option<&Rule>, Mapped) {
        let mut gated = false;
        for rule in self.rules.iter().filter(|rule| rule.is_for(hook)) {
            if !rule.when.holds(payload) {
                continue;
            }
            gated |= rule.gated;
            if rule.drop {
                return (Some(rule), Mapped { events: Vec::new(), gated, repeated: None });
            }
            let mut events: Vec<Value> = Vec::new();
            for body in rule.bodies().filter(|body| body.when.holds(payload)) {
                let envelope = self.envelope(&body.kind, hook, stamp, events.len());
                match body.build(payload, envelope) {
                    Some(event) => events.push(event),
                    None if events.is_empty() && rule.main.is_some() => break,
                    None => {}
                }
            }
            if !events.is_empty() {
                return (Some(rule), Mapped { events, gated, repeated: None });
            }
        }
        // A payload that no rule knows may still be one that the agent waits on.
        gated |= self.rules.iter().any(|rule| rule.gated && rule.is_for(hook));
        let mut event = self.envelope(&format!("x.{}", hook.to_lowercase()), hook, stamp, 0);
        if let Some(id) = self.session_of(payload) {
            event.insert("session".into(), json!({ "id": id }));
        }
        (None, Mapped { events: vec![Value::Object(event)], gated, repeated: None })
    }

    fn envelope(&self, kind: &str, hook: &str, stamp: &Stamp<'_>, n: usize) -> Map<String, Value> {
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
        event
    }
}

/// The first of these places that has a name.
fn word_at(pointers: &[String], payload: &Value) -> Option<String> {
    pointers.iter().find_map(|pointer| match payload.pointer(pointer)? {
        Value::String(word) if !word.is_empty() => Some(word.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    })
}

#[cfg(test)]
#[path = "mapping_tests.rs"]
mod tests;
