//! Projects: which one a directory belongs to, where its rule files are, and which one each session has.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};

use super::files::{PROJECT, RulesTrouble};

/// The most sessions whose project is remembered.
const MOST_SESSIONS: usize = 4_096;
/// The most folders between a directory and its project's root that are looked at.
const MOST_FOLDERS: usize = 64;

/// What an agent that works in this directory works on: the repository's root, or the directory itself where there is
/// none. A repository that holds the person's home is none: everything of the person's would be in it.
pub(super) fn project_of(cwd: &Path, home: Option<&Path>) -> PathBuf {
    let above = cwd.ancestors().take(MOST_FOLDERS);
    let narrow = |folder: &&Path| {
        folder.parent().is_some() && home.is_none_or(|home| !home.starts_with(folder))
    };
    let root = above.take_while(narrow).find(|folder| folder.join(".git").exists());
    root.unwrap_or(cwd).to_owned()
}

/// The rule files that count in a directory of a project, outermost first: those of the project's root and of every folder
/// on the way. Where an agent has gone elsewhere, those of the project it has gone to count as well.
pub(super) fn rule_files(
    cwd: &Path,
    project: &Path,
    home: Option<&Path>,
) -> (Vec<PathBuf>, Option<RulesTrouble>) {
    let mut folders: Vec<&Path> = vec![project];
    let here = if cwd.starts_with(project) { project.to_owned() } else { project_of(cwd, home) };
    let above = cwd.ancestors().take(MOST_FOLDERS).take_while(|folder| folder.starts_with(&here));
    let mut above: Vec<&Path> = above.filter(|folder| *folder != project).collect();
    above.reverse();
    folders.append(&mut above);
    let (mut files, mut trouble) = (Vec::new(), None);
    for folder in folders {
        let there = |path: &PathBuf| path.symlink_metadata().is_ok();
        let found = PROJECT.map(|name| folder.join(name)).into_iter().filter(there);
        let found: Vec<PathBuf> = found.collect();
        if found.len() > 1 {
            trouble = Some(RulesTrouble::Both { folder: folder.to_owned() });
        }
        files.extend(found);
    }
    (files, trouble)
}

/// The projects of sessions: settled by the first directory that a session is seen in, so that an agent does not change
/// what it is free to work on by going elsewhere. Nothing here looks at a disk, so that a lock may be held around it.
#[derive(Debug, Default)]
pub(super) struct Projects {
    /// `None` where the journal was asked, and the session has no project yet.
    of: HashMap<String, Option<PathBuf>>,
    order: VecDeque<String>,
}

impl Projects {
    pub(super) fn of(&self, session: &str) -> Option<&PathBuf> {
        self.of.get(session)?.as_ref()
    }

    /// Whether the journal need not be asked about a session.
    pub(super) fn knows(&self, session: &str) -> bool {
        self.of.contains_key(session)
    }

    /// Takes down what the journal says about a session.
    pub(super) fn recall(&mut self, session: &str, project: Option<PathBuf>) {
        match project {
            Some(project) => drop(self.settle(session, project)),
            None if self.knows(session) => {}
            None => self.insert(session, None),
        }
    }

    /// Gives a session its project, unless it has one; the one it has.
    pub(super) fn settle(&mut self, session: &str, project: PathBuf) -> PathBuf {
        if let Some(settled) = self.of(session) {
            return settled.clone();
        }
        self.insert(session, Some(project.clone()));
        project
    }

    fn insert(&mut self, session: &str, project: Option<PathBuf>) {
        if self.of.insert(session.to_owned(), project).is_some() {
            return;
        }
        self.order.push_back(session.to_owned());
        if self.order.len() > MOST_SESSIONS
            && let Some(oldest) = self.order.pop_front()
        {
            self.of.remove(&oldest);
        }
    }
}

#[cfg(test)]
#[path = "projects_tests.rs"]
mod tests;
