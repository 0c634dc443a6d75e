//! Rules as they are written, in YAML, and how they become rules that match.
//!
//! Unknown and repeated keys, booleans other than `true` and `false`, and keys that would do nothing are errors, with
//! line and column: a rule that means less than its author thinks is worse than none.

use banister_events::activity::{Decision, Risk};
use banister_events::text::nearest;
use regex::RegexBuilder;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_saphyr::{DuplicateKeyPolicy, Location, MergeKeyPolicy, Spanned};

use super::{Element, Layer, Rule, Tool};
use crate::effects::Kind;
use crate::error::Error;
use crate::path::Pattern;
use crate::tools::Class;

/// The longest rule file that is read, in bytes.
const MAX_FILE: usize = 1024 * 1024;
/// The most rules in a file.
const MAX_RULES: usize = 5_000;
const SCHEMA: &str = "banister.policy/v1";

/// A rule file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    schema: Spanned<String>,
    /// Variables that an allow rule sees past when they are set for a command.
    #[serde(default)]
    pub(crate) environment: Vec<String>,
    pub(crate) rules: Vec<Draft>,
}

/// A rule as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Draft {
    pub(crate) id: Spanned<String>,
    decision: Decision,
    #[serde(default)]
    tool: Vec<String>,
    #[serde(default)]
    agent: Vec<String>,
    #[serde(default)]
    server: Vec<String>,
    #[serde(default)]
    argv: Vec<Vec<Place>>,
    #[serde(default)]
    except: Vec<Vec<Place>>,
    #[serde(default)]
    exact: bool,
    only_flags: Option<Vec<String>>,
    #[serde(default)]
    without_flags: Vec<String>,
    #[serde(default)]
    with_flags: Vec<String>,
    operands: Option<usize>,
    #[serde(default)]
    data: usize,
    within: Option<Within>,
    #[serde(default)]
    path: Vec<Spanned<String>>,
    #[serde(default)]
    not_path: Vec<Spanned<String>>,
    #[serde(default)]
    effect: Vec<Kind>,
    #[serde(default)]
    host: Vec<String>,
    reason: String,
    safer: Option<String>,
    risk: Option<Risk>,
    #[serde(default)]
    irreversible: Option<bool>,
    #[serde(default, rename = "match")]
    pub(crate) matching: Vec<Spanned<Example>>,
    #[serde(default, rename = "not_match")]
    pub(crate) not_matching: Vec<Spanned<Example>>,
}

/// One place in a prefix: a word, one of several words, or a pattern for the whole word.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Place {
    Word(String),
    Words(Vec<String>),
    Regex { regex: String },
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Within {
    Project,
}

/// What a rule must or must not match: a command if the rule is about words, a path if it is about paths, else a tool's
/// name; or a tool with its arguments.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum Example {
    Text(String),
    Call {
        tool: String,
        path: Option<String>,
        command: Option<String>,
        server: Option<String>,
        agent: Option<String>,
    },
}

impl std::fmt::Display for Example {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Call { tool, path, command, .. } => {
                write!(f, "{tool} {}", path.as_deref().or(command.as_deref()).unwrap_or_default())
            }
        }
    }
}

/// Reads YAML the strict way.
pub(crate) fn yaml<T: DeserializeOwned>(name: &str, text: &str) -> Result<T, Error> {
    if text.len() > MAX_FILE {
        return Err(Error::TooLong { name: name.to_owned(), length: text.len(), limit: MAX_FILE });
    }
    let options = serde_saphyr::options! {
        strict_booleans: true,
        duplicate_keys: DuplicateKeyPolicy::Error,
        merge_keys: MergeKeyPolicy::Error,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let message = match error.without_snippet() {
            serde_saphyr::Error::SerdeUnknownField { field, expected, .. } => {
                let meant = nearest(field, expected.iter().copied())
                    .map(|key| format!(", did you mean `{key}`?"))
                    .unwrap_or_default();
                format!("unknown key `{field}`{meant}")
            }
            serde_saphyr::Error::DuplicateMappingKey { key: Some(key), .. } => {
                format!("the key `{key}` is given twice")
            }
            other => other.to_string(),
        };
        invalid(name, error.location().unwrap_or(Location::UNKNOWN), message)
    })
}

fn invalid(name: &str, at: Location, message: String) -> Error {
    Error::Invalid { name: name.to_owned(), line: at.line(), column: at.column(), message }
}

impl File {
    /// Reads a rule file. Its rules are not yet tried.
    pub(crate) fn parse(name: &str, text: &str) -> Result<Self, Error> {
        let file: Self = yaml(name, text)?;
        if file.schema.value != SCHEMA {
            let message = format!("the schema is `{}`, known is `{SCHEMA}`", file.schema.value);
            return Err(invalid(name, file.schema.referenced, message));
        }
        if file.rules.len() > MAX_RULES {
            let message = format!("there are more than {MAX_RULES} rules");
            return Err(invalid(name, file.schema.referenced, message));
        }
        let mut seen = std::collections::BTreeSet::new();
        for rule in &file.rules {
            if !seen.insert(rule.id.value.as_str()) {
                let message = format!("the rule `{}` is given twice", rule.id.value);
                return Err(invalid(name, rule.id.referenced, message));
            }
        }
        Ok(file)
    }
}

impl Draft {
    /// Turns the draft into a rule that matches.
    pub(crate) fn compile(&self, name: &str, layer: Layer) -> Result<Rule, Error> {
        let error = |message: String| {
            invalid(name, self.id.referenced, format!("rule `{}`: {message}", self.id.value))
        };
        if let Some(problem) = self.problem() {
            return Err(error(problem.to_owned()));
        }
        let patterns = |texts: &[Spanned<String>]| {
            texts
                .iter()
                .map(|text| {
                    Pattern::parse(&text.value).ok_or_else(|| {
                        let message = format!(
                            "the path `{}` must start with `./`, `~/`, `/` or `**/` and have no `..`",
                            text.value
                        );
                        invalid(name, text.referenced, message)
                    })
                })
                .collect::<Result<Vec<_>, _>>()
        };
        let prefixes = |prefixes: &[Vec<Place>]| {
            prefixes
                .iter()
                .map(|prefix| prefix.iter().map(Place::compile).collect())
                .collect::<Result<Vec<Vec<Element>>, String>>()
                .map_err(error)
        };
        Ok(Rule {
            id: format!("{}.{}", layer.prefix(), self.id.value),
            layer,
            decision: self.decision,
            reason: self.reason.clone(),
            safer: self.safer.clone(),
            risk: self.risk,
            // What a rule lets through without a word can be undone, unless it says otherwise; of the rest only what
            // the rule says is known.
            irreversible: self.irreversible.or((self.decision == Decision::Allow).then_some(false)),
            effects: self.effect.clone(),
            hosts: self.host.iter().map(|host| host.to_ascii_lowercase()).collect(),
            tools: self
                .tool
                .iter()
                .map(|tool| {
                    Class::parse(tool).map_or_else(|| Tool::Name(tool.clone()), Tool::Class)
                })
                .collect(),
            agents: self.agent.clone(),
            servers: self.server.clone(),
            argv: prefixes(&self.argv)?,
            except: prefixes(&self.except)?,
            exact: self.exact,
            only_flags: self.only_flags.clone(),
            without_flags: self.without_flags.clone(),
            with_flags: self.with_flags.clone(),
            operands: self.operands,
            data: self.data,
            in_project: matches!(self.within, Some(Within::Project)),
            paths: patterns(&self.path)?,
            not_paths: patterns(&self.not_path)?,
        })
    }

    fn problem(&self) -> Option<&'static str> {
        let id = &self.id.value;
        let narrows = self.exact
            || self.only_flags.is_some()
            || !self.without_flags.is_empty()
            || self.operands.is_some()
            || self.data > 0;
        let by_effect = !self.effect.is_empty() || !self.host.is_empty();
        let limits = narrows || self.within.is_some() || (!self.not_path.is_empty() && !by_effect);
        let is_host = |host: &String| {
            let name = host.strip_prefix("*.").unwrap_or(host);
            !name.is_empty()
                && name.chars().all(|c| c.is_ascii_alphanumeric() || ".-_:".contains(c))
        };
        let is_id = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || ".-_".contains(c);
        if id.is_empty() || !id.chars().all(is_id) {
            Some("an id has lower-case letters, digits, `.`, `-` and `_`")
        } else if self.reason.trim().is_empty() {
            Some("the reason is empty")
        } else if self.tool.is_empty()
            && self.argv.is_empty()
            && self.path.is_empty()
            && self.server.is_empty()
            && !by_effect
        {
            Some("it needs at least one of `tool`, `argv`, `path`, `server`, `effect` and `host`")
        } else if !self.host.iter().all(is_host) {
            Some("a host is a name, or `*.` and a name, without scheme, port or path")
        } else if self.decision == Decision::Allow && by_effect && self.effect.is_empty() {
            Some("a rule that allows a host must name the effects it allows")
        } else if by_effect && narrows {
            Some("flags, `exact`, `operands` and `data` say nothing beside `effect` and `host`")
        } else if self.decision == Decision::Allow && self.effect.contains(&Kind::Unknown) {
            Some("what is not known cannot be allowed by its effect")
        } else if self.argv.iter().chain(&self.except).any(Vec::is_empty) {
            Some("a prefix in `argv` or `except` is empty")
        } else if self.argv.is_empty()
            && (narrows || !self.with_flags.is_empty() || !self.except.is_empty())
        {
            Some("flags, `exact`, `except`, `operands` and `data` need `argv`")
        } else if self.decision == Decision::Allow
            && !(self.with_flags.is_empty() && self.except.is_empty())
        {
            Some("`with_flags` and `except` are for rules that ask or deny")
        } else if self.decision != Decision::Allow && limits {
            Some("only `with_flags`, `except` and `path` narrow a rule that asks or denies")
        } else {
            None
        }
    }

    /// Whether examples given as a text are commands, paths or tools.
    pub(crate) fn example_tool(&self) -> (&str, ExampleKind) {
        let tool = self.tool.first().map_or("shell", String::as_str);
        if !self.argv.is_empty() || tool == "shell" {
            ("shell", ExampleKind::Command)
        } else if !self.path.is_empty() || self.within.is_some() {
            (tool, ExampleKind::Path)
        } else {
            (tool, ExampleKind::Tool)
        }
    }
}

/// What a text example is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExampleKind {
    Command,
    Path,
    Tool,
}

impl Place {
    fn compile(&self) -> Result<Element, String> {
        match self {
            Self::Word(word) => Ok(Element::Words(vec![word.clone()])),
            Self::Words(words) => Ok(Element::Words(words.clone())),
            Self::Regex { regex } => RegexBuilder::new(&format!("^(?:{regex})$"))
                .size_limit(1 << 18)
                .build()
                .map(Element::Regex)
                .map_err(|error| format!("the pattern `{regex}`: {error}")),
        }
    }
}
