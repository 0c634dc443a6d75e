//! What one message about events alone can break: handshake, replies, the manifest.
//!
//! Messages with a published schema are held to it as errors; those without one (renegotiate, close, the manifest)
//! earn warnings, and may carry fields of their own. A request may ask for any version: whether it is spoken is the
//! producer's answer, not a fault of the question. Replies of other kinds belong to extensions and are not judged.

use super::envelope::Version;
use super::{LANGUAGE_TAG, RESERVED_PREFIX, SHORT_PREFIX, VERSION, language, manifest};
use crate::aaep::{event, handshake};
use crate::check::rules;
use crate::check::shape::{self, Issue, What, quote, text};
use crate::finding::{Finding, Rule};
use crate::json::View;

rules! {
    REQUEST = "AAEP-5.3-B1" Error Subscriber
        "subscription.request has its fields, of the right types.",
        "Compare with: banister schema aaep subscription.request.";
    ACCEPTED = "AAEP-5.4-B1" Error Producer
        "subscription.accepted has its fields, of the right types.",
        "Compare with: banister schema aaep subscription.accepted.";
    REJECTED = "AAEP-5.4-B2" Error Producer
        "subscription.rejected has a known reason_code and a message.",
        "Use one of the eight codes, and say in words what went wrong.";
    RENEGOTIATE = "AAEP-5.7-B1" Warning Subscriber
        "subscription.renegotiate names the subscription and new capabilities.",
        "Add subscription_id and capabilities.";
    CLOSE = "AAEP-5.8-B1" Warning Both
        "subscription.close names the subscription and a reason.",
        "Add subscription_id, reason_code and reason_message.";
    MANIFEST = "AAEP-5.10-B1" Warning Producer
        "A manifest has its fields, of the right types.",
        "Name agent_id, versions, levels, transports and languages.";
    CONFIRMATION = "AAEP-6.3-B1" Error Subscriber
        "confirmation.reply has its fields, of the right types.",
        "Compare with: banister schema aaep confirmation.reply.";
    CUSTOM_DECISION = "AAEP-6.3-B3" Warning Subscriber
        "A decision is accept or reject; other words are for extensions, and for what allowed_replies lists.",
        "Answer accept or reject: a producer takes any other word for a no.";
    CLARIFICATION = "AAEP-6.5-B1" Error Subscriber
        "clarification.reply has its fields, of the right types.",
        "Compare with: banister schema aaep clarification.reply.";
    NAMELESS_REPLY = "AAEP-6.3-B2" Warning Subscriber
        "A reply names its subscription.",
        "Add subscription_id.";
    HANDSHAKE_FIELD = "AAEP-7.2-R3" Error Both
        "Handshake messages have no fields of one's own.",
        "Move it into extensions or a capability block.";
    REPLY_FIELD = "AAEP-7.2-R4" Error Subscriber
        "Replies have no fields of one's own.",
        "Leave the field out.";
    SIGNED = "AAEP-10.4.1-R1" Error Producer
        "A signed manifest is a JWS by ES256 or RS256 of the producer's manifest. Its signature is not verified here.",
        "Sign the JSON of the manifest; its agent_id is the one in producer.";
    UNKNOWN = "AAEP-5.1-B1" Warning Both
        "Messages beside events are the ones that AAEP defines.",
        "Use request, accepted, rejected, renegotiate or close.";
    CAN_REPLY = "AAEP-5.3.1.4-R1" Warning Subscriber
        "A subscriber of level 2 or 3 declares supports_confirmation_reply.",
        "Set it to true.";
}

/// Everything wrong with one message about events, seen alone.
pub(in crate::aaep) fn message(kind: &str, object: View<'_>) -> Vec<Finding> {
    let (table, foreign) = match kind {
        "subscription.request" => (&REQUEST, Some(&HANDSHAKE_FIELD)),
        "subscription.accepted" => (&ACCEPTED, Some(&HANDSHAKE_FIELD)),
        "subscription.rejected" => (&REJECTED, Some(&HANDSHAKE_FIELD)),
        "subscription.renegotiate" => (&RENEGOTIATE, None),
        "subscription.close" => (&CLOSE, None),
        "confirmation.reply" => (&CONFIRMATION, Some(&REPLY_FIELD)),
        "clarification.reply" => (&CLARIFICATION, Some(&REPLY_FIELD)),
        "aaep:producer.manifest" => (&MANIFEST, None),
        _ => return unknown(kind).into_iter().collect(),
    };
    let rules = Rules { table, foreign };
    let issues = handshake::shape(kind)
        .map_or_else(Vec::new, |shape| shape::compare(shape, object, &mut shape::Known::default()));
    let mut findings: Vec<Finding> =
        issues.into_iter().filter_map(|issue| finding(issue, &rules, object)).collect();
    // What the table says of a field is enough.
    let fits = |pointer: &str| !findings.iter().any(|found| found.pointer == pointer);
    let signed = (kind == "subscription.accepted" && fits("/signed_manifest"))
        .then(|| manifest::signed(object));
    let more = match kind {
        "subscription.request" => cannot_reply(object),
        "subscription.accepted" if fits("/aaep_version") => version(object),
        "aaep:producer.manifest" if fits("/@context") => context(object),
        "confirmation.reply" | "clarification.reply" => nameless(object),
        _ => None,
    };
    findings.extend(more);
    findings.extend(signed.flatten());
    for place in LANGUAGES {
        if let Some(list) = object.pointer(place) {
            language::of_list(list, place, &mut findings);
        }
    }
    for field in ["capabilities", "honored_capabilities", "extensions"] {
        findings.extend(prefixes(field, object));
    }
    findings
}

/// Which rules a message falls under.
struct Rules {
    table: &'static Rule,
    /// Where a field of one's own is not allowed.
    foreign: Option<&'static Rule>,
}

fn unknown(kind: &str) -> Option<Finding> {
    kind.starts_with("subscription.").then(|| {
        let message = format!("{} is no message of the handshake", quote(kind));
        UNKNOWN.at("/type", message)
    })
}

/// Gives what does not fit a message's table the code of the rule that says so.
fn finding(issue: Issue, rules: &Rules, object: View<'_>) -> Option<Finding> {
    let Issue { what, pointer, message } = issue;
    let top_level = pointer.matches('/').count() == 1;
    let is_reply = rules.foreign == Some(&REPLY_FIELD);
    let rule = match (what, pointer.as_str()) {
        (What::Missing, "/subscription_id") if is_reply => return None,
        (What::Foreign, _) if top_level => rules.foreign?,
        (What::Word, "/decision") if is_reply && !object.get("decision")?.is("") => {
            &CUSTOM_DECISION
        }
        (What::Value, "/aaep_version") if *rules.table == ACCEPTED => &VERSION,
        (What::Value, pointer) if is_bad_language(pointer, object) => &LANGUAGE_TAG,
        _ => rules.table,
    };
    Some(rule.at(pointer, message))
}

/// The lists of languages.
const LANGUAGES: [&str; 3] =
    ["/capabilities/languages", "/honored_capabilities/languages", "/languages_supported"];

/// Whether this is an entry of a list of languages that is none. Entries that stand twice are languages.
fn is_bad_language(pointer: &str, object: View<'_>) -> bool {
    let in_list = pointer.rsplit_once('/').is_some_and(|(list, _)| LANGUAGES.contains(&list));
    in_list
        && object
            .pointer(pointer)
            .and_then(View::as_str)
            .is_some_and(|tag| !event::is_language(&tag))
}

fn cannot_reply(object: View<'_>) -> Option<Finding> {
    let capabilities = object.get("capabilities")?;
    let levels = capabilities.get("supported_conformance_levels")?;
    let interactive = levels
        .items()
        .any(|level| level.as_f64().is_some_and(|level| (2.0..=3.0).contains(&level)));
    let replies = capabilities.get("supports_confirmation_reply").and_then(View::as_bool);
    (interactive && replies != Some(true)).then(|| {
        let pointer = "/capabilities/supports_confirmation_reply";
        CAN_REPLY.at(pointer, "level 2 is declared, but not that confirmations are answered")
    })
}

/// The answer names a version that is spoken from here on, so it has to exist.
fn version(object: View<'_>) -> Option<Finding> {
    let version = text(object, "aaep_version")?;
    match Version::read(&version)? {
        Version::Not(why) => {
            Some(VERSION.at("/aaep_version", format!("{} {why}", quote(&version))))
        }
        Version::Published | Version::Patch | Version::Minor => None,
    }
}

/// The manifest is JSON-LD of the core context.
fn context(object: View<'_>) -> Option<Finding> {
    let context = object.get("@context");
    let first = context.map(|context| context.items().next().unwrap_or(context));
    (!first.is_some_and(|first| first.is(event::CONTEXT)))
        .then(|| MANIFEST.at("/@context", "the core context is not there, or not the first one"))
}

fn nameless(reply: View<'_>) -> Option<Finding> {
    reply
        .get("subscription_id")
        .is_none()
        .then(|| NAMELESS_REPLY.at("/subscription_id", "the reply names no subscription"))
}

/// Extensions name their blocks by their prefix. No capability of the core looks like a prefix that is refused.
fn prefixes(field: &str, object: View<'_>) -> Vec<Finding> {
    let blocks = object.get(field).into_iter().flat_map(View::entries);
    blocks
        .filter_map(|(name, _)| {
            let prefix = name.as_str()?;
            let pointer = || format!("/{field}{}", shape::pointer(&prefix));
            if matches!(&*prefix, "aaep" | "xsd" | "rdf" | "rdfs") || prefix.starts_with('@') {
                let message = format!("the prefix {} is reserved", quote(&prefix));
                return Some(RESERVED_PREFIX.at(pointer(), message));
            }
            (prefix.chars().count() == 1).then(|| {
                let message = format!("the prefix {} is a single letter", quote(&prefix));
                SHORT_PREFIX.at(pointer(), message)
            })
        })
        .collect()
}

#[cfg(test)]
#[path = "control_tests.rs"]
mod tests;
