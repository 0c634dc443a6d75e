use serde_json::json;

use super::*;
use crate::activity::{Action, Asks};
use crate::check;
use crate::event::Protocol;

fn ask(kind: AskKind) -> Ask {
    let action = Action { input: Some(json!({ "command": "ls" })), ..Action::unseen("a", "Bash") };
    Ask { action: Some(action), digest: "d".to_owned(), ..Ask::new("ask_1", "tok", kind) }
}

fn said(behavior: &str) -> Value {
    json!({ "request_event_id": "evt_1", "action_id": "a", "control": { "behavior": behavior } })
}

fn reply(response: &Value, ask: &Ask) -> Option<Reply> {
    answer(response, Some(ask)).map(|answer| answer.reply)
}

#[test]
fn each_behaviour_is_read_by_its_meaning() {
    let yes = Some(Reply::Accept { updated_input: None });
    let no = Some(Reply::Reject);
    let confirmation = ask(AskKind::Confirmation);
    let question = ask(AskKind::question("Which?"));
    for (behavior, to_action, to_question) in [
        ("allow", &yes, &yes),
        ("continue", &None, &yes),
        ("deny", &no, &no),
        ("block", &no, &no),
        ("stop", &no, &no),
        ("ask", &None, &None),
        ("defer", &None, &None),
        ("abstain", &None, &None),
        ("perhaps", &no, &no),
    ] {
        assert_eq!(reply(&said(behavior), &confirmation), *to_action, "{behavior}");
        assert_eq!(reply(&said(behavior), &question), *to_question, "{behavior}");
    }
    assert_eq!(answer(&said("continue"), None), None, "an action is not allowed by going on");
}

#[test]
fn a_yes_that_contradicts_itself_is_a_no() {
    let mut response = said("allow");
    response["decision"] = json!({ "outcome": "denied" });
    assert_eq!(reply(&response, &ask(AskKind::Confirmation)), Some(Reply::Reject));
}

#[test]
fn changed_input_counts_only_with_a_yes() {
    let mut response = said("allow");
    response["control"]["updated_input"] = json!({ "command": "ls -l" });
    let updated_input = Some(json!({ "command": "ls -l" }));
    let confirmation = ask(AskKind::Confirmation);
    assert_eq!(reply(&response, &confirmation), Some(Reply::Accept { updated_input }));
    response["control"]["behavior"] = json!("deny");
    assert_eq!(reply(&response, &confirmation), Some(Reply::Reject));
    response["control"] = json!({ "behavior": "allow", "updated_input": null });
    assert_eq!(reply(&response, &confirmation), Some(Reply::Accept { updated_input: None }));
}

#[test]
fn the_words_the_person_and_the_time_come_along() {
    let mut response = said("deny");
    response["time"] = json!("2026-01-31T12:00:00Z");
    response["control"]["message"] = json!("not now");
    response["decision"] = json!({ "outcome": "denied", "by": "ada", "feedback": "use the mock" });
    let answer = answer(&response, Some(&ask(AskKind::Confirmation))).unwrap();
    assert_eq!(answer.token, "tok");
    assert_eq!(answer.by.as_deref(), Some("ada"));
    assert_eq!(answer.message.as_deref(), Some("not now\nuse the mock"));
    assert_eq!(answer.time, "2026-01-31T12:00:00Z".parse().ok());
}

#[test]
fn what_is_no_response_is_no_answer() {
    for junk in [
        json!(null),
        json!({}),
        json!({ "control": { "behavior": "allow" } }),
        json!({ "request_event_id": "e" }),
    ] {
        assert_eq!(answer(&junk, None), None, "{junk}");
    }
}

#[test]
fn an_answer_comes_back_from_the_response_that_tells_it() {
    let time: Timestamp = "2026-01-31T12:00:00Z".parse().unwrap();
    let replies = [
        Reply::Accept { updated_input: None },
        Reply::Accept { updated_input: Some(json!({ "command": "echo" })) },
        Reply::Reject,
    ];
    for reply in replies {
        let ask = ask(AskKind::Confirmation);
        let mut asks = Asks::default();
        asks.open(ask.clone());
        let said = Answer {
            token: "tok".to_owned(),
            reply,
            by: Some("user".to_owned()),
            message: Some("as you like".to_owned()),
            time: Some(time),
        };
        let closed = asks.answer(&said).unwrap();
        let sent = response(&ask, &closed, "evt_1", "rsp_1", time);
        assert_eq!(check::value(Protocol::Aep, &sent), []);
        assert_eq!(sent["extensions"]["x-banister"]["digest"], "d");
        assert_eq!(answer(&sent, Some(&ask)), Some(said));
    }
}

#[test]
fn a_response_says_yes_to_nothing_but_a_closed_ask() {
    let ask = ask(AskKind::Confirmation);
    let sent = response(
        &ask,
        &What::Notified { text: "yes".to_owned() },
        "evt_1",
        "rsp_1",
        Timestamp::UNIX_EPOCH,
    );
    assert_eq!(sent["control"]["behavior"], "deny");
}

#[test]
fn people_read_no_credentials_in_a_response() {
    let closed = What::AskClosed {
        id: "ask_1".to_owned(),
        action: None,
        outcome: Outcome::Accepted,
        by: "user".to_owned(),
        message: Some("password=hunter2".to_owned()),
        response: None,
        updated_input: Some(json!({ "command": "login password=hunter2" })),
    };
    let sent =
        response(&ask(AskKind::Confirmation), &closed, "evt_1", "rsp_1", Timestamp::UNIX_EPOCH);
    assert_eq!(sent["control"]["message"], "[redacted]");
    assert_eq!(
        sent["control"]["updated_input"]["command"], "login password=hunter2",
        "this is what runs"
    );
}
