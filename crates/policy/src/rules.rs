//! Rule sets: compiled, layer by layer, and ready to be asked. Their examples are tried one layer up.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use banister_events::activity::{Decision, Risk};
use banister_events::text::nearest;
use sha2::{Digest, Sha256};

use crate::effects;
use crate::error::Error;
use crate::layer::Layer;
use crate::pack::{AskHandling, Contents, Pack};
use crate::request::ActionRequest;
use crate::rule::{PolicyRule, RuleDocument, RuleOrigin};
use crate::shell::wrappers;
use crate::subject::Subject;
use crate::tools::{self, Tools};

/// A rule file that was read by the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleSource<'a> {
    /// What messages call it: usually its path.
    pub name: &'a str,
    /// Its YAML.
    pub text: &'a str,
}

/// All rules that count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Layers<'a> {
    /// The embedded rules to start with.
    pub pack: Pack,
    /// The organisation's rules.
    pub org: Option<RuleSource<'a>>,
    /// The person's own rules.
    pub user: Option<RuleSource<'a>>,
    /// The repository's rules, which can only tighten.
    pub project: Option<RuleSource<'a>>,
    /// What the person has granted.
    pub grants: Option<RuleSource<'a>>,
}

impl<'a> Layers<'a> {
    /// The files, in the order in which equal rules are named: the more personal first.
    pub(crate) fn files(&self) -> impl Iterator<Item = (Layer, RuleSource<'a>)> {
        [
            (Layer::Grant, self.grants),
            (Layer::User, self.user),
            (Layer::Project, self.project),
            (Layer::Org, self.org),
        ]
        .into_iter()
        .filter_map(|(layer, source)| Some((layer, source?)))
    }
}

/// Rules, ready to decide. Cheap to clone.
#[derive(Clone)]
pub struct Rules(Arc<CompiledRules>);

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rules")
            .field("pack", &self.0.pack)
            .field("rules", &self.0.iter().count())
            .field("hash", &self.0.hash)
            .finish_non_exhaustive()
    }
}

struct CompiledRules {
    /// The rules of every layer but the pack.
    rules: Vec<PolicyRule>,
    /// Where each of them comes from, in the same order.
    origins: Vec<RuleOrigin>,
    pack: Pack,
    contents: &'static Contents,
    /// The rules that can speak about a program, by its name, and those that can speak about any. A place counts on from
    /// the rules above into those of the pack.
    by_program: HashMap<String, Vec<usize>>,
    about_any: Vec<usize>,
    environment: Vec<String>,
    tools: &'static Tools,
    hash: String,
}

/// What a rule says, for lists of rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described<'r> {
    /// Its id, with the layer in front.
    pub id: &'r str,
    /// Whose it is.
    pub layer: Layer,
    /// What it answers.
    pub decision: Decision,
    /// Why.
    pub reason: &'r str,
    /// What would be safer.
    pub safer: Option<&'r str>,
    /// How much could go wrong; derived from what is done where the rule does not say.
    pub risk: Option<Risk>,
    /// Whether it cannot be undone; `None` where the rule does not say.
    pub irreversible: Option<bool>,
    /// The asks it lifts.
    pub lifts: &'r [String],
    /// The file it is in.
    pub file: &'r str,
    /// The line of its id, from 1.
    pub line: u64,
    /// What it must match.
    pub matching: Vec<String>,
    /// What it must not match.
    pub not_matching: Vec<String>,
}

impl Rules {
    /// Loads all layers without trying a rule: for tools that report on every example
    /// ([`try_examples`](Self::try_examples)).
    pub fn compile(layers: &Layers<'_>) -> Result<Self, Error> {
        wrappers::table()?;
        effects::table()?;
        let mut set = CompiledRules {
            rules: Vec::new(),
            origins: Vec::new(),
            pack: layers.pack,
            contents: layers.pack.contents()?,
            by_program: HashMap::new(),
            about_any: Vec::new(),
            environment: Vec::new(),
            tools: Tools::load()?,
            hash: hash(layers),
        };
        for (layer, RuleSource { name, text }) in layers.files() {
            let file = RuleDocument::parse(name, text)?;
            file.check(layer, name, text)?;
            for draft in file.rules {
                set.rules.push(draft.compile(name, text, layer)?);
                set.origins.push(RuleOrigin { name: name.to_owned(), draft });
            }
            set.environment.extend(file.environment);
        }
        set.check_lifts()?;
        set.index();
        Ok(Self(Arc::new(set)))
    }

    /// The SHA-256 of all rule texts, in hex: which rules decided.
    pub fn hash(&self) -> &str {
        &self.0.hash
    }

    /// The pack they start with.
    pub fn pack(&self) -> Pack {
        self.0.pack
    }

    /// Whether nobody is there to be asked, so that an ask is a deny.
    pub fn denies_asks(&self) -> bool {
        self.0.contents.asks == AskHandling::Deny
    }

    /// Every rule, the more personal layers first.
    pub fn describe(&self) -> impl Iterator<Item = Described<'_>> {
        self.with_origins().map(|(rule, RuleOrigin { name, draft })| Described {
            id: &rule.id,
            layer: rule.layer,
            decision: rule.decision,
            reason: &rule.reason,
            safer: rule.safer.as_deref(),
            risk: rule.risk,
            irreversible: rule.irreversible,
            lifts: &rule.lifts,
            file: name,
            line: draft.id.referenced.line(),
            matching: draft.matching.iter().map(|example| example.value.to_string()).collect(),
            not_matching: draft
                .not_matching
                .iter()
                .map(|example| example.value.to_string())
                .collect(),
        })
    }

    pub(crate) fn rules(&self) -> impl Iterator<Item = &PolicyRule> {
        self.0.iter()
    }

    pub(crate) fn with_origins(&self) -> impl Iterator<Item = (&PolicyRule, &RuleOrigin)> {
        let set = &self.0;
        set.iter().zip(set.origins.iter().chain(&set.contents.origins))
    }

    /// The rules that can speak about a program, in their order.
    pub(crate) fn about(&self, program: &str) -> impl Iterator<Item = &PolicyRule> {
        let places = self.0.by_program.get(program).unwrap_or(&self.0.about_any);
        places.iter().filter_map(|at| self.0.get(*at))
    }

    /// Reads an action: its shell text is read here, once for all rules that are asked about it. The tools' names are
    /// the same in all of them.
    pub fn read<'a>(&self, request: &ActionRequest<'a>) -> Subject<'a> {
        Subject::new(self.0.tools, request)
    }

    /// The first tool of a class, for examples that name the class.
    pub(crate) fn native_tool(&self, class: &str) -> Option<&str> {
        self.0.tools.example_name(class)
    }

    /// Whether setting a variable changes nothing an allow rule relies on.
    pub(crate) fn is_harmless(&self, variable: &str) -> bool {
        let set = &self.0;
        set.environment.iter().chain(&set.contents.environment).any(|name| name == variable)
    }
}

impl CompiledRules {
    fn iter(&self) -> impl Iterator<Item = &PolicyRule> {
        self.rules.iter().chain(&self.contents.rules)
    }

    fn get(&self, at: usize) -> Option<&PolicyRule> {
        match at.checked_sub(self.rules.len()) {
            Some(at) => self.contents.rules.get(at),
            None => self.rules.get(at),
        }
    }

    /// Refuses names of asks that are not there or cannot be lifted.
    fn check_lifts(&self) -> Result<(), Error> {
        // Grants are written by the desk: what they named may have gone since, and then they lift nothing.
        let naming = self
            .rules
            .iter()
            .zip(&self.origins)
            .filter(|(rule, _)| !rule.lifts.is_empty() && rule.layer != Layer::Grant);
        for (rule, RuleOrigin { name, draft }) in naming {
            // A name that only another pack has is right as well: people change packs.
            let known = Pack::known_ids()?;
            draft.check_lifts(name, |id| self.refuse_lift(rule, id, known))?;
        }
        Ok(())
    }

    /// Why a rule cannot lift what is called `id`, and what to do about it.
    fn refuse_lift(
        &self,
        rule: &PolicyRule,
        id: &str,
        packs: &[String],
    ) -> Option<(String, Option<String>)> {
        let Some(named) = self.iter().find(|rule| rule.id == id) else {
            if packs.iter().any(|known| known == id) {
                return None;
            }
            let ids = self.iter().map(|rule| rule.id.as_str());
            let meant = nearest(id, ids.chain(packs.iter().map(String::as_str)));
            return Some((
                format!("there is no rule `{id}`"),
                meant.map(|id| format!("did you mean `{id}`?")),
            ));
        };
        if named.decision == Decision::Ask && rule.layer.may_lift(named.layer, named.liftable) {
            return None;
        }
        let why = match (named.decision, named.layer) {
            // Another pack may ask where this one denies.
            (Decision::Deny, Layer::Pack) => return None,
            (Decision::Ask, Layer::Org) => "belongs to the organisation and is not `liftable`",
            (Decision::Ask, Layer::Project) => "belongs to the project, and nothing lifts that",
            (Decision::Ask, _) => "belongs to another layer, which this one cannot lift",
            (Decision::Deny, _) => "denies, and nothing lifts that",
            _ => "does not ask",
        };
        Some((format!("`{id}` {why}"), Some("leave it out".to_owned())))
    }

    fn index(&mut self) {
        let programs: Vec<Option<Vec<&str>>> = self.iter().map(PolicyRule::programs).collect();
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
        let about_any = programs
            .iter()
            .enumerate()
            .filter(|(_, programs)| programs.is_none())
            .map(|(at, _)| at)
            .collect();
        self.about_any = about_any;
        self.by_program = by_program;
    }
}

fn hash(layers: &Layers<'_>) -> String {
    let mut hasher = Sha256::new();
    let mut take = |text: &str| {
        hasher.update((text.len() as u64).to_be_bytes());
        hasher.update(text);
    };
    for (layer, source) in layers.files() {
        take(layer.prefix());
        take(source.text);
    }
    layers.pack.texts().for_each(&mut take);
    effects::TEXTS.map(|(_, text)| text).into_iter().for_each(&mut take);
    // The floor is code: its rules change with the version.
    [tools::TEXT, wrappers::TEXT, env!("CARGO_PKG_VERSION")].into_iter().for_each(take);
    let digit = |value: u8| char::from_digit(value.into(), 16).unwrap_or_default();
    let bytes = hasher.finalize();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
