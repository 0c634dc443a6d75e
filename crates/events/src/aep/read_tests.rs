use serde_json::json;

use super::*;

fn whats(events: &[Value]) -> Vec<What> {
    let mut reader = Reader::default();
    let origin = Origin { session: "s".into(), seq: 1, time: jiff::Timestamp::default() };
    events
        .iter()
        .flat_map(|event| reader.read(event, None, &origin))
        .map(|activity| activity.what)
        .collect()
}

#[test]
fn a_turn_nobody_saw_begin_ends_all_the_same() {
    let request = json!({
        "type": "action.requested", "action": { "type": "tool_call", "id": "a" },
        "tool": { "type": "native", "name": "Bash" },
    });
    let told = whats(&[request.clone(), request, json!({ "type": "agent.stop" })]);
    assert_eq!(told.first(), Some(&What::TurnStarted { request: None, summary: None }));
    assert_eq!(
        told.last(),
        Some(&What::TurnEnded {
            ending: Ending::Completed,
            summary: None,
            result: None,
            usage: Vec::new()
        })
    );
    assert_eq!(told.len(), 4, "the turn begins once: {told:?}");
}

#[test]
fn what_is_not_known_is_kept_by_name() {
    let told = whats(&[json!({ "type": "future.thing", "content": [{ "text": "hi" }] }), json!(7)]);
    let kept = What::Raw {
        protocol: crate::event::Protocol::Aep,
        kind: "future.thing".to_owned(),
        text: Some("hi".to_owned()),
        event: json!({ "type": "future.thing", "content": [{ "text": "hi" }] }),
    };
    assert_eq!(told, [kept]);
}
