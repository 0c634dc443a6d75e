//! Sentences from the catalogue, at three lengths.

use std::sync::Arc;

use super::{At, Writer, clamp};
use crate::activity::{Action, Gate, Risk};
use crate::limits::{AAEP_TERSE_CHARS, AAEP_TEXT_CHARS};
use crate::locale::Locale;
use crate::text;

/// How much of what an action does is said in one sentence.
const SUBJECT_CHARS: usize = 8_000;

/// How much of it is said where everything fits into one line.
const HEADLINE_CHARS: usize = 2_000;

/// One thing, told in a few words, in a sentence, and with everything worth hearing.
#[derive(Debug, Clone)]
pub(super) struct Words {
    pub(super) terse: String,
    pub(super) normal: String,
    pub(super) detailed: String,
}

impl Words {
    /// The same few words, with the agent's own sentence; `None` and empty ones change nothing.
    pub(super) fn in_own_words(mut self, own: Option<&str>) -> Self {
        let own = own.map(|own| text::for_people(own, AAEP_TEXT_CHARS));
        if let Some(own) = own.filter(|own| !own.trim().is_empty()) {
            self.detailed.clone_from(&own);
            self.normal = own;
        }
        self
    }

    /// Adds what is worth knowing to the longest form, a line each.
    pub(super) fn and(mut self, fact: Option<String>) -> Self {
        if let Some(fact) = fact {
            self.detailed.push('\n');
            self.detailed.push_str(&fact);
        }
        self
    }

    /// The same, within AAEP's limits.
    pub(super) fn fitting(self: Arc<Self>) -> Arc<Self> {
        let limits = [AAEP_TERSE_CHARS, AAEP_TEXT_CHARS, AAEP_TEXT_CHARS];
        let fits = |((_, text), limit)| clamp::is_whole(text) && text::shorten(text, limit) == text;
        if self.texts().into_iter().zip(limits).all(fits) {
            return self;
        }
        let Self { terse, normal, detailed } = Arc::unwrap_or_clone(self);
        let mut texts = [terse, normal, detailed];
        for (text, limit) in texts.iter_mut().zip(limits) {
            *text = text::shorten(text, limit).into_owned();
            clamp::begin_whole(text);
        }
        let [terse, normal, detailed] = texts;
        Arc::new(Self { terse, normal, detailed })
    }

    /// The texts, and the fields that they stand in.
    pub(super) fn texts(&self) -> [(&'static str, &str); 3] {
        [
            ("summary_terse", &self.terse),
            ("summary_normal", &self.normal),
            ("summary_detailed", &self.detailed),
        ]
    }
}

/// Sentences about nothing but the agent, which are the same every time.
#[derive(Debug, Clone, Default)]
pub(super) struct Spoken {
    agent: String,
    sentences: Vec<(&'static str, Arc<Words>)>,
}

impl Spoken {
    fn find(&self, key: &str, agent: &str) -> Option<Arc<Words>> {
        let known = self.sentences.iter().find(|(known, _)| *known == key && self.agent == agent);
        known.map(|(_, words)| Arc::clone(words))
    }

    fn keep(&mut self, key: &'static str, agent: &str, words: &Arc<Words>) {
        if self.agent != agent {
            agent.clone_into(&mut self.agent);
            self.sentences.clear();
        }
        self.sentences.push((key, Arc::clone(words)));
    }
}

impl Writer {
    pub(super) fn locale(&self) -> Locale {
        Locale::choose([self.voice.language.as_str()])
    }

    /// One sentence of values that are fit to be said.
    pub(super) fn say(&self, key: &str, values: &[(&str, &str)]) -> String {
        clamp::non_empty(self.locale().say(key, values))
    }

    /// A sentence at three lengths.
    pub(super) fn words(&self, key: &str, values: &[(&str, &str)]) -> Words {
        self.words_of(key, [values; 3])
    }

    /// A sentence at three lengths, each of its own values.
    fn words_of(&self, key: &str, values: [&[(&str, &str)]; 3]) -> Words {
        let texts = self.locale().say_at_lengths(key, values);
        let [terse, normal, detailed] = texts.map(clamp::non_empty);
        Words { terse, normal, detailed }
    }

    /// A sentence about the agent, at three lengths.
    pub(super) fn about_agent(&self, key: &str, at: At<'_>) -> Words {
        self.words(key, &[("agent", &agent(at))])
    }

    /// A sentence about the agent that is told again and again, at three lengths.
    pub(super) fn again_about_agent(&mut self, key: &'static str, at: At<'_>) -> Arc<Words> {
        let agent = at.context.agent_title();
        self.spoken.find(key, agent).unwrap_or_else(|| {
            let words = Arc::new(self.about_agent(key, at));
            self.spoken.keep(key, agent, &words);
            words
        })
    }

    /// A sentence about the agent and something it told, at three lengths.
    pub(super) fn about_text(&self, key: &str, at: At<'_>, name: &str, told: &str) -> Words {
        let told = text::for_people(told, AAEP_TERSE_CHARS);
        self.words(key, &[("agent", &agent(at)), (name, &told)])
    }

    /// A sentence about an action: its first line in the middle form, all there is room for in the long one.
    pub(super) fn about_action(&self, key: &str, at: At<'_>, action: &Action) -> Words {
        let (agent, tool) = (agent(at), title(action));
        let headline = text::for_people(&action.headline(), HEADLINE_CHARS);
        let subject = text::for_people(&action.subject(), SUBJECT_CHARS);
        let values = |subject| [("agent", agent.as_str()), ("tool", &*tool), ("subject", subject)];
        let [terse, normal, detailed] = [values(""), values(&headline), values(&subject)];
        self.words_of(key, [&terse, &normal, &detailed])
    }

    /// One fact, if there is one.
    pub(super) fn fact(&self, key: &str, name: &str, told: Option<&str>) -> Option<String> {
        let told = text::for_people(told?, HEADLINE_CHARS);
        (!told.trim().is_empty()).then(|| self.say(key, &[(name, &told)]))
    }

    /// What the gate found out, as lines of the long form.
    pub(super) fn with_gate(&self, words: Words, gate: Option<&Gate>) -> Words {
        let Some(gate) = gate else { return words };
        let risk = match gate.risk {
            Risk::Low => "aaep.fact_risk_low",
            Risk::Medium => "aaep.fact_risk_medium",
            Risk::High => "aaep.fact_risk_high",
        };
        let undo = gate.irreversible.map(|irreversible| {
            let key = if irreversible { "aaep.fact_irreversible" } else { "aaep.fact_reversible" };
            self.say(key, &[])
        });
        words
            .and(self.fact("aaep.fact_reason", "reason", Some(&gate.reason)))
            .and(Some(self.say(risk, &[])))
            .and(undo)
            .and(self.fact("aaep.fact_opaque", "reason", gate.opaque.as_deref()))
            .and(self.fact("aaep.fact_safer", "text", gate.safer.as_deref()))
    }

    /// What the agent says about an action, and where it works.
    pub(super) fn with_surroundings(&self, words: Words, at: At<'_>, action: &Action) -> Words {
        let own = action.rationale.as_deref();
        words.and(self.fact("aaep.fact_words", "text", own)).and(self.fact(
            "aaep.fact_folder",
            "folder",
            at.context.cwd.as_deref(),
        ))
    }
}

/// The agent's name, fit to be said.
pub(super) fn agent(at: At<'_>) -> String {
    spoken(at.context.agent_title())
}

/// An action's name, fit to be said.
pub(super) fn title(action: &Action) -> String {
    spoken(&action.title())
}

/// A name in a sentence. One that credentials go by gets quotes, so that what follows it is not taken for one.
fn spoken(name: &str) -> String {
    let name = clamp::non_empty(clamp::name(name));
    if !clamp::is_plain(&name) && text::names_credential(&name) {
        format!("“{name}”")
    } else {
        name
    }
}

/// Milliseconds as seconds, with a fraction where that matters.
pub(super) fn seconds(ms: u64) -> String {
    if ms < 10_000 {
        format!("{}.{}", ms / 1_000, ms % 1_000 / 100)
    } else {
        (ms / 1_000).to_string()
    }
}
