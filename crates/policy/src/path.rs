//! Paths, resolved by their text alone, and patterns over them.
//!
//! A path is the list of its names from the root. `.`, `..`, `~`, `$HOME` and `${HOME}` are worked out; symbolic links
//! are not, because nothing here looks at a disk. What is unknown (the home, the directory) gets a root of its own that
//! no real path has, so that unknown is never mistaken for inside.

use crate::shell::UNKNOWN;
use crate::wildcard::{MAX_NAME, NameSymbol, covers, fits, is_pattern, overlap, symbols};

/// Where an action happens.
#[derive(Debug, Clone)]
pub(crate) struct Surroundings {
    /// The project: what an agent is free to work on.
    pub(crate) project: PathNames,
    pub(crate) home: PathNames,
    /// Banister's own files and directories.
    pub(crate) own: Vec<PathNames>,
    /// Links that are known: a path, and what it points to.
    links: Vec<(PathNames, PathNames)>,
}

/// The names of a path, from the root.
pub(crate) type PathNames = Vec<String>;

/// The most names of one path that are looked at.
const MAX_NAMES: usize = 16;

const UNKNOWN_DIRECTORY: [&str; 2] = ["\0unknown", "\0directory"];
const UNKNOWN_HOME: [&str; 2] = ["\0unknown", "\0home"];

impl Surroundings {
    pub(crate) fn new(
        project: Option<&str>,
        home: Option<&str>,
        own: &[std::path::PathBuf],
    ) -> Self {
        let home = absolute(home).unwrap_or_else(|| UNKNOWN_HOME.map(String::from).to_vec());
        Self {
            project: Self::start(project),
            home,
            own: own.iter().filter_map(|path| absolute(path.to_str())).collect(),
            links: Vec::new(),
        }
    }

    /// The directory an action starts in, as far as it is known.
    pub(crate) fn start(cwd: Option<&str>) -> PathNames {
        absolute(cwd).unwrap_or_else(|| UNKNOWN_DIRECTORY.map(String::from).to_vec())
    }

    /// Adds links that are known. A target may be relative to where its link lies.
    pub(crate) fn with_links(mut self, links: &[(std::path::PathBuf, std::path::PathBuf)]) -> Self {
        for (from, to) in links {
            let Some(from) = absolute(from.to_str()) else { continue };
            let Some(to) = to.to_str() else { continue };
            let parent = from.split_last().map(|(_, parent)| parent).unwrap_or_default();
            let to = self.resolve(to, parent);
            self.links.push((from, to));
        }
        self
    }

    /// The other names of a path, through the links that are known.
    fn others(&self, path: &[String]) -> Vec<PathNames> {
        let mut found: Vec<PathNames> = Vec::new();
        if self.links.is_empty() {
            return found;
        }
        let mut at = 0;
        let mut current = path.to_vec();
        loop {
            for (from, to) in &self.links {
                if within(&current, from) {
                    let rest = current.get(from.len()..).unwrap_or_default();
                    let other: PathNames = to.iter().chain(rest).cloned().collect();
                    if !found.contains(&other) && found.len() < MAX_NAMES {
                        found.push(other);
                    }
                }
            }
            match found.get(at) {
                // Links that lead in a circle lead nowhere that is known.
                Some(next) if *next == *path || at + 1 >= MAX_NAMES => {
                    found.push(UNKNOWN_DIRECTORY.map(String::from).to_vec());
                    return found;
                }
                Some(next) => current.clone_from(next),
                None => return found,
            }
            at += 1;
        }
    }

    /// Whether a path lies where files are kept for a while only.
    pub(crate) fn is_temporary(&self, path: &[String]) -> bool {
        let temporary = |path: &[String]| {
            let names: Vec<&str> = path.iter().map(String::as_str).collect();
            !is_unknown(path)
                && matches!(
                    names.as_slice(),
                    ["tmp", _, ..]
                        | ["var" | "private", "tmp", _, ..]
                        | ["private", "var", "tmp" | "folders", _, ..]
                )
        };
        temporary(path) && self.others(path).iter().all(|other| temporary(other))
    }

    /// Whether a path belongs to the system.
    pub(crate) fn is_system(&self, path: &[String]) -> bool {
        const SYSTEM: [&str; 13] = [
            "bin", "boot", "dev", "etc", "lib", "lib64", "opt", "sbin", "sys", "usr", "var",
            "System", "Library",
        ];
        let system =
            |path: &[String]| path.first().is_none_or(|name| SYSTEM.contains(&name.as_str()));
        (system(path) || self.others(path).iter().any(|other| system(other)))
            && !self.is_temporary(path)
    }

    /// Resolves a word against a directory.
    pub(crate) fn resolve(&self, word: &str, directory: &[String]) -> PathNames {
        let word = word.strip_prefix("file://").unwrap_or(word);
        let below_home = ["${HOME}", "$HOME", "~"].iter().find_map(|home| {
            let rest = word.strip_prefix(home)?;
            (rest.is_empty() || rest.starts_with('/')).then_some(rest)
        });
        if let Some(rest) = below_home {
            return join(&self.home, rest);
        }
        if let Some(named) = word.strip_prefix('~') {
            // Somebody's home: which directory that is, only the machine knows.
            return join(&["home".to_owned()], named);
        }
        let base: &[String] = if word.starts_with('/') { &[] } else { directory };
        if !self.links.is_empty() && word.contains("..") {
            return self.join_by_links(base, word);
        }
        join(base, word)
    }

    /// Joins as the system does: `..` behind a link is the directory above what it points to.
    fn join_by_links(&self, base: &[String], rest: &str) -> PathNames {
        let mut names = base.to_vec();
        for name in rest.split('/') {
            if name == ".." {
                let target = self.links.iter().find(|(from, _)| *from == names);
                if let Some((_, to)) = target {
                    names.clone_from(to);
                }
            }
            names = join(&names, name);
        }
        names
    }

    /// Whether a path is in the project, and the project is a known place of its own: not a home, not a root.
    pub(crate) fn in_project(&self, path: &[String]) -> bool {
        !self.project.is_empty()
            && !is_unknown(path)
            && self.project != UNKNOWN_DIRECTORY
            && !within(&self.home, &self.project)
            && within(path, &self.project)
            && self.others(path).iter().all(|other| within(other, &self.project))
    }

    /// Whether a path is one of Banister's own or below one.
    pub(crate) fn is_own(&self, path: &[String]) -> bool {
        let own = |path: &[String]| {
            self.own.iter().any(|own| {
                own.len() <= path.len() && own.iter().zip(path).all(|(own, name)| covers(name, own))
            })
        };
        own(path) || self.others(path).iter().any(|other| own(other))
    }

    /// Whether one of Banister's own files lies below a path.
    pub(crate) fn holds_own(&self, path: &[String]) -> bool {
        let holds = |path: &[String]| {
            self.own.iter().any(|own| {
                path.len() <= own.len() && own.iter().zip(path).all(|(own, name)| covers(name, own))
            })
        };
        holds(path) || self.others(path).iter().any(|other| holds(other))
    }

    /// A path with its other names.
    pub(crate) fn all_names(&self, path: PathNames) -> Vec<PathNames> {
        let mut all = self.others(&path);
        all.insert(0, path);
        all
    }
}

fn absolute(path: Option<&str>) -> Option<PathNames> {
    path.filter(|path| path.starts_with('/')).map(|path| join(&[], path))
}

fn join(base: &[String], rest: &str) -> PathNames {
    let mut names = base.to_vec();
    for name in rest.split('/') {
        match name {
            "" | "." => {}
            // What is not known may be any number of names.
            ".." if names.last().is_some_and(|name| name.contains(UNKNOWN)) => {
                names.push(name.to_owned());
            }
            ".." => drop(names.pop()),
            name => names.push(name.to_owned()),
        }
    }
    names
}

/// Whether a part of a path is not known before it is used.
pub(crate) fn is_unknown(path: &[String]) -> bool {
    path.iter().any(|name| name.contains(UNKNOWN))
}

/// Whether a path is a directory or lies below it.
pub(crate) fn within(path: &[String], directory: &[String]) -> bool {
    path.len() >= directory.len()
        && directory.iter().zip(path).all(|(left, right)| left.eq_ignore_ascii_case(right))
}

/// A pattern over paths: `./` is the project, `~/` the home, `/` the root, `**/` anywhere; `**` is any number of names,
/// `*` and `?` stay within a name.
#[derive(Debug, Clone)]
pub(crate) struct PathPattern {
    base: Base,
    steps: Vec<PatternStep>,
}

#[derive(Debug, Clone, Copy)]
enum Base {
    Root,
    Home,
    Project,
}

/// One step down in a pattern.
#[derive(Debug, Clone)]
enum PatternStep {
    /// `**`
    AnyDepth,
    Name(Vec<NameSymbol>),
}

impl PathPattern {
    /// Reads a pattern; `None` if it does not say where it starts.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (base, rest) = if let Some(rest) = text.strip_prefix("./") {
            (Base::Project, rest)
        } else if let Some(rest) = text.strip_prefix("~/") {
            (Base::Home, rest)
        } else if let Some(rest) = text.strip_prefix('/') {
            (Base::Root, rest)
        } else if text.starts_with("**/") {
            (Base::Root, text)
        } else {
            return None;
        };
        let steps = rest
            .split('/')
            .filter(|name| !name.is_empty())
            .map(|name| match name {
                "." | ".." => None,
                "**" => Some(PatternStep::AnyDepth),
                name => Some(PatternStep::Name(symbols(name))),
            })
            .collect::<Option<Vec<PatternStep>>>()?;
        Some(Self { base, steps })
    }

    /// Whether a path certainly fits one of the patterns, under each of its names: what allows must be sure.
    pub(crate) fn any_surely(patterns: &[Self], path: &[String], around: &Surroundings) -> bool {
        let sure = |path: &[String]| patterns.iter().any(|pattern| pattern.is(path, around));
        sure(path) && around.others(path).iter().all(|other| sure(other))
    }

    fn is(&self, path: &[String], around: &Surroundings) -> bool {
        !is_unknown(path)
            && self
                .test(path, around, false, |pattern, name| !is_pattern(name) && fits(pattern, name))
    }

    /// Whether a path, which may itself be a pattern, can fit: what asks or denies must not miss.
    pub(crate) fn possibly(&self, path: &[String], around: &Surroundings) -> bool {
        self.may_be(path, around)
            || around.others(path).iter().any(|other| self.may_be(other, around))
    }

    fn may_be(&self, path: &[String], around: &Surroundings) -> bool {
        self.test(path, around, true, |pattern, name| {
            if name.contains(UNKNOWN) {
                // A name of which nothing is known says nothing about this pattern.
                let known = name.chars().any(|c| c != UNKNOWN);
                return known && overlap(pattern, &symbols(&name.replace(UNKNOWN, "*")));
            }
            if !is_pattern(name) {
                return fits(pattern, name);
            }
            // A shell's leading wildcard does not match a name that starts with a dot.
            let skips_dot =
                name.starts_with(['*', '?', '[']) && pattern.first() == Some(&NameSymbol::One('.'));
            !skips_dot && (name.len() > MAX_NAME || overlap(pattern, &symbols(name)))
        })
    }

    /// `deep` is the answer for a path with more names than are looked at.
    fn test(
        &self,
        path: &[String],
        around: &Surroundings,
        deep: bool,
        fits: impl Fn(&[NameSymbol], &str) -> bool,
    ) -> bool {
        let base: &[String] = match self.base {
            Base::Root => &[],
            Base::Home => &around.home,
            Base::Project if around.in_project(path) => &around.project,
            Base::Project => return false,
        };
        if !within(path, base) {
            return false;
        }
        let names = path.get(base.len()..).unwrap_or_default();
        if names.len() >= 127 {
            return deep;
        }
        // Bit `j` says whether the steps so far can lead down the first `j` names.
        let mut reached: u128 = 1;
        for step in &self.steps {
            reached = match step {
                PatternStep::AnyDepth => reached.wrapping_neg() | reached,
                PatternStep::Name(pattern) => names
                    .iter()
                    .enumerate()
                    .filter(|(at, name)| reached & (1 << at) != 0 && fits(pattern, name))
                    .fold(0, |next, (at, _)| next | (1 << (at + 1))),
            };
        }
        reached & (1 << names.len()) != 0
    }
}

/// The most parts of a word that are looked at. What has more is not surely anywhere.
pub(crate) const MAX_PIECES: usize = 64;

/// Whether a word has more parts than are looked at.
pub(crate) fn has_unseen_pieces(word: &str) -> bool {
    word.matches(['=', ':', '@', ',']).nth(MAX_PIECES).is_some()
}

/// The parts of a word that may be paths: the word, and what follows `=`, `:`, `@` or `,` in it, or the value that is
/// attached to a one-letter option.
pub(crate) fn pieces(word: &str) -> impl Iterator<Item = &str> {
    let attached = word
        .strip_prefix('-')
        .filter(|rest| !rest.starts_with('-'))
        .and_then(|rest| rest.find(['/', '~', '.', '$']).and_then(|at| rest.get(at..)));
    let after = word
        .match_indices(['=', ':', '@', ','])
        .take(MAX_PIECES)
        .filter_map(|(at, separator)| word.get(at + separator.len()..))
        .filter(|piece| !piece.is_empty());
    let whole = Some(word).filter(|word| !word.starts_with('-') && !word.is_empty());
    whole.into_iter().chain(attached).chain(after)
}

#[cfg(test)]
#[path = "path_tests.rs"]
mod tests;
