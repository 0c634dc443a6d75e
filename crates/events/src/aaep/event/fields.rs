//! What the values of AAEP's fields look like.

use crate::check::shape::Kind;
use crate::check::time::rfc3339;
use crate::limits::{AAEP_TERSE_CHARS, AAEP_TEXT_CHARS};

/// The fields whose text a person hears or reads.
pub(crate) const HUMAN_TEXT: &[&str] = &[
    "summary_terse",
    "summary_normal",
    "summary_detailed",
    "request_text",
    "output_summary",
    "remediation_hint",
    "partial_result",
    "description",
    "args_summary",
    "error_message",
    "chunk",
    "action",
    "consequence",
    "question",
    "context",
    "reason",
];

/// The string kinds that a function and a pattern describe alike.
macro_rules! formats {
    ($($name:ident = $looks:literal, $pattern:literal, $fits:expr;)*) => {
        $(pub(in crate::aaep) const $name: Kind =
            Kind::Format { looks: $looks, fits: $fits, pattern: $pattern, format: "" };)*

        /// All of them, so that each is held to its pattern.
        #[cfg(test)]
        const FORMATS: &[(&str, Kind)] = &[$((stringify!($name), $name)),*];
    };
}

formats! {
    EVENT_ID = "evt_ and 1 to 64 letters and digits", "^evt_[A-Za-z0-9]{1,64}$", |id| is_id("evt_", id);
    SESSION_ID = "sess_ and 1 to 64 letters and digits", "^sess_[A-Za-z0-9]{1,64}$", |id| is_id("sess_", id);
    SUBSCRIPTION_ID = "sub_ and 1 to 64 letters and digits", "^sub_[A-Za-z0-9]{1,64}$", |id| is_id("sub_", id);
    CALL_ID = "call_ and 1 to 64 letters and digits", "^call_[A-Za-z0-9]{1,64}$", |id| is_id("call_", id);
    OUTPUT_ID = "out_ and 1 to 64 letters and digits", "^out_[A-Za-z0-9]{1,64}$", |id| is_id("out_", id);
    TOKEN = "rpl_ and 1 to 64 letters and digits", "^rpl_[A-Za-z0-9]{1,64}$", |id| is_id("rpl_", id);
    TOOL = "a tool name: a letter or _, then letters, digits, _ . -", "^[A-Za-z_][A-Za-z0-9_.-]{0,255}$", is_tool;
    VERSION = "a version such as 1.0.0", "^[0-9]+\\.[0-9]+\\.[0-9]+(-[A-Za-z0-9.-]+)?$", is_version;
    LANGUAGE = "a BCP 47 language tag", "^[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*$", is_language;
    SCRIPT = "an ISO 15924 script such as Latn", "^[A-Z][a-z]{3}$", is_script;
    ERROR_CODE = "a code such as RATE_LIMIT", "^[A-Z][A-Z0-9_]{1,63}$", is_error_code;
    REASON_WORD = "a word such as user_stop", "^[a-z][a-z0-9_]{1,63}$", is_reason_word;
    MEDIA_TYPE = "a media type without parameters", "^[A-Za-z][A-Za-z0-9.+_-]*/[A-Za-z][A-Za-z0-9.+_-]*$", is_media_type;
    SIGNED = "a JWS in compact form", "^[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]+$", is_signed;
}

pub(in crate::aaep) const URI: Kind =
    Kind::Format { looks: "a URI", fits: is_uri, pattern: "", format: "uri" };
pub(in crate::aaep) const TIMESTAMP: Kind = Kind::Format {
    looks: "an RFC 3339 time with 0, 3 or 6 digits of fraction",
    fits: is_timestamp,
    pattern: "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]{3}([0-9]{3})?)?(Z|[+-][0-9]{2}:[0-9]{2})$",
    format: "date-time",
};
/// The time of a reply, which may be as precise as it likes.
pub(in crate::aaep) const TIME: Kind = Kind::Format {
    looks: "an RFC 3339 time",
    fits: |text| rfc3339(text).is_some(),
    pattern: "",
    format: "date-time",
};

pub(in crate::aaep) const TEXT: Kind = Kind::Text { min: 1, max: AAEP_TEXT_CHARS };
pub(in crate::aaep) const MAYBE_EMPTY: Kind = Kind::Text { min: 0, max: AAEP_TEXT_CHARS };
pub(in crate::aaep) const SHORT: Kind = Kind::Text { min: 1, max: AAEP_TERSE_CHARS };
pub(in crate::aaep) const LABEL: Kind = Kind::Text { min: 1, max: 256 };
pub(in crate::aaep) const MILLISECONDS: Kind = Kind::Integer { min: 0, max: 86_400_000 };
pub(in crate::aaep) const COUNT: Kind = Kind::Integer { min: 0, max: i64::MAX };
pub(in crate::aaep) const STEP: Kind = Kind::Integer { min: 1, max: i64::MAX };
pub(in crate::aaep) const SECONDS: Kind = Kind::Integer { min: 1, max: 86_400 };
pub(in crate::aaep) const BLOCKS: Kind = Kind::Each(&Kind::Object);

/// A list in which nothing stands twice.
pub(in crate::aaep) const fn set(min: usize, max: usize, item: &'static Kind) -> Kind {
    Kind::List { min, max, distinct: true, item }
}

/// Whether an id is the prefix and 1 to 64 letters and digits, and nothing after them.
pub(in crate::aaep) fn is_id(prefix: &str, id: &str) -> bool {
    id.strip_prefix(prefix).is_some_and(|rest| {
        // Looking at all of them at once is quicker than stopping at the first.
        (1..=64).contains(&rest.len())
            && rest.bytes().fold(true, |fits, byte| fits & byte.is_ascii_alphanumeric())
    })
}

fn is_timestamp(text: &str) -> bool {
    rfc3339(text).is_some_and(|moment| {
        matches!(moment.digits, 0 | 3 | 6) && !text.bytes().any(|byte| matches!(byte, b't' | b'z'))
    })
}

fn is_version(text: &str) -> bool {
    if text == super::VERSION {
        return true;
    }
    let (numbers, label) = match text.split_once('-') {
        Some((numbers, label)) => (numbers, Some(label)),
        None => (text, None),
    };
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    numbers.split('.').count() == 3
        && numbers.split('.').all(is_number)
        && label.is_none_or(|label| {
            !label.is_empty()
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte))
        })
}

pub(in crate::aaep) fn is_language(tag: &str) -> bool {
    let mut parts = tag.as_bytes().split(|byte| *byte == b'-');
    let sized = |part: &[u8]| (1..=8).contains(&part.len());
    parts.next().is_some_and(|first| sized(first) && first.iter().all(u8::is_ascii_alphabetic))
        && parts.all(|part| sized(part) && part.iter().all(u8::is_ascii_alphanumeric))
}

fn is_script(text: &str) -> bool {
    text.len() == 4
        && text.starts_with(|first: char| first.is_ascii_uppercase())
        && text.bytes().skip(1).all(|byte| byte.is_ascii_lowercase())
}

fn is_tool(text: &str) -> bool {
    text.len() <= 256
        && text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
}

fn is_error_code(text: &str) -> bool {
    (2..=64).contains(&text.len())
        && text.starts_with(|first: char| first.is_ascii_uppercase())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

fn is_reason_word(text: &str) -> bool {
    (2..=64).contains(&text.len())
        && text.starts_with(|first: char| first.is_ascii_lowercase())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

fn is_media_type(text: &str) -> bool {
    let is_part = |part: &str| {
        part.starts_with(|first: char| first.is_ascii_alphabetic())
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".+_-".contains(&byte))
    };
    text.split_once('/').is_some_and(|(left, right)| is_part(left) && is_part(right))
}

fn is_signed(text: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
    };
    text.split('.').count() == 3 && text.split('.').all(is_part)
}

/// Whether a text is a URI as RFC 3986 writes it, with something behind the scheme.
pub(in crate::aaep) fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = match rest.strip_prefix("//") {
        Some(rest) => rest.find('/').map_or((rest, ""), |slash| rest.split_at(slash)),
        None => ("", rest),
    };
    scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte))
        && text.len() > scheme.len() + 1
        && is_authority(authority)
        && is_written_with(path, b":@/")
        && is_written_with(query, b":@/?")
        && is_written_with(fragment, b":@/?")
}

fn is_authority(text: &str) -> bool {
    let (user, host) = text.rsplit_once('@').unwrap_or(("", text));
    let (name, port) = match host.strip_prefix('[').and_then(|host| host.split_once(']')) {
        Some((address, port)) if address.parse::<std::net::Ipv6Addr>().is_ok() => ("", port),
        Some(_) => return false,
        None => host.find(':').map_or((host, ""), |colon| host.split_at(colon)),
    };
    let port = port.strip_prefix(':').unwrap_or(port);
    is_written_with(user, b":")
        && is_written_with(name, b"")
        && port.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a part of a URI has only what may stand in any part, escapes, and these.
fn is_written_with(text: &str, also: &[u8]) -> bool {
    let mut escapes = text.split('%');
    let is_plain = |part: &str| {
        part.bytes().all(|byte| {
            byte.is_ascii_alphanumeric()
                || b"-._~!$&'()*+,;=".contains(&byte)
                || also.contains(&byte)
        })
    };
    escapes.next().is_some_and(is_plain)
        && escapes.all(|part| {
            is_plain(part) && part.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2
        })
}

#[cfg(test)]
#[path = "fields_tests.rs"]
mod tests;
