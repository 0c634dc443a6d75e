//! What counts as an answer to which question.

use super::*;
use banister_events::activity::{Ask, Choice, Context, ResponseKind};
use banister_journal::Source;
use serde_json::Number;

use crate::asks::AskDraft;

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
    room.gateway.history.commit(vec![draft.into()], Durability::Synced).await.unwrap();
    id
}

async fn give(room: &Room, ask: &str, answer: PersonAnswer) -> Result<CloseFact, Refused> {
    let request = AnswerRequest { answer, ..reply(true) };
    room.gateway.desk.answer(ask, &request).await
}

#[tokio::test]
async fn a_question_takes_what_its_kinds_say_and_nothing_else() {
    let room = room();
    let number = |number: i64| PersonAnswer::Number(Number::from(number));
    let text = |text: &str| PersonAnswer::Text(text.to_owned());
    let choice = |name: &str| PersonAnswer::Choice(name.to_owned());
    for (kinds, said, counts) in [
        (vec![], text("blue"), Some(json!("blue"))),
        (vec![], text(""), None),
        (vec![], PersonAnswer::Yes, None),
        (vec![], number(3), None),
        (vec![ResponseKind::YesNo], PersonAnswer::Yes, Some(json!(true))),
        (vec![ResponseKind::YesNo], PersonAnswer::Accept, Some(json!(true))),
        (vec![ResponseKind::YesNo], PersonAnswer::No, Some(json!(false))),
        (vec![ResponseKind::YesNo], text("maybe"), None),
        (vec![ResponseKind::Numeric], number(-3), Some(json!(-3))),
        (vec![ResponseKind::Numeric], text("3"), None),
        (vec![ResponseKind::MultipleChoice], choice("eu"), Some(json!("eu"))),
        (vec![ResponseKind::MultipleChoice], choice("america"), Some(json!("us"))),
        (vec![ResponseKind::MultipleChoice], text("eu"), Some(json!("eu"))),
        (vec![ResponseKind::MultipleChoice], choice("asia"), None),
        (vec![ResponseKind::MultipleChoice], PersonAnswer::No, None),
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
    let wrong = give(&room, &ask, PersonAnswer::Yes).await.unwrap_err().to_string();
    for word in ["eu, us", "a number", "reject"] {
        assert!(wrong.contains(word), "{wrong}");
    }
    let fact = give(&room, &ask, PersonAnswer::Reject).await.unwrap();
    assert_eq!((fact.outcome, fact.response), (Outcome::Rejected, None));
}

#[tokio::test]
async fn a_confirmation_takes_yes_and_no() {
    let room = room();
    for (said, outcome) in
        [(PersonAnswer::Yes, Outcome::Accepted), (PersonAnswer::No, Outcome::Rejected)]
    {
        let ask = room.gateway.accept(&incoming(None, "git push")).await.unwrap().ask.unwrap();
        let text = give(&room, &ask, PersonAnswer::Text("perhaps".to_owned())).await.unwrap_err();
        assert!(text.to_string().contains("accept or reject"), "{text}");
        assert_eq!(give(&room, &ask, said).await.unwrap().outcome, outcome);
    }
}
