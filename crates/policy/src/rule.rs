//! One rule: what it speaks about, and what it says.
//!
//! Rules that allow and rules that ask or deny are matched with opposite care. An allow must be sure: the very program,
//! known flags, words that are certain. An ask or a deny must not miss: any spelling of the program, flags in clusters
//! and abbreviations, patterns that might mean the path.

mod draft;
mod flags;

use banister_events::activity::{Decision, Risk};
pub(crate) use draft::{Draft, Example, ExampleKind, File, yaml};
use regex::Regex;

use crate::path::{Names, Pattern, Surroundings, pieces};
use crate::shell::{Direction, Simple, Word, trusted_program};
use crate::subject::Subject;
use crate::tools::Class;

/// Whose rule it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layer {
    /// The embedded pack.
    Pack,
    /// The user's file.
    User,
}

impl Layer {
    /// What its rules' ids start with.
    pub(crate) fn prefix(self) -> &'static str {
        match self {
            Self::Pack => "pack",
            Self::User => "user",
        }
    }
}

/// A rule, ready to match.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) id: String,
    pub(crate) layer: Layer,
    pub(crate) decision: Decision,
    pub(crate) reason: String,
    pub(crate) safer: Option<String>,
    pub(crate) risk: Risk,
    pub(crate) irreversible: Option<bool>,
    tools: Vec<Tool>,
    agents: Vec<String>,
    servers: Vec<String>,
    argv: Vec<Vec<Element>>,
    except: Vec<Vec<Element>>,
    exact: bool,
    only_flags: Option<Vec<String>>,
    without_flags: Vec<String>,
    with_flags: Vec<String>,
    operands: Option<usize>,
    data: usize,
    in_project: bool,
    paths: Vec<Pattern>,
    not_paths: Vec<Pattern>,
}

#[derive(Debug)]
enum Tool {
    Class(Class),
    Name(String),
}

/// One place in a prefix of words.
#[derive(Debug)]
enum Element {
    Words(Vec<String>),
    Regex(Regex),
}

impl Element {
    fn fits(&self, text: &str) -> bool {
        match self {
            Self::Words(words) => words.iter().any(|word| word == text),
            Self::Regex(regex) => regex.is_match(text),
        }
    }
}

impl Rule {
    /// Whether the rule is about this agent, tool and server at all.
    pub(crate) fn speaks_of(&self, subject: &Subject<'_>, class: Class) -> bool {
        let tool = if self.tools.is_empty() {
            self.argv.is_empty() || class == Class::Shell
        } else {
            self.tools.iter().any(|tool| match tool {
                Tool::Class(wanted) => *wanted == class,
                // Whoever runs an MCP server names its tools: a name alone is no reason to trust one.
                Tool::Name(name) => {
                    let known = class != Class::Mcp
                        || self.decision != Decision::Allow
                        || !self.servers.is_empty();
                    known && name.eq_ignore_ascii_case(subject.tool)
                }
            })
        };
        tool && (self.agents.is_empty() || self.agents.iter().any(|agent| agent == subject.agent))
            && (self.servers.is_empty()
                || subject
                    .server
                    .is_some_and(|server| self.servers.iter().any(|name| name == server)))
    }

    /// Whether the rule matches a command, and if so by how many words. `program` is the command's
    /// [`Simple::program`], made once for all rules.
    pub(crate) fn matches_command(
        &self,
        simple: &Simple,
        program: &str,
        subject: &Subject<'_>,
    ) -> Option<usize> {
        if self.decision == Decision::Allow {
            self.surely_matches(simple, subject)
        } else {
            self.possibly_matches(simple, program, subject)
        }
    }

    /// Whether the rule matches a file, or, without one, the bare use of the tool.
    pub(crate) fn matches_path(&self, path: Option<&Names>, around: &Surroundings) -> bool {
        if !self.argv.is_empty() {
            return false;
        }
        let Some(path) = path else {
            return self.paths.is_empty() && !self.in_project;
        };
        if self.decision == Decision::Allow {
            self.allows_path(path, around)
        } else {
            self.paths.is_empty() || self.paths.iter().any(|pattern| pattern.possibly(path, around))
        }
    }

    /// Whether this allow lifts that ask: it must be at least as narrow in each way the ask is.
    pub(crate) fn lifts(&self, words: usize, ask: &Self, ask_words: usize) -> bool {
        let by_words = ask.argv.is_empty() || (!self.argv.is_empty() && words >= ask_words);
        let by_path = ask.paths.is_empty() || !self.paths.is_empty();
        let by_name = self.tools.iter().any(|tool| matches!(tool, Tool::Name(_)));
        let narrow =
            !self.argv.is_empty() || !self.paths.is_empty() || by_name || !self.servers.is_empty();
        self.layer == Layer::User && ask.layer == Layer::Pack && narrow && by_words && by_path
    }

    fn surely_matches(&self, simple: &Simple, subject: &Subject<'_>) -> Option<usize> {
        if simple.open_ended || subject.overfull {
            return None;
        }
        let prefix = self.longest(|prefix| starts_with(prefix, simple))?;
        let rest = simple.argv.get(prefix..).unwrap_or_default();
        if self.exact && !rest.is_empty() {
            return None;
        }
        let counts =
            self.operands.is_some() || self.only_flags.is_some() || !self.without_flags.is_empty();
        // A pattern can turn into several words, and into a file's name that reads like a flag.
        let may_be_flag = |word: &Word| word.glob && word.text.starts_with(['*', '?', '[']);
        if counts && rest.iter().any(may_be_flag)
            || self.operands.is_some() && rest.iter().any(|word| word.glob)
        {
            return None;
        }
        let flags_fit = self.without_flags.iter().all(|flag| !flags::may_have(rest, flag))
            && self.only_flags.as_ref().is_none_or(|known| flags::only(rest, known));
        let operands = || rest.iter().filter(|word| !flags::is_flag(&word.text));
        let count_fits = self.operands.is_none_or(|most| operands().count() <= most);
        let looked_at: Vec<&Word> = {
            let skipped: Vec<&Word> = operands().take(self.data).collect();
            let inputs =
                simple.redirects.iter().filter(|redirect| redirect.direction == Direction::Read);
            rest.iter()
                .filter(|word| !skipped.iter().any(|skipped| std::ptr::eq(*skipped, *word)))
                .chain(inputs.map(|redirect| &redirect.target))
                .collect()
        };
        let paths_fit = (!self.in_project || stays_in_project(&looked_at, subject))
            && (self.paths.is_empty() && self.not_paths.is_empty()
                || self.allows_words(&looked_at, subject));
        (flags_fit && count_fits && paths_fit).then_some(prefix)
    }

    fn possibly_matches(
        &self,
        simple: &Simple,
        program: &str,
        subject: &Subject<'_>,
    ) -> Option<usize> {
        if self.except.iter().any(|prefix| starts_with(prefix, simple)) {
            return None;
        }
        let words = if self.argv.is_empty() {
            0
        } else {
            self.longest(|prefix| spells(prefix, simple, program))?
        };
        let flagged = self.with_flags.is_empty()
            || self.with_flags.iter().any(|flag| flags::may_have(simple.arguments(), flag));
        let named = self.paths.is_empty()
            || simple
                .argv
                .iter()
                .chain(simple.redirects.iter().map(|redirect| &redirect.target))
                .any(|word| self.may_name(word, subject));
        (flagged && named).then_some(words + usize::from(!self.with_flags.is_empty()))
    }

    /// Whether a word may name one of the rule's paths. A quoted wildcard is the program's to expand, so it counts as one
    /// too, except where it stands alone: `'target/*'` is about the directory, not about each name it could have.
    fn may_name(&self, word: &Word, subject: &Subject<'_>) -> bool {
        if subject.overfull {
            return self.decision == Decision::Deny;
        }
        pieces(&word.text).any(|piece| {
            subject.directories.iter().any(|directory| {
                let mut path = subject.around.resolve(piece, directory);
                if !word.glob {
                    path.retain(|name| name.chars().any(|c| c != '*'));
                }
                self.paths.iter().any(|pattern| pattern.possibly(&path, &subject.around))
            })
        })
    }

    fn longest(&self, fits: impl Fn(&[Element]) -> bool) -> Option<usize> {
        if self.argv.is_empty() {
            return Some(0);
        }
        self.argv.iter().filter(|prefix| fits(prefix)).map(Vec::len).max()
    }

    fn allows_path(&self, path: &Names, around: &Surroundings) -> bool {
        (self.paths.is_empty() || self.paths.iter().any(|pattern| pattern.surely(path, around)))
            && !self.not_paths.iter().any(|pattern| pattern.possibly(path, around))
            && (!self.in_project || around.in_project(path))
    }

    fn allows_words(&self, words: &[&Word], subject: &Subject<'_>) -> bool {
        let mut operands = words.iter().filter(|word| !flags::is_flag(&word.text)).peekable();
        operands.peek().is_some()
            && words.iter().flat_map(|word| pieces(&word.text)).all(|piece| {
                subject.directories.iter().all(|directory| {
                    self.allows_path(&subject.around.resolve(piece, directory), &subject.around)
                })
            })
    }
}

/// Whether a command's words are surely those of a prefix.
fn starts_with(prefix: &[Element], simple: &Simple) -> bool {
    simple.argv.len() >= prefix.len()
        && prefix.iter().zip(&simple.argv).enumerate().all(|(at, (element, word))| {
            let text = if at == 0 { trusted_program(&word.text) } else { Some(word.text.as_str()) };
            !word.glob && text.is_some_and(|text| element.fits(text))
        })
}

/// Whether a command's words follow a prefix, whatever the program's spelling and the flags in between.
fn spells(prefix: &[Element], simple: &Simple, program: &str) -> bool {
    let mut elements = prefix.iter();
    if !elements.next().is_some_and(|element| element.fits(program)) {
        return false;
    }
    let mut words = simple.arguments().iter();
    elements.all(|element| {
        words
            .by_ref()
            .find(|word| element.fits(&word.text) || !word.text.starts_with('-'))
            .is_some_and(|word| element.fits(&word.text))
    })
}

/// Whether everything in the words that may be a path lies in the project, and the command runs there.
fn stays_in_project(words: &[&Word], subject: &Subject<'_>) -> bool {
    const HARMLESS: [&str; 5] = ["-", "/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"];
    subject.directories.iter().all(|directory| {
        let stays = |piece: &str| {
            let path = subject.around.resolve(piece, directory);
            subject.around.in_project(&path) && !subject.around.holds_own(&path)
        };
        subject.around.in_project(directory)
            && words
                .iter()
                .filter(|word| !HARMLESS.contains(&word.text.as_str()))
                .all(|word| pieces(&word.text).all(stays))
    })
}
