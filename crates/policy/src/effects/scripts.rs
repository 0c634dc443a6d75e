//! Small languages inside words: `find`, `test`, `awk`, `sed`, SQL.
//!
//! Each is read just far enough to say that it is harmless. What is not plainly so has the effect unknown.

use super::{Effect, EffectKind, FoundEffects};
use crate::shell::Simple;

/// Options of `find` without a value that change nothing.
const PLAIN: [&str; 35] = [
    "-H",
    "-L",
    "-P",
    "-not",
    "-o",
    "-or",
    "-a",
    "-and",
    "-print",
    "-print0",
    "-empty",
    "-prune",
    "-ls",
    "-depth",
    "-xdev",
    "-mount",
    "-true",
    "-false",
    "-readable",
    "-writable",
    "-executable",
    "-daystart",
    "-follow",
    "-nouser",
    "-nogroup",
    "-quit",
    "-d",
    "-E",
    "-x",
    "-X",
    "-s",
    "-noleaf",
    "-O1",
    "-O2",
    "-O3",
];
/// Options of `find` with a value that change nothing.
const VALUED: [&str; 34] = [
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-iwholename",
    "-type",
    "-xtype",
    "-maxdepth",
    "-mindepth",
    "-size",
    "-mtime",
    "-mmin",
    "-atime",
    "-amin",
    "-ctime",
    "-cmin",
    "-perm",
    "-user",
    "-group",
    "-uid",
    "-gid",
    "-regex",
    "-iregex",
    "-regextype",
    "-links",
    "-inum",
    "-fstype",
    "-printf",
    "-lname",
    "-ilname",
    "-used",
    "-flags",
    "-context",
];
/// Tests that look at a file.
const FILES: [&str; 20] = [
    "-f", "-d", "-e", "-s", "-r", "-w", "-x", "-L", "-h", "-b", "-c", "-p", "-S", "-g", "-u", "-k",
    "-O", "-G", "-N", "-a",
];

/// `find`: where it looks, what it deletes and writes. What it runs is a command of its own.
pub(super) fn find(simple: &Simple, found: &mut FoundEffects<'_>) {
    let mut places: Vec<String> = Vec::new();
    let mut deletes = false;
    let mut started = false;
    let mut words = simple.arguments().iter();
    while let Some(word) = words.next() {
        let text = word.text.as_str();
        if matches!(text, "(" | ")" | "!" | ",") {
            started = true;
            continue;
        }
        if !text.starts_with('-') && !started {
            if text.starts_with('\0') {
                found.unknown("a word that is not known may be an option");
            }
            places.push(text.to_owned());
            continue;
        }
        if !text.starts_with('-') || text.contains('\0') {
            found.unknown("a word of `find` is not known");
            continue;
        }
        started |= !matches!(text, "-H" | "-L" | "-P");
        match text {
            "-delete" => deletes = true,
            "-exec" | "-execdir" | "-ok" | "-okdir" => {
                let command: Vec<&str> = words
                    .by_ref()
                    .map(|word| word.text.as_str())
                    .take_while(|word| *word != ";" && *word != "+")
                    .collect();
                if command.is_empty() {
                    found.unknown("`find` runs nothing");
                }
            }
            "-fprint" | "-fprint0" | "-fls" | "-fprintf" => {
                if let Some(file) = words.next() {
                    found.path(EffectKind::Write, file);
                }
                if text == "-fprintf" {
                    words.next();
                }
            }
            "-newer" | "-anewer" | "-cnewer" | "-samefile" | "-files0-from" => {
                if let Some(file) = words.next() {
                    found.path(EffectKind::Read, file);
                }
            }
            _ if text.starts_with("-newer") => drop(words.next()),
            _ if PLAIN.contains(&text) => {}
            _ if VALUED.contains(&text) => drop(words.next()),
            _ => found.unknown("an option of `find` is not known"),
        }
    }
    if places.is_empty() {
        places.push(".".to_owned());
    }
    for place in places {
        found.path_text(EffectKind::Read, &place);
        if deletes {
            found.path_text(EffectKind::Delete, &place);
        }
    }
}

/// `test` looks at files; some of its operators run what a name holds.
pub(super) fn test(simple: &Simple, found: &mut FoundEffects<'_>) {
    let double = simple.argv.first().is_some_and(|word| word.text == "[[");
    let words: Vec<&str> = simple.arguments().iter().map(|word| word.text.as_str()).collect();
    let arithmetic =
        words.iter().any(|word| matches!(*word, "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge"));
    if words.iter().any(|word| matches!(*word, "-v" | "-R" | "-o")) && !double
        || words.iter().any(|word| matches!(*word, "-v" | "-R"))
    {
        return found.unknown("a test can run what a name holds");
    }
    if double && arithmetic && words.iter().any(|word| word.contains('[') && word.len() > 1) {
        return found.unknown("a test can run what a value holds");
    }
    if simple.open_ended || (!double && simple.arguments().iter().any(|word| word.several)) {
        return found.unknown("a word that is not known may be an operator");
    }
    let mut pairs = words.iter().zip(words.iter().skip(1));
    for (operator, file) in pairs.by_ref() {
        if FILES.contains(operator) && !matches!(*file, "]" | "]]") {
            found.path_text(EffectKind::Read, file);
        }
        if matches!(*file, "-nt" | "-ot" | "-ef") {
            found.path_text(EffectKind::Read, operator);
        }
        if matches!(*operator, "-nt" | "-ot" | "-ef") {
            found.path_text(EffectKind::Read, file);
        }
    }
}

/// A program of `awk` that only prints.
pub(super) fn awk(text: &str, found: &mut FoundEffects<'_>) {
    let runs = ["system", "getline", "|", "@", "\0", "ENVIRON", "printf >", "close", "/inet"];
    if runs.iter().any(|mark| text.contains(mark)) && !only_in_pattern(text) {
        found.push(Effect::because(EffectKind::Execute, "the program of `awk` can run others"));
    }
    // `>` writes a file unless it compares.
    let mut strings = text.split('"');
    let code: String = strings.by_ref().step_by(2).collect::<Vec<_>>().join("\"\"");
    let prints_to =
        code.split([';', '{', '}', '\n']).any(|part| part.contains("print") && part.contains('>'));
    if prints_to {
        found.push(Effect::because(EffectKind::Write, "the program of `awk` writes a file"));
    }
}

/// Whether the bars of a program are all those of `||`.
fn only_in_pattern(text: &str) -> bool {
    let rest = text.replace("||", "");
    !["system", "getline", "|", "@", "\0", "ENVIRON", "close", "/inet"]
        .iter()
        .any(|mark| rest.contains(mark))
}

/// A script of `sed` that only prints, deletes and replaces.
pub(super) fn sed(text: &str, found: &mut FoundEffects<'_>) {
    if text.contains('\0') {
        return found.unknown("the script of `sed` is not known");
    }
    let mut chars = text.chars().peekable();
    loop {
        // Separators, addresses, commands.
        while chars.next_if(|c| c.is_whitespace() || matches!(c, ';' | '}' | '{')).is_some() {}
        let Some(c) = chars.next() else { return };
        match c {
            '/' | '\\' => {
                let mark = if c == '\\' { chars.next().unwrap_or('/') } else { '/' };
                if !skip(&mut chars, mark) {
                    break;
                }
                while chars.next_if(|c| matches!(c, 'I' | 'M')).is_some() {}
            }
            '0'..='9'
            | '$'
            | ','
            | '!'
            | '~'
            | '+'
            | 'p'
            | 'd'
            | 'q'
            | 'n'
            | 'N'
            | 'g'
            | 'G'
            | 'h'
            | 'H'
            | 'x'
            | 'D'
            | 'P'
            | '='
            | 'l'
            | 'Q' => {}
            's' | 'y' => {
                let Some(mark) = chars.next() else { break };
                if !skip(&mut chars, mark) || !skip(&mut chars, mark) {
                    break;
                }
                while chars
                    .next_if(|c| {
                        matches!(c, 'g' | 'p' | 'i' | 'I' | 'm' | 'M') || c.is_ascii_digit()
                    })
                    .is_some()
                {}
                if chars.peek().is_some_and(|c| !c.is_whitespace() && !matches!(c, ';' | '}')) {
                    break;
                }
            }
            'a' | 'i' | 'c' => {
                // Text up to the end of the line.
                while chars.next_if(|c| *c != '\n').is_some() {}
            }
            '#' | ':' | 'b' | 't' | 'T' => {
                while chars.next_if(|c| !matches!(c, '\n' | ';' | '}')).is_some() {}
            }
            _ => break,
        }
    }
    found.push(Effect::because(
        EffectKind::Execute,
        "the script of `sed` can write files or run commands",
    ));
}

/// Skips to behind the next mark that is not escaped.
fn skip(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, mark: char) -> bool {
    let mut in_class = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            '[' if mark != '[' => in_class = true,
            ']' => in_class = false,
            c if c == mark && !in_class => return true,
            // A mark inside brackets ends the part in some versions and not in others.
            c if c == mark => return false,
            _ => {}
        }
    }
    false
}

/// A statement that only asks. Everything else works on the database.
pub(super) fn sql(text: &str, found: &mut FoundEffects<'_>) {
    let lower = text.trim_start().to_ascii_lowercase();
    let asks = [
        "select ",
        "show ",
        "explain ",
        "describe ",
        "\\d",
        "\\l",
        ".tables",
        ".schema",
        ".mode",
        ".headers",
    ];
    let acts = [
        ";",
        "into ",
        "outfile",
        "copy ",
        "program",
        "\\!",
        "load_file",
        "pg_read",
        "pg_write",
        "lo_",
        "dblink",
        "\0",
        "delete",
        "update ",
        "drop",
        "insert",
        "alter",
        "create",
        "truncate",
        "grant",
        "call ",
        "exec",
        "pragma",
        "attach",
        "readfile",
        "writefile",
        "load_extension",
        "edit(",
        "nextval",
        "setval",
        "pg_terminate",
        "pg_sleep",
    ];
    let body = lower.trim_end().strip_suffix(';').unwrap_or(&lower);
    if !asks.iter().any(|start| body.starts_with(start))
        || acts.iter().any(|act| body.contains(act))
    {
        found.push(Effect::of(EffectKind::Database));
    }
}
