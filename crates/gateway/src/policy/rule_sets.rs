//! Sets of rules, each loaded once and kept: those that count everywhere, and with each project's own and with grants.
//!
//! Loading reads a file, compiles its rules and tries their examples, which takes its time. So a set is looked up under
//! the store's lock and loaded outside of it: [`LazySet::load`] blocks whoever wants the same set, and nobody else.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use banister_policy::Rules;

use super::files::{FileStamp, RuleFiles, RuleText, RuleTexts, RulesTrouble, project_text};
use super::grants::{self, Grant};

/// The most sets of rules that are kept loaded beside the usual one.
const MOST_SETS: usize = 64;

/// Rules that count, and rules that are only tried.
#[derive(Debug, Clone)]
pub(super) struct RulePair {
    pub(super) live: Rules,
    pub(super) tried: Option<Rules>,
}

/// A set that was loaded, or why it does not load.
pub(super) type LoadedPair = Result<RulePair, String>;

impl RulePair {
    fn load(
        texts: &RuleTexts,
        tried: Option<&RuleTexts>,
        project: Option<&RuleText>,
        grants: Option<&RuleText>,
    ) -> Result<Self, banister_policy::Error> {
        let tried = tried.map(|texts| texts.load(project, grants)).transpose()?;
        Ok(Self { live: texts.load(project, grants)?, tried })
    }
}

/// What the files that count everywhere say, and the rules that this makes.
#[derive(Debug)]
pub(super) struct BaseRules {
    texts: RuleTexts,
    /// The same with the rules that are only tried.
    tried: Option<RuleTexts>,
    pub(super) rules: RulePair,
}

impl BaseRules {
    /// Reads and loads them. Blocks on the disk.
    pub(super) fn read(files: &RuleFiles) -> Result<Self, RulesTrouble> {
        let texts = RuleTexts::read(files)?;
        let tried = match &files.shadow {
            Some(file) => Some(texts.clone().with_user(file)?),
            None => None,
        };
        let rules = RulePair::load(&texts, tried.as_ref(), None, None)?;
        Ok(Self { texts, tried, rules })
    }
}

/// What a set has beside the rules that count everywhere.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct SetKey {
    /// A project's rule file.
    pub(super) file: Option<PathBuf>,
    /// The grants that count.
    pub(super) grants: Vec<Grant>,
}

/// A set that is loaded by whoever needs it first.
#[derive(Debug)]
pub(super) struct LazySet {
    key: SetKey,
    /// What the project's file looked like when the set was wanted.
    stamp: Option<FileStamp>,
    base: Arc<BaseRules>,
    rules: OnceLock<LoadedPair>,
    #[cfg(test)]
    before_load: BeforeLoad,
}

impl LazySet {
    /// The rules, if they are loaded.
    pub(super) fn loaded(&self) -> Option<&LoadedPair> {
        self.rules.get()
    }

    /// The rules, loaded if they are not. Blocks on the disk, and on whoever loads the same set.
    pub(super) fn load(&self) -> &LoadedPair {
        self.rules.get_or_init(|| {
            let file = self.key.file.as_deref();
            #[cfg(test)]
            self.before_load.call(file);
            let loaded = self.read().map_err(|trouble| trouble.to_string());
            report(file, &loaded);
            loaded
        })
    }

    fn read(&self) -> Result<RulePair, RulesTrouble> {
        let SetKey { file, grants } = &self.key;
        let project = file.as_deref().map(project_text).transpose()?;
        let grants = (!grants.is_empty()).then(|| grants::text(grants.iter()));
        let BaseRules { texts, tried, .. } = &*self.base;
        Ok(RulePair::load(texts, tried.as_ref(), project.as_ref(), grants.as_ref())?)
    }
}

fn report(file: Option<&Path>, loaded: &LoadedPair) {
    match (loaded, file) {
        (Ok(pair), Some(file)) => {
            let (file, rules) = (file.display(), pair.live.hash());
            tracing::info!(%file, rules, "A project's own rules count.");
        }
        (Ok(_), None) => {}
        (Err(trouble), Some(_)) => tracing::warn!(
            "A project's own rules do not load, so everything in it is asked: {trouble}"
        ),
        (Err(trouble), None) => {
            tracing::error!("Grants do not load and do not count: {trouble}");
        }
    }
}

/// The sets that are kept.
#[derive(Debug)]
pub(super) struct RuleSets {
    base: Arc<BaseRules>,
    sets: HashMap<SetKey, Arc<LazySet>>,
    #[cfg(test)]
    pub(super) before_load: BeforeLoad,
}

impl RuleSets {
    pub(super) fn new(base: Arc<BaseRules>) -> Self {
        Self {
            base,
            sets: HashMap::new(),
            #[cfg(test)]
            before_load: BeforeLoad::default(),
        }
    }

    /// The rules that count everywhere.
    pub(super) fn base(&self) -> &Arc<BaseRules> {
        &self.base
    }

    /// Puts other rules in their place; what was made of the old ones is made again when it is wanted.
    pub(super) fn rebase(&mut self, base: Arc<BaseRules>) {
        self.base = base;
        self.sets.clear();
    }

    /// A set, given what the project's file looks like now. Loads nothing.
    pub(super) fn get(&mut self, key: SetKey, stamp: Option<FileStamp>) -> Arc<LazySet> {
        if let Some(set) = self.sets.get(&key)
            && set.stamp == stamp
        {
            return Arc::clone(set);
        }
        if self.sets.len() >= MOST_SETS && !self.sets.contains_key(&key) {
            self.sets.clear();
        }
        let set = Arc::new(LazySet {
            key: key.clone(),
            stamp,
            base: Arc::clone(&self.base),
            rules: OnceLock::new(),
            #[cfg(test)]
            before_load: self.before_load.clone(),
        });
        self.sets.insert(key, Arc::clone(&set));
        set
    }
}

#[cfg(test)]
type LoadHook = dyn Fn(Option<&Path>) + Send + Sync;

/// What a test does before a set is loaded: count, or wait.
#[cfg(test)]
#[derive(Clone, Default)]
pub(super) struct BeforeLoad(pub(super) Option<Arc<LoadHook>>);

#[cfg(test)]
impl BeforeLoad {
    fn call(&self, file: Option<&Path>) {
        if let Some(hook) = &self.0 {
            hook(file);
        }
    }
}

#[cfg(test)]
impl std::fmt::Debug for BeforeLoad {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BeforeLoad")
    }
}
