//! The limits of the strictest known consumer: what stays inside them is taken everywhere.
//!
//! Only asked for; the protocol itself has no limits. Limits that need a clock are not checked.

use super::LIMIT;
use crate::check::shape::quote;
use crate::finding::Finding;
use crate::json::{Document, View};

const ID: usize = 160;
const NAME: usize = 512;
const PATH: usize = 4_096;
const MESSAGE: usize = 16_384;
const RATIONALE: usize = 32_768;
const BYTES: usize = 262_144;

/// Where ids stand.
const IDS: &[&str] = &[
    "/id",
    "/request_event_id",
    "/action_id",
    "/agent/slug",
    "/agent/instance_id",
    "/session/id",
    "/session/conversation_id",
    "/session/turn_id",
    "/session/root_conversation_id",
    "/session/parent/conversation_id",
    "/session/parent/spawning_action_id",
    "/action/id",
    "/tool/id",
    "/skill/id",
    "/decision/policy_id",
];

/// Where text stands that is shorter than the whole message may be, and how many characters it may have.
const TEXTS: &[(&str, usize)] = &[
    ("/hook", NAME),
    ("/tool/name", NAME),
    ("/tool/original_name", NAME),
    ("/server/name", NAME),
    ("/skill/name", NAME),
    ("/model/id", NAME),
    ("/workspace/cwd", PATH),
    ("/workspace/project_path", PATH),
    ("/skill/path", PATH),
    ("/tool/description", MESSAGE),
    ("/server/description", MESSAGE),
    ("/skill/description", MESSAGE),
    ("/action/error/message", MESSAGE),
    ("/control/message", MESSAGE),
    ("/action/rationale", RATIONALE),
];

/// Where lists stand, and how many entries they may have.
const LISTS: &[(&str, usize)] = &[("/content", 64), ("/attachments", 32), ("/workspace/roots", 64)];

pub(super) fn check(message: &Document<'_>, findings: &mut Vec<Finding>) {
    let bytes = message.bytes().len();
    if bytes > BYTES {
        findings.push(LIMIT.at("", format!("{bytes} bytes, where {BYTES} are taken everywhere")));
    }
    let root = message.root();
    for &place in IDS {
        if let Some(id) = root.pointer(place).and_then(View::as_str)
            && !id.is_empty()
            && !is_safe(&id)
        {
            findings
                .push(LIMIT.at(place, format!("{} is no id that is safe everywhere", quote(&id))));
        }
    }
    for &(place, most) in TEXTS {
        if let Some(text) = root.pointer(place).and_then(View::as_str)
            && text.len() > most
            && text.chars().count() > most
        {
            findings.push(LIMIT.at(place, format!("the text is longer than {most} characters")));
        }
    }
    for &(place, most) in LISTS {
        let count = root.pointer(place).map_or(0, |list| list.items().count());
        if count > most {
            findings.push(LIMIT.at(place, format!("{count} entries, where {most} are taken")));
        }
    }
}

/// Whether an id is short, and of characters that need no escape anywhere.
fn is_safe(id: &str) -> bool {
    id.len() <= ID
        && id.starts_with(|first: char| first.is_ascii_alphanumeric())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte))
}
