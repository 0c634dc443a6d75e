//! How runs and subagents end, what they wait for, and what they used.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::declare::{Union, member, object, union};
use super::kinds::{COUNT, list};
use crate::check::shape::{Kind, STRING};
use crate::record::Record;

pub(super) const OUTCOME: Kind = Outcome::KIND;
pub(super) const SUBAGENT_OUTCOME: Kind = SubagentOutcome::KIND;
pub(super) const USAGES: Kind = list(&Kind::Record(&Usage::SHAPE));

member! {
    /// A run did what it should.
    pub Success {
        /// The calls of this run that the application has to answer, in their order.
        may pending_tool_call_ids as "pendingToolCallIds": Vec<String> = list(&STRING),
    }

    /// A run waits for answers.
    pub Interrupted {
        /// What it waits for, at least one.
        must interrupts: Vec<Interrupt> = Kind::List {
            min: 1,
            max: usize::MAX,
            distinct: false,
            item: &Kind::Record(&Interrupt::SHAPE),
        },
    }

    /// A subagent waits for answers.
    pub Suspended {
        /// The interrupts that it waits for.
        may interrupt_ids as "interruptIds": Vec<String> = list(&STRING),
    }

    /// An outcome of which there is no more to say.
    pub Plain {}
}

union! {
    /// How a run ended. No outcome at all is success.
    ///
    /// ```
    /// use banister_events::agui::event::{Interrupt, Interrupted, Outcome};
    /// let outcome = Outcome::Interrupt(Interrupted::new([Interrupt::new("int-1", "tool_call")]));
    /// assert_eq!(
    ///     serde_json::to_string(&outcome)?,
    ///     r#"{"type":"interrupt","interrupts":[{"id":"int-1","reason":"tool_call"}]}"#,
    /// );
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub closed Outcome by may "type" {
        /// It did what it should.
        Success(Success) = "success",
        /// It waits for answers.
        Interrupt(Interrupted) = "interrupt",
        /// It was stopped on purpose.
        Cancelled(Plain) = "cancelled",
    }

    /// How a subagent ended. No outcome at all is success.
    pub closed SubagentOutcome by may "type" {
        /// It did what it should.
        Success(Plain) = "success",
        /// It waits for answers, and may be started again under its id in a later run.
        Suspended(Suspended) = "suspended",
    }
}

object! {
    /// Something that a run waits for.
    pub Interrupt {
        /// The subagent that asks; the run's own agent where there is none.
        may subagent_run_id as "subagentRunId": String = STRING,
        /// Its id, never twice in a run.
        must id: String = STRING,
        /// Why it waits, in a word of the producer's own.
        must reason: String = STRING,
        /// What a person is asked.
        may message: String = STRING,
        /// The tool call that it is about.
        may tool_call_id as "toolCallId": String = STRING,
        /// The JSON Schema of an answer's payload.
        may response_schema as "responseSchema": Map<String, Value> = Kind::Object,
        /// Until when it can be answered; after that, it can only be cancelled.
        may expires_at as "expiresAt": String = STRING,
        /// What others add.
        may metadata: Map<String, Value> = Kind::Object,
    }

    /// What a run used of one model. A count that nobody reported is absent, which is not zero.
    pub Usage {
        /// Who offers the model.
        may provider: String = STRING,
        /// The model.
        may model: String = STRING,
        /// All tokens that went in.
        may input_tokens as "inputTokens": u64 = COUNT,
        /// All tokens that came out.
        may output_tokens as "outputTokens": u64 = COUNT,
        /// Both together.
        may total_tokens as "totalTokens": u64 = COUNT,
        /// Of those that came out, the ones spent on reasoning.
        may reasoning_tokens as "reasoningTokens": u64 = COUNT,
        /// Of those that went in, the ones out of a cache.
        may cached_input_tokens as "cachedInputTokens": u64 = COUNT,
        /// Of those that went in, the ones put into a cache.
        may cache_write_input_tokens as "cacheWriteInputTokens": u64 = COUNT,
    }
}

impl Interrupt {
    /// Whether it can no longer be answered, only cancelled. `now` is in milliseconds since 1970.
    ///
    /// A time without an offset is taken to be UTC. One that cannot be read never comes.
    ///
    /// ```
    /// use banister_events::agui::event::Interrupt;
    /// let mut interrupt = Interrupt::new("int-1", "tool_call");
    /// assert!(!interrupt.has_expired(i64::MAX));
    /// interrupt.expires_at = Some("1970-01-01T00:00:02Z".into());
    /// assert_eq!([1_999, 2_000].map(|now| interrupt.has_expired(now)), [false, true]);
    /// interrupt.expires_at = Some("tomorrow".into());
    /// assert!(!interrupt.has_expired(i64::MAX));
    /// ```
    pub fn has_expired(&self, now: i64) -> bool {
        let end = self.expires_at.as_deref().and_then(milliseconds);
        end.is_some_and(|end| end <= now)
    }
}

fn milliseconds(time: &str) -> Option<i64> {
    let time = time.parse::<jiff::Timestamp>().or_else(|_| {
        let civil = time.parse::<jiff::civil::DateTime>()?;
        jiff::tz::TimeZone::UTC.to_timestamp(civil)
    });
    Some(time.ok()?.as_millisecond())
}

impl Usage {
    /// One entry per provider and model, in the order in which they first appear, with the sums of their counts.
    ///
    /// A count that no entry reports stays absent, and fields that are not known have no sum.
    ///
    /// ```
    /// use banister_events::agui::event::Usage;
    /// let used = |model: &str, input_tokens| Usage {
    ///     model: Some(model.into()),
    ///     input_tokens,
    ///     ..Usage::default()
    /// };
    /// let all = [used("small", Some(1)), used("large", None), used("small", Some(2))];
    /// assert_eq!(Usage::aggregate(&all), [used("small", Some(3)), used("large", None)]);
    /// ```
    pub fn aggregate<'a>(entries: impl IntoIterator<Item = &'a Self>) -> Vec<Self> {
        let mut sums: Vec<Self> = Vec::new();
        let mut places = HashMap::new();
        for entry in entries {
            let place = *places.entry((&entry.provider, &entry.model)).or_insert(sums.len());
            if let Some(sum) = sums.get_mut(place) {
                sum.add(entry);
            } else {
                sums.push(Self { unknown: Map::new(), ..entry.clone() });
            }
        }
        sums
    }

    fn add(&mut self, other: &Self) {
        for (sum, count) in [
            (&mut self.input_tokens, other.input_tokens),
            (&mut self.output_tokens, other.output_tokens),
            (&mut self.total_tokens, other.total_tokens),
            (&mut self.reasoning_tokens, other.reasoning_tokens),
            (&mut self.cached_input_tokens, other.cached_input_tokens),
            (&mut self.cache_write_input_tokens, other.cache_write_input_tokens),
        ] {
            *sum = match (*sum, count) {
                (Some(one), Some(other)) => Some(one.saturating_add(other)),
                (one, other) => one.or(other),
            };
        }
    }
}
