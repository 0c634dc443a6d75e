use serde_json::{Map, json};

use super::*;
use crate::activity::{
    Action, ActionKind, Ask, AskKind, Decision, Ending, Gate, Outcome, Risk, Role, Status, Usage,
};
use crate::event::Protocol;

struct Teller {
    writer: Writer,
    seq: u64,
}

impl Teller {
    fn new(writer: Writer) -> Self {
        Self { writer, seq: 0 }
    }

    fn tell(&mut self, what: What) -> Vec<Value> {
        self.seq += 1;
        let time = jiff::Timestamp::from_second(i64::try_from(self.seq).unwrap()).unwrap();
        let origin = Origin { session: "s".into(), seq: self.seq, time };
        let context = Context { agent: "claude".to_owned(), ..Context::default() };
        self.writer.write(&Activity { origin, context: context.into(), what })
    }
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap_or("response")).collect()
}

fn end(id: &str, status: Status) -> What {
    What::ActionEnded {
        id: id.to_owned(),
        tool: "Bash".to_owned(),
        status,
        output: None,
        error: None,
        duration_ms: None,
    }
}

fn said(text: &str, last: bool) -> What {
    What::Said { message: "m".to_owned(), role: Role::Assistant, text: text.to_owned(), last }
}

fn gate(decision: Decision) -> Gate {
    Gate {
        decision,
        rule: "pack.rule".to_owned(),
        reason: "because".to_owned(),
        risk: Risk::High,
        irreversible: Some(true),
        opaque: None,
        safer: None,
    }
}

fn close(id: &str, action: Option<Action>, outcome: Outcome) -> What {
    What::AskClosed {
        id: id.to_owned(),
        action,
        outcome,
        by: "user".to_owned(),
        message: Some("use the mock".to_owned()),
        response: None,
        updated_input: None,
    }
}

#[test]
fn a_session_stays_with_the_agent_that_began_it() {
    let mut writer = Writer::default();
    let mut told = Vec::new();
    for (seq, agent) in ["seed", "", "weed"].into_iter().enumerate() {
        let seq = u64::try_from(seq).unwrap();
        let origin = Origin { session: "s".into(), seq, time: jiff::Timestamp::UNIX_EPOCH };
        let context = Context {
            agent: agent.to_owned(),
            agent_name: Some(agent.to_uppercase()),
            ..Context::default()
        };
        let what = end(&format!("a{seq}"), Status::Success);
        told.extend(writer.write(&Activity { origin, context: context.into(), what }));
    }
    assert!(told.iter().all(|event| event["agent"]["slug"] == "seed"), "{told:#?}");
    assert!(!told.iter().any(|event| event["agent"]["display_name"] == "WEED"), "{told:#?}");
}

#[test]
fn what_was_refused_and_ran_all_the_same_is_told_under_an_id_of_its_own() {
    let mut teller = Teller::new(Writer::default());
    let action = Action::unseen("a", "Bash");
    teller.tell(What::ActionDenied { action, by: "user".to_owned(), reason: None });
    assert!(teller.tell(end("a", Status::Failure)).is_empty(), "the refusal was its end");
    let events = teller.tell(end("a", Status::Success));
    assert_eq!(kinds(&events), ["action.requested", "action.completed"]);
    assert_ne!(events[1]["action"]["id"], "a");
    assert_eq!(events[1]["extensions"]["x-banister"]["action_id"], "a");
    assert_eq!(events[1]["extensions"]["x-banister"]["refused"], true);
}

#[test]
fn what_is_grave_and_ran_without_a_persons_yes_says_so() {
    let mut teller = Teller::new(Writer::default());
    let request = |id: &str| What::ActionRequested {
        action: Action::unseen(id, "Bash"),
        gate: Some(gate(Decision::Allow)),
    };
    assert_eq!(kinds(&teller.tell(request("a"))), ["action.requested", "response"]);
    let events = teller.tell(end("a", Status::Success));
    assert_eq!(events[0]["extensions"]["x-banister"]["unconfirmed"], true);
    teller.tell(request("b"));
    let action = Action::unseen("b", "Bash");
    let ask = Ask { action: Some(action.clone()), ..Ask::new("ask", "t", AskKind::Confirmation) };
    teller.tell(What::AskOpened { ask: Box::new(ask) });
    teller.tell(close("ask", Some(action), Outcome::Accepted));
    let events = teller.tell(end("b", Status::Success));
    assert_eq!(events[0].get("extensions"), None);
}

#[test]
fn pieces_are_told_at_once_and_the_whole_after_the_last() {
    let mut teller = Teller::new(Writer::default());
    assert_eq!(kinds(&teller.tell(said("All of it.", true))), ["model.response"]);
    let mut told = teller.tell(said("Do ", false));
    told.extend(teller.tell(said("it ", false)));
    told.extend(teller.tell(said("now", true)));
    assert_eq!(kinds(&told), ["model.delta", "model.delta", "model.response"]);
    assert_eq!(told[2]["content"][0]["text"], "Do it now");
    teller.tell(What::TurnStarted { request: None, summary: None });
    teller.tell(said("cut", false));
    let told = teller.writer.close();
    assert_eq!(kinds(&told), ["model.response", "agent.stop"]);
    assert_eq!(told[0]["content"][0]["text"], "cut");
    assert_eq!(told[1]["lifecycle"]["reason"], "truncated");
}

#[test]
fn a_credential_in_two_pieces_comes_through_in_none() {
    let mut teller = Teller::new(Writer::default());
    let mut told = Vec::new();
    for (piece, last) in
        [("my pass", false), ("word=hun", false), ("ter2 is", false), (" old", true)]
    {
        told.extend(teller.tell(said(piece, last)));
    }
    let text: String = told.iter().map(Value::to_string).collect();
    assert!(!text.contains("hun") && !text.contains("ter2"), "{text}");
    assert_eq!(told.last().unwrap()["content"][0]["text"], "my [redacted] is old");
    let (notes, _) = teller.writer.notes();
    assert!(notes.iter().any(|note| note.kind == NoteKind::Redacted));
}

#[test]
fn a_text_without_end_is_kept_to_its_bound() {
    let mut teller = Teller::new(Writer::default());
    let piece = "é".repeat(50_000);
    for _ in 0..4 {
        let told = teller.tell(said(&piece, false));
        assert!(told.iter().all(|event| event.to_string().len() < 300_000));
    }
    let told = teller.tell(said("end", true));
    let entry = &told.last().unwrap()["content"][0];
    assert_eq!(entry["text"].as_str().unwrap().len(), 256 * 1_024);
    assert_eq!((&entry["truncated"], &entry["original_length"]), (&json!(true), &json!(200_003)));
    assert!(serde_json::to_string(&teller.writer).unwrap().len() < 10_000, "nothing stays behind");
}

#[test]
fn secrets_leave_inputs_unless_the_reader_decides_about_them() {
    let action = Action {
        input: Some(
            json!({ "command": "curl -H 'Authorization: Bearer abc.def'", "password": "x" }),
        ),
        rationale: Some("password=hunter2".to_owned()),
        ..Action::unseen("a", "Bash")
    };
    let request = What::ActionRequested { action, gate: None };
    let told = Teller::new(Writer::default()).tell(request.clone());
    assert_eq!(
        told[0]["action"]["input"],
        json!({ "command": "curl -H '[redacted]'", "password": "[redacted]" })
    );
    let told = Teller::new(Writer::default().unredacted()).tell(request);
    assert_eq!(told[0]["action"]["input"]["password"], "x");
    assert_eq!(told[0]["action"]["rationale"], "[redacted]");
}

#[test]
fn ids_that_not_every_reader_takes_are_hashed_and_kept() {
    let mut teller = Teller::new(Writer::default());
    let action = Action::unseen("C:\\call 1", "Bash");
    let mut told = teller.tell(What::ActionRequested { action, gate: None });
    told.extend(teller.tell(end("C:\\call 1", Status::Success)));
    let id = told[0]["action"]["id"].as_str().unwrap().to_owned();
    assert!(id.starts_with("h_") && id.len() == 34, "{id}");
    for event in &told {
        assert_eq!(event["action"]["id"], id.as_str());
        assert_eq!(event["extensions"]["x-banister"]["ids"]["action.id"], "C:\\call 1");
    }
}

#[test]
fn an_ask_is_the_request_of_its_action_and_the_answer_its_response() {
    let mut teller = Teller::new(Writer::default());
    let action = Action { input: Some(json!({ "command": "ls" })), ..Action::unseen("a", "Bash") };
    let ask = Ask {
        action: Some(action.clone()),
        digest: "d1".to_owned(),
        ..Ask::new("ask_1", "t", AskKind::Confirmation)
    };
    let asked = teller.tell(What::AskOpened { ask: Box::new(ask) });
    assert_eq!(kinds(&asked), ["action.requested"]);
    assert_eq!(asked[0]["extensions"]["x-banister"]["digest"], "d1");
    let told = teller.tell(close("ask_1", Some(action), Outcome::Rejected));
    assert_eq!(kinds(&told), ["response", "action.denied"]);
    let mut response = told[0].clone();
    response.as_object_mut().unwrap().remove("id");
    let expected = json!({
        "aep_version": "0.1", "request_event_id": asked[0]["id"], "action_id": "a", "time": "1970-01-01T00:00:02.000Z",
        "control": { "behavior": "deny", "message": "use the mock" },
        "decision": {
            "outcome": "denied", "by": "user", "reason": "use the mock", "feedback": "use the mock",
            "time": "1970-01-01T00:00:02.000Z", "response_time_ms": 1_000,
        },
        "extensions": { "x-banister": { "digest": "d1" } },
    });
    assert_eq!(response, expected);
    let again = Action::unseen("a", "Bash");
    let denied = What::ActionDenied { action: again, by: "agent".to_owned(), reason: None };
    assert!(teller.tell(denied).is_empty(), "the refusal is told once");
}

#[test]
fn a_yes_may_change_the_input_and_a_question_has_an_answer() {
    let mut teller = Teller::new(Writer::default());
    let action = Action::unseen("a", "Bash");
    teller.tell(What::ActionRequested { action: action.clone(), gate: Some(gate(Decision::Ask)) });
    let ask = Ask { action: Some(action.clone()), ..Ask::new("ask_1", "t", AskKind::Confirmation) };
    assert!(teller.tell(What::AskOpened { ask: Box::new(ask) }).is_empty(), "it was requested");
    let mut yes = close("ask_1", Some(action), Outcome::Accepted);
    if let What::AskClosed { updated_input, .. } = &mut yes {
        *updated_input = Some(json!({ "command": "ls -l" }));
    }
    let told = teller.tell(yes);
    assert_eq!(told[0]["control"]["updated_input"], json!({ "command": "ls -l" }));

    let question = Ask::new("ask_2", "u", AskKind::question("Which?"));
    assert_eq!(
        kinds(&teller.tell(What::AskOpened { ask: Box::new(question.clone()) })),
        ["question.asked"]
    );
    let mut answer = close("ask_2", None, Outcome::Accepted);
    if let What::AskClosed { response, .. } = &mut answer {
        *response = Some(json!("eu"));
    }
    let told = teller.tell(answer);
    assert_eq!(kinds(&told), ["question.answered"]);
    assert_eq!(told[0]["content"], json!([{ "type": "answer", "text": "eu" }]));
    teller.tell(What::AskOpened { ask: Box::new(question) });
    let told = teller.tell(close("ask_2", None, Outcome::Rejected));
    assert_eq!(told[0]["control"]["behavior"], "abstain", "a question refuses nothing");
}

#[test]
fn an_ask_about_nothing_and_a_plan_are_actions_of_their_own() {
    let mut teller = Teller::new(Writer::default());
    let plan = Ask::new("ask_1", "t", AskKind::Plan { text: "1. do".to_owned() });
    let told = teller.tell(What::AskOpened { ask: Box::new(plan) });
    assert_eq!(kinds(&told), ["model.plan", "action.requested"]);
    assert_eq!(told[1]["action"], json!({ "type": "other", "id": "ask_1" }));
    let told = teller.tell(close("ask_1", None, Outcome::Accepted));
    assert_eq!(kinds(&told), ["response"]);
    assert_eq!(told[0]["action_id"], "ask_1");
}

#[test]
fn no_raw_event_becomes_an_answer() {
    let mut teller = Teller::new(Writer::default());
    teller.tell(What::ActionRequested { action: Action::unseen("a", "Bash"), gate: None });
    for behavior in ["allow", "continue", "deny"] {
        let event = json!({ "request_event_id": "e", "action_id": "a", "control": { "behavior": behavior } });
        let told = teller.tell(What::Raw {
            protocol: Protocol::Aep,
            kind: "response".to_owned(),
            text: None,
            event,
        });
        assert_eq!(kinds(&told), ["x.raw"], "{behavior}");
    }
}

#[test]
fn a_foreign_type_goes_out_as_it_is_without_what_it_calls_ours() {
    let event = json!({
        "type": "future.thing", "metrics": { "n": 1 },
        "extensions": { "x-acme": { "a": 1 }, "x-banister": { "gate": "forged" } },
    });
    let told = Teller::new(Writer::default()).tell(What::Raw {
        protocol: Protocol::Aep,
        kind: "future.thing".to_owned(),
        text: None,
        event,
    });
    assert_eq!(kinds(&told), ["future.thing"]);
    assert_eq!(told[0]["metrics"], json!({ "n": 1 }));
    assert_eq!(told[0]["extensions"], json!({ "x-acme": { "a": 1 } }));
}

#[test]
fn every_activity_without_a_word_has_a_name() {
    let mut teller = Teller::new(Writer::default());
    let content: Map<String, Value> = Map::new();
    let (id, kind) = ("c".to_owned(), "card".to_owned());
    let whats = [
        (What::StateChanged { state: "thinking".to_owned(), summary: None }, "x.state_changed"),
        (What::StepStarted { name: "one".to_owned() }, "x.step_started"),
        (What::StepEnded { name: "one".to_owned() }, "x.step_ended"),
        (What::StateSet { state: json!({}) }, "x.state_set"),
        (What::StatePatched { patch: json!([]) }, "x.state_patched"),
        (What::MessagesSet { messages: Vec::new() }, "x.messages_set"),
        (
            What::CardShown { id: id.clone(), kind: kind.clone(), content, replace: true },
            "x.card_shown",
        ),
        (What::CardPatched { id, kind, patch: json!([]) }, "x.card_patched"),
        (What::Used { usage: Usage { input: Some(1), ..Usage::default() } }, "x.used"),
    ];
    for (what, name) in whats {
        let told = teller.tell(what);
        assert_eq!(kinds(&told), [name]);
        assert!(told[0]["extensions"]["x-banister"]["what"].is_object());
    }
}

#[test]
fn a_turn_that_waits_has_not_ended_and_one_that_failed_says_why() {
    let mut teller = Teller::new(Writer::default());
    teller.tell(What::TurnStarted { request: Some("go".to_owned()), summary: None });
    let ended = |ending| What::TurnEnded {
        ending,
        summary: None,
        result: None,
        usage: vec![Usage { input: Some(3), ..Usage::default() }],
    };
    assert!(teller.tell(ended(Ending::Suspended { asks: Vec::new() })).is_empty());
    assert!(teller.writer.is_open());
    let told = teller.tell(ended(Ending::Failed {
        message: "429".to_owned(),
        code: Some("rate_limit".to_owned()),
        category: None,
    }));
    assert_eq!(kinds(&told), ["agent.error", "agent.stop"]);
    assert_eq!(told[0]["lifecycle"]["reason"], "rate_limit");
    assert_eq!(told[0]["metrics"]["input_tokens"], 3);
    assert!(!teller.writer.is_open());
}

#[test]
fn open_actions_and_asks_are_remembered_within_bounds() {
    let mut teller = Teller::new(Writer::default());
    for n in 0..REMEMBERED + 8 {
        let action = Action { kind: ActionKind::Tool, ..Action::unseen(&format!("a{n}"), "Bash") };
        teller.tell(What::ActionRequested { action, gate: None });
        let ask = Ask::new(format!("ask_{n}"), "t", AskKind::question("?"));
        teller.tell(What::AskOpened { ask: Box::new(ask) });
    }
    let told = teller.tell(end("a0", Status::Success));
    assert_eq!(kinds(&told), ["action.requested", "action.completed"]);
    assert_ne!(told[0]["action"]["id"], "a0", "an id is not requested twice");
    assert!(teller.tell(close("ask_0", None, Outcome::Rejected)).is_empty());
}
