//! Every case of `conformance/shell`, through the pack `default`.
//!
//! A case may carry `but`: the verdict it gets instead, with the reason why that is right or has to do for now. So what is
//! expected stands in the data, and every exception with its explanation beside it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use banister_events::activity::{ActionKind, Decision, Gate};
use banister_policy::{ActionRequest, Rules, evaluate};
use serde::Deserialize;
use serde_json::json;

use super::{action, builtin};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    #[serde(default)]
    why: Option<String>,
    #[serde(default)]
    class: Option<String>,
    #[serde(default)]
    program: Option<String>,
    #[serde(default)]
    category: Option<String>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Case {
    Line(String),
    Judged(String, String),
    About(String, String, String),
    Full(Full),
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Full {
    command: String,
    verdict: String,
    #[serde(default)]
    effect: Option<String>,
    #[serde(default)]
    context: Context,
    #[serde(default)]
    but: Option<Exception>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Context {
    cwd: Option<String>,
    #[serde(default)]
    links: BTreeMap<PathBuf, PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Exception {
    verdict: String,
    why: String,
}

impl Case {
    fn full(self) -> Full {
        let (command, verdict, effect) = match self {
            Self::Full(full) => return full,
            Self::Line(command) => (command, "any".to_owned(), None),
            Self::Judged(command, verdict) => (command, verdict, None),
            Self::About(command, verdict, effect) => (command, verdict, Some(effect)),
        };
        Full { command, verdict, effect, ..Full::default() }
    }
}

fn groups(path: &str) -> Vec<Group> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/shell").join(path);
    let text = std::fs::read_to_string(&root).unwrap();
    serde_saphyr::from_str(&text).unwrap()
}

fn decide(rules: &Rules, case: &Full) -> Gate {
    let action = action(ActionKind::Tool, "Bash", json!({ "command": case.command }));
    let links: Vec<(PathBuf, PathBuf)> = case.context.links.clone().into_iter().collect();
    let scene = ActionRequest::example(&action);
    // The project stays what it is, wherever in it or outside of it the agent is.
    let request = ActionRequest {
        cwd: case.context.cwd.as_deref().or(scene.cwd),
        project: scene.cwd,
        ..scene
    };
    evaluate(rules, &rules.read(&request).with_links(&links))
}

/// Every file, with its cases and what their group says about them.
fn cases() -> Vec<(String, Option<String>, Full)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/shell/corpus");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| format!("corpus/{}", entry.unwrap().file_name().to_str().unwrap()))
        .collect();
    files.extend(["gtfo.yaml".to_owned(), "tldr.yaml".to_owned()]);
    files.sort();
    let mut all = Vec::new();
    for file in files {
        for group in groups(&file) {
            let named = group.why.is_some() && group.class.is_some();
            assert!(named || group.program.is_some() || group.category.is_some(), "{file}");
            for case in group.cases {
                all.push((file.clone(), group.class.clone(), case.full()));
            }
        }
    }
    all
}

fn fits(verdict: &str, gate: &Gate) -> bool {
    match verdict {
        "allow" => gate.decision == Decision::Allow,
        "ask" => gate.decision == Decision::Ask,
        "deny" => gate.decision == Decision::Deny,
        "opaque" => gate.decision != Decision::Allow && gate.opaque.is_some(),
        "ask+" => gate.decision != Decision::Allow,
        // Everyday lines have no verdict of their own, but nobody refuses them.
        "any" => gate.decision != Decision::Deny,
        _ => false,
    }
}

#[test]
fn every_case_gets_its_verdict_or_has_an_exception_that_says_why() {
    let rules = builtin();
    let (mut count, mut exceptions, mut wrong) = (0, 0, Vec::new());
    for (file, _, case) in cases() {
        count += 1;
        let gate = decide(&rules, &case);
        let holds = fits(&case.verdict, &gate);
        let told = match &case.but {
            None if holds => continue,
            None => "",
            Some(exception) => {
                exceptions += 1;
                assert!(exception.why.len() > 10, "{}", case.command);
                assert!(exception.verdict != "allow", "{}: no exception is laxer", case.command);
                match (holds, fits(&exception.verdict, &gate)) {
                    (false, true) => continue,
                    (true, _) => "the exception is not needed",
                    _ => "the exception does not hold",
                }
            }
        };
        let Full { command, verdict, .. } = &case;
        let (decision, rule) = (gate.decision.name(), &gate.rule);
        wrong.push(format!("{file}: {command:?}: {decision} by {rule}, not {verdict} {told}"));
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
    println!("{count} cases, {exceptions} exceptions");
    assert!(count >= 4_000 && exceptions <= 80, "{count} cases, {exceptions} exceptions");
}

#[test]
fn few_everyday_lines_cannot_be_read() {
    let rules = builtin();
    let lines: Vec<Full> = cases()
        .into_iter()
        .filter(|(file, ..)| file == "tldr.yaml")
        .map(|(_, _, case)| case)
        .collect();
    let opaque = lines.iter().filter(|case| decide(&rules, case).opaque.is_some()).count();
    println!("{opaque} of {} lines are opaque", lines.len());
    assert!(opaque * 100 <= lines.len() * 2, "{opaque} of {}", lines.len());
}

/// The ways to hide what a line does.
const DISGUISES: [&str; 45] = [
    "alias",
    "ansi-c-quoting",
    "backslash",
    "brace-expansion",
    "carriage-return",
    "cd-then-relative",
    "command-glob",
    "command-substitution",
    "comment-padding",
    "compound",
    "decode-to-shell",
    "elsewhere",
    "eval",
    "field-separator",
    "find-exec",
    "function",
    "heredoc-to-shell",
    "inline-code",
    "leading-assignment",
    "line-continuation",
    "many-commands",
    "package-runner",
    "padding",
    "path-qualified",
    "pipe-to-shell",
    "process-substitution",
    "program-option",
    "quote-splitting",
    "quoted-wrapper",
    "rare-wrapper",
    "redirection",
    "separators",
    "shell-c",
    "shell-c-arguments",
    "source",
    "stacked-wrappers",
    "symlink",
    "tempfile-then-run",
    "trap",
    "unicode",
    "variable-assembly",
    "variable-tricks",
    "windows-name",
    "wrapper",
    "xargs",
];
/// What a line is after.
const EFFECTS: [&str; 11] = [
    "delete",
    "write",
    "read",
    "secret",
    "network",
    "privilege",
    "history",
    "cloud",
    "package",
    "process",
    "self",
];

#[test]
fn every_disguise_is_tried_with_every_effect() {
    let mut counts: BTreeMap<(String, String), usize> = BTreeMap::new();
    for (_, class, case) in cases() {
        if let (Some(class), Some(effect)) = (class, case.effect)
            && case.verdict != "allow"
        {
            *counts.entry((class, effect)).or_default() += 1;
        }
    }
    let mut missing = Vec::new();
    let mut table = format!("{:22}", "");
    for effect in EFFECTS {
        write!(table, "{effect:>10}").unwrap();
    }
    for disguise in DISGUISES {
        write!(table, "\n{disguise:22}").unwrap();
        for effect in EFFECTS {
            let count = counts.get(&(disguise.to_owned(), effect.to_owned())).copied();
            write!(table, "{:>10}", count.unwrap_or_default()).unwrap();
            if count.is_none() {
                missing.push(format!("{disguise} × {effect}"));
            }
        }
    }
    println!("{table}\n{} cases", counts.values().sum::<usize>());
    assert!(missing.is_empty(), "{missing:?}");
}
