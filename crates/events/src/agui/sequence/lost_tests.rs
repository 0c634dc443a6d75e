//! One lost message is one finding, whatever it was.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::check::Checker;
use crate::event::Protocol;

type Owner = Option<String>;

/// Writes a valid stream, following whatever choices it is given.
#[derive(Debug, Default)]
struct Story {
    events: Vec<Value>,
    made: usize,
    runs: usize,
    /// What is told in pieces: id, owner, whether it is open.
    texts: Vec<(String, Owner, bool)>,
    calls: Vec<(String, Owner, bool)>,
    spans: Vec<(String, Owner, bool)>,
    thoughts: Vec<(String, Owner, bool)>,
    steps: Vec<(String, Owner)>,
    subagents: Vec<(String, bool)>,
}

impl Story {
    fn tell(choices: &[(u8, u8)]) -> Vec<Value> {
        let mut story = Self::default();
        story.start();
        for (what, which) in choices {
            story.go_on(*what, usize::from(*which));
        }
        story.finish();
        story.events
    }

    fn say(&mut self, kind: &str, fields: &Value, tag: &Owner) {
        let mut event = json!({"type": kind});
        for (name, value) in fields.as_object().unwrap() {
            event[name] = value.clone();
        }
        if let Some(tag) = tag {
            event["subagentRunId"] = tag.as_str().into();
        }
        self.events.push(event);
    }

    fn id(&mut self, prefix: &str) -> String {
        self.made += 1;
        format!("{prefix}{}", self.made)
    }

    fn owner(&self, which: usize) -> Owner {
        let active: Vec<&String> =
            self.subagents.iter().filter(|(_, active)| *active).map(|(id, _)| id).collect();
        active.get(which % (active.len() + 1)).map(|id| (*id).clone())
    }

    fn start(&mut self) {
        self.runs += 1;
        let run = format!("r{}", self.runs);
        let fields = json!({"threadId": "t", "runId": run, "protocolVersion": "1.0"});
        self.say("RUN_STARTED", &fields, &None);
    }

    /// Forgets what belonged to the run.
    fn over(&mut self) {
        let (made, runs, events) = (self.made, self.runs, std::mem::take(&mut self.events));
        *self = Self { events, made, runs, ..Self::default() };
    }

    fn finish(&mut self) {
        for which in 0..self.texts.len().max(self.calls.len()).max(self.spans.len()) {
            self.close(which);
        }
        for which in 0..self.thoughts.len() {
            self.piece("REASONING_MESSAGE", which, Piece::End);
        }
        for (name, owner) in std::mem::take(&mut self.steps) {
            self.say("STEP_FINISHED", &json!({"stepName": name}), &owner);
        }
        for (id, active) in std::mem::take(&mut self.subagents) {
            if active {
                self.say("SUBAGENT_FINISHED", &json!({"subagentRunId": id}), &None);
            }
        }
        let fields = json!({"threadId": "t", "runId": format!("r{}", self.runs)});
        self.say("RUN_FINISHED", &fields, &None);
        self.over();
    }

    fn close(&mut self, which: usize) {
        self.piece("TEXT_MESSAGE", which, Piece::End);
        self.piece("TOOL_CALL", which, Piece::End);
        self.piece("REASONING", which, Piece::End);
    }

    fn items(&mut self, kind: &str) -> &mut Vec<(String, Owner, bool)> {
        match kind {
            "TEXT_MESSAGE" => &mut self.texts,
            "TOOL_CALL" => &mut self.calls,
            "REASONING" => &mut self.spans,
            _ => &mut self.thoughts,
        }
    }

    /// Begins an item, or one that was closed again.
    fn open(&mut self, kind: &str, which: usize) {
        let (new, owner) = (self.id("i"), self.owner(which));
        let items = self.items(kind);
        let mut at = which;
        if !matches!(items.get(at), Some((_, _, false))) {
            items.push((new, owner, false));
            at = items.len() - 1;
        }
        items[at].2 = true;
        let (id, owner, _) = items[at].clone();
        let fields = match kind {
            "TOOL_CALL" => {
                let carries = |(_, of, _): &&(String, Owner, bool)| *of == owner;
                let parent = self.texts.iter().find(carries).map(|(id, ..)| id.clone());
                match parent.filter(|_| which.is_multiple_of(2)) {
                    Some(parent) => {
                        json!({"toolCallId": id, "toolCallName": "n", "parentMessageId": parent})
                    }
                    None => json!({"toolCallId": id, "toolCallName": "n"}),
                }
            }
            "REASONING_MESSAGE" => json!({"messageId": id, "role": "reasoning"}),
            _ => json!({"messageId": id}),
        };
        self.say(&format!("{kind}_START"), &fields, &owner);
    }

    fn piece(&mut self, kind: &str, which: usize, piece: Piece) {
        let items = self.items(kind);
        let Some((id, owner, open)) = items.get_mut(which) else { return };
        if !*open {
            return;
        }
        *open = piece != Piece::End;
        // Whoever continues an item may leave the tag out.
        let tag = owner.clone().filter(|_| !which.is_multiple_of(3));
        let field = if kind == "TOOL_CALL" { "toolCallId" } else { "messageId" };
        let (id, end) = (id.clone(), piece == Piece::End);
        let name = match (kind, end) {
            (_, true) => "END",
            ("TOOL_CALL", false) => "ARGS",
            _ => "CONTENT",
        };
        let fields = if end { json!({field: id}) } else { json!({field: id, "delta": "x"}) };
        self.say(&format!("{kind}_{name}"), &fields, &tag);
    }

    fn go_on(&mut self, what: u8, which: usize) {
        let kinds = ["TEXT_MESSAGE", "TOOL_CALL", "REASONING_MESSAGE", "REASONING"];
        let kind = kinds[which % kinds.len()];
        let which = which / kinds.len();
        match what % 16 {
            0..=2 => self.open(kind, which),
            3..=5 if kind != "REASONING" => self.piece(kind, which, Piece::Delta),
            6 | 7 => self.piece(kind, which, Piece::End),
            8 => {
                let step = (format!("step{}", which % 2), self.owner(which));
                if !self.steps.contains(&step) {
                    self.say("STEP_STARTED", &json!({"stepName": step.0}), &step.1);
                    self.steps.push(step);
                }
            }
            9 if !self.steps.is_empty() => {
                let (name, owner) = self.steps.remove(which % self.steps.len());
                self.say("STEP_FINISHED", &json!({"stepName": name}), &owner);
            }
            10 => {
                let id = self.id("s");
                let parent = self.subagents.get(which).map(|(id, _)| id.clone());
                let fields = match parent {
                    Some(parent) => {
                        json!({"subagentRunId": id, "name": "n", "parentSubagentRunId": parent})
                    }
                    None => json!({"subagentRunId": id, "name": "n"}),
                };
                self.say("SUBAGENT_STARTED", &fields, &None);
                self.subagents.push((id, true));
            }
            11 => {
                if let Some((id, active @ true)) = self.subagents.get_mut(which) {
                    *active = false;
                    let fields = json!({"subagentRunId": id.clone()});
                    self.say("SUBAGENT_FINISHED", &fields, &None);
                }
            }
            12 => {
                let (id, owner) = (self.id("chunk"), self.owner(which));
                self.say("TEXT_MESSAGE_CHUNK", &json!({"messageId": id, "delta": "x"}), &owner);
                self.say("TEXT_MESSAGE_CHUNK", &json!({"delta": "y"}), &owner);
                self.say("TEXT_MESSAGE_CHUNK", &json!({"delta": "z"}), &owner);
            }
            13 => {
                let (id, owner) = (self.id("chunk"), self.owner(which));
                let first = json!({"toolCallId": id, "toolCallName": "n"});
                self.say("TOOL_CALL_CHUNK", &first, &owner);
                self.say("TOOL_CALL_CHUNK", &json!({"toolCallId": id, "delta": "{}"}), &owner);
            }
            14 if which.is_multiple_of(4) => {
                self.finish();
                if which.is_multiple_of(8) {
                    self.say("RUN_ERROR", &json!({"message": "late"}), &None);
                }
                self.start();
            }
            14 if which % 4 == 1 => {
                self.say("RUN_ERROR", &json!({"message": "x"}), &None);
                self.over();
                self.start();
            }
            _ => self.say("STATE_SNAPSHOT", &json!({"snapshot": {}}), &None),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece {
    Delta,
    End,
}

/// What is found in a stream in which one message, if any, is not JSON.
fn check(events: &[Value], lost: Option<usize>) -> Vec<String> {
    let mut checker = Checker::new(Protocol::Agui);
    let mut found = Vec::new();
    for (at, event) in events.iter().enumerate() {
        let findings = if lost == Some(at) { checker.message(b"{") } else { checker.value(event) };
        let place = |code: &str| format!("{code} at {at}: {event}");
        found.extend(findings.into_iter().map(|finding| place(finding.rule.code)));
    }
    found.extend(checker.finish().into_iter().map(|finding| finding.message));
    found
}

proptest! {
    #[test]
    fn one_lost_message_is_one_finding(
        choices in prop::collection::vec((any::<u8>(), 0_u8..32), 0..40),
        lost in any::<prop::sample::Index>(),
    ) {
        let events = Story::tell(&choices);
        prop_assert_eq!(check(&events, None), Vec::<String>::new());
        let lost = lost.index(events.len());
        let found = check(&events, Some(lost));
        prop_assert_eq!(found.len(), 1, "{:#?}\n{:#?}", found, events);
        prop_assert!(found[0].starts_with("AGUI-EVT-01 "), "{:?}", found);
    }
}

#[test]
fn any_one_of_a_whole_run_can_be_lost() {
    let choices: Vec<(u8, u8)> =
        (0..16).flat_map(|what| (0..8).map(move |which| (what, which))).collect();
    let events = Story::tell(&choices);
    let kinds: std::collections::BTreeSet<&str> =
        events.iter().filter_map(|event| event["type"].as_str()).collect();
    assert!(kinds.len() >= 20, "{kinds:?}");
    for lost in 0..events.len() {
        let found = check(&events, Some(lost));
        assert_eq!(found.len(), 1, "{found:#?}");
    }
}
