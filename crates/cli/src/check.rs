//! `banister check`: any recorded or live stream against its protocol.
//!
//! Reads JSON lines, JSON documents, arrays, server-sent events, JSON-RPC lines and length-prefixed messages, packed or
//! not, in pieces: memory does not grow with the recording. Findings go to `out` as they are found, the summary for
//! people goes to `err`. Each input is a stream of its own, and one that cannot be read does not keep the others from
//! being checked.

use std::io::{self, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use banister_events::agui;
use banister_events::agui::encoding::{self, Encoding};
use banister_events::agui::input::RunInput;
use banister_events::agui::message::{Message, UserMessage};
use banister_events::check::Checker;
use banister_events::event::Protocol;
use banister_events::finding::{self, Finding, Rule, Severity};
use banister_events::text;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::json;

use self::exchange::Exchange;
use self::framing::{Framing, Label, each, unwrapped};
use self::human::{Human, frequent, summary};
use self::input::{Input, is_live, name};
use self::progress::Progress;
use self::report::{Report, Tally};
use self::stream::{Held, Sink, Stream, Unchecked};
use self::window::{Around, Measure, Place, Window};
use crate::failure::{FAILED, GOOD, REFUSED, USAGE};
use crate::{env, rules};

pub(crate) mod excerpt;
mod exchange;
pub(crate) mod framing;
mod human;
pub(crate) mod input;
mod json;
mod junit;
pub(crate) mod live;
pub(crate) mod messages;
mod progress;
mod report;
mod sarif;
mod stream;
mod window;

/// What `banister check` takes.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct CheckArgs {
    /// The protocol: aaep, agui or aep; detected from the first message if not given
    #[arg(long, value_name = "PROTOCOL")]
    pub(crate) protocol: Option<String>,
    /// Count warnings as errors, and check the opt-in rules
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
    pub(crate) max: Option<u64>,
    /// Whether to colour what people read
    #[arg(long, value_enum, default_value_t, value_name = "WHEN")]
    pub(crate) color: Color,
    /// Draw no progress line and no colour
    #[arg(long)]
    pub(crate) plain: bool,
    /// Stop after this many events
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) events: Option<u64>,
    #[arg(
        default_value = "-",
        value_name = "FILE|URL",
        help = "Recordings, packed or not: .jsonl, .json, .sse; - is standard input; or http://host:port/path, or https://host/path"
    )]
    pub(crate) inputs: Vec<String>,
    #[command(flatten)]
    pub(crate) live: LiveArgs,
}

/// How live endpoints are read.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Live endpoints")]
pub(crate) struct LiveArgs {
    /// Send a header, 'Name: value'; @FILE reads headers from a file, one per line
    #[arg(long, value_name = "HEADER")]
    pub(crate) header: Vec<String>,
    /// Stop after this many seconds
    #[arg(long = "for", value_name = "SECONDS", value_parser = seconds)]
    pub(crate) time: Option<Duration>,
    /// Wait this many seconds for an answer [default: 10], and then for an event [default: 30]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<Duration>,
    /// Open an AAEP subscription first; the address ends with /events
    #[arg(long)]
    pub(crate) subscribe: bool,
    #[arg(
        long,
        value_name = "FILE",
        help = "Send this RunAgentInput to an AG-UI agent; with --protocol agui alone, a minimal one"
    )]
    pub(crate) input: Option<PathBuf>,
}

/// How findings are printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// For people, with the source and the remedy
    #[default]
    Human,
    /// One JSON object
    Json,
    /// SARIF 2.1.0, for code hosts and editors
    Sarif,
    #[value(help = "JUnit XML, for build servers")]
    Junit,
}

/// When to use colour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Color {
    #[value(help = "On a terminal, unless NO_COLOR is set")]
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) if !time.is_zero() && seconds < 1e9 => Ok(time),
        _ => Err("not a number of seconds above zero".to_owned()),
    }
}

/// What can show an escape sequence.
#[derive(Debug, Clone, Copy, Default)]
struct Screen {
    out: bool,
    err: bool,
}

impl Screen {
    fn real() -> Self {
        let able = env::TERM.get().is_none_or(|term| term != "dumb");
        Self { out: able && io::stdout().is_terminal(), err: able && io::stderr().is_terminal() }
    }
}

/// Checks the inputs. Returns the exit code: 0 good, 1 errors found, 2 usage, 3 an input is not readable.
pub(crate) fn run(args: &CheckArgs, out: &mut dyn Write, err: &mut dyn Write) -> Result<u8> {
    run_on(Screen::real(), args, out, err)
}

fn run_on(
    screen: Screen,
    args: &CheckArgs,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8> {
    let settings = match Settings::new(args, screen) {
        Ok(settings) => settings,
        Err(message) => {
            writeln!(err, "error: {message}")?;
            return Ok(USAGE);
        }
    };
    let report: Box<dyn Report> = match settings.format {
        Format::Human => Box::new(Human { color: settings.color }),
        Format::Json => Box::new(json::Json::default()),
        Format::Sarif => Box::new(sarif::Sarif::new(settings.protocol)),
        Format::Junit => Box::new(junit::Junit::default()),
    };
    let progress = Progress::new(settings.progress);
    let mut sink = Sink {
        settings: &settings,
        out,
        err,
        report,
        progress,
        printed: 0,
        fresh: false,
        packed: false,
    };
    let mut total = Tally::default();
    let mut code = GOOD;
    let several = args.inputs.len() > 1;
    for (index, input) in args.inputs.iter().enumerate() {
        let printed = sink.printed;
        let (tally, verdict) = check(input, &mut sink)?;
        code = code.max(verdict);
        sink.report.input(sink.out, name(input), &tally)?;
        sink.out.flush()?;
        sink.progress.erase(sink.err)?;
        let label =
            if several { format!("{}: ", text::one_line(name(input))) } else { String::new() };
        if let Some(failure) = &tally.failure {
            writeln!(sink.err, "error: {}: {failure}", text::one_line(name(input)))?;
        }
        if tally.events > 0 && tally.protocol.is_some() {
            writeln!(sink.err, "{label}{}", summary(&tally, sink.printed - printed))?;
        }
        total.protocol = match (index, total.protocol == tally.protocol) {
            (0, _) => tally.protocol,
            (_, true) => total.protocol,
            _ => None,
        };
        total.add(&tally);
    }
    sink.report.finish(sink.out, &total)?;
    sink.out.flush()?;
    if several {
        writeln!(sink.err, "{} inputs, {}", args.inputs.len(), summary(&total, sink.printed))?;
    }
    if let Some(frequent) = frequent(&total) {
        writeln!(sink.err, "{frequent}")?;
    }
    Ok(code)
}

/// Checks one input; gives its sums and its exit code.
fn check(input: &str, sink: &mut Sink<'_>) -> Result<(Tally, u8)> {
    let settings = sink.settings;
    let name = name(input);
    sink.packed = false;
    let mut source = match input::open(input, &settings.live) {
        Ok(source) => source,
        Err(live::Refusal { reason, answer }) => {
            let mut stream = Stream::new(sink, false);
            if let Some(answer) = answer {
                stream.hold(handshake(&answer))?;
            }
            let (mut tally, _) = stream.finish(name, false)?;
            tally.failure = Some(reason);
            let code = if tally.errors > 0 { REFUSED } else { FAILED };
            return Ok((tally, code));
        }
    };
    sink.packed = source.packed;
    // A stream is joined where it is; a subscription begins with its answer.
    let mut stream = Stream::new(sink, source.live && source.answer.is_none());
    stream.ordered = source.live;
    if let Some(answer) = source.answer.take() {
        stream.hold(handshake(&answer))?;
    }
    if let Some(content_type) = &source.content_type {
        stream.exchange = settings.live.run.as_deref().map(Exchange::new);
        stream.answered(name, agui::check::answer(content_type).as_slice())?;
    }
    let form = encoding::of_response(source.content_type.as_deref());
    let mut framing = form.map_or_else(Framing::new, Framing::of);
    let end = read(name, &mut source, (&mut framing, form), &mut stream)?;
    stream.quirks = framing.quirks();
    let lingered = source.progress.lingered.get();
    stream.last = lingered.map(|time| agui::check::lingers(time.as_secs_f64()));
    let (mut tally, unchecked) = stream.finish(name, end == End::Whole || lingered.is_some())?;
    let (failure, code) = match (end, unchecked) {
        (End::Failed(failure), _) => (failure, FAILED),
        (End::Foreign(what), _) => (what.to_owned(), if source.live { FAILED } else { REFUSED }),
        (End::Whole | End::Stopped, None) => {
            let code = if tally.errors > 0 { REFUSED } else { GOOD };
            return Ok((tally, code));
        }
        (_, Some(Unchecked::NoEvents(instead))) => {
            let instead = instead.map_or(String::new(), |instead| format!(": {instead}"));
            let code = if source.live { FAILED } else { REFUSED };
            (format!("the input has no events{instead}"), code)
        }
        (_, Some(Unchecked::NoProtocol)) => {
            ("cannot tell the protocol of the input; name it with --protocol".to_owned(), USAGE)
        }
    };
    tally.failure = Some(failure);
    Ok((tally, code))
}

/// The answer to a subscription as a message to check.
fn handshake(answer: &live::SubscriptionAnswer) -> Held {
    Held {
        name: answer.url.clone(),
        place: Place::FIRST,
        around: Around::default(),
        label: Label::Plain,
        bytes: Ok(answer.body.to_vec()),
    }
}

/// How an input ended.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// All of it was read.
    Whole,
    /// We were told to stop.
    Stopped,
    /// It is something else than events.
    Foreign(&'static str),
    Failed(String),
}

/// Reads an input to its end, or to where it has to stop.
fn read(
    name: &str,
    source: &mut Input,
    (framing, mut form): (&mut Framing, Option<Encoding>),
    stream: &mut Stream<'_, '_>,
) -> Result<End> {
    let most = stream.sink.settings.events.unwrap_or(u64::MAX);
    let mut window = Window::default();
    loop {
        let count = match source.read(window.space()) {
            Ok(0) if source.progress.stopped.get() => return Ok(End::Stopped),
            Ok(0) if source.live && framing.unfinished_event() > 0 => {
                let (held, all) = (framing.unfinished_event(), source.stored.get());
                return Ok(End::Failed(format!(
                    "the connection ended after {all} bytes, {held} bytes into a message"
                )));
            }
            Ok(count) => count,
            Err(failure) => return Ok(End::Failed(failure)),
        };
        window.filled(count);
        if let (Some(form), Some(first)) = (form.take(), window.piece().first())
            && (form == Encoding::Protobuf) != (*first == 0)
        {
            let (kind, what) = (form.media_type(), if *first == 0 { "binary" } else { "text" });
            return Ok(End::Failed(format!("the answer calls itself {kind} and is {what}")));
        }
        let held = if framing.is_known() {
            None
        } else if let Some(held) = framing.tell(window.piece(), count == 0) {
            Some(held)
        } else {
            continue;
        };
        if let Some(what) = held.as_deref().and_then(framing::foreign) {
            return Ok(End::Foreign(what));
        }
        let mut rest = held.as_deref().unwrap_or(window.piece());
        loop {
            let measure = framing.measure();
            let (framed, label) = match framing.read(&mut rest) {
                Some(framed) => framed,
                None if count > 0 => break,
                None => match framing.end() {
                    Some(framed) => framed,
                    None => return Ok(End::Whole),
                },
            };
            for part in each(framed, measure == Measure::Plain).filter_map(unwrapped) {
                stream.message(name, (part, label), (&window, measure))?;
                source.progress.events.set(source.progress.events.get() + 1);
                source.progress.ended.set(stream.has_ended());
                if stream.tally.events >= most {
                    return Ok(End::Stopped);
                }
            }
        }
        stream.sink.refresh(&stream.tally, source.stored.get())?;
    }
}

/// The arguments, understood.
#[derive(Debug)]
pub(crate) struct Settings {
    protocol: Option<Protocol>,
    strict: bool,
    format: Format,
    allow: Vec<&'static str>,
    deny: Vec<&'static str>,
    max: u64,
    events: Option<u64>,
    color: bool,
    progress: bool,
    live: live::LiveOptions,
}

impl Settings {
    fn new(args: &CheckArgs, screen: Screen) -> Result<Self, String> {
        let codes = |codes: &[String]| -> Result<Vec<&'static str>, String> {
            codes.iter().map(|code| rules::find(code).map(|rule| rule.code)).collect()
        };
        for input in &args.inputs {
            usable(input, args.live.subscribe)?;
        }
        if args.inputs.iter().filter(|input| *input == "-").count() > 1 {
            return Err("standard input can be read once only".to_owned());
        }
        let protocol = args.protocol.as_deref().map(rules::protocol).transpose()?;
        // Only AAEP has subscriptions, and only AG-UI has agents that are sent something.
        let protocol = protocol.or(args.live.subscribe.then_some(Protocol::Aaep)).or(args
            .live
            .input
            .is_some()
            .then_some(Protocol::Agui));
        let format = if args.json { Format::Json } else { args.format };
        Ok(Self {
            protocol,
            strict: args.strict,
            format,
            allow: codes(&args.allow)?,
            deny: codes(&args.deny)?,
            // A rule whose findings were left out would look as if it had been kept.
            max: args.max.filter(|_| format != Format::Junit).unwrap_or(u64::MAX),
            events: args.events,
            color: match args.color {
                Color::Auto => screen.out && !args.plain && env::NO_COLOR.get().is_none(),
                Color::Always => true,
                Color::Never => false,
            },
            progress: screen.err && !args.plain && (format == Format::Human || !screen.out),
            live: live::LiveOptions {
                headers: headers(&args.live.header)?,
                timeout: args.live.timeout.unwrap_or(Duration::from_secs(10)),
                // Whoever says how long to read waits as long.
                patience: match args.live.time {
                    Some(_) => None,
                    None => Some(args.live.timeout.unwrap_or(Duration::from_secs(30))),
                },
                time: args.live.time,
                subscribe: args.live.subscribe,
                run: (protocol == Some(Protocol::Agui))
                    .then(|| run_input(args.live.input.as_deref()))
                    .transpose()?,
            },
        })
    }

    /// A checker with the rules that are asked for.
    fn checker(&self, protocol: Protocol) -> Checker {
        let checker = Checker::new(protocol);
        let opt_in = |rule: &&'static Rule| rule.opt_in && self.deny.contains(&rule.code);
        let wanted = self.strict || finding::rules(protocol).iter().any(opt_in);
        if wanted { checker.strict() } else { checker }
    }

    /// How much a finding matters here; none where it is dropped.
    fn severity(&self, finding: &Finding) -> Option<Severity> {
        let code = finding.rule.code;
        if self.deny.contains(&code) {
            return Some(Severity::Error);
        }
        if self.allow.contains(&code) || finding.rule.opt_in && !self.strict {
            return None;
        }
        match finding.rule.severity {
            Severity::Warning if self.strict => Some(Severity::Error),
            severity => Some(severity),
        }
    }
}

/// Says what is wrong with an input's name before anything is read.
fn usable(input: &str, subscribe: bool) -> Result<(), String> {
    let shown = text::one_line(input);
    for scheme in ["wss://", "ws://"] {
        if input.starts_with(scheme) {
            let instead = "websocat or another client's output | banister check -";
            return Err(format!("{scheme} addresses are not read; pipe them in: {instead}"));
        }
    }
    let path = input.split(['?', '#']).next().unwrap_or_default();
    if subscribe && !(is_live(input) && path.ends_with("/events")) {
        return Err(format!("--subscribe needs an address that ends with /events, not {shown}"));
    }
    Ok(())
}

/// What an AG-UI agent is sent: the input in a file, else a greeting.
fn run_input(file: Option<&Path>) -> Result<Bytes, String> {
    let Some(file) = file else {
        let id = format!("{:x}", std::process::id());
        let mut input = RunInput::new(format!("banister-check-{id}"), format!("run-{id}"));
        input.messages.push(Message::User(UserMessage::new("message-1", "Hello")));
        input.state = Some(json!({}));
        (input.tools, input.context) = (Some(Vec::new()), Some(Vec::new()));
        return Ok(serde_json::to_vec(&input).map_err(|error| error.to_string())?.into());
    };
    let shown = text::one_line(&file.to_string_lossy());
    let bytes = std::fs::read(file).map_err(|error| format!("cannot read {shown}: {error}"))?;
    match RunInput::parse(&bytes) {
        Ok(_) => Ok(bytes.into()),
        Err(error) => Err(format!("{shown} is no RunAgentInput: {error}")),
    }
}

/// Reads headers as they stand on the command line. What is wrong is said without the value: it may be a secret.
fn headers(given: &[String]) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for header in given {
        let Some(path) = header.strip_prefix('@') else {
            add_header(&mut headers, header)?;
            continue;
        };
        let content = std::fs::read_to_string(path).map_err(|error| {
            format!("cannot read headers from {}: {error}", text::one_line(path))
        })?;
        for line in content.lines().filter(|line| !line.trim().is_empty()) {
            add_header(&mut headers, line)?;
        }
    }
    Ok(headers)
}

fn add_header(headers: &mut HeaderMap, line: &str) -> Result<(), String> {
    let wrong = || "a header is written 'Name: value'".to_owned();
    let (name, value) = line.split_once(':').ok_or_else(wrong)?;
    let name = HeaderName::try_from(name.trim()).map_err(|_| wrong())?;
    let mut value = HeaderValue::try_from(value.trim()).map_err(|_| {
        format!("the value of header {name} has characters that a header cannot carry")
    })?;
    value.set_sensitive(true);
    headers.insert(name, value);
    Ok(())
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
