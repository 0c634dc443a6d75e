//! The tables of programs: `packs/effects/*.yaml`, read once.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::EffectKind;
use crate::error::Error;
use crate::yaml;

const SCHEMA: &str = "banister.effects/v1";

/// The embedded tables with their names.
pub(crate) const TEXTS: [(&str, &str); 4] = [
    ("packs/effects/files.yaml", include_str!("../../packs/effects/files.yaml")),
    ("packs/effects/code.yaml", include_str!("../../packs/effects/code.yaml")),
    ("packs/effects/services.yaml", include_str!("../../packs/effects/services.yaml")),
    ("packs/effects/system.yaml", include_str!("../../packs/effects/system.yaml")),
];

static TABLE: LazyLock<Result<EffectTable, Error>> = LazyLock::new(EffectTable::load);

/// The table, unless it does not load.
pub(crate) fn table() -> Result<&'static EffectTable, Error> {
    TABLE.as_ref().map_err(Clone::clone)
}

/// Every program that is known.
#[derive(Debug)]
pub(crate) struct EffectTable(HashMap<String, EffectEntry>);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EffectFile {
    schema: String,
    programs: Vec<NamedEntries>,
}

#[derive(Debug, Deserialize)]
struct NamedEntries {
    names: Vec<String>,
    #[serde(flatten)]
    draft: EffectDraft,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a key of its own in the table")]
struct EffectDraft {
    #[serde(default)]
    does: Vec<EffectKind>,
    #[serde(default)]
    bare: Vec<EffectKind>,
    #[serde(default)]
    operands: String,
    #[serde(default)]
    options: HashMap<String, String>,
    #[serde(default)]
    keys: HashMap<String, String>,
    #[serde(default)]
    under: HashMap<String, EffectDraft>,
    #[serde(default)]
    instead: Vec<String>,
    #[serde(default)]
    optional: bool,
    #[serde(default)]
    inert: bool,
    #[serde(default)]
    strict: bool,
    #[serde(default)]
    one_dash: bool,
    #[serde(default)]
    plus: bool,
    #[serde(default)]
    first: bool,
}

/// How a program's words are told apart.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a key of its own in the table")]
pub(super) struct EffectEntry {
    /// What it does whatever its words are.
    pub(super) does: Vec<EffectKind>,
    /// What it does without operands.
    pub(super) bare: Vec<EffectKind>,
    /// The roles of its operands; one may repeat.
    pub(super) operands: Vec<(WordRole, bool)>,
    pub(super) options: HashMap<String, WordRole>,
    /// The roles of operands such as `of=file`.
    pub(super) keys: HashMap<String, WordRole>,
    pub(super) under: HashMap<String, Self>,
    /// The options that stand for the first operand, so that what follows has the next role.
    pub(super) instead: Vec<String>,
    /// Whether the subcommand may be left out.
    pub(super) optional: bool,
    /// Whether no option changes what it does.
    pub(super) inert: bool,
    /// Whether an option that is not listed makes the effect unknown.
    pub(super) strict: bool,
    /// Whether long options have one dash.
    pub(super) one_dash: bool,
    /// Whether options may start with `+`.
    pub(super) plus: bool,
    /// Whether options stand before the first operand only.
    pub(super) first: bool,
}

/// What a word is to a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WordRole {
    /// A value that is no path: options with it take the next word.
    Data,
    /// An option without a value.
    Flag,
    /// A path to which something happens.
    Path(EffectKind),
    /// `@file` is read, whatever it is something happens.
    File(EffectKind),
    /// A URL that is spoken to.
    Url(EffectKind),
    /// A value that makes something happen, whatever it is.
    Does(EffectKind),
    /// An option without a value that makes something happen.
    Adds(EffectKind),
    /// An option without a value that makes the program write what it reads.
    InPlace,
    /// A path here or at a host.
    Remote(EffectKind),
    /// A name in a repository that may hold a path, such as `HEAD:file`.
    Reference,
    /// A filter of `jq` or `yq`.
    Filter,
    /// A program of `awk`.
    Awk,
    /// A script of `sed`.
    Sed,
    /// A statement for a database.
    Sql,
}

impl WordRole {
    fn parse(text: &str) -> Option<Self> {
        let kind = |name: &str| {
            serde_json::from_value::<EffectKind>(serde_json::Value::String(name.to_owned())).ok()
        };
        Some(match text {
            "data" => Self::Data,
            "flag" => Self::Flag,
            "ref" => Self::Reference,
            "filter" => Self::Filter,
            "awk" => Self::Awk,
            "sed" => Self::Sed,
            "sql" => Self::Sql,
            "in-place" => Self::InPlace,
            "url" => Self::Url(EffectKind::Network),
            "read" | "write" | "delete" => Self::Path(kind(text)?),
            _ => match text.split_once('-') {
                Some(("file", rest)) => Self::File(kind(rest)?),
                Some(("url", rest)) => Self::Url(kind(rest)?),
                Some(("remote", rest)) => Self::Remote(kind(rest)?),
                Some(("adds", rest)) => Self::Adds(kind(rest)?),
                _ => Self::Does(kind(text)?),
            },
        })
    }

    pub(super) fn takes_value(self) -> bool {
        !matches!(self, Self::Flag | Self::Adds(_) | Self::InPlace)
    }

    /// Whether it makes a difference if the option is overlooked.
    pub(super) fn matters(self) -> bool {
        !matches!(self, Self::Data | Self::Flag)
    }
}

impl EffectEntry {
    /// Whether some option makes the program do more than its operands say.
    pub(super) fn has_options_that_matter(&self) -> bool {
        self.strict || self.options.values().any(|role| role.matters())
    }

    /// Whether some option makes the program do more than read.
    pub(super) fn has_options_that_change(&self) -> bool {
        let only_reads = |role: &WordRole| matches!(role, WordRole::Path(EffectKind::Read));
        self.strict || self.options.values().any(|role| role.matters() && !only_reads(role))
    }
}

impl EffectTable {
    fn load() -> Result<Self, Error> {
        let mut programs = HashMap::new();
        for (name, text) in TEXTS {
            let file: EffectFile = yaml::parse(name, text)?;
            let invalid = |message: String| Error::embedded(name, message);
            if file.schema != SCHEMA {
                return Err(invalid(format!("the schema is not {SCHEMA}")));
            }
            for named in &file.programs {
                let entry = named.draft.compile(0).map_err(&invalid)?;
                for program in &named.names {
                    if programs.insert(program.clone(), entry.clone()).is_some() {
                        return Err(invalid(format!("the program `{program}` is given twice")));
                    }
                }
            }
        }
        Ok(Self(programs))
    }

    /// How a program's words are told apart, if it is known.
    pub(super) fn get(&self, program: &str) -> Option<&EffectEntry> {
        self.0.get(program)
    }

    /// How many programs are known.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

impl EffectDraft {
    fn compile(&self, depth: usize) -> Result<EffectEntry, String> {
        if depth > 4 {
            return Err("subcommands nest too deep".to_owned());
        }
        let role = |text: &str| WordRole::parse(text).ok_or_else(|| format!("`{text}` is no role"));
        let roles = |roles: &HashMap<String, String>| {
            let mut all = HashMap::new();
            for (names, text) in roles {
                for name in names.split(' ') {
                    all.insert(name.to_owned(), role(text)?);
                }
            }
            Ok::<_, String>(all)
        };
        let mut operands = Vec::new();
        for word in self.operands.split_whitespace() {
            let (name, many) = word.strip_suffix('*').map_or((word, false), |name| (name, true));
            operands.push((role(name)?, many));
        }
        let mut under = HashMap::new();
        for (names, draft) in &self.under {
            for name in names.split(' ') {
                under.insert(name.to_owned(), draft.compile(depth + 1)?);
            }
        }
        Ok(EffectEntry {
            does: self.does.clone(),
            bare: self.bare.clone(),
            operands,
            options: roles(&self.options)?,
            keys: roles(&self.keys)?,
            under,
            instead: self.instead.clone(),
            optional: self.optional,
            inert: self.inert,
            strict: self.strict,
            one_dash: self.one_dash,
            plus: self.plus,
            first: self.first,
        })
    }
}
