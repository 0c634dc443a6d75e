use serde_json::json;

use super::*;

fn claude() -> Mapping {
    Mapping::load(EMBEDDED[0].0, EMBEDDED[0].1).unwrap()
}

fn stamp() -> Stamp<'static> {
    Stamp { session: "s_1", seq: 7, time: "2026-11-15T09:00:00Z".parse().unwrap() }
}

#[test]
fn a_tool_call_becomes_a_gated_request() {
    let payload = json!({
        "session_id": "abc", "prompt_id": "p1", "cwd": "/src", "permission_mode": "default",
        "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_use_id": "toolu_1",
        "tool_input": { "command": "ls", "description": "List" },
    });
    let mapped = claude().map("PreToolUse", &payload, &stamp());
    assert!(mapped.gated);
    let event = &mapped.events[0];
    let expected = json!({
        "aep_version": "0.1", "id": event["id"], "type": "action.requested",
        "time": "2026-11-15T09:00:00.000Z", "hook": "PreToolUse",
        "agent": { "slug": "claude", "display_name": "Claude Code" },
        "action": {
            "id": "toolu_1", "type": "tool_call", "rationale": "List",
            "input": { "command": "ls", "description": "List" },
        },
        "session": { "id": "abc", "turn_id": "p1", "permission_mode": "default" },
        "tool": { "name": "Bash", "type": "native" },
        "workspace": { "cwd": "/src" },
    });
    assert_eq!(event, &expected);
    assert_eq!(mapped.events.len(), 1);
}

#[test]
fn an_mcp_tool_is_split_at_the_first_double_underscore_after_its_server() {
    let payload = json!({
        "tool_name": "mcp__git_hub__create__issue", "tool_use_id": "t", "tool_input": {},
    });
    let mapped = claude().map("PreToolUse", &payload, &stamp());
    assert_eq!(mapped.events[0]["server"]["name"], "git_hub");
    assert_eq!(mapped.events[0]["tool"]["name"], "create__issue");
    assert_eq!(mapped.events[0]["tool"]["type"], "mcp");
}

#[test]
fn a_stop_says_the_last_words_first() {
    let payload = json!({ "session_id": "abc", "last_assistant_message": "Done." });
    let kinds = |payload| {
        let mapped = claude().map("Stop", payload, &stamp());
        mapped.events.iter().map(|event| event["type"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(kinds(&payload), ["model.response", "agent.stop"]);
    assert_eq!(kinds(&json!({ "session_id": "abc" })), ["agent.stop"]);
}

#[test]
fn a_request_without_an_id_stays_gated_and_names_no_action() {
    let mapped = claude().map("PreToolUse", &json!({ "session_id": "abc" }), &stamp());
    assert!(mapped.gated);
    assert_eq!(mapped.events[0]["type"], "x.pretooluse");
}

#[test]
fn an_unknown_hook_is_kept() {
    let mapped = claude().map("BrandNew", &json!([1, 2]), &stamp());
    assert!(!mapped.gated);
    assert_eq!(mapped.events[0]["type"], "x.brandnew");
}

#[test]
fn ids_do_not_depend_on_when_or_how_often() {
    let payload = json!({ "session_id": "abc", "last_assistant_message": "Done." });
    assert_eq!(claude().map("Stop", &payload, &stamp()), claude().map("Stop", &payload, &stamp()));
}

#[test]
fn mistakes_in_a_file_are_named_with_their_place() {
    let unknown =
        "schema_version: aep.mapping/v1\nagent: a\nevents:\n  - {id: x, source_evnt: y}\n";
    let error = Mapping::load("a.yaml", unknown).unwrap_err().to_string();
    assert!(error.contains("a.yaml") && error.contains("line 4"), "{error}");
    let pointer = "schema_version: aep.mapping/v1\nagent: a\nevents:\n  - {id: x, source_event: y, canonical_event: z.z, fields: {a: {source: b}}}\n";
    let error = Mapping::load("a.yaml", pointer).unwrap_err().to_string();
    assert!(error.contains("rule x") && error.contains("JSON Pointer"), "{error}");
}

/// The samples of the reference data, where they are there: each gives valid AEP of the type its index names.
#[test]
fn reference_payloads_become_valid_events() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/agents");
    let Ok(index) = std::fs::read_to_string(root.join("index.json")) else {
        eprintln!("skipped: no reference data beside the repository");
        return;
    };
    let index: Value = serde_json::from_str(&index).unwrap();
    let mut seen = 0;
    for hook in [
        "PreToolUse",
        "PreToolUse.mcp",
        "PreToolUse.skill",
        "PreToolUse.subagent",
        "PreToolUse.question",
        "PostToolUse",
        "PostToolUseFailure",
        "UserPromptSubmit",
        "Stop",
        "SessionStart",
        "SessionEnd",
        "Notification",
        "StopFailure",
        "PreCompact",
        "SubagentStart",
        "SubagentStop",
    ] {
        let file = format!("claude-code/{hook}.json");
        let payload: Value =
            serde_json::from_str(&std::fs::read_to_string(root.join(&file)).unwrap()).unwrap();
        let name = hook.split('.').next().unwrap();
        let mapped = claude().map(name, &payload, &stamp());
        for event in &mapped.events {
            let errors: Vec<_> = crate::check::value(crate::event::Protocol::Aep, event)
                .into_iter()
                .filter(|finding| finding.rule.severity == crate::finding::Severity::Error)
                .collect();
            assert!(errors.is_empty(), "{file}: {errors:?}");
        }
        let text = index.to_string();
        assert!(text.contains(&file), "{file} is not in the index");
        seen += 1;
    }
    assert_eq!(seen, 16);
}
