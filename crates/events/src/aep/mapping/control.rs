//! Reads `control` and `install`: how an agent is answered, and where its hooks are registered.

use std::collections::BTreeMap;

use serde_json::Value;

use super::tree::{Node, Problems, Tree};
use crate::aep::dialect::{self, Behavior, Control, PLACEHOLDERS, Piece, Stdout, Template};

const CONTROL: &[&str] = &["deadline_ms", "answers", "unsupported", "own_prompt", "fallback"];
const TEMPLATE: &[&str] = &["exit", "stdout", "stderr", "with_input", "with_context"];
const INSTALL: &[&str] =
    &["user", "project", "format", "at", "entry", "document", "timeout_unit", "hooks", "note"];
const FORMATS: &[&str] = &["json", "toml", "yaml", "plugin", "files"];
const LONGEST_MS: u64 = 24 * 60 * 60 * 1_000;

fn words() -> Vec<&'static str> {
    Behavior::ALL.into_iter().map(Behavior::name).collect()
}

/// Where an agent's hooks are registered.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Install {
    /// The user's file.
    pub user: Option<String>,
    /// The project's file, relative to its root.
    pub project: Option<String>,
    /// What kind of file it is: `json`, `toml`, `yaml`, `plugin`, `files`.
    pub format: String,
    /// Where in the file the registrations of a hook are: a JSON Pointer with `{hook}`.
    pub at: Option<String>,
    /// One registration, with `{command}`, `{timeout}`, `{matcher}`, `{hook}`.
    pub entry: Option<Value>,
    /// What the file needs besides.
    pub document: Option<Value>,
    /// Whether the agent counts timeouts in milliseconds instead of seconds.
    pub milliseconds: bool,
    /// The hooks that are registered.
    pub hooks: Vec<InstallHook>,
    /// What the user has to do by hand.
    pub note: Option<String>,
}

/// One hook that is registered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct InstallHook {
    /// Its name.
    pub hook: String,
    /// How long the agent waits for it, in the agent's unit.
    pub timeout: Option<u64>,
    /// Which tools it is for.
    pub matcher: Option<String>,
}

/// Reads one hook's part of `control` on top of what was inherited.
pub(super) fn read_control(node: &Node, base: Control, problems: &mut Problems) -> Control {
    let members = node.members("a hook of `control`", CONTROL, problems);
    let mut control = base;
    if let Some(value) = members.get("deadline_ms") {
        control.deadline_ms = value.number("`deadline_ms`", LONGEST_MS, problems);
    }
    if members.get("own_prompt").is_some() {
        control.own_prompt = members.flag("own_prompt", problems);
    }
    if let Some(value) = members.get("fallback") {
        control.fallback = Some(read_template(value, problems));
    }
    let mut answers = BTreeMap::new();
    if let Some(value) = members.get("answers") {
        for (key, template) in value.entries("`answers`", problems) {
            match Behavior::parse(&key.name) {
                Some(behavior) => {
                    answers.insert(behavior, read_template(template, problems));
                }
                None => problems.unknown(key.at, "behaviour", &key.name, &words()),
            }
        }
    }
    if let Some(value) = members.get("unsupported") {
        control.unsupported.clear();
        for node in value.list("`unsupported`", problems) {
            let Some(word) = node.text("a behaviour", problems) else { continue };
            match Behavior::parse(&word) {
                Some(behavior) if answers.contains_key(&behavior) => {
                    problems.error(node.at, format!("`{word}` has an answer, so it is supported"));
                }
                Some(behavior) => {
                    control.unsupported.push(behavior);
                    control.answers.remove(&behavior);
                }
                None => problems.unknown(node.at, "behaviour", &word, &words()),
            }
        }
    }
    control.unsupported.retain(|behavior| !answers.contains_key(behavior));
    control.answers.extend(answers);
    control
}

/// Reads an answer.
pub(super) fn read_template(node: &Node, problems: &mut Problems) -> Template {
    let members = node.members("an answer", TEMPLATE, problems);
    let exit = members.get("exit").and_then(|node| node.number("`exit`", 255, problems));
    let stdout = members.get("stdout").map(|node| {
        let stdout = match &node.tree {
            Tree::Text(text) => Stdout::Text(text.clone()),
            _ => Stdout::Json(node.json()),
        };
        match &stdout {
            Stdout::Text(text) => check_holes(text, node, problems),
            Stdout::Json(value) => {
                for text in dialect::strings(value) {
                    check_holes(text, node, problems);
                }
            }
        }
        stdout
    });
    let stderr = members.text("stderr", problems);
    if let (Some(text), Some(node)) = (&stderr, members.get("stderr")) {
        check_holes(text, node, problems);
    }
    let mut other =
        |name: &str| members.get(name).map(|node| Box::new(read_template(node, problems)));
    Template {
        exit: exit.and_then(|exit| u8::try_from(exit).ok()).unwrap_or(0),
        stdout,
        stderr,
        with_input: other("with_input"),
        with_context: other("with_context"),
    }
}

fn check_holes(text: &str, node: &Node, problems: &mut Problems) {
    for piece in dialect::pieces(text) {
        if let Piece::Hole(name, _) = piece
            && !PLACEHOLDERS.contains(&name)
        {
            problems.unknown(node.at, "placeholder", name, PLACEHOLDERS);
        }
    }
}

/// Reads `install` on top of what was inherited.
pub(super) fn read_install(node: &Node, base: Install, problems: &mut Problems) -> Install {
    let members = node.members("`install`", INSTALL, problems);
    let mut install = base;
    for (name, slot) in [
        ("user", &mut install.user),
        ("project", &mut install.project),
        ("at", &mut install.at),
        ("note", &mut install.note),
    ] {
        if let Some(text) = members.text(name, problems) {
            *slot = Some(text);
        }
    }
    if let (Some(node), Some(format)) = (members.get("format"), members.text("format", problems)) {
        if !FORMATS.contains(&format.as_str()) {
            problems.unknown(node.at, "format", &format, FORMATS);
        }
        install.format = format;
    }
    if let Some(entry) = members.get("entry") {
        install.entry = Some(entry.json());
    }
    if let Some(document) = members.get("document") {
        install.document = Some(document.json());
    }
    if let (Some(node), Some(unit)) =
        (members.get("timeout_unit"), members.text("timeout_unit", problems))
    {
        install.milliseconds = unit == "ms";
        if unit != "ms" && unit != "s" {
            problems.error(node.at, "`timeout_unit` is s or ms");
        }
    }
    if let Some(hooks) = members.get("hooks") {
        install.hooks.clear();
        for (key, node) in hooks.entries("`hooks`", problems) {
            let members = node.members("a hook of `install`", &["timeout", "matcher"], problems);
            let timeout = members.get("timeout");
            install.hooks.push(InstallHook {
                hook: key.name.clone(),
                timeout: timeout.and_then(|n| n.number("`timeout`", LONGEST_MS, problems)),
                matcher: members.text("matcher", problems),
            });
        }
    }
    install
}
