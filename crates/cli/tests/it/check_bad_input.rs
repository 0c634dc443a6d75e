//! `banister check` on what is no stream, or a broken one: a finding or a clear error with a place, never a panic, and
//! the next event is checked.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use crate::support::{BANISTER, stderr, stdout};

const GOOD: &str = r#"{"type":"RUN_STARTED","threadId":"t","runId":"r","protocolVersion":"1.0"}
{"type":"RUN_FINISHED","threadId":"t","runId":"r"}
"#;

/// Runs the checker on its standard input.
fn check(args: &[&str], pieces: impl IntoIterator<Item = Vec<u8>> + Send) -> Output {
    let mut child = Command::new(BANISTER)
        .arg("check")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for piece in pieces {
                // A checker that has seen enough may be gone.
                stdin.write_all(&piece).ok();
            }
        });
        child.wait_with_output().unwrap()
    })
}

/// A broken message between good ones: the finding at its line, and all that comes after it.
fn amid(broken: &[u8]) -> String {
    let (first, last) = GOOD.split_once('\n').unwrap();
    let content = [first.as_bytes(), b"\n", broken, b"\n", last.as_bytes()].concat();
    let output = check(&[], [content]);
    let (out, err) = (stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(1), "{out}{err}");
    assert!(out.contains(" --> stdin:2:"), "{out}");
    assert!(!out.contains("AGUI-SEQ-26"), "the end of the run was not seen: {out}");
    assert!(err.starts_with("3 events, AG-UI 1.0: "), "{err}");
    out
}

#[test]
fn truncated_json_is_a_finding_where_it_ends() {
    let out = amid(br#"{"type":"STEP_STARTED","stepName":"s"#);
    assert!(out.contains(" --> stdin:2:37\n"), "{out}");
}

#[test]
fn bytes_that_are_not_utf_8_are_a_finding_where_they_stand() {
    let out = amid(b"{\"type\":\"RAW\",\"event\":\"\xff\xfe\"}");
    assert!(out.contains(" --> stdin:2:24\n"), "{out}");
    assert!(out.contains("⟨FF⟩"), "{out}");
}

#[test]
fn bytes_that_are_not_utf_8_are_found_in_server_sent_events_too() {
    let mut content = Vec::new();
    for line in GOOD.lines() {
        content.extend_from_slice(format!("data: {line}\n\n").as_bytes());
        content.extend_from_slice(b"data: {\"type\":\"RAW\",\"event\":\"\xff\"}\n\n");
    }
    let output = check(&[], [content]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains(" --> stdin:3:30\n"), "{}", stdout(&output));
}

#[test]
fn ten_thousand_levels_are_a_finding() {
    let deep =
        format!("{{\"type\":\"RAW\",\"event\":{}{}}}", "[".repeat(10_000), "]".repeat(10_000));
    amid(deep.as_bytes());
    let objects = "{\"a\":".repeat(10_000) + "1" + &"}".repeat(10_000);
    amid(objects.as_bytes());
    amid("[".repeat(10_000).as_bytes());
}

#[test]
fn duplicate_keys_are_a_finding() {
    amid(br#"{"type":"STEP_STARTED","type":"STEP_FINISHED","stepName":"s"}"#);
}

#[test]
fn half_a_surrogate_pair_is_a_finding() {
    amid(br#"{"type":"RAW","event":"\ud83d"}"#);
}

#[test]
fn a_number_that_no_double_holds_exactly_is_read() {
    let (first, last) = GOOD.split_once('\n').unwrap();
    for number in ["9007199254740993", "123456789012345678901234567890", "-9007199254740993"] {
        let event = format!("{{\"type\":\"RAW\",\"event\":{number}}}");
        let output = check(&[], [format!("{first}\n{event}\n{last}").into_bytes()]);
        assert!(stderr(&output).starts_with("3 events, "), "{}", stderr(&output));
        assert!(matches!(output.status.code(), Some(0 | 1)), "{output:?}");
    }
    amid(br#"{"type":"RAW","event":1e999}"#);
}

#[test]
fn a_byte_order_mark_is_no_finding() {
    let output = check(&[], [format!("\u{feff}{GOOD}").into_bytes()]);
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
}

#[test]
fn an_empty_input_is_said_to_be_empty() {
    let output = check(&[], [Vec::new()]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stderr(&output), "error: stdin: the input has no events\n");
}

#[test]
fn garbage_is_refused_with_a_reason() {
    let mut seed = 7_u32;
    let mut garbage = Vec::new();
    for _ in 0..100_000 {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        garbage.push(seed.to_be_bytes()[0]);
    }
    let unknown = check(&[], [garbage.clone()]);
    assert!(matches!(unknown.status.code(), Some(1 | 2)), "{unknown:?}");
    assert!(stderr(&unknown).starts_with("error: stdin: "), "{}", stderr(&unknown));
    let told = check(&["--protocol", "aep", "--max", "3"], [garbage]);
    assert_eq!(told.status.code(), Some(1));
    assert!(stdout(&told).contains(" --> stdin:1:2\n"), "{}", stdout(&told));
}

#[test]
fn a_line_of_100_megabytes_is_a_finding_and_the_next_event_is_checked() {
    let (first, last) = GOOD.split_once('\n').unwrap();
    let begin = format!("{first}\n{{\"type\":\"RAW\",\"event\":\"").into_bytes();
    let end = format!("\"}}\n{last}").into_bytes();
    let middle = std::iter::repeat_n(vec![b'x'; 1_000_000], 100);
    let output = check(&["--json"], [begin].into_iter().chain(middle).chain([end]));
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["events"], 3);
    assert_eq!(report["findings"].as_array().unwrap().len(), 1, "{report}");
    assert_eq!(report["findings"][0]["line"], 2);
}

#[test]
fn a_first_line_of_100_megabytes_is_read_in_time_and_the_events_after_it_are_checked() {
    let begun = std::time::Instant::now();
    for (begin, fill) in [("{\"type\":\"RAW\",\"event\":\"", b'x'), ("{\"a\":", b'\n')] {
        let end = format!("\"}}\n{GOOD}").into_bytes();
        let middle = std::iter::repeat_n(vec![fill; 1_000_000], 100);
        let pieces = [begin.as_bytes().to_vec()].into_iter().chain(middle).chain([end]);
        let output = check(&["--json"], pieces);
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["events"], 3, "{report}");
        assert_eq!(report["findings"].as_array().unwrap().len(), 1, "{report}");
        assert_eq!(report["findings"][0]["line"], 1);
    }
    assert!(begun.elapsed() < std::time::Duration::from_secs(30), "{:?}", begun.elapsed());
}

#[test]
fn a_truncated_or_corrupt_gzip_says_how_far_it_was_read() {
    use flate2::write::GzEncoder;
    let mut packed = GzEncoder::new(Vec::new(), flate2::Compression::best());
    let step = "{\"type\":\"STEP_FINISHED\",\"stepName\":\"s\"}\n";
    packed.write_all((GOOD.to_owned() + &step.repeat(5_000)).as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    let truncated = check(&[], [packed[..packed.len() / 2].to_vec()]);
    assert_eq!(truncated.status.code(), Some(3));
    let expected = format!("it ends after {} bytes", packed.len() / 2);
    assert!(stderr(&truncated).contains(&expected), "{}", stderr(&truncated));
    let mut corrupt = packed.clone();
    let checksum = corrupt.len() - 8;
    corrupt[checksum] ^= 1;
    let corrupt = check(&["--max", "1"], [corrupt]);
    assert_eq!(corrupt.status.code(), Some(3));
    assert!(stderr(&corrupt).contains("corrupt"), "{}", stderr(&corrupt));
}

#[test]
fn what_is_no_file_is_named_and_the_other_files_are_checked() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("good.jsonl"), GOOD).unwrap();
    let (directory, missing, good) = (path("."), path("missing.jsonl"), path("good.jsonl"));
    let output = check(&[&directory, &missing, &good], [Vec::new()]);
    assert_eq!(output.status.code(), Some(3));
    let err = stderr(&output);
    assert!(err.contains(&format!("error: {directory}: it is a directory")), "{err}");
    assert!(err.contains(&format!("error: {missing}: ")), "{err}");
    assert!(err.contains(&format!("{good}: 2 events, AG-UI 1.0: 0 errors")), "{err}");
}

#[test]
fn pipes_get_no_escape_sequences() {
    let steps = "{\"type\":\"STEP_FINISHED\",\"stepName\":\"s\"}\n".repeat(20_000);
    for args in [&[][..], &["--plain"]] {
        let output = check(args, [format!("{GOOD}{steps}").into_bytes()]);
        assert!(!output.stdout.contains(&0x1b) && !output.stderr.contains(&0x1b));
    }
}
