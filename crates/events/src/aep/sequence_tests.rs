use serde_json::{Value, json};

use super::*;

/// One step, from a value.
fn see(sequence: &mut Sequence, message: &Value) -> Vec<Finding> {
    let mut findings = Vec::new();
    crate::check::with_document(message, |document| sequence.step(document, &mut findings));
    findings
}

fn play(messages: &[Value]) -> Vec<&'static str> {
    let mut sequence = Sequence::default();
    let found: Vec<Finding> =
        messages.iter().flat_map(|message| see(&mut sequence, message)).collect();
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
    assert_eq!(play(&[action("1", "denied", "s"), action("2", "failed", "s")]), ["AEP-SEQ-22"]);
    assert_eq!(play(&[action("1", "denied", "s"), action("2", "denied", "s")]), ["AEP-SEQ-22"]);
}

#[test]
fn what_was_forgotten_causes_no_false_finding() {
    let mut sequence =
        Sequence { actions: Recent::new(8), requests: Recent::new(8), ..Sequence::default() };
    let event = |id: usize, kind: &str, action: usize| json!({"id": id.to_string(), "type": format!("action.{kind}"), "agent": {"slug": "k"}, "action": {"id": action.to_string()}});
    for number in 0..20 {
        assert_eq!(see(&mut sequence, &event(number, "requested", number)), []);
    }
    assert_eq!(see(&mut sequence, &event(30, "completed", 0)), []);
    assert_eq!(
        see(
            &mut sequence,
            &json!({"id": "r", "request_event_id": "1", "control": {"behavior": "allow"}})
        ),
        []
    );
}

/// An event of the session `s`, with these fields, at this second.
fn event(id: &str, kind: &str, fields: Value) -> Value {
    let second: usize = id.parse().unwrap_or_default();
    let mut event = json!({"id": id, "type": kind, "agent": {"slug": "k"}, "session": {"id": "s"},
        "time": format!("2026-01-01T00:00:{second:02}Z")});
    let Value::Object(fields) = fields else { panic!("an object is needed") };
    event.as_object_mut().unwrap().extend(fields);
    event
}

fn start(id: &str) -> Value {
    event(id, "session.start", json!({}))
}

fn question(id: &str, kind: &str, action: Option<&str>) -> Value {
    let fields = action.map_or(json!({}), |action| json!({"action": {"id": action}}));
    event(id, &format!("question.{kind}"), fields)
}

#[test]
fn ids_are_unique_to_their_agent_and_to_those_who_respond() {
    let other = |slug: &str, kind: &str| json!({"id": "1", "type": kind, "agent": {"slug": slug}});
    let mine = other("k", "agent.start");
    assert_eq!(play(&[mine.clone(), other("z", "agent.stop")]), CLEAN);
    assert_eq!(play(&[mine.clone(), other("k", "agent.stop")]), ["AEP-SEQ-01"]);
    let first = action("1", "requested", "s");
    assert_eq!(play(&[first.clone(), response("1", "1", "allow")]), CLEAN);
    let nameless = json!({"id": "1", "type": "action.requested", "action": {"id": "a"}});
    assert_eq!(play(&[nameless, response("1", "1", "allow")]), CLEAN);
    let second = response("2", "1", "deny");
    assert_eq!(play(&[first, response("2", "1", "allow"), second]), ["AEP-SEQ-01", "AEP-SEQ-07"]);
}

#[test]
fn a_response_to_an_id_of_two_agents_is_not_judged() {
    let mut other = action("1", "requested", "s");
    other["agent"]["slug"] = json!("z");
    other["action"]["id"] = json!("b");
    let events = [
        action("1", "requested", "s"),
        other,
        response("2", "1", "deny"),
        action("3", "completed", "s"),
    ];
    assert_eq!(play(&events), CLEAN);
}

#[test]
fn a_new_request_begins_anew() {
    for end in ["completed", "failed", "denied"] {
        let events = [
            action("1", "requested", "s"),
            action("2", end, "s"),
            action("3", "requested", "s"),
            action("4", "completed", "s"),
        ];
        assert_eq!(play(&events), ["AEP-SEQ-09"], "{end}");
    }
    let late =
        [action("1", "denied", "s"), action("2", "requested", "s"), action("3", "completed", "s")];
    assert_eq!(play(&late), CLEAN);
}

#[test]
fn an_action_has_one_end() {
    for (first, second, code) in [
        ("completed", "completed", "AEP-SEQ-03"),
        ("completed", "failed", "AEP-SEQ-03"),
        ("completed", "denied", "AEP-SEQ-03"),
        ("failed", "completed", "AEP-SEQ-03"),
        ("failed", "failed", "AEP-SEQ-03"),
        ("failed", "denied", "AEP-SEQ-22"),
        ("denied", "failed", "AEP-SEQ-22"),
        ("denied", "denied", "AEP-SEQ-22"),
        ("denied", "completed", "AEP-SEQ-04"),
    ] {
        let events =
            [action("1", "requested", "s"), action("2", first, "s"), action("3", second, "s")];
        assert_eq!(play(&events), [code], "{first} {second}");
    }
}

#[test]
fn a_denial_may_be_taken_back() {
    let events = [
        action("1", "requested", "s"),
        response("2", "1", "deny"),
        action("3", "denied", "s"),
        response("4", "1", "allow"),
        action("5", "completed", "s"),
    ];
    assert_eq!(play(&events), ["AEP-SEQ-07"]);
}

#[test]
fn who_abstains_takes_no_denial_back() {
    for (second, expected) in [
        ("abstain", vec!["AEP-SEQ-07", "AEP-SEQ-10"]),
        ("ask", vec!["AEP-SEQ-07"]),
        ("allow", vec!["AEP-SEQ-07"]),
    ] {
        let events = [
            action("1", "requested", "s"),
            response("2", "1", "deny"),
            response("3", "1", second),
            action("4", "completed", "s"),
        ];
        assert_eq!(play(&events), expected, "{second}");
    }
}

#[test]
fn who_hands_a_decision_on_leaves_room_for_it() {
    for first in ["ask", "defer", "abstain"] {
        let events = [
            action("1", "requested", "s"),
            response("2", "1", first),
            response("3", "1", "allow"),
            action("4", "completed", "s"),
        ];
        assert_eq!(play(&events), CLEAN, "{first}");
        let thrice = [
            action("1", "requested", "s"),
            response("2", "1", first),
            response("3", "1", "allow"),
            response("4", "1", "allow"),
        ];
        assert_eq!(play(&thrice), ["AEP-SEQ-07"], "{first}");
    }
}

#[test]
fn what_is_said_to_a_question_does_not_forbid_the_action() {
    let events = [
        action("1", "requested", "s"),
        question("2", "asked", Some("a")),
        response("3", "2", "deny"),
        action("4", "completed", "s"),
    ];
    assert_eq!(play(&events), ["AEP-SEQ-13"]);
}

#[test]
fn an_answer_needs_a_question_in_a_session_seen_from_its_start() {
    let answered = |action| question("3", "answered", action);
    assert_eq!(play(&[start("1"), answered(Some("q"))]), ["AEP-SEQ-11"]);
    assert_eq!(play(&[start("1"), answered(None)]), ["AEP-SEQ-11"]);
    for asked in [question("2", "asked", None), question("2", "asked", Some("q"))] {
        assert_eq!(play(&[start("1"), asked.clone(), answered(None)]), CLEAN);
        assert_eq!(play(&[start("1"), asked, answered(Some("q"))]), CLEAN);
    }
    let other = question("2", "asked", Some("p"));
    assert_eq!(play(&[start("1"), other, answered(Some("q"))]), ["AEP-SEQ-11"]);
    let tool = event("2", "action.requested", json!({"action": {"id": "q"}}));
    assert_eq!(play(&[start("1"), tool, answered(Some("q"))]), CLEAN);
}

#[test]
fn a_session_that_was_not_seen_from_its_start_is_not_held_to_its_past() {
    let stop = event("3", "subagent.stop", json!({"session": {"id": "s", "conversation_id": "c"}}));
    let resumed = event("1", "session.start", json!({"lifecycle": {"source": "resume"}}));
    for first in [event("1", "agent.start", json!({})), resumed] {
        for last in
            [question("3", "answered", Some("q")), question("3", "answered", None), stop.clone()]
        {
            assert_eq!(play(&[first.clone(), last]), CLEAN);
        }
    }
    for source in ["startup", "clear"] {
        let first = event("1", "session.start", json!({"lifecycle": {"source": source}}));
        assert_eq!(play(&[first, stop.clone()]), ["AEP-SEQ-14"], "{source}");
    }
}

#[test]
fn one_call_may_ask_for_several_things() {
    let (ask, answer) =
        (|id| question(id, "asked", Some("q")), |id| question(id, "answered", Some("q")));
    assert_eq!(play(&[start("1"), ask("2"), ask("3"), answer("4"), answer("5")]), CLEAN);
    assert_eq!(play(&[start("1"), ask("2"), answer("3"), answer("4")]), ["AEP-SEQ-12"]);
    assert_eq!(play(&[start("1"), ask("2"), answer("3"), answer("3")]), CLEAN);
    assert_eq!(play(&[ask("2"), answer("3"), answer("4")]), CLEAN);
    let nameless = |id| question(id, "answered", None);
    assert_eq!(play(&[start("1"), ask("2"), nameless("3"), nameless("4")]), CLEAN);
}

#[test]
fn a_behaviour_has_its_events() {
    let all: Vec<Type> = Type::ALL.into();
    let requests = vec![Type::PromptSubmitted, Type::ActionRequested, Type::SubagentStart];
    let results =
        vec![Type::AgentStop, Type::ActionCompleted, Type::SubagentStop, Type::ContextCompacted];
    let others = all.iter().copied().filter(|kind| !kind.is_action()).collect();
    for (behavior, expected) in [
        ("ask", vec![Type::ActionRequested]),
        ("defer", vec![Type::ActionRequested]),
        ("allow", requests.clone()),
        ("deny", requests),
        ("block", results),
        ("continue", others),
        ("stop", all.clone()),
        ("abstain", all.clone()),
        ("ponder", all.clone()),
    ] {
        let fitting: Vec<Type> = all.iter().copied().filter(|kind| fits(behavior, *kind)).collect();
        assert_eq!(fitting, expected, "{behavior}");
    }
    let mut answer = response("2", "1", "ask");
    answer.as_object_mut().unwrap().remove("action_id");
    assert_eq!(play(&[event("1", "agent.end", json!({})), answer.clone()]), ["AEP-SEQ-13"]);
    assert_eq!(play(&[event("1", "future.thing", json!({})), answer]), CLEAN);
}

#[test]
fn subagents_are_joined_by_what_both_ends_name() {
    let subagent =
        |id: &str, end: &str, fields: Value| event(id, &format!("subagent.{end}"), fields);
    let named = |name: &str| json!({"session": {"id": "s", "conversation_id": name}});
    let process = json!({"agent": {"slug": "k", "instance_id": "p"}});
    let begin = subagent("2", "start", named("c"));
    let stop = |fields| subagent("3", "stop", fields);
    assert_eq!(play(&[start("1"), begin.clone(), stop(named("c"))]), CLEAN);
    assert_eq!(play(&[start("1"), begin.clone(), stop(named("d"))]), ["AEP-SEQ-14"]);
    assert_eq!(play(&[start("1"), stop(named("d"))]), ["AEP-SEQ-14"]);
    // Nothing in common to join by.
    assert_eq!(play(&[start("1"), begin.clone(), stop(process)]), CLEAN);
    assert_eq!(play(&[start("1"), begin, stop(json!({}))]), CLEAN);
    let spawned = json!({"session": {"id": "s", "parent": {"spawning_action_id": "a"}}});
    assert_eq!(play(&[start("1"), subagent("2", "start", spawned.clone()), stop(spawned)]), CLEAN);
}

#[test]
fn a_session_starts_before_its_events() {
    let with = |id: &str, source: &str| {
        event(id, "session.start", json!({"lifecycle": {"source": source}}))
    };
    let work = event("1", "agent.start", json!({}));
    assert_eq!(play(&[work.clone(), start("2")]), ["AEP-SEQ-15"]);
    assert_eq!(play(&[work.clone(), with("2", "startup")]), ["AEP-SEQ-15"]);
    assert_eq!(play(&[start("1"), start("2")]), ["AEP-SEQ-15"]);
    for source in ["resume", "clear", "compact", "fork"] {
        assert_eq!(play(&[work.clone(), with("2", source)]), CLEAN, "{source}");
    }
    let end = event("2", "session.end", json!({}));
    assert_eq!(play(&[work.clone(), end, start("3")]), CLEAN);
    let thread = json!({"session": {"id": "s", "conversation_id": "c"}});
    assert_eq!(play(&[work, event("2", "session.start", thread)]), CLEAN);
    let first = start("1");
    assert_eq!(play(&[first.clone(), event("2", "agent.start", json!({})), first]), CLEAN);
}

#[test]
fn a_refusal_after_the_end_is_late() {
    let timed = |mut message: Value, second: usize| {
        message["time"] = json!(format!("2026-01-01T00:00:{second:02}Z"));
        message
    };
    for (behavior, end, second, expected) in [
        ("deny", "completed", 3, vec!["AEP-SEQ-16"]),
        ("stop", "completed", 3, vec!["AEP-SEQ-16"]),
        ("ask", "failed", 3, vec!["AEP-SEQ-16"]),
        ("defer", "failed", 3, vec!["AEP-SEQ-16"]),
        ("allow", "completed", 3, vec![]),
        ("abstain", "completed", 3, vec![]),
        ("deny", "denied", 3, vec![]),
        // It came first and was recorded last.
        ("deny", "failed", 2, vec![]),
        ("deny", "failed", 1, vec![]),
    ] {
        let events = [
            timed(action("1", "requested", "s"), 1),
            timed(action("2", end, "s"), 2),
            timed(response("3", "1", behavior), second),
        ];
        assert_eq!(play(&events), expected, "{behavior} {end} {second}");
    }
    let timeless =
        [action("1", "requested", "s"), action("2", "completed", "s"), response("3", "1", "deny")];
    assert_eq!(play(&timeless), CLEAN);
}

#[test]
fn an_action_keeps_its_names() {
    let names = |id: &str, kind: &str, action: &str, tool: Value| {
        event(id, kind, json!({"action": {"id": "a", "type": action}, "tool": tool}))
    };
    let wire = "harbour__tides";
    for (kind, tool, expected) in [
        ("tool_call", json!({"name": "tides"}), vec![]),
        ("tool_call", json!({"name": wire}), vec![]),
        ("tool_call", json!({"name": "other", "original_name": wire}), vec![]),
        ("tool_call", json!({"name": "other", "original_name": "tides"}), vec![]),
        ("tool_call", json!({}), vec![]),
        ("tool_call", json!({"name": "other"}), vec!["AEP-SEQ-17"]),
        ("skill_use", json!({"name": "tides"}), vec!["AEP-SEQ-17"]),
    ] {
        let asked = json!({"name": "tides", "original_name": wire});
        let events = [
            names("1", "action.requested", "tool_call", asked),
            names("2", "action.completed", kind, tool.clone()),
        ];
        assert_eq!(play(&events), expected, "{kind} {tool}");
        let nameless = [action("1", "requested", "s"), names("2", "action.completed", kind, tool)];
        assert_eq!(play(&nameless), CLEAN);
    }
}

#[test]
fn what_runs_is_what_was_decided() {
    let asked = json!({"berth": 4, "load": "salt"});
    for (control, ran, expected) in [
        (json!({"behavior": "allow"}), json!({"load": "salt", "berth": 4}), vec![]),
        (json!({"behavior": "allow"}), json!({"berth": 4}), vec!["AEP-SEQ-19"]),
        (json!({"behavior": "allow", "updated_input": null}), asked.clone(), vec![]),
        (json!({"behavior": "allow", "updated_input": {"berth": 5}}), json!({"berth": 5}), vec![]),
        (
            json!({"behavior": "allow", "updated_input": {"berth": 5}}),
            asked.clone(),
            vec!["AEP-SEQ-18"],
        ),
        (json!({"behavior": "allow", "updated_input": "salt"}), asked.clone(), vec!["AEP-SEQ-18"]),
        // Merged, and nothing changed.
        (json!({"behavior": "allow", "updated_input": {"berth": 4}}), asked.clone(), vec![]),
        (json!({"behavior": "allow", "updated_input": {}}), asked.clone(), vec![]),
        // Some agents complete what they were given.
        (
            json!({"behavior": "allow", "updated_input": {"berth": 5}}),
            json!({"berth": 5, "tide": "high"}),
            vec![],
        ),
        (
            json!({"behavior": "allow", "updated_input": {"berth": 5}}),
            json!({"berth": 6}),
            vec!["AEP-SEQ-19"],
        ),
        (json!({"behavior": "ask"}), json!({"berth": 6}), vec![]),
    ] {
        let events = [
            event("1", "action.requested", json!({"action": {"id": "a", "input": asked}})),
            json!({"id": "2", "request_event_id": "1", "control": control}),
            event("3", "action.completed", json!({"action": {"id": "a", "input": ran}})),
        ];
        assert_eq!(play(&events), expected, "{control} {ran}");
    }
    let many: serde_json::Map<String, Value> =
        (0..100).map(|number| (number.to_string(), json!(number))).collect();
    let events = [
        event("1", "action.requested", json!({"action": {"id": "a", "input": asked}})),
        json!({"id": "2", "request_event_id": "1", "control": {"behavior": "allow", "updated_input": many}}),
        event("3", "action.completed", json!({"action": {"id": "a", "input": asked}})),
    ];
    assert_eq!(play(&events), CLEAN);
}

#[test]
fn a_compaction_is_told_once_a_minute() {
    let compaction = |id: &str, time: &str, trigger: &str| {
        let mut event = event(id, "context.compacted", json!({"lifecycle": {"trigger": trigger}}));
        event["time"] = json!(format!("2026-01-01T00:{time}Z"));
        event
    };
    let first = compaction("1", "00:00", "auto");
    let mut other = compaction("2", "00:01", "auto");
    other["session"]["conversation_id"] = json!("c");
    for (second, expected) in [
        (compaction("2", "01:00", "auto"), vec!["AEP-SEQ-20"]),
        (compaction("2", "01:00.001", "auto"), vec![]),
        (compaction("2", "00:01", "manual"), vec![]),
        (first.clone(), vec![]),
        (other, vec![]),
    ] {
        assert_eq!(play(&[first.clone(), second.clone()]), expected, "{second}");
    }
}

#[test]
fn a_subagent_is_spawned_by_an_action_that_spawns() {
    let spawn = |kind: &str, session: &str| {
        let mut event =
            event("1", "action.requested", json!({"action": {"id": "a", "type": kind}}));
        event["session"]["id"] = json!(session);
        event
    };
    let parent = json!({"id": "s", "parent": {"conversation_id": "p", "spawning_action_id": "a"}});
    let child = event("3", "subagent.start", json!({"session": parent}));
    for (kind, session, expected) in [
        ("subagent_spawn", "s", vec![]),
        ("subagent_spawn", "p", vec![]),
        ("tool_call", "s", vec!["AEP-SEQ-21"]),
        ("tool_call", "p", vec!["AEP-SEQ-21"]),
        ("workflow_run", "s", vec![]),
        ("tool_call", "z", vec![]),
    ] {
        assert_eq!(play(&[spawn(kind, session), child.clone()]), expected, "{kind} {session}");
    }
    let mut own = spawn("tool_call", "s");
    own["id"] = json!("2");
    assert_eq!(play(&[spawn("subagent_spawn", "p"), own, child]), CLEAN);
}

#[test]
fn forgotten_questions_and_subagents_cause_no_false_finding() {
    let inside =
        Inside { questions: Recent::new(2), subagents: Recent::new(2), ..Inside::default() };
    let mut sequence = Sequence { inside: Box::new(inside), ..Sequence::default() };
    assert_eq!(see(&mut sequence, &start("1")), []);
    let named =
        |number: usize| json!({"session": {"id": "s", "conversation_id": number.to_string()}});
    for number in 0..3 {
        let id = (10 + number).to_string();
        assert_eq!(see(&mut sequence, &question(&id, "asked", Some(&id))), []);
        let id = (20 + number).to_string();
        assert_eq!(see(&mut sequence, &event(&id, "subagent.start", named(number))), []);
    }
    assert_eq!(see(&mut sequence, &question("30", "answered", Some("10"))), []);
    assert_eq!(see(&mut sequence, &event("31", "subagent.stop", named(0))), []);
}
