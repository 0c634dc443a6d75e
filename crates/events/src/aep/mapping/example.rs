//! Examples in a mapping file: payloads and what becomes of them, decisions and the bytes that say them.
//!
//! They are verified by tests and by `banister agents check`, not on every start of the gateway.

use serde_json::Value;

use super::rule::{is_pointer, not_a_pointer};
use super::tree::{At, Members, Node, Problem, Problems, Tree};
use super::{Correlator, Mapping, Stamp};
use crate::aep::dialect::{Answer, Behavior, Decision};
use crate::event::Protocol;
use crate::finding::Severity;

const EXAMPLE: &[&str] = &["hook", "payload", "after", "events", "check", "gated"];
const ANSWER: &[&str] = &[
    "hook",
    "behavior",
    "message",
    "reason",
    "updated_input",
    "additional_context",
    "input",
    "stdout",
    "stderr",
    "exit",
    "degraded_from",
];

/// All examples of a file.
#[derive(Debug, Default)]
pub(super) struct Examples {
    payloads: Vec<Payload>,
    answers: Vec<AnswerExample>,
}

#[derive(Debug)]
struct Payload {
    at: At,
    hook: String,
    sent: Value,
    /// What came before it in the session.
    after: Vec<(String, Value)>,
    events: Vec<String>,
    check: Vec<(String, Value)>,
    gated: Option<bool>,
}

#[derive(Debug)]
struct AnswerExample {
    at: At,
    hook: String,
    decision: Decision,
    answer: Answer,
    degraded: Degraded,
}

/// What an example says about the ladder.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Degraded {
    Unsaid,
    No,
    From(Behavior),
}

/// Reads `examples` and `answers`.
pub(super) fn read(root: &Members<'_>, problems: &mut Problems) -> Examples {
    let mut examples = Examples::default();
    for node in root.get("examples").map(|n| n.list("`examples`", problems)).unwrap_or_default() {
        examples.payloads.extend(payload(node, problems));
    }
    for node in root.get("answers").map(|n| n.list("`answers`", problems)).unwrap_or_default() {
        examples.answers.extend(said(node, problems));
    }
    examples
}

fn payload(node: &Node, problems: &mut Problems) -> Option<Payload> {
    let members = node.members("an example", EXAMPLE, problems);
    let hook = members.needed("hook", "an example", problems)?;
    let Some(payload) = members.get("payload").map(Node::json) else {
        problems.error(node.at, "an example has no `payload`");
        return None;
    };
    let mut after = Vec::new();
    for node in members.get("after").map(|n| n.list("`after`", problems)).unwrap_or_default() {
        let members = node.members("a member of `after`", &["hook", "payload"], problems);
        let hook = members.needed("hook", "a member of `after`", problems)?;
        after.push((hook, members.get("payload").map(Node::json).unwrap_or_default()));
    }
    let mut events = Vec::new();
    match members.get("events") {
        None => problems.error(node.at, "an example has no `events`"),
        Some(list) => {
            for kind in list.one_or_more() {
                events.extend(kind.text("an event's type", problems));
            }
        }
    }
    let mut check = Vec::new();
    if let Some(node) = members.get("check") {
        for (key, value) in node.entries("`check`", problems) {
            if !is_pointer(&key.name) {
                problems.error(key.at, not_a_pointer(&key.name));
            }
            check.push((key.name.clone(), value.json()));
        }
    }
    let gated = members.get("gated").map(|node| node.flag("`gated`", problems));
    Some(Payload { at: node.at, hook, sent: payload, after, events, check, gated })
}

fn said(node: &Node, problems: &mut Problems) -> Option<AnswerExample> {
    let members = node.members("an answer", ANSWER, problems);
    let hook = members.needed("hook", "an answer", problems)?;
    let behavior = |name: &str, problems: &mut Problems| {
        let word = members.text(name, problems)?;
        let found = Behavior::parse(&word);
        if found.is_none() {
            let known: Vec<&str> = Behavior::ALL.into_iter().map(Behavior::name).collect();
            let at = members.get(name).map_or(node.at, |node| node.at);
            problems.unknown(at, "behaviour", &word, &known);
        }
        found
    };
    if members.get("behavior").is_none() {
        problems.error(node.at, "an answer has no `behavior`");
    }
    let decided = behavior("behavior", problems)?;
    let degraded = match members.get("degraded_from") {
        None => Degraded::Unsaid,
        Some(node) if matches!(node.tree, Tree::Null) => Degraded::No,
        Some(_) => Degraded::From(behavior("degraded_from", problems)?),
    };
    let decision = Decision {
        behavior: decided,
        message: members.text("message", problems),
        reason: members.text("reason", problems),
        updated_input: members.get("updated_input").map(Node::json),
        additional_context: members.text("additional_context", problems),
        input: members.get("input").map(Node::json),
    };
    let stdout = members.get("stdout").map(|node| match &node.tree {
        Tree::Text(text) => text.clone(),
        _ => node.json().to_string(),
    });
    let exit = members.get("exit").and_then(|node| node.number("`exit`", 255, problems));
    let answer = Answer {
        exit: exit.and_then(|exit| u8::try_from(exit).ok()).unwrap_or(0),
        stdout: stdout.unwrap_or_default(),
        stderr: members.text("stderr", problems).unwrap_or_default(),
    };
    Some(AnswerExample { at: node.at, hook, decision, answer, degraded })
}

impl Mapping {
    /// The payloads of the file's examples, each with its hook and with what came before it.
    pub fn examples(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.examples.payloads.iter().flat_map(|example| {
            let before = example.after.iter().map(|(hook, sent)| (hook.as_str(), sent));
            before.chain([(example.hook.as_str(), &example.sent)])
        })
    }

    /// Runs the file's examples, and says what does not hold. An own rule without an example is a warning.
    pub fn verify(&self) -> Vec<Problem> {
        let mut problems = Problems::default();
        let mut used: Vec<&str> = Vec::new();
        for example in &self.examples.payloads {
            used.extend(self.verify_payload(example, &mut problems));
        }
        for said in &self.examples.answers {
            self.verify_answer(said, &mut problems);
        }
        for hook in self.gated_hooks() {
            self.verify_fallback(hook, &mut problems);
        }
        let unused = self.rules.iter().filter(|rule| !rule.inherited);
        for rule in unused.filter(|rule| !used.contains(&rule.id.as_str())) {
            problems.warning(At::default(), format!("the rule `{}` has no example", rule.id));
        }
        problems.0
    }

    /// Returns the rules that were used.
    fn verify_payload(&self, example: &Payload, problems: &mut Problems) -> Vec<&str> {
        let Payload { at, hook, sent: payload, .. } = example;
        let stamp = |seq| Stamp { session: "s_example", seq, time: jiff::Timestamp::UNIX_EPOCH };
        let mut correlator = Correlator::default();
        let mut used: Vec<&str> = Vec::new();
        let mut seq = 0;
        for (hook, payload) in &example.after {
            self.map_with(&mut correlator, hook, payload, &stamp(seq));
            used.extend(self.rule_for(hook, payload));
            seq += 1;
        }
        used.extend(self.rule_for(hook, payload));
        let mapped = self.map_with(&mut correlator, hook, payload, &stamp(seq));
        let kinds: Vec<&str> =
            mapped.events.iter().filter_map(|event| event.get("type")?.as_str()).collect();
        if kinds != example.events {
            let wanted = example.events.join(", ");
            let message = format!("`{hook}` became [{}], not [{wanted}]", kinds.join(", "));
            problems.error(*at, message);
        }
        if example.gated.is_some_and(|gated| gated != mapped.gated) {
            let waits = if mapped.gated { "waits" } else { "does not wait" };
            problems.error(*at, format!("`{hook}` {waits} for a decision"));
        }
        for event in &mapped.events {
            for finding in crate::check::value(Protocol::Aep, event) {
                if finding.rule.severity == Severity::Error {
                    let (code, pointer) = (finding.rule.code, &finding.pointer);
                    let message = format!("`{hook}`: {code} {pointer}: {}", finding.message);
                    problems.error(*at, message);
                }
            }
        }
        let events = Value::Array(mapped.events);
        for (pointer, wanted) in &example.check {
            let found = events.pointer(pointer);
            if found.unwrap_or(&Value::Null) != wanted {
                let found = found.map_or_else(|| "nothing".to_owned(), Value::to_string);
                problems.error(*at, format!("`{hook}`: {pointer} is {found}, not {wanted}"));
            }
        }
        used
    }

    fn verify_answer(&self, said: &AnswerExample, problems: &mut Problems) {
        let AnswerExample { at, hook, decision, answer: wanted, .. } = said;
        let Some(control) = self.control(hook) else {
            problems.error(*at, format!("`{hook}` has no answers"));
            return;
        };
        let (found, degraded_from) = control.respond(decision);
        let word = decision.behavior.name();
        for (what, found, wanted) in [
            ("stdout", &found.stdout, &wanted.stdout),
            ("stderr", &found.stderr, &wanted.stderr),
            ("exit", &found.exit.to_string(), &wanted.exit.to_string()),
        ] {
            if found != wanted {
                let message = format!("`{hook}` {word}: {what} is {found:?}, not {wanted:?}");
                problems.error(*at, message);
            }
        }
        let found = degraded_from.map_or(Degraded::No, Degraded::From);
        if said.degraded != Degraded::Unsaid && said.degraded != found {
            let found = degraded_from.map_or("nothing", Behavior::name);
            problems.error(*at, format!("`{hook}` {word}: degraded from {found}"));
        }
    }

    /// Without a gateway, nothing that waits may be let through.
    fn verify_fallback(&self, hook: &str, problems: &mut Problems) {
        let Some(control) = self.control(hook) else { return };
        let Some(fallback) = control.fallback.as_ref().map(|template| template.fill("x")) else {
            return;
        };
        let lets = [Behavior::Allow, Behavior::Abstain, Behavior::Continue, Behavior::Ask];
        let lax = lets.iter().any(|lax| control.answer(*lax, "x") == fallback)
            && control.answer(Behavior::Deny, "x") != fallback;
        if lax || fallback == Answer::silence() {
            let message =
                format!("the fallback of the gated hook `{hook}` lets the action through");
            problems.error(At::default(), message);
        }
    }
}
