//! What `cargo deny check bans licenses sources` looks at, as far as `deny.toml` uses it, without installing anything.
//!
//! It takes each package's word for its licence: whether the text in the package fits the word is left to `cargo deny`.

use anyhow::{Context, bail};
use serde_json::Value;

use crate::metadata::{Graph, Package};

pub(crate) fn run() -> anyhow::Result<()> {
    let path = crate::root()?.join("deny.toml");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let rules = Rules::read(&toml::from_str(&text).context("deny.toml")?);
    let graph = Graph::load()?;
    let wrong: Vec<String> =
        graph.packages.values().filter_map(|package| rules.against(package)).collect();
    for name in duplicates(&graph) {
        crate::tell(&format!("licences: {name} comes in more than one version"));
    }
    if wrong.is_empty() {
        crate::say(&format!("licences: {} packages are allowed", graph.packages.len()));
        return Ok(());
    }
    bail!("packages that deny.toml does not allow:\n  {}", wrong.join("\n  "));
}

/// The part of `deny.toml` that is understood here.
#[derive(Debug)]
struct Rules {
    licences: Vec<String>,
    /// Name and reason.
    banned: Vec<(String, String)>,
}

impl Rules {
    fn read(document: &Value) -> Self {
        let list = |pointer: &str| {
            document.pointer(pointer).and_then(Value::as_array).map_or(&[][..], Vec::as_slice)
        };
        let text = |value: &Value, key: &str| {
            value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        Self {
            licences: list("/licenses/allow")
                .iter()
                .filter_map(|licence| licence.as_str().map(str::to_owned))
                .collect(),
            banned: list("/bans/deny")
                .iter()
                .map(|ban| (text(ban, "crate"), text(ban, "reason")))
                .collect(),
        }
    }

    /// What is wrong with a package, if anything is.
    fn against(&self, package: &Package) -> Option<String> {
        let Package { name, version, license, source, .. } = package;
        if let Some((_, reason)) = self.banned.iter().find(|(banned, _)| banned == name) {
            return Some(format!("{name} {version} is banned: {reason}"));
        }
        // Which registry is `cargo deny`'s to tell; here it is enough that it is one, and no repository or folder.
        let known = |source: &str| source.starts_with("registry+");
        if let Some(source) = source.as_deref().filter(|source| !known(source)) {
            return Some(format!("{name} {version} comes from {source}"));
        }
        match license {
            None => Some(format!("{name} {version} does not name its licence")),
            Some(expression) if Expression::new(expression).holds(&self.licences) => None,
            Some(expression) => Some(format!("{name} {version} is licensed as {expression}")),
        }
    }
}

fn duplicates(graph: &Graph) -> Vec<&str> {
    let mut names: Vec<&str> =
        graph.packages.values().map(|package| package.name.as_str()).collect();
    names.sort_unstable();
    let mut twice: Vec<&str> = names
        .windows(2)
        .filter_map(|pair| (pair.first() == pair.last()).then(|| pair.first().copied())?)
        .collect();
    twice.dedup();
    twice
}

/// An SPDX expression on its way to being decided. The old `/` means `OR`.
struct Expression {
    /// The words that are left, the next one last.
    words: Vec<String>,
}

impl Expression {
    fn new(text: &str) -> Self {
        let spaced = text.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
        Self { words: spaced.split_whitespace().rev().map(str::to_owned).collect() }
    }

    /// Whether what is allowed is enough. What is not understood does not hold.
    fn holds(mut self, allowed: &[String]) -> bool {
        self.any(allowed) == Some(true) && self.words.is_empty()
    }

    fn any(&mut self, allowed: &[String]) -> Option<bool> {
        let mut holds = self.all(allowed)?;
        while self.takes("OR") {
            holds |= self.all(allowed)?;
        }
        Some(holds)
    }

    fn all(&mut self, allowed: &[String]) -> Option<bool> {
        let mut holds = self.one(allowed)?;
        while self.takes("AND") {
            holds &= self.one(allowed)?;
        }
        Some(holds)
    }

    fn one(&mut self, allowed: &[String]) -> Option<bool> {
        if self.takes("(") {
            let holds = self.any(allowed)?;
            return self.takes(")").then_some(holds);
        }
        let mut licence = self.words.pop()?;
        if self.takes("WITH") {
            licence = format!("{licence} WITH {}", self.words.pop()?);
        }
        Some(allowed.contains(&licence))
    }

    fn takes(&mut self, word: &str) -> bool {
        let next = self.words.last().is_some_and(|next| next == word);
        if next {
            self.words.pop();
        }
        next
    }
}

#[cfg(test)]
#[path = "licences_tests.rs"]
mod tests;
