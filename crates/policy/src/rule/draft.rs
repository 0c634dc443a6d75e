//! Rules as they are written, in YAML, and how they become rules that match.
//!
//! Unknown and repeated keys, booleans other than `true` and `false`, and keys that would do nothing are errors, with
//! line and column: a rule that means less than its author thinks is worse than none.

use banister_events::activity::{Decision, Risk};
use regex::RegexBuilder;
use serde::Deserialize;
use serde_saphyr::Spanned;

use super::{Element, PolicyRule, Tool};
use crate::effects::EffectKind;
use crate::error::Error;
use crate::layer::Layer;
use crate::path::PathPattern;
use crate::tools::ToolClass;
use crate::yaml::{fault, parse, position};

/// The most rules in a file.
const MAX_RULES: usize = 5_000;
const SCHEMA: &str = "banister.policy/v1";

/// A rule as it was written, and in which file.
#[derive(Debug)]
pub(crate) struct RuleOrigin {
    pub(crate) name: String,
    pub(crate) draft: RuleDraft,
}

/// A rule file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RuleDocument {
    schema: Spanned<String>,
    /// Variables that an allow rule sees past when they are set for a command.
    #[serde(default)]
    pub(crate) environment: Vec<String>,
    pub(crate) rules: Vec<RuleDraft>,
}

/// A rule as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RuleDraft {
    pub(crate) id: Spanned<String>,
    pub(crate) decision: Decision,
    /// The asks it lifts, by their full ids.
    #[serde(default)]
    pub(crate) lifts: Vec<Spanned<String>>,
    /// Whether a person may lift this ask of the organisation.
    #[serde(default)]
    liftable: bool,
    #[serde(default)]
    tool: Vec<String>,
    #[serde(default)]
    agent: Vec<String>,
    #[serde(default)]
    server: Vec<String>,
    #[serde(default)]
    argv: Vec<Vec<PrefixWord>>,
    #[serde(default)]
    except: Vec<Vec<PrefixWord>>,
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
    effect: Vec<EffectKind>,
    #[serde(default)]
    host: Vec<String>,
    reason: String,
    safer: Option<String>,
    risk: Option<Risk>,
    #[serde(default)]
    irreversible: Option<bool>,
    #[serde(default, rename = "match")]
    pub(crate) matching: Vec<Spanned<RuleExample>>,
    #[serde(default, rename = "not_match")]
    pub(crate) not_matching: Vec<Spanned<RuleExample>>,
}

/// One element of a prefix: a word, one of several words, or a pattern for the whole word.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum PrefixWord {
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
pub(crate) enum RuleExample {
    Text(String),
    Call {
        tool: String,
        path: Option<String>,
        command: Option<String>,
        server: Option<String>,
        agent: Option<String>,
    },
}

impl std::fmt::Display for RuleExample {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Call { tool, path, command, .. } => {
                write!(f, "{tool} {}", path.as_deref().or(command.as_deref()).unwrap_or_default())
            }
        }
    }
}

impl RuleDocument {
    /// Reads a rule file. Its rules are not yet tried.
    pub(crate) fn parse(name: &str, text: &str) -> Result<Self, Error> {
        let file: Self = parse(name, text)?;
        if file.schema.value != SCHEMA {
            let message = format!("the schema `{}` is not known", file.schema.value);
            let remedy = Some(format!("write `{SCHEMA}`"));
            return Err(fault(name, file.schema.referenced.into(), None, message, remedy));
        }
        if file.rules.len() > MAX_RULES {
            let message = format!("there are more than {MAX_RULES} rules");
            return Err(fault(name, position::top(text, "rules"), None, message, None));
        }
        let mut seen = std::collections::BTreeSet::new();
        for rule in &file.rules {
            if !seen.insert(rule.id.value.as_str()) {
                let message = format!("the rule `{}` is given twice", rule.id.value);
                let remedy = Some("give one of them another id".to_owned());
                return Err(fault(name, rule.id.referenced.into(), None, message, remedy));
            }
        }
        Ok(file)
    }

    /// Refuses what a layer may not say.
    pub(crate) fn check(&self, layer: Layer, name: &str, text: &str) -> Result<(), Error> {
        if layer == Layer::Project && !self.environment.is_empty() {
            let message = "the rules of a project cannot let variables be set";
            let remedy = "move the list to your own rules".to_owned();
            return Err(fault(
                name,
                position::top(text, "environment"),
                None,
                message,
                Some(remedy),
            ));
        }
        for draft in &self.rules {
            if let Some((key, message, remedy)) = draft.overreach(layer) {
                return Err(draft.fault(name, text, key, message, Some(remedy.to_owned())));
            }
        }
        Ok(())
    }
}

/// A key, what is wrong with it, and what to do about it.
type DraftProblem = (&'static str, &'static str, &'static str);

impl RuleDraft {
    fn fault(
        &self,
        name: &str,
        text: &str,
        key: &str,
        message: impl Into<String>,
        remedy: Option<String>,
    ) -> Error {
        let at = position::key(text, self.id.referenced.into(), key);
        fault(name, at, Some(self.id.value.clone()), message, remedy)
    }

    /// Refuses the name of a rule that cannot be lifted, given the rules that are there.
    pub(crate) fn check_lifts(
        &self,
        name: &str,
        refuse: impl Fn(&str) -> Option<(String, Option<String>)>,
    ) -> Result<(), Error> {
        for lifted in &self.lifts {
            if let Some((message, remedy)) = refuse(&lifted.value) {
                let rule = Some(self.id.value.clone());
                return Err(fault(name, lifted.referenced.into(), rule, message, remedy));
            }
        }
        Ok(())
    }

    /// What the rule says that its layer may not say.
    fn overreach(&self, layer: Layer) -> Option<DraftProblem> {
        match layer {
            Layer::Project if self.decision == Decision::Allow => Some((
                "decision",
                "the rules of a project can only ask and deny",
                "move what it allows to your own rules",
            )),
            Layer::Grant if self.decision != Decision::Allow => Some((
                "decision",
                "a grant can only allow",
                "write what is asked or denied into your own rules",
            )),
            Layer::Org => None,
            _ if self.liftable => Some((
                "liftable",
                "only asks of the organisation say whether they can be lifted",
                "leave it out",
            )),
            _ => None,
        }
    }

    /// Turns the draft into a rule that matches.
    pub(crate) fn compile(
        &self,
        name: &str,
        text: &str,
        layer: Layer,
    ) -> Result<PolicyRule, Error> {
        if let Some((key, message, remedy)) = self.problem() {
            return Err(self.fault(name, text, key, message, Some(remedy.to_owned())));
        }
        let patterns = |texts: &[Spanned<String>]| {
            texts
                .iter()
                .map(|path| {
                    PathPattern::parse(&path.value).ok_or_else(|| {
                        let message = format!(
                            "the path `{}` must start with `./`, `~/`, `/` or `**/` and have no `..`",
                            path.value
                        );
                        let remedy = remedy_of_path(&path.value);
                        let rule = Some(self.id.value.clone());
                        fault(name, path.referenced.into(), rule, message, remedy)
                    })
                })
                .collect::<Result<Vec<_>, _>>()
        };
        let prefixes = |key: &str, prefixes: &[Vec<PrefixWord>]| {
            prefixes
                .iter()
                .map(|prefix| prefix.iter().map(PrefixWord::compile).collect())
                .collect::<Result<Vec<Vec<Element>>, String>>()
                .map_err(|message| self.fault(name, text, key, message, None))
        };
        Ok(PolicyRule {
            id: format!("{}.{}", layer.prefix(), self.id.value),
            layer,
            decision: self.decision,
            lifts: self.lifts.iter().map(|id| id.value.clone()).collect(),
            liftable: self.liftable,
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
                    ToolClass::parse(tool).map_or_else(|| Tool::Name(tool.clone()), Tool::Class)
                })
                .collect(),
            agents: self.agent.clone(),
            servers: self.server.clone(),
            argv: prefixes("argv", &self.argv)?,
            except: prefixes("except", &self.except)?,
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

    /// The first key that narrows an allow by its words, if there is one.
    fn narrowing(&self) -> Option<&'static str> {
        [
            ("exact", self.exact),
            ("only_flags", self.only_flags.is_some()),
            ("without_flags", !self.without_flags.is_empty()),
            ("operands", self.operands.is_some()),
            ("data", self.data > 0),
        ]
        .into_iter()
        .find_map(|(key, given)| given.then_some(key))
    }

    /// The first key that narrows an ask or a deny by its words, if there is one.
    fn picking(&self) -> Option<&'static str> {
        [("with_flags", !self.with_flags.is_empty()), ("except", !self.except.is_empty())]
            .into_iter()
            .find_map(|(key, given)| given.then_some(key))
    }

    fn problem(&self) -> Option<DraftProblem> {
        let id = &self.id.value;
        let allows = self.decision == Decision::Allow;
        let by_effect = !self.effect.is_empty() || !self.host.is_empty();
        let is_host = |host: &String| {
            let name = host.strip_prefix("*.").unwrap_or(host);
            !name.is_empty()
                && name.chars().all(|c| c.is_ascii_alphanumeric() || ".-_:".contains(c))
        };
        let is_id = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || ".-_".contains(c);
        if id.is_empty() || !id.chars().all(is_id) {
            return Some((
                "id",
                "an id has lower-case letters, digits, `.`, `-` and `_`",
                "write it without anything else",
            ));
        }
        if self.reason.trim().is_empty() {
            return Some(("reason", "the reason is empty", "write a sentence for the person"));
        }
        if self.tool.is_empty()
            && self.argv.is_empty()
            && self.path.is_empty()
            && self.server.is_empty()
            && !by_effect
        {
            return Some((
                "id",
                "it does not say what it is about",
                "it needs at least one of `tool`, `argv`, `path`, `server`, `effect` and `host`",
            ));
        }
        if !self.host.iter().all(is_host) {
            return Some((
                "host",
                "a host is a name, or `*.` and a name",
                "leave out the scheme, the port and the path",
            ));
        }
        if allows && by_effect && self.effect.is_empty() {
            return Some((
                "host",
                "a rule that allows a host must name the effects it allows",
                "add `effect`, such as `effect: [network]`",
            ));
        }
        if allows && self.effect.contains(&EffectKind::Unknown) {
            return Some((
                "effect",
                "what is not known cannot be allowed by its effect",
                "name the program in `argv`",
            ));
        }
        if self.argv.iter().any(Vec::is_empty) {
            return Some(("argv", "a prefix is empty", "name at least the program"));
        }
        if self.except.iter().any(Vec::is_empty) {
            return Some(("except", "a prefix is empty", "name at least the program"));
        }
        if !allows && !self.lifts.is_empty() {
            return Some(("lifts", "only a rule that allows lifts an ask", "leave it out"));
        }
        let by_class = self.tool.iter().all(|tool| ToolClass::parse(tool).is_some());
        let wide = self.argv.is_empty() && self.path.is_empty() && self.host.is_empty();
        if !self.lifts.is_empty() && wide && by_class && self.server.is_empty() {
            return Some((
                "lifts",
                "it is too wide to lift an ask",
                "narrow it by `argv`, `path`, `host`, `server` or a tool's own name",
            ));
        }
        if self.liftable && self.decision != Decision::Ask {
            return Some(("liftable", "only an ask can be lifted", "leave it out"));
        }
        self.misplaced()
    }

    /// A key that would do nothing where it stands.
    fn misplaced(&self) -> Option<DraftProblem> {
        let allows = self.decision == Decision::Allow;
        let by_effect = !self.effect.is_empty() || !self.host.is_empty();
        let flags = (!self.with_flags.is_empty()).then_some("with_flags");
        if let Some(key) = self.narrowing().or(flags)
            && self.argv.is_empty()
        {
            return Some((
                key,
                "flags, `exact`, `operands` and `data` need `argv`",
                "add `argv`, or leave it out",
            ));
        }
        if let Some(key) = self.narrowing() {
            if !allows {
                return Some((
                    key,
                    "it cannot narrow a rule that asks or denies",
                    "use `with_flags`, `except` or `path`",
                ));
            }
            if by_effect {
                return Some((
                    key,
                    "flags, `exact`, `operands` and `data` say nothing beside `effect` and `host`",
                    "leave it out, or write two rules",
                ));
            }
        }
        if let Some(key) = self.picking()
            && allows
        {
            return Some((
                key,
                "`with_flags` and `except` are for rules that ask or deny",
                "use `only_flags` or `without_flags`",
            ));
        }
        let spares = !self.not_path.is_empty() && !by_effect;
        if !allows && (self.within.is_some() || spares) {
            let key = if self.within.is_some() { "within" } else { "not_path" };
            return Some((
                key,
                "it cannot narrow a rule that asks or denies",
                "use `path`; `not_path` needs `effect` there",
            ));
        }
        None
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

impl PrefixWord {
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

/// How a path that is no pattern was probably meant.
fn remedy_of_path(path: &str) -> Option<String> {
    let usual = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    let meant = path.starts_with(usual) && !path.split('/').any(|name| name == "..");
    meant.then(|| format!("for a file of the project write `./{path}`"))
}
