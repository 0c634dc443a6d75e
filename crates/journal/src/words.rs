//! Text as the index sees it, and queries as the index takes them.
//!
//! The index splits text into words where it is not letters or digits. Languages that write without spaces would be one
//! word per sentence; so a zero-width space is put around each character of theirs. A word of such a language in a query
//! becomes the same characters in the same order, and is found inside any text. Vowel points of Arabic and Hebrew, and
//! the Arabic stretch mark, are left out on both sides, since most people write without them.
//!
//! That is one index with one rule. A trigram index would be several times as large, and would not find words of two
//! characters, of which Chinese and Japanese are full.

use crate::Error;

/// Where one character of text ends and the next begins, for the index. Nobody sees it.
const BREAK: char = '\u{200b}';

/// Marks around what was found, in what the index gives back. No text that is indexed has them.
pub(crate) const OPEN: char = '\u{2}';
pub(crate) const CLOSE: char = '\u{3}';

/// How much of one text is indexed, in bytes.
pub(crate) const TEXT_BYTES: usize = 256 * 1024;

/// How long a query may be, in bytes.
const QUERY_BYTES: usize = 4096;

/// How many words and phrases a query may have.
const TERMS: usize = 64;

/// A text, ready for the index.
pub(crate) fn segmented(text: &str) -> String {
    let end = text.floor_char_boundary(TEXT_BYTES);
    let (text, _) = text.split_at_checked(end).unwrap_or_default();
    let mut made = String::with_capacity(text.len() + text.len() / 8);
    let mut broken = true;
    for c in text.chars() {
        match c {
            BREAK | OPEN | CLOSE | '\0' => made.push(' '),
            _ if is_point(c) => {}
            _ if is_unspaced(c) => {
                if !broken {
                    made.push(BREAK);
                }
                made.push(c);
                made.push(BREAK);
                broken = true;
                continue;
            }
            _ => made.push(c),
        }
        broken = false;
    }
    made
}

/// What the index gave back, as people read it.
pub(crate) fn readable(text: &str) -> String {
    text.replace(BREAK, "")
}

/// Each word and each "quoted phrase" has to occur; a word that ends in `*` stands for all that begin so. Nothing else
/// means anything, and no text is an error but one that is too long. `None` if there is nothing to look for.
pub(crate) fn expression(text: &str) -> Result<Option<String>, Error> {
    if text.len() > QUERY_BYTES {
        let message = format!("it has {} bytes, the limit is {QUERY_BYTES}", text.len());
        return Err(Error::Query { message });
    }
    let mut terms = Vec::new();
    // Every other piece stands between quotation marks; a last one that is not closed ends with the text.
    for (index, piece) in text.split('"').enumerate() {
        if index % 2 == 1 {
            terms.extend(term(piece));
        } else {
            terms.extend(piece.split_whitespace().filter_map(term));
        }
    }
    if terms.len() > TERMS {
        let message = format!("it has {} words, the limit is {TERMS}", terms.len());
        return Err(Error::Query { message });
    }
    Ok((!terms.is_empty()).then(|| terms.join(" ")))
}

/// A query in the index's own language.
pub(crate) fn raw(text: &str) -> Result<Option<String>, Error> {
    if text.len() > QUERY_BYTES {
        let message = format!("it has {} bytes, the limit is {QUERY_BYTES}", text.len());
        return Err(Error::Query { message });
    }
    Ok(Some(segmented(text)).filter(|text| !text.trim().is_empty()))
}

fn term(text: &str) -> Option<String> {
    // What has no letter and no digit is no word: it would be looked for and never found.
    let text = text.trim();
    let (text, rest) = match text.strip_suffix('*') {
        Some(begin) => (begin, " *"),
        None => (text, ""),
    };
    let has_word = text.chars().any(char::is_alphanumeric);
    has_word.then(|| format!("\"{}\"{rest}", segmented(text)))
}

/// Letters of languages that are written without spaces, and of Korean, whose words have their endings attached.
fn is_unspaced(c: char) -> bool {
    matches!(u32::from(c),
        0x0e01..=0x0e2e | 0x0e30 | 0x0e32 | 0x0e33 | 0x0e40..=0x0e46 // Thai
        | 0x0e81..=0x0eae | 0x0ec0..=0x0ec6 | 0x0edc..=0x0edf // Lao
        | 0x1000..=0x102a | 0x1780..=0x17b3 // Burmese, Khmer
        | 0x3005..=0x3007 | 0x3031..=0x3035 // ideographic marks
        | 0x3041..=0x3096 | 0x309d..=0x309f | 0x30a1..=0x30fa | 0x30fc..=0x30ff | 0x31f0..=0x31ff // Kana
        | 0x3105..=0x312f | 0x31a0..=0x31bf // Bopomofo
        | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xf900..=0xfaff | 0x20000..=0x3ffff // Han
        | 0xac00..=0xd7a3 // Hangul
        | 0xff66..=0xff9f) // half-width Kana
}

/// Vowel points of Arabic and Hebrew, and the Arabic stretch mark.
fn is_point(c: char) -> bool {
    matches!(u32::from(c), 0x064b..=0x065f | 0x0670 | 0x0640 | 0x0591..=0x05bd | 0x05bf | 0x05c1..=0x05c2 | 0x05c4..=0x05c5 | 0x05c7)
}

#[cfg(test)]
#[path = "words_tests.rs"]
mod tests;
