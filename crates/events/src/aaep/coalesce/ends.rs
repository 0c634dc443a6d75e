//! Where sentences, words and characters end: questions to the segmenter, each about a few characters.

use std::sync::LazyLock;

use icu_segmenter::options::{SentenceBreakInvariantOptions, WordBreakInvariantOptions};
use icu_segmenter::{
    GraphemeClusterSegmenter, GraphemeClusterSegmenterBorrowed, SentenceSegmenter,
    SentenceSegmenterBorrowed, WordSegmenter, WordSegmenterBorrowed,
};

use super::HELD_CHARS;
use crate::text;

const CHARACTERS: GraphemeClusterSegmenterBorrowed<'static> = GraphemeClusterSegmenter::new();

static SENTENCES: LazyLock<SentenceSegmenterBorrowed<'static>> =
    LazyLock::new(|| SentenceSegmenter::new(SentenceBreakInvariantOptions::default()));

static WORDS: LazyLock<WordSegmenterBorrowed<'static>> =
    LazyLock::new(|| WordSegmenter::new_dictionary(WordBreakInvariantOptions::default()));

/// How many characters before a place say what it is.
const CONTEXT_CHARS: usize = 16;

/// What ends at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    Nothing,
    Word,
    Sentence,
    Paragraph,
}

/// White space at which text may be cut.
pub(super) fn is_space(character: char) -> bool {
    character.is_whitespace() && !matches!(character, '\u{a0}' | '\u{2007}' | '\u{202f}')
}

pub(super) fn is_break(character: char) -> bool {
    matches!(character, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Full stops: what follows says whether they end a sentence.
pub(super) fn is_stop(character: char) -> bool {
    matches!(character, '.' | '\u{2024}' | '\u{fe52}' | '\u{ff0e}')
}

/// Whether a character is a space or so common a letter, accent or sign that it certainly ends no sentence and no line:
/// told without a look into Unicode's tables.
pub(super) fn is_plain(character: char) -> bool {
    match character {
        '.' | '!' | '?' => false,
        ' '..='~'
        | '\u{c0}'..='\u{24f}'
        | '\u{300}'..='\u{36f}'
        | '\u{391}'..='\u{481}'
        | '\u{620}'..='\u{64a}'
        | '\u{1e00}'..='\u{1eff}'
        | '\u{2010}'..='\u{201f}'
        | '\u{3001}'
        | '\u{3041}'..='\u{3096}'
        | '\u{30a1}'..='\u{30fa}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{1f300}'..='\u{1faff}' => true,
        _ => false,
    }
}

/// Whether a character can end a sentence.
pub(super) fn is_terminator(character: char) -> bool {
    if character.is_ascii() || is_plain(character) {
        return matches!(character, '.' | '!' | '?');
    }
    if character.is_alphanumeric() || character.is_whitespace() {
        return false;
    }
    let probe: String = ['a', character, ' ', 'A'].into_iter().collect();
    SENTENCES.segment_str(&probe).any(|place| place + 1 == probe.len())
}

/// Whether a character tells whether the full stop before it ended a sentence: UAX #29 passes over digits and signs,
/// as in `Fig. 3 shows`.
pub(super) fn decides(character: char) -> bool {
    character.is_alphabetic() || is_break(character) || is_terminator(character)
}

/// Whether the sentence with this terminator ends at this place. `next` follows the text, and says what has to be known.
pub(super) fn sentence(text: &str, terminator: usize, place: usize, next: char) -> bool {
    let before = text.get(..terminator).unwrap_or_default();
    if text.get(terminator..).is_some_and(|end| end.starts_with('.')) && is_abbreviated(before) {
        return false;
    }
    if place == text.len() && is_sure(text.get(terminator..).unwrap_or_default(), next) {
        return true;
    }
    let begin = before.char_indices().rev().nth(CONTEXT_CHARS).map_or(0, |(at, _)| at);
    let mut around = text.get(begin..).unwrap_or_default().to_owned();
    around.push(next);
    SENTENCES.segment_str(&around).any(|end| end + begin == place)
}

/// Whether the rules leave no doubt that a sentence ends with this mark and the spaces behind it, whatever was before: a
/// letter follows, and after a full stop a capital.
fn is_sure(end: &str, next: char) -> bool {
    let mut rest = end.chars();
    let mark = rest.next();
    let spaces = rest.as_str();
    let is_letter = is_plain(next) && next.is_alphabetic() && !joins(next);
    is_letter
        && spaces.bytes().all(|byte| byte == b' ')
        && match mark {
            Some('.') => !spaces.is_empty() && next.is_uppercase(),
            Some('!' | '?' | '。' | '！' | '？') => true,
            _ => false,
        }
}

/// Whether a full stop behind this text belongs to an initial or to a number that counts items.
fn is_abbreviated(before: &str) -> bool {
    let item = before.trim_start_matches(|c: char| c.is_whitespace() || "#*->(".contains(c));
    if !item.is_empty() && item.bytes().all(|byte| byte.is_ascii_digit()) {
        return true;
    }
    let mut letters = before.chars().rev();
    letters.next().is_some_and(char::is_alphabetic)
        && !letters.next().is_some_and(|letter| letter.is_alphanumeric() || text::extends(letter))
}

/// What begins with something: it is not left behind at the end of a piece.
pub(super) fn opens(character: char) -> bool {
    matches!(
        character,
        '(' | '['
            | '{'
            | '「'
            | '『'
            | '（'
            | '【'
            | '〈'
            | '《'
            | '〔'
            | '［'
            | '｛'
            | '｢'
            | '“'
            | '‘'
            | '«'
            | '¿'
            | '¡'
    )
}

/// Letters of scripts that put no spaces between words.
pub(super) fn is_unspaced(character: char) -> bool {
    matches!(character,
        '\u{e00}'..='\u{eff}'
        | '\u{1000}'..='\u{109f}'
        | '\u{1780}'..='\u{17ff}'
        | '\u{3040}'..='\u{30ff}'
        | '\u{31f0}'..='\u{31ff}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{ff66}'..='\u{ff9f}'
        | '\u{20000}'..='\u{3ffff}')
}

/// Punctuation that needs no space behind it.
pub(super) fn is_wide(character: char) -> bool {
    matches!(character, '\u{3000}'..='\u{303f}' | '\u{ff00}'..='\u{ff65}')
}

/// Where words of a run without spaces end, the run's end aside.
pub(super) fn words(text: &str, begin: usize) -> Vec<usize> {
    let run = text.get(begin..).unwrap_or_default();
    let mut characters = CHARACTERS.segment_str(run).peekable();
    WORDS
        .segment_str(run)
        .filter(|&place| place > 0 && place < run.len())
        .filter(|&place| {
            while characters.next_if(|&end| end < place).is_some() {}
            characters.peek() == Some(&place)
        })
        .map(|place| begin + place)
        .collect()
}

/// Whether `next` begins a new character behind this text.
pub(super) fn apart(text: &str, next: char) -> bool {
    if text.is_empty() || next.is_ascii_graphic() {
        return true;
    }
    if joins(next) {
        return false;
    }
    // Nothing joins two common letters, or a letter and the mark before it.
    let is_common = |last: char| is_plain(last) || matches!(last, ' '..='~' | '。' | '！' | '？');
    if is_plain(next) && text.ends_with(is_common) {
        return true;
    }
    let begin = text.char_indices().rev().nth(CONTEXT_CHARS).map_or(0, |(at, _)| at);
    let mut around = text.get(begin..).unwrap_or_default().to_owned();
    let place = around.len();
    around.push(next);
    CHARACTERS.segment_str(&around).any(|end| end == place)
}

/// What counts as a part of the character before it, whatever that is.
fn joins(character: char) -> bool {
    text::extends(character) || matches!(character, '\u{1f3fb}'..='\u{1f3ff}')
}

/// How much of a text is in whole characters, whatever follows.
pub(super) fn settled(text: &str) -> usize {
    // A mark joins everything but the end of a line.
    if text.ends_with('\n') {
        return text.len();
    }
    let last = CHARACTERS.segment_str(text).filter(|&end| end < text.len()).last().unwrap_or(0);
    // A character that does not end is none.
    if text.len() - last > 256 { text.len() } else { last }
}

/// The best place to cut a text in which nothing ends as it should: behind the last sentence, word or character.
pub(super) fn best(text: &str) -> usize {
    let half = text.char_indices().nth(HELD_CHARS / 2).map_or(0, |(at, _)| at);
    let tail = text.get(half..).unwrap_or_default();
    let begins_word = |&place: &usize| {
        let (before, after) = text.split_at_checked(place).unwrap_or((text, ""));
        before.ends_with(is_space)
            && after.chars().next().is_some_and(|next| !is_space(next) && apart(before, next))
    };
    let inner = |place: &usize| *place > half && *place < text.len();
    let sentence = || SENTENCES.segment_str(tail).map(|end| half + end).filter(inner);
    let word = || tail.char_indices().map(|(at, _)| half + at).filter(inner);
    let character = || CHARACTERS.segment_str(text).filter(inner);
    sentence()
        .filter(begins_word)
        .last()
        .or_else(|| word().rev().find(begins_word))
        .or_else(|| character().last())
        .unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_plain_is_no_space_and_ends_nothing() {
        let plain = ('\0'..=char::MAX).filter(|it| is_plain(*it) && *it != ' ');
        let mut count = 0;
        for character in plain {
            let probe: String = ['a', character, ' ', 'A'].into_iter().collect();
            let ends = SENTENCES.segment_str(&probe).any(|place| place + 1 == probe.len());
            assert!(!ends && !is_space(character) && !is_break(character), "{character:?}");
            count += 1;
        }
        assert!(count > 40_000);
    }
}
