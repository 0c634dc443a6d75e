//! Standing permissions: what a person has said yes to once and does not want to be asked again.
//!
//! A grant is as narrow as what was asked: one command word for word within the project, one file, or one host. It names
//! the rules that asked, ends by itself, and is a record; so is its end. What no grant can do is decided by policy, which
//! is asked before one is given: it lifts no deny, not the floor, not what could not be read, and no ask of the project's.

use banister_events::activity::{Action, Decision};
use banister_events::event::time_text;
use banister_policy::{EffectKind, Explained, Explanation};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::files::RuleText;

/// How long a grant counts.
pub(crate) const LIFETIME: SignedDuration = SignedDuration::from_hours(30 * 24);
/// The most grants that count at once.
const MOST: usize = 1_000;
/// What stands in an explanation for what is not known before it runs.
const UNKNOWN: char = '…';

/// A standing permission. The body of its record.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Grant {
    /// Names it when it is taken back.
    pub(crate) id: String,
    /// The rule that asked.
    pub(crate) rule: String,
    /// Others that would have asked about the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) also: Vec<String>,
    /// What it is good for.
    pub(crate) covers: Covers,
    /// Where it counts.
    pub(crate) scope: GrantScope,
    /// The agent, by its short name.
    pub(crate) agent: String,
    /// What was worked on when it was given.
    pub(crate) project: String,
    /// The session it was given in.
    pub(crate) session: String,
    /// The ask it was given with.
    pub(crate) ask: String,
    /// The id of the key it was given with.
    pub(crate) by: String,
    /// When it was given.
    pub(crate) since: Timestamp,
    /// When it ends.
    pub(crate) until: Timestamp,
}

/// What a grant is good for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Covers {
    /// A command, word for word, that stays in the project.
    Command(Vec<String>),
    /// A tool on a file.
    File {
        /// The tool.
        tool: String,
        /// The file.
        path: String,
    },
    /// A tool on a host.
    Host {
        /// The tool.
        tool: String,
        /// The host.
        host: String,
    },
}

impl std::fmt::Display for Covers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Command(words) => f.write_str(&words.join(" ")),
            Self::File { tool, path } => write!(f, "{tool} {path}"),
            Self::Host { tool, host } => write!(f, "{tool} {host}"),
        }
    }
}

/// Where a grant counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum GrantScope {
    /// In the project it was given in.
    Project,
    /// In the session it was given in.
    Session,
    /// Everywhere.
    Always,
}

/// The body of the record that takes a grant back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Revoked {
    /// The grant's id.
    pub(crate) grant: String,
    /// The id of the key it was taken back with.
    pub(crate) by: String,
}

/// Why there is no grant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum NotGranted {
    /// It is no question about an action.
    #[error("only a yes to an action can be remembered")]
    NoAction,
    /// Nobody could read all of it.
    #[error("what could not be read completely cannot be remembered")]
    Opaque,
    /// There is more than one thing that was asked about, or nothing that a grant could name.
    #[error("only one command, one file or one host can be remembered, not {0}")]
    NotOne(String),
    /// The rules would ask again, or refuse.
    #[error("it would be answered with {} by {rule} all the same", decision.name())]
    NoHelp {
        /// What would be said.
        decision: Decision,
        /// The rule that would say so.
        rule: String,
    },
    /// There are too many already.
    #[error("there are {MOST} grants already; take some back first")]
    TooMany,
    /// It could not be recorded.
    #[error("it could not be recorded: {0}")]
    Journal(String),
}

impl Covers {
    /// What was asked about, if it is one thing that a grant can name.
    pub(crate) fn of(action: &Action, explanation: &Explanation) -> Result<Self, NotGranted> {
        if explanation.opaque.is_some() {
            return Err(NotGranted::Opaque);
        }
        let asked =
            explanation.commands.iter().filter(|command| command.verdict != Decision::Allow);
        let asked: Vec<&Explained> = asked.collect();
        match asked.as_slice() {
            [] if explanation.commands.is_empty() => Self::of_tool(action, explanation),
            [one] if is_plain(one) => Ok(Self::Command(one.argv.clone())),
            [one] => {
                Err(NotGranted::NotOne(format!("`{}` with what belongs to it", one.argv.join(" "))))
            }
            several => Err(NotGranted::NotOne(format!("{} commands", several.len()))),
        }
    }

    fn of_tool(action: &Action, explanation: &Explanation) -> Result<Self, NotGranted> {
        let tool = action.tool.clone();
        match explanation.effects.as_slice() {
            [effect] if action.server.is_none() => match (&effect.path, &effect.host) {
                (Some(path), None)
                    if !path.contains(UNKNOWN) && effect.kind != EffectKind::Unknown =>
                {
                    Ok(Self::File { tool, path: path.clone() })
                }
                (None, Some(host)) => Ok(Self::Host { tool, host: host.clone() }),
                _ => Err(NotGranted::NotOne("this".to_owned())),
            },
            _ => Err(NotGranted::NotOne("a tool that does anything".to_owned())),
        }
    }
}

fn is_plain(command: &Explained) -> bool {
    command.assignments.is_empty()
        && command.redirects.is_empty()
        && !command.elsewhere
        && !command.argv.is_empty()
        && command.argv.iter().all(|word| !word.contains(UNKNOWN))
}

impl Grant {
    /// Whether it counts for an action.
    pub(crate) fn counts(&self, session: Option<&str>, project: &str, now: Timestamp) -> bool {
        let there = match self.scope {
            GrantScope::Always => true,
            GrantScope::Project => self.project == project,
            GrantScope::Session => session == Some(&self.session),
        };
        there && self.since <= now && now < self.until
    }

    /// Every rule that asked.
    pub(crate) fn rules(&self) -> impl Iterator<Item = &String> {
        std::iter::once(&self.rule).chain(&self.also)
    }

    /// It as a rule.
    fn rule(&self) -> Value {
        let mut rule = match &self.covers {
            Covers::Command(words) => {
                json!({ "argv": [words], "exact": true, "within": "project" })
            }
            Covers::File { tool, path } => json!({ "tool": [tool], "path": [literal(path)] }),
            Covers::Host { tool, host } => json!({ "tool": [tool], "host": [host] }),
        };
        if let Some(rule) = rule.as_object_mut() {
            rule.insert("id".into(), json!(self.id.to_lowercase().replace('_', "-")));
            rule.insert("decision".into(), json!("allow"));
            rule.insert("agent".into(), json!([self.agent]));
            let reason = format!("You have allowed this until {}.", time_text(self.until));
            rule.insert("reason".into(), json!(reason));
            let lifts: Vec<&String> = self.rules().filter(|rule| rule.contains('.')).collect();
            if !lifts.is_empty() {
                rule.insert("lifts".into(), json!(lifts));
            }
        }
        rule
    }
}

/// A path as a pattern that fits only itself. What has signs of a pattern in it fits nothing: it is not granted.
fn literal(path: &str) -> String {
    if path.contains(['*', '?', '[', '{']) { "/\u{1}".to_owned() } else { path.to_owned() }
}

/// Grants as a rule file: JSON is YAML.
pub(super) fn text<'g>(grants: impl Iterator<Item = &'g Grant>) -> RuleText {
    let rules: Vec<Value> = grants.map(Grant::rule).collect();
    let file = json!({ "schema": "banister.policy/v1", "rules": rules });
    RuleText { name: "grants".to_owned(), text: file.to_string() }
}

/// All grants that were given and not taken back, oldest first.
#[derive(Debug, Clone, Default)]
pub(super) struct Grants(Vec<Grant>);

impl Grants {
    pub(super) fn add(&mut self, grant: Grant) {
        self.remove(&grant.id);
        self.0.push(grant);
    }

    pub(super) fn remove(&mut self, id: &str) {
        self.0.retain(|grant| grant.id != id);
    }

    pub(super) fn end(&mut self, now: Timestamp) {
        self.0.retain(|grant| now < grant.until);
    }

    pub(super) fn is_full(&self) -> bool {
        self.0.len() >= MOST
    }

    /// All of them, and one that is not given yet.
    pub(super) fn with<'g>(&'g self, also: Option<&'g Grant>) -> impl Iterator<Item = &'g Grant> {
        let replaced = move |grant: &&Grant| also.is_none_or(|also| also.id != grant.id);
        self.0.iter().filter(replaced).chain(also)
    }
}
