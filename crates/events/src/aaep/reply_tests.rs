use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::activity::{Asks, Choice, ResponseKind};
use crate::check;
use crate::event::Protocol;

fn time() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

fn say(reply: Reply) -> Answer {
    Answer {
        token: "rpl_1".to_owned(),
        reply,
        by: Some("user:ada".to_owned()),
        message: None,
        time: Some(time()),
    }
}

fn confirmation() -> Ask {
    Ask::new("ask_1", "rpl_1", AskKind::Confirmation)
}

fn question() -> Ask {
    Ask::new(
        "ask_1",
        "rpl_1",
        AskKind::Clarification {
            question: "Which?".to_owned(),
            kinds: vec![ResponseKind::MultipleChoice, ResponseKind::YesNo, ResponseKind::Numeric],
            choices: vec![
                Choice { value: "a".to_owned(), label: "A".to_owned() },
                Choice { value: "b".to_owned(), label: "B".to_owned() },
            ],
            context: None,
            default: None,
        },
    )
}

#[test]
fn an_answer_is_written_and_read_again() {
    let mut noted = say(Reply::Reject);
    noted.message = Some("not today".to_owned());
    let pairs = [
        (confirmation(), say(Reply::Accept { updated_input: None })),
        (confirmation(), say(Reply::Accept { updated_input: Some(json!({ "command": "ls" })) })),
        (confirmation(), noted),
        (Ask::new("ask_1", "rpl_1", AskKind::Plan { text: "x".to_owned() }), say(Reply::Reject)),
        (question(), say(Reply::Respond { response: json!("a") })),
        (question(), say(Reply::Respond { response: json!(true) })),
        (question(), say(Reply::Respond { response: json!(3.5) })),
    ];
    for (ask, given) in pairs {
        let message = write(&ask, &given, Some("sub_1"), time()).unwrap();
        assert_eq!(check::value(Protocol::Aaep, &message), [], "{message}");
        let read = answer(&message).unwrap();
        assert_eq!(read, given, "{message}");
        let mut asks = Asks::default();
        asks.open(ask);
        assert!(asks.answer(&read).is_ok(), "{message}");
    }
}

#[test]
fn what_aaep_cannot_say_is_not_said_otherwise() {
    let changed = Reply::Accept { updated_input: Some(json!("ls")) };
    let unsaid = [
        (confirmation(), say(changed)),
        (confirmation(), say(Reply::Withdraw)),
        (confirmation(), say(Reply::Respond { response: json!("yes") })),
        (question(), say(Reply::Accept { updated_input: None })),
        (question(), say(Reply::Reject)),
        (question(), say(Reply::Respond { response: json!(["a"]) })),
        (question(), say(Reply::Respond { response: json!("") })),
    ];
    for (ask, given) in unsaid {
        assert_eq!(write(&ask, &given, None, time()), None, "{given:?}");
    }
}

#[test]
fn a_reply_that_cannot_be_dated_or_joined_is_none() {
    let good = json!({ "type": "confirmation.reply", "reply_token": "rpl_1", "decision": "accept",
        "timestamp": "2026-01-31T12:00:00Z" });
    assert!(answer(&good).is_some());
    for field in ["type", "reply_token", "decision", "timestamp"] {
        let mut without = good.clone();
        without.as_object_mut().unwrap().remove(field);
        assert_eq!(answer(&without), None, "{field}");
    }
    let mut undated = good.clone();
    undated["timestamp"] = json!("yesterday");
    assert_eq!(answer(&undated), None);
}

#[test]
fn a_token_of_another_shape_becomes_the_one_that_the_writer_gave() {
    let ask = Ask::new("ask_1", "int-1/7", AskKind::Confirmation);
    let message = write(&ask, &say(Reply::Reject), Some("nonsense"), time()).unwrap();
    assert_eq!(message["reply_token"], id::conform("rpl_", "int-1/7"));
    assert_eq!(message.get("subscription_id"), None);
}

proptest! {
    #[test]
    fn no_message_panics_and_only_accept_is_a_yes(decision in any::<String>(), token in any::<String>()) {
        let message = json!({ "type": "confirmation.reply", "reply_token": token, "decision": decision,
            "timestamp": "2026-01-31T12:00:00Z" });
        let yes = answer(&message).is_some_and(|it| matches!(it.reply, Reply::Accept { .. }));
        prop_assert_eq!(yes, decision == "accept");
    }
}
