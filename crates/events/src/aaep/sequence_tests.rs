use serde_json::{Value, json};

use super::*;

/// One step, from a value.
fn see(sequence: &mut Sequence, message: &Value) -> Vec<Finding> {
    let mut findings = Vec::new();
    crate::check::with_document(message, |document| {
        let seen = Seen::new(document.root(), false);
        sequence.step(document.root(), &seen, &mut findings);
    });
    findings
}

/// Plays events of one session, given by type and fields, and lists the codes found.
fn play(events: &[(&str, Value)]) -> Vec<&'static str> {
    let mut sequence = Sequence::default();
    let mut found = Vec::new();
    for (number, (kind, fields)) in events.iter().enumerate() {
        found.extend(see(&mut sequence, &message("sess_1", number, kind, fields)));
    }
    found.into_iter().map(|finding| finding.rule.code).collect()
}

fn message(session: &str, number: usize, kind: &str, fields: &Value) -> Value {
    let name = if kind.contains("reply") { kind.to_owned() } else { format!("aaep:agent.{kind}") };
    let mut event = json!({"type": name, "event_id": format!("evt_{}{number}", session.trim_start_matches("sess_")), "session_id": session});
    event.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    event
}

fn none() -> Value {
    json!({})
}

fn irreversible() -> (&'static str, Value) {
    ("tool.invoked", json!({"tool": "t", "tool_call_id": "call_1", "irreversible": true}))
}

fn asked(token: &str) -> (&'static str, Value) {
    ("awaiting.confirmation", json!({"action": token, "reply_token": token, "irreversible": true}))
}

fn reply(token: &str, decision: &str) -> (&'static str, Value) {
    ("confirmation.reply", json!({"reply_token": token, "decision": decision, "session_id": null}))
}

fn state(from: &str, to: &str) -> (&'static str, Value) {
    ("state.changed", json!({"from_state": from, "to_state": to}))
}

#[test]
fn consent_can_be_seen_in_three_ways() {
    let start = ("session.started", none());
    for events in [
        vec![start.clone(), asked("rpl_1"), irreversible()],
        vec![
            start.clone(),
            state("idle", "thinking"),
            asked("rpl_1"),
            state("awaiting_input", "calling_tool"),
            irreversible(),
        ],
        vec![start.clone(), asked("rpl_1"), reply("rpl_1", "accept"), irreversible()],
    ] {
        assert_eq!(play(&events), [] as [&str; 0]);
    }
}

#[test]
fn a_refusal_is_no_consent() {
    let start = ("session.started", none());
    let refused = [start.clone(), asked("rpl_1"), reply("rpl_1", "reject"), irreversible()];
    assert_eq!(play(&refused), ["AAEP-6.1-R1"]);
    let twice = ("tool.invoked", json!({"tool": "t", "irreversible": true}));
    assert_eq!(play(&[start, asked("rpl_1"), irreversible(), twice]), ["AAEP-4.3.1-R2"]);
}

#[test]
fn what_only_a_change_of_state_tells_is_not_held_against_anybody() {
    for to in ["thinking", "deciding", "writing_output"] {
        let events = [
            ("session.started", none()),
            state("idle", "thinking"),
            asked("rpl_1"),
            state("awaiting_input", to),
            irreversible(),
        ];
        assert_eq!(play(&events), [] as [&str; 0]);
    }
}

#[test]
fn a_reply_after_the_deed_refuses_nothing() {
    let events = [
        ("session.started", none()),
        state("idle", "thinking"),
        asked("rpl_1"),
        state("awaiting_input", "calling_tool"),
        reply("rpl_1", "reject"),
        irreversible(),
    ];
    assert_eq!(play(&events), [] as [&str; 0]);
}

fn timed(second: u32, (kind, mut fields): (&'static str, Value)) -> (&'static str, Value) {
    fields["timestamp"] = format!("2026-01-01T00:{:02}:{:02}Z", second / 60, second % 60).into();
    (kind, fields)
}

fn asked_for(seconds: u32) -> (&'static str, Value) {
    let (kind, mut fields) = asked("rpl_1");
    fields["timeout_seconds"] = seconds.into();
    fields["default_decision"] = "reject".into();
    (kind, fields)
}

#[test]
fn acting_after_the_deadline_of_a_default_reject_is_told_unless_somebody_accepted() {
    let start = timed(0, ("session.started", none()));
    let late = |answer: Option<(&'static str, Value)>, second| {
        let mut events = vec![start.clone(), timed(1, asked_for(30))];
        events.extend(answer);
        events.push(timed(second, irreversible()));
        play(&events)
    };
    assert_eq!(late(None, 36), [] as [&str; 0], "clocks may be apart");
    assert_eq!(late(None, 37), ["AAEP-6.4-R1"]);
    assert_eq!(late(Some(timed(30, reply("rpl_1", "accept"))), 90), [] as [&str; 0]);
    assert_eq!(
        late(Some(timed(31, reply("rpl_1", "accept"))), 90),
        ["AAEP-6.3.4-R1", "AAEP-6.4-R1"]
    );
}

#[test]
fn replies_are_joined_to_their_questions() {
    let start = ("session.started", none());
    let play_reply = |answers: &[(&'static str, Value)]| {
        let mut events = vec![start.clone(), asked("rpl_1")];
        events.extend_from_slice(answers);
        play(&events)
    };
    assert_eq!(play_reply(&[reply("rpl_9", "accept")]), ["AAEP-6.2.3-R1"]);
    let accept = reply("rpl_1", "accept");
    assert_eq!(play_reply(&[accept.clone(), reply("rpl_1", "reject")]), ["AAEP-6.3.5-R1"]);
    let over = [("session.cancelled", none()), accept.clone()];
    assert_eq!(play_reply(&over), ["AAEP-6.8-R3"]);
    let wrong = ("clarification.reply", json!({"reply_token": "rpl_1", "response": "yes"}));
    assert_eq!(play_reply(&[wrong]), ["AAEP-6.3.4-R1"]);
}

#[test]
fn a_response_is_of_an_accepted_kind() {
    let kinds = |kinds: Value, choices: Value, response: Value| {
        let question =
            json!({"reply_token": "rpl_1", "accepted_response_kinds": kinds, "choices": choices});
        let answer = json!({"reply_token": "rpl_1", "response": response});
        play(&[
            ("session.started", none()),
            ("awaiting.clarification", question),
            ("clarification.reply", answer),
        ])
    };
    let choices = json!([{"value": "a"}, {"value": "b"}]);
    for (kind, choices, response, fits) in [
        (json!(["freetext"]), json!(null), json!("x"), true),
        (json!(null), json!(null), json!("x"), true),
        (json!(null), json!(null), json!(true), false),
        (json!(["yes_no"]), json!(null), json!(true), true),
        (json!(["yes_no"]), json!(null), json!("yes"), false),
        (json!(["numeric"]), json!(null), json!(6.5), true),
        (json!(["multiple_choice"]), choices.clone(), json!("b"), true),
        (json!(["multiple_choice"]), choices.clone(), json!("c"), false),
        (json!(["multiple_choice", "freetext"]), choices, json!("c"), true),
    ] {
        let expected: &[&str] = if fits { &[] } else { &["AAEP-6.5.5-R1"] };
        assert_eq!(kinds(kind.clone(), choices, response.clone()), expected, "{kind} {response}");
    }
}

#[test]
fn harmless_work_while_waiting_does_not_use_up_consent() {
    let read = ("tool.invoked", json!({"tool": "read", "tool_call_id": "call_0"}));
    assert_eq!(
        play(&[("session.started", none()), asked("rpl_1"), read, irreversible()]),
        [] as [&str; 0]
    );
}

#[test]
fn interleaved_sessions_are_kept_apart() {
    let mut sequence = Sequence::default();
    let mut found = Vec::new();
    for (number, (left, right)) in [
        (("session.started", none()), ("session.started", none())),
        (("tool.invoked", json!({"tool": "t"})), state("idle", "thinking")),
        (("tool.completed", json!({"tool": "t"})), ("session.completed", none())),
        (("session.completed", none()), ("progress.updated", none())),
    ]
    .into_iter()
    .enumerate()
    {
        found.extend(see(&mut sequence, &message("sess_a", number, left.0, &left.1)));
        found.extend(see(&mut sequence, &message("sess_b", number, right.0, &right.1)));
    }
    let codes: Vec<&str> = found.iter().map(|finding| finding.rule.code).collect();
    assert_eq!(codes, ["AAEP-4.1.2-R1"]);
    assert_eq!(sequence.finish(), []);
}

#[test]
fn positions_may_count_what_people_see_or_characters_or_units_but_not_bytes() {
    for (second, fits) in [(1, true), (2, true), (3, true), (5, false), (0, false)] {
        let chunk =
            json!({"chunk": "a🌱", "position": 0, "complete": false, "coalesce_hint": "word"});
        let events = [
            ("session.started", none()),
            ("output.streaming", chunk),
            ("output.streaming", json!({"chunk": "", "position": second, "complete": true})),
        ];
        let expected: &[&str] = if fits { &[] } else { &["AAEP-4.3.3-R1"] };
        assert_eq!(play(&events), expected, "{second}");
    }
}

#[test]
fn a_call_may_be_joined_by_name_only_where_it_has_no_id() {
    let invoked = ("tool.invoked", json!({"tool": "t", "tool_call_id": "call_1"}));
    let events = [("session.started", none()), invoked, ("tool.completed", json!({"tool": "t"}))];
    assert_eq!(play(&events), ["AAEP-4.3.1-R3"]);
}

#[test]
fn any_state_that_other_events_imply_may_be_left() {
    for (events, from) in [
        (vec![("tool.invoked", json!({"tool": "t"}))], "calling_tool"),
        (
            vec![("tool.invoked", json!({"tool": "t"})), ("tool.completed", json!({"tool": "t"}))],
            "thinking",
        ),
        (
            vec![("output.streaming", json!({"chunk": "", "position": 0, "complete": true}))],
            "writing_output",
        ),
        (vec![("awaiting.clarification", json!({"reply_token": "rpl_9"}))], "awaiting_input"),
        (vec![("handoff.requested", none())], "handing_off"),
        (vec![], "thinking"),
    ] {
        let mut all = vec![("session.started", none()), state("idle", "thinking")];
        all.extend(events);
        all.push(state(from, "deciding"));
        assert_eq!(play(&all), [] as [&str; 0], "{from}");
        all.push(state("calling_tool", "idle"));
        assert_eq!(play(&all), ["AAEP-4.2.1-R4"], "{from}");
    }
}

#[test]
fn more_sessions_than_can_be_followed_cause_no_false_finding() {
    let mut sequence = Sequence::default();
    let ids: Vec<String> = (0..SESSIONS + 500).map(|number| format!("sess_{number}x")).collect();
    for kind in ["session.started", "progress.updated", "session.completed"] {
        for (number, id) in ids.iter().enumerate() {
            let event = message(
                id,
                number,
                kind,
                &json!({"event_id": format!("evt_{number}{}", kind.len())}),
            );
            assert_eq!(see(&mut sequence, &event), []);
            assert!(sequence.sessions.len() <= SESSIONS && sequence.oldest.len() <= 2 * SESSIONS);
        }
    }
}

#[test]
fn of_two_questions_the_one_that_was_refused_stays_refused() {
    let invoke = |call: &str| {
        ("tool.invoked", json!({"tool": "t", "tool_call_id": call, "irreversible": true}))
    };
    let events = [
        ("session.started", none()),
        asked("rpl_1"),
        asked("rpl_2"),
        reply("rpl_2", "accept"),
        state("idle", "awaiting_input"),
        state("awaiting_input", "calling_tool"),
        invoke("call_2"),
        reply("rpl_1", "reject"),
        invoke("call_1"),
    ];
    assert_eq!(play(&events), ["AAEP-6.1-R1"]);
}

#[test]
fn an_answer_after_the_producer_went_on_is_told() {
    let events = [
        ("session.started", none()),
        asked("rpl_1"),
        state("idle", "awaiting_input"),
        state("awaiting_input", "deciding"),
        reply("rpl_1", "accept"),
    ];
    assert_eq!(play(&events), ["AAEP-6.8-R3"]);
}

#[test]
fn a_refusal_needs_a_word_before_all_is_said_to_be_done() {
    let start = ("session.started", none());
    let end = ("session.completed", none());
    let refused = [start.clone(), asked("rpl_1"), reply("rpl_1", "reject"), end.clone()];
    assert_eq!(play(&refused), ["AAEP-4.5.3-R3"]);
    let told = [start, asked("rpl_1"), reply("rpl_1", "reject"), state("idle", "thinking"), end];
    assert_eq!(play(&told), [] as [&str; 0]);
}

#[test]
fn what_could_have_been_in_a_lost_message_is_nobodys_fault() {
    let numbered = |number: usize, kind: &str, fields: Value| {
        let mut event = message("sess_1", number, kind, &fields);
        event["sequence_number"] = number.into();
        event
    };
    let mut sequence = Sequence::default();
    let mut found = see(&mut sequence, &numbered(0, "session.started", none()));
    found.extend(see(&mut sequence, &numbered(1, "state.changed", state("idle", "thinking").1)));
    sequence.lose();
    found.extend(see(&mut sequence, &numbered(4, "tool.completed", json!({"tool": "t"}))));
    let (_, change) = state("calling_tool", "writing_output");
    found.extend(see(&mut sequence, &numbered(5, "state.changed", change)));
    found.extend(see(&mut sequence, &numbered(6, "session.completed", none())));
    found.extend(see(&mut sequence, &message("sess_2", 0, "progress.updated", &none())));
    assert_eq!(found, []);
    found.extend(see(&mut sequence, &message("sess_2", 1, "session.started", &none())));
    assert_eq!(found.len(), 1, "a start comes first, lost messages or not");
}
