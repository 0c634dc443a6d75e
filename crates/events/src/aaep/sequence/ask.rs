//! Questions to a person, what was answered, and whether that is consent.
//!
//! A recording may show both directions or only the events. A reply that is there decides; without one, a change of
//! state from `awaiting_input` to `calling_tool` tells of consent, any other change leaves the outcome unknown, and
//! an unknown outcome is never held against the producer.

use std::borrow::Cow;
use std::collections::VecDeque;

use super::{
    ACCEPTED_UNUSED, ASKED_TWICE, CONSENT, CONSENT_RISK, COUNTDOWN, FOLLOW_UP, KIND_OF_ANSWER,
    NO_NEWS, OTHER_RISK, REFUSED, REPLY, TOO_LATE,
};
use crate::aaep::check::seen::Seen;
use crate::check::recent::{fingerprint, key};
use crate::check::shape::{quote, says, text};
use crate::check::time::rfc3339;
use crate::finding::Finding;
use crate::json::View;

/// How many open questions of one session are followed; the oldest is let go.
const OPEN: usize = 64;

/// How far two clocks may be apart before that is held against somebody.
const SKEW: i128 = 5_000_000_000;

/// How much older than its question an honest reply can be.
const OLDEST_REPLY: i128 = 300_000_000_000;

/// What a question was, for whoever answers it.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) session: Box<str>,
    confirmation: bool,
    since: Option<i128>,
    deadline: Option<i128>,
    /// Fingerprints of the decisions that are allowed; none where the usual two are.
    allowed: Option<Box<[u64]>>,
    /// Which kinds of answer are accepted, and fingerprints of the choices.
    kinds: [Option<AnswerKind>; 4],
    choices: Box<[u64]>,
    /// The fingerprint of the reply that counted.
    pub(super) reply: Option<u64>,
    /// Whether the action ran before anybody was seen to answer.
    pub(super) used: bool,
}

/// The kinds of answer that a question accepts: text, yes or no, one of the choices, a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AnswerKind {
    Freetext,
    YesNo,
    MultipleChoice,
    Numeric,
}

impl AnswerKind {
    const ALL: [Self; 4] = [Self::Freetext, Self::YesNo, Self::MultipleChoice, Self::Numeric];

    fn name(self) -> &'static str {
        match self {
            Self::Freetext => "freetext",
            Self::YesNo => "yes_no",
            Self::MultipleChoice => "multiple_choice",
            Self::Numeric => "numeric",
        }
    }
}

impl Asked {
    pub(super) fn new(session: &str, confirmation: bool, object: View<'_>) -> Self {
        let asked = text(object, "timestamp").and_then(|time| rfc3339(&time));
        let asked = asked.map(|moment| moment.nanos);
        let list = |name: &str| object.get(name).filter(|list| list.is_array());
        let wanted = list("accepted_response_kinds");
        let accepts = |kind: AnswerKind| match wanted {
            Some(list) => list.items().any(|own| own.is(kind.name())),
            None => kind == AnswerKind::Freetext,
        };
        let values = |choices: View<'_>| {
            choices.items().filter_map(|choice| choice.get("value").map(fingerprint)).collect()
        };
        Self {
            session: session.into(),
            confirmation,
            since: asked,
            deadline: deadline(object, asked),
            allowed: list("allowed_replies").map(|list| list.items().map(fingerprint).collect()),
            kinds: AnswerKind::ALL.map(|kind| accepts(kind).then_some(kind)),
            choices: list("choices").map(values).unwrap_or_default(),
            reply: None,
            used: false,
        }
    }

    /// What is wrong with a reply to this question.
    pub(super) fn judge(&self, reply: View<'_>, confirmation: bool) -> Option<Finding> {
        if confirmation != self.confirmation {
            let asked = if self.confirmation { "confirmation" } else { "clarification" };
            return Some(REPLY.at("/type", format!("the question was a {asked}")));
        }
        let time = text(reply, "timestamp").and_then(|time| rfc3339(&time));
        let time = time.map(|moment| moment.nanos);
        if let (Some(time), Some(deadline)) = (time, self.deadline)
            && time >= deadline
        {
            return Some(REPLY.at("/timestamp", "the time to answer was over"));
        }
        if let (Some(time), Some(asked)) = (time, self.since)
            && time < asked - OLDEST_REPLY
        {
            return Some(REPLY.at("/timestamp", "the answer is older than the question"));
        }
        if confirmation { self.decision(reply) } else { self.response(reply) }
    }

    fn decision(&self, reply: View<'_>) -> Option<Finding> {
        let decision = reply.get("decision")?;
        let allowed = match &self.allowed {
            Some(allowed) => allowed.contains(&fingerprint(decision)),
            None => decision.is("accept") || decision.is("reject"),
        };
        (!allowed).then(|| REPLY.at("/decision", "the question does not allow this decision"))
    }

    fn response(&self, reply: View<'_>) -> Option<Finding> {
        let response = reply.get("response")?;
        let accepts = |kind| self.kinds.contains(&Some(kind));
        let chosen = || self.choices.is_empty() || self.choices.contains(&fingerprint(response));
        let fits = if response.is_string() {
            accepts(AnswerKind::Freetext) || accepts(AnswerKind::MultipleChoice) && chosen()
        } else if response.is_number() {
            accepts(AnswerKind::Numeric)
        } else {
            accepts(AnswerKind::YesNo) && response.as_bool().is_some()
        };
        (!fits).then(|| KIND_OF_ANSWER.at("/response", "the question does not accept this answer"))
    }
}

fn deadline(object: View<'_>, asked: Option<i128>) -> Option<i128> {
    let seconds = object.get("timeout_seconds").and_then(View::as_i64)?;
    Some(asked? + i128::from(seconds) * 1_000_000_000)
}

/// What is known of the outcome of a confirmation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Open,
    Accepted,
    Rejected,
    /// Something else went on, so that it may have been either.
    Unknown,
}

/// A confirmation that has not led to its action yet.
#[derive(Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one fact, and they are independent of each other"
)]
struct Question {
    token: Box<str>,
    action: u64,
    irreversible: bool,
    /// Whether it says in so many words that the action can be undone.
    reversible: bool,
    rejects_by_default: bool,
    asked: Option<i128>,
    deadline: Option<i128>,
    outcome: Outcome,
    /// Whether anything of the session followed it.
    followed: bool,
    state_since: bool,
    /// Whether a change of state was taken for its outcome.
    state_told: bool,
    progress_since: bool,
    invoked_since: bool,
    dropped_since: bool,
}

/// The confirmations of one session.
#[derive(Debug, Clone, Default)]
pub(super) struct Questions {
    open: VecDeque<Question>,
    /// Whether a confirmation was rejected since the last one that was used.
    refused: bool,
}

impl Questions {
    pub(super) fn ask(
        &mut self,
        object: View<'_>,
        seen: &Seen<'_>,
        now: Option<i128>,
        findings: &mut Vec<Finding>,
    ) {
        let action = object.get("action").map(fingerprint).unwrap_or_default();
        let waits = |question: &Question| {
            question.action == action
                && question.outcome == Outcome::Open
                && !question.is_over(now, 0)
        };
        if self.open.iter().any(waits) {
            findings.push(ASKED_TWICE.at("/action", "the same action waits for an answer already"));
        }
        if self.open.len() >= OPEN {
            self.open.pop_front();
        }
        let irreversible = seen.is_irreversible();
        let explicit = seen.irreversible.is_some() || seen.reversibility.is_some();
        self.open.push_back(Question {
            token: text(object, "reply_token").map(|token| key(&token)).unwrap_or_default(),
            action,
            irreversible,
            reversible: explicit && !irreversible,
            rejects_by_default: says(object, "default_decision", "reject"),
            asked: now,
            deadline: deadline(object, now),
            outcome: Outcome::Open,
            followed: false,
            state_since: false,
            state_told: false,
            progress_since: false,
            invoked_since: false,
            dropped_since: false,
        });
    }

    /// Whether nobody was asked anything that is still of interest.
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Something of the session followed; the newest question may be that event itself.
    pub(super) fn follow(&mut self, asked_now: bool) {
        let before = self.open.len().saturating_sub(usize::from(asked_now));
        self.open.iter_mut().take(before).for_each(|question| question.followed = true);
        // A refusal that was followed by anything is history.
        self.open.retain(|question| question.outcome != Outcome::Rejected || !question.followed);
    }

    pub(super) fn progress(&mut self) {
        self.open.iter_mut().for_each(|question| question.progress_since = true);
    }

    /// The state changed.
    pub(super) fn state(
        &mut self,
        from: &str,
        to: &str,
        strict: Option<i128>,
        findings: &mut Vec<Finding>,
    ) {
        let dropped = matches!(to, "thinking" | "deciding");
        for question in &mut self.open {
            question.state_since = true;
            question.dropped_since |= dropped;
        }
        if from != "awaiting_input" || to == "awaiting_input" {
            return;
        }
        // Where a reply told already how a question ended, the change is about that one.
        let told = if to == "calling_tool" { Outcome::Accepted } else { Outcome::Rejected };
        let mut open = self.open.iter_mut();
        if let Some(answered) =
            open.find(|question| question.outcome == told && !question.state_told)
        {
            answered.state_told = true;
            return;
        }
        let mut open = self.open.iter_mut();
        let Some(question) = open.find(|question| question.outcome == Outcome::Open) else {
            return;
        };
        question.state_told = true;
        question.outcome = if to == "calling_tool" { Outcome::Accepted } else { Outcome::Unknown };
        if let Some(now) = strict {
            findings.extend(question.countdown(now));
        }
    }

    /// A valid reply was recorded. Whether the question was over by then.
    pub(super) fn answer(&mut self, token: &str, accepted: bool) -> bool {
        let mut open = self.open.iter_mut();
        let Some(question) = open.find(|question| *question.token == *token) else {
            return false;
        };
        match question.outcome {
            Outcome::Open if accepted => question.outcome = Outcome::Accepted,
            Outcome::Open => {
                question.outcome = Outcome::Rejected;
                self.refused = true;
            }
            // What the producer showed to have taken for consent was not refused by a later reply.
            Outcome::Accepted | Outcome::Rejected => {}
            Outcome::Unknown => return true,
        }
        false
    }

    /// A tool is invoked: uses up the confirmation that fits best, and says what is wrong with that. The token of one
    /// that nobody was seen to answer is given back.
    pub(super) fn invoked(
        &mut self,
        seen: &Seen<'_>,
        now: Option<i128>,
        whole: bool,
        strict: bool,
        findings: &mut Vec<Finding>,
    ) -> Option<Box<str>> {
        self.open.iter_mut().for_each(|question| question.invoked_since = true);
        let irreversible = seen.is_irreversible();
        let high = seen.risk.is_some_and(|risk| risk.is("high"));
        // Other work may go on while a question waits, and after it was answered.
        if !irreversible && !high {
            return None;
        }
        let Some(question) = self.take() else {
            if whole {
                findings.push(self.unasked(irreversible));
            }
            return None;
        };
        self.refused = false;
        if question.outcome == Outcome::Open
            && question.rejects_by_default
            && question.is_over(now, SKEW)
        {
            findings.push(TOO_LATE.at("/timestamp", "the time to confirm was over, which rejects"));
        }
        if irreversible && question.reversible && self.open.is_empty() {
            let message = "the confirmation said that it can be undone";
            findings.push(OTHER_RISK.at("/irreversible", message));
        }
        if strict {
            if !question.state_since {
                findings.push(NO_NEWS.at("", "no change of state tells how the question ended"));
            }
            findings.extend(now.and_then(|now| question.countdown(now)));
        }
        (question.outcome == Outcome::Open).then_some(question.token)
    }

    fn unasked(&self, irreversible: bool) -> Finding {
        if self.refused {
            return REFUSED.at("/tool", "the confirmation was rejected");
        }
        let message = "nobody was asked to confirm this tool";
        if irreversible {
            CONSENT.at("/irreversible", message)
        } else {
            CONSENT_RISK.at("/risk_level", message)
        }
    }

    fn take(&mut self) -> Option<Question> {
        let fits: [&dyn Fn(&Question) -> bool; 3] = [
            &|question| question.outcome == Outcome::Accepted,
            &|question| question.outcome != Outcome::Rejected && question.irreversible,
            &|question| question.outcome != Outcome::Rejected,
        ];
        let at = fits.into_iter().find_map(|fit| self.open.iter().position(fit))?;
        self.open.remove(at)
    }

    /// The session ends well.
    pub(super) fn completed(
        &self,
        now: Option<i128>,
        thinned: bool,
        strict: bool,
        findings: &mut Vec<Finding>,
    ) {
        let left = |question: &Question| {
            !question.followed && matches!(question.outcome, Outcome::Open | Outcome::Rejected)
        };
        if self.open.iter().any(left) {
            findings.push(FOLLOW_UP.at("", "nothing says what became of the confirmation"));
        }
        let unused = |question: &Question| {
            question.outcome == Outcome::Accepted
                && !question.invoked_since
                && !question.dropped_since
        };
        if !thinned && self.open.iter().any(unused) {
            findings.push(ACCEPTED_UNUSED.at("", "an accepted confirmation led to no tool"));
        }
        if let (true, Some(now)) = (strict, now) {
            let open = self.open.iter().filter(|question| question.outcome == Outcome::Open);
            findings.extend(open.filter_map(|question| question.countdown(now)).take(1));
        }
    }
}

impl Question {
    /// Whether its time was over by then.
    fn is_over(&self, now: Option<i128>, grace: i128) -> bool {
        matches!((now, self.deadline), (Some(now), Some(deadline)) if now > deadline + grace)
    }

    /// A long wait came to most of its time without a word.
    fn countdown(&self, now: i128) -> Option<Finding> {
        let (asked, deadline) = (self.asked?, self.deadline?);
        let whole = deadline - asked;
        let long = whole > 60_000_000_000 && now - asked >= whole * 6 / 10;
        (long && !self.progress_since).then(|| {
            COUNTDOWN.at("", format!("nothing told that the time for {} ran out", self.name()))
        })
    }

    fn name(&self) -> Cow<'_, str> {
        if self.token.is_empty() {
            Cow::Borrowed("the question")
        } else {
            Cow::Owned(quote(&self.token))
        }
    }
}
