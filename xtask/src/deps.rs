//! Dependencies point from what acts to what knows. Any other edge is an error here, tests included.
//!
//! It looks at edges between our own crates, and at what must not be reachable: a runtime, a server or a database below
//! the crates that are pure, and anything at all below the hook.

use anyhow::bail;

use crate::metadata::Graph;

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
    let wrong = check(&Graph::load()?);
    if wrong.is_empty() {
        crate::say("deps: every dependency points the right way");
        return Ok(());
    }
    bail!("dependencies that the design does not know:\n  {}", wrong.join("\n  "));
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
