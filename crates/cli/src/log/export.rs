//! `banister log export`: the record as lines for other tools. A few megabytes are in memory at a time, however long the
//! journal is.
//!
//! Records are written in the journal's order, or as a protocol's events, session after session: see `stream.rs`.

use std::io::Write;

use banister_events::event::Protocol;
use banister_events::id::hex;
use banister_journal::{Archive, Record};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::moment::Moment;
use super::object::object;
use super::stream;
use crate::failure::GOOD;
use crate::print;

#[derive(Debug, Args)]
pub(super) struct ExportArgs {
    /// How records are written
    #[arg(long, value_enum, default_value_t = Format::Jsonl)]
    format: Format,
    /// Only this session, by its id or the beginning of it
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    /// Only from this moment on: a time, a date, or how long ago, like 12h
    #[arg(long, value_name = "TIME")]
    since: Option<Moment>,
    /// Only before this moment
    #[arg(long, value_name = "TIME")]
    until: Option<Moment>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    /// One JSON object per record, with everything in it
    Jsonl,
    /// One `CloudEvents` 1.0 JSON object per record
    Cloudevents,
    /// The sessions as AEP 0.1 events, one after another
    Aep,
    /// The sessions as AAEP 1.0 events, one after another
    Aaep,
    /// The sessions as AG-UI 1.0 threads, one after another
    Agui,
}

/// Which records.
pub(super) struct Wanted<'a> {
    /// What the session's id begins with.
    pub(super) session: &'a str,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
}

impl Wanted<'_> {
    pub(super) fn covers(&self, time: Timestamp) -> bool {
        self.since.is_none_or(|since| time >= since) && self.until.is_none_or(|until| time < until)
    }
}

pub(super) fn run(archive: &Archive, args: &ExportArgs) -> anyhow::Result<u8> {
    let wanted = Wanted {
        session: args.session.as_deref().unwrap_or_default(),
        since: args.since.map(Moment::time),
        until: args.until.map(Moment::time),
    };
    print::with(|out, err| {
        match args.format {
            Format::Jsonl => records(archive, &wanted, |record| jsonl(record, out))?,
            Format::Cloudevents => records(archive, &wanted, |record| cloud_event(record, out))?,
            Format::Aep => stream::write(archive, &wanted, Protocol::Aep, out, err)?,
            Format::Aaep => stream::write(archive, &wanted, Protocol::Aaep, out, err)?,
            Format::Agui => stream::write(archive, &wanted, Protocol::Agui, out, err)?,
        }
        Ok(GOOD)
    })
}

/// Every record that is wanted, in the journal's order.
fn records(
    archive: &Archive,
    wanted: &Wanted<'_>,
    mut write: impl FnMut(&Record) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut position = 0;
    loop {
        let chunk = archive.chunk(position)?;
        let Some(last) = chunk.last() else { return Ok(()) };
        position = last.position;
        for record in &chunk {
            if record.session.starts_with(wanted.session) && wanted.covers(record.time) {
                write(record)?;
            }
        }
    }
}

fn jsonl(record: &Record, out: &mut dyn Write) -> anyhow::Result<()> {
    serde_json::to_writer(&mut *out, &object(record))?;
    Ok(writeln!(out)?)
}

/// `source` is the session, `id` the number in it: together they name the record, as `CloudEvents` wants it.
fn cloud_event(record: &Record, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut event = Map::new();
    let mut set = |name: &str, value: Option<&str>| {
        // A `CloudEvents` attribute that has no value is left out.
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            event.insert(name.to_owned(), value.into());
        }
    };
    set("specversion", Some("1.0"));
    set("id", Some(&record.seq.to_string()));
    set("source", Some(&format!("urn:banister:session:{}", percent(&record.session))));
    set("type", Some(&format!("banister.record.{}", record.kind.as_str())));
    set("time", Some(&record.time.to_string()));
    set("sequence", Some(&record.seq.to_string()));
    set("protocol", Some(&record.source.protocol));
    set("agent", Some(&record.source.agent));
    set("door", Some(&record.source.door));
    set("keyid", Some(&record.source.key));
    set("turn", record.turn.as_deref());
    set("action", record.action.as_deref());
    set("eventid", record.event_id.as_deref());
    set("reader", Some(&record.reader.to_string()));
    set("level", Some(record.captured.level.as_str()));
    set("digest", record.captured.digest.map(|digest| hex(&digest)).as_deref());
    let findings = Some(&record.findings).filter(|findings| !findings.is_null());
    set("findings", findings.map(Value::to_string).as_deref());
    set("gate", record.gate.as_ref().map(Value::to_string).as_deref());
    set("prev", Some(&hex(&record.prev)));
    set("hash", Some(&hex(&record.hash)));
    let body = body(&record.body)?;
    let mut line = Value::Object(event).to_string();
    line.pop();
    Ok(writeln!(out, "{line}{body}}}")?)
}

/// JSON goes in as it is, but for line ends between its tokens; anything else in base64.
fn body(bytes: &[u8]) -> anyhow::Result<String> {
    let text = std::str::from_utf8(bytes).ok();
    let json = text.filter(|text| serde_json::from_str::<&RawValue>(text).is_ok());
    Ok(match json {
        // In valid JSON a line end is never inside a string.
        Some(json) => format!(
            r#","datacontenttype":"application/json","data":{}"#,
            json.trim().replace(['\n', '\r'], " ")
        ),
        None if bytes.is_empty() => String::new(),
        None => format!(
            r#","datacontenttype":"application/octet-stream","data_base64":{}"#,
            serde_json::to_string(&STANDARD.encode(bytes))?
        ),
    })
}

/// What a URN may hold, and the rest as `%XX`.
fn percent(text: &str) -> String {
    use std::fmt::Write;
    text.bytes().fold(String::with_capacity(text.len()), |mut made, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            made.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            write!(made, "%{byte:02X}").ok();
        }
        made
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_goes_in_as_it_is_or_in_base64() {
        let json = r#","datacontenttype":"application/json","data":{"b":1.0,  "a":"\n"}"#;
        assert_eq!(body(b" {\"b\":1.0,\n\r\"a\":\"\\n\"}\n").unwrap(), json);
        let octets = r#","datacontenttype":"application/octet-stream","data_base64":"AP8=""#;
        assert_eq!(body(&[0, 255]).unwrap(), octets);
        assert_eq!(body(b"").unwrap(), "");
        assert_eq!(percent("s_1/ä"), "s_1%2F%C3%A4");
    }
}
