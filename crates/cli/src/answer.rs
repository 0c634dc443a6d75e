//! `banister answer`: say yes or no to what is waiting.

use banister_client::{Answer, Decision, Error};
use clap::Args;
use serde_json::Value;

use crate::failure::{Failure, GOOD, REFUSED};
use crate::place::{Place, block_on};
use crate::print;

#[derive(Debug, Args)]
pub(crate) struct AnswerArgs {
    /// The ask, by its id or the beginning of it
    ask: String,
    /// accept or reject
    answer: String,
    /// A word to the agent
    #[arg(long, short, value_name = "TEXT")]
    message: Option<String>,
    #[command(flatten)]
    place: Place,
    /// Print JSON: {"schema", "ask", "outcome", "by"}
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &AnswerArgs) -> anyhow::Result<u8> {
    let decision = match args.answer.as_str() {
        "accept" => Decision::Accept,
        "reject" => Decision::Reject,
        other => {
            let message = format!("{other:?} is not an answer to this; say accept or reject");
            return Err(Failure::usage(message).into());
        }
    };
    let client = args.place.client()?;
    let answer = Answer { decision, message: args.message.clone() };
    let answered: Result<Value, Error> =
        block_on(async { Ok(client.answer(&args.ask, &answer).await) })?;
    match answered {
        Ok(answered) if args.json => print::say(&answered.to_string()),
        Ok(_) => print::tell(match decision {
            Decision::Accept => "Accepted. The agent goes on.",
            Decision::Reject => "Rejected. The agent has been told.",
        }),
        Err(Error::TooLate { message }) => {
            print::tell(&format!("Too late: {message}."));
            return Ok(REFUSED);
        }
        Err(error @ (Error::NotFound { .. } | Error::Status { status: 400..=499, .. })) => {
            return Err(Failure::refused(error.to_string()).into());
        }
        Err(error) => return Err(error.into()),
    }
    Ok(GOOD)
}
