use super::*;

fn sample() -> Conf {
    Conf {
        socket: "/run/user/1000/banister.sock".into(),
        key: "bk_emit_abc".into(),
        spool: "/home/me/a dir with = and # in it/spool".into(),
        reconnect: Duration::from_millis(1234),
        sections: vec![
            Section {
                agent: "claude-code".into(),
                event: "PreToolUse".into(),
                deadline: Duration::from_secs(295),
                gated: true,
                exit: 0,
                stdout: "{\"decision\":\"deny\",\n \"reason\":\"{why}\"}\r\n".into(),
                stderr: "  # a \\ backslash, \\n a written-out escape, and trailing blanks  "
                    .into(),
            },
            Section {
                gated: false,
                exit: 0,
                stderr: String::new(),
                ..Section::strictest("claude-code", ANY)
            },
            Section { exit: 255, ..Section::strictest(ANY, ANY) },
        ],
    }
}

fn problem(text: &str) -> String {
    parse(text).expect_err("should not parse").to_string()
}

const HEAD: &str = "socket = /s\nkey = k\nspool = /p\n";

#[test]
fn what_is_rendered_parses_to_the_same() {
    assert_eq!(parse(&render(&sample())).expect("parses"), sample());
}

#[test]
fn render_adds_the_last_resort_when_there_is_none() {
    let mut conf = sample();
    conf.sections.truncate(1);
    let read = parse(&render(&conf)).expect("parses");
    assert_eq!(read.section("nobody", "nothing"), Some(&Section::strictest(ANY, ANY)));
    assert_eq!(read.sections.len(), 2);
}

#[test]
fn render_leaves_out_names_that_could_forge_a_section() {
    let mut conf = sample();
    conf.sections.insert(0, Section::strictest("x]\n[* *]\ngated = no\nexit = 0\n[a", "b"));
    assert_eq!(parse(&render(&conf)).expect("parses"), sample());
}

#[test]
fn the_most_specific_section_is_taken() {
    let conf = sample();
    let exit = |agent, event| conf.section(agent, event).map(|s| (s.gated, s.exit));
    assert_eq!(exit("claude-code", "PreToolUse"), Some((true, 0)));
    assert_eq!(exit("claude-code", "Stop"), Some((false, 0)));
    assert_eq!(exit("codex", "PreToolUse"), Some((true, 255)));
}

#[test]
fn reading_for_one_call_gives_the_section_that_reading_everything_gives() {
    let text = render(&sample());
    let all = parse(&text).expect("parses");
    for (agent, event) in [("claude-code", "PreToolUse"), ("claude-code", "Stop"), ("codex", "x")] {
        let few = parse_for(&text, agent, Some(event)).expect("parses");
        assert_eq!(few.section(agent, event), all.section(agent, event), "{agent} {event}");
    }
    let unnamed = parse_for(&text, "claude-code", None).expect("parses");
    assert_eq!(unnamed.sections, all.sections);
}

#[test]
fn an_unknown_event_gets_the_agents_shortest_deadline() {
    let conf = sample();
    assert_eq!(conf.shortest_deadline("claude-code"), Some(Duration::from_secs(4)));
    assert_eq!(conf.shortest_deadline("codex"), Some(Duration::from_secs(4)));
}

#[test]
fn a_section_refuses_unless_it_says_otherwise() {
    let conf = parse(&format!("{HEAD}[a b]\n")).expect("parses");
    assert_eq!(conf.sections, [Section::strictest("a", "b")]);
    assert_eq!(conf.reconnect, Duration::from_secs(10));
}

#[test]
fn hand_edited_files_may_have_comments_blank_lines_and_crlf() {
    let conf = parse(&format!("# hello\r\n\r\n{HEAD}[a b]\r\nexit = 3\r\nstdout =\r\n"));
    let exit = conf.expect("parses").sections.first().map(|s| (s.exit, s.stdout.clone()));
    assert_eq!(exit, Some((3, String::new())));
}

#[test]
fn what_is_not_understood_makes_the_file_unusable() {
    for (text, expected) in [
        ("", "names no socket"),
        ("socket = /s\nspool = /p\n", "has no key"),
        ("socket = /s\nkey = k\n", "names no spool"),
        ("socket = /s\nkey = a b\n", "line 2"),
        ("socket = /s\nkey = a\\r\\nX-Evil: 1\n", "line 2"),
        ("sokcet = /s\n", "line 1"),
        ("nonsense\n", "key = value"),
        (&format!("{HEAD}[a b\n"), "[agent event]"),
        (&format!("{HEAD}[ab]\n"), "[agent event]"),
        (&format!("{HEAD}[a b]\n[a b]\n"), "there before"),
        (&format!("{HEAD}[a b]\ngatd = no\n"), "line 5"),
        (&format!("{HEAD}[a b]\ngated = false\n"), "yes or no"),
        (&format!("{HEAD}[a b]\nexit = 256\n"), "0 to 255"),
        (&format!("{HEAD}[a b]\nexit = -1\n"), "0 to 255"),
        (&format!("{HEAD}[a b]\ndeadline_ms = soon\n"), "milliseconds"),
        (&format!("{HEAD}[a b]\ndeadline_ms = 86400001\n"), "a day at most"),
        (&format!("{HEAD}[a b]\ndeadline_ms = 18446744073709551615\n"), "a day at most"),
        (&format!("{HEAD}[a b]\nstderr = \\x\n"), "backslash"),
        (&format!("{HEAD}[a b]\nstderr = \\\n"), "backslash"),
        (&format!("{HEAD}[a b]\ngated = yes\nexit = 0\n"), "must refuse"),
        (&format!("{HEAD}[a b]\ngated = yes\nexit = 0\nstdout =  \\n\n"), "must refuse"),
    ] {
        let problem = problem(text);
        assert!(problem.contains(expected), "{text:?}: {problem}");
    }
}
