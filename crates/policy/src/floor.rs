//! The floor: five things no rule, grant or person behind an agent's prompt lifts.
//!
//! | rule | what is denied |
//! |---|---|
//! | `floor.wipe-root` | deleting the root directory or one of the system's own directories |
//! | `floor.wipe-home` | deleting a home, or a directory that holds one |
//! | `floor.raw-disk` | writing to a disk past its file system |
//! | `floor.fork-bomb` | a function that starts itself twice, and its kin |
//! | `floor.banister-files` | reading or changing Banister's own files, by any tool |
//!
//! A command that was read is judged by its words, so that `echo "rm -rf /"` is only text. Where the reading is
//! opaque, the raw text is searched as well, and a mention is enough: a false alarm there is the price of the shell's
//! many disguises. The floor is a net for accidents, not a sandbox: a program that an agent wrote and then runs can do
//! all of this unseen.

mod text;

use banister_events::activity::{Decision, Gate, Risk};

use crate::path::{PathNames, pieces, within};
use crate::shell::{Direction, Simple, program};
use crate::subject::Subject;

/// What the floor found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fall {
    WipeRoot,
    WipeHome,
    RawDisk,
    ForkBomb,
    BanisterFiles,
}

impl Fall {
    fn gate(self) -> Gate {
        let (rule, reason, safer, irreversible) = match self {
            Self::WipeRoot => (
                "floor.wipe-root",
                "It would delete the system's root or one of its main directories.",
                Some("Name the one directory inside the project that should go."),
                true,
            ),
            Self::WipeHome => (
                "floor.wipe-home",
                "It would delete a home directory and everything in it.",
                Some("Name the one directory inside the project that should go."),
                true,
            ),
            Self::RawDisk => (
                "floor.raw-disk",
                "It would write to a disk directly and destroy the file system on it.",
                Some("Write to an image file instead of a device."),
                true,
            ),
            Self::ForkBomb => (
                "floor.fork-bomb",
                "It would start copies of itself until the machine stops.",
                None,
                false,
            ),
            Self::BanisterFiles => (
                "floor.banister-files",
                "It touches Banister's own files: keys, rules and the record are not the agent's.",
                Some("Ask the person to do it, or use the `banister` commands for reading."),
                false,
            ),
        };
        Gate {
            decision: Decision::Deny,
            rule: rule.to_owned(),
            reason: reason.to_owned(),
            risk: Risk::High,
            irreversible: Some(irreversible),
            opaque: None,
            safer: safer.map(str::to_owned),
        }
    }
}

/// Returns the gate of the first thing below the floor, if there is any.
pub(crate) fn check(subject: &Subject<'_>) -> Option<Gate> {
    let opaque = subject.reading.opaque.as_deref().or(subject.unseen());
    let fall = subject
        .reading
        .commands
        .iter()
        .enumerate()
        .find_map(|(at, simple)| command(simple, subject.places(at), subject))
        .or_else(|| {
            opaque.and_then(|_| subject.texts.iter().find_map(|raw| text::search(raw, subject)))
        })
        .or_else(|| files(subject))?;
    Some(Gate { opaque: opaque.map(str::to_owned), ..fall.gate() })
}

/// Banister's own files, by any argument of any tool.
fn files(subject: &Subject<'_>) -> Option<Fall> {
    let own = |path: &PathNames| subject.around.is_own(path);
    let named = subject.paths.iter().any(own)
        || subject.directories.iter().any(own)
        || subject
            .mentions
            .iter()
            .any(|mention| own(&subject.around.resolve(mention, &subject.start)));
    named.then_some(Fall::BanisterFiles)
}

/// What a command that was read does.
fn command(simple: &Simple, places: &[PathNames], subject: &Subject<'_>) -> Option<Fall> {
    if simple.elsewhere {
        // Another machine or a container has a root and homes of its own.
        return None;
    }
    let argv: Vec<&str> = simple.argv.iter().map(|word| word.text.as_str()).collect();
    let written = simple
        .redirects
        .iter()
        .filter(|redirect| redirect.direction == Direction::Write)
        .any(|redirect| is_disk(&redirect.target.text, places, subject));
    if written {
        return Some(Fall::RawDisk);
    }
    words(&argv, places, subject).or_else(|| fed(simple, &argv, subject)).or_else(|| {
        // Where there are too many words to look at each, the reading is opaque and its text is searched instead.
        let touched = !subject.overfull
            && simple.words().any(|word| touches_own(&word.text, places, subject));
        touched.then_some(Fall::BanisterFiles)
    })
}

/// What a program does with its words, whoever wrote them.
fn words(argv: &[&str], places: &[PathNames], subject: &Subject<'_>) -> Option<Fall> {
    let (first, arguments) = argv.split_first()?;
    let program = program(first);
    if writes_disk(&program, arguments, places, subject) {
        return Some(Fall::RawDisk);
    }
    deleted(&program, arguments)
        .into_iter()
        .find_map(|target| places.iter().find_map(|directory| wipes(target, directory, subject)))
}

/// The words a program deletes whole trees by.
fn deleted<'w>(program: &str, arguments: &[&'w str]) -> Vec<&'w str> {
    let operands = || {
        let end = arguments.iter().position(|word| *word == "--");
        let (before, after) =
            arguments.split_at_checked(end.unwrap_or(arguments.len())).unwrap_or_default();
        let plain = before.iter().filter(|word| !word.starts_with('-'));
        plain.chain(after.iter().skip(1)).copied().collect::<Vec<&str>>()
    };
    let letter = |letter: char| {
        arguments
            .iter()
            .any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains(letter))
    };
    let long = |name: &str| {
        arguments.iter().any(|word| {
            let word = word.split('=').next().unwrap_or(word);
            word.len() > 3 && name.starts_with(word)
        })
    };
    match program {
        "rm" | "srm" | "grm"
            if letter('r') || letter('R') || long("--recursive") || long("--no-preserve-root") =>
        {
            operands()
        }
        "rimraf" | "trash" | "rmtree" | "del" | "rd" | "remove-item" => operands(),
        "mv" | "gmv" => {
            let mut sources = operands();
            sources.pop();
            sources
        }
        "rsync" if arguments.iter().any(|word| word.starts_with("--del")) => {
            operands().last().copied().into_iter().collect()
        }
        "find" if finds_everything(arguments) => arguments
            .iter()
            .skip_while(|word| matches!(**word, "-H" | "-L" | "-P"))
            .take_while(|word| !word.starts_with(['-', '(', '!']))
            .copied()
            .collect(),
        _ => Vec::new(),
    }
}

/// Whether `find` deletes without choosing: a deletion with no test but the type.
fn finds_everything(arguments: &[&str]) -> bool {
    let mut deletes = false;
    let mut words = arguments.iter().skip_while(|word| !word.starts_with('-')).peekable();
    let is_place = |word: &str| !word.starts_with(['-', '(', '!', ')']);
    while let Some(word) = words.next() {
        match *word {
            "-delete" => deletes = true,
            "-exec" | "-execdir" | "-ok" | "-okdir" => {
                let command: Vec<&&str> =
                    words.by_ref().take_while(|word| **word != ";" && **word != "+").collect();
                deletes |=
                    command.iter().any(|word| matches!(**word, "rm" | "/bin/rm" | "/usr/bin/rm"));
            }
            "-type" | "-mindepth" | "-maxdepth" => {
                words.next();
            }
            "-name" | "-iname" | "-path" if words.peek().is_some_and(|name| **name == "*") => {
                words.next();
            }
            "-H" | "-L" | "-P" => while words.next_if(|word| is_place(word)).is_some() {},
            "-depth" | "-xdev" | "-mount" | "-print" => {}
            _ => return false,
        }
    }
    deletes
}

/// `… | xargs rm -rf` deletes what other commands print: a root or home among their words counts.
fn fed(simple: &Simple, argv: &[&str], subject: &Subject<'_>) -> Option<Fall> {
    const MARK: &str = "/";
    let longer: Vec<&str> = argv.iter().copied().chain([MARK]).collect();
    let (first, arguments) = longer.split_first()?;
    if !simple.open_ended || deleted(&program(first), arguments).last() != Some(&MARK) {
        return None;
    }
    subject
        .reading
        .commands
        .iter()
        // `find / -name x -exec rm {} +` names the root as a place to look in, not as what to delete.
        .filter(|other| other.program() != "find")
        .flat_map(Simple::arguments)
        .flat_map(|word| word.text.split_ascii_whitespace())
        .filter(|word| word.starts_with(['/', '~', '$']))
        .find_map(|word| wipes(word, &subject.start, subject))
}

/// What is lost when everything a word names is deleted.
fn wipes(word: &str, directory: &PathNames, subject: &Subject<'_>) -> Option<Fall> {
    if is_windows_root(word) {
        return Some(Fall::WipeRoot);
    }
    let around = &subject.around;
    let path = around.resolve(word, directory);
    around.all_names(path).into_iter().find_map(|path| wiped(path, subject))
}

fn wiped(mut path: PathNames, subject: &Subject<'_>) -> Option<Fall> {
    const SYSTEM: [&str; 22] = [
        "bin",
        "boot",
        "dev",
        "etc",
        "home",
        "lib",
        "lib32",
        "lib64",
        "opt",
        "proc",
        "root",
        "sbin",
        "sys",
        "usr",
        "var",
        "System",
        "Library",
        "Users",
        "Applications",
        "private",
        "Volumes",
        "run",
    ];
    let around = &subject.around;
    // Everything in a directory is as good as the directory.
    while path.last().is_some_and(|name| is_everything(name)) {
        path.pop();
    }
    if around.holds_own(&path) && !path.is_empty() && !within(&around.home, &path) {
        return Some(Fall::BanisterFiles);
    }
    let names: Vec<&str> = path.iter().map(String::as_str).collect();
    match names.as_slice() {
        ["home" | "Users" | "users", user] if !user.starts_with('\0') => Some(Fall::WipeHome),
        ["root"] => Some(Fall::WipeHome),
        [] => Some(Fall::WipeRoot),
        [name] if SYSTEM.iter().any(|system| crate::wildcard::covers(name, system)) => {
            Some(Fall::WipeRoot)
        }
        _ if within(&around.home, &path) => Some(Fall::WipeHome),
        _ => None,
    }
}

fn is_everything(name: &str) -> bool {
    matches!(name, "*" | ".*" | "**" | "?*" | "*.*" | ".[!.]*" | ".??*" | "{*,.*}")
}

fn is_windows_root(word: &str) -> bool {
    let mut chars = word.chars();
    let drive = chars.next().is_some_and(|c| c.is_ascii_alphabetic()) && chars.next() == Some(':');
    let rest = chars.as_str().trim_end_matches('*');
    drive && (rest.is_empty() || rest.chars().all(|c| c == '\\' || c == '/'))
}

fn writes_disk(
    program: &str,
    arguments: &[&str],
    places: &[PathNames],
    subject: &Subject<'_>,
) -> bool {
    let disks = || arguments.iter().filter(|word| is_disk(word, places, subject));
    match program {
        "dd" | "dcfldd" | "dc3dd" => arguments
            .iter()
            .filter_map(|word| word.strip_prefix("of="))
            .any(|target| is_disk(target, places, subject)),
        "fdisk" | "sfdisk" | "gdisk" | "sgdisk" | "parted" | "cfdisk" => {
            let lists = arguments
                .iter()
                .any(|word| matches!(*word, "-l" | "--list" | "print" | "-p" | "--dump" | "-d"));
            !lists && disks().next().is_some()
        }
        "diskutil" => arguments.first().is_some_and(|verb| {
            let verb = verb.to_ascii_lowercase();
            verb.starts_with("erase")
                || verb.starts_with("partition")
                || verb.contains("zero")
                || verb.contains("secure")
        }),
        "nvme" => arguments.first().is_some_and(|verb| matches!(*verb, "format" | "sanitize")),
        "cp" | "install" | "mv" => {
            arguments.last().is_some_and(|target| is_disk(target, places, subject))
        }
        "wipefs" | "blkdiscard" | "shred" | "tee" | "mkswap" | "mke2fs" | "truncate"
        | "badblocks" | "hdparm" | "cryptsetup" | "pvcreate" | "zpool" => disks().next().is_some(),
        _ if program.starts_with("mkfs") || program.starts_with("newfs") => {
            disks().next().is_some()
        }
        _ => false,
    }
}

/// Whether a word names a disk, a partition or the machine's memory.
fn is_disk(word: &str, places: &[PathNames], subject: &Subject<'_>) -> bool {
    const KINDS: [&str; 19] = [
        "sd", "hd", "vd", "xvd", "nvme", "mmcblk", "disk", "rdisk", "dm-", "md", "loop", "nbd",
        "zd", "pmem", "mapper", "mem", "kmem", "port", "block",
    ];
    places.iter().any(|directory| {
        let path = subject.around.resolve(word, directory);
        subject.around.all_names(path).iter().any(|path| match path.as_slice() {
            [dev, name, ..] if dev == "dev" => {
                KINDS.iter().any(|kind| name.starts_with(kind)) || name.starts_with(['*', '?', '['])
            }
            _ => false,
        })
    })
}

/// Whether a word names one of Banister's own files, from any directory the text may be in.
fn touches_own(word: &str, places: &[PathNames], subject: &Subject<'_>) -> bool {
    pieces(word).any(|piece| {
        places
            .iter()
            .any(|directory| subject.around.is_own(&subject.around.resolve(piece, directory)))
    })
}

#[cfg(test)]
#[path = "floor_tests.rs"]
mod tests;
