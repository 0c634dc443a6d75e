//! The paths an action names, for a caller that can look at a disk: only it knows which of them are links.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::evaluate::Request;
use crate::path::{Names, is_unknown, pieces};
use crate::rules::Rules;
use crate::shell::Word;
use crate::subject::Subject;

/// The most paths that are told.
const MOST: usize = 1_024;

/// Every path that an action names or may name, absolute, as far as its text says; `None` where there are too many.
/// Total, pure, never panics.
pub fn named_paths(rules: &Rules, request: &Request<'_>) -> Option<Vec<PathBuf>> {
    let subject = Subject::new(rules.tools(), request);
    if subject.overfull {
        return None;
    }
    let mut named: BTreeSet<Names> = BTreeSet::new();
    let mut add = |path: &Names| {
        if !is_unknown(path) && !path.is_empty() {
            named.insert(path.clone());
        }
        named.len() <= MOST
    };
    let effects = subject.effects.iter().flatten().chain(&subject.tool_effects);
    let mut told = effects.flat_map(|effect| &effect.names).chain(&subject.paths);
    if !told.all(&mut add) {
        return None;
    }
    for (at, simple) in subject.reading.commands.iter().enumerate() {
        for directory in subject.places(at) {
            let resolve = |word: &Word| -> Vec<Names> {
                pieces(&word.text).map(|piece| subject.around.resolve(piece, directory)).collect()
            };
            let all =
                add(directory) && simple.words().all(|word| resolve(word).iter().all(&mut add));
            if !all {
                return None;
            }
        }
    }
    Some(named.into_iter().map(|names| PathBuf::from(format!("/{}", names.join("/")))).collect())
}
