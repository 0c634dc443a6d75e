//! What is told in a sentence, as progress: AAEP has no other word for it.

use jiff::Timestamp;
use serde_json::{Map, json};

use super::clamp::{self, non_empty};
use super::lifecycle::LONGEST_MS;
use super::words::{Words, agent};
use super::{At, Event, Facts, Fields, Writer, Written};
use crate::aaep::event::fields::is_uri;
use crate::aaep::event::{RiskLevel, TargetKind};
use crate::activity::{Ending, What};
use crate::limits::{AAEP_TERSE_CHARS, AAEP_TEXT_CHARS};
use crate::text;
use crate::translate::NoteKind;

/// Steps smaller than this, in percent, that come within a second are not worth hearing.
const SMALL_STEP: f64 = 5.0;

/// How many changed files are named.
const PATHS: usize = 3;

/// The largest number that every reader reads alike.
const EXACT: u64 = 1 << 53;

impl Writer {
    pub(super) fn progressed(&mut self, at: At<'_>, what: &What, out: &mut Vec<Written>) {
        let What::Progressed { percent, step, total, description, eta_ms } = what else { return };
        let percent = percent.filter(|percent| percent.is_finite());
        let percent = percent.map(|percent| percent.clamp(0.0, 100.0));
        let percent = percent.filter(|percent| self.is_news(at.origin.time, *percent));
        let count = |number: &Option<u64>| number.filter(|number| (1..=EXACT).contains(number));
        let (step, total) = (count(step), count(total));
        let total = total.filter(|total| step.is_none_or(|step| step <= *total));
        let words = description.as_deref().map(|text| text::for_people(text, AAEP_TERSE_CHARS));
        let words = words.filter(|words| !words.trim().is_empty());
        let mut progress = Map::new();
        let mut told: Vec<String> = words.iter().cloned().collect();
        if let Some(percent) = percent {
            progress.insert("percent".to_owned(), json!(percent));
            told.push(format!("{}%", (percent * 10.0).round() / 10.0));
        }
        if let Some(step) = step {
            progress.insert("step".to_owned(), json!(step));
            told.push(total.map_or(step.to_string(), |total| format!("{step}/{total}")));
        }
        if let Some(total) = total {
            progress.insert("total_steps".to_owned(), json!(total));
        }
        if let Some(words) = words {
            let whole = clamp::whole(&words);
            progress
                .insert("description".to_owned(), json!(text::shorten(&whole, AAEP_TERSE_CHARS)));
        }
        if told.is_empty() || self.voice.load == RiskLevel::Low {
            self.note(NoteKind::Dropped, "progressed");
            return;
        }
        self.open(at, out);
        if let (Some(percent), Some(turn)) = (percent, &mut self.turn) {
            turn.percent = Some((percent, turn.last.max(at.origin.time)));
        }
        let mut fields = Fields::of([("progress", progress.into())]);
        if let Some(eta) = eta_ms {
            fields.put("eta_ms", (*eta).min(LONGEST_MS));
        }
        let words = self.about_text("aaep.progress", at, "progress", &told.join(" · "));
        let event = Event {
            kind: "progress.updated",
            urgency: "background",
            fields,
            words: Some(words.into()),
            facts: Facts::default(),
        };
        self.push(at, event, out);
    }

    /// Whether a percentage is far enough from the last one that was told, or the last there is.
    fn is_news(&self, time: Timestamp, percent: f64) -> bool {
        let Some((last, then)) = self.turn.as_ref().and_then(|turn| turn.percent) else {
            return true;
        };
        let now = self.turn.as_ref().map_or(time, |turn| turn.last.max(time));
        let soon = now.duration_since(then).as_millis() <= 1_000;
        let done = percent >= 100.0 && last < 100.0;
        !soon || (percent - last).abs() >= SMALL_STEP || done
    }

    /// What has no other word: a sentence about it.
    pub(super) fn told(&mut self, at: At<'_>, what: &What, out: &mut Vec<Written>) {
        let Some((words, urgency)) = self.sentence(at, what) else {
            self.note(NoteKind::Dropped, "empty");
            return;
        };
        // Where nothing is going on, there is nothing to report on; errors are told all the same.
        let idle = self.turn.is_none() && !matches!(what, What::Erred { .. });
        if idle
            && matches!(
                what,
                What::Notified { .. }
                    | What::Compacted { .. }
                    | What::WorkspaceChanged { .. }
                    | What::Raw { .. }
            )
        {
            self.note(NoteKind::Dropped, "outside_a_turn");
            return;
        }
        if urgency == "background" && self.voice.load == RiskLevel::Low {
            self.note(NoteKind::Dropped, "background");
            return;
        }
        self.open(at, out);
        let facts = self.carry(|facts| {
            if !matches!(what, What::Raw { .. }) {
                facts.data("what", what);
            }
        });
        self.line(at, words, urgency, facts, out);
    }

    fn sentence(&self, at: At<'_>, what: &What) -> Option<(Words, &'static str)> {
        let full = |text: &str| !text::for_people(text, AAEP_TERSE_CHARS).trim().is_empty();
        let words = match what {
            What::StepStarted { name } => self.about_text("aaep.step", at, "name", name),
            What::SubagentStarted { name, description, .. } => self
                .about_text("aaep.subagent_started", at, "name", name)
                .and(self.fact("aaep.fact_description", "text", description.as_deref())),
            What::SubagentEnded { ending, .. } => match ending {
                Ending::Completed | Ending::Suspended { .. } => {
                    self.about_agent("aaep.subagent_completed", at)
                }
                Ending::Failed { message, .. } => {
                    self.about_text("aaep.subagent_failed", at, "error", message)
                }
                Ending::Cancelled { .. } => self.about_agent("aaep.subagent_cancelled", at),
            },
            What::Compacted { .. } => self.about_agent("aaep.compacted", at),
            What::WorkspaceChanged { paths, reason } => {
                let mut named = paths.iter().take(PATHS).cloned().collect::<Vec<_>>().join(", ");
                if paths.len() > PATHS {
                    named.push_str(", …");
                }
                let words = if full(&named) {
                    self.about_text("aaep.workspace_changed", at, "paths", &named)
                } else {
                    self.about_agent("aaep.workspace_changed_bare", at)
                };
                words.and(self.fact("aaep.fact_reason", "reason", reason.as_deref()))
            }
            What::Notified { text } | What::Raw { text: Some(text), .. } if full(text) => {
                self.about_text("aaep.notified", at, "text", text)
            }
            What::Erred { message, .. } => {
                return Some((self.about_text("aaep.erred", at, "error", message), "normal"));
            }
            _ => return None,
        };
        Some((words, "background"))
    }

    /// A sentence, as progress.
    pub(super) fn line(
        &mut self,
        at: At<'_>,
        words: Words,
        urgency: &'static str,
        facts: Facts,
        out: &mut Vec<Written>,
    ) {
        let whole = clamp::whole(&words.normal);
        let description = text::shorten(&whole, AAEP_TERSE_CHARS);
        let progress = Fields::of([("description", description.into())]);
        let fields = Fields::of([("progress", progress.into())]);
        let event =
            Event { kind: "progress.updated", urgency, fields, words: Some(words.into()), facts };
        self.push(at, event, out);
    }

    pub(super) fn handed_off(
        &mut self,
        at: At<'_>,
        reason: &str,
        target: Option<&str>,
        uri: Option<&str>,
        out: &mut Vec<Written>,
    ) {
        self.open(at, out);
        self.close_output(at, out);
        let reason = non_empty(text::for_people(reason, AAEP_TEXT_CHARS));
        let known = target.filter(|target| TargetKind::WORDS.contains(target)).unwrap_or("human");
        let values = [
            ("agent", agent(at)),
            ("reason", text::shorten(&reason, AAEP_TERSE_CHARS).into_owned()),
        ];
        let values = values.each_ref().map(|(name, value)| (*name, value.as_str()));
        let words = self.words("aaep.handoff", &values);
        let mut fields = Fields::of([("reason", reason.into()), ("target_kind", known.into())]);
        if let Some(uri) =
            uri.filter(|uri| is_uri(uri) && text::redact(uri) == **uri && uri.len() < 2_048)
        {
            fields.put("target_uri", uri);
        }
        let facts = self.carry(|facts| {
            if target != Some(known) {
                facts.name("target", target);
            }
        });
        let event = Event {
            kind: "handoff.requested",
            urgency: "critical",
            fields,
            words: Some(words.into()),
            facts,
        };
        self.push(at, event, out);
    }
}
