//! Text on its way to a person: nothing hidden in it, no credential in it, no longer than it may be.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

mod marks;
mod nearest;
mod redactor;
mod tokens;

pub use nearest::nearest;
pub use redactor::Redactor;
use tokens::CLASSES;

/// What stands where a credential was.
const REDACTED: &str = "[redacted]";

/// Shows what would not be seen: control, bidi and zero-width characters become `⟨U+202E⟩`. Newlines and tabs stay.
///
/// ```
/// use banister_events::text::visible;
/// assert_eq!(visible("ls\u{202e}-la"), "ls⟨U+202E⟩-la");
/// assert_eq!(visible("two\nlines"), "two\nlines");
/// ```
pub fn visible(text: &str) -> Cow<'_, str> {
    show(text, is_hidden)
}

fn show(text: &str, hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !may_hide(text) || !text.chars().any(&hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if hidden(character) {
            // Writing to a String cannot fail.
            write!(shown, "⟨U+{:04X}⟩", u32::from(character)).ok();
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

/// Whether there are bytes in a text that a hidden character may begin with. Most texts have none, in any script, and
/// bytes are told apart quicker than characters.
fn may_hide(text: &str) -> bool {
    let mut before = 0;
    text.bytes().any(|byte| {
        let begins = match byte {
            b' '..=b'~' | b'\n' | b'\t' => false,
            0..0x20 | 0x7f => true,
            _ => matches!(
                (before, byte),
                (0xc2, 0x80..=0x9f | 0xad)
                    | (0xcd, 0x8f)
                    | (0xd8, 0x9c)
                    | (0xe1, 0x85 | 0x9e | 0xa0)
                    | (0xe2, 0x80 | 0x81)
                    | (0xe3, 0x85)
                    | (0xef, 0xb8 | 0xbb | 0xbe | 0xbf)
                    | (0xf0, 0x9d)
                    | (0xf3, 0xa0)
            ),
        };
        before = byte;
        begins
    })
}

/// [`visible`], for prose: what joins letters and picks the shape of emoji stays, because words need it.
///
/// ```
/// use banister_events::text::prose;
/// assert_eq!(prose("می\u{200c}خواهم 👩\u{200d}💻"), "می\u{200c}خواهم 👩\u{200d}💻");
/// assert_eq!(prose("safe\u{202e}evil"), "safe⟨U+202E⟩evil");
/// ```
pub fn prose(text: &str) -> Cow<'_, str> {
    show(text, |c| is_hidden(c) && !matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}'))
}

/// [`visible`], on one line: newlines and tabs are shown as escapes too.
pub fn one_line(text: &str) -> String {
    visible(text).replace('\n', "\\n").replace('\t', "\\t")
}

fn is_hidden(character: char) -> bool {
    matches!(character,
        '\u{0}'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{7f}'..='\u{9f}'        // controls, escape sequences
        | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Takes credentials out. What was removed leaves `[redacted]`.
///
/// This is the net under fields that people read; the record itself keeps the bytes as its capture level lets.
///
/// ```
/// use banister_events::text::redact;
/// assert_eq!(redact("curl -H 'Authorization: Bearer abc.def-123'"), "curl -H '[redacted]'");
/// ```
pub fn redact(text: &str) -> Cow<'_, str> {
    if !is_suspect(text) {
        return Cow::Borrowed(text);
    }
    match &*CREDENTIALS {
        Some(pattern) => pattern.replace_all(text, REDACTED),
        // A pattern that does not compile must not let credentials through.
        None => Cow::Borrowed(REDACTED),
    }
}

// Word boundaries are those of ASCII: what the patterns begin with is ASCII, and Unicode's would be ten times as slow.
static CREDENTIALS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let tokens: Vec<&str> = CLASSES.iter().map(|class| class.whole).collect();
    let words = concat!(
        r"(?i)(?s)-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|\z)",
        r"|(?-u:\b)(?:",
        r"(?:gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,}|glpat-[A-Za-z0-9_-]{16,})",
        r"|sk-[A-Za-z0-9_-]{6,}",
        r"|(?:AKIA|ASIA)[A-Z0-9]{12,}",
        r"|xox[abposr]-[A-Za-z0-9-]{10,}",
        r"|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",
        r"|authorization:\s*(?:bearer|basic|token)?\s*[^\s'\x22]+",
        r"|bearer\s+[A-Za-z0-9._~+/=-]+",
        r"|x-api-key:?\s*[^\s'\x22]+",
        // The name may stand in quotes, as in JSON, and those may be escaped, as in JSON within JSON.
        r"|[A-Za-z0-9_]*(?:password|passwd|secret|api_?key|private_key|access_token|auth_token)[A-Za-z0-9_]*(?:\\?['\x22])?\s*[=:]\s*",
        r"(?:'[^']*(?:'|\z)|\\?\x22[^\x22]*(?:\x22|\z)|[^\s&;'\x22]+)",
        r"|[a-z][a-z0-9+.-]*://[^\s/:@]+:[^\s/@]+@",
        r"|ssh-(?:rsa|ed25519) [A-Za-z0-9+/=]{20,}",
    );
    Regex::new(&format!("{words}|(?-i:{}))", tokens.join("|"))).ok()
});

/// What every credential has in it. Without any of it a text needs no closer look, and hardly any text has.
static SUSPECT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let traces: Vec<&str> = CLASSES.iter().map(|class| class.trace).collect();
    let words = concat!(
        r"(?i)-----BEGIN|gh[pousr]_|github_pat_|glpat-|sk-|AKIA|ASIA|xox|eyJ|authorization|bearer|x-api-key",
        r"|password|passwd|secret|api_?key|private_key|access_token|auth_token|://|ssh-",
    );
    Regex::new(&format!("{words}|(?-i:{})", traces.join("|"))).ok()
});

/// Whether there may be a credential in a text, or the beginning of one that has its first word.
fn is_suspect(text: &str) -> bool {
    marks::any(text) && SUSPECT.as_ref().is_none_or(|pattern| pattern.is_match(text))
}

/// Whether a character is only a part of the one before it, in any script.
pub(crate) fn extends(letter: char) -> bool {
    matches!(letter,
        '\u{300}'..='\u{36F}'
        | '\u{1AB0}'..='\u{1AFF}'
        | '\u{1DC0}'..='\u{1DFF}'
        | '\u{200D}'
        | '\u{20D0}'..='\u{20FF}'
        | '\u{FE00}'..='\u{FE0F}'
        | '\u{FE20}'..='\u{FE2F}')
}

/// Whether a value under this key is a credential.
pub(crate) fn names_credential(key: &str) -> bool {
    is_suspect(key) && redact(&format!("{key}: x")).contains(REDACTED)
}

/// JSON without credentials: [`redact`] for its texts, and nothing of what stands under a key that names one.
///
/// ```
/// use banister_events::text::redact_json;
/// let input = serde_json::json!({"user": "ada", "password": "hunter2", "count": 3});
/// let shown = serde_json::json!({"user": "ada", "password": "[redacted]", "count": 3});
/// assert_eq!(redact_json(&input), shown);
/// ```
pub fn redact_json(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(redact(text).into_owned()),
        Value::Array(items) => items.iter().map(redact_json).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| {
                if !is_suspect(key) {
                    return (key.clone(), redact_json(value));
                }
                let hidden = !value.is_null() && !value.is_boolean() && names_credential(key);
                let shown = if hidden { Value::from(REDACTED) } else { redact_json(value) };
                (redact(key).into_owned(), shown)
            })
            .collect(),
        other => other.clone(),
    }
}

/// [`redact_json`], of a value that nobody else needs: most has nothing to be taken out, and stays as it is.
pub(crate) fn redacted(value: Value) -> Value {
    redacted_if_needed(&value).unwrap_or(value)
}

/// [`redact_json`], unless there is nothing to be taken out: hardly any value has a credential in it.
pub(crate) fn redacted_if_needed(value: &Value) -> Option<Value> {
    if !is_suspect_json(value) {
        return None;
    }
    let shown = redact_json(value);
    (shown != *value).then_some(shown)
}

/// Whether there may be a credential in a text or under a name of a value.
fn is_suspect_json(value: &Value) -> bool {
    match value {
        Value::String(text) => is_suspect(text),
        Value::Array(items) => items.iter().any(is_suspect_json),
        Value::Object(fields) => {
            fields.iter().any(|(key, value)| is_suspect(key) || is_suspect_json(value))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// At most `limit` characters, with an ellipsis where something was cut.
///
/// ```
/// use banister_events::text::shorten;
/// assert_eq!(shorten("abcdef", 4), "abc…");
/// assert_eq!(shorten("abcd", 4), "abcd");
/// ```
pub fn shorten(text: &str, limit: usize) -> Cow<'_, str> {
    if text.len() <= limit || text.chars().nth(limit).is_none() {
        return Cow::Borrowed(text);
    }
    let mut cut: String = text.chars().take(limit.saturating_sub(1)).collect();
    cut.push('…');
    Cow::Owned(cut)
}

/// For a field that people read: nothing hidden, no credential, at most `limit` characters.
pub fn for_people(text: &str, limit: usize) -> String {
    let redacted = redact(text);
    let shown = visible(&redacted);
    shorten(&shown, limit).into_owned()
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
