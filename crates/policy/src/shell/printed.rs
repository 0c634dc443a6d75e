//! What a command prints, where its words and its input say so: the text that a shell behind a pipe runs.

use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, NO_PAD};
use base64::{Engine as _, alphabet};

use super::walk::{PrintedText, ShellReader};
use super::{CommandInput, Direction, Simple, Word};

/// Programs that turn a text nobody can read at a glance into another.
const DECODERS: [&str; 4] = ["base64", "gbase64", "rev", "xxd"];

/// Keeps what a command prints, where that is plain.
pub(super) fn print(simple: &Simple, name: &str, reader: &mut ShellReader<'_>) {
    let PrintedText::Text(so_far) = &reader.output else { return };
    if simple.redirects.iter().any(|file| file.direction == Direction::Write) {
        return;
    }
    let words = simple.arguments();
    let sure = !simple.open_ended
        && words.iter().all(|word| word.is_known() && !word.glob && !word.several);
    let printed = match name {
        "cd" | "true" | "false" | ":" | "test" | "[" | "[[" | "export" | "mkdir" | "sleep"
        | "exit" => Some(String::new()),
        "echo" if sure => echo(words),
        "printf" if sure => printf(words),
        "cat" | "tee" if words.is_empty() || words.iter().all(|word| word.text == "-") => {
            input_text(simple)
        }
        "base64" | "gbase64"
            if words.iter().all(|word| {
                matches!(word.text.as_str(), "-d" | "--decode" | "-D" | "-di" | "-i")
            }) && !words.is_empty() =>
        {
            input_text(simple).and_then(|text| base64(&text))
        }
        "rev" if words.is_empty() => input_text(simple).map(|text| {
            text.lines().map(|line| line.chars().rev().chain(['\n']).collect::<String>()).collect()
        }),
        "xxd"
            if matches!(
                words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().as_slice(),
                ["-r", "-p"] | ["-p", "-r"] | ["-rp" | "-pr"]
            ) =>
        {
            input_text(simple).and_then(|text| hexadecimal(&text))
        }
        _ => None,
    };
    reader.decoded |= printed.is_some() && DECODERS.contains(&name);
    reader.output = match printed {
        Some(printed) => PrintedText::Text(format!("{so_far}{printed}")),
        None => PrintedText::Unknown,
    };
}

fn input_text(simple: &Simple) -> Option<String> {
    match &simple.input {
        CommandInput::Text(text) if simple.redirects.is_empty() => Some(text.to_string()),
        _ => None,
    }
}

fn echo(words: &[Word]) -> Option<String> {
    let mut words = words.iter().map(|word| word.text.as_str()).peekable();
    let mut newline = true;
    while let Some(option) = words.next_if(|word| {
        word.len() > 1 && word.starts_with('-') && word.chars().skip(1).all(|c| "neE".contains(c))
    }) {
        newline &= !option.contains('n');
    }
    let text = words.collect::<Vec<&str>>().join(" ");
    // Shells disagree on backslashes here.
    (!text.contains('\\')).then(|| if newline { format!("{text}\n") } else { text })
}

fn printf(words: &[Word]) -> Option<String> {
    let (format, values) = words.split_first()?;
    let format = format.text.replace("\\n", "\n");
    if format.contains('\\') || format.starts_with('-') {
        return None;
    }
    let pieces: Vec<&str> = format.split("%s").collect();
    if pieces.iter().any(|piece| piece.contains('%')) {
        return None;
    }
    if pieces.len() == 1 {
        return values.is_empty().then_some(format.clone());
    }
    let mut text = String::new();
    for group in values.chunks(pieces.len() - 1) {
        for (at, piece) in pieces.iter().enumerate() {
            text.push_str(piece);
            if let Some(value) = group.get(at) {
                text.push_str(&value.text);
            }
        }
    }
    Some(text)
}

/// What the program decodes: it passes over white space and padding, and prints what came before a letter too many.
fn base64(text: &str) -> Option<String> {
    const LENIENT: GeneralPurposeConfig = NO_PAD.with_decode_allow_trailing_bits(true);
    let mut letters: Vec<u8> =
        text.bytes().filter(|c| !c.is_ascii_whitespace() && *c != b'=').collect();
    if letters.len() % 4 == 1 {
        letters.pop();
    }
    let bytes = GeneralPurpose::new(&alphabet::STANDARD, LENIENT).decode(letters).ok()?;
    String::from_utf8(bytes).ok()
}

fn hexadecimal(text: &str) -> Option<String> {
    let digits: Option<Vec<u32>> =
        text.chars().filter(|c| !c.is_whitespace()).map(|c| c.to_digit(16)).collect();
    let bytes: Option<Vec<u8>> = digits?
        .chunks(2)
        .map(|pair| match pair {
            [high, low] => u8::try_from(high * 16 + low).ok(),
            _ => None,
        })
        .collect();
    String::from_utf8(bytes?).ok()
}
