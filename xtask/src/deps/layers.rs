//! Layers inside a crate: a module imports from lower layers only.
//!
//! A crate lists its modules in its own `Cargo.toml`, low to high, one list per layer:
//!
//! ```toml
//! [package.metadata]
//! layers = [["error"], ["host", "path"], ["subject"], ["crate"]]
//! ```
//!
//! Modules of one layer may import from each other as long as that makes no cycle. A module stands for everything in
//! it; one that is deeper, such as `http::agui`, can be listed apart. `crate` is what the root file itself defines;
//! where it is not listed the root stands above everything. Every module of the root has to be listed. A crate without
//! a list is not looked at.

use std::collections::{BTreeMap, BTreeSet};

use super::imports::{Import, SourceTree};

/// How the root is called in a list.
const ROOT: &str = "crate";

/// What in a crate is not as its layers, low to high, say: one line each.
pub(super) fn check(layers: &[Vec<String>], tree: &SourceTree) -> Vec<String> {
    let mut wrong = listing(layers, tree);
    let ranks: BTreeMap<&str, usize> = layers
        .iter()
        .enumerate()
        .flat_map(|(rank, modules)| modules.iter().map(move |module| (module.as_str(), rank)))
        .collect();
    let mut level: Vec<(&str, &str, &Import)> = Vec::new();
    for import in &tree.imports {
        let (Some(from), Some(to)) = (listed(&ranks, &import.from), listed(&ranks, &import.to))
        else {
            // The root is not listed: nothing is above it, and nothing may import what it defines.
            if !import.from.is_empty() && is_of_root(&import.to, tree) {
                let item = import.to.join("::");
                wrong.push(format!(
                    "{}: imports `{item}` from the root, which stands above every module",
                    position(import)
                ));
            }
            continue;
        };
        if from == to {
            continue;
        }
        match ranks.get(to).cmp(&ranks.get(from)) {
            std::cmp::Ordering::Less => {}
            std::cmp::Ordering::Equal => level.push((from, to, import)),
            std::cmp::Ordering::Greater => wrong.push(format!(
                "{}: `{from}` imports `{}`, which stands above it",
                position(import),
                import.to.join("::")
            )),
        }
    }
    wrong.extend(cycles(&level));
    wrong
}

/// What is wrong with the list itself.
fn listing(layers: &[Vec<String>], tree: &SourceTree) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    for module in layers.iter().flatten() {
        let path: Vec<String> = module.split("::").map(str::to_owned).collect();
        if module != ROOT && !tree.modules.contains(&path) {
            wrong.push(format!("`{module}` is listed and is no module"));
        }
        if !seen.insert(module.as_str()) {
            wrong.push(format!("`{module}` is listed twice"));
        }
    }
    for module in &tree.modules {
        if let [name] = module.as_slice()
            && !seen.contains(name.as_str())
        {
            wrong.push(format!("the module `{name}` is in no layer"));
        }
    }
    wrong
}

/// The listed module that a path belongs to: the deepest.
fn listed<'r>(ranks: &BTreeMap<&'r str, usize>, path: &[String]) -> Option<&'r str> {
    let deepest = (1..=path.len()).rev().find_map(|length| {
        let name = path.get(..length)?.join("::");
        ranks.get_key_value(name.as_str()).map(|(module, _)| *module)
    });
    deepest.or_else(|| ranks.get_key_value(ROOT).map(|(root, _)| *root))
}

fn is_of_root(path: &[String], tree: &SourceTree) -> bool {
    path.first().is_none_or(|name| !tree.modules.contains(std::slice::from_ref(name)))
}

/// The imports within a layer that lie on a cycle.
fn cycles(level: &[(&str, &str, &Import)]) -> Vec<String> {
    let reaches = |start: &str, end: &str| {
        let mut seen = BTreeSet::from([start.to_owned()]);
        let mut waiting = vec![start.to_owned()];
        while let Some(at) = waiting.pop() {
            if at == end {
                return true;
            }
            for (_, to, _) in level.iter().filter(|(from, ..)| *from == at) {
                if seen.insert((*to).to_owned()) {
                    waiting.push((*to).to_owned());
                }
            }
        }
        false
    };
    level
        .iter()
        .filter(|(from, to, _)| reaches(to, from))
        .map(|(from, _, import)| {
            let to = import.to.join("::");
            format!(
                "{}: `{from}` imports `{to}`, and that imports `{from}` again",
                position(import)
            )
        })
        .collect()
}

fn position(import: &Import) -> String {
    format!("{}:{}", import.file.display(), import.line)
}
