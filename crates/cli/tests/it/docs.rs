//! What the guides show is what happens. `…` stands for whatever is left out: on a line, or as many lines as it takes.

use std::path::Path;
use std::process::Command;

const GUIDES: [&str; 1] = ["docs/guides/translate.md"];

#[test]
fn guides_show_what_happens() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let programs = Path::new(env!("CARGO_BIN_EXE_banister")).parent().unwrap().to_owned();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    for guide in GUIDES {
        let folder = tempfile::tempdir().unwrap();
        let text = std::fs::read_to_string(root.join(guide)).unwrap();
        let mut shown = 0;
        for command in commands(&text) {
            let output = Command::new("bash")
                .args(["-c", &command.script])
                .env("PATH", &path)
                .current_dir(folder.path())
                .output()
                .unwrap();
            // In a pipe the two come as they come; on a screen the data is first.
            let output = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
            let Some(expected) = &command.shows else { continue };
            let lines: Vec<&str> = output.lines().collect();
            assert!(
                matches(expected, &lines),
                "{guide}: $ {}\nis said to show:\n{}\nand shows:\n{output}",
                command.script,
                expected.join("\n")
            );
            shown += 1;
        }
        assert!(shown > 5, "{guide} shows {shown} commands");
    }
}

struct Step {
    script: String,
    /// None where nothing is said about what it prints.
    shows: Option<Vec<String>>,
}

fn commands(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let block: Vec<String> = match line {
            "```sh" | "```console" => {
                lines.by_ref().take_while(|line| *line != "```").map(str::to_owned).collect()
            }
            _ => continue,
        };
        if line == "```sh" {
            // What waits for more, or for a gateway, is not run.
            let endless = block.iter().any(|line| line.contains("tail ") || line.contains("curl "));
            if !endless {
                steps.push(Step { script: block.join("\n"), shows: None });
            }
            continue;
        }
        let mut until: Option<String> = None;
        for line in block {
            if let Some(end) = &until {
                let step = steps.last_mut().unwrap();
                step.script.extend(["\n", line.as_str()]);
                if line == *end {
                    until = None;
                }
            } else if let Some(script) = line.strip_prefix("$ ") {
                until = script
                    .split_once("<<'")
                    .and_then(|(_, rest)| rest.split_once('\''))
                    .map(|(end, _)| end.to_owned());
                steps.push(Step { script: script.to_owned(), shows: Some(Vec::new()) });
            } else if let Some(shows) = steps.last_mut().and_then(|step| step.shows.as_mut()) {
                shows.push(line);
            }
        }
    }
    // What needs another program or file than the guide has is not run.
    let runs = |step: &Step| {
        let has = |program: &str| {
            Command::new("bash")
                .args(["-c", &format!("command -v {program}")])
                .output()
                .unwrap()
                .status
                .success()
        };
        !step.script.contains("probe.yaml") && (!step.script.contains("jq ") || has("jq"))
    };
    steps.into_iter().filter(runs).collect()
}

fn matches(expected: &[String], lines: &[&str]) -> bool {
    match expected.split_first() {
        None => lines.is_empty(),
        Some((any, rest)) if any.trim() == "…" => {
            (0..=lines.len()).any(|at| matches(rest, &lines[at..]))
        }
        Some((first, rest)) => {
            lines.split_first().is_some_and(|(line, more)| fits(first, line) && matches(rest, more))
        }
    }
}

fn fits(pattern: &str, line: &str) -> bool {
    let mut parts = pattern.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut left) = line.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return left.is_empty() };
    for part in parts {
        match left.split_once(part) {
            Some((_, after)) => left = after,
            None => return false,
        }
    }
    left.ends_with(last)
}
