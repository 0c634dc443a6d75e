//! `banister answer`: say something to what is waiting.

use banister_client::{Answer, AnswerContent, Decision, Error, Remember};
use banister_events::text::one_line;
use clap::{ArgGroup, Args};
use serde_json::{Number, Value};

use crate::data_dir::{DataDir, block_on};
use crate::failure::{Failure, GOOD, REFUSED};
use crate::print;

#[derive(Debug, Args)]
#[command(
    group(ArgGroup::new("answer_content").required(true)),
    override_usage = "banister answer [OPTIONS] <ASK> <ANSWER|--yes|--no|--choice <NAME>|--number <NUMBER>|--text <TEXT>>"
)]
pub(crate) struct AnswerArgs {
    /// The ask, by its id or the beginning of it
    ask: String,
    /// accept, reject, or the answer to a question in words
    #[arg(value_name = "ANSWER", group = "answer_content")]
    words: Option<String>,
    /// Yes: the same as accept, and an answer to a question that takes yes or no
    #[arg(long, group = "answer_content")]
    yes: bool,
    /// No: the same as reject, and an answer to a question that takes yes or no
    #[arg(long, group = "answer_content")]
    no: bool,
    /// One of the choices of a question
    #[arg(long, value_name = "NAME", group = "answer_content")]
    choice: Option<String>,
    /// A number
    #[arg(long, value_name = "NUMBER", group = "answer_content", allow_negative_numbers = true)]
    number: Option<Number>,
    /// The answer to a question in words, also where those are accept or reject
    #[arg(long, value_name = "TEXT", group = "answer_content")]
    text: Option<String>,
    /// A message to the agent
    #[arg(long, short, value_name = "TEXT")]
    message: Option<String>,
    /// With a yes: grant the same action for 30 days
    #[arg(long, value_name = "WHERE", value_enum)]
    remember: Option<Where>,
    #[command(flatten)]
    data_dir: DataDir,
    /// Print JSON: {"schema", "ask", "outcome", "by"}
    #[arg(long)]
    json: bool,
}

/// Where a yes counts from now on.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Where {
    /// In this project
    Project,
    /// In this session
    Session,
    /// Everywhere
    Always,
}

impl AnswerArgs {
    fn content(&self) -> AnswerContent {
        let decision = match self.words.as_deref() {
            Some("accept") => Some(Decision::Accept),
            Some("reject") => Some(Decision::Reject),
            _ if self.yes => Some(Decision::Yes),
            _ if self.no => Some(Decision::No),
            _ => None,
        };
        let number = self.number.clone().map(AnswerContent::Number);
        let choice = self.choice.clone().map(AnswerContent::Choice);
        let text = self.text.as_ref().or(self.words.as_ref()).cloned().unwrap_or_default();
        decision
            .map(AnswerContent::Decision)
            .or(choice)
            .or(number)
            .unwrap_or(AnswerContent::Text(text))
    }
}

pub(crate) fn run(args: &AnswerArgs) -> anyhow::Result<u8> {
    let client = args.data_dir.client()?;
    let remember = args.remember.map(|scope| match scope {
        Where::Project => Remember::Project,
        Where::Session => Remember::Session,
        Where::Always => Remember::Always,
    });
    let answer = Answer { message: args.message.clone(), remember, ..Answer::new(args.content()) };
    let answered: Result<Value, Error> =
        block_on(async { Ok(client.answer(&args.ask, &answer).await) })?;
    match answered {
        Ok(answered) if args.json => print::say(&answered.to_string()),
        Ok(answered) => {
            print::tell(match answer.content {
                AnswerContent::Decision(Decision::Accept) => "Accepted. The agent continues.",
                AnswerContent::Decision(Decision::Reject) => "Rejected. The agent has been told.",
                _ => "Answered. The agent has been told.",
            });
            remembered(&answered);
        }
        Err(error) => return refused(error),
    }
    Ok(GOOD)
}

/// What became of the wish to remember it.
fn remembered(answered: &Value) {
    let text = |pointer: &str| answered.pointer(pointer).and_then(Value::as_str);
    if let Some((covers, until)) = text("/grant/covers").zip(text("/grant/until")) {
        let id = text("/grant/id").unwrap_or_default();
        print::tell(&format!("Remembered until {until}: {}", one_line(covers)));
        print::tell(&format!("To take it back: banister grants revoke {id}"));
    }
    if let Some(why) = text("/not_granted") {
        print::tell(&format!("Not remembered: {why}."));
    }
}

/// What did not count: told, with an exit code of its own.
pub(crate) fn refused(error: Error) -> anyhow::Result<u8> {
    match error {
        Error::TooLate { message } => {
            print::tell(&format!("Too late: {message}."));
            Ok(REFUSED)
        }
        Error::NotFound { .. } | Error::Status { status: 400..=499, .. } => {
            Err(Failure::refused(error.to_string()).into())
        }
        error => Err(error.into()),
    }
}
