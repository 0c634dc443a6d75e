//! What `cargo metadata` says about the workspace, as far as the chores need it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::Context;
use serde::Deserialize;
use serde_json::Value;

/// One package of the dependency graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    /// The SPDX expression of its licence.
    pub(crate) license: Option<String>,
    /// Where it comes from; `None` for a path on this machine.
    pub(crate) source: Option<String>,
    /// Whether it is ours.
    pub(crate) ours: bool,
    /// The file that its library starts in.
    pub(crate) root: Option<PathBuf>,
    /// Its modules, low to high, where it lists them: `layers` under `package.metadata`.
    pub(crate) layers: Option<Vec<Vec<String>>>,
}

/// The dependency graph.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    /// Package id → package.
    pub(crate) packages: BTreeMap<String, Package>,
    /// Package id → the ids it depends on, and whether the dependency is there outside of tests.
    edges: BTreeMap<String, BTreeMap<String, bool>>,
}

impl Graph {
    /// The graph of this workspace.
    pub(crate) fn load() -> anyhow::Result<Self> {
        let text =
            crate::output(crate::cargo()?.args(["metadata", "--format-version", "1", "--locked"]))?;
        Self::read(&serde_json::from_str(&text)?)
    }

    /// Reads the document that `cargo metadata --format-version 1` prints.
    pub(crate) fn read(document: &Value) -> anyhow::Result<Self> {
        let ours: BTreeSet<&str> =
            list(document, "workspace_members").iter().filter_map(Value::as_str).collect();
        let mut graph = Self::default();
        for package in list(document, "packages") {
            let id = text(package, "id").context("a package has no id")?;
            graph.packages.insert(
                id.to_owned(),
                Package {
                    name: text(package, "name").context("a package has no name")?.to_owned(),
                    version: text(package, "version").unwrap_or_default().to_owned(),
                    license: text(package, "license").map(str::to_owned),
                    source: text(package, "source").map(str::to_owned),
                    ours: ours.contains(id),
                    root: library(package),
                    layers: if ours.contains(id) {
                        layers(package).with_context(|| format!("the layers of {id}"))?
                    } else {
                        None
                    },
                },
            );
        }
        for node in
            document.pointer("/resolve/nodes").and_then(Value::as_array).into_iter().flatten()
        {
            let id = text(node, "id").context("a node has no id")?;
            let edges = list(node, "deps").iter().filter_map(|dep| {
                let kinds = list(dep, "dep_kinds");
                let outside_tests = kinds.iter().any(|kind| text(kind, "kind") != Some("dev"));
                Some((text(dep, "pkg")?.to_owned(), outside_tests))
            });
            graph.edges.insert(id.to_owned(), edges.collect());
        }
        Ok(graph)
    }

    /// Our own packages, by id.
    pub(crate) fn ours(&self) -> impl Iterator<Item = (&str, &Package)> {
        self.packages
            .iter()
            .filter(|(_, package)| package.ours)
            .map(|(id, package)| (id.as_str(), package))
    }

    /// What a package depends on directly, tests included.
    pub(crate) fn direct(&self, id: &str) -> impl Iterator<Item = &Package> {
        self.edges
            .get(id)
            .into_iter()
            .flat_map(BTreeMap::keys)
            .filter_map(|id| self.packages.get(id))
    }

    /// Every way down from a package outside of tests: each reachable package with the names on the way to it.
    pub(crate) fn reachable<'a>(&'a self, id: &'a str) -> Vec<Vec<&'a str>> {
        let mut seen = BTreeSet::from([id]);
        let mut waiting = vec![(id, vec![self.name(id)])];
        let mut ways = Vec::new();
        while let Some((from, way)) = waiting.pop() {
            for (to, outside_tests) in self.edges.get(from).into_iter().flatten() {
                if *outside_tests && seen.insert(to) {
                    let mut way = way.clone();
                    way.push(self.name(to));
                    ways.push(way.clone());
                    waiting.push((to, way));
                }
            }
        }
        ways
    }

    fn name<'a>(&'a self, id: &'a str) -> &'a str {
        self.packages.get(id).map_or(id, |package| &package.name)
    }
}

/// The file that a package's library starts in.
fn library(package: &Value) -> Option<PathBuf> {
    let is_library = |target: &&Value| list(target, "kind").iter().any(|kind| kind == "lib");
    let target = list(package, "targets").iter().find(is_library)?;
    text(target, "src_path").map(PathBuf::from)
}

fn layers(package: &Value) -> serde_json::Result<Option<Vec<Vec<String>>>> {
    package.pointer("/metadata/layers").map(Vec::deserialize).transpose()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}
