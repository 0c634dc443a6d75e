use serde_json::json;

use super::*;

/// Plays events of one session, given by type and fields, and lists the codes found.
fn play(events: &[(&str, Value)]) -> Vec<&'static str> {
    let mut sequence = Sequence::default();
    let mut found = Vec::new();
    for (number, (kind, fields)) in events.iter().enumerate() {
        found.extend(sequence.step(&message("sess_1", number, kind, fields)));
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
    for events in [
        vec![start.clone(), asked("rpl_1"), reply("rpl_1", "reject"), irreversible()],
        vec![
            start.clone(),
            state("idle", "thinking"),
            asked("rpl_1"),
            state("awaiting_input", "deciding"),
            irreversible(),
        ],
        vec![
            start.clone(),
            asked("rpl_1"),
            irreversible(),
            ("tool.invoked", json!({"tool": "t", "irreversible": true})),
        ],
    ] {
        assert_eq!(play(&events), ["AAEP-4.3.1-R2"]);
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
        found.extend(sequence.step(&message("sess_a", number, left.0, &left.1)));
        found.extend(sequence.step(&message("sess_b", number, right.0, &right.1)));
    }
    let codes: Vec<&str> = found.iter().map(|finding| finding.rule.code).collect();
    assert_eq!(codes, ["AAEP-4.1.2-R1"]);
    assert_eq!(sequence.finish(), []);
}

#[test]
fn positions_may_count_characters_or_units() {
    for second in [2, 3] {
        let events = [
            ("session.started", none()),
            ("output.streaming", json!({"chunk": "a🌱", "position": 0, "complete": false})),
            ("output.streaming", json!({"chunk": "", "position": second, "complete": true})),
        ];
        assert_eq!(play(&events), [] as [&str; 0]);
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
            assert_eq!(sequence.step(&event), []);
            assert!(sequence.sessions.len() <= SESSIONS && sequence.oldest.len() <= 2 * SESSIONS);
        }
    }
}
