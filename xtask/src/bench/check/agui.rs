//! Runs of AG-UI to measure with, the same ones each time; none breaks a rule.
//!
//! A run is what an agent answers to one request, and a thread of its own: reasoning, text in small pieces, tool calls
//! with arguments in pieces and results, a state that changes, steps, an activity; some have a subagent, some stream a
//! message as chunks, some carry timestamps. A [`Long`] run is one message, one tool call or one state of any length,
//! written event by event, so that it costs no memory.

use std::fmt::{self, Write};

use serde_json::Value;

use super::corpus::speech;

/// The length of a piece of text, in bytes, unless that would cut a character.
const DELTA: usize = 20;

/// How events are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    Lines,
    Sse,
}

/// Runs, one after another.
#[derive(Debug)]
pub(super) struct Recording {
    pub(super) framing: Framing,
    pub(super) text: String,
    pub(super) events: u64,
    /// Where each run ends.
    ends: Vec<usize>,
}

impl Recording {
    /// At least this many bytes, in whole runs.
    pub(super) fn write(framing: Framing, bytes: usize) -> Result<Self, fmt::Error> {
        Self::begin(framing, bytes, 0)
    }

    /// Lines of runs that are numbered from here on.
    pub(super) fn from(first: u64, bytes: usize) -> Result<Self, fmt::Error> {
        Self::begin(Framing::Lines, bytes, first)
    }

    fn begin(framing: Framing, bytes: usize, first: u64) -> Result<Self, fmt::Error> {
        let text = String::with_capacity(bytes + bytes / 8);
        let mut recording = Self { framing, text, events: 0, ends: Vec::new() };
        for id in first.. {
            if recording.text.len() >= bytes {
                break;
            }
            let out = &mut recording.text;
            let mut script = Script { framing, out, id, owner: None, events: 0 };
            script.run()?;
            recording.events += script.events;
            recording.ends.push(recording.text.len());
        }
        Ok(recording)
    }

    /// What each request was answered with.
    pub(super) fn runs(&self) -> impl Iterator<Item = &[u8]> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        begins.zip(&self.ends).filter_map(|(begin, end)| self.text.as_bytes().get(begin..*end))
    }
}

/// Writes one run.
struct Script<'a> {
    framing: Framing,
    out: &'a mut String,
    id: u64,
    /// The subagent that has the word.
    owner: Option<String>,
    events: u64,
}

impl Script<'_> {
    fn run(&mut self) -> fmt::Result {
        let id = self.id;
        self.event(
            "RUN_STARTED",
            format_args!(r#""threadId":"thread-{id}","runId":"run-{id}","protocolVersion":"1.0""#),
        )?;
        self.event(
            "STATE_SNAPSHOT",
            format_args!(
                r#""snapshot":{{"harbour":"north","day":"2026-03-01","berths":[{{"number":11,"free":false,"length":14}},{{"number":12,"free":true,"length":18}}],"progress":{{"step":0,"of":4}},"log":[]}}"#
            ),
        )?;
        self.step("plan", Self::plan)?;
        self.step("act", Self::act)?;
        if id.is_multiple_of(3) {
            self.delegate()?;
        }
        self.state(3)?;
        if id % 4 == 1 {
            self.chunks()?;
        }
        self.message("answer", 8)?;
        self.state(4)?;
        self.event(
            "RUN_FINISHED",
            format_args!(
                r#""threadId":"thread-{id}","runId":"run-{id}","outcome":{{"type":"success"}},"usage":[{{"provider":"none","model":"bench","inputTokens":2048,"outputTokens":512,"totalTokens":2560}}]"#
            ),
        )
    }

    fn plan(&mut self) -> fmt::Result {
        let message = format!(r#""messageId":"thought-{}""#, self.id);
        self.event("REASONING_START", format_args!("{message}"))?;
        self.event("REASONING_MESSAGE_START", format_args!(r#"{message},"role":"reasoning""#))?;
        self.deltas("REASONING_MESSAGE_CONTENT", &message, &self.talk(2))?;
        self.event("REASONING_MESSAGE_END", format_args!("{message}"))?;
        self.event("REASONING_END", format_args!("{message}"))
    }

    fn act(&mut self) -> fmt::Result {
        self.message("words", 1)?;
        self.call("tides", "read_tides")?;
        self.state(1)?;
        self.call("berth", "find_berth")?;
        self.state(2)?;
        let activity = format!(r#""messageId":"search-{}","activityType":"SEARCH""#, self.id);
        self.event(
            "ACTIVITY_SNAPSHOT",
            format_args!(r#"{activity},"content":{{"title":"Berths","found":0,"done":false}}"#),
        )?;
        for found in 1..4 {
            self.event(
                "ACTIVITY_DELTA",
                format_args!(
                    r#"{activity},"patch":[{{"op":"replace","path":"/found","value":{found}}}]"#
                ),
            )?;
        }
        Ok(())
    }

    fn delegate(&mut self) -> fmt::Result {
        let who = format!(r#""subagentRunId":"helper-{}""#, self.id);
        self.event(
            "SUBAGENT_STARTED",
            format_args!(r#"{who},"name":"weather","description":"Looks at the weather""#),
        )?;
        self.owner = Some(who.clone());
        self.message("weather", 2)?;
        self.call("forecast", "read_forecast")?;
        self.owner = None;
        self.event("SUBAGENT_FINISHED", format_args!(r#"{who},"outcome":{{"type":"success"}}"#))
    }

    fn step(&mut self, name: &str, within: fn(&mut Self) -> fmt::Result) -> fmt::Result {
        self.event("STEP_STARTED", format_args!(r#""stepName":"{name}""#))?;
        within(self)?;
        self.event("STEP_FINISHED", format_args!(r#""stepName":"{name}""#))
    }

    fn message(&mut self, name: &str, length: usize) -> fmt::Result {
        let message = format!(r#""messageId":"{name}-{}""#, self.id);
        self.event("TEXT_MESSAGE_START", format_args!(r#"{message},"role":"assistant""#))?;
        self.deltas("TEXT_MESSAGE_CONTENT", &message, &self.talk(length))?;
        self.event("TEXT_MESSAGE_END", format_args!("{message}"))
    }

    fn chunks(&mut self) -> fmt::Result {
        let message = format!(r#""messageId":"note-{}""#, self.id);
        self.deltas("TEXT_MESSAGE_CHUNK", &message, &self.talk(1))
    }

    fn call(&mut self, name: &str, tool: &str) -> fmt::Result {
        let id = self.id;
        let call = format!(r#""toolCallId":"call-{name}-{id}""#);
        self.event("TOOL_CALL_START", format_args!(r#"{call},"toolCallName":"{tool}""#))?;
        let arguments = format!(
            r#"{{"harbour":"north","day":"2026-03-01","units":"metres","request":{}}}"#,
            Value::from(self.talk(1))
        );
        self.deltas("TOOL_CALL_ARGS", &call, &arguments)?;
        self.event("TOOL_CALL_END", format_args!("{call}"))?;
        let result = r#"{"tides":[{"time":"03:12","height":0.8,"kind":"low"},{"time":"09:04","height":4.6,"kind":"high"},{"time":"15:31","height":0.9,"kind":"low"},{"time":"21:25","height":4.4,"kind":"high"}],"source":"harbour office","age_seconds":40}"#;
        self.event(
            "TOOL_CALL_RESULT",
            format_args!(
                r#""messageId":"result-{name}-{id}",{call},"content":{},"role":"tool""#,
                Value::from(result)
            ),
        )
    }

    fn state(&mut self, step: u64) -> fmt::Result {
        self.event(
            "STATE_DELTA",
            format_args!(
                r#""delta":[{{"op":"replace","path":"/progress/step","value":{step}}},{{"op":"add","path":"/log/-","value":"step {step} of 4"}}]"#
            ),
        )
    }

    fn deltas(&mut self, kind: &str, whose: &str, text: &str) -> fmt::Result {
        pieces(text).try_for_each(|piece| {
            self.event(kind, format_args!(r#"{whose},"delta":{}"#, Value::from(piece)))
        })
    }

    /// Paragraphs in the language of the run.
    fn talk(&self, length: usize) -> String {
        let paragraph = speech(self.id).sentences.concat();
        vec![paragraph; length].join("\n\n")
    }

    fn event(&mut self, kind: &str, fields: fmt::Arguments<'_>) -> fmt::Result {
        if self.framing == Framing::Sse {
            self.out.write_str("data: ")?;
        }
        write!(self.out, r#"{{"type":"{kind}",{fields}"#)?;
        if let Some(owner) = &self.owner {
            write!(self.out, ",{owner}")?;
        }
        if !self.id.is_multiple_of(2) {
            write!(self.out, r#","timestamp":{}"#, 1_772_323_200_000 + self.events * 20)?;
        }
        self.out.write_str(match self.framing {
            Framing::Lines => "}\n",
            Framing::Sse => "}\n\n",
        })?;
        self.events += 1;
        Ok(())
    }
}

fn pieces(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let (piece, rest) = text.split_at_checked(text.ceil_char_boundary(DELTA))?;
        text = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

/// What a long run is made of.
#[derive(Debug, Clone, Copy)]
pub(super) enum Long {
    Message,
    Call,
    State,
}

/// One run of any length, written event by event, one per line.
#[derive(Debug)]
pub(super) struct LongRun {
    what: Long,
    events: u64,
    next: u64,
}

impl LongRun {
    /// A run of this many events; five is the least.
    pub(super) fn new(what: Long, events: u64) -> Self {
        Self { what, events: events.max(5), next: 0 }
    }

    /// How many events it has.
    pub(super) fn events(&self) -> u64 {
        self.events
    }

    /// Writes the next event and a line feed; false where the run has ended.
    pub(super) fn write(&mut self, out: &mut String) -> Result<bool, fmt::Error> {
        const RUN: &str = r#""threadId":"thread","runId":"run""#;
        if self.next == self.events {
            return Ok(false);
        }
        match (self.next, self.events - self.next) {
            (0, _) => writeln!(out, r#"{{"type":"RUN_STARTED",{RUN},"protocolVersion":"1.0"}}"#),
            (_, 1) => writeln!(out, r#"{{"type":"RUN_FINISHED",{RUN}}}"#),
            (1, _) => writeln!(out, "{}", self.first()),
            (_, 2) => writeln!(out, "{}", self.last()),
            (next, _) => self.middle(out, next),
        }?;
        self.next += 1;
        Ok(true)
    }

    fn first(&self) -> &'static str {
        match self.what {
            Long::Message => {
                r#"{"type":"TEXT_MESSAGE_START","messageId":"long","role":"assistant"}"#
            }
            Long::Call => {
                r#"{"type":"TOOL_CALL_START","toolCallId":"long","toolCallName":"write"}"#
            }
            Long::State => {
                r#"{"type":"STATE_SNAPSHOT","snapshot":{"progress":{"step":0,"of":4},"log":[]}}"#
            }
        }
    }

    fn middle(&self, out: &mut String, next: u64) -> fmt::Result {
        match self.what {
            Long::Message => writeln!(
                out,
                r#"{{"type":"TEXT_MESSAGE_CONTENT","messageId":"long","delta":"high water, {next:08}"}}"#
            ),
            Long::Call => writeln!(
                out,
                r#"{{"type":"TOOL_CALL_ARGS","toolCallId":"long","delta":"\"high\": {next:08}, "}}"#
            ),
            // It grows, as states do that keep a log.
            Long::State if next.is_multiple_of(4) => writeln!(
                out,
                r#"{{"type":"STATE_DELTA","delta":[{{"op":"add","path":"/log/-","value":"water, {next:08}"}}]}}"#
            ),
            Long::State => writeln!(
                out,
                r#"{{"type":"STATE_DELTA","delta":[{{"op":"replace","path":"/progress/step","value":{}}}]}}"#,
                10_000_000 + next
            ),
        }
    }

    fn last(&self) -> &'static str {
        match self.what {
            Long::Message => r#"{"type":"TEXT_MESSAGE_END","messageId":"long"}"#,
            Long::Call => r#"{"type":"TOOL_CALL_END","toolCallId":"long"}"#,
            Long::State => {
                r#"{"type":"STATE_DELTA","delta":[{"op":"replace","path":"/progress/step","value":4}]}"#
            }
        }
    }
}

#[cfg(test)]
#[path = "agui_tests.rs"]
mod tests;
