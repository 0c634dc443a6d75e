//! What waits on a person, and how it is answered.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Action, Gate, What};

/// Who closes an ask whose time is extended: it is withdrawn, and asked again.
pub const EXTENSION: &str = "extension";

/// A question somebody waits on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ask {
    /// Banister's id of the ask.
    pub id: String,
    /// The single-use token an answer must name. What came from a protocol keeps the id it has there: the reply token,
    /// the interrupt's id, the id of the event that asked.
    pub token: String,
    /// What is asked.
    pub kind: AskKind,
    /// The action it is about, if it is about one.
    pub action: Option<Action>,
    /// What the gate found out about the action.
    pub gate: Option<Gate>,
    /// SHA-256 of the exact action, in hex.
    pub digest: String,
    /// When waiting ends; `None` where nobody said.
    pub deadline: Option<Timestamp>,
    /// The agent's own words about it. Shown as the agent's, never as ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
    /// Whether no answer counts as a yes. Only a source that said so; never for what is grave.
    #[serde(default)]
    pub defaults_to_accept: bool,
    /// The shape a front end's answer must have, as JSON Schema, where the source gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
}

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AskKind {
    /// May this action run?
    Confirmation,
    /// A question with an answer in words.
    Clarification {
        /// The question.
        question: String,
        /// What an answer may be; free text where nothing is named.
        #[serde(default)]
        kinds: Vec<ResponseKind>,
        /// What can be chosen from.
        #[serde(default)]
        choices: Vec<Choice>,
        /// Why it is asked.
        #[serde(default)]
        context: Option<String>,
        /// What counts where nobody answers.
        #[serde(default)]
        default: Option<String>,
    },
    /// Is this plan good?
    Plan {
        /// The plan.
        text: String,
    },
}

impl AskKind {
    /// A question that takes any text.
    pub fn question(question: impl Into<String>) -> Self {
        Self::Clarification {
            question: question.into(),
            kinds: Vec::new(),
            choices: Vec::new(),
            context: None,
            default: None,
        }
    }
}

/// What an answer to a question may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResponseKind {
    /// Any text.
    Freetext,
    /// Yes or no.
    YesNo,
    /// One of the choices.
    MultipleChoice,
    /// A number.
    Numeric,
}

impl ResponseKind {
    /// The word on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Freetext => "freetext",
            Self::YesNo => "yes_no",
            Self::MultipleChoice => "multiple_choice",
            Self::Numeric => "numeric",
        }
    }

    /// Parses a word as [`ResponseKind::name`] gives it.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Freetext, Self::YesNo, Self::MultipleChoice, Self::Numeric]
            .into_iter()
            .find(|kind| kind.name() == word)
    }
}

/// One thing that can be chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// What an answer names.
    pub value: String,
    /// What a person reads.
    pub label: String,
}

/// How an ask closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It may go on.
    Accepted,
    /// It must not.
    Rejected,
    /// Nobody answered in time: the default, which is to reject.
    Expired,
    /// Nobody waits any more.
    Withdrawn,
}

/// What a person said to an ask, whichever protocol brought it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The ask's token.
    pub token: String,
    /// What was said.
    pub reply: Reply,
    /// Who said it: `user`, or what the source calls them.
    pub by: Option<String>,
    /// The words that came with it.
    pub message: Option<String>,
    /// When the person decided.
    pub time: Option<Timestamp>,
}

/// What was said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum Reply {
    /// Yes.
    Accept {
        /// But with this input.
        updated_input: Option<Value>,
    },
    /// No.
    Reject,
    /// The answer to a question.
    Respond {
        /// A text, a yes or no, a number.
        response: Value,
    },
    /// The question is not to be answered at all.
    Withdraw,
}

/// Why an answer does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// Nothing that is open has this token.
    #[error("nothing with this token waits for an answer")]
    Unknown,
    /// The deadline passed.
    #[error("the answer came after the deadline")]
    Late,
    /// The ask takes other answers.
    #[error("this is no answer to what was asked")]
    Mismatch,
}

/// The asks that are open, and how answers close them. First valid answer wins: it takes the ask out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Asks {
    /// Token → ask.
    open: BTreeMap<String, Ask>,
}

impl Asks {
    /// Takes an ask in. One under the same token is replaced.
    pub fn open(&mut self, ask: Ask) {
        self.open.insert(ask.token.clone(), ask);
    }

    /// The open ask with a token.
    pub fn get(&self, token: &str) -> Option<&Ask> {
        self.open.get(token)
    }

    /// All open asks.
    pub fn iter(&self) -> impl Iterator<Item = &Ask> {
        self.open.values()
    }

    /// Whether nothing is open.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Takes an ask out that was closed elsewhere.
    pub fn remove(&mut self, token: &str) -> Option<Ask> {
        self.open.remove(token)
    }

    /// Closes an ask with an answer, and says what happened. An answer that does not count changes nothing.
    ///
    /// ```
    /// use banister_events::activity::{Answer, Ask, AskKind, Asks, Refusal, Reply};
    /// let mut asks = Asks::default();
    /// asks.open(Ask { deadline: None, ..Ask::new("ask_1", "rpl_1", AskKind::Confirmation) });
    /// let answer = |reply| Answer { token: "rpl_1".into(), reply, by: None, message: None, time: None };
    /// let wrong = answer(Reply::Respond { response: "maybe".into() });
    /// assert_eq!(asks.answer(&wrong), Err(Refusal::Mismatch));
    /// assert!(asks.answer(&answer(Reply::Reject)).is_ok());
    /// assert_eq!(asks.answer(&answer(Reply::Reject)), Err(Refusal::Unknown), "the first one won");
    /// ```
    pub fn answer(&mut self, answer: &Answer) -> Result<What, Refusal> {
        let ask = self.open.get(&answer.token).ok_or(Refusal::Unknown)?;
        if let (Some(deadline), Some(time)) = (ask.deadline, answer.time)
            && time >= deadline
        {
            return Err(Refusal::Late);
        }
        let (outcome, response, updated_input) = match (&ask.kind, &answer.reply) {
            (_, Reply::Withdraw) => (Outcome::Withdrawn, None, None),
            (_, Reply::Reject) => (Outcome::Rejected, None, None),
            (AskKind::Confirmation | AskKind::Plan { .. }, Reply::Accept { updated_input }) => {
                (Outcome::Accepted, None, updated_input.clone())
            }
            (AskKind::Clarification { kinds, choices, .. }, Reply::Respond { response })
                if fits(kinds, choices, response) =>
            {
                (Outcome::Accepted, Some(response.clone()), None)
            }
            _ => return Err(Refusal::Mismatch),
        };
        let ask = self.open.remove(&answer.token).ok_or(Refusal::Unknown)?;
        Ok(What::AskClosed {
            id: ask.id,
            action: ask.action,
            outcome,
            by: answer.by.clone().unwrap_or_else(|| "user".to_owned()),
            message: answer.message.clone(),
            response,
            updated_input,
        })
    }
}

impl Ask {
    /// An ask of which no more is known than what it asks.
    pub fn new(id: impl Into<String>, token: impl Into<String>, kind: AskKind) -> Self {
        Self {
            id: id.into(),
            token: token.into(),
            kind,
            action: None,
            gate: None,
            digest: String::new(),
            deadline: None,
            words: None,
            defaults_to_accept: false,
            schema: None,
        }
    }
}

fn fits(kinds: &[ResponseKind], choices: &[Choice], response: &Value) -> bool {
    let fits = |kind: &ResponseKind| match kind {
        ResponseKind::Freetext => response.as_str().is_some_and(|text| !text.is_empty()),
        ResponseKind::YesNo => response.is_boolean(),
        ResponseKind::MultipleChoice => {
            response.as_str().is_some_and(|value| choices.iter().any(|it| it.value == value))
        }
        ResponseKind::Numeric => response.is_number(),
    };
    if kinds.is_empty() { fits(&ResponseKind::Freetext) } else { kinds.iter().any(fits) }
}
