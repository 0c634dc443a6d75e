use banister_events::agui::encoding;
use banister_events::frame::sse;
use banister_events::limits::MESSAGE_BYTES;
use serde_json::{Value, json as value};

use super::*;

struct Outcome {
    code: u8,
    out: String,
    err: String,
}

fn check_with(args: &CheckArgs, content: &[u8]) -> Outcome {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), content).unwrap();
    let name = file.path().to_str().unwrap().to_owned();
    let outcome = run_with(&CheckArgs { inputs: vec![name.clone()], ..args.clone() });
    let plain = |text: &str| text.replace(&name, "FILE");
    Outcome { code: outcome.code, out: plain(&outcome.out), err: plain(&outcome.err) }
}

fn run_with(args: &CheckArgs) -> Outcome {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = run_on(Screen::default(), args, &mut out, &mut err).unwrap();
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
        assert_eq!(
            outcome.err, "2 events, AG-UI 1.0: 0 errors, 0 warnings, 0 notes\n",
            "{content}"
        );
    }
}

#[test]
fn a_recording_in_protobuf_is_read_and_what_is_no_event_in_it_is_told() {
    let mut recording = Vec::new();
    for line in GOOD.lines() {
        let event = serde_json::from_str(line).unwrap();
        encoding::frame(Encoding::Protobuf, &event, &mut recording).unwrap();
    }
    let good = check_with(&CheckArgs::default(), &recording);
    assert_eq!((good.code, good.out.as_str()), (0, ""), "{}", good.err);
    let (first, last) = recording.split_at(recording.len() / 2);
    let broken = check_with(&CheckArgs::default(), &[first, b"\0\0\0\x02zz", last].concat());
    assert_eq!(broken.code, 1, "{}", broken.out);
    let mut future = recording.clone();
    // An event of a type that comes later: field 99, empty.
    future.extend_from_slice(b"\0\0\0\x03\x9a\x06\0");
    let warned = check_with(&CheckArgs::default(), &future);
    assert!(warned.out.contains("AGUI-EVT-03"), "{}", warned.out);
    assert_eq!(warned.code, 0);
}

#[test]
fn findings_go_out_with_place_and_remedy_and_the_summary_goes_to_people() {
    let outcome = check(BAD);
    assert_eq!(outcome.code, 1);
    assert_eq!(
        outcome.out,
        r#"warning[AGUI-EVT-11]: the run declares no protocolVersion
 --> FILE:1:1 /protocolVersion
  |
1 | {"type":"RUN_STARTED","threadId":"t","runId":"r"}
  | ^
  = help: Add "protocolVersion": "1.0".

error[AGUI-SEQ-16]: no step "s" is open
 --> FILE:3:36 /stepName
  |
3 | {"type":"STEP_FINISHED","stepName":"s"}
  |                                    ^^^
  = help: Send STEP_STARTED with the same stepName and subagentRunId first.

"#
    );
    assert_eq!(
        outcome.err,
        "3 events, AG-UI 1.0: 1 error, 1 warning, 0 notes\n\
         most frequent: AGUI-EVT-11 (1), AGUI-SEQ-16 (1)\n"
    );
}

#[test]
fn colour_repeats_what_the_words_say() {
    let always = CheckArgs { color: Color::Always, ..CheckArgs::default() };
    let painted = check_with(&always, BAD.as_bytes()).out;
    assert!(painted.contains("\u{1b}[1;31merror[AGUI-SEQ-16]\u{1b}[0m"), "{painted}");
    let mut plain = String::new();
    for part in painted.split('\u{1b}') {
        let escape = part.strip_prefix('[').and_then(|part| part.split_once('m'));
        plain.push_str(escape.map_or(part, |(_, rest)| rest));
    }
    assert_eq!(plain, check(BAD).out);
}

#[test]
fn a_terminal_gets_colour_and_progress_and_nobody_else() {
    let screen = Screen { out: true, err: true };
    let of = |args: CheckArgs, screen: Screen| {
        let settings = Settings::new(&args, screen).unwrap();
        (settings.color, settings.progress)
    };
    let args = CheckArgs::default;
    assert!(of(args(), screen).1);
    assert_eq!(of(args(), Screen::default()), (false, false));
    assert_eq!(of(CheckArgs { plain: true, ..args() }, screen), (false, false));
    assert_eq!(of(CheckArgs { color: Color::Always, ..args() }, Screen::default()), (true, false));
    assert_eq!(of(CheckArgs { color: Color::Never, ..args() }, screen), (false, true));
    let json = CheckArgs { json: true, ..args() };
    assert!(!of(json.clone(), screen).1, "the line would stand in the data");
    assert!(of(json, Screen { out: false, err: true }).1);
}

#[test]
fn json_is_one_object_with_every_finding() {
    let outcome =
        check_with(&CheckArgs { format: Format::Json, ..CheckArgs::default() }, BAD.as_bytes());
    let report: Value = serde_json::from_str(&outcome.out).unwrap();
    assert_eq!(outcome.code, 1);
    assert_eq!(report["schema"], "banister.check/v1");
    assert_eq!(report["protocol"], "agui");
    assert_eq!(
        (&report["events"], &report["errors"], &report["warnings"]),
        (&value!(3), &value!(1), &value!(1))
    );
    assert_eq!(report["findings"][1]["code"], "AGUI-SEQ-16");
    let place = ["file", "line", "column", "offset", "pointer"];
    assert_eq!(
        place.map(|name| report["findings"][1][name].clone()),
        [value!("FILE"), value!(3), value!(36), value!(86), value!("/stepName")]
    );
    assert_eq!(report["files"][0]["events"], 3);
    let good =
        check_with(&CheckArgs { format: Format::Json, ..CheckArgs::default() }, GOOD.as_bytes());
    assert_eq!(serde_json::from_str::<Value>(&good.out).unwrap()["findings"], value!([]));
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
fn one_frame_is_a_stream_in_ag_ui_and_nowhere_else() {
    let start = r#"{"type":"RUN_STARTED","threadId":"t","runId":"r","protocolVersion":"1.0"}"#;
    let alone = r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"x"}"#;
    for (event, code) in [(start, "[AGUI-SEQ-26]"), (alone, "[AGUI-SEQ-03]")] {
        let outcome = check(&as_sse(event));
        assert_eq!(outcome.code, 1);
        assert!(outcome.out.contains(code), "{}", outcome.out);
        assert_eq!(check(event).code, 0, "{event}");
    }
    let error = r#"{"type":"RUN_ERROR","message":"x"}"#;
    assert_eq!(check(&as_sse(error)).code, 0);
    let aep = r#"{"aep_version":"0.1","id":"evt_1"}"#;
    assert_eq!(check(&as_sse(aep)).err, check(aep).err);
}

#[test]
fn events_of_unknown_types_are_no_run() {
    let named = GOOD.replace("RUN_STARTED", "RunStarted").replace("RUN_FINISHED", "RunFinished");
    let args = CheckArgs { protocol: Some("agui".into()), ..CheckArgs::default() };
    let outcome = check_with(&args, named.as_bytes());
    assert_eq!(outcome.code, 1, "{}", outcome.out);
    assert!(outcome.out.contains("error[AGUI-SEQ-03]: no run was started\n"), "{}", outcome.out);
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
fn opt_in_rules_are_checked_where_they_are_asked_for() {
    let rule = finding::rules(Protocol::Aaep)
        .into_iter()
        .find(|rule| rule.opt_in && rule.severity == Severity::Warning)
        .unwrap();
    let of = |args: CheckArgs| {
        Settings::new(&args, Screen::default()).unwrap().severity(&rule.at("", "noisy"))
    };
    let deny = vec![rule.code.to_owned()];
    assert_eq!(of(CheckArgs::default()), None);
    assert_eq!(of(CheckArgs { strict: true, ..CheckArgs::default() }), Some(Severity::Error));
    assert_eq!(of(CheckArgs { deny, ..CheckArgs::default() }), Some(Severity::Error));
}

#[test]
fn max_bounds_what_is_printed_not_what_is_counted() {
    let outcome = check_with(&CheckArgs { max: Some(1), ..CheckArgs::default() }, BAD.as_bytes());
    assert_eq!((outcome.code, outcome.out.matches("= help").count()), (1, 1));
    let summary = "3 events, AG-UI 1.0: 1 error, 1 warning, 0 notes (1 of 2 shown)\n";
    assert!(outcome.err.starts_with(summary), "{}", outcome.err);
}

#[test]
fn wrong_use_is_told_apart_from_a_bad_recording() {
    let of = |args: CheckArgs| check_with(&args, GOOD.as_bytes());
    let unknown = of(CheckArgs { deny: vec!["AGUI-SEG-16".into()], ..CheckArgs::default() });
    assert_eq!((unknown.code, unknown.out.as_str()), (2, ""));
    assert!(unknown.err.contains("did you mean AGUI-SEQ-16?"), "{}", unknown.err);
    assert_eq!(of(CheckArgs { protocol: Some("http".into()), ..CheckArgs::default() }).code, 2);
    assert_eq!(check("{\"a\":1}\n{\"b\":2}\n").code, 2);
    let late = "{\"a\":1}\n".repeat(20) + GOOD;
    assert_eq!(check(&late).code, 2, "messages nobody looked at must not pass");
    for (input, hint) in [("ws://h/ws", "| banister check -"), ("wss://h/ws", "| banister check -")]
    {
        let outcome = run_with(&CheckArgs { inputs: vec![input.into()], ..CheckArgs::default() });
        assert_eq!(outcome.code, 2);
        assert!(outcome.err.contains(hint), "{}", outcome.err);
    }
    let twice = CheckArgs { inputs: vec!["-".into(), "-".into()], ..CheckArgs::default() };
    assert_eq!(run_with(&twice).code, 2);
    for input in ["a.jsonl", "http://h:1/stream"] {
        let live = LiveArgs { subscribe: true, ..LiveArgs::default() };
        let subscribe = CheckArgs { live, inputs: vec![input.into()], ..CheckArgs::default() };
        assert_eq!(run_with(&subscribe).code, 2);
    }
}

#[test]
fn an_empty_recording_is_an_error_that_says_so() {
    for content in ["", "\n \n", ": comment\n\n", "[]"] {
        for protocol in [None, Some("aep".to_owned())] {
            let outcome =
                check_with(&CheckArgs { protocol, ..CheckArgs::default() }, content.as_bytes());
            assert_eq!(outcome.code, 1, "{content:?}");
            assert!(outcome.err.contains("no events"), "{}", outcome.err);
        }
    }
    for (content, said) in [
        (&b"\njust words\n"[..], "the input has no events: line 2 is not JSON"),
        (b"time,type\n1,RUN_STARTED\n", "the input has no events: line 1 is not JSON"),
        (b"7\n", "the input has no events: line 1 is not a JSON object"),
        (b"\x7fELF\x02\x01\0\0", "the input has no events: line 1 is binary data, not JSON"),
        (b"<!DOCTYPE html><p>", "this looks like a web page (HTML), not like events"),
        (b"\xff\xfe{\0", "this is UTF-16; events are UTF-8"),
        (b"{\0\"\0a\0", "this is UTF-16; events are UTF-8"),
    ] {
        let outcome = check_with(&CheckArgs::default(), content);
        assert_eq!(outcome.err, format!("error: FILE: {said}\n"));
        assert_eq!(outcome.code, 1, "{said}");
    }
    let told = CheckArgs { protocol: Some("aep".into()), ..CheckArgs::default() };
    assert!(check_with(&told, b"just words\n").out.contains("FILE:1:1"));
}

#[test]
fn each_input_is_a_stream_of_its_own_and_a_missing_one_stops_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("good"), GOOD).unwrap();
    std::fs::write(path("bad"), BAD).unwrap();
    let aep = r#"{"aep_version":"0.1"}"#;
    std::fs::write(path("aep"), aep).unwrap();
    let of = |names: &[&str]| {
        let inputs = names.iter().map(|name| path(name)).collect();
        run_with(&CheckArgs { inputs, json: true, ..CheckArgs::default() })
    };
    assert_eq!(of(&["good", "good"]).code, 0, "the same run may start in each");
    let outcome = of(&["good", "missing", "bad", "aep"]);
    assert_eq!(outcome.code, 3);
    let report: Value = serde_json::from_str(&outcome.out).unwrap();
    assert_eq!(report["protocol"], Value::Null, "they do not share one");
    assert_eq!(report["events"], 6);
    let protocols: Vec<&Value> =
        report["files"].as_array().unwrap().iter().map(|file| &file["protocol"]).collect();
    assert_eq!(protocols, [&value!("agui"), &Value::Null, &value!("agui"), &value!("aep")]);
    assert!(report["files"][1]["failure"].is_string());
    assert_eq!(report["findings"][0]["file"], path("bad"));
    assert!(outcome.err.contains("4 inputs, 6 events: "), "{}", outcome.err);
}

#[test]
fn sarif_names_rules_and_places() {
    let args = CheckArgs { format: Format::Sarif, ..CheckArgs::default() };
    for (content, results) in [(BAD, 2), (GOOD, 0), ("", 0)] {
        let outcome = check_with(&args, content.as_bytes());
        let log: Value = serde_json::from_str(&outcome.out).unwrap();
        assert_eq!(log["version"], "2.1.0");
        let run = &log["runs"][0];
        assert_eq!(run["results"].as_array().unwrap().len(), results);
        assert_eq!(run["invocations"][0]["executionSuccessful"], !content.is_empty());
        let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
        for result in run["results"].as_array().unwrap() {
            let rule = rules.iter().find(|rule| rule["id"] == result["ruleId"]).unwrap();
            assert!(!rule["help"]["text"].as_str().unwrap().is_empty());
        }
        if results > 0 {
            let result = &run["results"][1];
            let region = &result["locations"][0]["physicalLocation"]["region"];
            let expected =
                value!({"startLine": 3, "startColumn": 36, "byteOffset": 86, "byteLength": 3});
            assert_eq!(region, &expected);
            let pointer = &result["locations"][0]["logicalLocations"][0]["fullyQualifiedName"];
            assert_eq!((&result["level"], pointer), (&value!("error"), &value!("/stepName")));
        }
    }
}

#[test]
fn sarif_gives_no_offsets_in_a_packed_file_and_turns_opt_in_rules_off() {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(BAD.as_bytes()).unwrap();
    let args = CheckArgs { format: Format::Sarif, ..CheckArgs::default() };
    let outcome = check_with(&args, &packed.finish().unwrap());
    let log: Value = serde_json::from_str(&outcome.out).unwrap();
    let run = &log["runs"][0];
    let region = &run["results"][1]["locations"][0]["physicalLocation"]["region"];
    assert_eq!(region, &value!({"startLine": 3, "startColumn": 36}));
    let rules = finding::all_rules();
    for row in run["tool"]["driver"]["rules"].as_array().unwrap() {
        let (_, rule) = rules.iter().find(|(_, rule)| row["id"] == rule.code).unwrap();
        let enabled = &row["defaultConfiguration"]["enabled"];
        assert_eq!(enabled == &value!(false), rule.opt_in, "{row}");
    }
}

/// An AAEP recording of an envelope each, broken in the same way.
fn aaep(kind: &str) -> String {
    format!("{{\"type\":\"aaep:{kind}\"}}")
}

#[test]
fn other_programs_on_the_same_line_are_no_events() {
    let call = |method: &str, params: &str| {
        format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\",\"params\":{params}}}\n")
    };
    let event = call("aaep.event", &aaep("agent.session.started"));
    let others = call("notifications/progress", "{}")
        + "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"aaep.ping\",\"params\":{}}\n"
        + "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n";
    let alone = check(&event.repeat(2));
    let amid = check(&format!("{others}{event}{others}{event}{others}"));
    let findings = |outcome: &Outcome| outcome.out.matches(" = help: ").count();
    assert!(findings(&alone) > 0 && findings(&alone) == findings(&amid), "{}", amid.out);
    assert!(amid.err.starts_with("2 events, AAEP "), "{}", amid.err);
    assert!(check(&others).err.contains("no events"));
}

#[test]
fn events_under_another_name_and_the_mark_at_the_end_are_no_aaep_events() {
    let event = format!("data: {}\n\n", aaep("agent.session.started"));
    let plain = check(&event.repeat(2));
    let usage = "event: usage\ndata: {\"type\":\"token.count\",\"n\":1}\n\n";
    let named = format!("event: aaep\n{event}");
    let mixed = check(&format!("{usage}{event}{usage}{named}data: [DONE]\n\n"));
    let findings = |outcome: &Outcome| outcome.out.matches(" = help: ").count();
    assert_eq!(findings(&plain), findings(&mixed), "{}", mixed.out);
    assert!(mixed.err.starts_with("2 events, AAEP "), "{}", mixed.err);
    let agui = as_sse(GOOD) + "data: [DONE]\n\n";
    assert!(check(&agui).out.contains("AGUI-EVT-01"), "AG-UI has no such mark");
    let one = check(&format!("{usage}{}data: [DONE]\n\n", as_sse(&aaep("x"))));
    assert!(one.err.starts_with("1 event, AAEP "), "{}", one.err);
}

#[test]
fn an_excerpt_has_the_whole_line_so_that_column_and_mark_agree() {
    let (start, step, end) = (
        GOOD.lines().next().unwrap(),
        r#"{"type":"STEP_FINISHED","stepName":"s"}"#,
        GOOD.lines().nth(1).unwrap(),
    );
    let custom = r#"{"type":"CUSTOM","name":"n","value":7}"#;
    for (content, line) in [
        (format!("data: {start}\n\ndata:{step}\n\ndata: {end}\n\n"), format!("data:{step}")),
        (format!("[\n  {start},\n  {step}, 7,\n  {end}\n]"), format!("  {step}, 7,")),
        (format!("[{start},\n{custom}, {step},\n  {end}\n]"), format!("{custom}, {step},")),
    ] {
        let out = check(&content).out;
        let shown =
            out.lines().find(|shown| shown.ends_with(&line)).unwrap_or_else(|| panic!("{out}"));
        let excerpt = shown.split_once(" | ").unwrap().1;
        let column = 1 + excerpt.find("\"s\"").unwrap();
        assert!(out.contains(&format!(":{column} /stepName\n")), "{out}");
        let mark = format!("  | {}^^^\n", " ".repeat(column - 1));
        assert!(out.contains(&mark), "{out}");
    }
}

#[test]
fn an_array_with_a_broken_element_has_one_finding_for_it() {
    let (start, end) = GOOD.trim().split_once('\n').unwrap();
    let raw = r#"{"type":"RAW","event":{"a":"b"}}"#;
    for (broken, line) in [
        (format!("{},", raw.replace("}}", "}")), 3),
        (format!("{},", raw.replace("b\"", "b")), 3),
        (raw.to_owned(), 4),
        (format!("{raw},,"), 3),
    ] {
        let content = format!("[\n  {start},\n  {broken}\n  {end}\n]");
        let outcome = check(&content);
        assert!(outcome.out.contains(&format!(" --> FILE:{line}:")), "{}", outcome.out);
        assert_eq!(
            outcome.err, "3 events, AG-UI 1.0: 1 error, 0 warnings, 0 notes\n",
            "{content} {}",
            outcome.out
        );
    }
    let trailing = check(&format!("[{start},{end},]"));
    assert_eq!(trailing.out.matches("a comma too many").count(), 1, "{}", trailing.out);
    assert!(trailing.err.starts_with("2 events, "), "{}", trailing.err);
    let commas = check_with(
        &CheckArgs { protocol: Some("agui".into()), max: Some(0), ..CheckArgs::default() },
        format!("[{}", ",".repeat(100)).as_bytes(),
    );
    assert_eq!(commas.code, 1);
}

#[test]
fn two_objects_on_a_line_are_two_events_on_any_line() {
    let side_by_side = GOOD.trim().replace('\n', " ");
    let blank = "{\"type\":\"RAW\",\"event\":1}";
    for content in [side_by_side.clone(), format!("\n\n{side_by_side}\n")] {
        assert_eq!(check(&content).err, "2 events, AG-UI 1.0: 0 errors, 0 warnings, 0 notes\n");
    }
    let later = check(&format!("{}{blank} {blank}\n", GOOD.replace('\n', &format!("\n{blank}\n"))));
    assert!(later.err.starts_with("6 events, "), "{}", later.err);
}

#[test]
fn junit_has_a_case_per_rule_and_holds_a_bounded_number_of_findings() {
    let args = CheckArgs { format: Format::Junit, max: Some(1), ..CheckArgs::default() };
    let step = "{\"type\":\"STEP_FINISHED\",\"stepName\":\"<s>\"}\n";
    let outcome =
        check_with(&args, BAD.replace("\n\n", &format!("\n{}", step.repeat(150))).as_bytes());
    let rules = finding::rules(Protocol::Agui).len();
    assert_eq!(outcome.out.matches("<testcase ").count(), rules);
    assert!(outcome.out.contains(&format!("tests=\"{rules}\" failures=\"1\" errors=\"0\"")));
    assert_eq!(outcome.out.matches("error: FILE:").count(), 100);
    assert!(outcome.out.contains("and 51 more\n"), "{}", outcome.out);
    assert!(outcome.out.contains("no step &quot;&lt;s&gt;&quot; is open"));
    assert!(outcome.out.ends_with("</testsuites>\n"));
    let empty = check_with(&args, b"");
    assert!(empty.out.contains("<error message=\"the input has no events\"/>"), "{}", empty.out);
}

#[test]
fn packed_recordings_are_unpacked_whatever_their_name() {
    use flate2::write::GzEncoder;
    let pack = |text: &str| {
        let mut packed = GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(text.as_bytes()).unwrap();
        packed.finish().unwrap()
    };
    let (first, second) = GOOD.split_at(30);
    let members = [pack(first), pack(second)].concat();
    let outcome = check_with(&CheckArgs::default(), &members);
    assert_eq!(outcome.code, 0, "{}", outcome.err);
    assert_eq!(outcome.err, "2 events, AG-UI 1.0: 0 errors, 0 warnings, 0 notes\n");
    let truncated = &pack(BAD)[..60];
    let outcome = check_with(&CheckArgs::default(), truncated);
    assert_eq!(outcome.code, 3);
    assert!(outcome.err.contains("truncated: it ends after 60 bytes"), "{}", outcome.err);
}

#[test]
fn a_check_that_was_told_to_stop_does_not_complain_about_the_end() {
    let args = CheckArgs { events: Some(2), ..CheckArgs::default() };
    let outcome = check_with(&args, BAD.replace("STEP_FINISHED", "STEP_STARTED").as_bytes());
    assert_eq!(outcome.code, 0, "{}", outcome.out);
    assert!(outcome.err.starts_with("2 events, "), "{}", outcome.err);
}

#[test]
fn headers_are_read_from_the_line_and_from_a_file_and_never_shown() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "Authorization: Bearer s3cret\n\nX-Two:2\n").unwrap();
    let from_file = format!("@{}", file.path().display());
    let found = headers(&["X-One: 1".into(), from_file]).unwrap();
    assert_eq!(found.len(), 3);
    assert_eq!(found["authorization"], "Bearer s3cret");
    assert!(!format!("{found:?}").contains("s3cret"));
    for wrong in ["s3cret", "X: s3cret\u{0}", "a b: s3cret", "@/nowhere/at/all"] {
        let error = headers(&[wrong.into()]).unwrap_err();
        assert!(!error.contains("s3cret"), "{error}");
    }
}

#[test]
fn a_broken_line_is_a_finding_and_the_rest_is_read() {
    let outcome = check(&format!("{{\"type\": oops}}\n{GOOD}"));
    assert_eq!(outcome.code, 1);
    assert!(
        outcome.out.starts_with("error[AGUI-EVT-01]: the message is not JSON"),
        "{}",
        outcome.out
    );
    assert!(outcome.out.contains(" --> FILE:1:10\n"), "{}", outcome.out);
    assert_eq!(outcome.err, "3 events, AG-UI 1.0: 1 error, 0 warnings, 0 notes\n");
}

#[test]
fn a_stream_cut_off_is_reported_at_its_end() {
    let outcome =
        check(&format!("{}\n{{\"type\":\"RAW\",\"event\":1}}", GOOD.lines().next().unwrap()));
    assert_eq!(outcome.code, 1);
    assert!(outcome.out.starts_with("error[AGUI-SEQ-26]: "), "{}", outcome.out);
    assert!(outcome.out.contains(" --> FILE: end of input\n"), "{}", outcome.out);
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

#[test]
fn frames_that_the_reference_client_does_not_read_are_told_for_its_protocol_only() {
    let crlf = as_sse(GOOD).replace('\n', "\r\n");
    let outcome = check(&crlf);
    assert_eq!(outcome.code, 1);
    assert!(outcome.out.contains("AGUI-SSE-01"), "{}", outcome.out);
    assert!(outcome.out.contains("line 1 ends with a carriage return"), "{}", outcome.out);
    assert!(outcome.out.contains(" --> FILE:1:1\n"), "{}", outcome.out);
    let late = format!("{}: x\r\n\n", as_sse(GOOD));
    let told = check_with(&CheckArgs { json: true, ..CheckArgs::default() }, late.as_bytes());
    let report: Value = serde_json::from_str(&told.out).unwrap();
    let place = &report["findings"][0];
    let line = as_sse(GOOD).lines().count() + 1;
    assert_eq!((&place["line"], &place["column"]), (&line.into(), &1.into()), "{report}");
    assert_eq!(place["offset"], as_sse(GOOD).len(), "{report}");
    let bare = as_sse(GOOD) + "{\"type\":\"RAW\",\"event\":1}\n\n";
    let outcome = check(&bare);
    assert_eq!(outcome.code, 0, "clients pass over it");
    assert!(outcome.out.contains("AGUI-SSE-02"), "{}", outcome.out);
    let aep = r#"{"aep_version":"0.1","id":"evt_1"}"#;
    let outcome = check(&as_sse(aep).replace('\n', "\r\n"));
    assert!(!outcome.out.contains("-SSE-"), "{}", outcome.out);
}
