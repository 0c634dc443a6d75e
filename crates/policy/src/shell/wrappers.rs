//! The table of programs that run other programs: `packs/wrappers.yaml`, read once.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::error::Error;
use crate::yaml;

/// The embedded table.
pub(crate) const TEXT: &str = include_str!("../../packs/wrappers.yaml");
const NAME: &str = "packs/wrappers.yaml";
const SCHEMA: &str = "banister.wrappers/v1";

static TABLE: LazyLock<Result<WrapperTable, Error>> = LazyLock::new(WrapperTable::load);

/// The table, unless it does not load.
pub(crate) fn table() -> Result<&'static WrapperTable, Error> {
    TABLE.as_ref().map_err(Clone::clone)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrapperFile {
    schema: String,
    wrappers: Vec<Wrapper>,
    embedded: Vec<Embedded>,
    influential: Vec<String>,
}

/// The wrappers, by name.
#[derive(Debug)]
pub(crate) struct WrapperTable {
    wrappers: Vec<Wrapper>,
    embedded: Vec<Embedded>,
    influential: Vec<String>,
    by_name: HashMap<String, Vec<usize>>,
    embedded_by_name: HashMap<String, Vec<usize>>,
}

/// How a wrapper's words are told apart.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a key of its own in the table")]
pub(crate) struct Wrapper {
    names: Vec<String>,
    #[serde(default)]
    pub(super) under: Vec<Vec<String>>,
    #[serde(default)]
    letters: String,
    #[serde(default)]
    valued: String,
    #[serde(default)]
    long: Vec<String>,
    #[serde(default)]
    long_valued: Vec<String>,
    #[serde(default)]
    pub(super) operands: usize,
    #[serde(default)]
    pub(super) runs: WrapperRuns,
    #[serde(default)]
    texts: Vec<String>,
    #[serde(default)]
    pub(super) assignments: bool,
    #[serde(default)]
    pub(super) keep: bool,
    #[serde(default)]
    pub(super) elsewhere: bool,
    #[serde(default)]
    pub(super) appends: bool,
    #[serde(default)]
    pub(super) dashes: bool,
}

/// What the words behind a wrapper are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum WrapperRuns {
    /// A program with its arguments.
    #[default]
    Words,
    /// One shell text.
    Text,
}

/// An option whose value holds a shell text.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Embedded {
    names: Vec<String>,
    pub(super) options: Vec<String>,
    #[serde(default)]
    pub(super) after: Vec<String>,
}

/// What an option of a wrapper is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning<'w> {
    Flag,
    /// The next word is its value.
    Valued,
    /// A shell text, here or, if `None`, in the next word.
    Text(Option<&'w str>),
    Unknown,
}

impl WrapperTable {
    fn load() -> Result<Self, Error> {
        let file: WrapperFile = yaml::parse(NAME, TEXT)?;
        if file.schema != SCHEMA {
            return Err(Error::embedded(NAME, format!("the schema is not {SCHEMA}")));
        }
        let mut by_name: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, wrapper) in file.wrappers.iter().enumerate() {
            for name in &wrapper.names {
                by_name.entry(name.clone()).or_default().push(at);
            }
        }
        let mut embedded_by_name: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, embedded) in file.embedded.iter().enumerate() {
            for name in &embedded.names {
                embedded_by_name.entry(name.clone()).or_default().push(at);
            }
        }
        Ok(Self {
            wrappers: file.wrappers,
            embedded: file.embedded,
            influential: file.influential,
            by_name,
            embedded_by_name,
        })
    }

    /// The wrapper a program with its arguments is, and how many words name it.
    pub(super) fn find<'w>(
        &'static self,
        name: &str,
        arguments: &(impl Iterator<Item = &'w str> + Clone),
    ) -> Option<&'static Wrapper> {
        self.by_name.get(name)?.iter().filter_map(|at| self.wrappers.get(*at)).find(|wrapper| {
            let mut words = arguments.clone();
            wrapper
                .under
                .iter()
                .all(|one| words.next().is_some_and(|word| one.iter().any(|name| name == word)))
        })
    }

    pub(super) fn embedded(&'static self, name: &str) -> impl Iterator<Item = &'static Embedded> {
        let places = self.embedded_by_name.get(name).map(Vec::as_slice).unwrap_or_default();
        places.iter().filter_map(|at| self.embedded.get(*at))
    }

    /// Whether programs may look at a variable that the shell has only set.
    pub(crate) fn is_influential(&self, variable: &str) -> bool {
        self.influential.iter().any(|pattern| {
            crate::wildcard::covers(pattern, variable) && {
                // Case counts here, unlike in names of files.
                let plain: String = pattern.chars().filter(|c| !"*?".contains(*c)).collect();
                variable.contains(&plain)
            }
        })
    }
}

impl Wrapper {
    /// What an option is.
    pub(super) fn meaning<'w>(&self, option: &'w str) -> Meaning<'w> {
        if option.starts_with("--") {
            let (name, value) =
                option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
            let is = |names: &[String]| names.iter().any(|known| known == name);
            return if is(&self.texts) {
                Meaning::Text(value)
            } else if is(&self.long_valued) {
                if value.is_some() { Meaning::Flag } else { Meaning::Valued }
            } else if is(&self.long) {
                Meaning::Flag
            } else {
                Meaning::Unknown
            };
        }
        for (at, letter) in option.char_indices().skip(1) {
            let rest = option.get(at + letter.len_utf8()..).unwrap_or_default();
            let is_text = self.texts.iter().any(|text| {
                text.strip_prefix('-')
                    .is_some_and(|name| name.len() == 1 && name.starts_with(letter))
            });
            if is_text {
                return Meaning::Text(Some(rest).filter(|rest| !rest.is_empty()));
            }
            if self.valued.contains(letter) {
                return if rest.is_empty() { Meaning::Valued } else { Meaning::Flag };
            }
            if !self.letters.contains(letter) {
                return Meaning::Unknown;
            }
        }
        Meaning::Flag
    }
}
