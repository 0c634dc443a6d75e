//! What counts as an answer to which question.

use super::*;
use banister_events::activity::{Choice, ResponseKind};
use serde_json::Number;

async fn question(room: &Room, kinds: &[ResponseKind]) -> String {
    let choice = |value: &str, label: &str| Choice { value: value.into(), label: label.into() };
    let kind = AskKind::Clarification {
        question: "Which one?".to_owned(),
        kinds: kinds.to_vec(),
        choices: vec![choice("eu", "Europe"), choice("us", "America")],
        context: None,
        default: None,
    };
    let now = room.clock.now();
    let id = format!("ask_{}", crate::random::token::<16>().unwrap());
    let token = format!("rpl_{}", crate::random::token::<16>().unwrap());
    let deadline = now.checked_add(Duration::from_mins(1)).ok();
    let ask = Ask { deadline, ..Ask::new(id.clone(), token, kind) };
    let source = Source {
        protocol: "banister".to_owned(),
        agent: "finch".to_owned(),
        door: "http".to_owned(),
        key: "agent".to_owned(),
    };
    let draft = AskDraft::of((ask, Context::default()), "s_1", source, now);
    let entry = draft.entry(&room.gateway.keeper);
    let expected = room.gateway.desk.expect(draft);
    let appended = room.gateway.journal.append(vec![entry], Durability::Synced).await.unwrap();
    let banister_journal::Appended::Recorded(records) = appended else { panic!("a duplicate") };
    expected.open(&records[0])
}

async fn give(room: &Room, ask: &str, said: Said) -> Result<CloseFact, Refused> {
    let given = Given { said, message: None, door: "cli", key: "person".to_owned(), digest: None };
    room.gateway.desk.give(ask, &given).await
}

#[tokio::test]
async fn a_question_takes_what_its_kinds_say_and_nothing_else() {
    let room = room();
    let number = |number: i64| Said::Number(Number::from(number));
    let text = |text: &str| Said::Text(text.to_owned());
    let choice = |name: &str| Said::Choice(name.to_owned());
    for (kinds, said, counts) in [
        (vec![], text("blue"), Some(json!("blue"))),
        (vec![], text(""), None),
        (vec![], Said::Yes, None),
        (vec![], number(3), None),
        (vec![ResponseKind::YesNo], Said::Yes, Some(json!(true))),
        (vec![ResponseKind::YesNo], Said::Accept, Some(json!(true))),
        (vec![ResponseKind::YesNo], Said::No, Some(json!(false))),
        (vec![ResponseKind::YesNo], text("maybe"), None),
        (vec![ResponseKind::Numeric], number(-3), Some(json!(-3))),
        (vec![ResponseKind::Numeric], text("3"), None),
        (vec![ResponseKind::MultipleChoice], choice("eu"), Some(json!("eu"))),
        (vec![ResponseKind::MultipleChoice], choice("america"), Some(json!("us"))),
        (vec![ResponseKind::MultipleChoice], text("eu"), Some(json!("eu"))),
        (vec![ResponseKind::MultipleChoice], choice("asia"), None),
        (vec![ResponseKind::MultipleChoice], Said::No, None),
        (vec![ResponseKind::Freetext], choice("eu"), None),
    ] {
        let ask = question(&room, &kinds).await;
        match (give(&room, &ask, said.clone()).await, counts) {
            (Ok(fact), Some(response)) => {
                assert_eq!((fact.outcome, fact.response), (Outcome::Accepted, Some(response)));
            }
            (Err(Refused::Wrong(takes)), None) => {
                assert!(!takes.is_empty());
                assert!(room.gateway.desk.closed(&ask).is_none(), "it is still open");
            }
            (other, _) => panic!("{kinds:?} {said:?}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_question_can_be_left_unanswered_and_what_it_takes_is_named() {
    let room = room();
    let ask = question(&room, &[ResponseKind::MultipleChoice, ResponseKind::Numeric]).await;
    let wrong = give(&room, &ask, Said::Yes).await.unwrap_err().to_string();
    for word in ["eu, us", "a number", "reject"] {
        assert!(wrong.contains(word), "{wrong}");
    }
    let fact = give(&room, &ask, Said::Reject).await.unwrap();
    assert_eq!((fact.outcome, fact.response), (Outcome::Rejected, None));
}

#[tokio::test]
async fn a_confirmation_takes_yes_and_no() {
    let room = room();
    for (said, outcome) in [(Said::Yes, Outcome::Accepted), (Said::No, Outcome::Rejected)] {
        let ask = room.gateway.accept(&incoming(None, "git push")).await.unwrap().ask.unwrap();
        let text = give(&room, &ask, Said::Text("perhaps".to_owned())).await.unwrap_err();
        assert!(text.to_string().contains("accept or reject"), "{text}");
        assert_eq!(give(&room, &ask, said).await.unwrap().outcome, outcome);
    }
}
