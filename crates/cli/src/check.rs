//! `banister check`: any recorded stream against its protocol.
//!
//! Reads JSON lines, JSON documents, arrays and server-sent events, in pieces: memory does not grow with the
//! recording. Findings go to `out` as they are found, the summary for people goes to `err`. A recording of one
//! message is one event and is not judged by the order of events.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};
use banister_events::check::{self, Checker};
use banister_events::event::Protocol;
use banister_events::finding::{Finding, Severity};
use banister_events::frame::json::Documents;
use banister_events::frame::ndjson::Lines;
use banister_events::frame::{self, sse};
use banister_events::limits::MESSAGE_BYTES;
use serde_json::{Value, json};

use crate::rules;

/// What `banister check` takes.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct CheckArgs {
    /// The protocol: aaep, agui or aep; told by the first message if not given
    #[arg(long, value_name = "PROTOCOL")]
    pub(crate) protocol: Option<String>,
    /// Count warnings as errors
    #[arg(long)]
    pub(crate) strict: bool,
    /// How findings are printed
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,
    /// Drop the findings of a rule
    #[arg(long, value_name = "CODE")]
    pub(crate) allow: Vec<String>,
    /// Count the findings of a rule as errors
    #[arg(long, value_name = "CODE")]
    pub(crate) deny: Vec<String>,
    /// Print at most this many findings; all are counted
    #[arg(long, value_name = "N")]
    pub(crate) max: Option<usize>,
    /// The recording: .jsonl, .json or .sse; - is standard input
    #[arg(default_value = "-")]
    pub(crate) input: PathBuf,
}

/// How findings are printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// Two lines per finding
    #[default]
    Human,
    /// One JSON object
    Json,
}

/// How much is read at once.
const PIECE: usize = 64 * 1024;

/// Checks a recording. Returns the exit code: 0 good, 1 errors found, 2 usage, 3 the recording is not readable.
pub(crate) fn run(args: &CheckArgs, out: &mut dyn Write, err: &mut dyn Write) -> Result<u8> {
    let settings = match Settings::new(args) {
        Ok(settings) => settings,
        Err(message) => {
            writeln!(err, "error: {message}")?;
            return Ok(2);
        }
    };
    let from_stdin = args.input.as_os_str() == "-";
    let file = if from_stdin { None } else { Some(File::open(&args.input)) };
    let mut input: Box<dyn Read> = match file {
        None => Box::new(io::stdin().lock()),
        Some(Ok(file)) => Box::new(file),
        Some(Err(error)) => {
            writeln!(err, "error: cannot read {}: {error}", args.input.display())?;
            return Ok(3);
        }
    };
    let mut stream = Stream::new(&settings, out);
    let mut source = Source::Unknown(Vec::new());
    let mut piece = vec![0; PIECE];
    loop {
        let count = match input.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => {
                writeln!(err, "error: cannot read {}: {error}", args.input.display())?;
                return Ok(3);
            }
        };
        source.push(piece.get(..count).unwrap_or_default(), &mut stream)?;
    }
    source.finish(&mut stream)?;
    stream.finish(err)
}

/// The arguments, understood.
struct Settings {
    protocol: Option<Protocol>,
    strict: bool,
    format: Format,
    allow: Vec<&'static str>,
    deny: Vec<&'static str>,
    max: usize,
}

impl Settings {
    fn new(args: &CheckArgs) -> Result<Self, String> {
        let codes = |codes: &[String]| -> Result<Vec<&'static str>, String> {
            codes.iter().map(|code| rules::find(code).map(|rule| rule.code)).collect()
        };
        Ok(Self {
            protocol: args.protocol.as_deref().map(rules::protocol).transpose()?,
            strict: args.strict,
            format: if args.json { Format::Json } else { args.format },
            allow: codes(&args.allow)?,
            deny: codes(&args.deny)?,
            max: args.max.unwrap_or(usize::MAX),
        })
    }

    /// How much a finding matters here; none where it is dropped.
    fn severity(&self, finding: &Finding) -> Option<Severity> {
        let code = finding.rule.code;
        if self.deny.contains(&code) {
            return Some(Severity::Error);
        }
        if self.allow.contains(&code) {
            return None;
        }
        match finding.rule.severity {
            Severity::Warning if self.strict => Some(Severity::Error),
            severity => Some(severity),
        }
    }
}

/// What the bytes look like.
enum Source {
    /// Too few bytes to tell.
    Unknown(Vec<u8>),
    Lines(Lines),
    Documents(Documents),
    Sse(sse::Parser),
}

impl Source {
    fn push(&mut self, bytes: &[u8], stream: &mut Stream<'_>) -> Result<()> {
        if let Self::Unknown(held) = self {
            held.extend_from_slice(bytes);
            let Some(found) = sniff(held, false) else {
                return Ok(());
            };
            let held = std::mem::take(held);
            *self = found;
            return self.read(without_mark(&held), stream);
        }
        self.read(bytes, stream)
    }

    fn read(&mut self, bytes: &[u8], stream: &mut Stream<'_>) -> Result<()> {
        match self {
            Self::Unknown(_) => {}
            Self::Lines(lines) => {
                lines.push(bytes);
                while let Some((number, line)) = lines.next() {
                    stream.message(number, line)?;
                }
            }
            Self::Documents(documents) => {
                let mut complete = Vec::new();
                documents.push(bytes, |document| complete.push(document));
                for (line, document) in complete {
                    stream.message(line, document.as_deref().map_err(|error| *error))?;
                }
            }
            Self::Sse(parser) => {
                let pushed = parser.push(bytes);
                while let Some(message) = parser.next() {
                    stream.message(message.line, Ok(message.data.as_bytes()))?;
                }
                if let Err(error) = pushed {
                    stream.message(0, Err(error))?;
                }
            }
        }
        Ok(())
    }

    fn finish(mut self, stream: &mut Stream<'_>) -> Result<()> {
        if let Self::Unknown(held) = &mut self {
            let held = std::mem::take(held);
            self = sniff(&held, true).unwrap_or_else(|| Self::Lines(Lines::new(MESSAGE_BYTES)));
            self.read(without_mark(&held), stream)?;
        }
        match &mut self {
            Self::Unknown(_) => {}
            Self::Lines(lines) => {
                lines.finish();
                self.read(&[], stream)?;
            }
            Self::Documents(documents) => {
                if let Some((line, document)) = documents.finish() {
                    stream.message(line, document.as_deref().map_err(|error| *error))?;
                }
            }
            Self::Sse(parser) => {
                if let Some(message) = parser.finish() {
                    stream.message(message.line, Ok(message.data.as_bytes()))?;
                }
            }
        }
        Ok(())
    }
}

fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes)
}

/// Tells the format from the first bytes; none where more are needed.
fn sniff(held: &[u8], all: bool) -> Option<Source> {
    let text = without_mark(held).trim_ascii_start();
    match text.first()? {
        b'[' => Some(Source::Documents(Documents::new(MESSAGE_BYTES))),
        b'{' => {
            // A document that goes on after its first line is laid out for people: not JSON lines.
            let end = text.iter().position(|byte| *byte == b'\n');
            if end.is_none() && !all && text.len() <= MESSAGE_BYTES {
                return None;
            }
            let line = text.get(..end.unwrap_or(text.len())).unwrap_or_default();
            let goes_on = serde_json::from_slice::<serde::de::IgnoredAny>(line)
                .is_err_and(|error| error.is_eof());
            Some(if goes_on && end.is_some() {
                Source::Documents(Documents::new(MESSAGE_BYTES))
            } else {
                Source::Lines(Lines::new(MESSAGE_BYTES))
            })
        }
        _ => Some(Source::Sse(sse::Parser::new(MESSAGE_BYTES))),
    }
}

/// How many messages may pass before one has to tell its protocol: they are held until then.
const PATIENCE: usize = 4;

/// The stream of messages, and what is known of it.
struct Stream<'a> {
    report: Report<'a>,
    checker: Option<(Protocol, Checker)>,
    /// Messages that came before the protocol was known.
    held: Vec<(u64, Result<Vec<u8>, frame::Error>)>,
    /// What is wrong with the first message's place, which counts only if another follows.
    first: Option<(u64, Vec<Finding>)>,
    events: u64,
}

impl<'a> Stream<'a> {
    fn new(settings: &'a Settings, out: &'a mut dyn Write) -> Self {
        let report =
            Report { settings, out, errors: 0, warnings: 0, notes: 0, printed: 0, open: false };
        let checker = settings.protocol.map(|protocol| (protocol, Checker::new(protocol)));
        Self { report, checker, held: Vec::new(), first: None, events: 0 }
    }

    fn message(&mut self, line: u64, bytes: Result<&[u8], frame::Error>) -> Result<()> {
        self.events += 1;
        if self.checker.is_some() {
            return self.check(line, bytes);
        }
        if self.held.len() >= PATIENCE {
            return Ok(());
        }
        let message = bytes.ok().and_then(|bytes| serde_json::from_slice::<Value>(bytes).ok());
        let Some(protocol) = message.as_ref().and_then(Protocol::sniff) else {
            self.held.push((line, bytes.map(<[u8]>::to_vec)));
            return Ok(());
        };
        self.checker = Some((protocol, Checker::new(protocol)));
        for (line, held) in std::mem::take(&mut self.held) {
            self.check(line, held.as_deref().map_err(|error| *error))?;
        }
        self.check(line, bytes)
    }

    fn check(&mut self, line: u64, bytes: Result<&[u8], frame::Error>) -> Result<()> {
        let Some((protocol, checker)) = &mut self.checker else {
            return Ok(());
        };
        let protocol = *protocol;
        if let Some((line, findings)) = self.first.take() {
            self.report.all(protocol, Some(line), &findings)?;
        }
        let message = match bytes {
            Ok(bytes) => check::parse(protocol, bytes),
            Err(error) => Err(check::unframed(protocol, error)),
        };
        let (findings, order) = match message {
            Ok(message) => (check::event(protocol, &message), checker.order(&message)),
            Err(finding) => (vec![finding], Vec::new()),
        };
        let line_known = Some(line).filter(|line| *line > 0);
        self.report.all(protocol, line_known, &findings)?;
        if self.events == 1 {
            self.first = Some((line, order));
            return Ok(());
        }
        self.report.all(protocol, line_known, &order)
    }

    fn finish(mut self, err: &mut dyn Write) -> Result<u8> {
        let Some((protocol, checker)) = &mut self.checker else {
            let (message, code) = match self.events {
                0 => ("the input has no events", 1),
                _ => ("cannot tell the protocol of the input; name it with --protocol", 2),
            };
            writeln!(err, "error: {message}")?;
            return Ok(code);
        };
        let protocol = *protocol;
        if self.events > 1 {
            let findings = checker.finish();
            self.report.all(protocol, None, &findings)?;
        }
        if self.events == 0 {
            writeln!(err, "error: the input has no events")?;
        }
        self.report.finish(protocol, self.events, err)?;
        Ok(u8::from(self.report.errors > 0 || self.events == 0))
    }
}

/// Prints and counts findings.
struct Report<'a> {
    settings: &'a Settings,
    out: &'a mut dyn Write,
    errors: u64,
    warnings: u64,
    notes: u64,
    printed: usize,
    /// Whether the JSON object was begun.
    open: bool,
}

impl Report<'_> {
    fn all(&mut self, protocol: Protocol, line: Option<u64>, findings: &[Finding]) -> Result<()> {
        for finding in findings {
            let Some(severity) = self.settings.severity(finding) else {
                continue;
            };
            match severity {
                Severity::Error => self.errors += 1,
                Severity::Warning => self.warnings += 1,
                Severity::Note => self.notes += 1,
            }
            if self.printed >= self.settings.max {
                continue;
            }
            match self.settings.format {
                Format::Human => self.human(severity, line, finding)?,
                Format::Json => self.json(protocol, severity, line, finding)?,
            }
            self.printed += 1;
        }
        Ok(())
    }

    fn human(&mut self, severity: Severity, line: Option<u64>, finding: &Finding) -> Result<()> {
        let place = match (line, finding.pointer.as_str()) {
            (Some(line), "") => format!("line {line}"),
            (Some(line), pointer) => format!("line {line}, {pointer}"),
            (None, "") => "end of input".to_owned(),
            (None, pointer) => pointer.to_owned(),
        };
        let code = finding.rule.code;
        writeln!(self.out, "{}[{code}] {place}: {}", severity.name(), finding.message)?;
        writeln!(self.out, "  help: {}", finding.rule.remedy)?;
        Ok(())
    }

    fn json(
        &mut self,
        protocol: Protocol,
        severity: Severity,
        line: Option<u64>,
        finding: &Finding,
    ) -> Result<()> {
        let comma = if self.printed > 0 { "," } else { "" };
        self.begin(protocol)?;
        let row = json!({
            "code": finding.rule.code,
            "severity": severity,
            "line": line,
            "pointer": finding.pointer,
            "message": finding.message,
            "remedy": finding.rule.remedy,
        });
        write!(self.out, "{comma}{row}").context("cannot write findings")
    }

    /// Begins the JSON object: it is written as findings come, so that none has to be held.
    fn begin(&mut self, protocol: Protocol) -> Result<()> {
        if !std::mem::replace(&mut self.open, true) {
            let protocol = protocol.name();
            write!(
                self.out,
                r#"{{"schema":"banister.check/v1","protocol":"{protocol}","findings":["#
            )?;
        }
        Ok(())
    }

    fn finish(&mut self, protocol: Protocol, events: u64, err: &mut dyn Write) -> Result<()> {
        let Self { errors, warnings, notes, .. } = *self;
        if self.settings.format == Format::Json {
            self.begin(protocol)?;
            writeln!(
                self.out,
                r#"],"events":{events},"errors":{errors},"warnings":{warnings},"notes":{notes}}}"#
            )?;
            return Ok(());
        }
        let counts = [count(errors, "error"), count(warnings, "warning"), count(notes, "note")];
        let shown = if notes > 0 {
            counts.join(", ")
        } else {
            counts.get(..2).unwrap_or(&counts).join(", ")
        };
        let all = errors + warnings + notes;
        let more = match u64::try_from(self.printed) {
            Ok(printed) if printed < all => format!(" ({printed} of {all} shown)"),
            _ => String::new(),
        };
        // The findings first: they may be waiting in a buffer.
        self.out.flush()?;
        writeln!(err, "{}, {}: {shown}{more}", count(events, "event"), protocol.title())?;
        Ok(())
    }
}

fn count(number: u64, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
