//! One rule: what it speaks about, and what it says.
//!
//! Rules that allow and rules that ask or deny are matched with opposite care. An allow must be sure: the very program,
//! known flags, words that are certain. An ask or a deny must not miss: any spelling of the program, flags in clusters
//! and abbreviations, patterns that might mean the path.

mod draft;
mod flags;

use banister_events::activity::{Decision, Risk};
pub(crate) use draft::{ExampleKind, RuleDocument, RuleDraft, RuleExample, RuleOrigin};
use regex::Regex;

use crate::effects::{Effect, EffectKind};
use crate::host;
use crate::layer::Layer;
use crate::path::{PathNames, PathPattern, Surroundings, is_unknown, pieces};
use crate::shell::{Direction, FED_FILE, Simple, Word, trusted_program};
use crate::subject::Subject;
use crate::tools::ToolClass;

/// A rule, ready to match.
#[derive(Debug)]
pub(crate) struct PolicyRule {
    pub(crate) id: String,
    pub(crate) layer: Layer,
    pub(crate) decision: Decision,
    /// The asks it lifts, by their ids.
    pub(crate) lifts: Vec<String>,
    /// Whether a person may lift this ask of the organisation.
    pub(crate) liftable: bool,
    pub(crate) reason: String,
    pub(crate) safer: Option<String>,
    /// How much could go wrong; derived from what is done where the rule does not say.
    pub(crate) risk: Option<Risk>,
    pub(crate) irreversible: Option<bool>,
    effects: Vec<EffectKind>,
    hosts: Vec<String>,
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
    paths: Vec<PathPattern>,
    not_paths: Vec<PathPattern>,
}

#[derive(Debug)]
enum Tool {
    Class(ToolClass),
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

/// One command, with all that rules look at.
pub(crate) struct CommandTarget<'s, 'a> {
    pub(crate) subject: &'s Subject<'a>,
    pub(crate) simple: &'s Simple,
    /// [`Simple::program`], made once for all rules.
    pub(crate) program: String,
    pub(crate) effects: &'s [Effect],
    /// The directories it may run in.
    pub(crate) places: &'s [PathNames],
}

impl<'s, 'a> CommandTarget<'s, 'a> {
    pub(crate) fn new(subject: &'s Subject<'a>, at: usize, simple: &'s Simple) -> Self {
        Self {
            subject,
            simple,
            program: simple.program(),
            effects: subject.effects.get(at).map(Vec::as_slice).unwrap_or_default(),
            places: subject.places(at),
        }
    }
}

impl CommandTarget<'_, '_> {
    /// Whether all paths a command touches are known to be paths, so that its other words are only words.
    fn is_plain(&self) -> bool {
        !self.subject.overfull
            && !self.simple.open_ended
            && self.simple.argv.first().is_none_or(|word| trusted_program(&word.text).is_some())
            && self.effects.iter().all(|effect| {
                matches!(
                    effect.kind,
                    EffectKind::Read | EffectKind::Write | EffectKind::Delete | EffectKind::Vcs
                )
            })
    }
}

impl PolicyRule {
    /// The programs the rule is about, if it names each of them.
    pub(crate) fn programs(&self) -> Option<Vec<&str>> {
        if self.argv.is_empty() {
            return None;
        }
        let mut programs = Vec::new();
        for prefix in &self.argv {
            match prefix.first()? {
                Element::Words(words) => programs.extend(words.iter().map(String::as_str)),
                Element::Regex(_) => return None,
            }
        }
        Some(programs)
    }

    /// Whether the rule's effects and hosts are those of a tool that is no shell.
    pub(crate) fn matches_tool(&self, effects: &[Effect]) -> bool {
        if self.effects.is_empty() && self.hosts.is_empty() {
            return true;
        }
        if self.decision == Decision::Allow {
            !effects.is_empty() && effects.iter().all(|effect| self.lists(effect, true))
        } else {
            effects.iter().any(|effect| self.lists(effect, false))
        }
    }

    /// Whether an effect is one of the rule's, at one of its hosts.
    fn lists(&self, effect: &Effect, sure: bool) -> bool {
        let kind = self.effects.is_empty() || self.effects.contains(&effect.kind);
        let speaks =
            matches!(effect.kind, EffectKind::Network | EffectKind::Send) || effect.host.is_some();
        let host = self.hosts.is_empty()
            || match &effect.host {
                Some(host) => self.hosts.iter().any(|pattern| host::fits(pattern, host)),
                // A host that is not known is none that a rule could allow, and any that it could ask about.
                None if speaks => !sure,
                None => sure,
            };
        kind && host
    }

    /// Whether the rule is about this agent, tool and server at all.
    pub(crate) fn speaks_of(&self, subject: &Subject<'_>, class: ToolClass) -> bool {
        let tool = if self.tools.is_empty() {
            self.argv.is_empty() || class == ToolClass::Shell
        } else {
            self.tools.iter().any(|tool| match tool {
                Tool::Class(wanted) => *wanted == class,
                // Whoever runs an MCP server names its tools: a name alone is no reason to trust one.
                Tool::Name(name) => {
                    let known = class != ToolClass::Mcp
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

    /// Whether the rule matches a command, and if so by how many words.
    pub(crate) fn matches_command(&self, target: &CommandTarget<'_, '_>) -> Option<usize> {
        if self.decision == Decision::Allow {
            self.surely_matches(target)
        } else {
            self.possibly_matches(target)
        }
    }

    /// Whether the rule lets the shell write files, rather than a tool that shows what it changes.
    pub(crate) fn is_for_redirects(&self) -> bool {
        self.argv.is_empty()
            && self.effects.contains(&EffectKind::Write)
            && self.tools.iter().any(|tool| matches!(tool, Tool::Class(ToolClass::Shell)))
    }

    /// Whether the rule matches a file, or, without one, the bare use of the tool.
    pub(crate) fn matches_path(&self, path: Option<&PathNames>, around: &Surroundings) -> bool {
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

    /// Whether this allow lifts that ask: it must name it, and be at least as narrow in each way the ask is.
    pub(crate) fn lifts(&self, words: usize, ask: &Self, ask_words: usize) -> bool {
        let by_words = ask.argv.is_empty() || (!self.argv.is_empty() && words >= ask_words);
        let by_path = ask.paths.is_empty() || !self.paths.is_empty();
        let by_name = self.tools.iter().any(|tool| matches!(tool, Tool::Name(_)));
        let by_host = ask.hosts.is_empty() || !self.hosts.is_empty();
        let narrow = !self.argv.is_empty()
            || !self.paths.is_empty()
            || by_name
            || !self.servers.is_empty()
            || !self.hosts.is_empty();
        self.lifts.contains(&ask.id)
            && self.layer.may_lift(ask.layer, ask.liftable)
            && narrow
            && by_words
            && by_path
            && by_host
    }

    fn surely_matches(&self, target: &CommandTarget<'_, '_>) -> Option<usize> {
        let CommandTarget { subject, simple, .. } = *target;
        if simple.open_ended || simple.elsewhere || subject.overfull {
            return None;
        }
        let prefix = self.longest(|prefix| starts_with(prefix, simple))?;
        let rest = simple.argv.get(prefix..).unwrap_or_default();
        if !self.effects.is_empty() || !self.hosts.is_empty() {
            return self.allows_effects(target).then_some(prefix);
        }
        // What is not known may be anything; only a rule about effects knows which words are data.
        if rest.iter().any(|word| !word.is_known() || word.several) {
            return None;
        }
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
        let paths_fit = (!self.in_project || stays_in_project(&looked_at, target))
            && (self.paths.is_empty() && self.not_paths.is_empty()
                || self.allows_words(&looked_at, target));
        (flags_fit && count_fits && paths_fit).then_some(prefix)
    }

    /// Whether everything a command does is what the rule allows. What the shell writes is decided apart.
    fn allows_effects(&self, target: &CommandTarget<'_, '_>) -> bool {
        let around = &target.subject.around;
        let simple = target.simple;
        let trusted = simple.argv.first().is_none_or(|word| trusted_program(&word.text).is_some());
        let at_home =
            !self.in_project || target.places.iter().all(|place| around.in_project(place));
        let written = |effect: &Effect| {
            effect.kind == EffectKind::Write
                && simple.redirects.iter().any(|file| {
                    file.direction == Direction::Write
                        && effect.path.as_deref() == Some(&file.target.shown())
                })
        };
        let mut about = target.effects.iter().filter(|effect| !written(effect)).peekable();
        let something = self.paths.is_empty() || about.peek().is_some();
        trusted
            && at_home
            && something
            && about.all(|effect| {
                // Where the rule names paths, something that happens nowhere in particular may happen elsewhere.
                let placed = self.paths.is_empty() || !effect.names.is_empty();
                placed
                    && self.lists(effect, true)
                    && effect.names.iter().all(|path| self.allows_path(path, around))
            })
    }

    fn possibly_matches(&self, target: &CommandTarget<'_, '_>) -> Option<usize> {
        let CommandTarget { simple, .. } = *target;
        if self.except.iter().any(|prefix| starts_with(prefix, simple)) {
            return None;
        }
        let words = if self.argv.is_empty() {
            0
        } else {
            self.longest(|prefix| spells(prefix, simple, &target.program))?
        };
        let flagged = self.with_flags.is_empty()
            || self.with_flags.iter().any(|flag| flags::may_have(simple.arguments(), flag));
        if !flagged {
            return None;
        }
        let named = if self.effects.is_empty() && self.hosts.is_empty() {
            if !self.paths.is_empty() && self.decision == Decision::Ask && target.is_plain() {
                return self.names_effect(target).then_some(words);
            }
            self.paths.is_empty() || self.is_named(target)
        } else {
            target.effects.iter().any(|effect| self.may_have(effect, target))
        };
        named.then_some(words + usize::from(!self.with_flags.is_empty()))
    }

    /// Whether something that is done to a file may be done to one of the rule's.
    fn names_effect(&self, target: &CommandTarget<'_, '_>) -> bool {
        let around = &target.subject.around;
        target
            .effects
            .iter()
            .flat_map(|effect| &effect.names)
            .any(|path| self.paths.iter().any(|pattern| pattern.possibly(path, around)))
    }

    /// Whether an effect may be one the rule asks about or denies.
    fn may_have(&self, effect: &Effect, target: &CommandTarget<'_, '_>) -> bool {
        let around = &target.subject.around;
        if !self.lists(effect, false) {
            return false;
        }
        let spared = !effect.names.is_empty()
            && !self.not_paths.is_empty()
            && effect
                .names
                .iter()
                .all(|path| PathPattern::any_surely(&self.not_paths, path, around));
        // What happens nowhere in particular may happen there if the command names it in any way.
        let unknown = if effect.names.is_empty() {
            !self.paths.is_empty() && self.is_named(target)
        } else {
            // No allow of a pack rests on a path that is not known, so its asks need not guess, and their reasons stay
            // true. What other layers allow is not known here.
            self.decision != Decision::Deny
                && self.layer != Layer::Pack
                && effect.names.iter().any(|path| is_unknown(path))
        };
        let named = self.paths.is_empty()
            || unknown
            || effect
                .names
                .iter()
                .any(|path| self.paths.iter().any(|pattern| pattern.possibly(path, around)));
        !spared && named
    }

    /// Whether any word of a command may name one of the rule's paths.
    fn is_named(&self, target: &CommandTarget<'_, '_>) -> bool {
        let simple = target.simple;
        let files = simple.redirects.iter().map(|redirect| &redirect.target);
        simple.argv.iter().chain(files).any(|word| self.may_name(word, target))
    }

    /// Whether a word may name one of the rule's paths. A quoted wildcard is the program's to expand, so it counts as one
    /// too, except where it stands alone: `'target/*'` is about the directory, not about each name it could have.
    fn may_name(&self, word: &Word, target: &CommandTarget<'_, '_>) -> bool {
        let subject = target.subject;
        if subject.overfull {
            return self.decision == Decision::Deny;
        }
        pieces(&word.text).any(|piece| {
            target.places.iter().any(|directory| {
                let mut path = subject.around.resolve(piece, directory);
                if self.decision == Decision::Deny && is_unknown(&path) {
                    return false;
                }
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

    fn allows_path(&self, path: &PathNames, around: &Surroundings) -> bool {
        (self.paths.is_empty() || PathPattern::any_surely(&self.paths, path, around))
            && (self.not_paths.is_empty() || !is_unknown(path))
            && !self.not_paths.iter().any(|pattern| pattern.possibly(path, around))
            && (!self.in_project || around.in_project(path))
    }

    fn allows_words(&self, words: &[&Word], target: &CommandTarget<'_, '_>) -> bool {
        let subject = target.subject;
        let mut operands = words.iter().filter(|word| !flags::is_flag(&word.text)).peekable();
        operands.peek().is_some()
            && words.iter().flat_map(|word| pieces(&word.text)).all(|piece| {
                target.places.iter().all(|directory| {
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
fn stays_in_project(words: &[&Word], target: &CommandTarget<'_, '_>) -> bool {
    const HARMLESS: [&str; 6] =
        ["-", "/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", FED_FILE];
    let subject = target.subject;
    target.places.iter().all(|directory| {
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
