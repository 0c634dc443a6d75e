//! The rules that count, for this action, now: what the files on disk say, which project it is about, what a person has
//! granted.
//!
//! Guarantees: rules that do not load never take the place of rules that did; a project's own rules that do not load make
//! every verdict in that project at least an ask; rules that are only tried never change an answer. It deliberately
//! decides nothing itself: [`banister_policy`] does, and this says what it is shown.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use banister_events::activity::{Action, Gate};
use banister_journal::Level;
use banister_policy::{Explanation, Request, Rules, evaluate, explain, named_paths};
use jiff::Timestamp;

use crate::Gateway;

mod files;
mod grants;
mod past;
mod place;
mod verdict;

pub use files::{File, Files, ORG, PROJECT, Trouble};
use files::{Stamp, Text, Texts, project_text};
use grants::Grants;
pub use grants::{Covers, Grant, LIFETIME, NotGranted, Revoked, Scope};
pub use past::Past;
use place::Projects;
pub use place::{links, project_of};
pub use verdict::{Gated, Provenance, Shadow, effect_line};
use verdict::{at_least_asked, gate, read};

/// The most sets of rules that are kept loaded beside the usual one.
const MOST_SETS: usize = 64;
/// Among how many of a session's first records its project is looked for.
const FIRST_RECORDS: usize = 64;
/// The rule that is named where a project's own rules do not load.
pub const UNLOADED: &str = "project-rules";
/// The rule that is named where too many paths are named to look at each.
pub const UNSEEN_LINKS: &str = "links";

/// The rules on disk.
#[derive(Debug)]
pub struct Book {
    files: Files,
    home: Option<PathBuf>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    stamps: Stamps,
    loaded: Loaded,
    /// Why the files, as they are now, do not count.
    failed: Option<String>,
    /// How often the rules have changed: what was loaded before is loaded again.
    version: u64,
    reloads: Reloads,
    sets: HashMap<Key, Set>,
    projects: Projects,
    grants: Grants,
}

/// A project's rule file, and the grants that count.
type Key = (Option<PathBuf>, Vec<Grant>);

/// What the files say, and the rules that this makes.
#[derive(Debug, Clone)]
struct Loaded {
    texts: Texts,
    /// The same with the rules that are only tried.
    tried: Option<Texts>,
    rules: Pair,
}

/// Rules that count, and rules that are only tried.
#[derive(Debug, Clone)]
struct Pair {
    live: Rules,
    tried: Option<Rules>,
}

/// Rules with a project's own.
#[derive(Debug)]
struct Set {
    stamp: Option<Stamp>,
    version: u64,
    rules: Result<Pair, String>,
}

type Stamps = [Option<Stamp>; 3];

/// How often rules were loaded again, and how often that failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reloads {
    /// The new rules count.
    pub good: u64,
    /// The old rules still count.
    pub failed: u64,
}

/// Which rules count now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// The hash of the rules that count everywhere.
    pub hash: String,
    /// The hash of the rules that are tried.
    pub shadow: Option<String>,
    /// Why the files as they are now do not count, where they do not.
    pub failed: Option<String>,
    /// How often they were loaded again.
    pub reloads: Reloads,
}

/// An action, and where it happens.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The agent's short name.
    pub agent: &'a str,
    /// The session, where there is one: its project stays the same.
    pub session: Option<&'a str>,
    /// What it wants to do.
    pub action: &'a Action,
    /// Where it is.
    pub cwd: Option<&'a str>,
    /// What it works on, where that is known better than by [`project_of`].
    pub project: Option<&'a Path>,
    /// Banister's own files and directories.
    pub own: &'a [PathBuf],
    /// When: grants end.
    pub now: Timestamp,
}

/// A verdict, and everything that led to it.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// What is said.
    pub gate: Gate,
    /// Why, step by step.
    pub explanation: Explanation,
    /// What goes into the record beside the gate.
    pub provenance: Provenance,
}

impl Gateway {
    /// Decides about an action of this source, as its record will have it.
    pub(crate) fn judge(&self, source: &str, asked: &Asked<'_>) -> Gated {
        if let Some(session) = asked.session {
            self.remember_project(session);
        }
        let Verdict { gate, mut provenance, .. } = self.book.judge(asked);
        if let Some(shadow) = &provenance.shadow {
            self.metrics.tried(gate.decision, shadow.decision);
        }
        if self.keeper.level(source) <= Level::Metadata {
            // What was read is content.
            provenance.read.clear();
        }
        Gated { gate, provenance }
    }

    /// A session that is older than this gateway keeps the project that it was decided about with.
    fn remember_project(&self, session: &str) {
        if self.book.lock().projects.knows(session) {
            return;
        }
        match self.journal.session(session, 0, FIRST_RECORDS) {
            Ok(records) => {
                let mut recorded = records.iter().filter_map(|record| Past::verdict(record));
                let project = recorded.find_map(|gated| gated.provenance.project);
                if let Some(project) = project {
                    self.book.lock().projects.settle(session, PathBuf::from(project));
                }
            }
            Err(error) => tracing::warn!(%error, "A session's project could not be looked up."),
        }
    }
}

impl Book {
    /// Reads and loads the rules. They have to load.
    pub fn open(files: Files, home: Option<PathBuf>) -> Result<Self, Trouble> {
        let stamps = stamps(&files);
        let loaded = Loaded::read(&files)?;
        Ok(Self { files, home, state: Mutex::new(State::new(stamps, loaded)) })
    }

    /// The same rules, for another gateway: loading them takes its time.
    #[cfg(test)]
    pub(crate) fn afresh(&self) -> Self {
        let state = self.lock();
        let state = State::new(state.stamps.clone(), state.loaded.clone());
        Self { files: self.files.clone(), home: self.home.clone(), state: Mutex::new(state) }
    }

    /// Which rules count now.
    pub fn standing(&self) -> Standing {
        let state = self.lock();
        Standing {
            hash: state.loaded.rules.live.hash().to_owned(),
            shadow: state.loaded.rules.tried.as_ref().map(|rules| rules.hash().to_owned()),
            failed: state.failed.clone(),
            reloads: state.reloads,
        }
    }

    /// Looks whether files have changed, and loads them again if so. Rules that do not load change nothing.
    pub fn refresh(&self) {
        let now = stamps(&self.files);
        if self.lock().stamps == now {
            return;
        }
        // Loading takes its time: meanwhile the old rules decide.
        let loaded = Loaded::read(&self.files);
        let mut state = self.lock();
        state.stamps = now;
        match loaded {
            Ok(loaded) => {
                tracing::info!(rules = loaded.rules.live.hash(), "The rules were loaded again.");
                state.loaded = loaded;
                state.failed = None;
                state.version += 1;
                state.reloads.good += 1;
            }
            Err(trouble) => {
                tracing::error!("The new rules do not load; the old ones still count: {trouble}");
                state.failed = Some(trouble.to_string());
                state.reloads.failed += 1;
            }
        }
    }

    /// Decides, and says why.
    pub fn judge(&self, asked: &Asked<'_>) -> Verdict {
        let cwd = asked.cwd.map(Path::new).filter(|cwd| cwd.is_absolute());
        let project = self.project(asked, cwd);
        let grants = self.lock().grants.clone();
        self.decide(asked, cwd, project, &grants)
    }

    /// What would be decided if this were granted as well.
    pub(crate) fn judge_with(&self, asked: &Asked<'_>, grant: &Grant) -> Verdict {
        let cwd = asked.cwd.map(Path::new).filter(|cwd| cwd.is_absolute());
        let project = self.project(asked, cwd);
        let mut grants = self.lock().grants.clone();
        grants.add(grant.clone());
        self.decide(asked, cwd, project, &grants)
    }

    fn decide(
        &self,
        asked: &Asked<'_>,
        cwd: Option<&Path>,
        project: Option<PathBuf>,
        grants: &Grants,
    ) -> Verdict {
        let granted: Vec<&Grant> = match &project {
            Some(project) => {
                let project = project.to_string_lossy();
                let counts = |grant: &&Grant| grant.counts(asked.session, &project, asked.now);
                grants.iter().filter(counts).collect()
            }
            None => Vec::new(),
        };
        let chosen = self.choose(cwd, project.as_deref(), &granted);
        let project = project.map(|project| project.to_string_lossy().into_owned());
        let home = self.home.as_ref().map(|home| home.to_string_lossy());
        let mut request = Request {
            agent: asked.agent,
            action: asked.action,
            cwd: asked.cwd,
            project: project.as_deref(),
            home: home.as_deref(),
            own: asked.own,
            links: &[],
        };
        let links = Self::links(&chosen.first.live, &request);
        request.links = links.as_deref().unwrap_or_default();

        let mut explanation = chosen.explain(&request);
        if let Some(trouble) = &chosen.trouble {
            let reason = format!("This project's own rules do not load: {trouble}.");
            at_least_asked(&mut explanation, self.files.pack, UNLOADED, &reason);
        }
        if links.is_none() {
            let reason = "It names more files than can be looked at for links.";
            at_least_asked(&mut explanation, self.files.pack, UNSEEN_LINKS, reason);
        }
        let gate = gate(&explanation);
        let shadow = chosen
            .tried(&request)
            .filter(|tried| (tried.decision, &tried.rule) != (gate.decision, &gate.rule));
        let read = read(&explanation);
        let rules = Some(explanation.rules.clone());
        let provenance = Provenance { rules, project, read, shadow };
        Verdict { gate, explanation, provenance }
    }

    fn project(&self, asked: &Asked<'_>, cwd: Option<&Path>) -> Option<PathBuf> {
        if let Some(project) = asked.project {
            return Some(project.to_owned());
        }
        let home = self.home.as_deref();
        match (asked.session, cwd?) {
            (Some(session), cwd) => Some(self.lock().projects.of(session, cwd, home)),
            (None, cwd) => Some(project_of(cwd, home)),
        }
    }

    /// The rules that count for an action in this directory of this project.
    fn choose(&self, cwd: Option<&Path>, project: Option<&Path>, granted: &[&Grant]) -> Chosen {
        let (files, trouble) = match (cwd, project) {
            (Some(cwd), Some(project)) => place::rule_files(cwd, project, self.home.as_deref()),
            _ => (Vec::new(), None),
        };
        let mut trouble = trouble.map(|trouble| trouble.to_string());
        let mut state = self.lock();
        let mut sets = Vec::new();
        for file in files {
            match state.with(Some(&file), granted) {
                Ok(pair) => sets.push(pair),
                Err(why) => trouble = Some(trouble.unwrap_or(why)),
            }
        }
        if sets.is_empty() && !granted.is_empty() {
            // A grant that does not load is none.
            sets.extend(state.with(None, granted).ok());
        }
        let mut sets = sets.into_iter();
        let first = sets.next().unwrap_or_else(|| state.loaded.rules.clone());
        Chosen { first, others: sets.collect(), trouble }
    }

    /// The links among the paths that an action names; `None` where they could not all be looked at.
    fn links(rules: &Rules, request: &Request<'_>) -> Option<Vec<(PathBuf, PathBuf)>> {
        let paths = named_paths(rules, request)?;
        let known = [request.project, request.home, request.cwd];
        let known: Vec<&Path> = known.into_iter().flatten().map(Path::new).collect();
        links(&paths, &known)
    }

    /// Whether there is room for no more grants.
    pub(crate) fn has_most_grants(&self, now: Timestamp) -> bool {
        let mut state = self.lock();
        state.grants.end(now);
        state.grants.is_full()
    }

    /// The grants that have not ended, oldest first.
    pub fn grants(&self, now: Timestamp) -> Vec<Grant> {
        let mut state = self.lock();
        state.grants.end(now);
        state.grants.iter().cloned().collect()
    }

    pub(crate) fn grant(&self, grant: Grant) {
        self.lock().grants.add(grant);
    }

    pub(crate) fn revoke(&self, id: &str) {
        self.lock().grants.remove(id);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn new(stamps: Stamps, loaded: Loaded) -> Self {
        Self {
            stamps,
            loaded,
            failed: None,
            version: 0,
            reloads: Reloads::default(),
            sets: HashMap::new(),
            projects: Projects::default(),
            grants: Grants::default(),
        }
    }

    /// The rules with those of a project's file and with grants, or why that does not load.
    fn with(&mut self, file: Option<&Path>, granted: &[&Grant]) -> Result<Pair, String> {
        let grants = granted.iter().copied().cloned().collect();
        let key: Key = (file.map(Path::to_owned), grants);
        let stamp = file.and_then(Stamp::of);
        if let Some(set) = self.sets.get(&key)
            && set.stamp == stamp
            && set.version == self.version
        {
            return set.rules.clone();
        }
        let grants = (!granted.is_empty()).then(|| grants::text(granted.iter().copied()));
        let loaded = file
            .map(project_text)
            .transpose()
            .and_then(|text| Ok(self.loaded.pair(text.as_ref(), grants.as_ref())?))
            .map_err(|trouble| trouble.to_string());
        match (&loaded, file) {
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
        if self.sets.len() >= MOST_SETS && !self.sets.contains_key(&key) {
            self.sets.clear();
        }
        let set = Set { stamp, version: self.version, rules: loaded.clone() };
        self.sets.insert(key, set);
        loaded
    }
}

/// What is shown to policy: several sets where several files of a project count. The strictest verdict is the one.
struct Chosen {
    first: Pair,
    others: Vec<Pair>,
    /// Why a project's own rules do not count.
    trouble: Option<String>,
}

impl Chosen {
    fn explain(&self, request: &Request<'_>) -> Explanation {
        let told = explain(&self.first.live, request);
        self.others.iter().map(|pair| explain(&pair.live, request)).fold(told, |one, other| {
            let key = |told: &Explanation| (told.verdict, told.risk);
            if key(&other) > key(&one) { other } else { one }
        })
    }

    fn tried(&self, request: &Request<'_>) -> Option<Shadow> {
        let sets = std::iter::once(&self.first).chain(&self.others);
        let said = sets.filter_map(|pair| pair.tried.as_ref()).map(|rules| {
            let gate = evaluate(rules, request);
            Shadow { decision: gate.decision, rule: gate.rule, rules: rules.hash().to_owned() }
        });
        said.reduce(|one, other| if other.decision > one.decision { other } else { one })
    }
}

impl Loaded {
    fn read(files: &Files) -> Result<Self, Trouble> {
        let texts = Texts::read(files)?;
        let tried = match &files.shadow {
            Some(file) => Some(texts.clone().with_user(file)?),
            None => None,
        };
        let rules = Pair::load(&texts, tried.as_ref(), None, None)?;
        Ok(Self { texts, tried, rules })
    }

    fn pair(
        &self,
        project: Option<&Text>,
        grants: Option<&Text>,
    ) -> Result<Pair, banister_policy::Error> {
        Pair::load(&self.texts, self.tried.as_ref(), project, grants)
    }
}

impl Pair {
    fn load(
        texts: &Texts,
        tried: Option<&Texts>,
        project: Option<&Text>,
        grants: Option<&Text>,
    ) -> Result<Self, banister_policy::Error> {
        let tried = tried.map(|texts| texts.load(project, grants)).transpose()?;
        Ok(Self { live: texts.load(project, grants)?, tried })
    }
}

fn stamps(files: &Files) -> Stamps {
    [&files.org, &files.user, &files.shadow]
        .map(|file| file.as_ref().and_then(|file| Stamp::of(&file.path)))
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
