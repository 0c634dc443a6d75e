use std::io::Write as _;

use super::*;

fn repaired(content: &[u8], args: &RepairArgs) -> (u8, String, String) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(content).unwrap();
    let input = file.path().to_str().unwrap().to_owned();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = run(&RepairArgs { input, ..args.clone() }, &mut out, &mut err).unwrap();
    (code, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
}

const STARTED: &str =
    r#"{"type":"RUN_STARTED","threadId":"t","runId":"r","protocolVersion":"1.0"}"#;

#[test]
fn frames_with_carriage_returns_become_lines() {
    let broken = format!(
        "data: {STARTED}\r\n\r\ndata: {{\"type\":\"RUN_ERROR\",\"message\":\"x\"}}\r\n\r\n"
    );
    let (code, out, err) = repaired(broken.as_bytes(), &RepairArgs::default());
    assert_eq!(code, GOOD);
    assert_eq!(out, format!("{STARTED}\n{{\"type\":\"RUN_ERROR\",\"message\":\"x\"}}\n"));
    assert_eq!(
        err,
        "framing: replaced the frames, as line 1 ends with a carriage return (AGUI-SSE-01)\n2 events, 1 change\n"
    );
}

#[test]
fn changes_are_told_with_their_rule_and_events_can_go_out_as_an_agent_sends_them() {
    let args = RepairArgs { sse: true, json: true, ..RepairArgs::default() };
    let (code, out, err) = repaired(STARTED.as_bytes(), &args);
    assert_eq!(code, GOOD);
    assert!(
        out.starts_with(&format!("data: {STARTED}\n\ndata: {{\"type\":\"RUN_ERROR\"")),
        "{out}"
    );
    assert!(err.starts_with(r#"{"message":2,"rule":"AGUI-SEQ-26","what":"#), "{err}");
}

#[test]
fn checking_writes_nothing_and_fails_only_where_something_is_to_be_changed() {
    let args = RepairArgs { check: true, ..RepairArgs::default() };
    let whole = format!("{STARTED}\n{{\"type\":\"RUN_ERROR\",\"message\":\"x\"}}\n");
    let (code, out, err) = repaired(whole.as_bytes(), &args);
    assert_eq!((code, out.as_str(), err.as_str()), (GOOD, "", "2 events, 0 changes\n"));
    let (code, out, _) = repaired(STARTED.as_bytes(), &args);
    assert_eq!((code, out.as_str()), (REFUSED, ""));
}

#[test]
fn what_is_no_agui_is_refused() {
    for content in [
        &b""[..],
        b"just words\nand more\n",
        b"<!doctype html><p>",
        br#"{"aep_version":"0.1","id":"e","type":"agent.stop"}"#,
    ] {
        let (code, out, err) = repaired(content, &RepairArgs::default());
        assert_eq!((code, out.as_str()), (REFUSED, ""), "{err}");
        assert!(err.contains("error: "), "{err}");
    }
}
