//! The floor's search in text that could not be read.
//!
//! Quotes are dropped, everything that separates becomes a separator, and each program the floor knows is judged by the
//! words behind it. That finds too much rather than too little, which is why only opaque text is searched.

use super::{Fall, words};
use crate::shell::program;
use crate::subject::Subject;

/// Programs whose words are judged wherever they stand.
const PROGRAMS: [&str; 37] = [
    "rm",
    "srm",
    "grm",
    "rimraf",
    "rmtree",
    "remove-item",
    "mv",
    "rsync",
    "find",
    "dd",
    "dcfldd",
    "dc3dd",
    "fdisk",
    "sfdisk",
    "gdisk",
    "sgdisk",
    "parted",
    "cfdisk",
    "diskutil",
    "nvme",
    "cp",
    "install",
    "wipefs",
    "blkdiscard",
    "shred",
    "tee",
    "mkswap",
    "mke2fs",
    "truncate",
    "badblocks",
    "hdparm",
    "cryptsetup",
    "pvcreate",
    "zpool",
    "del",
    "rd",
    "trash",
];

/// Searches a text for what the floor denies.
pub(super) fn search(text: &str, subject: &Subject<'_>) -> Option<Fall> {
    if is_fork_bomb(text) {
        return Some(Fall::ForkBomb);
    }
    let plain = unquote(text);
    let braces_as_words: String =
        plain.chars().map(|c| if matches!(c, '{' | '}' | ',') { ' ' } else { c }).collect();
    clauses(&plain, subject)
        .or_else(|| clauses(&braces_as_words, subject))
        .or_else(|| mentions_own(text, subject).then_some(Fall::BanisterFiles))
}

/// Drops quotes and backslashes, and spells variables that are known out.
fn unquote(text: &str) -> String {
    text.replace("\\\n", " ")
        .replace(['\'', '"', '\\'], "")
        .replace("${HOME}", "$HOME")
        .replace("${IFS}", " ")
        .replace("$IFS", " ")
}

fn clauses(plain: &str, subject: &Subject<'_>) -> Option<Fall> {
    for clause in plain.split([';', '|', '&', '\n', '\r', '(', ')', '`', '<', '{', '}']) {
        let spaced = clause.replace('>', " > ");
        let mut tokens = Vec::new();
        let mut target_follows = false;
        for token in spaced.split_whitespace() {
            if token == ">" {
                target_follows = true;
            } else if !std::mem::take(&mut target_follows) {
                tokens.push(token);
            } else if super::is_disk(token, &subject.directories, subject) {
                return Some(Fall::RawDisk);
            }
        }
        // The words behind a later `rm` are behind the first one too.
        let mut judged = Vec::new();
        for (at, token) in tokens.iter().enumerate() {
            let name = program(token);
            let known = PROGRAMS.contains(&name.as_str())
                || name.starts_with("mkfs")
                || name.starts_with("newfs");
            if !known || judged.contains(&name) || judged.len() > PROGRAMS.len() {
                continue;
            }
            judged.push(name);
            if let Some(fall) =
                tokens.get(at..).and_then(|argv| words(argv, &subject.directories, subject))
            {
                return Some(fall);
            }
        }
    }
    None
}

/// Writes `function f{` as `f(){`.
fn with_parentheses(squeezed: &str) -> String {
    let mut text = String::new();
    let mut parts = squeezed.split("function");
    text.push_str(parts.next().unwrap_or_default());
    for part in parts {
        match part.split_once('{') {
            Some((name, body)) if !name.contains('(') => {
                for part in ["function", name, "(){", body] {
                    text.push_str(part);
                }
            }
            _ => {
                text.push_str("function");
                text.push_str(part);
            }
        }
    }
    text
}

/// A function whose body pipes it into itself, and one-line relatives in other languages.
fn is_fork_bomb(text: &str) -> bool {
    let squeezed: String = text.chars().filter(|c| !c.is_whitespace() && *c != '\\').collect();
    if squeezed.contains("forkwhilefork")
        || squeezed.contains("$0|$0&")
        || squeezed.contains("$0&$0")
        || squeezed.contains("%0|%0")
    {
        return true;
    }
    let squeezed = with_parentheses(&squeezed);
    squeezed.match_indices("(){").take(256).any(|(at, opening)| {
        let before = squeezed
            .get(squeezed.floor_char_boundary(at.saturating_sub(256))..at)
            .unwrap_or_default();
        let body = squeezed.get(at + opening.len()..).unwrap_or_default();
        let body = body.get(..body.floor_char_boundary(1_024)).unwrap_or_default();
        let start = before.rfind([';', '&', '|', '\'', '"', '(', '{', '}']).map_or(0, |at| at + 1);
        let name = before.get(start..).unwrap_or_default();
        let name = name.strip_prefix("function").unwrap_or(name);
        let body = body.get(..body.find('}').unwrap_or(body.len())).unwrap_or_default();
        !name.is_empty()
            && name.len() < 256
            && (body.contains(&format!("{name}|{name}"))
                || body.contains(&format!("{name}&{name}")))
    })
}

/// Whether a text spells the path of one of Banister's own files, whole or by its last two names.
pub(super) fn mentions_own(text: &str, subject: &Subject<'_>) -> bool {
    let plain = unquote(text).to_ascii_lowercase();
    subject.around.own.iter().any(|own| {
        let tail = own.len().saturating_sub(2);
        own.get(tail..).is_some_and(|names| {
            !names.is_empty() && plain.contains(&names.join("/").to_ascii_lowercase())
        })
    })
}
