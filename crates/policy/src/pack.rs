//! The embedded packs: which rule files each is made of, and what it changes about them.
//!
//! A pack is a list of the rule files in `packs/rules/`, without some of their rules, and with a word on what
//! becomes of an ask.

use std::fmt;
use std::str::FromStr;
use std::sync::{LazyLock, OnceLock};

use serde::Deserialize;

use crate::error::Error;
use crate::layer::Layer;
use crate::rule::{PolicyRule, RuleDocument, RuleDraft, RuleOrigin};
use crate::yaml;

/// A set of rules to start with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Pack {
    /// Everyday work in the project passes; what is hard to undo or leaves the machine is asked.
    #[default]
    Default,
    /// What is written is asked, and nothing speaks to another machine.
    Strict,
    /// Only what is hard to undo, or leaves the machine with data, is asked.
    Permissive,
    /// Nobody is there to be asked: what would be asked is denied.
    Ci,
}

/// The name is that of no pack.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no pack `{0}`, there are `default`, `strict`, `permissive` and `ci`")]
pub struct UnknownPack(String);

impl FromStr for Pack {
    type Err = UnknownPack;

    fn from_str(name: &str) -> Result<Self, UnknownPack> {
        let known = Self::ALL.into_iter().find(|pack| pack.name() == name);
        known.ok_or_else(|| UnknownPack(name.to_owned()))
    }
}

impl fmt::Display for Pack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

const SCHEMA: &str = "banister.pack/v1";

macro_rules! embedded {
    ($($name:literal),* $(,)?) => {
        [$(($name, concat!("packs/rules/", $name, ".yaml"), include_str!(concat!("../packs/rules/", $name, ".yaml")))),*]
    };
}

/// The rule files: the name in a pack, the name in messages, and the text.
const FILES: [(&str, &str, &str); 18] = embedded![
    "files",
    "secrets",
    "tools",
    "shell",
    "git",
    "build",
    "network",
    "packages",
    "containers",
    "cloud",
    "databases",
    "system",
    "code",
    "banister",
    "reading",
    "strict",
    "permissive",
    "ci",
];

/// A pack as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PackManifest {
    schema: String,
    summary: String,
    rules: Vec<String>,
    /// Rules that are left out.
    #[serde(default)]
    without: Vec<String>,
    #[serde(default)]
    asks: AskHandling,
}

/// What becomes of an ask.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AskHandling {
    /// A person is asked.
    #[default]
    Ask,
    /// Nobody is there, so it is denied.
    Deny,
}

/// A pack, ready to decide.
#[derive(Debug)]
pub(crate) struct Contents {
    pub(crate) rules: Vec<PolicyRule>,
    /// Where each rule comes from, in the same order.
    pub(crate) origins: Vec<RuleOrigin>,
    pub(crate) environment: Vec<String>,
    pub(crate) asks: AskHandling,
}

/// The packs, each read when it is first wanted: the rules of a person and of each repository come and go, these stay.
static CONTENTS: [OnceLock<Result<Contents, Error>>; 4] = [const { OnceLock::new() }; 4];

static IDS: LazyLock<Result<Vec<String>, Error>> = LazyLock::new(|| {
    let mut ids = Vec::new();
    for (_, name, text) in FILES {
        let file = RuleDocument::parse(name, text)?;
        ids.extend(file.rules.iter().map(|draft| format!("pack.{}", draft.id.value)));
    }
    Ok(ids)
});

impl Pack {
    /// Every pack.
    pub const ALL: [Self; 4] = [Self::Default, Self::Strict, Self::Permissive, Self::Ci];

    /// The name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Strict => "strict",
            Self::Permissive => "permissive",
            Self::Ci => "ci",
        }
    }

    /// What it is for, in a sentence.
    pub fn summary(self) -> Result<String, Error> {
        Ok(self.manifest()?.summary)
    }

    fn source(self) -> (&'static str, &'static str) {
        match self {
            Self::Default => ("packs/default.yaml", include_str!("../packs/default.yaml")),
            Self::Strict => ("packs/strict.yaml", include_str!("../packs/strict.yaml")),
            Self::Permissive => ("packs/permissive.yaml", include_str!("../packs/permissive.yaml")),
            Self::Ci => ("packs/ci.yaml", include_str!("../packs/ci.yaml")),
        }
    }

    /// Every text the pack is made of.
    pub(crate) fn texts(self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.source().1).chain(FILES.map(|(_, _, text)| text))
    }

    fn manifest(self) -> Result<PackManifest, Error> {
        let (name, text) = self.source();
        let manifest: PackManifest = yaml::parse(name, text)?;
        if manifest.schema == SCHEMA {
            Ok(manifest)
        } else {
            Err(Error::embedded(name, format!("the schema is not {SCHEMA}")))
        }
    }

    /// The pack's rules.
    pub(crate) fn contents(self) -> Result<&'static Contents, Error> {
        let [default, strict, permissive, ci] = &CONTENTS;
        let kept = match self {
            Self::Default => default,
            Self::Strict => strict,
            Self::Permissive => permissive,
            Self::Ci => ci,
        };
        kept.get_or_init(|| self.read()).as_ref().map_err(Clone::clone)
    }

    fn read(self) -> Result<Contents, Error> {
        let manifest = self.manifest()?;
        let (name, _) = self.source();
        let mut drafts: Vec<(&'static str, RuleDraft)> = Vec::new();
        let mut environment = Vec::new();
        for wanted in &manifest.rules {
            let Some((_, name, text)) = FILES.into_iter().find(|(file, ..)| file == wanted) else {
                return Err(Error::embedded(name, format!("there is no rule file `{wanted}`")));
            };
            let file = RuleDocument::parse(name, text)?;
            drafts.extend(file.rules.into_iter().map(|draft| (name, draft)));
            environment.extend(file.environment);
        }
        for id in &manifest.without {
            if !drafts.iter().any(|(_, draft)| draft.id.value == *id) {
                return Err(Error::embedded(name, format!("there is no rule `{id}`")));
            }
        }
        drafts.retain(|(_, draft)| !manifest.without.contains(&draft.id.value));
        let rules = drafts
            .iter()
            .map(|(name, draft)| draft.compile(name, "", Layer::Pack))
            .collect::<Result<_, _>>()?;
        let origins = drafts
            .into_iter()
            .map(|(name, draft)| RuleOrigin { name: name.to_owned(), draft })
            .collect();
        Ok(Contents { rules, origins, environment, asks: manifest.asks })
    }

    /// The ids of all rules of all packs, with the layer in front.
    pub(crate) fn known_ids() -> Result<&'static [String], Error> {
        IDS.as_deref().map_err(Clone::clone)
    }
}
