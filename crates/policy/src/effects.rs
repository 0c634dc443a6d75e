//! What a command does: from words to effects.
//!
//! The tables in `packs/effects/` say which programs, subcommands and options do what, and which words are paths or hosts.
//! A program or subcommand that is not in them has the effect [`EffectKind::Unknown`], which no rule allows. A word that is not
//! known before it runs is a path or host that is not known; where it could be an option that matters, the effect is
//! unknown as well.

mod scripts;
mod table;

use banister_events::activity::Risk;
use serde::{Deserialize, Serialize};
use table::{EffectEntry, WordRole};
pub(crate) use table::{TEXTS, table};

use crate::path::{PathNames, Surroundings};
use crate::shell::{Direction, FED_FILE, Simple, Word, program, trusted_program};

/// A kind of effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EffectKind {
    /// Reads files.
    Read,
    /// Writes or changes files.
    Write,
    /// Deletes files.
    Delete,
    /// Speaks to another machine.
    Network,
    /// Sends data to another machine.
    Send,
    /// Takes on other rights.
    Privilege,
    /// Starts, stops or signals programs.
    Process,
    /// Records in the local history of a repository.
    Vcs,
    /// Rewrites or throws away history or work that is in no commit.
    History,
    /// Publishes what other people will see or use.
    Publish,
    /// Changes machines and services elsewhere.
    Cloud,
    /// Works on a database.
    Database,
    /// Installs or removes software.
    Package,
    /// Starts, changes or enters containers.
    Container,
    /// Runs the project's own build, tests or checks.
    Build,
    /// Runs code that is not read.
    Execute,
    /// Shows or sets environment variables.
    Environment,
    /// Changes how the machine runs.
    System,
    /// Not known.
    Unknown,
}

impl EffectKind {
    /// How much can go wrong, and whether it can be undone, where nothing else is known.
    fn grade(self) -> (Risk, Option<bool>) {
        match self {
            Self::Read | Self::Build | Self::Vcs => (Risk::Low, Some(false)),
            Self::Write
            | Self::Process
            | Self::Package
            | Self::Container
            | Self::Execute
            | Self::Environment
            | Self::Network
            | Self::Unknown => (Risk::Medium, None),
            Self::Delete | Self::Send => (Risk::High, Some(true)),
            Self::Privilege | Self::System => (Risk::High, None),
            Self::History | Self::Publish | Self::Cloud | Self::Database => {
                (Risk::High, Some(true))
            }
        }
    }
}

/// One thing a command does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Effect {
    /// What kind of thing.
    pub kind: EffectKind,
    /// The path it is about, as the command names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The host it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// More about it, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The path, from every directory the command may run in.
    #[serde(skip)]
    pub(crate) names: Vec<PathNames>,
}

impl Effect {
    pub(crate) fn of(kind: EffectKind) -> Self {
        Self { kind, path: None, host: None, why: None, names: Vec::new() }
    }

    fn because(kind: EffectKind, why: &str) -> Self {
        Self { why: Some(why.to_owned()), ..Self::of(kind) }
    }

    /// An effect on a path of a file tool.
    pub(crate) fn on(kind: EffectKind, names: &PathNames) -> Self {
        let path = Some(format!("/{}", names.join("/")).replace('\0', "…"));
        Self { path, names: vec![names.clone()], ..Self::of(kind) }
    }

    /// How much can go wrong, and whether it can be undone.
    pub(crate) fn grade(&self, around: &Surroundings) -> (Risk, Option<bool>) {
        let (risk, undone) = self.kind.grade();
        if self.names.is_empty() {
            return (risk, undone);
        }
        let inside = self.names.iter().all(|path| around.in_project(path));
        let passing = self.names.iter().all(|path| around.is_temporary(path));
        match self.kind {
            EffectKind::Read if inside || passing => (Risk::Low, Some(false)),
            EffectKind::Read => (Risk::Medium, Some(false)),
            EffectKind::Write if inside || passing => (Risk::Low, None),
            EffectKind::Write if self.names.iter().any(|path| around.is_system(path)) => {
                (Risk::High, None)
            }
            EffectKind::Delete if passing => (Risk::Low, Some(true)),
            EffectKind::Delete if inside => (Risk::Medium, Some(true)),
            _ => (risk, undone),
        }
    }
}

/// What one command does.
pub(crate) fn of(simple: &Simple, places: &[PathNames], around: &Surroundings) -> Vec<Effect> {
    let mut found =
        FoundEffects { effects: Vec::new(), places, around, replaced: false, in_place: false };
    for redirect in &simple.redirects {
        let kind = match redirect.direction {
            Direction::Read => EffectKind::Read,
            Direction::Write => EffectKind::Write,
        };
        found.path(kind, &redirect.target);
    }
    if let Some(first) = simple.argv.first() {
        found.program(simple, first);
    }
    found.effects.sort_by_key(|effect| effect.kind);
    found.effects.dedup();
    found.effects
}

struct FoundEffects<'s> {
    effects: Vec<Effect>,
    places: &'s [PathNames],
    around: &'s Surroundings,
    /// Whether an option stands for the first operand.
    replaced: bool,
    /// Whether what is read is written as well.
    in_place: bool,
}

/// Files that are no files: nothing is read from or written to a disk.
fn is_sink(path: &str) -> bool {
    matches!(
        path,
        "-" | "/dev/null"
            | "/dev/stdin"
            | "/dev/stdout"
            | "/dev/stderr"
            | "/dev/tty"
            | "/dev/zero"
            | "/dev/urandom"
            | "/dev/random"
    ) || path == FED_FILE
}

impl FoundEffects<'_> {
    fn push(&mut self, effect: Effect) {
        if self.effects.len() < 512 {
            self.effects.push(effect);
        } else if !self.effects.iter().any(|effect| effect.kind == EffectKind::Unknown) {
            self.effects
                .push(Effect::because(EffectKind::Unknown, "it has more effects than are listed"));
        }
    }

    fn unknown(&mut self, why: &str) {
        self.push(Effect::because(EffectKind::Unknown, why));
    }

    fn path(&mut self, kind: EffectKind, word: &Word) {
        self.path_text(kind, &word.text);
    }

    fn path_text(&mut self, kind: EffectKind, text: &str) {
        if is_sink(text) {
            if kind == EffectKind::Write
                && self.effects.iter().any(|effect| effect.kind == EffectKind::Delete)
            {
                self.unknown("what is moved there is lost");
            }
            return;
        }
        let mut names: Vec<PathNames> =
            self.places.iter().map(|place| self.around.resolve(text, place)).collect();
        names.dedup();
        self.push(Effect { path: Some(text.replace('\0', "…")), names, ..Effect::of(kind) });
    }

    fn program(&mut self, simple: &Simple, first: &Word) {
        if !first.is_known() || first.glob {
            return self.unknown("the program's name is not known");
        }
        let name = program(&first.text);
        let Ok(table) = table() else { return self.unknown("the table of effects does not load") };
        let Some(entry) = table.get(&name) else {
            return self.unknown("the program is not known");
        };
        if trusted_program(&first.text).is_none() {
            self.push(Effect::because(
                EffectKind::Execute,
                "the program lies where anybody may have put it",
            ));
        }
        if simple.elsewhere {
            self.push(Effect::because(EffectKind::Execute, "it runs elsewhere"));
        }
        match name.as_str() {
            "find" | "gfind" => return scripts::find(simple, self),
            "[" | "test" | "[[" => return scripts::test(simple, self),
            _ => {}
        }
        self.words(simple, entry);
    }

    /// Gives every word its role.
    fn words(&mut self, simple: &Simple, entry: &'static EffectEntry) {
        let mut entry = entry;
        let mut entries = vec![entry];
        for kind in &entry.does {
            self.push(Effect::of(*kind));
        }
        let mut operands: Vec<&Word> = Vec::new();
        let mut awaits_subcommand = !entry.under.is_empty();
        let mut only_operands = false;
        let mut words = simple.arguments().iter();
        while let Some(word) = words.next() {
            let text = word.text.as_str();
            if !only_operands && !entry.inert {
                let matters = entries.iter().any(|entry| entry.has_options_that_matter());
                if text.starts_with('\0') && (matters || awaits_subcommand) {
                    self.unknown("a word that is not known may be an option");
                } else if word.glob
                    && text.starts_with(['*', '?', '['])
                    && entries.iter().any(|entry| entry.has_options_that_change())
                {
                    self.unknown("a pattern may become an option");
                }
            }
            if !only_operands && text == "--" {
                only_operands = true;
                continue;
            }
            let is_option = !only_operands
                && text.len() > 1
                && (text.starts_with('-') || (text.starts_with('+') && entry.plus));
            if is_option {
                let mut next = || words.next();
                self.option(text, &entries, &mut next);
                continue;
            }
            if awaits_subcommand {
                match entry.under.get(text) {
                    Some(below) => {
                        entry = below;
                        entries.push(below);
                        for kind in &below.does {
                            self.push(Effect::of(*kind));
                        }
                        awaits_subcommand = !below.under.is_empty();
                        continue;
                    }
                    None if entry.optional => awaits_subcommand = false,
                    None => {
                        let shown = word.shown();
                        self.unknown(&format!("what `{shown}` does is not known"));
                        return;
                    }
                }
            }
            operands.push(word);
            only_operands |= entry.first;
        }
        if operands.is_empty() {
            for kind in &entry.bare {
                self.push(Effect::of(*kind));
            }
        }
        self.operands(simple, &operands, entry);
    }

    fn option<'w>(
        &mut self,
        text: &'w str,
        entries: &[&'static EffectEntry],
        next: &mut dyn FnMut() -> Option<&'w Word>,
    ) {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) if text.starts_with("--") => (name, Some(value)),
            _ => (text, None),
        };
        let look = |name: &str| entries.iter().rev().find_map(|entry| entry.options.get(name));
        let exact = look(name);
        // Long options may be shortened, and a role that matters must not be missed.
        let role = exact.or_else(|| {
            let shortened =
                |known: &str| text.starts_with("--") && name.len() > 3 && known.starts_with(name);
            entries
                .iter()
                .flat_map(|entry| entry.options.iter())
                .find(|(known, role)| shortened(known) && role.matters())
                .map(|(_, role)| role)
        });
        let replaces = |option: &str| {
            let long = option.starts_with("--");
            entries.iter().flat_map(|entry| &entry.instead).any(|known| {
                known == option || (long && option.len() > 3 && known.starts_with(option))
            })
        };
        self.replaced |= replaces(name);
        if let Some(role) = role {
            if role.takes_value() {
                match value {
                    Some(value) => self.role(*role, value),
                    None => {
                        if let Some(word) = next() {
                            self.role(*role, &word.text);
                        }
                    }
                }
            } else {
                self.role(*role, "");
            }
            return;
        }
        if entries.iter().any(|entry| entry.strict) {
            let shown = text.replace('\0', "…");
            return self.unknown(&format!("the option `{shown}` is not known"));
        }
        if text.starts_with("--") || entries.iter().any(|entry| entry.one_dash) {
            return;
        }
        // A cluster of letters: the first that takes a value takes the rest.
        for (at, letter) in text.char_indices().skip(1) {
            let rest = text.get(at + letter.len_utf8()..).unwrap_or_default();
            self.replaced |= replaces(&format!("-{letter}"));
            if let Some(role) = look(&format!("-{letter}")) {
                if !role.takes_value() {
                    self.role(*role, "");
                    continue;
                }
                if rest.is_empty() {
                    if let Some(word) = next() {
                        self.role(*role, &word.text);
                    }
                } else {
                    self.role(*role, rest);
                }
                return;
            }
        }
    }

    fn operands(&mut self, simple: &Simple, operands: &[&Word], entry: &'static EffectEntry) {
        let roles = entry.operands.as_slice();
        let roles = roles.get(usize::from(self.replaced && roles.len() > 1)..).unwrap_or_default();
        let starred = roles.iter().position(|(_, many)| *many);
        let (before, after) = match starred {
            Some(at) => (at, roles.len() - at - 1),
            None => (roles.len(), 0),
        };
        let count = operands.len();
        for (at, word) in operands.iter().enumerate() {
            if let Some((key, value)) = word.text.split_once('=')
                && let Some(role) = entry.keys.get(key)
            {
                self.role(*role, value);
                continue;
            }
            // With a single word, the last role comes first: `cp x` has no source.
            let role = if at + after >= count && after > 0 && count > before {
                roles.get(roles.len() - (count - at))
            } else if at < before {
                roles.get(at)
            } else {
                starred.and_then(|at| roles.get(at))
            };
            match role {
                Some((role, _)) => self.role(*role, &word.text),
                None if roles.is_empty() => {}
                None => self.unknown("it has more words than are known"),
            }
        }
        if simple.open_ended {
            let role = starred.and_then(|at| roles.get(at)).or_else(|| roles.last());
            match role {
                Some((role, _)) => self.role(*role, "\0"),
                None if entry.inert => {}
                None => self.unknown("it gets words that stand nowhere in the text"),
            }
            if entry.has_options_that_matter() {
                self.unknown("it gets words that may be options");
            }
        }
    }

    fn role(&mut self, role: WordRole, text: &str) {
        match role {
            WordRole::Data | WordRole::Flag => {}
            WordRole::InPlace => self.in_place = true,
            WordRole::Path(kind) => {
                self.path_text(kind, text);
                if self.in_place && kind == EffectKind::Read {
                    self.path_text(EffectKind::Write, text);
                }
                // Some take `@file` for a list of words.
                if let Some(list) = text.strip_prefix('@') {
                    self.path_text(EffectKind::Read, list);
                }
            }
            WordRole::File(kind) => {
                // `@file` reads a file, anything else is data.
                if let Some(file) = text.strip_prefix('@') {
                    self.path_text(EffectKind::Read, file);
                }
                self.push(Effect::of(kind));
            }
            WordRole::Url(kind) => self.url(kind, text),
            WordRole::Does(kind) | WordRole::Adds(kind) => self.push(Effect::of(kind)),
            WordRole::Remote(kind) => self.remote(kind, text),
            WordRole::Reference => {
                for piece in crate::path::pieces(text) {
                    self.path_text(EffectKind::Read, piece);
                }
            }
            WordRole::Filter => {
                if ["env", "ENV", "load", "input_filename", "\0"]
                    .iter()
                    .any(|mark| text.contains(mark))
                {
                    self.push(Effect::because(
                        EffectKind::Environment,
                        "the filter can look beyond its input",
                    ));
                }
            }
            WordRole::Awk => scripts::awk(text, self),
            WordRole::Sed => scripts::sed(text, self),
            WordRole::Sql => scripts::sql(text, self),
        }
    }

    fn url(&mut self, kind: EffectKind, text: &str) {
        if let Some(path) = text.strip_prefix("file://") {
            return self.path_text(EffectKind::Read, path);
        }
        let host = crate::host::of_url(text);
        self.push(Effect { host, path: None, ..Effect::of(kind) });
    }

    /// `host:path` is elsewhere, anything else is here.
    fn remote(&mut self, kind: EffectKind, text: &str) {
        let elsewhere = text.contains("://")
            || text
                .split_once(':')
                .is_some_and(|(host, _)| !host.contains('/') && !host.is_empty());
        if elsewhere {
            let host = if text.contains("://") {
                crate::host::of_url(text)
            } else {
                text.split(':')
                    .next()
                    .map(|host| host.rsplit('@').next().unwrap_or(host).to_ascii_lowercase())
            };
            let kind =
                if kind == EffectKind::Write { EffectKind::Send } else { EffectKind::Network };
            self.push(Effect { host, ..Effect::of(kind) });
        } else {
            self.path_text(kind, text);
        }
    }
}

#[cfg(test)]
#[path = "effects_tests.rs"]
mod tests;
