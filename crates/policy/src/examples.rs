//! Loading rules: they are compiled, and somebody's own are tried on their own examples before they count.
//!
//! The embedded rules are tried by this crate's tests, not at every start.

use banister_events::activity::{Action, ActionKind, Decision};
use serde_json::json;

use crate::error::Error;
use crate::evaluate::{matches_alone, matches_any};
use crate::layer::Layer;
use crate::request::ActionRequest;
use crate::rule::{ExampleKind, PolicyRule, RuleDraft, RuleExample, RuleOrigin};
use crate::rules::{Layers, RuleSource, Rules};

/// A rule, tried on one of its examples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    /// The rule's id, with the layer in front.
    pub rule: String,
    /// The file it is in.
    pub file: String,
    /// The line of the example, from 1.
    pub line: u64,
    /// The column of the example, from 1.
    pub column: u64,
    /// The example.
    pub example: String,
    /// Whether the rule had to match it.
    pub should_match: bool,
    /// Whether it did.
    pub matches: bool,
}

impl Tried {
    /// Whether the rule does what its example says.
    pub fn holds(&self) -> bool {
        self.matches == self.should_match
    }
}

impl Rules {
    /// Loads the pack `default`. The floor always counts.
    pub fn builtin() -> Result<Self, Error> {
        Self::load(&Layers::default())
    }

    /// Loads the pack `default` and the user's rules; `name` is for messages.
    pub fn with_user(name: &str, yaml: &str) -> Result<Self, Error> {
        let user = Some(RuleSource { name, text: yaml });
        Self::load(&Layers { user, ..Layers::default() })
    }

    /// Loads all layers, and tries the rules of every layer but the pack on their own examples.
    ///
    /// The strictest rule wins: deny, ask, allow; nothing matched is ask. An allow lifts an ask only if it names it under
    /// `lifts` and is at least as narrow. It never lifts a deny, the floor, an opaque reading or an ask of the project, and an ask of
    /// the organisation only if that is `liftable`.
    ///
    /// ```
    /// use banister_policy::{Layers, Pack, RuleSource, Rules};
    ///
    /// let project = RuleSource {
    ///     name: ".banister.yaml",
    ///     text: "schema: banister.policy/v1
    /// rules:
    ///   - id: migrate
    ///     decision: allow
    ///     argv: [[make, migrate]]
    ///     reason: Nothing can go wrong.
    /// ",
    /// };
    /// let layers = Layers { pack: Pack::Strict, project: Some(project), ..Layers::default() };
    /// assert_eq!(
    ///     Rules::load(&layers).unwrap_err().to_string(),
    ///     ".banister.yaml:4:5: rule `migrate`: the rules of a project can only ask and deny; \
    ///      move what it allows to your own rules"
    /// );
    /// ```
    pub fn load(layers: &Layers<'_>) -> Result<Self, Error> {
        let rules = Self::compile(layers)?;
        match rules.first_failure() {
            Some(error) => Err(error),
            None => Ok(rules),
        }
    }

    /// Tries every rule on its own examples, those of the pack as well.
    pub fn try_examples(&self) -> impl Iterator<Item = Tried> {
        self.with_origins().flat_map(|(rule, origin)| self.tried(rule, origin))
    }

    /// The first example of somebody's own rules that does not hold.
    fn first_failure(&self) -> Option<Error> {
        self.with_origins()
            .filter(|(rule, _)| rule.layer != Layer::Pack)
            .flat_map(|(rule, origin)| self.tried(rule, origin).map(move |tried| (origin, tried)))
            .find(|(_, tried)| !tried.holds())
            .map(|(origin, tried)| Error::Example {
                name: tried.file,
                line: tried.line,
                column: tried.column,
                rule: origin.draft.id.value.clone(),
                example: tried.example,
                should_match: tried.should_match,
            })
    }

    fn tried<'r>(
        &'r self,
        rule: &'r PolicyRule,
        origin: &'r RuleOrigin,
    ) -> impl Iterator<Item = Tried> {
        let RuleOrigin { name, draft } = origin;
        let matching = draft.matching.iter().map(|example| (example, true));
        let not_matching = draft.not_matching.iter().map(|example| (example, false));
        matching.chain(not_matching).map(move |(example, should_match)| Tried {
            rule: rule.id.clone(),
            file: name.clone(),
            line: example.referenced.line(),
            column: example.referenced.column(),
            example: example.value.to_string(),
            should_match,
            matches: self.example_matches(rule, draft, &example.value),
        })
    }

    /// Tries a rule on an example.
    fn example_matches(&self, rule: &PolicyRule, draft: &RuleDraft, example: &RuleExample) -> bool {
        let (action, agent) = match example {
            RuleExample::Text(text) => {
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
            RuleExample::Call { tool, path, command, server, agent } => {
                let mut input = serde_json::Map::new();
                for (key, value) in [("file_path", path), ("command", command)] {
                    if let Some(value) = value {
                        input.insert(key.to_owned(), json!(value));
                    }
                }
                (action(self.native(tool), server.clone(), &input.into()), agent.clone())
            }
        };
        let mut request = ActionRequest::example(&action);
        request.agent = agent.as_deref().unwrap_or(request.agent);
        let subject = self.read(&request);
        if rule.decision == Decision::Allow {
            matches_alone(self, rule, &subject)
        } else {
            matches_any(rule, &subject)
        }
    }

    /// A native name for a class, or the name itself.
    fn native<'n>(&'n self, tool: &'n str) -> &'n str {
        self.native_tool(tool).unwrap_or(tool)
    }
}

/// The use of a tool.
pub(crate) fn action(tool: &str, server: Option<String>, input: &serde_json::Value) -> Action {
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
