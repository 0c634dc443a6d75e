//! The symbolic links among the paths that an action names.

use std::collections::{HashSet, VecDeque};
use std::path::{Path, PathBuf};

/// The most links that are listed.
const MOST_LINKS: usize = 64;
/// The most names on the disk that are looked at for links.
const MOST_LOOKS: usize = 2_048;

/// The symbolic links on the way to these paths, each with what it points to; `None` where there are too many to list.
/// Those on the way to `known` directories are the machine's own layout and are left out: everything lies behind them alike.
pub(super) fn links(paths: &[PathBuf], known: &[&Path]) -> Option<Vec<(PathBuf, PathBuf)>> {
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
#[path = "links_tests.rs"]
mod tests;
