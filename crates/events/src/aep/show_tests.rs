use std::path::Path;

use proptest::prelude::*;
use serde_json::{Map, json};

use super::*;

fn english() -> Locale {
    Locale::default()
}

fn body(event: &Value) -> Vec<String> {
    lines(event, &english())
}

fn has(lines: &[String], line: &str) -> bool {
    lines.iter().any(|known| known == line)
}

/// What every output promises.
fn assert_safe(title: &str, lines: &[String]) {
    assert!(!title.is_empty() && title.chars().count() < 2_000, "{title}");
    assert!(lines.len() <= MOST_LINES);
    assert!(lines.iter().map(String::len).sum::<usize>() <= MOST_BYTES + 1_000);
    for line in lines.iter().map(String::as_str).chain([title]) {
        assert!(!line.contains('\n'), "{line:?}");
        assert_eq!(text::prose(line), line);
    }
}

#[test]
fn five_core_fields_and_an_unknown_type_give_a_title() {
    let event = json!({
        "aep_version": "0.1", "id": "evt_1", "type": "future.thing", "time": "2026-08-20T09:12:44.120Z",
        "agent": { "slug": "nobody-knows-me" },
    });
    assert_eq!(title(&event, &english()), "nobody-knows-me · future.thing");
    assert_eq!(
        body(&event),
        [
            "agent.slug: nobody-knows-me",
            "Type: [future.thing]",
            "Time: 2026-08-20 09:12:44.12 UTC",
            "id: evt_1",
        ]
    );
}

#[test]
fn a_request_with_only_a_tool_name_gives_a_title_with_the_tool() {
    let event = json!({
        "aep_version": "0.1", "id": "evt_1", "type": "action.requested", "time": "2026-08-20T09:12:44Z",
        "agent": { "slug": "nobody-knows-me" }, "tool": { "name": "Bash" },
    });
    for (tag, expected) in [
        ("en", "nobody-knows-me · wants to run · Bash"),
        ("es", "nobody-knows-me · quiere ejecutar · Bash"),
        ("ar", "nobody-knows-me · يريد تشغيل · Bash"),
        ("ja", "nobody-knows-me · 実行を求めている · Bash"),
    ] {
        assert_eq!(title(&event, &Locale::choose([tag])), expected);
    }
    assert!(has(&body(&event), "tool.name: Bash"));
}

#[test]
fn titles_prefer_names_for_people_and_put_mcp_tools_under_their_server() {
    let titled = |event: Value| title(&event, &english());
    let agent = json!({ "slug": "a", "display_name": "Agent A" });
    assert_eq!(
        titled(json!({ "type": "action.failed", "agent": agent,
            "tool": { "name": "sh", "display_name": "Shell" } })),
        "Agent A · failed · Shell"
    );
    assert_eq!(
        titled(json!({ "type": "action.failed", "agent": agent, "skill": { "name": "review" } })),
        "Agent A · failed · review"
    );
    let tool = json!({ "type": "mcp", "name": "search", "display_name": "Search" });
    assert_eq!(
        titled(json!({ "type": "action.denied", "agent": agent, "tool": tool,
            "server": { "name": "docs" } })),
        "Agent A · was denied · docs/search"
    );
    assert_eq!(
        titled(json!({ "type": "action.denied", "agent": agent, "tool": tool })),
        "Agent A · was denied · Search"
    );
    // A spelling that is only read has the label of its type.
    assert_eq!(titled(json!({ "type": "agent.end", "agent": agent })), "Agent A · is done");
}

#[test]
fn an_answer_to_a_hook_has_a_title_too() {
    let response = json!({
        "aep_version": "0.1", "id": "rsp_1", "request_event_id": "evt_1", "time": "2026-08-20T09:12:44Z",
        "control": { "behavior": "deny", "message": "not on a Friday", "updated_input": null },
        "decision": { "outcome": "denied", "by": "user", "reason": "policy", "response_time_ms": 4820 },
    });
    assert_eq!(title(&response, &english()), "Answer to the agent · deny");
    assert_eq!(
        body(&response),
        [
            "Answer: [deny]",
            "Message: not on a Friday",
            "Changed input: null",
            "Decision: [denied]",
            "Decided by: user",
            "Reason: policy",
            "Answered after: 4.82 s",
            "Time: 2026-08-20 09:12:44 UTC",
            "id: rsp_1",
            "request_event_id: evt_1",
        ]
    );
}

#[test]
fn what_is_missing_or_of_the_wrong_type_still_has_a_title() {
    for event in [
        json!(null),
        json!(7),
        json!("text"),
        json!([]),
        json!({}),
        json!({ "type": null, "agent": [], "tool": "Bash", "server": 1, "control": false }),
        json!({ "type": {}, "agent": { "slug": {}, "display_name": "  " }, "content": "bare" }),
    ] {
        let title = title(&event, &english());
        assert_eq!(title, "An agent · sent something without a type", "{event}");
        assert_safe(&title, &body(&event));
    }
    let numbers = json!({ "type": 12, "agent": { "slug": 7 }, "tool": { "name": true } });
    assert_eq!(title(&numbers, &english()), "7 · 12 · true");
}

#[test]
fn every_style_shows_every_kind_of_value() {
    let object = json!({ "a": 1, "b": ["x"], "password": "hunter2" });
    let indented = "{|  \"a\": 1,|  \"b\": [|    \"x\"|  ],|  \"password\": \"[redacted]\"|}";
    let array = json!(["x", 1500, null]);
    let by_line = "x|1500|null";
    let as_json = "[|  \"x\",|  1500,|  null|]";
    for (style, string, number, of_object, of_array, null) in [
        ("plain_text", "**x**", "1500", indented, by_line, "null"),
        ("markdown", "**x**", "1500", indented, by_line, "null"),
        ("indented_json", "**x**", "1500", indented, as_json, "null"),
        (
            "key_value",
            "**x**",
            "1500",
            "a: 1|b: [\"x\"]|password: \"[redacted]\"",
            "1: x|2: 1500|3: null",
            "null",
        ),
        ("path", "**x**", "1500", indented, by_line, "null"),
        ("url", "**x**", "1500", indented, by_line, "null"),
        ("image", "**x**", "1500", "no details", by_line, "null"),
        ("video", "**x**", "1500", "no details", by_line, "null"),
        ("audio", "**x**", "1500", "no details", by_line, "null"),
        ("badge", "[**x**]", "[1500]", indented, "[x]|[1500]|[null]", "[null]"),
        ("duration", "**x**", "1.5 s", indented, "x|1.5 s|null", "null"),
        (
            "timestamp",
            "**x**",
            "1970-01-01 00:25:00 UTC",
            indented,
            "x|1970-01-01 00:25:00 UTC|null",
            "null",
        ),
        ("no_such_style", "**x**", "1500", indented, as_json, "null"),
    ] {
        let shown = |of: &Value| value(of, Some(style), &english()).join("|");
        assert_eq!(shown(&json!("**x**")), string, "{style}");
        assert_eq!(shown(&json!(1500)), number, "{style}");
        assert_eq!(shown(&object), of_object, "{style}");
        assert_eq!(shown(&array), of_array, "{style}");
        assert_eq!(shown(&json!(null)), null, "{style}");
        assert_eq!(
            Style::parse(style).map(Style::name),
            (style != "no_such_style").then_some(style)
        );
    }
    assert_eq!(Style::ALL.map(|style| Style::parse(style.name())), Style::ALL.map(Some));
}

#[test]
fn content_goes_by_the_style_its_producer_names_or_else_by_its_kind() {
    let event = json!({ "content": [
        { "type": "prompt", "text": "# Do\n\n- *this*" },
        { "type": "plan", "text": "83500", "style": "duration" },
        { "type": "question", "text": "Really?", "style": "shimmering" },
        { "type": "thought", "text": "hm", "truncated": true, "original_length": 9000 },
        { "type": "answer", "text": "y", "truncated": true },
        { "type": "response", "text": { "parts": 2 } },
        { "type": "Decision", "text": "[approved]" },
        { "type": "notification" },
        "bare",
    ] });
    assert_eq!(
        body(&event),
        [
            "Prompt:",
            "  # Do",
            "  ",
            "  - *this*",
            "Plan: 1 min 23.5 s",
            "Question: Really?",
            "Thought: hm",
            "  The agent cut this text; it had 9000 characters.",
            "Answer: y",
            "  The agent cut this text.",
            "Response:",
            "  {",
            "    \"parts\": 2",
            "  }",
            "content.Decision: [approved]",
            "content: bare",
        ]
    );
    assert_eq!(default_content_style("prompt"), Style::Markdown);
    assert_eq!(default_content_style("notification"), Style::PlainText);
}

#[test]
fn every_kind_of_attachment_is_told_and_embedded_data_is_not_dumped() {
    let event = json!({ "attachments": [
        { "type": "image", "name": "shot.png", "mime_type": "image/png", "size_bytes": 12_345,
          "width": 800, "height": 600, "url": "https://example.org/shot.png" },
        { "type": "video", "name": "demo.mp4", "duration_ms": 83_500, "size_bytes": 7_000_000_000_u64,
          "thumbnail_url": "https://example.org/t.png" },
        { "type": "audio", "mime_type": "audio/wav", "data_uri": "data:audio/wav;base64,AAECAwQ=" },
        { "type": "file", "name": "a.txt", "size_bytes": 5, "data_uri": "data:,a%20b" },
        { "type": "image", "url": " DATA:image/png;base64,AAAA" },
        { "type": "hologram", "name": "x" },
        { "type": "file" },
        "https://example.org/bare",
    ] });
    assert_eq!(
        body(&event),
        [
            "Image: shot.png · image/png · 12.3 kB · 800 × 600 · https://example.org/shot.png",
            "Video: demo.mp4 · 7.0 GB · 1 min 23.5 s · https://example.org/t.png",
            "Audio: audio/wav · embedded data, 5 bytes",
            "File: a.txt · 5 B · embedded data, 3 bytes",
            "Image: embedded data, 3 bytes",
            "attachments.hologram: x",
            "File: no details",
            "attachments: https://example.org/bare",
        ]
    );
    let prose = json!({ "content": [
        { "type": "response", "text": "see ![it](data:image/png;base64,AAAA) here" },
    ], "tool": { "icon": { "src": "data:image/svg+xml,%3Csvg/%3E" } } });
    assert_eq!(
        body(&prose),
        [
            "Response: see ![it]([embedded data, 3 bytes]) here",
            "tool.icon.src: embedded data, 6 bytes",
        ]
    );
}

#[test]
fn metrics_and_the_rest_go_by_the_style_of_their_field() {
    let event = json!({
        "metrics": { "duration_ms": 250, "queue_ms": 61_000, "input_tokens": 1234, "odd": null },
        "workspace": { "cwd": "/tmp/a\nb", "roots": ["/one", "/two"] },
        "server": { "url": "https://example.org" },
        "action": { "status": "success", "error": { "code": "E1" } },
        "decision": { "time": 1_787_217_164 },
        "lifecycle": { "reason": null },
    });
    assert_eq!(
        body(&event),
        [
            "Status: [success]",
            "Error:",
            "  {",
            "    \"code\": \"E1\"",
            "  }",
            "Decided at: 2026-08-20 09:12:44 UTC",
            "Duration: 250 ms",
            "metrics.queue_ms: 1 min 1 s",
            "metrics.input_tokens: 1234",
            "Folder: /tmp/a\\nb",
            "workspace.roots:",
            "  /one",
            "  /two",
            "server.url: https://example.org",
        ]
    );
}

#[test]
fn hidden_characters_are_shown_and_credentials_are_not() {
    let event = json!({
        "type": "action.requested\u{202e}", "agent": { "slug": "a\nb\u{1b}[2J" },
        "tool": { "name": "curl -H 'Authorization: Bearer abc.def-123'" },
        "action": { "input": {
            "command": "export API_KEY=hunter2 && ls\u{202e}",
            "headers": { "authorization": "hunter2", "accept": "*/*" },
            "db_password": ["hunter2", { "deep": 77_777 }],
            "sk-abcdefghij": 1,
        }, "rationale": "password: hunter2" },
        "content": [{ "type": "prompt", "text": "a\r\nb\rc token ghp_0123456789abcdefABCDEF" }],
        "attachments": [{ "type": "file", "url": "https://me:hunter2@example.org/" }],
    });
    let title = title(&event, &english());
    let lines = body(&event);
    assert_safe(&title, &lines);
    let all = format!("{title}\n{}", lines.join("\n"));
    for secret in ["hunter2", "abc.def", "77777", "ghp_", "sk-abc"] {
        assert!(!all.contains(secret), "{secret}: {all}");
    }
    assert!(title.starts_with("a\\nb⟨U+001B⟩[2J · action.requested⟨U+202E⟩ · curl"), "{title}");
    assert!(has(&lines, "      \"accept\": \"*/*\""), "{all}");
    assert!(has(&lines, "  b⟨U+000D⟩c token [redacted]"), "{all}");
    // Joiners are part of words in prose, and a disguise elsewhere.
    let joined = json!("می\u{200c}خواهم");
    assert_eq!(value(&joined, Some("markdown"), &english()), ["می\u{200c}خواهم"]);
    assert_eq!(value(&joined, Some("plain_text"), &english()), ["می⟨U+200C⟩خواهم"]);
}

#[test]
fn what_is_cut_says_so() {
    let notice = english().say("aep.cut", &[]);
    let deep = (0..100).fold(json!("bottom"), |inner, _| json!([inner]));
    assert!(value(&deep, None, &english()).iter().any(|line| line.contains('…')));

    for long in [
        json!("x".repeat(VALUE_CHARS + 1)),
        json!({ "x": "é".repeat(VALUE_CHARS * 2) }),
        json!(vec!["word"; VALUE_CHARS]),
        json!({ "x": vec![1; VALUE_CHARS] }),
    ] {
        for style in Style::ALL.map(Style::name).into_iter().chain(["unknown"]) {
            let shown = value(&long, Some(style), &english());
            let told = shown.last() == Some(&notice) || shown == ["no details"];
            assert!(told || shown.concat().ends_with('…'), "{style}");
            assert!(shown.concat().chars().count() <= VALUE_CHARS + 200, "{style}");
        }
    }
    assert_eq!(value(&json!("x".repeat(VALUE_CHARS)), None, &english()).len(), 1);

    let entry = json!({ "type": "response", "text": "line\n".repeat(100) });
    let many = body(&json!({ "content": vec![entry; 100] }));
    assert_eq!(many.len(), MOST_LINES);
    assert_eq!(many.last(), Some(&notice));
}

#[test]
fn every_field_is_listed_once_and_every_label_exists() {
    let mut paths: Vec<&str> = fields::all().map(|field| field.path).collect();
    let count = paths.len();
    paths.sort_unstable();
    paths.dedup();
    assert_eq!(paths.len(), count);
    for tag in Locale::tags() {
        let locale = Locale::choose([tag]);
        for field in fields::all() {
            let label = field.label(&locale);
            assert!(label == field.path || !label.starts_with("aep."), "{tag}: {label}");
        }
    }
    for kind in super::super::types::CONTENT_KINDS {
        let key = fields::content_label(kind).expect("each kind has a label");
        assert!(english().sentences().contains_key(key), "{key}");
    }
    for kind in ["image", "video", "audio", "file"] {
        assert!(english().sentences().contains_key(media::label(kind).expect("label")), "{kind}");
    }
    for key in [
        "response",
        "unknown_agent",
        "unknown_type",
        "cut",
        "truncated",
        "truncated_from",
        "embedded",
        "no_details",
        "duration",
    ] {
        assert!(english().sentences().contains_key(&format!("aep.{key}")), "{key}");
    }
}

#[test]
fn every_recorded_sample_has_a_title_and_a_body() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/agents/aep");
    if !folder.is_dir() {
        return;
    }
    let mut seen = 0;
    for folder in [folder.clone(), folder.join("_responses")] {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let event: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
            for tag in Locale::tags() {
                let locale = Locale::choose([tag]);
                let (title, lines) = (title(&event, &locale), lines(&event, &locale));
                assert_safe(&title, &lines);
                assert!(
                    !lines.is_empty() && !title.contains("aep."),
                    "{}: {title}",
                    path.display()
                );
            }
            seen += 1;
        }
    }
    assert!(seen > 20, "only {seen} samples");
}

fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "(data:[a-z/;]{0,9},?|[0-9]{1,25}|2026-0[0-9]-[0-9]{2}T.{0,9})[a-zA-Z%=\\p{C}]{0,9}"
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((known_name(), inner), 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Names that lead somewhere, so that odd values reach every branch.
fn known_name() -> impl Strategy<Value = String> {
    let known: Vec<String> = fields::all()
        .flat_map(|field| field.path.split('.').map(str::to_owned).collect::<Vec<_>>())
        .chain(
            [
                "content",
                "attachments",
                "metrics",
                "text",
                "style",
                "truncated",
                "original_length",
                "url",
                "data_uri",
                "size_bytes",
                "duration_ms",
                "width",
                "height",
                "password",
            ]
            .map(str::to_owned),
        )
        .collect();
    prop_oneof![9 => prop::sample::select(known), 1 => any::<String>()]
}

proptest! {
    #[test]
    fn no_json_panics_or_runs_over(
        fields in prop::collection::vec((known_name(), anything()), 0..8),
        style in prop::sample::select(Style::ALL.map(Style::name).to_vec()),
        bare in anything(),
    ) {
        let event = Value::Object(fields.into_iter().collect());
        for event in [&event, &bare] {
            assert_safe(&title(event, &english()), &lines(event, &english()));
        }
        assert_safe("-", &value(&bare, Some(style), &Locale::choose(["ja"])));
    }
}
