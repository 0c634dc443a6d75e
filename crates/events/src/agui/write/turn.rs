//! How turns make runs: how they begin, what they used, how they end.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::names::Kind;
use super::{Mode, Parts, Phase, RUNS, Type, Writer, pieces};
use crate::activity::{Activity, Ending, Role, Usage, What};
use crate::id::{self, Decimal};
use crate::text;
use crate::translate::NoteKind;
use crate::written::{Field, Fields, Written};

/// The largest count that every client reads.
const MOST: u64 = (1 << 53) - 1;

/// How many models' use is counted apart.
const MODELS: usize = 256;

impl Writer {
    /// Begins a run where an activity needs one; whether it is to be told in it.
    pub(super) fn enter(&mut self, activity: &Activity, out: &mut Vec<Written>) -> bool {
        match &activity.what {
            What::TurnStarted { .. } => {}
            What::TurnEnded {
                ending: Ending::Completed | Ending::Failed { .. } | Ending::Cancelled { .. },
                ..
            }
            | What::SessionEnded { .. }
                if self.waiting.is_partly_covered() => {}
            What::AskClosed { id, .. } if self.waiting.is_pending(id) => {
                if !self.waiting.answered(&activity.what) {
                    self.hold(activity);
                    return false;
                }
            }
            What::TurnEnded { ending: Ending::Failed { .. }, .. } => {
                self.notes.add(NoteKind::Opened, "run");
            }
            What::TurnEnded { .. } => {
                self.notes.add(NoteKind::Dropped, "turn_ended");
                return false;
            }
            What::Used { usage } => {
                self.used(usage);
                return false;
            }
            What::Said { role: Role::Assistant, .. }
            | What::Thought { .. }
            | What::Planned { .. }
            | What::ActionDrafted { .. }
            | What::ActionRequested { .. }
            | What::ActionEnded { .. }
            | What::ActionDenied { .. }
            | What::AskOpened { .. }
            | What::StepStarted { .. }
            | What::SubagentStarted { .. } => self.notes.add(NoteKind::Opened, "run"),
            What::SessionStarted { .. }
            | What::SessionEnded { .. }
            | What::StateChanged { .. }
            | What::Progressed { .. }
            | What::StepEnded { .. }
            | What::Said { .. }
            | What::AskClosed { .. }
            | What::HandedOff { .. }
            | What::SubagentEnded { .. }
            | What::StateSet { .. }
            | What::StatePatched { .. }
            | What::MessagesSet { .. }
            | What::CardShown { .. }
            | What::CardPatched { .. }
            | What::Compacted { .. }
            | What::WorkspaceChanged { .. }
            | What::Notified { .. }
            | What::Erred { .. }
            | What::Raw { .. } => {
                self.hold(activity);
                return false;
            }
        }
        self.start(activity, out);
        true
    }

    /// Begins a run, with the answers that it goes on with.
    pub(super) fn start(&mut self, activity: &Activity, out: &mut Vec<Written>) {
        let context = &activity.context;
        if self.thread.is_none() {
            let named = context.session.clone().filter(|session| !session.is_empty());
            let fallback = Some(self.fallback.clone()).filter(|thread| !thread.is_empty());
            let own = || activity.origin.session.to_string();
            self.thread = Some(named.or(fallback).unwrap_or_else(own));
        }
        self.run = self.run_id(activity);
        let goes_on = !matches!(activity.what, What::TurnStarted { .. });
        let covered = self.waiting.is_covered();
        let resume = self.waiting.take_answers(goes_on);
        let covered = covered || resume.is_some();
        self.turn = resume.is_some();
        let mut started = self.started();
        let before = self.before.take();
        let named = before.as_ref().and_then(|it| it.get("messages")?.as_array());
        let named = named.cloned().unwrap_or_default();
        let messages = self.told_before(&named, covered);
        let input = (resume.is_some() || messages.is_some()).then(|| {
            let mut input = json!({
                "threadId": self.thread(), "runId": self.run,
                "messages": messages.clone().unwrap_or_default(),
            });
            if let (Some(resume), Some(fields)) = (resume, input.as_object_mut()) {
                fields.insert("resume".into(), Value::Array(resume));
            }
            input
        });
        if let Some(Value::String(parent)) = before.as_ref().and_then(|it| it.get("parentRunId")) {
            started.fields.put("parentRunId", parent.as_str());
        }
        started.fields.maybe("input", input);
        if let (What::TurnStarted { summary: Some(summary), .. }, true) =
            (&activity.what, self.carry)
        {
            started.own.put("summary", text::for_people(summary, 16_384));
        }
        self.items.renew();
        self.calls.begin();
        self.phase = Phase::Running;
        if let Some(messages) = &messages {
            self.restated(messages);
        }
        let detail = self.detail.take();
        self.push(started, out);
        self.detail = detail;
        self.told = messages.is_some();
        if !self.told {
            for message in &named {
                self.told |= self.tell_message(activity, message, out);
            }
        }
        self.shared.begin();
        self.release(out);
    }

    /// The messages that came with the input of this run, where an input can be told.
    fn told_before(&self, messages: &[Value], covered: bool) -> Option<Vec<Value>> {
        let messages: Vec<Value> = messages
            .iter()
            .map(super::shared::redacted_message)
            .filter(|message| {
                let role = message.get("role").and_then(Value::as_str);
                role != Some("activity") && super::shared::is_message(message)
            })
            .collect();
        (self.mode == Mode::Recording && covered && !messages.is_empty()).then_some(messages)
    }

    fn run_id(&mut self, activity: &Activity) -> String {
        let named = activity.context.turn.clone();
        let run = named.filter(|run| !run.is_empty() && !self.runs.contains(run));
        let run = run.unwrap_or_else(|| {
            self.runs_minted += 1;
            let origin = &activity.origin;
            let (seq, minted) = (Decimal::of(origin.seq), Decimal::of(self.runs_minted));
            id::derive("run_", &[&origin.session, seq.as_str(), minted.as_str()])
        });
        if self.runs.len() >= RUNS {
            self.runs.pop_front();
        }
        self.runs.push_back(run.clone());
        run
    }

    pub(super) fn turn_started(
        &mut self,
        activity: &Activity,
        request: Option<&str>,
        out: &mut Vec<Written>,
    ) {
        if self.turn {
            self.notes.add(NoteKind::Closed, "turn");
            if self.mode == Mode::Recording {
                let by = "system".to_owned();
                let ending = Ending::Cancelled { by, reason: None };
                self.end(Some(&ending), None, None, out);
                self.start(activity, out);
            } else {
                self.withdraw_asks(activity, out);
                self.settle(None, out);
            }
        }
        self.turn = true;
        self.shared.begin();
        let before = self.before.take();
        if let Some(Value::Array(messages)) = before.as_ref().and_then(|it| it.get("messages")) {
            for message in messages {
                self.told |= self.tell_message(activity, message, out);
            }
        }
        if let (false, Some(request)) = (std::mem::take(&mut self.told), request) {
            let id = self.mint(activity, Kind::from(Role::User), "req");
            self.tell_text(&id, "user", request, out);
        }
    }

    /// Tells a message of an input that a client may not have.
    fn tell_message(
        &mut self,
        activity: &Activity,
        message: &Value,
        out: &mut Vec<Written>,
    ) -> bool {
        let word = |name: &str| message.get(name).and_then(Value::as_str);
        let (Some(id), Some(role)) = (word("id"), word("role")) else { return false };
        let speaker = match role {
            "user" => Role::User,
            "system" => Role::System,
            "developer" => Role::Developer,
            _ => return false,
        };
        if self.names.kind(id).is_some() {
            return false;
        }
        let words = match message.get("content") {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Array(parts)) => {
                parts.iter().filter_map(|part| part.get("text")?.as_str()).collect()
            }
            _ => return false,
        };
        let id = self.name(activity, Kind::from(speaker), id);
        self.tell_text(&id, role, &words, out);
        speaker == Role::User
    }

    fn tell_text(&mut self, id: &Arc<str>, role: &str, words: &str, out: &mut Vec<Written>) {
        self.items.own(format!("t{id}"), None);
        let event = |kind: Type| Parts::new(kind, [("messageId", Field::Shared(Arc::clone(id)))]);
        let mut start = event(Type::TextMessageStart);
        start.fields.put("role", role);
        out.push(start.into());
        for piece in pieces(&text::redact(words)) {
            let mut content = event(Type::TextMessageContent);
            content.fields.put("delta", piece);
            out.push(content.into());
        }
        out.push(event(Type::TextMessageEnd).into());
    }

    /// Adds to what was used.
    pub(super) fn used(&mut self, usage: &Usage) {
        let word = |word: &Option<String>| word.as_deref().map(|it| text::for_people(it, 256));
        let (provider, model) = (word(&usage.provider), word(&usage.model));
        let usage = Usage { provider, model, ..usage.clone() };
        let same =
            |known: &&mut Usage| known.provider == usage.provider && known.model == usage.model;
        if let Some(known) = self.usage.iter_mut().find(same) {
            let sum = |known: &mut Option<u64>, more: Option<u64>| {
                *known = match (*known, more) {
                    (Some(one), Some(other)) => Some(one.saturating_add(other)),
                    (one, other) => one.or(other),
                };
            };
            sum(&mut known.input, usage.input);
            sum(&mut known.output, usage.output);
            sum(&mut known.total, usage.total);
            sum(&mut known.reasoning, usage.reasoning);
            sum(&mut known.cache_read, usage.cache_read);
            sum(&mut known.cache_write, usage.cache_write);
        } else if self.usage.len() < MODELS {
            self.usage.push(usage);
        } else {
            self.notes.add(NoteKind::Dropped, "used");
        }
    }

    /// Ends the run, everything that is open first.
    pub(super) fn end(
        &mut self,
        ending: Option<&Ending>,
        summary: Option<&str>,
        result: Option<&Value>,
        out: &mut Vec<Written>,
    ) {
        if self.phase != Phase::Running {
            return;
        }
        let interrupts = match ending {
            Some(Ending::Suspended { asks }) => self.interrupts(asks),
            _ => Vec::new(),
        };
        let waiting: Vec<(String, String)> = interrupts
            .iter()
            .filter_map(|(ask, it)| Some((ask.clone(), it.get("id")?.as_str()?.to_owned())))
            .collect();
        let interrupts: Vec<Value> = interrupts.into_iter().map(|(_, it)| it).collect();
        if interrupts.is_empty()
            && let Some((origin, context)) = self.seen.clone()
        {
            let what = What::SessionEnded { reason: None };
            self.withdraw_asks(&Activity { origin, context, what }, out);
        }
        self.settle((!waiting.is_empty()).then_some(&waiting), out);
        let finished = || {
            let thread = self.thread().into();
            Parts::new(
                Type::RunFinished,
                [("threadId", thread), ("runId", self.run.as_str().into())],
            )
        };
        let mut event = match ending {
            Some(Ending::Failed { message, code, .. }) => {
                let message = text::for_people(message, 16_384);
                let mut event = Parts::new(Type::RunError, [("message", message.into())]);
                event.fields.maybe("code", code.as_deref().map(|it| text::for_people(it, 256)));
                event
            }
            Some(Ending::Suspended { .. }) if !interrupts.is_empty() => {
                let mut event = finished();
                let mut outcome = Fields::of([("type", Field::Word("interrupt"))]);
                outcome.put("interrupts", Value::Array(interrupts));
                event.fields.put("outcome", outcome);
                event
            }
            Some(Ending::Cancelled { .. } | Ending::Suspended { .. }) => {
                let mut event = finished();
                event.fields.put("outcome", Fields::of([("type", Field::Word("cancelled"))]));
                event
            }
            Some(Ending::Completed) | None => {
                let mut event = finished();
                let result = result.filter(|it| !it.is_null());
                event.fields.maybe("result", result.map(text::redact_json));
                event
            }
        };
        let usage: Vec<Value> = std::mem::take(&mut self.usage).iter().map(counted).collect();
        if !usage.is_empty() {
            event.fields.put("usage", Value::Array(usage));
        }
        if !event.fits() {
            // Whatever it gave, the end is told.
            self.notes.add(NoteKind::Dropped, "result");
            event.fields.remove("result");
        }
        if self.carry {
            event.own.maybe("summary", summary.map(|it| text::for_people(it, 16_384)));
            if let Some(ending) = ending {
                ending_facts(ending, &mut event.own);
            }
        }
        self.detail = None;
        self.push(event, out);
        self.waiting.suspend(waiting);
        self.turn = false;
        // Who attaches after this turn does not know its card either.
        self.shared.begin();
        self.phase = if self.mode == Mode::One { Phase::Finished } else { Phase::Idle };
    }

    /// Ends the run over everything it waits for, and begins the next where this is the last answer; whether it is to be
    /// told now.
    pub(super) fn split(&mut self, activity: &Activity, out: &mut Vec<Written>) -> bool {
        let What::AskClosed { id, .. } = &activity.what else { return true };
        if self.mode != Mode::Recording || self.is_busy() || !self.waiting.is_untold(id) {
            return true;
        }
        self.end(Some(&Ending::Suspended { asks: Vec::new() }), None, None, out);
        let covered = self.waiting.answered(&activity.what);
        if covered {
            self.start(activity, out);
        } else {
            self.hold(activity);
        }
        covered
    }
}

/// What AG-UI has no field for of an ending.
pub(super) fn ending_facts(ending: &Ending, own: &mut Fields) {
    match ending {
        Ending::Failed { category: Some(category), .. } => {
            own.put("category", text::for_people(category, 256));
        }
        Ending::Cancelled { by, reason } => {
            own.put("cancelled_by", text::for_people(by, 256));
            own.maybe("reason", reason.as_deref().map(|it| text::for_people(it, 4_096)));
        }
        Ending::Completed | Ending::Failed { .. } | Ending::Suspended { .. } => {}
    }
}

/// Counts as the protocol has them: none too large, and parts within what they are parts of.
fn counted(usage: &Usage) -> Value {
    let count = |count: Option<u64>| count.map(|count| count.min(MOST));
    let (input, output) = (count(usage.input), count(usage.output));
    let total = count(usage.total).filter(|total| match (input, output) {
        (Some(input), Some(output)) => input.saturating_add(output) == *total,
        _ => true,
    });
    let reasoning = count(usage.reasoning).filter(|it| output.is_none_or(|all| *it <= all));
    let cached = usage.cache_read.unwrap_or(0).saturating_add(usage.cache_write.unwrap_or(0));
    let within = input.is_none_or(|all| cached <= all);
    let mut entry = Map::new();
    let words = [("provider", &usage.provider), ("model", &usage.model)];
    entry.extend(
        words
            .into_iter()
            .filter_map(|(name, word)| Some((name.to_owned(), word.as_deref()?.into()))),
    );
    let counts = [
        ("inputTokens", input),
        ("outputTokens", output),
        ("totalTokens", total),
        ("reasoningTokens", reasoning),
        ("cachedInputTokens", count(usage.cache_read).filter(|_| within)),
        ("cacheWriteInputTokens", count(usage.cache_write).filter(|_| within)),
    ];
    entry.extend(
        counts.into_iter().filter_map(|(name, count)| Some((name.to_owned(), count?.into()))),
    );
    Value::Object(entry)
}
