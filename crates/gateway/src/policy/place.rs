//! Where an action happens: its project, the project's rule files, and the symbolic links among the paths it names.

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};

use super::files::{PROJECT, Trouble};

/// The most sessions whose project is remembered.
const MOST_SESSIONS: usize = 4_096;
/// The most folders between a directory and its project's root that are looked at.
const MOST_FOLDERS: usize = 64;
/// The most links that are told.
const MOST_LINKS: usize = 64;
/// The most places on the disk that are looked at for links.
const MOST_LOOKS: usize = 2_048;

/// What an agent that works in this directory works on: the repository's root, or the directory itself where there is
/// none. A repository that holds the person's home is none: everything of the person's would be in it.
pub fn project_of(cwd: &Path, home: Option<&Path>) -> PathBuf {
    let above = cwd.ancestors().take(MOST_FOLDERS);
    let narrow = |folder: &&Path| {
        folder.parent().is_some() && home.is_none_or(|home| !home.starts_with(folder))
    };
    let root = above.take_while(narrow).find(|folder| folder.join(".git").exists());
    root.unwrap_or(cwd).to_owned()
}

/// The rule files that count in a directory of a project, outermost first: those of the project's root and of every folder
/// on the way. Where an agent has gone elsewhere, those of the place it has gone to count as well.
pub(super) fn rule_files(
    cwd: &Path,
    project: &Path,
    home: Option<&Path>,
) -> (Vec<PathBuf>, Option<Trouble>) {
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
            trouble = Some(Trouble::Both { folder: folder.to_owned() });
        }
        files.extend(found);
    }
    (files, trouble)
}

/// The projects of sessions: settled by the first directory that a session is seen in, so that an agent does not change
/// what it is free to work on by going elsewhere.
#[derive(Debug, Default)]
pub(super) struct Projects {
    of: HashMap<String, PathBuf>,
    order: VecDeque<String>,
}

impl Projects {
    pub(super) fn of(&mut self, session: &str, cwd: &Path, home: Option<&Path>) -> PathBuf {
        if let Some(project) = self.of.get(session) {
            return project.clone();
        }
        let project = project_of(cwd, home);
        self.settle(session, project.clone());
        project
    }

    pub(super) fn knows(&self, session: &str) -> bool {
        self.of.contains_key(session)
    }

    pub(super) fn settle(&mut self, session: &str, project: PathBuf) {
        if self.order.len() >= MOST_SESSIONS
            && let Some(oldest) = self.order.pop_front()
        {
            self.of.remove(&oldest);
        }
        self.order.push_back(session.to_owned());
        self.of.insert(session.to_owned(), project);
    }
}

/// The symbolic links on the way to these paths, each with what it points to; `None` where there are too many to tell.
/// Those on the way to `known` places are the machine's own layout and are left out: everything lies behind them alike.
pub fn links(paths: &[PathBuf], known: &[&Path]) -> Option<Vec<(PathBuf, PathBuf)>> {
    let mut links = Vec::new();
    let mut seen: HashSet<PathBuf> = HashSet::new();
    let mut waiting: VecDeque<PathBuf> = paths.iter().cloned().collect();
    while let Some(path) = waiting.pop_front() {
        let mut prefix = PathBuf::new();
        for part in path.components() {
            prefix.push(part);
            if !seen.insert(prefix.clone()) {
                continue;
            }
            if seen.len() > MOST_LOOKS {
                return None;
            }
            // What is not there is no link, and has nothing below it.
            let Ok(file) = prefix.symlink_metadata() else { break };
            if !file.is_symlink() || known.iter().any(|known| known.starts_with(&prefix)) {
                continue;
            }
            let Ok(target) = std::fs::read_link(&prefix) else { continue };
            let whole = prefix.parent().unwrap_or(Path::new("/")).join(&target);
            links.push((prefix.clone(), target));
            if links.len() > MOST_LINKS {
                return None;
            }
            // The target may be a link, or lie behind one; so may what is named below it.
            let rest = path.strip_prefix(&prefix).unwrap_or(Path::new(""));
            waiting.push_back(plain(&whole.join(rest)));
        }
    }
    Some(links)
}

/// A path without `.` and `..`, by its text.
fn plain(path: &Path) -> PathBuf {
    let mut made = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => {
                made.pop();
            }
            std::path::Component::CurDir => {}
            part => made.push(part),
        }
    }
    made
}

#[cfg(test)]
#[path = "place_tests.rs"]
mod tests;
