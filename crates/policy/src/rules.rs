//! Rule sets: loading them, and trying every rule on its own examples before it counts.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use banister_events::activity::{Action, ActionKind, Decision};
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::effects;
use crate::error::Error;
use crate::evaluate::{Request, matches_alone};
use crate::rule::{Draft, Example, ExampleKind, File, Layer, Rule};
use crate::shell::wrappers;
use crate::subject::Subject;
use crate::tools::{self, Tools};

const PACK: &str = include_str!("../packs/default.yaml");
const PACK_NAME: &str = "packs/default.yaml";

/// Rules, ready to decide. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Rules(Arc<Set>);

#[derive(Debug)]
struct Set {
    rules: Vec<Rule>,
    /// The rules that can speak about a program, by its name, and those that can speak about any.
    by_program: HashMap<String, Vec<usize>>,
    about_any: Vec<usize>,
    environment: Vec<String>,
    tools: Tools,
    hash: String,
}

impl Rules {
    /// Loads the embedded pack, `packs/default.yaml`. The floor always counts.
    pub fn builtin() -> Result<Self, Error> {
        Self::load(&[(Layer::Pack, PACK_NAME, PACK)])
    }

    /// Loads the embedded pack and the user's rules; `name` is for messages.
    pub fn with_user(name: &str, yaml: &str) -> Result<Self, Error> {
        Self::load(&[(Layer::User, name, yaml), (Layer::Pack, PACK_NAME, PACK)])
    }

    /// The SHA-256 of all rule texts, in hex: which rules decided.
    pub fn hash(&self) -> &str {
        &self.0.hash
    }

    pub(crate) fn rules(&self) -> &[Rule] {
        &self.0.rules
    }

    /// The rules that can speak about a program, in their order.
    pub(crate) fn about(&self, program: &str) -> impl Iterator<Item = &Rule> {
        let places = self.0.by_program.get(program).unwrap_or(&self.0.about_any);
        places.iter().filter_map(|at| self.0.rules.get(*at))
    }

    pub(crate) fn tools(&self) -> &Tools {
        &self.0.tools
    }

    /// Whether setting a variable changes nothing an allow rule relies on.
    pub(crate) fn is_harmless(&self, variable: &str) -> bool {
        self.0.environment.iter().any(|name| name == variable)
    }

    fn load(sources: &[(Layer, &str, &str)]) -> Result<Self, Error> {
        let mut set = Set {
            rules: Vec::new(),
            by_program: HashMap::new(),
            about_any: Vec::new(),
            environment: Vec::new(),
            tools: Tools::load()?,
            hash: hash(
                sources
                    .iter()
                    .map(|(_, _, text)| *text)
                    .chain([tools::TEXT, wrappers::TEXT])
                    .chain(effects::TEXTS.map(|(_, text)| text)),
            ),
        };
        let mut drafts = Vec::new();
        for (layer, name, text) in sources {
            let file = File::parse(name, text)?;
            for draft in &file.rules {
                set.rules.push(draft.compile(name, *layer)?);
            }
            set.environment.extend(file.environment);
            drafts.extend(file.rules.into_iter().map(|draft| (*name, draft)));
        }
        wrappers::table()?;
        effects::table()?;
        set.index();
        let rules = Self(Arc::new(set));
        for (rule, (name, draft)) in rules.rules().iter().zip(&drafts) {
            rules.try_examples(rule, name, draft)?;
        }
        Ok(rules)
    }

    fn try_examples(&self, rule: &Rule, name: &str, draft: &Draft) -> Result<(), Error> {
        let matching = draft.matching.iter().map(|example| (example, true));
        let not_matching = draft.not_matching.iter().map(|example| (example, false));
        for (example, should_match) in matching.chain(not_matching) {
            if self.example_matches(rule, draft, &example.value) != should_match {
                return Err(Error::Example {
                    name: name.to_owned(),
                    line: example.referenced.line(),
                    column: example.referenced.column(),
                    rule: draft.id.value.clone(),
                    example: example.value.to_string(),
                    should_match,
                });
            }
        }
        Ok(())
    }

    /// Tries a rule on an example, as if an agent worked in `/home/me/project`.
    fn example_matches(&self, rule: &Rule, draft: &Draft, example: &Example) -> bool {
        let (action, agent) = match example {
            Example::Text(text) => {
                let (tool, kind) = draft.example_tool();
                let action = match kind {
                    ExampleKind::Command => action("Bash", None, &json!({ "command": text })),
                    ExampleKind::Path => {
                        action(self.native(tool), None, &json!({ "file_path": text }))
                    }
                    ExampleKind::Tool => action(text, None, &json!({})),
                };
                (action, None)
            }
            Example::Call { tool, path, command, server, agent } => {
                let mut input = serde_json::Map::new();
                for (key, value) in [("file_path", path), ("command", command)] {
                    if let Some(value) = value {
                        input.insert(key.to_owned(), json!(value));
                    }
                }
                (action(self.native(tool), server.clone(), &input.into()), agent.clone())
            }
        };
        let request = Request {
            agent: agent.as_deref().unwrap_or("claude"),
            action: &action,
            cwd: Some("/home/me/project"),
            home: Some("/home/me"),
            own: &[PathBuf::from("/home/me/.config/banister")],
            links: &[],
        };
        let subject = Subject::new(self.tools(), &request);
        if rule.decision == Decision::Allow {
            matches_alone(self, rule, &subject)
        } else {
            crate::evaluate::matches_any(rule, &subject)
        }
    }

    /// A native name for a class, or the name itself.
    fn native<'n>(&'n self, tool: &'n str) -> &'n str {
        self.tools().example_name(tool).unwrap_or(tool)
    }
}

impl Set {
    fn index(&mut self) {
        let programs: Vec<Option<Vec<&str>>> = self.rules.iter().map(Rule::programs).collect();
        let mut by_program: HashMap<String, Vec<usize>> = HashMap::new();
        for program in programs.iter().flatten().flatten() {
            by_program.entry((*program).to_owned()).or_default();
        }
        for (name, places) in &mut by_program {
            // A rule that allows is written with the very name, one that asks knows it in lower case.
            let speaks = |programs: &Option<Vec<&str>>| {
                programs.as_ref().is_none_or(|programs| programs.contains(&name.as_str()))
            };
            places.extend(
                programs
                    .iter()
                    .enumerate()
                    .filter(|(_, programs)| speaks(programs))
                    .map(|(at, _)| at),
            );
        }
        self.about_any = programs
            .iter()
            .enumerate()
            .filter(|(_, programs)| programs.is_none())
            .map(|(at, _)| at)
            .collect();
        self.by_program = by_program;
    }
}

fn action(tool: &str, server: Option<String>, input: &serde_json::Value) -> Action {
    Action {
        id: String::new(),
        kind: ActionKind::Tool,
        tool: tool.to_owned(),
        server,
        original_name: None,
        input: Some(input.clone()),
        rationale: None,
    }
}

fn hash<'t>(texts: impl Iterator<Item = &'t str>) -> String {
    let mut hasher = Sha256::new();
    // The floor is code: its rules change with the version.
    for text in texts.chain([env!("CARGO_PKG_VERSION")]) {
        hasher.update((text.len() as u64).to_be_bytes());
        hasher.update(text);
    }
    let digit = |value: u8| char::from_digit(value.into(), 16).unwrap_or_default();
    let bytes = hasher.finalize();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
