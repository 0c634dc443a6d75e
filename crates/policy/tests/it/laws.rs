//! What holds for every text, not only for the examples.

use std::sync::LazyLock;

use banister_events::activity::{Decision, Gate};
use banister_policy::{ActionRequest, Rules, evaluate, explain, shell as reading};
use proptest::prelude::*;
use serde_json::json;

use super::{action, builtin};

static RULES: LazyLock<Rules> = LazyLock::new(builtin);

fn shell(command: &str) -> Gate {
    super::shell(&RULES, command)
}

/// Texts made of what shells care about.
fn shelly() -> impl Strategy<Value = String> {
    let atoms = prop::sample::select(vec![
        "ls", "rm", "-rf", "/", "~", "git", "status", "push", "cat", "echo", " ", " ", " ", ";",
        "&&", "|", "||", "&", "\n", "'", "\"", "\\", "$", "$(", ")", "(", "{", "}", "`", ">", "<",
        ">>", "2>&1", "<<", "#", "!", "*", "[", "=", "X=1", "sh -c", "sudo", "env", "xargs",
        "find", "-exec", "{}", "+", ".", "..", "é", "\u{200b}", "\r", "src",
    ]);
    prop::collection::vec(atoms, 0..24).prop_map(|atoms| atoms.concat())
}

/// Commands with a known verdict of each kind.
fn command() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "ls",
        "git status",
        "cat src/main.rs",
        "cargo test",
        "git push",
        "git push --force",
        "rm a",
        "rm -rf target",
        "curl https://example.org",
        "mystery",
        "cat .env",
        "chmod -R 777 .",
        "rm -rf /",
        "rm -rf ~",
        "dd if=x of=/dev/sda",
        "banister answer 1 accept",
        "cat ~/.config/banister/x",
        "kill -9 -1",
        "pkill banister",
    ])
}

const WAYS: usize = 22;

/// Another way to write the same command.
fn rewrite(command: &str, way: usize) -> String {
    let quoted = format!("'{}'", command.replace('\'', "'\\''"));
    // Only a simple command can stand behind a wrapper.
    let compound = command.contains(['(', ';', '\n', '#', '|', '='])
        && !command.starts_with("dd ")
        && !command.starts_with("sh -c ");
    if compound && !matches!(way, 0 | 1 | 7 | 13 | 20) {
        return rewrite(&format!("sh -c {quoted}"), way);
    }
    let (program, rest) = command.split_once(' ').unwrap_or((command, ""));
    let bare = program.chars().all(|c| c.is_ascii_alphanumeric());
    match way {
        0 => format!("sh -c {quoted}"),
        1 => format!("bash -lc {quoted}"),
        2 => format!("X=1 {command}"),
        3 => format!("sudo {command}"),
        4 => format!("env X=1 {command}"),
        5 => format!("nohup {command}"),
        6 => format!("timeout -k 5 10 {command}"),
        7 => format!("eval {quoted}"),
        8 => format!("echo $({command})"),
        9 => format!("echo \"$({command})\""),
        10 => format!("({command})"),
        11 => format!("if true; then {command}; fi"),
        12 => format!("sudo -u root env -i sh -c {quoted}"),
        13 => format!("X={quoted}; eval \"$X\""),
        14 if bare => format!("X={program}; $X {rest}"),
        15 if bare => format!("'{program}' {rest}"),
        16 if bare => format!("\\{program} {rest}"),
        17 if bare => format!("/usr/bin/{program} {rest}"),
        18 => format!("{program} \\\n {rest}"),
        19 => format!("bash <<'XX'\n{command}\nXX"),
        // Not every echo leaves a backslash alone.
        20 if !command.contains('\\') => format!("echo {quoted} | sh"),
        21 => format!("f() {{ {command}; }}; f"),
        _ => format!("{command} # ls"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn no_text_panics(text in any::<String>()) {
        shell(&text);
    }

    #[test]
    fn no_shelly_text_panics(text in shelly()) {
        shell(&text);
    }

    #[test]
    fn no_input_panics(key in "[a-z_]{1,10}", text in shelly(), tool in "[A-Za-z_]{1,8}") {
        let action = action(banister_events::activity::ActionKind::Tool, &tool, json!({ key: [text] }));
        super::decide(&RULES, &action);
    }

    #[test]
    fn no_surroundings_panic(cwd in any::<Option<String>>(), home in any::<Option<String>>(), text in shelly()) {
        let action = action(banister_events::activity::ActionKind::Tool, "Bash", json!({ "command": text }));
        let request = ActionRequest { agent: "", action: &action, cwd: cwd.as_deref(), project: None, home: home.as_deref(), own: &[] };
        evaluate(&RULES, &RULES.read(&request));
    }

    #[test]
    fn an_opaque_reading_is_never_allowed(text in shelly()) {
        if reading::read(&text).opaque.is_some() {
            prop_assert_ne!(shell(&text).decision, Decision::Allow);
        }
    }

    #[test]
    fn an_equivalent_text_is_never_judged_laxer(command in command(), ways in prop::collection::vec(0..WAYS, 1..4)) {
        let mut rewritten = command.to_owned();
        for way in ways {
            rewritten = rewrite(&rewritten, way);
        }
        let (plain, disguised) = (shell(command), shell(&rewritten));
        prop_assert!(disguised.decision >= plain.decision, "{rewritten}: {disguised:?}");
    }

    #[test]
    fn nothing_in_a_text_is_lost(left in shelly(), right in command()) {
        // What follows on a line of its own counts, unless the line before takes it in.
        if reading::read(&left).opaque.is_some() {
            return Ok(());
        }
        let both = shell(&format!("{left}\n{right}"));
        prop_assert!(both.decision >= shell(right).decision || both.opaque.is_some(), "{left:?} {right}: {both:?}");
    }

    #[test]
    fn an_explanation_says_what_the_verdict_says(text in shelly()) {
        let action = action(banister_events::activity::ActionKind::Tool, "Bash", json!({ "command": text }));
        let request = ActionRequest { agent: "claude", action: &action, cwd: Some("/home/me/project"), project: None, home: Some("/home/me"), own: &[] };
        let subject = RULES.read(&request);
        let (gate, told) = (evaluate(&RULES, &subject), explain(&RULES, &subject));
        prop_assert_eq!((gate.decision, &gate.rule, &gate.opaque), (told.verdict, &told.rule, &told.opaque));
        serde_json::to_string(&told).unwrap();
    }

    #[test]
    fn joining_is_as_strict_as_the_strictest(left in command(), right in command(), by in prop::sample::select(vec![";", "&&", "||", "|", "&", "\n", "|&"])) {
        let joined = shell(&format!("{left} {by} {right}"));
        let strictest = shell(left).decision.max(shell(right).decision);
        prop_assert!(joined.decision >= strictest, "{joined:?}");
    }

    #[test]
    fn quoting_a_letter_changes_nothing(command in command(), at in 0..4_usize) {
        let mut chars: Vec<String> = command.chars().map(String::from).collect();
        if chars[at.min(1)].chars().all(char::is_alphanumeric) {
            chars[at.min(1)] = format!("'{}'", chars[at.min(1)]);
        }
        prop_assert_eq!(shell(&chars.concat()), shell(command));
    }

    #[test]
    fn a_literal_word_is_read_back(words in prop::collection::vec("[^\\p{C}\\p{Z}']{1,12}", 1..6)) {
        let text = words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
        let read = reading::read(&format!("echo {text}"));
        if read.opaque.is_none() {
            prop_assert_eq!(read.commands.len(), 1);
            let argv: Vec<&str> = read.commands[0].arguments().iter().map(|word| word.text.as_str()).collect();
            prop_assert_eq!(argv, words.iter().map(String::as_str).collect::<Vec<_>>());
        }
    }
}

#[test]
fn large_and_deep_texts_end_in_an_ask() {
    for text in [
        "ls;".repeat(5_000),
        "a".repeat(1 << 20),
        "$(".repeat(30_000),
        "(".repeat(60_000),
        "sudo ".repeat(10_000),
        "rm ".repeat(20_000),
        "cd a;".repeat(2_000),
        format!("cat {}", "=:@,".repeat(15_000)),
        format!("cat {}", "a:b:c:d ".repeat(8_000)),
        format!("cd a; cd b; cd c; cd d; cat {}", "a:b:c:d ".repeat(8_000)),
        "echo x | xargs rm -rf; ".repeat(2_000),
        format!("$X {}", "/dev/a*?[ ".repeat(6_000)),
        "sh -c ".repeat(5_000),
        "eval ".repeat(10_000),
        "x(){".repeat(15_000),
    ] {
        let start: String = text.chars().take(20).collect();
        assert_eq!(shell(&text).decision, Decision::Ask, "{start}");
    }
}

#[test]
fn a_directory_that_is_no_project_is_asked_about() {
    let action = action(
        banister_events::activity::ActionKind::Tool,
        "Bash",
        json!({ "command": "cat notes" }),
    );
    for cwd in [Some("/home/me"), Some("/"), Some("/home"), Some("relative"), None] {
        let request = ActionRequest {
            agent: "claude",
            action: &action,
            cwd,
            project: None,
            home: Some("/home/me"),
            own: &[],
        };
        assert_eq!(evaluate(&RULES, &RULES.read(&request)).decision, Decision::Ask, "{cwd:?}");
    }
}
