use super::*;

fn event(payload: &str) -> Option<String> {
    event_in(payload.as_bytes()).map(|name| name.to_string())
}

#[test]
fn plain_names_pass() {
    for name in ["claude-code", "PreToolUse", "before_tool.v2", "a", "..a"] {
        assert_eq!(Name::parse(name.as_ref()).expect(name).as_str(), name);
    }
}

#[test]
fn names_that_could_bend_a_path_or_a_header_do_not_pass() {
    let long = "a".repeat(129);
    for name in ["", ".", "..", "-", "--help", "*", "a/b", "a%2fb", "a b", "a\r\nb", "ä", &long] {
        assert!(Name::parse(name.as_ref()).is_err(), "{name:?}");
    }
}

#[test]
fn a_refused_name_is_shown_without_its_control_characters() {
    let error = Name::parse("a\u{1b}[2Jb\u{202e}".as_ref()).expect_err("refused").to_string();
    assert_eq!(error, "`a⟨U+001B⟩[2Jb⟨U+202E⟩` is not the name of an agent or event");
}

#[test]
fn the_event_is_found_in_whole_and_cut_payloads() {
    assert_eq!(event(r#"{"hook_event_name":"Stop"}"#).as_deref(), Some("Stop"));
    assert_eq!(
        event("{ \"a\": [1, {}],\n \"hook_event_name\" :\n \"Stop\", \"b\": \"").as_deref(),
        Some("Stop")
    );
    assert_eq!(
        event(r#"{"a":"}]\\\"","hook_event_name":"Stop","b":{"c":"#).as_deref(),
        Some("Stop")
    );
}

#[test]
fn an_event_that_only_looks_like_one_is_not_found() {
    for payload in [
        "",
        "hook_event_name",
        r#""hook_event_name":"Stop""#,
        r#"{"hook_event_name""#,
        r#"{"hook_event_name":7}"#,
        r#"{"hook_event_name":"St"#,
        r#"{"hook_event_name":"../x"}"#,
        r#"{"a":"hook_event_name","b":"Stop"}"#,
        r#"{"a":"\"hook_event_name\":\"Stop\""}"#,
        r#"{"tool_input":{"hook_event_name":"Stop"}}"#,
        r#"[{"hook_event_name":"Stop"}]"#,
    ] {
        assert_eq!(event(payload), None, "{payload}");
    }
}

#[test]
fn a_name_in_the_arguments_of_a_tool_does_not_hide_the_agents_own() {
    let payload = r#"{"tool_input":{"hook_event_name":"Stop"},"hook_event_name":"PreToolUse"}"#;
    assert_eq!(event(payload).as_deref(), Some("PreToolUse"));
}

#[test]
fn two_names_that_disagree_are_both_disbelieved() {
    assert_eq!(event(r#"{"hook_event_name":"Stop","hook_event_name":"PreToolUse"}"#), None);
    assert_eq!(
        event(r#"{"hook_event_name":"Stop","hook_event_name":"Stop"}"#).as_deref(),
        Some("Stop")
    );
}
