use serde_json::json;

use super::super::Mapping;
use super::*;

const PROBE: &str = r"
schema_version: aep.mapping/v1
agent: probe
common: { session.id: { source: /s } }
events:
  - { id: r, source_event: Ask, gated: true, correlate: request, canonical_event: action.requested, fields: &f {
      action.type: { value: tool_call }, action.id: { source: /id }, action.input: { source: /in },
      tool.type: { value: native }, tool.name: { source: /tool } } }
  - { id: p, source_event: Again, gated: true, correlate: permission, canonical_event: action.requested, fields: *f }
  - { id: k, source_event: Shell, gated: true, correlate: { role: permission, key: [/in/cmd] }, canonical_event: action.requested, fields: *f }
  - { id: rk, source_event: AskKey, gated: true, correlate: { role: request, key: /in/cmd }, canonical_event: action.requested, fields: *f }
  - { id: d, source_event: Done, correlate: terminal, canonical_event: action.completed, fields: { <<: *f, action.status: { value: success } } }
  - { id: x, source_event: Fail, correlate: terminal, canonical_event: action.failed, fields: { <<: *f, action.status: { value: failure } } }
  - { id: e, source_event: End, canonical_event: session.end }
  - { id: c, source_event: [Before, After], canonical_event: context.compacted, fields: { lifecycle.trigger: { source: /t } } }
control:
  Ask: &no { answers: { deny: { exit: 2 } }, fallback: { exit: 2 } }
  Again: *no
  Shell: *no
  AskKey: *no
";

struct Session {
    probe: Mapping,
    memory: Correlator,
    seq: u64,
}

impl Session {
    fn new() -> Self {
        let probe = Mapping::load("probe.yaml", PROBE).unwrap();
        Self { probe, memory: Correlator::default(), seq: 0 }
    }

    fn at(&mut self, second: i64, hook: &str, payload: &Value) -> Mapped {
        self.seq += 1;
        let time = Timestamp::from_second(second).unwrap();
        let stamp = Stamp { session: "s_1", seq: self.seq, time };
        // Saved and taken up again now and then.
        if self.seq.is_multiple_of(if self.seq < 100 { 1 } else { 500 }) {
            let saved = serde_json::to_string(&self.memory).unwrap();
            self.memory = serde_json::from_str(&saved).unwrap();
        }
        self.probe.map_with(&mut self.memory, hook, payload, &stamp)
    }

    fn map(&mut self, hook: &str, payload: &Value) -> Mapped {
        self.at(1_000, hook, payload)
    }

    /// The id of the action in the only event.
    fn id(&mut self, hook: &str, payload: &Value) -> String {
        let mapped = self.map(hook, payload);
        assert_eq!(mapped.events.len(), 1, "{mapped:?}");
        mapped.events[0]["action"]["id"].as_str().unwrap().to_owned()
    }
}

fn call(tool: &str, input: &str) -> Value {
    json!({ "s": "one", "tool": tool, "in": { "b": input, "a": 1 } })
}

#[test]
fn a_result_finds_its_request_whatever_the_order_of_keys() {
    let mut session = Session::new();
    let asked = session.id("Ask", &call("sh", "x"));
    assert!(asked.starts_with("act_"), "{asked}");
    let done = json!({ "s": "one", "tool": "sh", "in": { "a": 1, "b": "x" } });
    assert_eq!(session.id("Done", &done), asked);
    assert_eq!(session.memory.open(), 0);
}

#[test]
fn without_memory_the_first_request_has_the_same_id() {
    let mut session = Session::new();
    let asked = session.id("Ask", &call("sh", "x"));
    let stamp = Stamp { session: "s_1", seq: 99, time: Timestamp::UNIX_EPOCH };
    for hook in ["Ask", "Again", "Done"] {
        let mapped = session.probe.map(hook, &call("sh", "x"), &stamp);
        assert_eq!(mapped.events[0]["action"]["id"], asked.as_str(), "{hook}");
    }
}

#[test]
fn equal_calls_are_told_apart_and_end_in_their_order() {
    let mut session = Session::new();
    let ids: Vec<String> = (0..3).map(|_| session.id("Ask", &call("sh", "x"))).collect();
    assert!(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2], "{ids:?}");
    let ended: Vec<String> = (0..3).map(|_| session.id("Done", &call("sh", "x"))).collect();
    assert_eq!(ids, ended);
    assert!(!ids.contains(&session.id("Ask", &call("sh", "x"))), "an id is never used again");
}

#[test]
fn a_result_with_another_input_belongs_to_the_only_open_call_of_its_tool() {
    let mut session = Session::new();
    let asked = session.id("Ask", &call("sh", "x"));
    session.id("Ask", &call("read", "x"));
    assert_eq!(session.id("Fail", &call("sh", "changed")), asked);
    session.id("Ask", &call("sh", "1"));
    session.id("Ask", &call("sh", "2"));
    let mapped = session.map("Done", &call("sh", "3"));
    assert_eq!(mapped.events[0]["extensions"]["x-banister"]["uncorrelated"], true);
    assert!(mapped.events[0]["action"]["id"].as_str().unwrap().starts_with("act_"));
}

#[test]
fn a_result_without_a_tool_gets_that_of_its_request() {
    let mut session = Session::new();
    session.map("Ask", &json!({ "id": "vendor-1", "tool": "sh", "in": {} }));
    let done = session.map("Done", &json!({ "id": "vendor-1" }));
    assert_eq!(done.events[0]["tool"], json!({ "type": "native", "name": "sh" }));
}

#[test]
fn asking_again_about_an_open_action_is_no_second_event_but_still_a_gate() {
    let mut session = Session::new();
    let first = session.id("Ask", &call("sh", "x"));
    let second = session.id("Ask", &call("sh", "x"));
    for wanted in [&first, &second, &first] {
        let mapped = session.map("Again", &call("sh", "x"));
        assert!(mapped.gated && mapped.events.is_empty(), "{mapped:?}");
        assert_eq!(mapped.request().unwrap()["action"]["id"], wanted.as_str());
    }
    let other = session.map("Again", &call("sh", "y"));
    assert_eq!((other.events.len(), other.repeated.is_none()), (1, true));
    assert_eq!(session.id("Done", &call("sh", "y")), other.events[0]["action"]["id"]);
}

#[test]
fn the_agents_own_id_always_wins() {
    let mut session = Session::new();
    let with_id = |id: &str| json!({ "s": "one", "id": id, "tool": "sh", "in": { "b": "x" } });
    assert_eq!(session.id("Ask", &with_id("t1")), "t1");
    assert_eq!(session.map("Again", &with_id("t1")).events.len(), 0);
    let without = json!({ "s": "one", "tool": "sh", "in": { "b": "x" } });
    let again = session.map("Again", &without);
    assert_eq!(again.request().unwrap()["action"]["id"], "t1");
    assert_eq!(session.id("Done", &with_id("t1")), "t1");
    assert_eq!(session.memory.open(), 0);
}

#[test]
fn a_key_joins_hooks_that_show_the_input_differently() {
    let mut session = Session::new();
    let asked = json!({ "tool": "sh", "in": { "cmd": "ls", "dir": "/" } });
    session.map("AskKey", &asked);
    assert!(
        session.map("Shell", &json!({ "tool": "sh", "in": { "cmd": "ls" } })).events.is_empty()
    );
    assert_eq!(
        session.map("Shell", &json!({ "tool": "sh", "in": { "cmd": "cd" } })).events.len(),
        1
    );
}

#[test]
fn a_refused_action_fails_silently_but_never_succeeds_silently() {
    let mut session = Session::new();
    let refused = session.id("Ask", &call("sh", "x"));
    session.memory.refused(&refused);
    assert!(session.map("Fail", &call("sh", "x")).events.is_empty());
    let refused = session.id("Ask", &call("sh", "x"));
    session.memory.refused(&refused);
    let again = session.id("Ask", &call("sh", "x"));
    assert_eq!(session.id("Done", &call("sh", "x")), again, "the one that was allowed");
    assert_eq!(session.id("Done", &call("sh", "x")), refused, "it ran all the same");
}

#[test]
fn what_is_open_ends_with_the_session_or_after_a_day() {
    let mut session = Session::new();
    session.map("Ask", &call("sh", "x"));
    session.map("End", &json!({ "s": "one" }));
    assert_eq!(session.memory.open(), 0);
    session.at(2_000, "Ask", &call("sh", "y"));
    session.at(2_000 + 86_399, "Ask", &call("sh", "z"));
    assert_eq!(session.memory.open(), 2);
    session.at(2_000 + 86_400, "Ask", &call("sh", "z"));
    assert_eq!(session.memory.open(), 2);
}

#[test]
fn memory_is_bounded_and_no_id_is_used_twice() {
    let mut session = Session::new();
    let mut ids = std::collections::HashSet::new();
    for round in 0..2 {
        for n in 0..(MOST_COUNTED + 200) {
            assert!(ids.insert(session.id("Ask", &call("sh", &n.to_string()))), "{round} {n}");
        }
    }
    assert!(session.memory.open.len() <= MOST_OPEN);
    assert!(session.memory.counted.len() <= MOST_COUNTED);
}

#[test]
fn one_compaction_is_told_once() {
    let mut session = Session::new();
    let told = |session: &mut Session, second, hook: &str, trigger: &str| {
        session.at(second, hook, &json!({ "t": trigger })).events.len()
    };
    assert_eq!(told(&mut session, 100, "Before", "auto"), 1);
    assert_eq!(told(&mut session, 130, "After", "auto"), 0);
    assert_eq!(told(&mut session, 140, "Before", "auto"), 1);
    assert_eq!(told(&mut session, 141, "After", "manual"), 1);
    assert_eq!(told(&mut session, 300, "Before", "manual"), 1, "too long after");
}

proptest::proptest! {
    /// Whatever comes in whatever order: each event about an action has an id, and no two open actions share one.
    #[test]
    fn ids_hold_together(steps in proptest::collection::vec((0..7_usize, 0..3_usize, 0..3_usize), 0..60)) {
        let hooks = ["Ask", "Again", "Shell", "AskKey", "Done", "Fail", "End"];
        let mut session = Session::new();
        for (hook, tool, input) in steps {
            let mapped = session.map(hooks[hook], &call(&format!("t{tool}"), &input.to_string()));
            for event in &mapped.events {
                if event.get("action").is_some() {
                    proptest::prop_assert!(event["action"]["id"].is_string(), "{event}");
                }
            }
            let mut ids: Vec<&str> = session.memory.open.iter().map(|open| open.id.as_str()).collect();
            let all = ids.len();
            ids.sort_unstable();
            ids.dedup();
            proptest::prop_assert_eq!(ids.len(), all);
        }
    }
}
