//! Shell text, read into the simple commands it runs.
//!
//! The guarantee: if [`ShellReading::opaque`] is `None`, then [`ShellReading::commands`] are all the commands the text
//! can run, each with the way that leads to it and the words it gets. A word may have parts that are not known before it runs
//! ([`UNKNOWN`]), may become several ([`Word::several`]) or the names of files ([`Word::glob`]). What cannot be read makes
//! the reading opaque, with the reason; what was seen up to there and after it is still listed, so that a rule that
//! denies can find it.
//!
//! ```text
//! text ─▶ tree ─▶ walk ─▶ word ─▶ unwrap ─▶ commands
//!         grammar  order   quotes  sudo, sh -c,
//!         budget   state   values  xargs, ssh …
//! ```
//!
//! `tree.rs` has the grammar and checks that it accounts for every byte. `walk.rs` goes through the tree in the order of
//! execution and keeps what is known (`state.rs`): each branch counts, each loop runs. `word.rs` reads each word a second
//! time by the shell's own rules. `unwrap.rs` sees through programs that run others, by the option grammar in
//! `packs/wrappers.yaml`.
//!
//! Nothing here looks at a machine: files that are sourced, aliases and functions of the person's own shell, and
//! variables of the environment are not known. Work is bounded by steps, never by time, so that the same text always has
//! the same reading.

mod braces;
mod nodes;
mod printed;
mod state;
mod tree;
mod unwrap;
mod walk;
mod word;
pub(crate) mod wrappers;

use std::rc::Rc;

use serde::Serialize;

/// The longest text that is read, in bytes.
pub const MAX_TEXT: usize = 64 * 1024;
/// The most simple commands that are listed.
pub const MAX_COMMANDS: usize = 1_000;
/// The most words of all commands together that are listed: what comes after decides nothing but costs time.
pub(crate) const MAX_WORDS: usize = 4_096;
/// How deep `sh -c`, functions and wrappers are followed.
const MAX_DEPTH: usize = 20;
/// The most texts inside the text that are read.
const MAX_TEXTS: usize = 200;

/// Stands in a word for a part that is not known before it runs.
pub const UNKNOWN: char = '\0';
/// Stands for what another command prints, given as a file.
pub(crate) const FED_FILE: &str = "/dev/fd/63";

/// What is known about where a text runs.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ShellFacts<'f> {
    /// The directory it starts in.
    pub(crate) directory: Option<&'f str>,
    /// The person's home.
    pub(crate) home: Option<&'f str>,
}

/// What a text runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShellReading {
    /// The simple commands, in the order of the text; what a wrapper runs follows the wrapper.
    pub commands: Vec<Simple>,
    /// Why not everything the text does is known, if so.
    pub opaque: Option<String>,
    /// Whether a shell runs what was decoded before its eyes: read or not, somebody hid it.
    pub decoded: bool,
    /// How many words are listed.
    words: usize,
}

/// One program with its words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Simple {
    /// The variables set for it, or, without words, for all that follows.
    pub assignments: Vec<Assignment>,
    /// The program and its arguments, quotes removed.
    pub argv: Vec<Word>,
    /// The files it is redirected from and to. Copies of descriptors, such as `2>&1`, are left out.
    pub redirects: Vec<Redirect>,
    /// Whether arguments follow that stand nowhere in the text, as behind `xargs`.
    pub open_ended: bool,
    /// What it reads from its standard input.
    pub input: CommandInput,
    /// The directories it may run in, as paths from where the text starts.
    pub directories: Rc<Vec<String>>,
    /// Whether it runs on another machine or in a container, where paths mean something else.
    pub elsewhere: bool,
    /// The way that leads to it: `pipeline`, `sh -c`, `sudo` and the like, outermost first.
    pub steps: Vec<Rc<str>>,
}

/// What comes in at a command's standard input.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum CommandInput {
    /// What the shell itself has.
    #[default]
    Inherited,
    /// A text that is known.
    Text(Rc<str>),
    /// What another command prints.
    Pipe,
}

/// One word, quotes removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Word {
    /// The text; [`UNKNOWN`] stands for what is not known.
    pub text: String,
    /// Whether the shell may replace it by the names of files.
    pub glob: bool,
    /// Whether it may become several words, or none.
    pub several: bool,
}

/// A variable that is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The variable.
    pub name: String,
    /// What it is set to.
    pub value: Word,
}

/// A file that stands for an input or output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect {
    /// Which way.
    pub direction: Direction,
    /// The file.
    pub target: Word,
}

/// Which way a redirection goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// The file is read.
    Read,
    /// The file is written.
    Write,
}

/// Reads a text as a POSIX-like shell would, with nothing known about where it runs.
///
/// ```
/// use banister_policy::shell::read;
///
/// let reading = read("X=rm; $X *.rs | sort");
/// assert_eq!(reading.opaque, None);
/// assert!(reading.commands.iter().any(|simple| simple.program() == "rm"));
/// assert!(read("$Y *.rs").opaque.is_some());
/// ```
pub fn read(text: &str) -> ShellReading {
    read_at(text, &ShellFacts::default())
}

/// Reads a text as a POSIX-like shell would.
pub(crate) fn read_at(text: &str, facts: &ShellFacts<'_>) -> ShellReading {
    #[cfg(test)]
    count_read();
    let mut reader = walk::ShellReader::new(facts);
    reader.text(text);
    reader.finish()
}

/// Reads a program with its arguments that no shell has to split.
pub(crate) fn read_argv<'w>(
    words: impl IntoIterator<Item = &'w str>,
    facts: &ShellFacts<'_>,
) -> ShellReading {
    #[cfg(test)]
    count_read();
    let argv: Vec<Word> = words.into_iter().map(Word::literal).collect();
    let mut reader = walk::ShellReader::new(facts);
    let bytes: usize = argv.iter().map(|word| word.text.len()).sum();
    if bytes > MAX_TEXT {
        reader.note("it is longer than 64 KiB");
    }
    if argv.iter().any(|word| word.text.chars().any(hides)) {
        reader.note(HIDDEN);
    }
    reader.take(Simple { argv, ..Simple::default() });
    reader.finish()
}

#[cfg(test)]
thread_local! {
    /// How many texts this thread has read.
    pub(crate) static READS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[cfg(test)]
fn count_read() {
    READS.set(READS.get() + 1);
}

const HIDDEN: &str = "it has characters that do not show";

/// Characters that show as nothing, or change how others show: what a person sees is not what runs.
fn hides(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff9}'..='\u{fffd}'
            | '\u{e0000}'..='\u{e0fff}')
}

impl ShellReading {
    /// Remembers why the reading is not complete. The first reason stays.
    fn note(&mut self, reason: &str) {
        self.opaque.get_or_insert_with(|| reason.to_owned());
    }

    pub(crate) fn list(&mut self, mut simple: Simple) {
        if self.commands.len() >= MAX_COMMANDS {
            return self.note("it runs more than 1,000 commands");
        }
        let room = MAX_WORDS.saturating_sub(self.words);
        if simple.argv.len() + simple.redirects.len() + simple.assignments.len() > room {
            self.note("it has more than 4,096 words");
            simple.argv.truncate(room);
            simple.redirects.truncate(room);
            simple.assignments.truncate(room);
        }
        self.words += simple.argv.len() + simple.redirects.len() + simple.assignments.len();
        self.commands.push(simple);
    }
}

impl Simple {
    /// The program's name without directory and `.exe`, in lower case: the name a rule that asks or denies looks for.
    pub fn program(&self) -> String {
        self.argv.first().map(|word| program(&word.text)).unwrap_or_default()
    }

    /// Every word: program, arguments, files, values.
    pub(crate) fn words(&self) -> impl Iterator<Item = &Word> {
        let files = self.redirects.iter().map(|redirect| &redirect.target);
        let values = self.assignments.iter().map(|set| &set.value);
        self.argv.iter().chain(files).chain(values)
    }

    /// The arguments.
    pub fn arguments(&self) -> &[Word] {
        self.argv.get(1..).unwrap_or_default()
    }
}

impl Word {
    /// A word the shell leaves as it is.
    pub(crate) fn literal(text: &str) -> Self {
        Self { text: text.to_owned(), glob: false, several: false }
    }

    /// Whether all of it is known before it runs.
    pub fn is_known(&self) -> bool {
        !self.text.contains(UNKNOWN)
    }

    /// The text for people: what is not known shows as an ellipsis.
    pub fn shown(&self) -> String {
        self.text.replace(UNKNOWN, "…")
    }
}

/// The name of a program without directory and `.exe`, in lower case.
pub(crate) fn program(word: &str) -> String {
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word).to_ascii_lowercase();
    name.strip_suffix(".exe").unwrap_or(&name).to_owned()
}

/// Returns the program's name if the word certainly means the installed program of that name: a bare name, or one in a
/// directory that only the system's owner writes to.
pub(crate) fn trusted_program(word: &str) -> Option<&str> {
    const DIRECTORIES: [&str; 6] =
        ["/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/", "/usr/local/bin/", "/opt/homebrew/bin/"];
    let name =
        DIRECTORIES.iter().find_map(|directory| word.strip_prefix(directory)).unwrap_or(word);
    (!name.contains(['/', '\\', UNKNOWN])).then_some(name)
}

#[cfg(test)]
#[path = "shell_tests.rs"]
mod tests;
