//! One record on one line, for people.

use banister_events::event::time_text;
use banister_events::text;
use banister_journal::{Kind, Level, Record};
use serde_json::Value;

/// When, which session, what, and what was decided.
pub(super) fn line(record: &Record) -> String {
    let session: String = record.session.chars().take(10).collect();
    let hook = record.source.protocol.rsplit(':').next().unwrap_or_default();
    let body: Value = serde_json::from_slice(&record.body).unwrap_or_default();
    let about = match record.kind {
        Kind::Event if record.source.protocol == hook => {
            format!("{hook} {}", word(&body, "/type")).trim_end().to_owned()
        }
        Kind::Event => about_event(hook, &body),
        Kind::Ask => format!("opened {}", word(&body, "/ask/id")),
        Kind::Answer | Kind::Expiry | Kind::Withdrawal => {
            let by = word(&body, "/by");
            format!("{} {} by {by}", word(&body, "/ask"), word(&body, "/outcome"))
        }
        Kind::Grant => {
            format!("granted {} in place of {}", word(&body, "/id"), word(&body, "/rule"))
        }
        Kind::Revocation => format!("took back {}", word(&body, "/grant")),
        _ => format!("{} bytes", record.body.len()),
    };
    let verdict = match &record.gate {
        Some(gate) => format!("  [{} by {}]", word(gate, "/decision"), word(gate, "/rule")),
        None => String::new(),
    };
    let findings = record.findings.as_array().map_or(0, Vec::len);
    let found = if findings > 0 { format!("  ({findings} findings)") } else { String::new() };
    let level = match record.captured.level {
        Level::Full => String::new(),
        level => format!("  (captured: {})", level.as_str()),
    };
    format!(
        "{}  {session}  {:>4}  {:<10}  {}  {about}{verdict}{found}{level}",
        time_text(record.time),
        record.seq,
        record.kind.as_str(),
        text::one_line(&record.source.agent),
    )
}

fn about_event(hook: &str, body: &Value) -> String {
    let subjects =
        ["/tool_input/command", "/tool_input/file_path", "/prompt", "/last_assistant_message"];
    let subject = subjects.iter().map(|at| word(body, at)).find(|found| !found.is_empty());
    let tool = word(body, "/tool_name");
    let words = [text::one_line(hook), tool, subject.unwrap_or_default()];
    let words: Vec<&str> =
        words.iter().map(String::as_str).filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

fn word(value: &Value, pointer: &str) -> String {
    let found = value.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    text::one_line(&text::shorten(found, 120))
}
