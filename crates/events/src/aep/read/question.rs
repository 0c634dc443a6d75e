//! Questions and their answers.

use serde_json::Value;

use super::ask::Over;
use super::{Moment, Reader, action, content};
use crate::activity::{Answer, Ask, AskKind, Choice, Outcome, Reply, ResponseKind, Status, What};

/// How many choices a question may have.
const CHOICES: usize = 32;

impl Reader {
    pub(super) fn asked(&mut self, moment: Moment<'_>, out: &mut Vec<What>) {
        let event = moment.event;
        let named = action(event);
        if named.as_ref().is_some_and(|action| self.book.is_stopped(&action.id)) {
            return;
        }
        // The request knows the input, the question mostly does not.
        let action = named.map(|named| match self.book.action(&named.id) {
            Some(known) if named.input.is_none() => known.clone(),
            _ => named,
        });
        let id = moment.id();
        if let Some(ask) = moment.trusted::<Ask>("ask") {
            self.open(Ask { action, ..ask }, id, out);
            return;
        }
        let input = action.as_ref().and_then(|action| action.input.as_ref());
        let Some(kind) = question(content(event, &["question"]), input) else {
            out.push(moment.raw("question.asked"));
            return;
        };
        let ask = Ask { action, ..Ask::new(moment.ask_id(&id), id.clone(), kind) };
        self.open(ask, id, out);
    }

    pub(super) fn answered(&mut self, moment: Moment<'_>, out: &mut Vec<What>) {
        let event = moment.event;
        let named = event.text("/action/id");
        let named = named.as_deref();
        let token = match (moment.trusted::<String>("asked"), named) {
            (Some(ask), _) => {
                self.book.asks.iter().find(|open| open.id == ask).map(|open| open.token.clone())
            }
            (None, named) => self
                .book
                .told
                .newest(|told| {
                    told.question && (named.is_none() || told.action.as_deref() == named)
                })
                .map(|(token, _)| token.to_owned()),
        };
        let Some(token) = token else {
            // The end of the question's action has told it.
            if !named.is_some_and(|id| self.book.is_over(id, Over::Answered)) {
                out.push(moment.raw("question.answered"));
            }
            return;
        };
        let said = content(event, &["answer"]).unwrap_or_default();
        let answer = Answer {
            token: token.clone(),
            reply: Reply::Respond {
                response: moment.trusted("response").unwrap_or(Value::String(said)),
            },
            by: event.owned("/decision/by"),
            message: event.owned("/decision/reason"),
            time: super::time(event),
        };
        if let Ok(closed) = self.book.asks.answer(&answer) {
            self.book.told.remove(&token);
            if let Some(id) = named {
                self.book.set_over(id, Over::Answered);
            }
            out.push(closed);
        }
    }

    /// The end of an action closes the question that it was.
    pub(super) fn question_over(&mut self, end: &What, moment: Moment<'_>, out: &mut Vec<What>) {
        let What::ActionEnded { id, status, output, .. } = end else { return };
        self.action_over(id);
        let answer = output.as_ref().and_then(answer_in);
        match (status, answer) {
            (Status::Success, Some(answer)) => {
                let Some(token) = self.question_of(id) else { return };
                let reply = Reply::Respond { response: Value::String(answer) };
                let time = super::time(moment.event);
                let answer = Answer { token, reply, by: None, message: None, time };
                match self.book.asks.answer(&answer) {
                    Ok(closed) => {
                        self.book.told.remove(&answer.token);
                        self.book.set_over(id, Over::Answered);
                        out.push(closed);
                    }
                    Err(_) => self.close_question(id, Outcome::Accepted, out),
                }
            }
            (Status::Success, None) => self.close_question(id, Outcome::Accepted, out),
            _ => self.close_question(id, Outcome::Withdrawn, out),
        }
    }

    /// Closes the question of an action, if it is open.
    pub(super) fn close_question(&mut self, action: &str, outcome: Outcome, out: &mut Vec<What>) {
        if let Some(token) = self.question_of(action) {
            let by = if outcome == Outcome::Accepted { "user" } else { "agent" };
            out.extend(self.book.close(&token, outcome, by));
            self.book.set_over(action, Over::Answered);
        }
    }

    fn question_of(&self, action: &str) -> Option<String> {
        let found =
            self.book.told.newest(|told| told.question && told.action.as_deref() == Some(action));
        found.map(|(token, _)| token.to_owned())
    }
}

/// What is asked: in the words of the event, with the choices that the tool's input has.
fn question(said: Option<String>, input: Option<&Value>) -> Option<AskKind> {
    let entries: &[Value] = match input.and_then(|input| input.get("questions")) {
        Some(Value::Array(entries)) => entries,
        _ => input.map(std::slice::from_ref).unwrap_or_default(),
    };
    let asks = |entry: &Value| {
        let words = word(entry, "question").or_else(|| word(entry, "prompt"));
        words.map(str::to_owned)
    };
    let entry = entries
        .iter()
        .find(|entry| said.is_some() && asks(entry) == said)
        .or_else(|| entries.first());
    let question = said.or_else(|| entry.and_then(asks))?;
    let options = entry.and_then(|entry| entry.get("options").or_else(|| entry.get("choices")));
    let choices: Vec<Choice> = options
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(choice)
        .take(CHOICES)
        .collect();
    // People may always answer in words of their own: the tools that ask let them.
    let kinds = if choices.is_empty() {
        Vec::new()
    } else {
        vec![ResponseKind::MultipleChoice, ResponseKind::Freetext]
    };
    let others: Vec<String> =
        entries.iter().filter_map(asks).filter(|it| *it != question).collect();
    let context = (!others.is_empty()).then(|| others.join("\n"));
    Some(AskKind::Clarification { question, kinds, choices, context, default: None })
}

fn choice(option: &Value) -> Option<Choice> {
    let label =
        option.as_str().or_else(|| word(option, "label")).or_else(|| word(option, "value"))?;
    let value = word(option, "value").unwrap_or(label);
    Some(Choice { value: value.to_owned(), label: label.to_owned() })
}

fn word<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name)?.as_str()
}

/// The answer in what a tool that asks gives back, if it is one text.
fn answer_in(output: &Value) -> Option<String> {
    match output {
        Value::String(answer) => Some(answer.clone()),
        Value::Object(fields) => {
            let answers = fields.get("answers").or_else(|| fields.get("answer"))?;
            match answers {
                Value::Object(entries) if entries.len() == 1 => {
                    entries.values().next()?.as_str().map(str::to_owned)
                }
                Value::Array(entries) if entries.len() == 1 => {
                    entries.first()?.as_str().map(str::to_owned)
                }
                Value::String(answer) => Some(answer.clone()),
                _ => None,
            }
        }
        _ => None,
    }
    .filter(|answer| !answer.is_empty())
}
