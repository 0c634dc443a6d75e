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
    assert_eq!(read(""), ShellReading::default());
    assert_eq!(read(" \n# x").commands, []);
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
    // A quoted name is no assignment; which of the two it is, is not worth knowing.
    assert!(read("'A'=1").opaque.is_some());
    assert!(read("1A=1").opaque.is_some());
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
        "a >x", "a > x", "a >>x", "a 2>x", "a &>x", "a &>> x", "a >|x", "a >|  x", ">x a", "a >'x'",
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
        ("$X a", "the program's name is not known"),
        ("$(b) a", "the program's name is not known"),
        ("a 'b", "not shell that is known"),
        ("a \"b", "not shell that is known"),
        ("a \\", "not shell that is known"),
        ("a*", "pattern"),
        ("a\r", "do not show"),
        ("a \u{202e}b", "do not show"),
        ("a\u{a0}b", "white space"),
        ("a !b", "earlier command"),
        ("a =b", "`=`"),
        ("a >", "not shell"),
        ("a {x}>y", "sets a variable"),
        ("a;;b", "not shell"),
        ("a &>x b", "two ways"),
        ("a >& x", "not a descriptor"),
        ("a <&x", "not a descriptor"),
        ("a </dev/tcp/x/1", "network connection"),
        ("eval $X", "`eval`"),
        ("source x", "`source`"),
        ("sudo -Z a", "`sudo` has an option that is not known here: `-Z`"),
        ("sh", "from its input"),
        ("a | sh", "what another command prints"),
        ("sh <(a)", "what another command prints"),
        ("sh -c \"a $Y\"", "a text that is not known"),
        ("f() { f; }; f", "calls itself"),
        ("pwsh -c x", "`pwsh` runs text"),
        ("X='a[$(b)]'; ((X))", "holds a command"),
        ("{a,b}{c,d}{a..z}{a..z}", "not"),
        ("a {1..9999}", "too many words"),
        ("cat <<A <<B\na\nA\nb\nB", "not shell"),
    ] {
        assert!(opaque(text).contains(reason), "{text}: {:?}", opaque(text));
    }
}

#[test]
fn every_way_through_a_text_is_walked() {
    for (text, listed) in [
        ("a $(b c) d", vec!["b c", "a … d"]),
        ("a \"x$(b)\" | c", vec!["b", "a x…", "c"]),
        ("a `b \\`c\\``", vec!["c", "b …", "a …"]),
        ("if a; then b; elif c; then d; else e; fi", vec!["a", "b", "c", "d", "e"]),
        ("while a; do b; done", vec!["a", "b"]),
        ("for x in 1 2; do a $x; done", vec!["a 1", "a 2"]),
        ("case $x in a) b;; *) c $(d);; esac", vec!["b", "d", "c …"]),
        ("(a; b) && { c; } || ! d &", vec!["a", "b", "c", "d"]),
        ("f() { a $1; }; f x", vec!["a x"]),
        ("f() { a; }", vec!["a"]),
        ("ls() { a; }; ls", vec!["a"]),
        ("a <(b) >(c)", vec!["b", "c", "a /dev/fd/63 /dev/fd/63"]),
        ("a $((1 + $(b)))", vec!["b", "a …"]),
        ("a <<X\n$(b)\nX", vec!["b", "a"]),
        ("a <<'X'\n$(b)\nX", vec!["a"]),
        ("sh <<X\na\nb\nX", vec!["a", "b"]),
        ("sh <<< 'a; b'", vec!["a", "b"]),
        ("echo 'a b' | sh", vec!["echo a b", "a b"]),
        ("echo YSBi | base64 -d | sh", vec!["echo YSBi", "base64 -d", "a b"]),
        ("eval 'a; b'", vec!["a", "b"]),
        ("trap 'a' EXIT", vec!["a"]),
        ("sh -c 'a $1' x y", vec!["a y"]),
        ("git commit -F - <<X\na\nX", vec!["git commit -F -"]),
        ("cd x && a > y", vec!["cd x", "a"]),
    ] {
        assert_eq!(read(text).opaque, None, "{text}");
        let shown: Vec<String> = read(text)
            .commands
            .iter()
            .map(|simple| simple.argv.iter().map(Word::shown).collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(shown, listed, "{text}");
    }
}

#[test]
fn what_is_set_is_known_where_it_is_used() {
    for (text, last) in [
        ("X=rm; $X -rf a", "rm -rf a"),
        ("X=rm Y=a; $X $Y", "rm a"),
        ("P=~/.ssh; cat $P/id", "cat ~/.ssh/id"),
        ("A=r; B=m; $A$B x", "rm x"),
        ("X='a b'; c $X \"$X\"", "c a b a b"),
        ("c ${X:-d}", "c d"),
        ("rm${IFS}-rf${IFS}x", "rm -rf x"),
        ("$'\\x72\\155' x", "rm x"),
        ("X=abc; c ${X:1:2}", "c bc"),
        ("c a{b,c}d{1..2}", "c abd1 abd2 acd1 acd2"),
        ("X=a; (X=b); c $X", "c a"),
        ("X=a; X=b & c $X", "c a"),
        ("X=a; X+=b; c $X", "c ab"),
        ("X=a; for i in 1; do X=$i; done; c $X", "c …"),
        ("X=a; read X; c $X", "c …"),
        ("IFS=/; X=a/b; c $X", "c …"),
        ("c $X", "c …"),
    ] {
        let reading = read(text);
        let shown =
            |simple: &Simple| simple.argv.iter().map(Word::shown).collect::<Vec<_>>().join(" ");
        let found: Vec<String> = reading.commands.iter().map(shown).collect();
        assert!(found.iter().any(|command| command == last), "{text}: {found:?}");
    }
    // Where it depends, each value counts.
    let maybe = read("X=a; b && X=c; $X");
    let programs: Vec<String> = maybe.commands.iter().map(Simple::program).collect();
    assert!(
        ["a", "c"].iter().all(|name| programs.iter().any(|program| program == name)),
        "{programs:?}"
    );
}

#[test]
fn the_way_to_a_command_is_kept() {
    let reading = read("sudo sh -c 'if a; then b | c; fi'");
    let last = reading.commands.last().unwrap();
    let steps: Vec<&str> = last.steps.iter().map(|step| &**step).collect();
    assert_eq!(steps, ["sudo", "sh -c", "if", "pipeline"]);
    assert_eq!(*read("cd a && b").commands[1].directories, ["a"]);
    assert_eq!(*read("cd a; b").commands[1].directories, ["", "a"]);
    assert!(read("ssh h 'a'").commands[1].elsewhere);
}

#[test]
fn what_an_opaque_text_runs_is_still_listed() {
    assert_eq!(commands("$X a b"), ["\0 a b", "a b"]);
    assert_eq!(commands("eval \"a $X; b\""), ["a \0", "b"]);
    assert_eq!(commands("ls 'open; rm x").len(), read("ls 'open; rm x").commands.len());
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
    assert!(opaque(&"nohup ".repeat(30)).contains("too deep"));
    assert!(!opaque(&"$(".repeat(20)).is_empty());
    assert!(opaque(&"(".repeat(60)).contains("not"));
    let deep = format!("{}a{}", "( ".repeat(60), " )".repeat(60));
    assert!(opaque(&deep).contains("too deep"));
}

#[test]
fn words_that_need_no_splitting_stay_whole() {
    let reading = read_argv(["ls", "$(rm x)", "a b"], &ShellFacts::default());
    assert_eq!(reading.opaque, None);
    assert_eq!(reading.commands[0].argv.len(), 3);
    assert_eq!(read_argv(["bash", "-lc", "a; b"], &ShellFacts::default()).commands.len(), 2);
    assert!(read_argv(["ls", "\u{1b}"], &ShellFacts::default()).opaque.is_some());
}
