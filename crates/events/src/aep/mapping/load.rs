//! A mapping file → a [`Mapping`]: reads all of it, takes in what it extends, and says everything that is wrong at once.

use std::collections::BTreeMap;

use super::build::{self, Body, Spec};
use super::correlate::Role;
use super::rule::{Rule, When, is_pointer, not_a_pointer};
use super::tree::{At, Node, Problem, Problems};
use super::{EMBEDDED, Error, Install, Mapping, control, example};
use crate::aep::dialect::{Behavior, Control};

const ROOT: &[&str] = &[
    "schema_version",
    "agent",
    "name",
    "aliases",
    "display_name",
    "extends",
    "inherit",
    "event_name",
    "session",
    "common",
    "events",
    "control",
    "install",
    "examples",
    "answers",
];
const RULE: &[&str] = &[
    "id",
    "source_event",
    "when",
    "when_any",
    "gated",
    "drop",
    "correlate",
    "canonical_event",
    "fields",
    "content",
    "attachments",
    "emit",
];
/// How many files may extend each other in a row.
const DEEPEST: usize = 4;

/// A file, read but not yet put together: what another file may take in.
#[derive(Default)]
struct Draft {
    common: Vec<(String, Spec)>,
    rules: Vec<RuleNode>,
    control: BTreeMap<String, Control>,
    install: Option<Install>,
    event_name: Vec<String>,
    session: Vec<String>,
}

struct RuleNode {
    id: String,
    hooks: Vec<String>,
    node: Node,
    inherited: bool,
}

pub(super) fn load(file: &str, yaml: &str) -> Result<Mapping, Error> {
    let invalid = |problems: Vec<Problem>| Error::Invalid { file: file.to_owned(), problems };
    let root = super::tree::parse(yaml).map_err(|problem| invalid(vec![problem]))?;
    let mut problems = Problems::default();
    let draft = read(&root, DEEPEST, &mut problems);
    // The keys were looked at when the draft was read.
    let members = root.members("a mapping file", &[], &mut Problems::default());
    let agent = members.needed("agent", "a mapping file", &mut problems).unwrap_or_default();
    let name = members.text("name", &mut problems).unwrap_or_else(|| agent.clone());
    let display_name = members.text("display_name", &mut problems).unwrap_or_else(|| agent.clone());
    let mut aliases = Vec::new();
    for alias in members.get("aliases").map(Node::one_or_more).unwrap_or_default() {
        aliases.extend(alias.text("an alias", &mut problems));
    }
    let mut rules = Vec::with_capacity(draft.rules.len());
    for rule in &draft.rules {
        let mut quiet = Problems::default();
        let heard = if rule.inherited { &mut quiet } else { &mut problems };
        rules.push(compile(rule, &draft.common, heard));
    }
    for (rule, node) in rules.iter().zip(&draft.rules).filter(|(rule, _)| rule.gated) {
        check_gate(rule, node.node.at, &draft.control, &mut problems);
    }
    let mut control = draft.control;
    share(&mut control, &rules);
    // A rule with conditions is more specific than one without; otherwise the file's order holds.
    rules.sort_by_key(|rule| rule.when.is_empty());
    let examples = example::read(&members, &mut problems);
    problems.0.sort_by_key(|problem| problem.at);
    problems.0.dedup();
    if problems.0.iter().any(|problem| !problem.warning) {
        return Err(invalid(problems.0));
    }
    Ok(Mapping {
        agent,
        name,
        display_name,
        aliases,
        event_name: draft.event_name,
        session: draft.session,
        control,
        install: draft.install,
        rules,
        examples,
        warnings: problems.0,
    })
}

fn read(root: &Node, depth: usize, problems: &mut Problems) -> Draft {
    let members = root.members("a mapping file", ROOT, problems);
    match members.needed("schema_version", "a mapping file", problems).as_deref() {
        None | Some("aep.mapping/v1") => {}
        Some(other) => {
            let at = members.get("schema_version").map_or(root.at, |node| node.at);
            problems.error(at, format!("`schema_version` is aep.mapping/v1, not {other}"));
        }
    }
    if let Some(node) = members.get("x-mapping")
        && node.json() != 1
    {
        problems.error(node.at, "`x-mapping` is 1");
    }
    let mut draft =
        members.get("extends").map(|node| parent(node, depth, problems)).unwrap_or_default();
    if let Some(list) = members.get("inherit") {
        let mut hooks = vec!["*".to_owned()];
        for hook in list.list("`inherit`", problems) {
            hooks.extend(hook.text("a hook", problems));
        }
        draft.rules.retain(|rule| rule.hooks.iter().any(|hook| hooks.contains(hook)));
        draft.control.retain(|hook, _| hooks.contains(hook));
    }
    for (name, slot, usual) in [
        ("event_name", &mut draft.event_name, "/hook_event_name"),
        ("session", &mut draft.session, "/session_id"),
    ] {
        match members.get(name) {
            Some(node) => *slot = pointers(node, problems),
            None if members.get("extends").is_none() => *slot = vec![usual.to_owned()],
            None => {}
        }
    }
    if let Some(node) = members.get("common") {
        for (path, spec) in build::read_fields(node, problems) {
            draft.common.retain(|(known, _)| *known != path);
            draft.common.push((path, spec));
        }
    }
    rules(members.get("events"), root.at, &mut draft.rules, problems);
    if let Some(node) = members.get("control") {
        for (hook, value) in node.entries("`control`", problems) {
            let base = draft.control.remove(&hook.name).unwrap_or_default();
            let read = control::read_control(value, base, problems);
            draft.control.insert(hook.name.clone(), read);
        }
    }
    if let Some(node) = members.get("install") {
        let base = draft.install.take().unwrap_or_default();
        draft.install = Some(control::read_install(node, base, problems));
    }
    draft
}

fn pointers(node: &Node, problems: &mut Problems) -> Vec<String> {
    let mut pointers = Vec::new();
    for node in node.one_or_more() {
        match node.text("a pointer", problems) {
            Some(text) if is_pointer(&text) => pointers.push(text),
            Some(text) => problems.error(node.at, not_a_pointer(&text)),
            None => {}
        }
    }
    pointers
}

/// The embedded file that is extended.
fn parent(node: &Node, depth: usize, problems: &mut Problems) -> Draft {
    let Some(name) = node.text("`extends`", problems) else { return Draft::default() };
    let names: Vec<&str> = EMBEDDED.iter().map(|(name, _)| *name).collect();
    let Some((_, yaml)) = EMBEDDED.iter().find(|(known, _)| *known == name) else {
        problems.unknown(node.at, "agent", &name, &names);
        return Draft::default();
    };
    if depth == 0 {
        problems.error(node.at, "too many files extend each other");
        return Draft::default();
    }
    match super::tree::parse(yaml) {
        Ok(root) => {
            // What is wrong in there is said when that file is loaded.
            let mut draft = read(&root, depth - 1, &mut Problems::default());
            draft.rules.iter_mut().for_each(|rule| rule.inherited = true);
            draft
        }
        Err(problem) => {
            problems.error(node.at, format!("{name}: {problem}"));
            Draft::default()
        }
    }
}

/// The file's own rules come first, those with the id of an inherited one in its place.
fn rules(events: Option<&Node>, root: At, known: &mut Vec<RuleNode>, problems: &mut Problems) {
    let list = events.map(|node| node.list("`events`", problems)).unwrap_or_default();
    let mut own: Vec<RuleNode> = Vec::new();
    for node in list {
        let members = node.members("a rule", RULE, problems);
        let id = members.needed("id", "a rule", problems).unwrap_or_default();
        if !id.is_empty() && own.iter().any(|rule| rule.id == id) {
            let at = members.get("id").map_or(node.at, |node| node.at);
            problems.error(at, format!("the rule id `{id}` is used twice"));
        }
        let mut hooks = Vec::new();
        for hook in members.get("source_event").map(Node::one_or_more).unwrap_or_default() {
            hooks.extend(hook.text("`source_event`", problems));
        }
        if hooks.is_empty() {
            problems.error(node.at, "a rule has no `source_event`");
        }
        own.push(RuleNode { id, hooks, node: node.clone(), inherited: false });
    }
    for rule in known.iter_mut() {
        if let Some(index) = own.iter().position(|mine| mine.id == rule.id) {
            *rule = own.remove(index);
        }
    }
    own.append(known);
    *known = own;
    if known.is_empty() {
        problems.error(events.map_or(root, |node| node.at), "`events` is empty");
    }
}

fn compile(rule: &RuleNode, common: &[(String, Spec)], problems: &mut Problems) -> Rule {
    // The keys of the rule were looked at before.
    let members = rule.node.members("a rule", &[], &mut Problems::default());
    let kind = |node: &Node, problems: &mut Problems| {
        let members = node.members("an event", &[], &mut Problems::default());
        let at = members.get("canonical_event").map_or(node.at, |node| node.at);
        members.text("canonical_event", problems).map(|kind| (kind, at))
    };
    let main = kind(&rule.node, problems)
        .map(|(kind, at)| Body::read(&rule.node, kind, at, common, problems));
    let mut emit = Vec::new();
    let listed = members.get("emit").map(|node| node.list("`emit`", problems)).unwrap_or_default();
    for node in listed {
        let members = node.members("a member of `emit`", build::BODY, problems);
        match kind(node, problems) {
            Some((kind, at)) => {
                let mut body = Body::read(node, kind, at, common, problems);
                body.when = When::read(members.get("when"), members.get("when_any"), problems);
                emit.push(body);
            }
            None => problems.error(node.at, "a member of `emit` has no `canonical_event`"),
        }
    }
    let compiled = Rule {
        id: rule.id.clone(),
        hooks: rule.hooks.clone(),
        when: When::read(members.get("when"), members.get("when_any"), problems),
        gated: members.flag("gated", problems),
        drop: members.flag("drop", problems),
        main,
        emit,
        correlate: members.get("correlate").and_then(|node| Role::read(node, problems)),
        inherited: rule.inherited,
    };
    check_rule(&compiled, rule.node.at, &members, problems);
    compiled
}

fn check_rule(rule: &Rule, at: At, members: &super::tree::Members<'_>, problems: &mut Problems) {
    let id = &rule.id;
    let events = rule.bodies().count();
    if rule.drop && events > 0 {
        problems.error(at, format!("the rule `{id}` drops the payload and makes events of it"));
    }
    if !rule.drop && events == 0 {
        problems.error(at, format!("the rule `{id}` has no canonical_event, no emit and no drop"));
    }
    for name in ["fields", "content", "attachments"] {
        if let (Some(node), None) = (members.get(name), &rule.main) {
            problems.error(node.at, format!("`{name}` without a `canonical_event` beside it"));
        }
    }
    for body in rule.bodies().filter(|body| body.kind.starts_with("action.")) {
        if !body.sets("action.id") && rule.correlate.is_none() {
            let kind = &body.kind;
            problems.warning(at, format!("the rule `{id}` gives `{kind}` no action.id"));
        }
    }
    if let (Some(node), false) =
        (members.get("correlate"), rule.bodies().any(|body| body.kind.starts_with("action.")))
    {
        problems.error(node.at, format!("the rule `{id}` has no action to correlate"));
    }
}

/// A hook that waits for a decision has a refusal of its own, with and without a gateway.
fn check_gate(rule: &Rule, at: At, control: &BTreeMap<String, Control>, problems: &mut Problems) {
    for hook in &rule.hooks {
        let refuses = control.get(hook).is_some_and(|control| {
            control.answers.contains_key(&Behavior::Deny) && control.fallback.is_some()
        });
        if !refuses {
            let message =
                format!("the gated hook `{hook}` needs `deny` and `fallback` in `control`");
            problems.error(at, message);
        }
    }
}

/// What `*` says about deadline and fallback holds for every hook that decides nothing and says nothing else.
fn share(control: &mut BTreeMap<String, Control>, rules: &[Rule]) {
    let Some(rest) = control.get("*").cloned() else { return };
    for (hook, control) in control.iter_mut() {
        if !rules.iter().any(|rule| rule.gated && rule.is_for(hook)) {
            control.deadline_ms = control.deadline_ms.or(rest.deadline_ms);
            control.fallback = control.fallback.take().or_else(|| rest.fallback.clone());
        }
    }
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
