use clap::Parser;

use super::*;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    args: AgentsArgs,
}

/// Exit code, stdout, stderr; a failure is its exit code and its words.
fn agents(words: &[&str], input: &str) -> (u8, String, String) {
    let line = Line::try_parse_from(["agents"].iter().chain(words)).unwrap();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let result = run(&line.args, &mut input.as_bytes(), &mut out, &mut err);
    let out = String::from_utf8(out).unwrap();
    match result {
        Ok(code) => (code, out, String::from_utf8(err).unwrap()),
        Err(error) => {
            let code = error.downcast_ref::<Failure>().map_or(3, |failure| failure.code);
            (code, out, error.to_string())
        }
    }
}

const CALL: &str = r#"{"session_id": "s", "hook_event_name": "PreToolUse", "tool_name": "Bash",
    "tool_input": {"command": "ls"}, "tool_use_id": "t1"}"#;

#[test]
fn the_list_has_a_line_per_agent() {
    let (code, out, err) = agents(&["list"], "");
    assert_eq!((code, err.as_str()), (0, ""));
    let known = Agents::builtin().unwrap();
    assert_eq!(out.lines().count(), 1 + known.iter().count());
    let row = out.lines().find(|line| line.starts_with("claude-code ")).unwrap();
    assert!(row.contains("Claude Code") && row.ends_with("~/.claude/settings.json"), "{row}");
}

#[test]
fn the_list_as_json_names_its_schema() {
    let (_, out, _) = agents(&["list", "--json"], "");
    let value: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(value["schema"], "banister.agents/v1");
    let claude = &value["agents"][0];
    assert_eq!((&claude["name"], &claude["slug"]), (&json!("claude-code"), &json!("claude")));
    assert_eq!(claude["gated"], json!(["PermissionRequest", "PreToolUse"]));
    assert_eq!(claude["config"]["project"], ".claude/settings.json");
}

#[test]
fn every_agent_is_shown_for_people_and_for_programs() {
    for agent in Agents::builtin().unwrap().iter() {
        let (code, out, _) = agents(&["show", &agent.name], "");
        assert_eq!(code, 0);
        assert!(out.starts_with(&format!("{}  {}\n", agent.name, agent.display_name)), "{out}");
        let (_, out, _) = agents(&["show", &agent.name, "--json"], "");
        let value: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(value["schema"], "banister.agent/v1");
        assert_eq!(value["hooks"].as_array().unwrap().len(), agent.rows().len());
        assert_eq!(value["answers"].as_array().unwrap().len(), agent.hooks().count());
    }
}

#[test]
fn an_agent_is_shown_with_what_degrades_to_what() {
    let (_, out, _) = agents(&["show", "claude"], "");
    for wanted in [
        "\nPreToolUse           yes    action.requested, question.asked, model.plan\n",
        "\nPostToolBatch        no     nothing\n",
        "\n  understands  allow, deny, ask, defer, stop, abstain; an allow may change the input\n",
        "\n  otherwise    block becomes deny, continue becomes abstain\n",
        "\n  waits        290000 ms\n",
        "\n  no gateway   exit 2, REASON\n",
        "\nany other hook\n",
    ] {
        assert!(out.contains(wanted), "{wanted:?} in\n{out}");
    }
    let (_, out, _) = agents(&["show", "claude", "--json"], "");
    let value: Value = serde_json::from_str(&out).unwrap();
    let pre = value["answers"].as_array().unwrap().iter().find(|a| a["hook"] == "PreToolUse");
    assert_eq!(pre.unwrap()["degrades"], json!({"block": "deny", "continue": "abstain"}));
}

#[test]
fn unknown_names_are_usage_errors_with_a_hint() {
    for (words, hint) in [
        (&["show", "claude-cod"][..], "did you mean claude-code?"),
        (&["try", "claude", "--hook", "Stop", "--answer", "alow"][..], "did you mean allow?"),
    ] {
        let (code, out, err) = agents(words, "");
        assert_eq!((code, out.as_str()), (2, ""));
        assert!(err.contains(hint), "{err}");
    }
}

#[test]
fn a_payload_is_tried() {
    let (code, out, err) = agents(&["try", "claude"], CALL);
    assert_eq!((code, err.as_str()), (0, "note: PreToolUse waits for a decision\n"));
    let event: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (&event["type"], &event["action"]["id"]),
        (&json!("action.requested"), &json!("t1"))
    );
    let (_, out, err) = agents(&["try", "claude", "--hook", "PreToolUs"], CALL);
    assert!(out.contains("x.pretoolus") && err.contains("did you mean PreToolUse?"), "{out}{err}");
}

#[test]
fn a_payload_that_makes_a_bad_event_is_found_out() {
    let (code, _, err) = agents(&["try", "claude"], &CALL.replace("\"Bash\"", "{}"));
    assert_eq!(code, 1, "{err}");
    assert!(err.starts_with("error: AEP-"), "{err}");
}

#[test]
fn what_is_no_payload_is_refused() {
    let (code, out, err) = agents(&["try", "claude"], "{");
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.contains("not JSON"), "{err}");
    let (code, _, err) = agents(&["try", "claude"], "{}");
    assert_eq!(code, 2);
    assert!(err.contains("--hook"), "{err}");
}

#[test]
fn an_answer_is_tried() {
    let (code, out, err) =
        agents(&["try", "claude", "--answer", "deny", "--message", "no \"x\""], CALL);
    assert_eq!((code, err.as_str()), (0, "\nexit: 0\n"));
    assert!(out.ends_with(r#""permissionDecisionReason":"no \"x\""}}"#), "{out}");
    let words = ["try", "claude", "--hook", "TeammateIdle", "--answer", "stop", "--message", "m"];
    let (code, out, err) = agents(&words, "");
    assert_eq!((code, out.as_str()), (0, ""));
    assert_eq!(
        err,
        "note: TeammateIdle does not understand stop, deny is said instead\nexit: 2\nstderr: m\n"
    );
}

#[test]
fn a_file_is_checked() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("probe.yaml");
    let name = file.to_str().unwrap();
    let good = "schema_version: aep.mapping/v1\nagent: probe\nevents:\n  - {id: a.b, source_event: H, canonical_event: agent.stop}\nexamples:\n  - {hook: H, payload: {}, events: agent.stop}\n";
    std::fs::write(&file, good).unwrap();
    assert_eq!(agents(&["check", name], ""), (0, String::new(), "0 errors, 0 warnings\n".into()));
    std::fs::write(&file, good.replace("events: agent.stop", "events: agent.start")).unwrap();
    let (code, out, err) = agents(&["check", name], "");
    assert_eq!((code, err.as_str()), (1, "1 error, 0 warnings\n"));
    assert!(out.contains("probe.yaml: error: `H` became [agent.stop]"), "{out}");
    std::fs::write(&file, good.replace("source_event", "sorce_event")).unwrap();
    let (code, out, _) = agents(&["check", name], "");
    assert_eq!(code, 1);
    assert!(
        out.contains(
            "unknown key `sorce_event` at line 4, column 15: did you mean `source_event`?"
        ),
        "{out}"
    );
    let (code, _, err) = agents(&["check", "/nowhere/at/all.yaml"], "");
    assert_eq!(code, 3);
    assert!(err.contains("cannot read /nowhere"), "{err}");
}
