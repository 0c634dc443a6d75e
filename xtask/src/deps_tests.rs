use std::path::Path;

use serde_json::{Value, json};

use super::imports::SourceTree;
use super::{check, layers};
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

/// What is wrong with a crate of these files, the first of which is its root.
fn crate_of(layers: &[&[&str]], files: &[(&str, &str)]) -> Vec<String> {
    let layers: Vec<Vec<String>> =
        layers.iter().map(|layer| layer.iter().map(|name| (*name).to_owned()).collect()).collect();
    let text_of = |path: &Path| {
        files.iter().find(|(name, _)| Path::new(name) == path).map(|(_, text)| (*text).to_owned())
    };
    layers::check(&layers, &SourceTree::read(Path::new(files[0].0), &text_of).unwrap())
}

const NOTHING: [String; 0] = [];

#[test]
fn a_module_may_import_from_lower_layers() {
    let files = [
        ("lib.rs", "mod low;\nmod high;\npub use high::High;\npub use low::Low;"),
        ("low.rs", "//! Not [`High`](crate::high::High).\npub struct Low;"),
        ("high.rs", "use crate::low::Low;\npub struct High(crate::Low);"),
    ];
    assert_eq!(crate_of(&[&["low"], &["high"]], &files), NOTHING);
    assert_eq!(
        crate_of(&[&["high"], &["low"]], &files),
        [
            "high.rs:1: `high` imports `low::Low`, which stands above it",
            "high.rs:2: `high` imports `low::Low`, which stands above it",
        ]
    );
}

#[test]
fn a_cycle_within_a_layer_is_found_wherever_its_paths_stand() {
    let files = [
        ("lib.rs", "mod effects; mod rule; mod shell; mod other;"),
        ("effects.rs", "mod table;\npub struct Kind;"),
        ("effects/table.rs", "use super::Kind;\nuse crate::rule::yaml;"),
        ("rule.rs", "pub fn yaml() {\n    vec![crate::shell::read(\"crate::other::x\")];\n}"),
        ("shell.rs", "pub fn read(of: super::effects::Kind) {} // crate::other::x"),
        ("other.rs", "use crate::{effects::Kind, shell};"),
    ];
    let all: &[&str] = &["effects", "rule", "shell", "other"];
    assert_eq!(
        {
            let mut found = crate_of(&[all], &files);
            found.sort();
            found
        },
        [
            "effects/table.rs:2: `effects` imports `rule::yaml`, and that imports `effects` again",
            "rule.rs:2: `rule` imports `shell::read`, and that imports `rule` again",
            "shell.rs:1: `shell` imports `effects::Kind`, and that imports `shell` again",
        ]
    );
    // In no order of layers does a cycle pass.
    for order in [["effects", "rule", "shell"], ["shell", "rule", "effects"]] {
        let layers = order.map(|name| [name]);
        let layers: Vec<&[&str]> =
            layers.iter().map(<[&str; 1]>::as_slice).chain([["other"].as_slice()]).collect();
        assert_ne!(crate_of(&layers, &files), NOTHING, "{order:?}");
    }
}

#[test]
fn modules_of_one_layer_may_import_from_each_other_without_a_cycle() {
    let files = [
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "use crate::{b, c};"),
        ("b.rs", "use super::c;"),
        ("c.rs", ""),
    ];
    assert_eq!(crate_of(&[&["a", "b", "c"]], &files), NOTHING);
}

#[test]
fn what_only_tests_import_does_not_count() {
    let low = "
        #[cfg(test)]
        use crate::high::High;
        struct Low { #[cfg(test)] high: crate::high::High, low: u8 }
        #[cfg(test)]
        fn high<A, B>() -> Option<crate::high::High> { crate::high::High }
        #[cfg(test)]
        #[path = \"low_tests.rs\"]
        mod tests;
        #[cfg(all(test, unix))]
        mod more { use crate::high::High; }
    ";
    let files = [
        ("lib.rs", "mod low; mod high; #[cfg(test)] mod checks;"),
        ("low.rs", low),
        ("high.rs", ""),
    ];
    assert_eq!(crate_of(&[&["low"], &["high"]], &files), NOTHING);
    let files = [
        ("lib.rs", "mod low; mod high;"),
        ("low.rs", "#[cfg(test)] fn f() {}\n#[cfg(any(test, unix))] use crate::high;"),
        ("high.rs", ""),
    ];
    assert_eq!(
        crate_of(&[&["low"], &["high"]], &files),
        ["low.rs:2: `low` imports `high`, which stands above it"]
    );
}

#[test]
fn every_module_has_to_be_listed_once_and_to_be_there() {
    let files = [("lib.rs", "mod here;\nmod forgotten;"), ("here.rs", ""), ("forgotten.rs", "")];
    assert_eq!(
        crate_of(&[&["here"], &["gone", "here"]], &files),
        [
            "`gone` is listed and is no module",
            "`here` is listed twice",
            "the module `forgotten` is in no layer",
        ]
    );
}

#[test]
fn a_deeper_module_can_be_listed_apart() {
    let files = [
        ("lib.rs", "mod http; mod attach;"),
        ("http.rs", "mod agui;\npub fn route() { agui::run() }"),
        ("http/agui.rs", "use crate::attach::Run;"),
        ("attach.rs", "use crate::http::agui::Frame;"),
    ];
    assert_eq!(
        crate_of(&[&["http::agui"], &["attach"], &["http"]], &files),
        ["http/agui.rs:1: `http::agui` imports `attach::Run`, which stands above it"]
    );
    assert_eq!(
        crate_of(&[&["attach"], &["http"]], &files),
        ["attach.rs:1: `attach` imports `http::agui::Frame`, which stands above it"]
    );
}

#[test]
fn the_root_stands_where_it_is_listed_or_above_everything() {
    let files = [
        ("lib.rs", "mod desk;\nmod door;\nuse desk::Desk;\npub struct Gateway(Desk);"),
        ("desk.rs", "pub struct Desk;"),
        ("door.rs", "use crate::{Desk, Gateway};"),
    ];
    assert_eq!(crate_of(&[&["desk"], &["crate"], &["door"]], &files), NOTHING);
    assert_eq!(
        crate_of(&[&["crate"], &["desk"], &["door"]], &files),
        ["lib.rs:3: `crate` imports `desk::Desk`, which stands above it"]
    );
    assert_eq!(
        crate_of(&[&["desk"], &["door"]], &files),
        ["door.rs:1: imports `Gateway` from the root, which stands above every module"]
    );
}

#[test]
fn names_of_uses_are_read_in_every_form() {
    let source = "
        pub(in crate::low) struct A;
        pub use self::b::{self, C as D};
        mod b { pub fn f(x: Vec::<super::super::low::E>) { $crate::low::g() } }
        fn h() -> impl Iterator<Item = u8> + use<'static> { crate::low::i() }
    ";
    let text_of = |path: &Path| {
        Some(if path == Path::new("lib.rs") { "mod a; mod low;" } else { source })
            .filter(|_| path != Path::new("low.rs"))
            .or(Some(""))
            .map(str::to_owned)
    };
    let tree = SourceTree::read(Path::new("lib.rs"), &text_of).unwrap();
    let found: Vec<String> = tree.imports.iter().map(|import| import.to.join("::")).collect();
    assert_eq!(found, ["a::b", "a::b::C", "low::E", "low::g", "low::i"]);
}
