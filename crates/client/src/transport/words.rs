//! What a response that brings nothing else says to a person.

use banister_events::text;
use serde_json::Value;

/// Where JSON has something for people, the best place first.
const FIELDS: [&str; 6] = ["reason_message", "message", "detail", "error", "title", "reason_code"];
/// How much of a web page is looked at, and how much of it is shown.
const PAGE_BYTES: usize = 8 * 1024;
const PAGE_CHARS: usize = 80;
/// What a page does not show: how it begins, and how it ends.
const HIDDEN: [(&str, &str); 3] = [("script", "</script"), ("style", "</style"), ("!--", "--")];

/// One line of what a body says, with nothing hidden in it: a message inside JSON, the first words of a web page, or the
/// first line of a text. `None` where it says nothing.
pub fn words_of(body: &[u8]) -> Option<String> {
    let value: Value = serde_json::from_slice(body).unwrap_or_default();
    let field = FIELDS.into_iter().find_map(|name| {
        let nested = value.get("error").and_then(|error| error.get(name));
        let text = nested.or_else(|| value.get(name))?.as_str()?;
        (!text.trim().is_empty()).then(|| text.to_owned())
    });
    let whole = || match &value {
        Value::Null => String::from_utf8_lossy(body).into_owned(),
        value => value.to_string(),
    };
    let text = field.unwrap_or_else(whole);
    let line = text.trim().lines().next().unwrap_or_default();
    if line.starts_with('<') {
        let words = page_words(body);
        let colon = if words.is_empty() { "" } else { ": " };
        return Some(format!("a web page{colon}{words}"));
    }
    (!line.is_empty()).then(|| text::one_line(line))
}

/// The first words of a web page: its title, else what it shows. Empty where it shows nothing.
pub fn page_words(html: &[u8]) -> String {
    let html = String::from_utf8_lossy(html.get(..PAGE_BYTES).unwrap_or(html));
    let words = title(&html).filter(|title| !title.trim().is_empty());
    let words = words.map_or_else(|| without_tags(&html), str::to_owned);
    let words: Vec<&str> = words.split_whitespace().collect();
    text::shorten(&text::one_line(&words.join(" ")), PAGE_CHARS).into_owned()
}

fn title(html: &str) -> Option<&str> {
    let (_, inside) = split_at_tag(html, "<title")?;
    let (_, inside) = inside.split_once('>')?;
    split_at_tag(inside, "</title").map(|(title, _)| title)
}

fn without_tags(html: &str) -> String {
    let mut shown = String::new();
    let mut rest = html;
    while let Some((before, tag)) = rest.split_once('<') {
        shown.push_str(before);
        shown.push(' ');
        let inside = HIDDEN.into_iter().find_map(|(name, end)| {
            let begins = tag.get(..name.len())?.eq_ignore_ascii_case(name);
            begins.then(|| tag.get(name.len()..).map(|inside| (inside, end)))?
        });
        let closing = match inside {
            None => tag,
            Some((inside, end)) => split_at_tag(inside, end).map_or("", |(_, closing)| closing),
        };
        rest = closing.split_once('>').map_or("", |(_, after)| after);
    }
    shown.push_str(rest);
    shown
}

/// What stands before a tag in any case, and from behind its name on.
fn split_at_tag<'h>(html: &'h str, tag: &str) -> Option<(&'h str, &'h str)> {
    // Lower case in ASCII leaves every byte where it is.
    let at = html.to_ascii_lowercase().find(tag)?;
    Some((html.get(..at)?, html.get(at + tag.len()..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_told_in_one_visible_line() {
        for (body, expected) in [
            (r#"{"reason_message":"no\u001b[31m room"}"#, Some("no⟨U+001B⟩[31m room")),
            (r#"{"error":{"message":"nested"},"message":"plain"}"#, Some("nested")),
            (r#"{"error":"in error"}"#, Some("in error")),
            (r#"{"reason_code":"full","reason_message":" "}"#, Some("full")),
            ("{\n\"reason_message\": \"\"}", Some(r#"{"reason_message":""}"#)),
            (" plain\nwords", Some("plain")),
            ("<html>", Some("a web page")),
            ("<html><TITLE>\n502 Bad\tGateway</TITLE>", Some("a web page: 502 Bad Gateway")),
            (" \n", None),
            ("", None),
        ] {
            assert_eq!(words_of(body.as_bytes()).as_deref(), expected, "{body}");
        }
    }

    #[test]
    fn a_page_without_a_title_is_told_by_what_it_shows() {
        let page = "<!doctype html><title> </title><style>p { color: red }</style><!-- a > b -->\
                    <SCRIPT>if (a < b) go()</SCRIPT><h1>Sign in</h1> <p>to\u{202e} go on";
        assert_eq!(page_words(page.as_bytes()), "Sign in to⟨U+202E⟩ go on");
        let long = page_words("<p>word ".repeat(500).as_bytes());
        assert_eq!((long.chars().count(), long.ends_with('…')), (80, true));
        for empty in ["<", "<title", "<script>never closed", "<p", "\u{fffd}<"] {
            assert!(page_words(empty.as_bytes()).chars().count() <= 1, "{empty}");
        }
    }
}
