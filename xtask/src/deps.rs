//! Dependencies point from what acts to what knows. Any other edge is an error here, tests included.
//!
//! It looks at edges between our own crates, and at what must not be reachable: a runtime, a server or a database below
//! the crates that are pure, and anything at all below the hook. Inside a crate that lists its layers it looks at the
//! imports between modules, outside of tests.

mod imports;
mod layers;

use anyhow::{Context, bail};
use imports::SourceTree;

use crate::metadata::{Graph, Package};

/// Crate → the crates of ours it may depend on.
const ALLOWED: [(&str, &[&str]); 7] = [
    ("banister-events", &[]),
    ("banister-policy", &["banister-events"]),
    ("banister-journal", &["banister-events"]),
    ("banister-client", &["banister-events"]),
    ("banister-hook", &[]),
    (
        "banister-gateway",
        &["banister-policy", "banister-journal", "banister-client", "banister-events"],
    ),
    (
        "banister",
        &[
            "banister-client",
            "banister-gateway",
            "banister-hook",
            "banister-journal",
            "banister-policy",
            "banister-events",
        ],
    ),
];

/// Depends on what it likes: nothing depends on it.
const FREE: &str = "xtask";
/// Depends on nothing but the standard library.
const BARE: &str = "banister-hook";
/// Pure: no async, no sockets, no files.
const PURE: [&str; 2] = ["banister-events", "banister-policy"];
/// What must not be reachable from a pure crate.
const IMPURE: [&str; 6] = ["tokio", "axum", "hyper", "rusqlite", "reqwest", "rustls"];

pub(crate) fn run() -> anyhow::Result<()> {
    let graph = Graph::load()?;
    let mut wrong = check(&graph);
    for (_, package) in graph.ours() {
        let found = check_layers(package)?;
        wrong.extend(found.into_iter().map(|line| format!("{}: {line}", package.name)));
    }
    if wrong.is_empty() {
        show(&graph);
        return Ok(());
    }
    bail!("dependencies that the design does not know:\n  {}", wrong.join("\n  "));
}

/// Prints the crates, each with those of ours that it depends on, and the layers inside them.
fn show(graph: &Graph) {
    crate::say("deps: every dependency points the right way");
    for (id, package) in graph.ours() {
        let below: Vec<&str> =
            graph.direct(id).filter(|to| to.ours && to.name != package.name).map(name).collect();
        let below = if below.is_empty() { "nothing of ours".to_owned() } else { below.join(", ") };
        crate::say(&format!("\n{} -> {below}", package.name));
        for (number, modules) in package.layers.iter().flatten().enumerate() {
            crate::say(&format!("  {:>2}  {}", number + 1, modules.join(", ")));
        }
    }
}

fn name(package: &Package) -> &str {
    &package.name
}

/// What in a crate is not as its layers say; nothing where it lists none.
fn check_layers(package: &Package) -> anyhow::Result<Vec<String>> {
    let Some(layers) = &package.layers else { return Ok(Vec::new()) };
    let workspace = crate::root()?;
    let root = package.root.as_ref().context("a crate with layers has no root file")?;
    let root = root.strip_prefix(&workspace).unwrap_or(root);
    let text_of = |file: &std::path::Path| std::fs::read_to_string(workspace.join(file)).ok();
    Ok(layers::check(layers, &SourceTree::read(root, &text_of)?))
}

fn check(graph: &Graph) -> Vec<String> {
    let mut wrong = Vec::new();
    for (id, package) in graph.ours().filter(|(_, package)| package.name != FREE) {
        let name = package.name.as_str();
        let Some((_, allowed)) = ALLOWED.iter().find(|(known, _)| *known == name) else {
            wrong.push(format!(
                "{name} is not a crate of the design; add its edges to xtask/src/deps.rs"
            ));
            continue;
        };
        for to in graph.direct(id) {
            if name == BARE {
                wrong.push(format!(
                    "{name} -> {}: the hook depends on the standard library only",
                    to.name
                ));
            // A crate names itself where its tests need a feature of it.
            } else if to.ours && to.name != name && !allowed.contains(&to.name.as_str()) {
                wrong.push(format!("{name} -> {}", to.name));
            }
        }
        if PURE.contains(&name) {
            let ways = graph.reachable(id);
            let impure =
                ways.iter().filter(|way| way.last().is_some_and(|end| IMPURE.contains(end)));
            wrong.extend(impure.map(|way| format!("{}: {name} is pure", way.join(" -> "))));
        }
    }
    wrong
}

#[cfg(test)]
#[path = "deps_tests.rs"]
mod tests;
