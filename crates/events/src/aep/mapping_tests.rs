use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::aep::dialect::{Answer, Behavior, Decision};

fn claude() -> Mapping {
    Mapping::load("claude-code.yaml", EMBEDDED[0].1).unwrap()
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
fn every_embedded_file_loads_without_a_warning_and_its_examples_hold() {
    for agent in Agents::builtin().unwrap().iter() {
        assert_eq!(agent.warnings(), [], "{}", agent.name);
        let problems: Vec<String> = agent.verify().iter().map(ToString::to_string).collect();
        assert!(problems.is_empty(), "{}: {problems:#?}", agent.name);
    }
}

/// The samples of the reference data, where they are there: each becomes valid AEP of the types its index names.
#[test]
fn reference_payloads_become_the_events_of_their_index() {
    let Some((root, index)) = reference() else { return };
    for agent in Agents::builtin().unwrap().iter() {
        let samples: Vec<(&Value, &str, String, Value)> = index["samples"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|sample| sample["agent"] == agent.name.as_str())
            .map(|sample| {
                let file = sample["file"].as_str().unwrap();
                let text = std::fs::read_to_string(root.join(file)).unwrap();
                let payload: Value = serde_json::from_str(&text).unwrap();
                let named = file.rsplit('/').next().unwrap().split('.').next().unwrap();
                let hook = agent.hook_of(&payload).unwrap_or_else(|| named.to_owned());
                (&sample["aep"], file, hook, payload)
            })
            .collect();
        assert!(!samples.is_empty(), "{}", agent.name);
        // An end without a request is told less of: some agents name the tool only once.
        let mut asked = Correlator::default();
        let requests = |wanted: &Value| wanted.to_string().contains("action.requested");
        for (_, _, hook, payload) in samples.iter().filter(|(wanted, ..)| requests(wanted)) {
            agent.map_with(&mut asked, hook, payload, &stamp());
        }
        for (wanted, file, hook, payload) in &samples {
            let alone = requests(wanted);
            let mut known = if alone { Correlator::default() } else { asked.clone() };
            let mapped = agent.map_with(&mut known, hook, payload, &stamp());
            let kinds: Vec<&str> =
                mapped.events.iter().map(|event| event["type"].as_str().unwrap()).collect();
            let wanted: Vec<&str> = match wanted {
                Value::String(kind) => vec![kind],
                Value::Array(kinds) => kinds.iter().map(|kind| kind.as_str().unwrap()).collect(),
                _ => Vec::new(),
            };
            for kind in &wanted {
                assert!(kinds.contains(kind), "{file}: {kinds:?} has no {kind}");
            }
            if wanted.is_empty() {
                assert!(kinds.iter().all(|kind| kind.starts_with("x.")), "{file}: {kinds:?}");
            }
            for event in &mapped.events {
                let found = crate::check::value(crate::event::Protocol::Aep, event);
                let wrong: Vec<_> = found
                    .into_iter()
                    .filter(|finding| finding.rule.severity > crate::finding::Severity::Note)
                    .collect();
                assert!(wrong.is_empty(), "{file}: {wrong:?}");
            }
        }
    }
}

/// The native answers of the reference data, where they are there, are what we say.
#[test]
fn reference_answers_are_said_word_for_word() {
    let Some((root, _)) = reference() else { return };
    let (mut said, mut unsaid) = (0, Vec::new());
    for agent in Agents::builtin().unwrap().iter() {
        let Ok(folder) = std::fs::read_dir(root.join(&agent.name).join("_responses")) else {
            continue;
        };
        for entry in folder {
            let path = entry.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let wanted: Value = serde_json::from_str(&text).unwrap();
            let name = path.file_stem().unwrap().to_str().unwrap();
            if says(agent, name.split('.').next().unwrap(), &wanted) {
                said += 1;
            } else {
                unsaid.push(format!("{}/{name}", agent.name));
            }
        }
    }
    unsaid.sort();
    // A REST call is no hook's answer; environment values are nothing that a decision holds.
    assert_eq!(unsaid, ["cursor/sessionStart.context", "opencode/rest.permission"]);
    assert!(said > 90, "{said}");
}

/// Whether some decision with the words and values of an answer makes the agent's dialect say exactly that answer.
fn says(agent: &Mapping, named: &str, wanted: &Value) -> bool {
    let Some(behavior) = wanted["aep_behavior"].as_str().and_then(Behavior::parse) else {
        return false;
    };
    // Shims are answered with the document itself.
    let mut shim = wanted.clone();
    if let Some(shim) = shim.as_object_mut() {
        for key in ["effect", "aep_behavior", "note"] {
            shim.shift_remove(key);
        }
    }
    let stdout = wanted.get("stdout").unwrap_or(&shim);
    let stderr = wanted["stderr"].as_str().unwrap_or_default();
    let exit = wanted["exit_code"].as_u64().unwrap_or_default();
    let (mut words, mut values) = (vec![None, Some(stderr.to_owned())], vec![None]);
    gather(stdout, &mut words, &mut values);
    let fits = |answer: &Answer| {
        // Key by key in the order that was written: the bytes are the same.
        let document = stdout.as_str().map_or_else(|| stdout.to_string(), str::to_owned);
        answer.stdout.trim_end() == document.trim_end()
            && u64::from(answer.exit) == exit
            && answer.stderr.trim_end() == stderr.trim_end()
    };
    let hooks = agent.hooks().filter(|(hook, _)| *hook == named);
    let any = agent.hooks().filter(|(hook, _)| *hook != named);
    for (_, control) in hooks.chain(any) {
        for message in &words {
            for reason in &words {
                for context in &words {
                    for input in &values {
                        let decision = Decision {
                            behavior,
                            message: message.clone(),
                            reason: reason.clone(),
                            updated_input: input.clone(),
                            additional_context: context.clone(),
                            input: None,
                        };
                        if fits(&control.respond(&decision).0) {
                            return true;
                        }
                    }
                }
            }
            // Two ways to refuse: one of them is what is said when there is no gateway.
            let fallback = control.fallback.as_ref();
            let message = message.as_deref().unwrap_or_default();
            if fallback.is_some_and(|fallback| fits(&fallback.fill(message))) {
                return true;
            }
        }
    }
    false
}

/// The texts and the objects of a document.
fn gather(value: &Value, words: &mut Vec<Option<String>>, values: &mut Vec<Option<Value>>) {
    match value {
        Value::String(text) => words.push(Some(text.clone())),
        Value::Array(items) => items.iter().for_each(|item| gather(item, words, values)),
        Value::Object(fields) => {
            values.push(Some(value.clone()));
            fields.values().for_each(|field| gather(field, words, values));
        }
        _ => {}
    }
}

fn reference() -> Option<(std::path::PathBuf, Value)> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/agents");
    let Ok(index) = std::fs::read_to_string(root.join("index.json")) else {
        eprintln!("skipped: no reference data beside the repository");
        return None;
    };
    Some((root, serde_json::from_str(&index).unwrap()))
}

/// The example of the reference is a file that works.
#[test]
fn the_documented_file_loads_and_its_examples_hold() {
    let page =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/mapping.md");
    let page = std::fs::read_to_string(page).unwrap();
    let yaml = page.rsplit("```yaml\n").next().unwrap().split("```").next().unwrap();
    let probe = Mapping::load("probe-cli.yaml", yaml).unwrap();
    assert_eq!((probe.warnings(), probe.verify()), (&[][..], Vec::new()));
    let payload = json!({ "event": "idle", "thread": { "id": 7 }, "conversation": "" });
    assert_eq!(probe.hook_of(&payload).as_deref(), Some("idle"));
    assert_eq!(probe.session_of(&payload).as_deref(), Some("7"));
}

#[test]
fn a_payload_that_fits_no_rule_of_a_gated_hook_waits_all_the_same() {
    let agents = Agents::builtin().unwrap();
    for agent in agents.iter() {
        for hook in agent.gated_hooks() {
            for payload in [json!({}), json!([]), json!({ "tool_name": 7, "tool_input": null })] {
                assert!(agent.map(hook, &payload, &stamp()).gated, "{} {hook}", agent.name);
            }
        }
    }
}

/// Payloads with the keys that agents use, and anything behind them.
fn payload() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "mcp__[a-z_]{0,8}|Bash|Skill|AskUserQuestion|ExitPlanMode|Task|.{0,12}"
            .prop_map(Value::from),
    ];
    let key = "session_id|prompt_id|agent_id|tool_name|tool_input|tool_use_id|tool_response|error|is_interrupt|questions|question|plan|answers|prompt|delta|message|trigger|content|[a-z]{1,6}";
    leaf.prop_recursive(3, 40, 8, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::hash_map(key, inner, 0..10)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest::proptest! {
    /// Whatever a payload holds, with and without memory: something comes of it, and a gate stays a gate.
    #[test]
    fn no_payload_is_too_odd(payload in payload(), hook in 0..40_usize) {
        let agents = Agents::builtin().unwrap();
        let mut memory = Correlator::default();
        for agent in agents.iter() {
            let rows = agent.rows();
            let row = &rows[hook % rows.len()];
            let alone = agent.map(row.hook, &payload, &stamp());
            let with = agent.map_with(&mut memory, row.hook, &payload, &stamp());
            proptest::prop_assert_eq!(alone.gated, with.gated);
            proptest::prop_assert!(alone.gated || !row.gated);
        }
    }
}
