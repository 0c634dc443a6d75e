use serde_json::{Value, json};

use super::*;
use crate::aep::mapping::Stamp;

/// A file with these rules, and a refusal for the hook `Gate`.
fn file(rules: &str) -> String {
    format!(
        "schema_version: aep.mapping/v1\nagent: probe\nevents:\n{rules}\ncontrol:\n  Gate: {{answers: {{deny: {{exit: 2}}}}, fallback: {{exit: 2}}}}\n"
    )
}

/// Something of everything.
const WHOLE: &str = r#"  - id: x
    source_event: [H, I]
    when: { /a: { in: [1], not: { prefix: p } } }
    when_any: [{ /b: { regex: "^x$" } }, { /c: { exists: true } }]
    correlate: { role: request, key: [/k] }
    canonical_event: action.requested
    fields: &f
      action.id: { template: "{/s}:{/t}", transform: [trim, { map: { a: b } }], required: true }
      content.0.text: { sources: [/m, /n], default: none, when: { /o: 1 } }
    attachments: [{ each: /files, type: file, name: { source: /p, transform: basename } }]
    emit: [{ canonical_event: model.plan, fields: { <<: *f }, content: [{ type: plan, text: { source: /q } }] }]
examples: [{ hook: H, payload: { a: 1 }, after: [{ hook: I, payload: {} }], events: [], check: { /0: 1 } }]
answers: [{ hook: H, behavior: deny, stdout: { a: b }, degraded_from: ask }]
install: { user: ~/.x, format: json, hooks: { H: { timeout: 3 } } }
"#;

#[test]
fn the_file_that_has_everything_loads() {
    assert_eq!(problems(&file(WHOLE)), <[String; 0]>::default());
}

fn good(rules: &str) -> Mapping {
    load("probe.yaml", &file(rules)).unwrap()
}

/// The problems of a file, as text.
fn problems(yaml: &str) -> Vec<String> {
    match load("probe.yaml", yaml) {
        Ok(mapping) => mapping.warnings().iter().map(ToString::to_string).collect(),
        Err(Error::Invalid { problems, .. }) => problems.iter().map(ToString::to_string).collect(),
    }
}

fn map(mapping: &Mapping, hook: &str, payload: &Value) -> Vec<Value> {
    let stamp = Stamp { session: "s_1", seq: 1, time: jiff::Timestamp::UNIX_EPOCH };
    mapping.map(hook, payload, &stamp).events
}

fn kinds(mapping: &Mapping, hook: &str, payload: &Value) -> Vec<String> {
    let events = map(mapping, hook, payload);
    events.iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_slip_is_named_with_its_place_and_the_word_that_was_meant() {
    let yaml = "schema_version: aep.mapping/v1\nagent: a\nevents:\n  - id: x\n    source_event: H\n    canonical_event: agent.stop\n    fields:\n      session.id: { sorce: /s }\n";
    assert_eq!(
        problems(yaml),
        [
            "a field needs source, sources, template, value or default at line 8, column 19",
            "unknown key `sorce` at line 8, column 21: did you mean `source`?",
        ]
    );
}

#[test]
fn everything_wrong_is_said_at_once() {
    let yaml = r#"
schema_version: aep.mapping/v2
agnt: a
events:
  - { id: x, source_event: H, canonical_event: agent.stop, fields: { session.id: { source: s } } }
  - { id: x, source_event: H, canonical_event: agent.stop, fields: { sesion.id: { source: /s } } }
  - { id: y, source_event: H, canonical_event: agent.stop, fields: { session.id: { source: /s, transform: trimm } } }
  - { id: z, source_event: H, when: { /a: { regex: "(" } }, canonical_event: agent.stop }
  - { id: g, source_event: G, gated: true, drop: true }
  - { id: n, source_event: H }
  - { id: c, source_event: H, canonical_event: agent.stop, correlate: requst }
control:
  H: { answers: { alow: {} }, unsupported: [sak] }
  I: { answers: { deny: { stderr: "{mesage}" } } }
"#;
    let found = problems(yaml).join("\n");
    for wanted in [
        "`schema_version` is aep.mapping/v1, not aep.mapping/v2 at line 2, column 17",
        "a mapping file has no `agent`",
        "unknown key `agnt` at line 3, column 1: did you mean `agent`?",
        "`s` is not a JSON Pointer",
        "the rule id `x` is used twice at line 6",
        "unknown field `sesion` at line 6, column 70: did you mean `session`?",
        "unknown transform `trimm` at line 7, column 107: did you mean `trim`?",
        "bad regex `(`",
        "the gated hook `G` needs `deny` and `fallback`",
        "the rule `n` has no canonical_event",
        "unknown role `requst`",
        "the rule `c` has no action to correlate",
        "unknown behaviour `alow`",
        "unknown behaviour `sak`",
        "unknown placeholder `mesage`",
    ] {
        assert!(found.contains(wanted), "{wanted}\n--- in ---\n{found}");
    }
}

#[test]
fn what_is_no_yaml_is_one_problem_with_its_place() {
    let [problem] = problems("a: [1\nb: 2").try_into().unwrap();
    assert!(problem.ends_with("at line 2, column 2"), "{problem}");
    assert!(problems("- 1")[0].contains("must be a mapping"));
    assert!(problems("")[0].contains("has no `schema_version`"));
    let empty = "schema_version: aep.mapping/v1\nagent: a\nevents: []\n";
    assert_eq!(problems(empty), ["`events` is empty at line 3, column 9"]);
}

#[test]
fn unknown_types_and_repeated_keys_are_warnings() {
    let yaml = "schema_version: aep.mapping/v1\nagent: a\nagent: b\nx-mine: 1\nevents:\n  - { id: x, source_event: H, canonical_event: agent.stopp }\n";
    assert_eq!(
        problems(yaml),
        [
            "the key `agent` occurs twice, the last one counts at line 3, column 1",
            "`agent.stopp` is not a canonical event type at line 6, column 48",
        ]
    );
    assert_eq!(load("a", yaml).unwrap().agent, "b");
}

#[test]
fn fields_the_protocol_does_not_have_are_refused() {
    for (path, wanted) in [
        ("type", "set by the loader"),
        ("agent.slug", "set by the loader"),
        ("action.inputs", "did you mean `input`?"),
        ("session.id.x", "has no parts"),
        ("content.x.text", "must be a number below 64"),
        ("content.64.text", "must be a number below 64"),
        ("extensions.mine", "begins with `x-`"),
    ] {
        let yaml = file(&format!(
            "  - {{id: x, source_event: H, canonical_event: agent.stop, fields: {{{path}: {{value: 1}}}}}}"
        ));
        let found = problems(&yaml).join("\n");
        assert!(found.contains(wanted), "{path}: {found}");
    }
}

#[test]
fn the_first_rule_that_has_all_it_needs_wins() {
    let mapping = good(
        "  - {id: any, source_event: [H, I], canonical_event: agent.stop}
  - {id: b, source_event: H, when: {/k: {in: [1, b]}}, canonical_event: agent.error, fields: {lifecycle.reason: {source: /why, required: true}}}
  - {id: c, source_event: H, when_any: [{/k: {prefix: z}}, {/k: {exists: false}, /m: {not: {regex: '^n'}}}], canonical_event: session.end}
  - {id: d, source_event: H, when: {/k: drop}, drop: true}
  - {id: e, source_event: H, when: {/k: {exists: true, not: ''}, /e: true}, canonical_event: session.start}",
    );
    for (payload, wanted) in [
        (json!({"k": "b", "why": "x"}), vec!["agent.error"]),
        (json!({"k": "b"}), vec!["agent.stop"]),
        (json!({"k": 1, "why": "x"}), vec!["agent.error"]),
        (json!({"k": "zz"}), vec!["session.end"]),
        (json!({"m": "yes"}), vec!["session.end"]),
        (json!({"m": "no"}), vec!["agent.stop"]),
        (json!({"k": null, "m": "yes"}), vec!["session.end"]),
        (json!({"k": "drop"}), vec![]),
        (json!({"k": "", "e": true}), vec!["agent.stop"]),
        (json!({"k": "q", "e": true}), vec!["session.start"]),
    ] {
        assert_eq!(kinds(&mapping, "H", &payload), wanted, "{payload}");
    }
    assert_eq!(kinds(&mapping, "I", &json!({"k": "b"})), ["agent.stop"]);
    assert_eq!(kinds(&mapping, "J", &json!({})), ["x.j"]);
}

#[test]
fn values_come_from_many_places() {
    let mapping = good(
        r#"  - id: x
    source_event: H
    canonical_event: prompt.submitted
    fields:
      time: { source: /at, transform: epoch_ms_to_rfc3339 }
      agent.version: { source: /version }
      session.id: { sources: [/none, /null, /empty, /id], display_style: plain_text }
      session.turn_id: { template: "{/id}:{/step}" }
      session.conversation_id: { template: "{/id}:{/none}", default: d }
      action.id: { source: /odd }
      action.input.command: { source: /cmd }
      workspace.roots.1: { source: /root }
      model.id: { const: m, when: { /id: other } }
      content.1.type: { value: prompt }
      content.1.text: { source: /more, transform: "truncate:3" }
      content.2.type: { value: prompt }
    content:
      - { type: prompt, text: { source: /parts, transform: text_parts } }
    attachments:
      - each: /files
        when: { /kind: image }
        type: image
        name: { source: /path, transform: basename }
        size_bytes: { source: /size }"#,
    );
    let payload = json!({
        "at": "1700000000500", "version": 2, "null": null, "empty": "", "id": "i", "step": 4, "odd": "a b/c",
        "cmd": "ls", "root": "/r", "more": "äbcdef", "parts": [{"text": "one"}, "two", {"type": "image"}],
        "files": [{"kind": "image", "path": "/a/b.png", "size": 3}, {"kind": "text", "path": "/c"}, 7],
    });
    let [event] = map(&mapping, "H", &payload).try_into().unwrap();
    let hashed = event["action"]["id"].as_str().unwrap();
    assert!(hashed.starts_with("h_"), "{hashed}");
    assert_eq!(
        event,
        json!({
            "aep_version": "0.1", "id": event["id"], "type": "prompt.submitted", "hook": "H",
            "time": "2023-11-14T22:13:20.500Z",
            "agent": {"slug": "probe", "display_name": "probe", "version": "2"},
            "session": {"id": "i", "turn_id": "i:4", "conversation_id": "d"},
            "action": {"id": hashed, "input": {"command": "ls"}},
            "workspace": {"roots": [null, "/r"]},
            "content": [
                {"type": "prompt", "text": "one\ntwo"},
                {"type": "prompt", "text": "äbc", "truncated": true, "original_length": 6},
            ],
            "attachments": [{"type": "image", "name": "b.png", "size_bytes": 3}],
            "extensions": {"x-banister": {"original_ids": {"action.id": "a b/c"}}},
        })
    );
}

#[test]
fn an_event_that_should_speak_and_has_no_words_is_not_made() {
    let mapping = good(
        "  - {id: x, source_event: H, canonical_event: agent.stop, fields: {content.0.type: {value: response}, content.0.text: {source: /t}}}",
    );
    assert_eq!(kinds(&mapping, "H", &json!({"t": "x"})), ["agent.stop"]);
    assert_eq!(kinds(&mapping, "H", &json!({})), ["x.h"]);
}

#[test]
fn a_file_may_extend_an_embedded_one() {
    let yaml = "
schema_version: aep.mapping/v1
agent: cousin
extends: claude-code
inherit: [PreToolUse, PostToolUse, SessionStart]
common: { session.turn_id: { source: /turn } }
events:
  - { id: claude.session_start, source_event: SessionStart, canonical_event: agent.start }
  - { id: cousin.idle, source_event: Idle, canonical_event: agent.stop }
control:
  PreToolUse: { unsupported: [ask, defer], answers: { stop: { exit: 3 } } }
install: { user: ~/.cousin/hooks.json }
";
    let mapping = load("cousin.yaml", yaml).unwrap();
    assert_eq!(mapping.gated_hooks(), ["PreToolUse"]);
    let payload = json!({"session_id": "s", "turn": "t", "tool_name": "Bash", "tool_use_id": "u"});
    let [event] = map(&mapping, "PreToolUse", &payload).try_into().unwrap();
    assert_eq!(event["session"]["turn_id"], "t");
    assert_eq!(event["agent"]["slug"], "cousin");
    assert_eq!(kinds(&mapping, "SessionStart", &payload), ["agent.start"]);
    assert_eq!(kinds(&mapping, "Idle", &payload), ["agent.stop"]);
    assert_eq!(kinds(&mapping, "Stop", &payload), ["x.stop"]);
    let control = mapping.control("PreToolUse").unwrap();
    assert_eq!(control.answer(Behavior::Stop, "x").exit, 3);
    assert_eq!(control.said(Behavior::Ask), Behavior::Deny);
    assert_eq!(control.deadline_ms, Some(290_000));
    let install = mapping.install().unwrap();
    assert_eq!(install.user.as_deref(), Some("~/.cousin/hooks.json"));
    assert_eq!(install.format, "json");
    assert_eq!(mapping.hook_of(&json!({"hook_event_name": "Idle"})).as_deref(), Some("Idle"));
    let unknown = problems(&yaml.replace("claude-code", "claude-cod"));
    assert!(unknown[0].contains("did you mean `claude-code`?"), "{unknown:?}");
}

#[test]
fn broken_examples_are_found_out() {
    let yaml = file(
        "  - {id: x, source_event: H, canonical_event: agent.stop}
  - {id: y, source_event: Gate, gated: true, canonical_event: action.requested}
examples:
  - {hook: H, payload: {}, events: agent.start, gated: true, check: {/0/hook: I, /0/type: agent.stop}}
  - {hook: Gate, payload: {}, events: action.requested}
answers:
  - {hook: Gate, behavior: deny, exit: 0}
  - {hook: Gate, behavior: allow, exit: 2, stderr: \"\\n\", degraded_from: }",
    );
    let mapping = load("probe.yaml", &yaml).unwrap();
    let found: Vec<String> = mapping.verify().iter().map(ToString::to_string).collect();
    let found = found.join("\n");
    for wanted in [
        "`H` became [agent.stop], not [agent.start] at line 7",
        "`H` does not wait for a decision",
        "/0/hook is \"H\", not \"I\"",
        "`Gate`: AEP-",
        "`Gate` deny: exit is \"2\", not \"0\"",
        "`Gate` allow: degraded from allow",
    ] {
        assert!(found.contains(wanted), "{wanted}\n--- in ---\n{found}");
    }
    assert!(!found.contains("/0/type is"), "{found}");
}

#[test]
fn a_fallback_that_lets_a_gated_action_through_is_found_out() {
    let yaml = "
schema_version: aep.mapping/v1
agent: a
events: [{id: x, source_event: G, gated: true, canonical_event: action.requested, correlate: request}]
control: {G: {answers: {allow: {stdout: {ok: true}}, deny: {stdout: {ok: false}}}, fallback: {stdout: {ok: true}}}}
";
    let found = load("a", yaml).unwrap().verify();
    assert!(found.iter().any(|p| p.to_string().contains("lets the action through")), "{found:?}");
    let strict = yaml.replace("fallback: {stdout: {ok: true}}", "fallback: {stdout: {ok: false}}");
    let found = load("a", &strict).unwrap().verify();
    assert!(found.iter().all(|problem| problem.warning), "{found:?}");
}

proptest::proptest! {
    /// Any text is a file or a list of problems.
    #[test]
    fn no_file_is_too_odd(text in "[a-z:{}\\[\\]/ \\n&*<|>'\"-]{0,80}") {
        let _loaded = load("odd.yaml", &text);
        let _loaded = load("odd.yaml", &file(&text));
    }

    /// A file that is broken anywhere is one that works, or a list of problems.
    #[test]
    fn no_broken_file_is_too_odd(at in 0..1_000_usize, put in "[a-z:{}/ \\n*&-]{0,3}") {
        let yaml = file(WHOLE);
        let (before, after) = yaml.split_at(at.min(yaml.len()));
        let _loaded = load("odd.yaml", &format!("{before}{put}{after}"));
    }
}
