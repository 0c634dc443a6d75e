//! Flags, without knowing each program's grammar: every doubt goes to the stricter side.

use crate::shell::Word;

/// Whether a word reads as a flag.
pub(super) fn is_flag(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-')
}

/// Whether a flag may be among the words: spelled out, abbreviated, with a value attached or in a cluster of letters.
///
/// A flag is written `--long`, `-x`, or `-word` for programs with one dash. Words behind `--` count too.
pub(super) fn may_have(words: &[Word], flag: &str) -> bool {
    words.iter().map(|word| word.text.as_str()).filter(|word| is_flag(word)).any(|word| {
        if flag.starts_with("--") {
            let name = word.split('=').next().unwrap_or(word);
            name.len() > 2 && name.starts_with("--") && flag.starts_with(name)
        } else if let Some(letter) = single_letter(flag) {
            !word.starts_with("--") && word.chars().skip(1).any(|c| c == letter)
        } else {
            word.starts_with(flag)
                || word.strip_prefix('-').is_some_and(|word| word.starts_with(flag))
        }
    })
}

/// Whether all flags among the words are known ones. `-#` stands for a number.
pub(super) fn only(words: &[Word], known: &[String]) -> bool {
    let lists = |flag: &str| known.iter().any(|known| known == flag);
    words.iter().map(|word| word.text.as_str()).filter(|word| is_flag(word) && *word != "--").all(
        |word| {
            let name = word.split('=').next().unwrap_or(word);
            if lists(name) {
                return true;
            }
            !word.starts_with("--")
                && word.chars().skip(1).all(|c| {
                    if c.is_ascii_digit() {
                        lists("-#")
                    } else {
                        known.iter().any(|flag| single_letter(flag) == Some(c))
                    }
                })
        },
    )
}

fn single_letter(flag: &str) -> Option<char> {
    let mut letters = flag.strip_prefix('-')?.chars();
    let letter = letters.next().filter(|c| *c != '-' && *c != '#')?;
    letters.next().is_none().then_some(letter)
}

#[cfg(test)]
#[path = "flags_tests.rs"]
mod tests;
