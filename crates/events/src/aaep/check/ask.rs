//! What questions to people can break: defaults, time, ways to answer.

use super::seen::Seen;
use super::{
    DEFAULT_HIGH, DEFAULT_IRREVERSIBLE, DEFAULT_MEDIUM, DEFAULT_REVERSIBLE, REFUSABLE,
    RESPONSE_KINDS, REVERSIBILITY, TIMEOUT,
};
use crate::check::shape::quote;
use crate::finding::Finding;
use crate::json::View;

pub(super) fn confirmation(seen: &Seen<'_>, strict: bool, findings: &mut Vec<Finding>) {
    findings.extend(default_decision(seen));
    findings.extend(contradiction(seen));
    findings.extend(refusable(seen));
    if strict {
        let least = match seen.risk {
            Some(risk) if seen.is_irreversible() && risk.is("high") => 180,
            Some(risk) if seen.is_irreversible() && risk.is("medium") => 60,
            _ => 30,
        };
        findings.extend(timeout(seen, least));
    }
}

pub(super) fn clarification(seen: &Seen<'_>, strict: bool, findings: &mut Vec<Finding>) {
    findings.extend(response_kinds(seen));
    if strict {
        findings.extend(timeout(seen, 60));
    }
}

pub(super) fn default_decision(seen: &Seen<'_>) -> Option<Finding> {
    if !seen.default_decision.is_some_and(|decision| decision.is("accept")) {
        return None;
    }
    let risk = seen.risk.and_then(View::as_str);
    let (rule, about) = match (seen.is_irreversible(), risk.as_deref()) {
        (true, Some("high")) => (&DEFAULT_HIGH, "an irreversible action of high risk"),
        (true, Some("medium")) => (&DEFAULT_MEDIUM, "an irreversible action of medium risk"),
        (true, _) => (&DEFAULT_IRREVERSIBLE, "an irreversible action"),
        (false, Some("high")) => (&DEFAULT_REVERSIBLE, "an action of high risk"),
        (false, _) => return None,
    };
    Some(rule.at("/default_decision", format!("{about} is accepted when nobody answers")))
}

fn contradiction(seen: &Seen<'_>) -> Option<Finding> {
    let irreversible = seen.irreversible?.as_bool()?;
    let word = seen.reversibility?;
    let otherwise = if irreversible {
        word.is("reversible") || word.is("reversible_with_effort")
    } else {
        word.is("irreversible")
    };
    otherwise.then(|| {
        let word = word.as_str().unwrap_or_default();
        let message = format!("the action is {word}, but irreversible is {irreversible}");
        REVERSIBILITY.at("/reversibility", message)
    })
}

fn refusable(seen: &Seen<'_>) -> Option<Finding> {
    let allowed = seen.allowed_replies?;
    // A list that is none was found by the table.
    if allowed.items().next().is_none() || !allowed.items().all(View::is_string) {
        return None;
    }
    let allows = |word: &str| allowed.items().any(|reply| reply.is(word));
    if !allows("reject") {
        return Some(REFUSABLE.at("/allowed_replies", "reject is not among the allowed replies"));
    }
    let default = seen.default_decision?.as_str()?;
    (matches!(&*default, "accept" | "reject") && !allows(&default)).then(|| {
        let message = format!("the default {} is not among the allowed replies", quote(&default));
        REFUSABLE.at("/allowed_replies", message)
    })
}

fn response_kinds(seen: &Seen<'_>) -> Option<Finding> {
    let choosing = seen
        .response_kinds
        .is_some_and(|kinds| kinds.items().any(|kind| kind.is("multiple_choice")));
    let message = match (choosing, seen.choices.is_some()) {
        (true, false) => "multiple_choice is accepted, but there are no choices",
        (false, true) => "there are choices, but multiple_choice is not accepted",
        _ => return None,
    };
    Some(RESPONSE_KINDS.at("/choices", message))
}

fn timeout(seen: &Seen<'_>, least: i64) -> Option<Finding> {
    let seconds = seen.timeout?.as_i64().filter(|seconds| (1..least).contains(seconds))?;
    Some(TIMEOUT.at("/timeout_seconds", format!("{seconds} s, where {least} s are recommended")))
}
