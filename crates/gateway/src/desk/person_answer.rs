//! What a person answers to an ask that they name, and whether that is an answer to it.

use banister_events::activity::{self, AskKind, Choice, Outcome, ResponseKind};
use banister_events::agui::response_schema::ResponseSchema;
use banister_events::text;
use serde_json::{Number, Value};

use super::{Opened, Refused};
use crate::facts::CloseFact;

/// What a person answers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PersonAnswer {
    /// It may go on; to a question, yes.
    Accept,
    /// It must not; a question is not answered.
    Reject,
    /// Yes.
    Yes,
    /// No.
    No,
    /// One of the choices, by what it is called or by what people read.
    Choice(String),
    /// A number.
    Number(Number),
    /// A text.
    Text(String),
}

/// An answer by a person who names the ask, and where it comes from.
#[derive(Debug, Clone)]
pub(crate) struct AnswerRequest {
    /// The answer.
    pub answer: PersonAnswer,
    /// A word to the agent.
    pub message: Option<String>,
    /// The door it came through.
    pub door: &'static str,
    /// The id of the key it came with.
    pub key: String,
    /// The digest of the action the person saw, if it is known: an answer to anything else does not count.
    pub digest: Option<String>,
}

#[cfg(test)]
impl AnswerRequest {
    /// A plain yes or no, from the command line.
    pub(crate) fn of(accept: bool, key: &str) -> Self {
        let answer = if accept { PersonAnswer::Accept } else { PersonAnswer::Reject };
        Self { answer, message: None, door: "cli", key: key.to_owned(), digest: None }
    }
}

impl PersonAnswer {
    /// The same in the words of the ask; a refusal that names what it takes, where it is no answer to it.
    pub(super) fn to(&self, opened: &Opened) -> Result<activity::Reply, Refused> {
        let wrong = || Refused::Wrong(takes(opened));
        if let Some(schema) = opened.response_schema() {
            return self.payload(ResponseSchema::new(schema));
        }
        let AskKind::Clarification { kinds, choices, .. } = &opened.ask.kind else {
            return match self {
                Self::Accept | Self::Yes => Ok(activity::Reply::Accept { updated_input: None }),
                Self::Reject | Self::No => Ok(activity::Reply::Reject),
                _ => Err(wrong()),
            };
        };
        let takes = |kind: ResponseKind| {
            kinds.contains(&kind) || kinds.is_empty() && kind == ResponseKind::Freetext
        };
        let response = match self {
            Self::Reject => return Ok(activity::Reply::Reject),
            Self::Accept | Self::Yes if takes(ResponseKind::YesNo) => Value::Bool(true),
            Self::No if takes(ResponseKind::YesNo) => Value::Bool(false),
            Self::Number(number) if takes(ResponseKind::Numeric) => Value::Number(number.clone()),
            Self::Choice(name) if takes(ResponseKind::MultipleChoice) => {
                Value::String(chosen(choices, name).ok_or_else(wrong)?)
            }
            Self::Text(said) if takes(ResponseKind::Freetext) && !said.is_empty() => {
                Value::String(said.clone())
            }
            Self::Text(said) if takes(ResponseKind::MultipleChoice) => {
                Value::String(chosen(choices, said).ok_or_else(wrong)?)
            }
            _ => return Err(wrong()),
        };
        Ok(activity::Reply::Respond { response })
    }
}

impl PersonAnswer {
    /// The answer as a schema has it.
    fn payload(&self, schema: ResponseSchema<'_>) -> Result<activity::Reply, Refused> {
        let wrong = || Refused::Wrong(format!("{}; or reject", schema.takes()));
        let pair = schema.yes_no();
        let payload = match self {
            Self::Reject => return Ok(activity::Reply::Reject),
            Self::Accept | Self::Yes if pair.is_some() => {
                return Ok(activity::Reply::Accept { updated_input: None });
            }
            Self::No if pair.is_some() => return Ok(activity::Reply::Reject),
            Self::Accept | Self::Yes | Self::No => None,
            Self::Choice(text) | Self::Text(text) => schema.payload(text),
            Self::Number(number) => schema.payload(&number.to_string()),
        };
        let payload = payload.ok_or_else(wrong)?;
        Ok(match pair {
            Some((yes, _)) if yes == payload => activity::Reply::Accept { updated_input: None },
            Some((_, no)) if no == payload => activity::Reply::Reject,
            _ => activity::Reply::Respond { response: payload },
        })
    }
}

/// How a protocol's reply closes an ask whose answer has to fit a schema.
pub(super) fn fitting(opened: &Opened, answer: &activity::Answer) -> Result<CloseFact, Refused> {
    let Some(schema) = opened.response_schema().map(ResponseSchema::new) else {
        return Err(Refused::Unfit);
    };
    let wrong = || Refused::Wrong(format!("{}; or reject", schema.takes()));
    let (outcome, response) = match &answer.reply {
        activity::Reply::Accept { updated_input: None } => match schema.yes_no() {
            Some(_) => (Outcome::Accepted, None),
            None => return Err(wrong()),
        },
        // A yes to something else than what was asked is a no.
        activity::Reply::Accept { .. } | activity::Reply::Reject | activity::Reply::Withdraw => {
            (Outcome::Rejected, None)
        }
        activity::Reply::Respond { response } if schema.fits(response).is_ok() => {
            (Outcome::Accepted, Some(response.clone()))
        }
        activity::Reply::Respond { response } => {
            let text = response.as_str().ok_or_else(wrong)?;
            (Outcome::Accepted, Some(schema.payload(text).ok_or_else(wrong)?))
        }
    };
    let is_no = |value: &Value| schema.yes_no().is_some_and(|(_, no)| no == *value);
    let refuses = response.as_ref().is_some_and(is_no);
    let outcome = if refuses { Outcome::Rejected } else { outcome };
    let message = answer.message.clone();
    let fact = CloseFact::new(&opened.ask.id, outcome, "user");
    Ok(CloseFact { message, response: response.filter(|_| !refuses), ..fact })
}

/// The value of a choice: by itself, else by its label.
fn chosen(choices: &[Choice], name: &str) -> Option<String> {
    let by_value = choices.iter().find(|choice| choice.value == name);
    let mut by_label =
        choices.iter().filter(|choice| choice.label.to_lowercase() == name.to_lowercase());
    by_value.or_else(|| by_label.next()).map(|choice| choice.value.clone())
}

/// What counts as an answer, for people.
fn takes(opened: &Opened) -> String {
    if opened.handoff.is_some() {
        return "accept when it is done, reject when nobody takes it".to_owned();
    }
    let AskKind::Clarification { kinds, choices, .. } = &opened.ask.kind else {
        return "accept or reject".to_owned();
    };
    let has = |kind: ResponseKind| kinds.contains(&kind);
    let mut ways = Vec::new();
    if has(ResponseKind::YesNo) {
        ways.push("yes or no".to_owned());
    }
    if has(ResponseKind::MultipleChoice) {
        let names: Vec<String> =
            choices.iter().map(|choice| text::one_line(&choice.value)).collect();
        ways.push(format!("one of the choices ({})", names.join(", ")));
    }
    if has(ResponseKind::Numeric) {
        ways.push("a number".to_owned());
    }
    if has(ResponseKind::Freetext) || kinds.is_empty() {
        ways.push("a text".to_owned());
    }
    format!("{}; or reject, which answers nothing", ways.join(", "))
}
