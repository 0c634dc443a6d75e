//! `banister log`: the journal, read and verified from its file, with or without a running gateway.

use banister_events::event::time_text;
use banister_events::text;
use banister_journal::{Archive, Bad, Journal, Kind, Record, What as Wrong};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::failure::{GOOD, REFUSED};
use crate::place::Place;
use crate::print;

#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    #[command(subcommand)]
    what: What,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Print the newest records, oldest first
    Show {
        /// Only this session, by its id or the beginning of it
        #[arg(long, value_name = "SESSION")]
        session: Option<String>,
        /// How many
        #[arg(long, value_name = "N", default_value_t = 100)]
        limit: usize,
        /// Print one JSON object per record, with the original bytes as text
        #[arg(long)]
        json: bool,
    },
    /// Verify every record and every chain; exit 1 if one is broken
    Verify {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn run(args: &LogArgs) -> anyhow::Result<u8> {
    let path = args.place.journal()?;
    match &args.what {
        What::Show { session, limit, json } => {
            let archive = Archive::open(&path)?;
            let records = newest(&archive, session.as_deref(), *limit)?;
            if records.is_empty() {
                print::tell("There is no such record.");
            }
            print::with(|out, _| {
                for record in &records {
                    if *json {
                        serde_json::to_writer(&mut *out, &object(record))?;
                        writeln!(out)?;
                    } else {
                        writeln!(out, "{}", line(record))?;
                    }
                }
                Ok(GOOD)
            })
        }
        What::Verify { json } => verify(&path, *json),
    }
}

fn newest(
    archive: &Archive,
    session: Option<&str>,
    limit: usize,
) -> anyhow::Result<Vec<std::sync::Arc<Record>>> {
    let mut kept = std::collections::VecDeque::new();
    let mut position = 0;
    loop {
        let batch = archive.after(position, 1_000)?;
        let Some(last) = batch.last() else { break };
        position = last.position;
        for record in batch {
            if session.is_none_or(|session| record.session.starts_with(session)) {
                kept.push_back(record);
            }
            if kept.len() > limit {
                kept.pop_front();
            }
        }
    }
    Ok(kept.into())
}

/// One record on one line: when, which session, what, and what was decided.
fn line(record: &Record) -> String {
    let session: String = record.session.chars().take(10).collect();
    let hook = record.source.protocol.rsplit(':').next().unwrap_or_default();
    let body: Value = serde_json::from_slice(&record.body).unwrap_or_default();
    let about = match record.kind {
        Kind::Event => about_event(hook, &body),
        Kind::Ask => format!("opened {}", word(&body, "/ask/id")),
        Kind::Answer | Kind::Expiry | Kind::Withdrawal => {
            let by = word(&body, "/by");
            format!("{} {} by {by}", word(&body, "/ask"), word(&body, "/outcome"))
        }
        _ => format!("{} bytes", record.body.len()),
    };
    let verdict = match &record.gate {
        Some(gate) => format!("  [{} by {}]", word(gate, "/decision"), word(gate, "/rule")),
        None => String::new(),
    };
    let findings = record.findings.as_array().map_or(0, Vec::len);
    let found = if findings > 0 { format!("  ({findings} findings)") } else { String::new() };
    format!(
        "{}  {session}  {:>4}  {:<10}  {}  {about}{verdict}{found}",
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

fn object(record: &Record) -> Value {
    json!({
        "schema": "banister.record/v1",
        "position": record.position, "session": record.session, "seq": record.seq,
        "time": record.time.to_string(), "kind": record.kind.as_str(),
        "source": {
            "protocol": record.source.protocol, "agent": record.source.agent,
            "door": record.source.door, "key": record.source.key,
        },
        "turn": record.turn, "action": record.action, "event_id": record.event_id,
        "reader": record.reader, "body": String::from_utf8_lossy(&record.body),
        "findings": record.findings, "gate": record.gate,
        "prev": banister_events::id::hex(&record.prev),
        "hash": banister_events::id::hex(&record.hash),
    })
}

fn verify(path: &std::path::Path, json: bool) -> anyhow::Result<u8> {
    let report = Journal::verify(path)?;
    print::with(|out, _| {
        if json {
            let mut result = json!({ "schema": "banister.verify/v1", "good": report.is_clean() });
            if let (Some(result), Value::Object(fields)) =
                (result.as_object_mut(), serde_json::to_value(&report)?)
            {
                result.extend(fields);
            }
            writeln!(out, "{result}")?;
        } else {
            writeln!(
                out,
                "{} in {}.",
                count(report.records, "record"),
                count(report.sessions, "session")
            )?;
            if let Some(bad) = &report.first_bad {
                let Bad { position, session, seq, what } = bad;
                let wrong = wrong(*what);
                writeln!(
                    out,
                    "Broken: record {seq} of session {session} (position {position}) {wrong}."
                )?;
                writeln!(out, "{} in all.", count(report.bad, "fault"))?;
            }
            if let Some(storage) = &report.storage {
                writeln!(out, "The database is damaged: {storage}")?;
            }
            if report.is_clean() {
                writeln!(out, "Every record and every chain is intact.")?;
            }
        }
        Ok(if report.is_clean() { GOOD } else { REFUSED })
    })
}

fn count(number: u64, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        _ => format!("{number} {what}s"),
    }
}

fn wrong(what: Wrong) -> &'static str {
    match what {
        Wrong::Content => "is not what was recorded",
        Wrong::Link => "does not follow on the record before it",
        Wrong::Missing => "is missing",
        Wrong::Order => "stands before a record that is older",
        Wrong::Head => "is not the record its session is known to end with",
        Wrong::Unreadable => "holds what no record holds",
        _ => "is broken",
    }
}
