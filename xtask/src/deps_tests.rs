use serde_json::{Value, json};

use super::check;
use crate::metadata::Graph;

/// A graph of `from -> to` edges; names that start with `banister` or are `xtask` are ours.
fn graph(edges: &[(&str, &str, Option<&str>)]) -> Graph {
    let mut names: Vec<&str> = edges.iter().flat_map(|(from, to, _)| [*from, *to]).collect();
    names.sort_unstable();
    names.dedup();
    let ours = |name: &str| name.starts_with("banister") || name == "xtask";
    let members: Vec<&str> = names.iter().copied().filter(|name| ours(name)).collect();
    let packages: Vec<Value> =
        names.iter().map(|name| json!({ "id": name, "name": name, "version": "1.0.0" })).collect();
    let nodes: Vec<Value> = names
        .iter()
        .map(|name| {
            let deps: Vec<Value> = edges
                .iter()
                .filter(|(from, _, _)| from == name)
                .map(|(_, to, kind)| json!({ "pkg": to, "dep_kinds": [{ "kind": kind }] }))
                .collect();
            json!({ "id": name, "deps": deps })
        })
        .collect();
    let document = json!({ "workspace_members": members, "packages": packages, "resolve": { "nodes": nodes } });
    Graph::read(&document).unwrap()
}

#[test]
fn the_edges_of_the_design_pass() {
    let found = check(&graph(&[
        ("banister", "banister-gateway", None),
        ("banister-gateway", "banister-journal", None),
        ("banister-gateway", "tokio", None),
        ("banister-journal", "rusqlite", None),
        ("banister-policy", "banister-events", None),
        ("banister-events", "serde", None),
        ("xtask", "banister-gateway", None),
    ]));
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn an_edge_that_points_back_is_named() {
    let found = check(&graph(&[("banister-journal", "banister-policy", None)]));
    assert_eq!(found, ["banister-journal -> banister-policy"]);
}

#[test]
fn an_edge_only_tests_use_is_an_edge() {
    let found = check(&graph(&[("banister-client", "banister-gateway", Some("dev"))]));
    assert_eq!(found, ["banister-client -> banister-gateway"]);
}

#[test]
fn a_runtime_below_a_pure_crate_is_named_with_the_way_to_it() {
    let found = check(&graph(&[
        ("banister-policy", "banister-events", None),
        ("banister-events", "sneaky", None),
        ("sneaky", "tokio", None),
    ]));
    assert_eq!(
        found,
        [
            "banister-events -> sneaky -> tokio: banister-events is pure",
            "banister-policy -> banister-events -> sneaky -> tokio: banister-policy is pure",
        ]
    );
}

#[test]
fn a_runtime_that_only_tests_use_is_no_breach() {
    let found = check(&graph(&[("banister-events", "tokio", Some("dev"))]));
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn the_hook_depends_on_nothing_at_all() {
    let found = check(&graph(&[("banister-hook", "serde", Some("dev"))]));
    assert_eq!(found, ["banister-hook -> serde: the hook depends on the standard library only"]);
}

#[test]
fn a_crate_nobody_designed_is_named() {
    let found = check(&graph(&[("banister-extra", "serde", None)]));
    assert_eq!(
        found,
        ["banister-extra is not a crate of the design; add its edges to xtask/src/deps.rs"]
    );
}
