//! What waits on a person: how it is asked, how time runs out, how it ends.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::act::{Consent, graver};
use super::clamp::{self, non_empty};
use super::turn::{Grant, REMEMBERED, Wait, state};
use super::words::{Words, agent, title};
use super::{At, Event, Facts, Fields, Writer, Written};
use crate::activity::{
    Action, ActionKind, Ask, AskKind, Choice, EXTENSION, Gate, Outcome, ResponseKind, What,
};
use crate::id;
use crate::limits::{AAEP_TERSE_CHARS, AAEP_TEXT_CHARS};
use crate::text;
use crate::translate::NoteKind;

/// The longest wait that AAEP can tell, in seconds.
const LONGEST: i64 = 86_400;

/// From this on, in seconds, a wait is counted down.
const LONG: i64 = 60;

/// How much a list of choices may take, in bytes.
const CHOICES_BYTES: usize = 24_000;

impl Writer {
    pub(super) fn asked(&mut self, at: At<'_>, ask: &Ask, out: &mut Vec<Written>) {
        if !self.announce(&ask.id) {
            self.notes.add(NoteKind::Dropped, ask.id.as_str());
            return;
        }
        self.open(at, out);
        self.close_output(at, out);
        self.go(at, state::AWAITING_INPUT, None, out);
        let Some(turn) = &self.turn else { return };
        let now = turn.last.max(at.origin.time);
        let seconds = ask
            .deadline
            .map_or(LONGEST, |deadline| deadline.duration_since(now).as_secs())
            .clamp(1, LONGEST);
        let held = ask.action.as_ref().and_then(|action| turn.held.get(&action.id));
        let held = held.map(|(_, gate)| gate.clone());
        let gate = graver(ask.gate.as_ref(), held.as_ref());
        let mut fields = Fields::default();
        let (kind, words) = match &ask.kind {
            AskKind::Confirmation => {
                let words = self.confirmation(at, ask, gate.as_ref(), &mut fields);
                ("awaiting.confirmation", words)
            }
            AskKind::Plan { text } => {
                let plan = self.about_text("aaep.confirm_plan", at, "plan", text);
                let consequence = self.say("aaep.consequence_plan", &[("agent", &agent(at))]);
                fields.put("action", non_empty(text::for_people(text, AAEP_TEXT_CHARS)));
                fields.put("consequence", consequence);
                decision(ask, gate.as_ref(), &mut fields);
                ("awaiting.confirmation", self.with_gate(plan, gate.as_ref()))
            }
            AskKind::Clarification { .. } => {
                ("awaiting.clarification", self.clarification(at, &ask.kind, &mut fields))
            }
        };
        if kind == "awaiting.confirmation" {
            self.tell_apart(&mut fields);
        }
        let token = self.token(at, ask);
        let words = words
            .and(self.fact("aaep.fact_words", "text", ask.words.as_deref()))
            .and(Some(self.say("aaep.fact_answer_within", &[("seconds", &seconds.to_string())])));
        let mut facts = self.ask_facts(ask, &token, held.as_ref());
        if !ask.digest.is_empty() {
            facts.name("digest", Some(&ask.digest));
        }
        fields.put("reply_token", token);
        fields.put("timeout_seconds", seconds.unsigned_abs());
        if let Some(turn) = &mut self.turn {
            let wait = Wait {
                action: ask.action.clone(),
                gate,
                confirmation: kind == "awaiting.confirmation",
                asked: now,
                deadline: now.saturating_add(SignedDuration::from_secs(seconds)).unwrap_or(now),
                told: 0,
            };
            turn.waits.insert(ask.id.clone(), wait);
        }
        let event = Event { kind, urgency: "critical", fields, words: Some(words.into()), facts };
        self.push(at, event, out);
    }

    /// The ask's own token if it is new and has AAEP's shape, else one derived from it, else one from its place.
    fn token(&mut self, at: At<'_>, ask: &Ask) -> String {
        let own = id::conform("rpl_", &ask.token);
        let n = self.n;
        let token = self.tokens.take("rpl_", &own, || at.derive("rpl_", n, &[&ask.id]));
        if token != own {
            self.notes.add(NoteKind::Renamed, ask.token.as_str());
        }
        token
    }

    fn ask_facts(&self, ask: &Ask, token: &str, held: Option<&Gate>) -> Facts {
        self.carry(|facts| {
            facts.name("ask", Some(&ask.id));
            if ask.token != token {
                facts.name("token", Some(&ask.token));
            }
            if let Some(action) = &ask.action {
                facts.action(action);
            }
            facts.gate(ask.gate.as_ref());
            if let Some(held) = held {
                facts.data("held", held);
            }
            facts.name("words", ask.words.as_deref());
            facts.value("schema", ask.schema.as_ref());
            if matches!(ask.kind, AskKind::Plan { .. }) {
                facts.must("plan", true);
            }
            if ask.deadline.is_none() {
                facts.must("deadline", Value::Null);
            }
        })
    }

    fn confirmation(
        &self,
        at: At<'_>,
        ask: &Ask,
        gate: Option<&Gate>,
        fields: &mut Fields,
    ) -> Words {
        let own = ask.action.as_ref().and_then(told_in_words);
        let reason = gate.map(|gate| text::for_people(&gate.reason, AAEP_TEXT_CHARS / 2));
        let reason = reason.filter(|reason| !reason.trim().is_empty());
        let (line, words) = match (&ask.action, own) {
            (Some(action), None) => {
                let words = self.about_action("aaep.confirm", at, action);
                (words.detailed.clone(), self.with_surroundings(words, at, action))
            }
            (action, own) => {
                let told = action.as_ref().and(own).or(ask.words.as_deref()).unwrap_or_default();
                let told = text::for_people(told, AAEP_TEXT_CHARS);
                if told.trim().is_empty() {
                    let words = self.about_agent("aaep.confirm_bare", at);
                    (words.normal.clone(), words)
                } else {
                    (told.clone(), self.about_text("aaep.confirm_words", at, "text", &told))
                }
            }
        };
        let irreversible = gate.is_some_and(|gate| gate.irreversible == Some(true));
        let key = if irreversible { "aaep.consequence_irreversible" } else { "aaep.consequence" };
        let consequence = match (reason, own) {
            // The agent itself says what will happen.
            (Some(reason), Some(_)) => reason,
            (Some(reason), None) => format!("{} {reason}", self.say(key, &[])),
            (None, _) => self.say(key, &[]),
        };
        fields.put("action", line);
        fields.put("consequence", consequence);
        decision(ask, gate, fields);
        self.with_gate(words, gate)
    }

    /// The same thing asked twice at once is two questions, and must sound like two.
    fn tell_apart(&mut self, fields: &mut Fields) {
        let (Some(turn), Some(line)) = (&mut self.turn, fields.text_mut("action")) else {
            return;
        };
        if turn.waits.is_empty() {
            turn.words.clear();
        }
        let room = AAEP_TEXT_CHARS - 16;
        *line = text::shorten(line, room).into_owned();
        let times = turn.words.entry(id::derive("", &[line])).or_default();
        *times += 1;
        if *times > 1 {
            *line = format!("{line} ({times})");
        }
    }

    fn clarification(&self, at: At<'_>, kind: &AskKind, fields: &mut Fields) -> Words {
        let AskKind::Clarification { question, kinds, choices, context, default } = kind else {
            return self.about_agent("aaep.state_awaiting_input", at);
        };
        let words = self.about_text("aaep.ask", at, "question", question);
        let question = non_empty(text::for_people(question, AAEP_TEXT_CHARS));
        let (kinds, choices) = ways_to_answer(kinds, choices);
        fields.put("question", question);
        fields.put("accepted_response_kinds", json!(kinds));
        let labels: Vec<&str> = choices.iter().map(|choice| choice.label.as_str()).collect();
        let labels = (!labels.is_empty()).then(|| labels.join(" · "));
        if !choices.is_empty() {
            fields.put("choices", json!(choices));
        }
        let shown = |text: &Option<String>| {
            let shown = text::for_people(text.as_deref()?, AAEP_TERSE_CHARS);
            (!shown.trim().is_empty()).then_some(shown)
        };
        let (context, default) = (shown(context), shown(default));
        if let Some(context) = &context {
            fields.put("context", context.as_str());
        }
        if let Some(default) = &default {
            fields.put("default_response", default.as_str());
        }
        words
            .and(self.fact("aaep.fact_context", "text", context.as_deref()))
            .and(self.fact("aaep.fact_choices", "choices", labels.as_deref()))
            .and(self.fact("aaep.fact_default", "text", default.as_deref()))
    }

    /// An ask was answered, expired or was withdrawn.
    pub(super) fn closed(&mut self, at: At<'_>, ask: &str, what: &What, out: &mut Vec<Written>) {
        let What::AskClosed { action, outcome, by, updated_input, .. } = what else { return };
        let wait = self.turn.as_mut().and_then(|turn| turn.waits.remove(ask));
        let Some(wait) = wait else {
            self.notes.add(NoteKind::Dropped, ask);
            return;
        };
        self.close_output(at, out);
        let asked = wait.action.as_ref().or(action.as_ref());
        let accepted = *outcome == Outcome::Accepted;
        let tool = asked.filter(|action| told_in_words(action).is_none()).map(title);
        let words = if by == EXTENSION {
            self.words("aaep.extended", &[])
        } else {
            self.closing_words(at, *outcome, wait.confirmation, tool.as_deref())
        };
        let facts = self.carry(|facts| facts.data("closed", what));
        let to = if accepted && wait.confirmation { state::CALLING_TOOL } else { state::THINKING };
        // Whatever was said in between, the wait is left by an explicit change of state.
        self.change(at, state::AWAITING_INPUT, None, Facts::default(), out);
        self.change(at, to, Some(words.into()), facts, out);
        if accepted && wait.confirmation {
            self.allow(at, ask, &wait, updated_input.as_ref(), out);
        } else if *outcome == Outcome::Withdrawn {
            // Nobody said no: it may be asked again. What is held stays so until then.
        } else if let (false, Some(turn)) = (accepted, &mut self.turn) {
            for action in wait.action.iter().chain(action) {
                turn.held.remove(&action.id);
                turn.refuse(&action.id);
            }
        }
        // What was accepted and is about to run keeps the state that says so.
        let runs = accepted && wait.confirmation && wait.action.is_some();
        let waits = self.turn.as_ref().is_some_and(|turn| !turn.waits.is_empty());
        if !runs || waits {
            self.settle(at, out);
        }
    }

    /// What a yes means for the action it was about.
    fn allow(
        &mut self,
        at: At<'_>,
        ask: &str,
        wait: &Wait,
        updated: Option<&Value>,
        out: &mut Vec<Written>,
    ) {
        let (Some(action), Some(turn)) = (&wait.action, &mut self.turn) else { return };
        let held = turn.held.remove(&action.id);
        let change = |mut action: Action| {
            if let Some(input) = updated {
                action.input = Some(input.clone());
            }
            action
        };
        if let Some((action, gate)) = held {
            let gate = graver(Some(&gate), wait.gate.as_ref());
            let consent =
                Consent::Given { ask, held: true }.covers(wait.gate.as_ref(), gate.as_ref());
            self.invoked(at, &change(action), gate.as_ref(), consent, out);
        } else {
            if turn.granted.len() >= REMEMBERED {
                turn.granted.pop_front();
            }
            turn.granted.push_back(Grant {
                ask: ask.to_owned(),
                action: change(action.clone()),
                gate: wait.gate.clone(),
            });
        }
    }

    fn closing_words(
        &self,
        at: At<'_>,
        outcome: Outcome,
        confirmation: bool,
        tool: Option<&str>,
    ) -> Words {
        let agent = agent(at);
        let values = [("agent", agent.as_str()), ("tool", tool.unwrap_or_default())];
        let key = match (outcome, tool) {
            (Outcome::Accepted, _) if !confirmation => "aaep.answered",
            (Outcome::Accepted, Some(_)) => "aaep.accepted",
            (Outcome::Accepted, None) => "aaep.accepted_bare",
            (Outcome::Rejected, Some(_)) => "aaep.rejected",
            (Outcome::Rejected, None) => "aaep.rejected_bare",
            (Outcome::Expired, Some(_)) => "aaep.expired",
            (Outcome::Expired, None) => "aaep.expired_bare",
            (Outcome::Withdrawn, _) => "aaep.withdrawn",
        };
        self.words(key, &values)
    }

    /// Tells that time to answer runs out: when half of it is over, and when a tenth is left. There is no clock here,
    /// so it is told with the next thing that happens.
    pub(super) fn count_down(&mut self, at: At<'_>, out: &mut Vec<Written>) {
        let Some(turn) = &mut self.turn else { return };
        let now = turn.last.max(at.origin.time);
        let mut soonest = None;
        for wait in turn.waits.values_mut() {
            let told = wait.due(now);
            if told > wait.told {
                wait.told = told;
                soonest = Some(
                    soonest.map_or(wait.deadline, |other: Timestamp| other.min(wait.deadline)),
                );
            }
        }
        let Some(deadline) = soonest else { return };
        let left = deadline.duration_since(now).as_secs();
        let words = if left > 0 {
            self.words("aaep.time_left", &[("seconds", &left.to_string())])
        } else {
            self.words("aaep.time_over", &[])
        };
        self.line(at, words, "normal", Facts::default(), out);
    }
}

impl Wait {
    /// How often it should have been told by now that time runs out.
    fn due(&self, now: Timestamp) -> u8 {
        let whole = self.deadline.duration_since(self.asked).as_secs();
        let gone = now.duration_since(self.asked).as_secs();
        if whole <= LONG || gone.saturating_mul(2) < whole {
            0
        } else if gone.saturating_mul(10) < whole.saturating_mul(9) {
            1
        } else {
            2
        }
    }
}

/// What counts without an answer, and what is known about the harm. Where nobody knows, nothing is claimed.
fn decision(ask: &Ask, gate: Option<&Gate>, fields: &mut Fields) {
    let grave = gate.is_some_and(Gate::is_grave);
    let default = if ask.defaults_to_accept && !grave { "accept" } else { "reject" };
    fields.word("default_decision", default);
    if let Some(gate) = gate {
        fields.word("risk_level", gate.risk.name());
        if let Some(irreversible) = gate.irreversible {
            fields.put("irreversible", irreversible);
            let word = if irreversible { "irreversible" } else { "reversible" };
            fields.word("reversibility", word);
        }
    }
}

/// What an action is that somebody else told in words: there is no tool and no input to name.
pub(super) fn told_in_words(action: &Action) -> Option<&str> {
    match &action.input {
        Some(Value::String(text)) if action.kind == ActionKind::Other => Some(text),
        _ => None,
    }
}

/// The kinds of answers and the choices as AAEP takes them: choices go with multiple choice, and only with it.
fn ways_to_answer(kinds: &[ResponseKind], choices: &[Choice]) -> (Vec<&'static str>, Vec<Choice>) {
    let any_text = kinds.is_empty() || kinds.contains(&ResponseKind::Freetext);
    let choosing = kinds.contains(&ResponseKind::MultipleChoice);
    let mut fitting: Vec<Choice> = Vec::new();
    for Choice { value, label } in choices {
        // An answer names the value, so it is passed on as it is or not at all.
        let fits = (1..=256).contains(&value.len()) && text::redact(value) == *value;
        if !fits || fitting.len() >= 32 || fitting.iter().any(|other| other.value == *value) {
            continue;
        }
        let label = text::for_people(label, 1_024);
        let label = if label.trim().is_empty() { text::for_people(value, 1_024) } else { label };
        let label = text::shorten(&clamp::whole(&label), 1_024).into_owned();
        fitting.push(Choice { value: value.clone(), label });
    }
    if fitting.len() < 2 || !(any_text || choosing) {
        fitting.clear();
    }
    let room = CHOICES_BYTES / 4 / fitting.len().max(1);
    let size: usize = fitting.iter().map(|choice| choice.label.len()).sum();
    if size > CHOICES_BYTES {
        for choice in &mut fitting {
            choice.label = text::shorten(&choice.label, room).into_owned();
        }
    }
    let mut ways = Vec::new();
    let all = [
        ResponseKind::Freetext,
        ResponseKind::YesNo,
        ResponseKind::MultipleChoice,
        ResponseKind::Numeric,
    ];
    for kind in all {
        let taken = match kind {
            ResponseKind::Freetext => any_text,
            ResponseKind::MultipleChoice => !fitting.is_empty(),
            ResponseKind::YesNo | ResponseKind::Numeric => kinds.contains(&kind),
        };
        if taken {
            ways.push(kind.name());
        }
    }
    if ways.is_empty() {
        ways.push(ResponseKind::Freetext.name());
    }
    (ways, fitting)
}
