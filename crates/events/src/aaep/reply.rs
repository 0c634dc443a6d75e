//! What a person answers: yes or no to a confirmation, something else to a clarification.
//!
//! Replies are no events: they have no envelope, and go from the subscriber to the producer. A reply names the
//! question by its token, which proves nothing about who sends it.
//!
//! A reply without `subscription_id` is decoded, although the schemas require one: subscribers that never shook hands
//! have none to give.

use jiff::Timestamp;
use serde_json::{Map, Number, Value};

use super::event::Decision;
use super::event::fields::{LABEL, SHORT, SUBSCRIPTION_ID, TEXT, TIME, TOKEN, is_id};
use crate::activity::{Answer, Ask, AskKind, Reply};
use crate::check::shape::{Kind, STRING};
use crate::event::time_text;
use crate::limits::{AAEP_TERSE_CHARS, AAEP_TEXT_CHARS};
use crate::record::record;
use crate::{id, text};

/// Text, yes or no, or a number.
const RESPONSE: Kind =
    Kind::Either(&[TEXT, Kind::Bool, Kind::Number { min: f64::MIN, max: f64::MAX }]);

record! {
    /// A yes or no to what an agent wants to do.
    ///
    /// ```
    /// use banister_events::aaep::event::Decision;
    /// use banister_events::aaep::reply::ConfirmationReply;
    /// let reply: ConfirmationReply = serde_json::from_str(r#"{"type": "confirmation.reply", "reply_token": "rpl_1",
    ///     "decision": "reject", "subscription_id": "sub_1", "timestamp": "2026-01-31T12:00:00Z"}"#)?;
    /// assert_eq!(reply.decision, Decision::Reject);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub strict ConfirmationReply = "confirmation.reply" {
        /// The token of the question, as it came.
        must reply_token: String = TOKEN,
        /// Yes or no. A reader takes any other word for a no.
        must decision: Decision = Kind::Word(Decision::WORDS),
        /// The subscription that answers. Required, yet nobody has one where there was no handshake.
        may subscription_id: String = SUBSCRIPTION_ID,
        /// When the person decided.
        must timestamp: String = TIME,
        /// Who decided: `user:`, `auto:` or `system:` and a name.
        may decided_by: String = LABEL,
        /// Why.
        may decision_rationale: String = SHORT,
        /// What to do instead. A producer that cannot do so takes the reply for a no.
        may modified_action: Map<String, Value> = Kind::Object,
        /// Joins the reply to what other systems recorded.
        may correlation_id: String = STRING,
    }

    /// An answer to what an agent asked.
    pub strict ClarificationReply = "clarification.reply" {
        /// The token of the question, as it came.
        must reply_token: String = TOKEN,
        /// The answer: text, yes or no, or a number.
        must response: Value = RESPONSE,
        /// The subscription that answers. Required, yet nobody has one where there was no handshake.
        may subscription_id: String = SUBSCRIPTION_ID,
        /// When the person answered.
        must timestamp: String = TIME,
        /// Who answered: `user:`, `auto:` or `system:` and a name.
        may decided_by: String = LABEL,
        /// How sure the answer was understood, from 0 to 1.
        may confidence: Number = Kind::Number { min: 0.0, max: 1.0 },
        /// Joins the reply to what other systems recorded.
        may correlation_id: String = STRING,
    }
}

/// What a reply says, if it is one that can be read. Any decision but `accept` is a no.
///
/// ```
/// use banister_events::aaep::reply;
/// use banister_events::activity::Reply;
/// let message = serde_json::json!({"type": "confirmation.reply", "reply_token": "rpl_1", "decision": "maybe",
///     "subscription_id": "sub_1", "timestamp": "2026-01-31T12:00:00Z"});
/// assert_eq!(reply::answer(&message).unwrap().reply, Reply::Reject);
/// ```
pub fn answer(message: &Value) -> Option<Answer> {
    match message.get("type")?.as_str()? {
        "confirmation.reply" => {
            let reply: ConfirmationReply = serde_json::from_value(message.clone()).ok()?;
            let updated_input = reply.modified_action.map(Value::Object);
            Some(Answer {
                token: reply.reply_token,
                reply: match reply.decision {
                    Decision::Accept => Reply::Accept { updated_input },
                    Decision::Reject | Decision::Other(_) => Reply::Reject,
                },
                by: reply.decided_by,
                message: reply.decision_rationale,
                time: Some(reply.timestamp.parse().ok()?),
            })
        }
        "clarification.reply" => {
            let reply: ClarificationReply = serde_json::from_value(message.clone()).ok()?;
            is_response(&reply.response).then_some(())?;
            Some(Answer {
                token: reply.reply_token,
                reply: Reply::Respond { response: reply.response },
                by: reply.decided_by,
                message: None,
                time: Some(reply.timestamp.parse().ok()?),
            })
        }
        _ => None,
    }
}

/// The reply that gives an answer; `None` where AAEP cannot say it. `time` counts where the answer has none.
///
/// A yes with another input is never written as a plain yes.
pub fn write(
    ask: &Ask,
    answer: &Answer,
    subscription: Option<&str>,
    time: Timestamp,
) -> Option<Value> {
    let confirms = matches!(ask.kind, AskKind::Confirmation | AskKind::Plan { .. });
    let reply_token = id::conform("rpl_", &ask.token);
    let subscription_id =
        subscription.filter(|subscription| is_id("sub_", subscription)).map(str::to_owned);
    let timestamp = time_text(answer.time.unwrap_or(time));
    let shown = |words: &Option<String>, limit| {
        let shown = text::for_people(words.as_deref()?, limit);
        (!shown.is_empty()).then_some(shown)
    };
    let decided_by = shown(&answer.by, 256);
    if !confirms {
        let Reply::Respond { response } = &answer.reply else { return None };
        is_response(response).then_some(())?;
        return serde_json::to_value(ClarificationReply {
            reply_token,
            response: response.clone(),
            subscription_id,
            timestamp,
            decided_by,
            confidence: None,
            correlation_id: None,
            unknown: Map::new(),
        })
        .ok();
    }
    let (decision, modified_action) = match &answer.reply {
        Reply::Accept { updated_input: None } => (Decision::Accept, None),
        Reply::Accept { updated_input: Some(Value::Object(input)) } => {
            (Decision::Accept, Some(input.clone()))
        }
        Reply::Reject => (Decision::Reject, None),
        Reply::Accept { .. } | Reply::Respond { .. } | Reply::Withdraw => return None,
    };
    serde_json::to_value(ConfirmationReply {
        reply_token,
        decision,
        subscription_id,
        timestamp,
        decided_by,
        decision_rationale: shown(&answer.message, AAEP_TERSE_CHARS),
        modified_action,
        correlation_id: None,
        unknown: Map::new(),
    })
    .ok()
}

/// Whether this can be the answer to a question.
fn is_response(response: &Value) -> bool {
    match response {
        Value::String(text) => !text.is_empty() && text.chars().nth(AAEP_TEXT_CHARS).is_none(),
        Value::Bool(_) | Value::Number(_) => true,
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

#[cfg(test)]
#[path = "reply_tests.rs"]
mod tests;
