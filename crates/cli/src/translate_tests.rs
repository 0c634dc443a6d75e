use banister_events::check::Checker;
use clap::Parser;
use serde_json::{Value, json};

use super::*;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    args: TranslateArgs,
}

/// Exit code, stdout, stderr; a failure is its exit code and its words.
fn translate(words: &[&str], files: &[&str]) -> (u8, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let mut words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    for (number, text) in files.iter().enumerate() {
        let path = folder.path().join(format!("{number}.jsonl"));
        fs::write(&path, text).unwrap();
        words.push(path.to_str().unwrap().to_owned());
    }
    let line = Line::try_parse_from(["translate".to_owned()].into_iter().chain(words)).unwrap();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let result = run(&line.args, &mut out, &mut err);
    let out = String::from_utf8(out).unwrap();
    match result {
        Ok(code) => (code, out, String::from_utf8(err).unwrap()),
        Err(error) => {
            let code = error.downcast_ref::<Failure>().map_or(3, |failure| failure.code);
            (code, out, error.to_string())
        }
    }
}

fn events(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A run of AG-UI that says one sentence.
fn run_of(thread: &str) -> String {
    let run = [
        json!({ "type": "RUN_STARTED", "threadId": thread, "runId": format!("{thread}-1") }),
        json!({ "type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant" }),
        json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "The tide is low." }),
        json!({ "type": "TEXT_MESSAGE_END", "messageId": "m" }),
        json!({ "type": "RUN_FINISHED", "threadId": thread, "runId": format!("{thread}-1") }),
    ];
    run.map(|event| event.to_string()).join("\n") + "\n"
}

const CALL: &str = r#"{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls -la"},"tool_use_id":"t1"}"#;

#[test]
fn the_protocol_is_told_by_the_first_message() {
    let (code, out, err) = translate(&["--to", "aaep"], &[&run_of("harbour")]);
    assert_eq!(code, 0, "{err}");
    let told = events(&out);
    assert_eq!(told.first().unwrap()["type"], "aaep:agent.session.started");
    assert_eq!(told.last().unwrap()["type"], "aaep:agent.session.completed");
    assert!(told.iter().any(|event| event["chunk"] == "The tide is low."), "{out}");
}

#[test]
fn what_comes_out_is_a_clean_stream() {
    for to in Protocol::ALL {
        let (code, out, _) = translate(&["--to", to.name()], &[&run_of("harbour")]);
        assert_eq!(code, 0);
        let mut checker = Checker::new(to);
        let mut findings: Vec<_> =
            out.lines().flat_map(|line| checker.message(line.as_bytes())).collect();
        findings.extend(checker.finish());
        assert!(findings.is_empty(), "{to}: {findings:?}");
    }
}

#[test]
fn payloads_of_a_hook_become_events() {
    let (code, out, err) = translate(&["--from", "hook:claude-code", "--to", "aep"], &[CALL]);
    assert_eq!(code, 0, "{err}");
    let requested = events(&out);
    let requested = requested.iter().find(|event| event["type"] == "action.requested").unwrap();
    assert_eq!(requested["agent"]["slug"], "claude");
    assert!(requested.to_string().contains("ls -la"), "{requested}");
}

#[test]
fn people_are_spoken_to_in_their_language() {
    let words = ["--from", "hook:claude-code", "--to", "aaep", "--lang"];
    let (_, english, _) = translate(&[&words[..], &["en"]].concat(), &[CALL]);
    let (code, spanish, _) = translate(&[&words[..], &["es"]].concat(), &[CALL]);
    assert_eq!(code, 0);
    assert_ne!(english, spanish);
    assert!(spanish.contains("ls -la") && spanish.contains(r#""primary_language":"es""#));
    let (code, out, err) = translate(&[&words[..], &["tlh"]].concat(), &[CALL]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.contains("\"tlh\"") && err.contains("ja"), "{err}");
}

#[test]
fn the_same_input_at_the_same_time_gives_the_same_bytes() {
    let words = ["--to", "aep", "--time", "2026-03-01T09:00:00Z"];
    let first = translate(&words, &[&run_of("harbour")]);
    assert_eq!(first, translate(&words, &[&run_of("harbour")]));
    assert!(first.1.contains("2026-03-01T09:00:00"), "{}", first.1);
}

#[test]
fn a_message_that_is_broken_is_reported_and_the_next_is_read() {
    let text = format!("{}{{\"type\": \n{}", run_of("one"), run_of("two"));
    let (code, out, err) = translate(&["--to", "aaep"], &[&text]);
    assert_eq!(code, 0);
    assert_eq!(out.matches("session.completed").count(), 2, "{out}");
    assert!(err.contains("message 6 was not read"), "{err}");
    let (_, _, err) = translate(&["--to", "aaep", "--json"], &[&text]);
    let report: Value = serde_json::from_str(&err).unwrap();
    assert_eq!(report["messages"], 11);
}

#[test]
fn several_files_are_one_input_and_each_session_may_have_its_own() {
    let files = [run_of("one"), run_of("two")];
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let (code, out, _) = translate(&["--to", "agui", "--quiet"], &files);
    assert_eq!((code, out.matches("RUN_STARTED").count()), (0, 2));
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("out");
    let (code, out, _) =
        translate(&["--to", "aaep", "--quiet", "--out", place.to_str().unwrap()], &files);
    assert_eq!((code, out.as_str()), (0, ""));
    assert_eq!(fs::read_dir(&place).unwrap().count(), 2);
}

#[test]
fn bare_output_carries_nothing_of_ours() {
    let (_, carried, _) = translate(&["--to", "aaep"], &[&run_of("harbour")]);
    let (code, bare, _) = translate(&["--to", "aaep", "--bare"], &[&run_of("harbour")]);
    assert_eq!(code, 0);
    assert!(carried.contains("extensions") && !bare.contains("extensions"), "{bare}");
}

#[test]
fn wrong_usage_says_what_is_known() {
    let cases = [
        (&["--to", "morse"][..], "aaep, agui or aep"),
        (&["--to", "aaep", "--from", "hook:nobody"], "claude-code"),
        (&["--to", "aaep", "--from", "agui", "--hook", "Stop"], "hook:AGENT"),
    ];
    for (words, remedy) in cases {
        let (code, out, err) = translate(words, &[CALL]);
        assert_eq!((code, out.as_str()), (2, ""), "{words:?}");
        assert!(err.contains(remedy), "{words:?}: {err}");
    }
    let (code, _, err) = translate(&["--to", "aaep"], &[""]);
    assert_eq!(code, 1);
    assert!(err.contains("no messages"), "{err}");
    let (code, _, err) = translate(&["--to", "aaep"], &["{\"a\": 1}\n"]);
    assert_eq!(code, 1);
    assert!(err.contains("--from"), "{err}");
}
