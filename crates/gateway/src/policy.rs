//! The rules that count, for this action, now: what the files on disk say, which project it is about, what a person has
//! granted.
//!
//! Guarantees: rules that do not load never take the place of rules that did; a project's own rules that do not load make
//! every verdict in that project at least an ask; rules that are only tried never change an answer; an action is read
//! once per verdict. It deliberately decides nothing itself: [`banister_policy`] does, and this says what it is shown.
//!
//! A verdict whose rules are loaded is given where it is asked for; it looks at the names and dates of files, no more.
//! Whatever reads files or the journal, or loads rules, runs on the blocking pool and holds no lock meanwhile.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use banister_events::activity::{Action, Gate};
use banister_policy::{ActionRequest, Explanation, Rules, Subject, evaluate, explain};
use jiff::Timestamp;

mod files;
mod grants;
mod judging;
mod links;
mod projects;
mod recorded;
mod rule_sets;
mod verdict;

use files::FileStamp;
pub use files::{ORG, PROJECT, RuleFile, RuleFiles, RulesTrouble};
use grants::Grants;
pub(crate) use grants::{Covers, Grant, GrantScope, LIFETIME, NotGranted, Revoked};
use links::links;
use projects::{Projects, project_of};
pub use recorded::RecordedVerdict;
use rule_sets::{BaseRules, LazySet, LoadedPair, RulePair, RuleSets, SetKey};
pub use verdict::{Gated, Provenance, Shadow, effect_line};
use verdict::{at_least_asked, gate, read, unjudged};

/// Among how many of a session's first records its project is looked for.
const FIRST_RECORDS: usize = 64;
/// The rule that is named where a project's own rules do not load.
const UNLOADED: &str = "project-rules";
/// The rule that is named where too many paths are named to look at each.
const UNSEEN_LINKS: &str = "links";

/// The rules on disk, the grants, and the projects of sessions.
#[derive(Debug)]
pub struct PolicyStore {
    files: RuleFiles,
    home: Option<PathBuf>,
    state: Mutex<StoreState>,
}

#[derive(Debug)]
struct StoreState {
    stamps: BaseStamps,
    sets: RuleSets,
    /// Why the files, as they are now, do not count.
    failed: Option<String>,
    reloads: Reloads,
    projects: Projects,
    grants: Grants,
}

type BaseStamps = [Option<FileStamp>; 3];

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
pub struct PolicyQuestion<'a> {
    /// The agent's short name.
    pub agent: &'a str,
    /// The session, where there is one: its project stays the same.
    pub session: Option<&'a str>,
    /// What it wants to do.
    pub action: &'a Action,
    /// Where it is.
    pub cwd: Option<&'a str>,
    /// What it works on, where that is known better than by its directory.
    pub project: Option<&'a Path>,
    /// Banister's own files and directories.
    pub own: &'a [PathBuf],
    /// When: grants end.
    pub now: Timestamp,
}

/// A verdict, and everything that led to it.
#[derive(Debug, Clone)]
pub struct Judgement {
    /// What is said.
    pub gate: Gate,
    /// Why, step by step.
    pub explanation: Explanation,
    /// What goes into the record beside the gate.
    pub provenance: Provenance,
}

impl PolicyStore {
    /// Reads and loads the rules. They have to load.
    pub fn open(files: RuleFiles, home: Option<PathBuf>) -> Result<Self, RulesTrouble> {
        let stamps = stamps(&files);
        let base = Arc::new(BaseRules::read(&files)?);
        Ok(Self { files, home, state: Mutex::new(StoreState::new(stamps, base)) })
    }

    /// The same rules, for another gateway: loading them takes its time.
    #[cfg(test)]
    pub(crate) fn afresh(&self) -> Self {
        let state = self.lock();
        let state = StoreState::new(state.stamps.clone(), Arc::clone(state.sets.base()));
        Self { files: self.files.clone(), home: self.home.clone(), state: Mutex::new(state) }
    }

    /// Which rules count now.
    pub fn standing(&self) -> Standing {
        let state = self.lock();
        let RulePair { live, tried } = &state.sets.base().rules;
        Standing {
            hash: live.hash().to_owned(),
            shadow: tried.as_ref().map(|rules| rules.hash().to_owned()),
            failed: state.failed.clone(),
            reloads: state.reloads,
        }
    }

    /// Looks whether files have changed, and loads them again if so. Rules that do not load change nothing. Blocks on the
    /// disk.
    pub fn refresh(&self) {
        let now = stamps(&self.files);
        if self.lock().stamps == now {
            return;
        }
        // Loading takes its time: meanwhile the old rules decide.
        let loaded = BaseRules::read(&self.files);
        let mut state = self.lock();
        state.stamps = now;
        match loaded {
            Ok(base) => {
                tracing::info!(rules = base.rules.live.hash(), "The rules were loaded again.");
                state.sets.rebase(Arc::new(base));
                state.failed = None;
                state.reloads.good += 1;
            }
            Err(trouble) => {
                tracing::error!("The new rules do not load; the old ones still count: {trouble}");
                state.failed = Some(trouble.to_string());
                state.reloads.failed += 1;
            }
        }
    }

    /// Decides, and says why. Blocks on the disk where rules have to be loaded.
    pub fn judge(&self, question: &PolicyQuestion<'_>) -> Judgement {
        let scene = self.scene(question, None);
        self.decide(question, &scene, &scene.load())
    }

    /// What would be decided if this were granted as well. Blocks like [`judge`](Self::judge).
    pub(crate) fn judge_with(&self, question: &PolicyQuestion<'_>, grant: &Grant) -> Judgement {
        let scene = self.scene(question, Some(grant));
        self.decide(question, &scene, &scene.load())
    }

    /// Decides if everything is at hand; `None` where rules have to be loaded, or the journal has to be asked for the
    /// session's project.
    fn judge_if_loaded(&self, question: &PolicyQuestion<'_>) -> Option<Judgement> {
        if question.session.is_some_and(|session| !self.lock().projects.knows(session)) {
            return None;
        }
        let scene = self.scene(question, None);
        let chosen = scene.loaded()?;
        Some(self.decide(question, &scene, &chosen))
    }

    /// Finds out which project an action is about, and which sets of rules count for it. Loads nothing.
    fn scene(&self, question: &PolicyQuestion<'_>, also: Option<&Grant>) -> Scene {
        let cwd = question.cwd.map(Path::new).filter(|cwd| cwd.is_absolute());
        let project = self.project(question, cwd);
        let (files, trouble) = match (cwd, &project) {
            (Some(cwd), Some(project)) => projects::rule_files(cwd, project, self.home.as_deref()),
            _ => (Vec::new(), None),
        };
        let files: Vec<(PathBuf, Option<FileStamp>)> =
            files.into_iter().map(|file| (file.clone(), FileStamp::of(&file))).collect();
        let mut state = self.lock();
        let grants = match &project {
            Some(project) => {
                let project = project.to_string_lossy();
                let counts =
                    |grant: &&Grant| grant.counts(question.session, &project, question.now);
                state.grants.with(also).filter(counts).cloned().collect()
            }
            None => Vec::new(),
        };
        let granted = (!grants.is_empty())
            .then(|| state.sets.get(SetKey { file: None, grants: grants.clone() }, None));
        let with_file = |(file, stamp): (PathBuf, Option<FileStamp>)| {
            state.sets.get(SetKey { file: Some(file), grants: grants.clone() }, stamp)
        };
        let of_files = files.into_iter().map(with_file).collect();
        let base = Arc::clone(state.sets.base());
        let trouble = trouble.map(|trouble| trouble.to_string());
        Scene { project, of_files, granted, base, trouble }
    }

    fn decide(&self, question: &PolicyQuestion<'_>, scene: &Scene, chosen: &Chosen) -> Judgement {
        let project = scene.project.as_ref().map(|project| project.to_string_lossy().into_owned());
        let home = self.home.as_ref().map(|home| home.to_string_lossy());
        let request = ActionRequest {
            agent: question.agent,
            action: question.action,
            cwd: question.cwd,
            project: project.as_deref(),
            home: home.as_deref(),
            own: question.own,
        };
        let subject = read_action(&chosen.first.live, &request);
        let known = [request.project, request.home, request.cwd];
        let known: Vec<&Path> = known.into_iter().flatten().map(Path::new).collect();
        let links = subject.named_paths().and_then(|paths| links(&paths, &known));
        let subject = subject.with_links(links.as_deref().unwrap_or_default());

        let mut explanation = chosen.explain(&subject);
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
            .tried(&subject)
            .filter(|tried| (tried.decision, &tried.rule) != (gate.decision, &gate.rule));
        let read = read(&explanation);
        let rules = Some(explanation.rules.clone());
        let provenance = Provenance { rules, project, read, shadow };
        Judgement { gate, explanation, provenance }
    }

    fn project(&self, question: &PolicyQuestion<'_>, cwd: Option<&Path>) -> Option<PathBuf> {
        if let Some(project) = question.project {
            return Some(project.to_owned());
        }
        let cwd = cwd?;
        let settled =
            question.session.and_then(|session| self.lock().projects.of(session).cloned());
        let found = || project_of(cwd, self.home.as_deref());
        Some(match (settled, question.session) {
            (Some(project), _) => project,
            (None, Some(session)) => {
                let project = found();
                self.lock().projects.settle(session, project)
            }
            (None, None) => found(),
        })
    }

    /// Whether there is room for no more grants.
    pub(crate) fn has_most_grants(&self, now: Timestamp) -> bool {
        let mut state = self.lock();
        state.grants.end(now);
        state.grants.is_full()
    }

    /// The grants that have not ended, oldest first.
    pub(crate) fn grants(&self, now: Timestamp) -> Vec<Grant> {
        let mut state = self.lock();
        state.grants.end(now);
        state.grants.with(None).cloned().collect()
    }

    pub(crate) fn grant(&self, grant: Grant) {
        self.lock().grants.add(grant);
    }

    pub(crate) fn revoke(&self, id: &str) {
        self.lock().grants.remove(id);
    }

    fn lock(&self) -> MutexGuard<'_, StoreState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StoreState {
    fn new(stamps: BaseStamps, base: Arc<BaseRules>) -> Self {
        Self {
            stamps,
            sets: RuleSets::new(base),
            failed: None,
            reloads: Reloads::default(),
            projects: Projects::default(),
            grants: Grants::default(),
        }
    }
}

/// The project of an action, and the sets of rules that count for it, loaded or not.
struct Scene {
    project: Option<PathBuf>,
    /// With each rule file of the project.
    of_files: Vec<Arc<LazySet>>,
    /// With grants alone: for where no file counts.
    granted: Option<Arc<LazySet>>,
    base: Arc<BaseRules>,
    /// What is wrong with the project's rule files as they stand there.
    trouble: Option<String>,
}

impl Scene {
    /// What is shown to policy, if it is loaded.
    fn loaded(&self) -> Option<Chosen> {
        self.choose(|set| set.loaded().ok_or(())).ok()
    }

    /// What is shown to policy, loaded where it is not. Blocks on the disk.
    fn load(&self) -> Chosen {
        let Ok(chosen) = self.choose(|set| Ok::<_, Infallible>(set.load()));
        chosen
    }

    fn choose<'s, E>(
        &'s self,
        rules_of: impl Fn(&'s LazySet) -> Result<&'s LoadedPair, E>,
    ) -> Result<Chosen, E> {
        let mut trouble = self.trouble.clone();
        let mut pairs = Vec::new();
        for set in &self.of_files {
            match rules_of(set)? {
                Ok(pair) => pairs.push(pair.clone()),
                Err(why) => trouble = Some(trouble.unwrap_or_else(|| why.clone())),
            }
        }
        if pairs.is_empty()
            && let Some(granted) = &self.granted
        {
            // A grant that does not load is none.
            pairs.extend(rules_of(granted)?.clone());
        }
        let mut pairs = pairs.into_iter();
        let first = pairs.next().unwrap_or_else(|| self.base.rules.clone());
        Ok(Chosen { first, others: pairs.collect(), trouble })
    }
}

/// What is shown to policy: several sets where several files of a project count. The strictest verdict is the one.
struct Chosen {
    first: RulePair,
    others: Vec<RulePair>,
    /// Why a project's own rules do not count.
    trouble: Option<String>,
}

impl Chosen {
    fn explain(&self, subject: &Subject<'_>) -> Explanation {
        let first = explain(&self.first.live, subject);
        self.others.iter().map(|pair| explain(&pair.live, subject)).fold(first, |one, other| {
            let key = |explanation: &Explanation| (explanation.verdict, explanation.risk);
            if key(&other) > key(&one) { other } else { one }
        })
    }

    fn tried(&self, subject: &Subject<'_>) -> Option<Shadow> {
        let sets = std::iter::once(&self.first).chain(&self.others);
        let verdicts = sets.filter_map(|pair| pair.tried.as_ref()).map(|rules| {
            let gate = evaluate(rules, subject);
            Shadow { decision: gate.decision, rule: gate.rule, rules: rules.hash().to_owned() }
        });
        verdicts.reduce(|one, other| if other.decision > one.decision { other } else { one })
    }
}

/// Reads an action. This is the only call that does, so that each verdict reads once.
fn read_action<'a>(rules: &Rules, request: &ActionRequest<'a>) -> Subject<'a> {
    #[cfg(test)]
    tests::READS.set(tests::READS.get() + 1);
    rules.read(request)
}

fn stamps(files: &RuleFiles) -> BaseStamps {
    [&files.org, &files.user, &files.shadow]
        .map(|file| file.as_ref().and_then(|file| FileStamp::of(&file.path)))
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
