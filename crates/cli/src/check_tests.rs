use std::path::Path;

use super::*;

struct Outcome {
    code: u8,
    out: String,
    err: String,
}

fn check_with(args: &CheckArgs, content: &[u8]) -> Outcome {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), content).unwrap();
    let args = CheckArgs { input: file.path().to_owned(), ..args.clone() };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = run(&args, &mut out, &mut err).unwrap();
    Outcome { code, out: String::from_utf8(out).unwrap(), err: String::from_utf8(err).unwrap() }
}

fn check(content: &str) -> Outcome {
    check_with(&CheckArgs::default(), content.as_bytes())
}

fn as_sse(lines: &str) -> String {
    let mut out = Vec::new();
    for line in lines.lines() {
        sse::comment(&mut out, "hi");
        sse::write(&mut out, &sse::Outgoing { id: Some("1"), event: None, data: line });
    }
    String::from_utf8(out).unwrap()
}

const GOOD: &str = r#"{"type":"RUN_STARTED","threadId":"t","runId":"r","protocolVersion":"1.0"}
{"type":"RUN_FINISHED","threadId":"t","runId":"r"}
"#;

const BAD: &str = r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}

{"type":"STEP_FINISHED","stepName":"s"}
{"type":"RUN_FINISHED","threadId":"t","runId":"r"}
"#;

#[test]
fn a_good_recording_is_good_in_every_layout() {
    let array = format!("[\n{}\n]", GOOD.trim().replace('\n', ",\n"));
    let pretty = GOOD.replace("{\"", "{\n  \"");
    let sse = as_sse(GOOD);
    let marked = format!("\u{feff}{GOOD}");
    for content in [GOOD, &array, &pretty, &sse, &marked, &GOOD.replace('\n', "\r\n")] {
        let outcome = check(content);
        assert_eq!((outcome.code, outcome.out.as_str()), (0, ""), "{content}");
        assert_eq!(outcome.err, "2 events, AG-UI 1.0: 0 errors, 0 warnings\n", "{content}");
    }
}

#[test]
fn findings_go_out_with_place_and_remedy_and_the_summary_goes_to_people() {
    let outcome = check(BAD);
    assert_eq!(outcome.code, 1);
    assert_eq!(
        outcome.out,
        "warning[AGUI-EVT-11] line 1, /protocolVersion: the run declares no protocolVersion\n  \
         help: Add \"protocolVersion\": \"1.0\".\n\
         error[AGUI-SEQ-16] line 3, /stepName: no step \"s\" is open\n  \
         help: Send STEP_STARTED with the same stepName and subagentRunId first.\n"
    );
    assert_eq!(outcome.err, "3 events, AG-UI 1.0: 1 error, 1 warning\n");
}

#[test]
fn json_is_one_object_with_every_finding() {
    let outcome =
        check_with(&CheckArgs { format: Format::Json, ..CheckArgs::default() }, BAD.as_bytes());
    let report: Value = serde_json::from_str(&outcome.out).unwrap();
    assert_eq!((outcome.code, outcome.err.as_str()), (1, ""));
    assert_eq!(report["schema"], "banister.check/v1");
    assert_eq!(report["protocol"], "agui");
    assert_eq!(
        (&report["events"], &report["errors"], &report["warnings"]),
        (&json!(3), &json!(1), &json!(1))
    );
    assert_eq!(report["findings"][1]["code"], "AGUI-SEQ-16");
    assert_eq!(report["findings"][1]["line"], 3);
    let good =
        check_with(&CheckArgs { format: Format::Json, ..CheckArgs::default() }, GOOD.as_bytes());
    assert_eq!(serde_json::from_str::<Value>(&good.out).unwrap()["findings"], json!([]));
}

#[test]
fn one_event_is_not_judged_by_order() {
    for content in [
        r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#,
        "{\n\"type\":\"RAW\",\n\"event\":1}\n",
    ] {
        assert_eq!(check(content).code, 0, "{content}");
    }
    assert_eq!(check(&GOOD.lines().rev().collect::<Vec<_>>().join("\n")).code, 1);
}

#[test]
fn strict_allow_and_deny_change_what_counts() {
    let warning = BAD.replace("{\"type\":\"STEP_FINISHED\",\"stepName\":\"s\"}\n", "");
    let code = |args: &CheckArgs| check_with(args, warning.as_bytes()).code;
    let version = || vec!["AGUI-EVT-11".to_owned()];
    assert_eq!(code(&CheckArgs::default()), 0);
    assert_eq!(code(&CheckArgs { strict: true, ..CheckArgs::default() }), 1);
    assert_eq!(code(&CheckArgs { deny: version(), ..CheckArgs::default() }), 1);
    assert_eq!(code(&CheckArgs { strict: true, allow: version(), ..CheckArgs::default() }), 0);
}

#[test]
fn max_bounds_what_is_printed_not_what_is_counted() {
    let outcome = check_with(&CheckArgs { max: Some(1), ..CheckArgs::default() }, BAD.as_bytes());
    assert_eq!((outcome.code, outcome.out.lines().count()), (1, 2));
    assert_eq!(outcome.err, "3 events, AG-UI 1.0: 1 error, 1 warning (1 of 2 shown)\n");
}

#[test]
fn wrong_use_is_told_apart_from_a_bad_recording() {
    let of = |args: CheckArgs| check_with(&args, GOOD.as_bytes());
    let unknown = of(CheckArgs { deny: vec!["AGUI-SEG-16".into()], ..CheckArgs::default() });
    assert_eq!((unknown.code, unknown.out.as_str()), (2, ""));
    assert!(unknown.err.contains("did you mean AGUI-SEQ-16?"), "{}", unknown.err);
    assert_eq!(of(CheckArgs { protocol: Some("http".into()), ..CheckArgs::default() }).code, 2);
    assert_eq!(check("{\"a\":1}\n{\"b\":2}\n").code, 2);
    let late = "{\"a\":1}\n".repeat(9) + GOOD;
    assert_eq!(check(&late).code, 2, "messages nobody looked at must not pass");
    let mut err = Vec::new();
    let args =
        CheckArgs { input: Path::new("/nowhere/at/all.jsonl").into(), ..CheckArgs::default() };
    assert_eq!(run(&args, &mut Vec::new(), &mut err).unwrap(), 3);
    assert!(
        String::from_utf8(err).unwrap().starts_with("error: cannot read /nowhere/at/all.jsonl: ")
    );
}

#[test]
fn an_empty_recording_is_an_error_that_says_so() {
    for content in ["", "\n \n", "just words\n", ": comment\n\n"] {
        for protocol in [None, Some("aep".to_owned())] {
            let outcome =
                check_with(&CheckArgs { protocol, ..CheckArgs::default() }, content.as_bytes());
            assert_eq!(outcome.code, 1, "{content:?}");
            assert!(outcome.err.contains("no events"), "{}", outcome.err);
        }
    }
}

#[test]
fn a_broken_line_is_a_finding_and_the_rest_is_read() {
    let outcome = check(&format!("{{\"type\": oops}}\n{GOOD}"));
    assert_eq!(outcome.code, 1);
    assert!(
        outcome.out.starts_with("error[AGUI-EVT-01] line 1: the message is not JSON"),
        "{}",
        outcome.out
    );
    assert_eq!(outcome.err, "3 events, AG-UI 1.0: 1 error, 0 warnings\n");
}

#[test]
fn a_stream_cut_off_is_reported_at_its_end() {
    let outcome =
        check(&format!("{}\n{{\"type\":\"RAW\",\"event\":1}}", GOOD.lines().next().unwrap()));
    assert_eq!(outcome.code, 1);
    assert!(outcome.out.starts_with("error[AGUI-SEQ-26] end of input: "), "{}", outcome.out);
}

#[test]
fn an_oversized_message_is_a_finding() {
    let long = "x".repeat(MESSAGE_BYTES);
    for content in [
        format!("{GOOD}{{\"type\":\"{long}\"}}\n"),
        as_sse(GOOD) + &as_sse(&long),
        format!("[{},{{\"type\":\"{long}\"}}]", GOOD.trim().replace('\n', ",")),
    ] {
        let outcome = check(&content);
        assert_eq!(outcome.code, 1);
        assert!(outcome.out.contains("a message is larger than 8388608 bytes"), "{}", outcome.out);
    }
}
