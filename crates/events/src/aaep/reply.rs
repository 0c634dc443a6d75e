//! What a person answers: yes or no to a confirmation, something else to a clarification.
//!
//! Replies are no events: they have no envelope, and go from the subscriber to the producer. A reply names the
//! question by its token, which proves nothing about who sends it.
//!
//! A reply without `subscription_id` is decoded, although the schemas require one: subscribers that never shook hands
//! have none to give.

use serde_json::{Map, Number, Value};

use super::event::Decision;
use super::event::fields::{LABEL, SHORT, SUBSCRIPTION_ID, TEXT, TIME, TOKEN};
use crate::check::shape::{Kind, STRING};
use crate::record::record;

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
