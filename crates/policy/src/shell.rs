//! Shell text, read into the simple commands it runs.
//!
//! The guarantee: if [`Reading::opaque`] is `None`, then [`Reading::commands`] are all the commands the text runs, with
//! the very words they get (a word marked [`Word::glob`] may become several). Everything outside the small language
//! below makes the reading opaque, with the reason; what was seen up to there and after it is still listed, so that a
//! rule that denies can find it.
//!
//! What is read exactly: words, quotes without expansions, backslashes, comments, `;` `&` `&&` `|` `|&` `||` and
//! newlines, redirections to and from files, leading assignments, and the wrappers of `shell/unwrap.rs`. What is
//! deliberately not read: expansions, substitutions, here-documents, groups, reserved words, functions, brace
//! expansion, history expansion, and shells of another grammar. Aliases and functions of the person's own shell are
//! not known here, and a shell with comments switched off would take a comment for words.

mod lex;
mod unwrap;

/// The longest text that is read, in bytes.
pub const MAX_TEXT: usize = 64 * 1024;
/// The most simple commands that are listed.
pub const MAX_COMMANDS: usize = 1_000;
/// The most words of all commands together that are listed: what comes after decides nothing but costs time.
pub const MAX_WORDS: usize = 4_096;
/// How deep `sh -c`, substitutions and wrappers are followed.
const MAX_DEPTH: usize = 8;

/// What a text runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reading {
    /// The simple commands, in the order of the text; what a wrapper runs follows the wrapper.
    pub commands: Vec<Simple>,
    /// Why not everything the text does is known, if so.
    pub opaque: Option<String>,
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
}

/// One word, quotes removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Word {
    /// The text.
    pub text: String,
    /// Whether the shell may replace it by the names of files.
    pub glob: bool,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// The file is read.
    Read,
    /// The file is written.
    Write,
}

/// Reads a text as a POSIX-like shell would.
///
/// ```
/// let reading = banister_policy::shell::read("cd src && ls *.rs");
/// assert_eq!(reading.opaque, None);
/// assert_eq!(reading.commands.len(), 2);
/// assert!(banister_policy::shell::read("ls $(pwd)").opaque.is_some());
/// ```
pub fn read(text: &str) -> Reading {
    let mut reading = Reading::default();
    reading.read(text, 0);
    reading
}

/// Reads a program with its arguments that no shell has to split.
pub fn read_argv<'w>(words: impl IntoIterator<Item = &'w str>) -> Reading {
    let argv: Vec<Word> = words.into_iter().map(Word::literal).collect();
    let mut reading = Reading::default();
    let bytes: usize = argv.iter().map(|word| word.text.len()).sum();
    if bytes > MAX_TEXT {
        reading.note("it is longer than 64 KiB");
    }
    if argv.iter().any(|word| word.text.chars().any(hides)) {
        reading.note(HIDDEN);
    }
    let simple = Simple { argv, ..Simple::default() };
    reading.take(simple, 0);
    reading
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

impl Reading {
    /// Reads a text, at some depth of nesting, into this reading.
    fn read(&mut self, text: &str, depth: usize) {
        if depth > MAX_DEPTH {
            self.note("it is nested too deep");
            return;
        }
        let text = if text.len() > MAX_TEXT {
            self.note("it is longer than 64 KiB");
            text.get(..text.floor_char_boundary(MAX_TEXT)).unwrap_or_default()
        } else {
            text
        };
        if text.chars().any(hides) {
            self.note(HIDDEN);
        }
        lex::run(text, depth, self);
    }

    /// Remembers why the reading is not complete. The first reason stays.
    fn note(&mut self, reason: &str) {
        self.opaque.get_or_insert_with(|| reason.to_owned());
    }

    /// Lists a command and what it runs.
    fn take(&mut self, simple: Simple, depth: usize) {
        unwrap::unwrap(simple, depth, self);
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
    pub fn literal(text: &str) -> Self {
        Self { text: text.to_owned(), glob: false }
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
    (!name.contains(['/', '\\'])).then_some(name)
}

#[cfg(test)]
#[path = "shell_tests.rs"]
mod tests;
