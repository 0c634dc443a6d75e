use super::*;

/// The words of each command, joined by spaces.
fn commands(text: &str) -> Vec<String> {
    read(text)
        .commands
        .iter()
        .map(|simple| {
            let words: Vec<&str> = simple.argv.iter().map(|word| word.text.as_str()).collect();
            words.join(" ")
        })
        .collect()
}

fn opaque(text: &str) -> String {
    read(text).opaque.unwrap_or_default()
}

#[test]
fn operators_separate_commands() {
    let text = "a; b && c || d | e |& f & g\nh";
    assert_eq!(commands(text), ["a", "b", "c", "d", "e", "f", "g", "h"]);
    assert_eq!(read(text).opaque, None);
    assert_eq!(read(""), Reading::default());
    assert_eq!(read(" \n;# x").commands, []);
}

#[test]
fn quotes_and_backslashes_are_removed_as_a_shell_does() {
    for (text, words) in [
        (r#"a 'b c' "d e" f\ g"#, vec!["a", "b c", "d e", "f g"]),
        (r#"a'b'"c"d"#, vec!["abcd"]),
        (r#"a "" ''"#, vec!["a", "", ""]),
        (r#"a "x\"y\\z\w""#, vec!["a", "x\"y\\z\\w"]),
        ("a 'x\\' b", vec!["a", "x\\", "b"]),
        ("a b\\\nc \"d\\\ne\"", vec!["a", "bc", "de"]),
        ("a b#c '#d' # e", vec!["a", "b#c", "#d"]),
        ("a '\n' b", vec!["a", "\n", "b"]),
        (r#"a "foo$" b$ '$(x)'"#, vec!["a", "foo$", "b$", "$(x)"]),
        ("a {} x{y} HEAD@{1}", vec!["a", "{}", "x{y}", "HEAD@{1}"]),
        ("a 5! x!=y", vec!["a", "5!", "x!=y"]),
    ] {
        let reading = read(text);
        assert_eq!(reading.opaque, None, "{text}");
        let [simple] = reading.commands.as_slice() else { panic!("{text}: {reading:?}") };
        let read: Vec<&str> = simple.argv.iter().map(|word| word.text.as_str()).collect();
        assert_eq!(read, words, "{text}");
    }
}

#[test]
fn assignments_stand_before_the_command_only() {
    let reading = read("A=1 B='x y' cmd C=3 'D=4'");
    let simple = &reading.commands[0];
    let set: Vec<(&str, &str)> =
        simple.assignments.iter().map(|set| (set.name.as_str(), set.value.text.as_str())).collect();
    assert_eq!(set, [("A", "1"), ("B", "x y")]);
    assert_eq!(simple.argv.len(), 3);
    assert_eq!(read("'A'=1").commands[0].argv[0].text, "A=1");
    assert_eq!(read("1A=1").commands[0].argv[0].text, "1A=1");
    assert_eq!(read("A+=1").commands[0].assignments[0].name, "A");
}

#[test]
fn redirections_are_recorded_with_their_direction() {
    let redirects = |text: &str| {
        let reading = read(text);
        assert_eq!(reading.opaque, None, "{text}");
        reading.commands[0]
            .redirects
            .iter()
            .map(|redirect| (redirect.direction, redirect.target.text.clone()))
            .collect::<Vec<_>>()
    };
    let write = |target: &str| vec![(Direction::Write, target.to_owned())];
    for text in [
        "a >x", "a > x", "a >>x", "a 2>x", "a &>x", "a &>> x", "a >|x", "a >|  x", ">x a", "a <>x",
        "a >'x'",
    ] {
        assert_eq!(redirects(text), write("x"), "{text}");
    }
    assert_eq!(redirects("a < x"), [(Direction::Read, "x".to_owned())]);
    for text in ["a 2>&1", "a >&2", "a >&-", "a <&0", "a 1>&2-"] {
        assert_eq!(redirects(text), [], "{text}");
    }
    assert_eq!(commands("a >&-b"), ["a b"]);
    assert_eq!(commands("a 2 >x"), ["a 2"]);
    assert_eq!(commands("a b2>x"), ["a b2"]);
    assert_eq!(commands("git >/dev/null reset"), ["git reset"]);
}

#[test]
fn patterns_are_marked_unless_quoted() {
    let marked = |text: &str| read(text).commands[0].argv[1].glob;
    for text in ["a *.rs", "a x?", "a [ab]", "a 'x'*"] {
        assert!(marked(text), "{text}");
    }
    for text in ["a '*.rs'", "a \"*\"", "a \\*", "a x"] {
        assert!(!marked(text), "{text}");
    }
    assert!(!read("[ -f x ]").commands[0].argv[0].glob);
}

#[test]
fn each_thing_that_is_not_read_has_its_reason() {
    for (text, reason) in [
        ("a $X", "a value that is not known"),
        ("a ${X}", "a value that is not known"),
        ("a \"$X\"", "a value that is not known"),
        ("a $'x'", "a value that is not known"),
        ("a $(b)", "what another command prints"),
        ("a `b`", "what another command prints"),
        ("a <<X", "here-document"),
        ("a <<<x", "here-document"),
        ("a <(b)", "in place of a file"),
        ("(a)", "group"),
        ("a() b", "group"),
        ("{ a; }", "braces"),
        ("a {b,c}", "braces"),
        ("if a; then b; fi", "control flow"),
        ("[[ a ]]", "control flow"),
        ("! a", "control flow"),
        ("a 'b", "quote"),
        ("a \"b", "quote"),
        ("a \\", "backslash"),
        ("a*", "pattern"),
        ("a\r", "do not show"),
        ("a \u{202e}b", "do not show"),
        ("a\u{a0}b", "white space"),
        ("a !b", "earlier command"),
        ("a =b", "`=`"),
        ("a >", "no target"),
        ("a > ; b", "no target"),
        ("a {x}>y", "sets a variable"),
        ("a;;b", "case"),
        ("a &>x b", "two ways"),
        ("a >& x", "not a descriptor"),
        ("a <&x", "not a descriptor"),
        ("eval a", "`eval`"),
        ("sudo -Z a", "`sudo` has an option"),
        ("sh", "from its input"),
        ("sh -c 'sh -c \"sh -c x\" $Y'", "a value that is not known"),
    ] {
        assert!(opaque(text).contains(reason), "{text}: {:?}", opaque(text));
    }
}

#[test]
fn what_an_opaque_text_runs_is_still_listed() {
    assert_eq!(commands("a $(b c) d"), ["b c", "a $ d"]);
    assert_eq!(commands("a \"$(b)\" | c"), ["b", "a $", "c"]);
    assert_eq!(commands("if a; then b; else c; fi"), ["a", "b", "c"]);
    assert_eq!(commands("(a; b)"), ["a", "b"]);
    assert_eq!(commands("{ a; }"), ["a"]);
    assert_eq!(commands("a `b`"), ["b", "a $"]);
    assert_eq!(commands("eval 'a; b'"), ["eval a; b", "a", "b"]);
}

#[test]
fn wrappers_are_seen_through_by_their_options() {
    for (text, listed) in [
        ("timeout 5 a b", vec!["a b"]),
        ("timeout -s KILL --kill-after=1 5 a", vec!["a"]),
        ("nice -n 5 a", vec!["a"]),
        ("nice -5 a", vec!["a"]),
        ("env -i -u X A=1 a", vec!["a"]),
        ("env - a", vec!["a"]),
        ("time -p a", vec!["a"]),
        ("command -p a", vec!["a"]),
        ("command -v a", vec!["command -v a"]),
        ("exec a", vec!["a"]),
        ("sudo -u me -- a b", vec!["sudo -u me -- a b", "a b"]),
        ("sudo A=1 a", vec!["sudo A=1 a", "a"]),
        ("./nohup a", vec!["./nohup a", "a"]),
        ("xargs -0 -n 1 a b", vec!["a b"]),
        ("sh -c 'a; b' x", vec!["a", "b"]),
        ("bash -e -c a", vec!["a"]),
        ("bash a.sh", vec!["bash a.sh"]),
        (
            "find . -exec a {} + -execdir b \\;",
            vec!["find . -exec a {} + -execdir b ;", "a {}", "b"],
        ),
        ("nohup nice sudo env a", vec!["sudo env a", "a"]),
        ("busybox sh -c a", vec!["a"]),
        ("env", vec!["env"]),
    ] {
        assert_eq!(read(text).opaque, None, "{text}");
        assert_eq!(commands(text), listed, "{text}");
    }
    assert!(read("xargs a").commands[0].open_ended);
    assert!(!read("nohup a").commands[0].open_ended);
    assert_eq!(read("env A=1 a").commands[0].assignments[0].name, "A");
}

#[test]
fn limits_end_in_an_opaque_reading() {
    assert!(opaque(&"a".repeat(MAX_TEXT + 1)).contains("64 KiB"));
    assert_eq!(opaque(&"a".repeat(MAX_TEXT)), "");
    let many = read(&"a\n".repeat(MAX_COMMANDS + 1));
    assert_eq!(many.commands.len(), MAX_COMMANDS);
    assert!(many.opaque.unwrap().contains("1,000 commands"));
    assert_eq!(opaque(&"a\n".repeat(MAX_COMMANDS)), "");
    let wide = read(&"a ".repeat(MAX_WORDS + 1));
    assert_eq!(wide.commands[0].argv.len(), MAX_WORDS);
    assert!(wide.opaque.unwrap().contains("words"));
    assert!(opaque(&"nohup ".repeat(20)).contains("too deep"));
    assert!(opaque(&"$(".repeat(20)).contains("prints"));
}

#[test]
fn words_that_need_no_splitting_stay_whole() {
    let reading = read_argv(["ls", "$(rm x)", "a b"], &Facts::default());
    assert_eq!(reading.opaque, None);
    assert_eq!(reading.commands[0].argv.len(), 3);
    assert_eq!(read_argv(["bash", "-lc", "a; b"], &Facts::default()).commands.len(), 2);
    assert!(read_argv(["ls", "\u{1b}"], &Facts::default()).opaque.is_some());
}
