//! Programs that run other programs.
//!
//! A wrapper is seen through only where its option grammar is known exactly. A transparent one is replaced by what it
//! runs; one that changes what the command may do (`sudo`), or that lies in a directory anybody can write to, stays
//! listed before what it runs. An option not in the table makes the reading opaque.

use super::lex::{RESERVED, assignment, is_name};
use super::{MAX_DEPTH, Reading, Simple, Word, program, trusted_program};

/// The option grammar of a wrapper.
struct Wrapper {
    name: &'static str,
    /// One-letter options without a value.
    letters: &'static str,
    /// One-letter options with a value.
    valued: &'static str,
    /// Long options without a value.
    long: &'static [&'static str],
    /// Long options with a value.
    long_valued: &'static [&'static str],
    /// Words before the command, such as a duration.
    operands: usize,
    manner: Manner,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// Runs the command as it stands.
    Transparent,
    /// Sets variables first.
    Environment,
    /// Runs it with other rights.
    Elevating,
    /// Adds words from its input.
    Appending,
}

const PLAIN: Wrapper = Wrapper {
    name: "",
    letters: "",
    valued: "",
    long: &[],
    long_valued: &[],
    operands: 0,
    manner: Manner::Transparent,
};

const WRAPPERS: [Wrapper; 17] = [
    Wrapper { name: "nohup", ..PLAIN },
    Wrapper { name: "builtin", ..PLAIN },
    Wrapper { name: "noglob", ..PLAIN },
    Wrapper { name: "nocorrect", ..PLAIN },
    Wrapper { name: "busybox", ..PLAIN },
    Wrapper { name: "toybox", ..PLAIN },
    Wrapper { name: "command", letters: "p", ..PLAIN },
    Wrapper { name: "exec", letters: "cl", valued: "a", ..PLAIN },
    // A keyword in most shells, so assignments may follow.
    Wrapper { name: "time", letters: "pv", manner: Manner::Environment, ..PLAIN },
    Wrapper { name: "setsid", letters: "cfw", long: &["--ctty", "--fork", "--wait"], ..PLAIN },
    Wrapper {
        name: "nice",
        letters: "0123456789",
        valued: "n",
        long_valued: &["--adjustment"],
        ..PLAIN
    },
    Wrapper {
        name: "ionice",
        letters: "t",
        valued: "cn",
        long: &["--ignore"],
        long_valued: &["--class", "--classdata"],
        ..PLAIN
    },
    Wrapper {
        name: "stdbuf",
        valued: "ioe",
        long_valued: &["--input", "--output", "--error"],
        ..PLAIN
    },
    Wrapper {
        name: "timeout",
        letters: "vfp",
        valued: "ks",
        long: &["--preserve-status", "--foreground", "--verbose"],
        long_valued: &["--kill-after", "--signal"],
        operands: 1,
        ..PLAIN
    },
    Wrapper {
        name: "env",
        letters: "i0v",
        valued: "u",
        long: &["--ignore-environment", "--null", "--debug"],
        long_valued: &["--unset"],
        manner: Manner::Environment,
        ..PLAIN
    },
    Wrapper {
        name: "sudo",
        letters: "AbEHKknPSv",
        valued: "ugpCTU",
        long: &["--preserve-env", "--set-home", "--non-interactive", "--stdin", "--background"],
        long_valued: &["--user", "--group", "--prompt"],
        manner: Manner::Elevating,
        ..PLAIN
    },
    Wrapper { name: "doas", letters: "nL", valued: "u", manner: Manner::Elevating, ..PLAIN },
];

const XARGS: Wrapper = Wrapper {
    name: "xargs",
    letters: "0rtpxo",
    valued: "nPILdEs",
    long: &["--null", "--no-run-if-empty", "--verbose", "--interactive", "--exit", "--open-tty"],
    long_valued: &[
        "--max-args",
        "--max-procs",
        "--replace",
        "--max-lines",
        "--delimiter",
        "--max-chars",
    ],
    manner: Manner::Appending,
    ..PLAIN
};

const SHELLS: [&str; 7] = ["sh", "bash", "zsh", "dash", "ksh", "ash", "mksh"];
/// Programs whose arguments or input are commands that nobody here reads.
const UNREAD: [&str; 13] = [
    "eval",
    "source",
    ".",
    "trap",
    "alias",
    "fish",
    "pwsh",
    "powershell",
    "cmd",
    "watch",
    "parallel",
    "enable",
    "hash",
];

/// Lists a command and everything it runs.
pub(super) fn unwrap(simple: Simple, depth: usize, reading: &mut Reading) {
    let Some(first) = simple.argv.first() else {
        return reading.list(simple);
    };
    if depth > MAX_DEPTH {
        reading.note("it is nested too deep");
        return reading.list(simple);
    }
    if RESERVED.contains(&first.text.as_str()) {
        reading.note("it has control flow");
        let argv = simple.arguments().to_vec();
        return unwrap(Simple { argv, ..simple }, depth + 1, reading);
    }
    let name = program(&first.text);
    if SHELLS.contains(&name.as_str()) {
        return shell(simple, depth, reading);
    }
    if UNREAD.contains(&name.as_str()) {
        reading.note(&format!("`{name}` runs text that is not read"));
        let arguments: Vec<&str> =
            simple.arguments().iter().map(|word| word.text.as_str()).collect();
        let text = arguments.join(" ");
        reading.list(simple);
        return reading.read(&text, depth + 1);
    }
    if name == "find" {
        return find(simple, depth, reading);
    }
    // `command -v` and `-V` only say where a program is.
    let looks_up = name == "command"
        && simple.arguments().first().is_some_and(|word| {
            word.text.starts_with(['-']) && word.text != "-p" && word.text != "--"
        });
    match WRAPPERS.iter().chain([&XARGS]).find(|wrapper| wrapper.name == name) {
        Some(wrapper) if !looks_up => wrapper.unwrap(simple, depth, reading),
        _ => reading.list(simple),
    }
}

impl Wrapper {
    fn unwrap(&self, mut simple: Simple, depth: usize, reading: &mut Reading) {
        let mut words = simple.arguments().to_vec().into_iter().peekable();
        while let Some(word) = words.next_if(|word| word.text.starts_with('-') && word.text != "-")
        {
            if word.text == "--" {
                break;
            }
            match self.takes_value(&word.text) {
                Some(false) => {}
                Some(true) => drop(words.next()),
                None => {
                    reading.note(&format!("`{}` has an option that is not known here", self.name));
                }
            }
        }
        for _ in 0..self.operands {
            words.next();
        }
        let mut assignments = simple.assignments.clone();
        if matches!(self.manner, Manner::Environment | Manner::Elevating) {
            if words.next_if(|word| word.text == "-").is_some() && self.manner == Manner::Elevating
            {
                reading.note("`-` is not an option of this program");
            }
            while let Some(set) = words.peek().and_then(set) {
                assignments.push(set);
                words.next();
            }
        }
        let argv: Vec<Word> = words.collect();
        let trusted = simple.argv.first().is_some_and(|word| trusted_program(&word.text).is_some());
        if argv.is_empty() {
            return reading.list(simple);
        }
        let inner = Simple {
            assignments,
            argv,
            redirects: std::mem::take(&mut simple.redirects),
            open_ended: simple.open_ended || self.manner == Manner::Appending,
        };
        if self.manner == Manner::Elevating || !trusted {
            reading.list(simple);
        }
        unwrap(inner, depth + 1, reading);
    }

    /// Whether an option takes the next word as its value; `None` if the option is not known.
    fn takes_value(&self, option: &str) -> Option<bool> {
        if option.starts_with("--") {
            let (name, value) =
                option.split_once('=').map_or((option, None), |(n, v)| (n, Some(v)));
            return if self.long_valued.contains(&name) {
                Some(value.is_none())
            } else {
                self.long.contains(&name).then_some(false)
            };
        }
        let mut letters = option.chars().skip(1);
        while let Some(letter) = letters.next() {
            if self.valued.contains(letter) {
                return Some(letters.next().is_none());
            }
            if !self.letters.contains(letter) {
                return None;
            }
        }
        Some(false)
    }
}

fn set(word: &Word) -> Option<super::Assignment> {
    let (name, _) = word.text.split_once('=')?;
    is_name(name).then(|| assignment(word, name.len())).flatten()
}

/// `sh -c TEXT` is the text; a shell without one reads a file or its input.
fn shell(simple: Simple, depth: usize, reading: &mut Reading) {
    let mut words = simple.arguments().iter().peekable();
    let mut from_argument = false;
    while let Some(word) = words.next_if(|word| word.text.starts_with(['-', '+'])) {
        let option = word.text.as_str();
        let known = matches!(option, "--login" | "--norc" | "--noprofile" | "--posix" | "--")
            || option
                .strip_prefix('-')
                .is_some_and(|letters| letters.chars().all(|c| "celuxv".contains(c)));
        if !known {
            reading.note("a shell has an option that is not known here");
        }
        if !option.starts_with("--") && option.contains('c') {
            from_argument = true;
        }
        if option == "--" {
            break;
        }
    }
    let operand = words.next().map(|word| word.text.clone());
    let trusted = simple.argv.first().is_some_and(|word| trusted_program(&word.text).is_some());
    match operand {
        Some(text) if from_argument => {
            if simple.open_ended {
                reading.note("a shell gets words that are not known before it runs");
            }
            if trusted {
                // What is set or redirected for the shell holds for all it runs.
                let around = Simple { argv: Vec::new(), open_ended: false, ..simple };
                if around != Simple::default() {
                    reading.list(around);
                }
            } else {
                reading.list(simple);
            }
            reading.read(&text, depth + 1);
        }
        Some(_) => reading.list(simple),
        None => {
            reading.note("a shell reads its commands from its input");
            reading.list(simple);
        }
    }
}

/// `find` stays listed; what `-exec` and its kin run follows it.
fn find(simple: Simple, depth: usize, reading: &mut Reading) {
    let mut inner = Vec::new();
    let mut words = simple.arguments().iter();
    while let Some(word) = words.next() {
        if matches!(word.text.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir") {
            let argv: Vec<Word> = words
                .by_ref()
                .take_while(|word| word.text != ";" && word.text != "+")
                .cloned()
                .collect();
            inner.push(argv);
        }
    }
    reading.list(simple);
    for argv in inner {
        let command = Simple { argv, open_ended: true, ..Simple::default() };
        unwrap(command, depth + 1, reading);
    }
}
