use serde_json::json;

use super::*;

fn play(messages: &[Value]) -> Vec<&'static str> {
    let mut sequence = Sequence::default();
    let found: Vec<Finding> = messages.iter().flat_map(|message| sequence.step(message)).collect();
    found.into_iter().map(|finding| finding.rule.code).collect()
}

fn action(id: &str, kind: &str, session: &str) -> Value {
    json!({"id": id, "type": format!("action.{kind}"), "agent": {"slug": "k"}, "session": {"id": session}, "action": {"id": "a"}})
}

fn response(id: &str, to: &str, behavior: &str) -> Value {
    json!({"id": id, "request_event_id": to, "action_id": "a", "control": {"behavior": behavior}})
}

const CLEAN: [&str; 0] = [];

#[test]
fn action_ids_are_only_unique_inside_a_session() {
    let events = [
        action("1", "requested", "s"),
        action("2", "requested", "z"),
        action("3", "completed", "s"),
        action("4", "failed", "z"),
    ];
    assert_eq!(play(&events), CLEAN);
}

#[test]
fn a_redelivery_is_not_an_event_of_its_own() {
    let (first, end) = (action("1", "requested", "s"), action("2", "completed", "s"));
    assert_eq!(play(&[first.clone(), first.clone(), end.clone(), end, first]), CLEAN);
}

#[test]
fn what_the_answer_was_is_held_against_what_happened() {
    for (behavior, end, expected) in [
        ("deny", "completed", vec!["AEP-SEQ-10"]),
        ("stop", "completed", vec!["AEP-SEQ-10"]),
        ("deny", "failed", vec![]),
        ("deny", "denied", vec![]),
        ("allow", "completed", vec![]),
        ("abstain", "completed", vec![]),
    ] {
        let events =
            [action("1", "requested", "s"), response("2", "1", behavior), action("3", end, "s")];
        assert_eq!(play(&events), expected, "{behavior} {end}");
    }
}

#[test]
fn a_second_answer_may_overrule_the_first() {
    let events = [
        action("1", "requested", "s"),
        response("2", "1", "deny"),
        response("3", "1", "allow"),
        action("4", "completed", "s"),
    ];
    assert_eq!(play(&events), ["AEP-SEQ-07"]);
}

#[test]
fn a_denial_alone_is_enough_for_an_audit_stream() {
    assert_eq!(play(&[action("1", "denied", "s")]), CLEAN);
    assert_eq!(play(&[action("1", "denied", "s"), action("2", "completed", "s")]), ["AEP-SEQ-04"]);
}

#[test]
fn what_was_forgotten_causes_no_false_finding() {
    let mut sequence =
        Sequence { actions: Recent::new(8), requests: Recent::new(8), ..Sequence::default() };
    let event = |id: usize, kind: &str, action: usize| json!({"id": id.to_string(), "type": format!("action.{kind}"), "agent": {"slug": "k"}, "action": {"id": action.to_string()}});
    for number in 0..20 {
        assert_eq!(sequence.step(&event(number, "requested", number)), []);
    }
    assert_eq!(sequence.step(&event(30, "completed", 0)), []);
    assert_eq!(
        sequence
            .step(&json!({"id": "r", "request_event_id": "1", "control": {"behavior": "allow"}})),
        []
    );
}
