//! Conformant sessions to measure with, the same ones each time.
//!
//! A session is written event by event, so that one of any length costs no memory. All twelve types of AAEP occur, in
//! the proportions of an agent that mostly talks; texts are in several languages and scripts.

use std::fmt::{self, Write};

use banister_events::event::Protocol;

/// How many events a session has beside its rounds: two to begin with, two to end with.
const FRAME: u64 = 4;
/// How many events of AAEP a round has.
const ROUND: u64 = 32;
/// How many of them are text, at the end.
const CHUNKS: u64 = 14;

/// What one agent says in one language.
pub(super) struct Speech {
    language: &'static str,
    direction: &'static str,
    pub(super) sentences: [&'static str; 3],
}

static SPEECHES: [Speech; 5] = [
    Speech {
        language: "en-US",
        direction: "ltr",
        sentences: [
            "The tide tables of the harbour are up to date. ",
            "High water is at nine, after the ferry has left. ",
            "Shall I book the berth, or look at the weather first? ",
        ],
    },
    Speech {
        language: "de-DE",
        direction: "ltr",
        sentences: [
            "Die Gezeitentafeln für den Hafen sind nicht überholt. ",
            "Hochwasser ist um neun Uhr früh, nach der Fähre. ",
            "Soll ich den Liegeplatz buchen, oder möchtest du das Wetter? ",
        ],
    },
    Speech {
        language: "yo-NG",
        direction: "ltr",
        sentences: [
            "Ẹ kú àárọ̀, mo ti ka àkọsílẹ̀ omi òkun. ",
            "Omi yóò kún ní agogo mẹ́sàn-án àárọ̀. ",
            "Ṣé kí n gba ààyè fún ọkọ̀ yín ní alẹ́ òní? ",
        ],
    },
    Speech {
        language: "ja-JP",
        direction: "ltr",
        sentences: [
            "北の港の潮汐表を確認しました。",
            "満潮は午前九時で、フェリーの後です。",
            "今夜の停泊場所を予約しますか。🌊",
        ],
    },
    Speech {
        language: "ar-EG",
        direction: "rtl",
        sentences: [
            "قرأت جداول المد والجزر للميناء. ",
            "أعلى مد في التاسعة صباحا بعد العبارة. ",
            "هل أحجز المرسى أم ترى الطقس أولا؟ ",
        ],
    },
];

/// What the agent of one session or run says.
pub(super) fn speech(id: u64) -> &'static Speech {
    let [english, german, yoruba, japanese, arabic] = &SPEECHES;
    match id % 5 {
        0 => english,
        1 => german,
        2 => yoruba,
        3 => japanese,
        _ => arabic,
    }
}

/// One session, written event by event.
#[derive(Debug, Clone)]
pub(super) struct Session {
    protocol: Protocol,
    id: u64,
    events: u64,
    next: u64,
    /// Characters of the present output so far.
    position: usize,
}

impl Session {
    /// A session of about this many events; those of different `id` have nothing in common.
    pub(super) fn new(protocol: Protocol, id: u64, events: u64) -> Self {
        let rounds = events.saturating_sub(FRAME).div_ceil(ROUND).max(1);
        Self { protocol, id, events: FRAME + rounds * ROUND, next: 0, position: 0 }
    }

    /// How many events it has.
    pub(super) fn events(&self) -> u64 {
        self.events
    }

    /// Writes the next event and a line feed; false where the session has ended.
    pub(super) fn write(&mut self, out: &mut String) -> Result<bool, fmt::Error> {
        if self.next == self.events {
            return Ok(false);
        }
        match self.protocol {
            Protocol::Aep => self.aep(out)?,
            Protocol::Aaep | Protocol::Agui => self.aaep(out)?,
        }
        out.write_str("}\n")?;
        self.next += 1;
        Ok(true)
    }

    fn sentence(&self) -> &'static str {
        let [first, second, third] = speech(self.id).sentences;
        match self.next % 3 {
            0 => first,
            1 => second,
            _ => third,
        }
    }

    fn aaep(&mut self, out: &mut String) -> fmt::Result {
        let round = self.next.saturating_sub(2) / ROUND;
        let call = |letter: char| format!("call_{}x{round}{letter}", self.id);
        let left = self.events - self.next;
        match (self.next, left) {
            (0, _) => {
                self.head(out, "session.started", "normal")?;
                out.write_str(
                    r#","expected_duration_ms":30000,"requested_by":"user:ada","request_text":"When is high water?","tools_available":["tides.read","berth.book"]"#,
                )
            }
            (1, _) => self.state(out, "idle", "thinking"),
            (_, 1) => self.end(out),
            (_, 2) if self.id.is_multiple_of(3) => {
                self.head(out, "handoff.requested", "critical")?;
                out.write_str(
                    r#","reason":"The harbour master has to decide.","target_kind":"human","packaged_context":{"berth":12},"urgency_for_handoff":"low""#,
                )
            }
            (_, 2) => self.progress(out, 100),
            _ => match (self.next - 2) % ROUND {
                0 => self.state(out, "thinking", "calling_tool"),
                1 => self.invoked(out, "tides.read", &call('a'), r#""low","irreversible":false"#),
                2 => self.completed(out, "tides.read", &call('a')),
                3 => self.state(out, "calling_tool", "thinking"),
                4 => self.progress(out, 40),
                5 | 9 => self.state(out, "thinking", "awaiting_input"),
                6 => {
                    self.head(out, "awaiting.clarification", "critical")?;
                    write!(
                        out,
                        r#","question":"Which harbour?","reply_token":"rpl_{}x{round}q","timeout_seconds":60,"accepted_response_kinds":["multiple_choice"],"choices":[{{"value":"north","label":"North"}},{{"value":"south","label":"South"}}]"#,
                        self.id
                    )
                }
                7 => self.state(out, "awaiting_input", "thinking"),
                8 => self.progress(out, 60),
                10 => {
                    self.head(out, "awaiting.confirmation", "critical")?;
                    write!(
                        out,
                        r#","action":"Book berth {round}.","consequence":"The fee is not paid back.","reply_token":"rpl_{}x{round}c","timeout_seconds":60,"default_decision":"reject","risk_level":"high","irreversible":true,"reversibility":"irreversible","allowed_replies":["accept","reject"]"#,
                        self.id
                    )
                }
                11 => self.state(out, "awaiting_input", "calling_tool"),
                12 => self.invoked(out, "berth.book", &call('b'), r#""high","irreversible":true"#),
                13 => self.completed(out, "berth.book", &call('b')),
                14 => self.state(out, "calling_tool", "deciding"),
                15 => self.progress(out, 80),
                16 => self.state(out, "deciding", "writing_output"),
                at if at < 17 + CHUNKS => self.chunk(out, round, at - 17),
                _ => self.state(out, "writing_output", "thinking"),
            },
        }
    }

    /// The envelope and the summaries, without the end of the object.
    fn head(&self, out: &mut String, kind: &str, urgency: &str) -> fmt::Result {
        let Self { id, next, .. } = self;
        let Speech { language, direction, .. } = speech(self.id);
        write!(
            out,
            r#"{{"@context":"https://aaep-protocol.org/context/v1","aaep_version":"1.0.0","type":"aaep:agent.{kind}","event_id":"evt_{id}x{next}","session_id":"sess_{id}","sequence_number":{next},"timestamp":""#
        )?;
        self.time(out)?;
        write!(
            out,
            r#"","producer":{{"agent_id":"harbour","agent_version":"2.1.0","model":"bench"}},"verbosity":"normal","urgency":"{urgency}","localization_hints":{{"primary_language":"{language}","text_direction":"{direction}"}}"#
        )?;
        if kind != "output.streaming" {
            let text = self.sentence().trim_end();
            let terse = text.split([' ', '。']).next().unwrap_or(text);
            write!(
                out,
                r#","summary_terse":"{terse}","summary_normal":"{text}","summary_detailed":"{terse} {text}""#
            )?;
        }
        Ok(())
    }

    /// One event each 20 milliseconds of one day: a million of them fit in.
    fn time(&self, out: &mut String) -> fmt::Result {
        let millis = self.id % 3_600 * 1_000 + self.next * 20;
        let (seconds, millis) = (millis / 1_000, millis % 1_000);
        let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
        write!(out, "2026-03-01T{hours:02}:{minutes:02}:{seconds:02}.{millis:03}Z")
    }

    fn state(&self, out: &mut String, from: &str, to: &str) -> fmt::Result {
        self.head(out, "state.changed", "normal")?;
        write!(out, r#","from_state":"{from}","to_state":"{to}""#)
    }

    fn progress(&self, out: &mut String, percent: u64) -> fmt::Result {
        self.head(out, "progress.updated", "background")?;
        let step = percent / 20;
        write!(
            out,
            r#","progress":{{"percent":{percent},"step":{step},"total_steps":5}},"eta_ms":900"#
        )
    }

    fn invoked(&self, out: &mut String, tool: &str, call: &str, risk: &str) -> fmt::Result {
        self.head(out, "tool.invoked", "normal")?;
        write!(
            out,
            r#","tool":"{tool}","tool_call_id":"{call}","args_summary":"day: tomorrow","risk_level":{risk}"#
        )
    }

    fn completed(&self, out: &mut String, tool: &str, call: &str) -> fmt::Result {
        self.head(out, "tool.completed", "normal")?;
        write!(
            out,
            r#","tool":"{tool}","tool_call_id":"{call}","status":"success","duration_ms":20"#
        )
    }

    fn chunk(&mut self, out: &mut String, round: u64, at: u64) -> fmt::Result {
        self.head(out, "output.streaming", "normal")?;
        let (text, last) = (self.sentence(), at + 1 == CHUNKS);
        let hint = if last { "completion" } else { "sentence" };
        if at == 0 {
            self.position = 0;
        }
        write!(
            out,
            r#","chunk":"{text}","position":{},"complete":{last},"coalesce_hint":"{hint}","output_id":"out_{}x{round}","content_type":"text/plain""#,
            self.position, self.id
        )?;
        self.position += text.chars().count();
        Ok(())
    }

    fn end(&self, out: &mut String) -> fmt::Result {
        match self.id % 8 {
            5 => {
                self.head(out, "session.errored", "critical")?;
                out.write_str(
                    r#","error_category":"transient","error_code":"NO_ANSWER","recoverable":true"#,
                )
            }
            6 => {
                self.head(out, "session.cancelled", "normal")?;
                out.write_str(r#","cancelled_by":"user","cancellation_reason":"declined""#)
            }
            _ => {
                self.head(out, "session.completed", "normal")?;
                write!(out, r#","duration_ms":{}"#, self.next * 20 % 86_400_000)
            }
        }
    }

    fn aep(&self, out: &mut String) -> fmt::Result {
        let (kind, rest) = self.aep_kind();
        let Self { id, next, .. } = self;
        write!(out, r#"{{"aep_version":"0.1","id":"evt_{id}x{next}","type":"{kind}","time":""#)?;
        self.time(out)?;
        write!(
            out,
            r#"","agent":{{"slug":"harbour","display_name":"Harbour","version":"2.1.0","surface":"cli"}},"session":{{"id":"s-{id}","conversation_id":"c-{id}","turn_id":"t-{id}","permission_mode":"default"}},"workspace":{{"cwd":"/home/ada/harbour","project_path":"/home/ada/harbour"}},"model":{{"id":"bench-1","provider":"none","effort":"low"}}{rest}"#
        )
    }

    fn aep_kind(&self) -> (&'static str, String) {
        let text = self.sentence().trim_end();
        let says = |kind: &str| format!(r#","content":[{{"type":"{kind}","text":"{text}"}}]"#);
        let acts = |end: &str| {
            let action = (self.next - 2) / 8;
            format!(
                r#","action":{{"type":"tool_call","id":"a-{}-{action}"{end}}},"tool":{{"type":"native","name":"Bash"}}"#,
                self.id
            )
        };
        match (self.next, self.events - self.next) {
            (0, _) => ("session.start", r#","lifecycle":{"source":"startup"}"#.to_owned()),
            (1, _) => ("prompt.submitted", says("prompt")),
            (_, 1) => ("session.end", r#","lifecycle":{"reason":"exit"}"#.to_owned()),
            (_, 2) => ("agent.stop", r#","metrics":{"duration_ms":4200}"#.to_owned()),
            _ => match (self.next - 2) % 8 {
                0 => ("model.thought", says("thought")),
                1 => (
                    "action.requested",
                    acts(r#","input":{"command":"cargo test --workspace","timeout":120}"#),
                ),
                2 => (
                    "action.completed",
                    acts(r#","status":"success","output":{"stdout":"ok","exit_code":0}"#),
                ),
                3 => ("notification.sent", says("notification")),
                4 | 5 => ("model.delta", says("response")),
                6 => ("model.plan", says("plan")),
                _ => ("model.response", says("response")),
            },
        }
    }
}

/// Several sessions at a time, line by line, until there are at least this many bytes.
pub(in crate::bench) fn recording(
    protocol: Protocol,
    bytes: usize,
    first: u64,
) -> Result<(String, u64), fmt::Error> {
    const AT_ONCE: u64 = 4;
    const EVENTS: u64 = 100;
    let mut out = String::with_capacity(bytes + bytes / 8);
    let mut events = 0;
    let mut id = first;
    while out.len() < bytes {
        let mut sessions: Vec<Session> =
            (id..id + AT_ONCE).map(|id| Session::new(protocol, id, EVENTS)).collect();
        loop {
            let mut wrote = false;
            for session in &mut sessions {
                wrote |= session.write(&mut out)?;
            }
            if !wrote {
                break;
            }
        }
        events += sessions.iter().map(Session::events).sum::<u64>();
        id += AT_ONCE;
    }
    Ok((out, events))
}

#[cfg(test)]
#[path = "corpus_tests.rs"]
mod tests;
