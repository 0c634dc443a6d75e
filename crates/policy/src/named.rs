//! The paths an action names, for a caller that can look at a disk: only it knows which of them are links.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::path::{PathNames, is_unknown, pieces};
use crate::shell::Word;
use crate::subject::Subject;

/// The most paths that are named.
const MOST: usize = 1_024;

impl Subject<'_> {
    /// Every path that the action names or may name, absolute, as far as its text says; `None` where there are too many.
    /// Total, pure, never panics.
    pub fn named_paths(&self) -> Option<Vec<PathBuf>> {
        if self.overfull {
            return None;
        }
        let mut named: BTreeSet<PathNames> = BTreeSet::new();
        let mut add = |path: &PathNames| {
            if !is_unknown(path) && !path.is_empty() {
                named.insert(path.clone());
            }
            named.len() <= MOST
        };
        let effects = self.effects.iter().flatten().chain(&self.tool_effects);
        let mut paths = effects.flat_map(|effect| &effect.names).chain(&self.paths);
        if !paths.all(&mut add) {
            return None;
        }
        for (at, simple) in self.reading.commands.iter().enumerate() {
            for directory in self.places(at) {
                let resolve = |word: &Word| -> Vec<PathNames> {
                    pieces(&word.text).map(|piece| self.around.resolve(piece, directory)).collect()
                };
                let all =
                    add(directory) && simple.words().all(|word| resolve(word).iter().all(&mut add));
                if !all {
                    return None;
                }
            }
        }
        let absolute = |names: PathNames| PathBuf::from(format!("/{}", names.join("/")));
        Some(named.into_iter().map(absolute).collect())
    }
}
