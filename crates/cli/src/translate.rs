//! `banister translate`: one protocol to another, and what that cost.
//!
//! Streams: an event leaves as soon as the other protocol can say it. AG-UI has one thread at a time, so the sessions of
//! a recording in which several are interleaved leave one after another (held on disk meanwhile), or in one file each.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Seek as _, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use banister_events::Written;
use banister_events::aaep::event::Verbosity;
use banister_events::aaep::voice::Voice;
use banister_events::aep::mapping::Agents;
use banister_events::event::Protocol;
use banister_events::locale::Locale;
use banister_events::text;
use banister_events::translate::{Report, Source, Translated, Translator};
use banister_gateway::clock::Clock;
use jiff::Timestamp;

use crate::check::framing::Framing;
use crate::check::input;
use crate::check::live::LiveOptions;
use crate::check::messages::{Stop, messages};
use crate::failure::{FAILED, Failure, GOOD, REFUSED};

/// What `banister translate` takes.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(
    after_help = "Exit codes: 0 events were written, whatever was lost; 1 there is nothing to translate; 2 wrong usage; \
                  3 the input is not readable"
)]
pub(crate) struct TranslateArgs {
    /// The protocol to write: aaep, agui or aep
    #[arg(long, value_name = "PROTOCOL")]
    pub(crate) to: String,
    /// The protocol to read, or hook:AGENT for a coding agent's own payloads; detected from the first message if not given
    #[arg(long, value_name = "PROTOCOL")]
    pub(crate) from: Option<String>,
    /// The hook of the payloads, where they do not name it
    #[arg(long, value_name = "NAME")]
    pub(crate) hook: Option<String>,
    /// The language of summaries (AAEP)
    #[arg(long, value_name = "TAG", default_value = "en")]
    pub(crate) lang: String,
    /// The verbosity of summaries (AAEP)
    #[arg(long, value_name = "LEVEL", default_value = "normal")]
    #[arg(value_parser = ["terse", "normal", "detailed"])]
    pub(crate) verbosity: String,
    /// The time of events without one, in RFC 3339; now if not given
    #[arg(long, value_name = "TIME")]
    pub(crate) time: Option<Timestamp>,
    /// Write one file per session into this directory, not to standard output
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Leave out the facts that travel in Banister's own extension fields, with which a translation can be taken back
    #[arg(long)]
    pub(crate) bare: bool,
    /// Print what was lost as one JSON document
    #[arg(long)]
    pub(crate) json: bool,
    /// Do not report what was lost
    #[arg(long, short, conflicts_with = "json")]
    pub(crate) quiet: bool,
    /// Recordings, packed or not, one after another: .jsonl, .json, .sse; - is standard input
    #[arg(default_value = "-", value_name = "FILE")]
    pub(crate) input: Vec<String>,
}

/// Translates recordings. Returns the exit code.
pub(crate) fn run(args: &TranslateArgs, out: &mut dyn Write, err: &mut dyn Write) -> Result<u8> {
    let to = Protocol::parse(&args.to).ok_or_else(|| unknown(&args.to))?;
    // Reading all mapping files takes longer than most translations.
    let from_hook = args.from.as_deref().is_some_and(|from| from.starts_with("hook:"));
    let agents = from_hook.then(Agents::builtin).transpose()?;
    let mut source =
        args.from.as_deref().map(|from| source(from, args, agents.as_ref())).transpose()?;
    let voice = Voice {
        language: language(&args.lang)?,
        verbosity: Verbosity::parse(&args.verbosity),
        carry: !args.bare,
        ..Voice::default()
    };
    let mut outlet = match &args.out {
        Some(directory) => Outlet::Files(Files::new(directory)?),
        None if to == Protocol::Agui => Outlet::InTurn(InTurn::default()),
        None => Outlet::AsTheyCome,
    };
    let mut translator = None;
    let mut code = GOOD;
    for name in &args.input {
        let stop = read(name, |message| {
            let sniffed = || Protocol::sniff_bytes(message).map(Source::Protocol);
            source = source.or_else(sniffed);
            let Some(source) = source else {
                let what = "the protocol cannot be told by the first message; name it with --from";
                return Ok(Some((what.to_owned(), REFUSED)));
            };
            let translator =
                translator.get_or_insert_with(|| Translator::new(source, to, voice.clone()));
            let now = args.time.unwrap_or_else(|| Clock::System.now());
            // What is not JSON stands in the report, with its number; the next message is read.
            let told = translator.message(message, now).unwrap_or_default();
            outlet.take(told, translator, out)?;
            if name == "-" {
                out.flush()?;
            }
            Ok(None)
        })?;
        if let Some((failure, stopped)) = stop {
            writeln!(err, "error: {}: {failure}", text::one_line(input::name(name)))?;
            code = code.max(stopped);
        }
    }
    let Some(mut translator) = translator else {
        if code == GOOD {
            writeln!(err, "error: the input has no messages")?;
        }
        return Ok(code.max(REFUSED));
    };
    let last = translator.finish();
    outlet.take(last, &translator, out)?;
    outlet.end(out)?;
    // On a screen, and in a file that takes both, the report comes last.
    out.flush()?;
    let report = translator.report();
    if args.json {
        writeln!(err, "{}", report.to_json())?;
    } else if !args.quiet {
        tell(report, err)?;
    }
    Ok(if report.events == 0 { code.max(REFUSED) } else { code })
}

fn read(name: &str, mut take: impl FnMut(&[u8]) -> Result<Option<Stop>>) -> Result<Option<Stop>> {
    let mut source = match input::open(name, &LiveOptions::default()) {
        Ok(source) => source,
        Err(refusal) => return Ok(Some((refusal.reason.clone(), FAILED))),
    };
    messages(&mut source, &mut Framing::new(), |message| match message {
        Ok(bytes) => take(bytes),
        // Not even a message could be cut out: it is reported as one that is not JSON.
        Err(error) => take(format!("\u{0}{error}").as_bytes()),
    })
}

fn source<'a>(
    from: &str,
    args: &'a TranslateArgs,
    agents: Option<&'a Agents>,
) -> Result<Source<'a>> {
    if let (Some(agent), Some(agents)) = (from.strip_prefix("hook:"), agents) {
        let mapping = agents.find(agent).ok_or_else(|| {
            let known: Vec<&str> = agents.iter().map(|agent| agent.name.as_str()).collect();
            Failure::usage(format!(
                "there is no agent {agent:?}; these are known: {}",
                known.join(", ")
            ))
        })?;
        return Ok(Source::Hook { mapping, hook: args.hook.as_deref() });
    }
    if args.hook.is_some() {
        return Err(Failure::usage("--hook goes with --from hook:AGENT").into());
    }
    Protocol::parse(from).map(Source::Protocol).ok_or_else(|| unknown(from).into())
}

fn unknown(name: &str) -> Failure {
    Failure::usage(format!("{name:?} is no protocol; use aaep, agui or aep"))
}

/// The catalogue's language for a tag. One that is not there is told, not replaced.
fn language(tag: &str) -> Result<String> {
    let found = Locale::choose([tag]).tag;
    let primary = tag.split(['-', '_']).next().unwrap_or_default();
    if found.eq_ignore_ascii_case(primary) || found.eq_ignore_ascii_case(tag) {
        return Ok(found.to_owned());
    }
    let tags = Locale::tags().join(", ");
    Err(Failure::usage(format!("there is no catalogue for {tag:?}; these are there: {tags}"))
        .into())
}

/// Where events go.
enum Outlet {
    AsTheyCome,
    InTurn(InTurn),
    Files(Files),
}

impl Outlet {
    fn take(
        &mut self,
        told: Vec<Translated>,
        translator: &Translator<'_>,
        out: &mut dyn Write,
    ) -> Result<()> {
        for told in told {
            match self {
                Self::AsTheyCome => line(out, &told.event)?,
                Self::InTurn(turns) => turns.take(&told, out)?,
                Self::Files(files) => files.take(&told)?,
            }
        }
        match self {
            Self::InTurn(turns) => turns.pass_on(|lane| translator.is_open(lane), out),
            Self::AsTheyCome | Self::Files(_) => Ok(()),
        }
    }

    fn end(&mut self, out: &mut dyn Write) -> Result<()> {
        match self {
            Self::AsTheyCome => Ok(()),
            Self::InTurn(turns) => turns.pass_on(|_| false, out),
            Self::Files(files) => files.end(),
        }
    }
}

fn line(out: &mut dyn Write, event: &Written) -> Result<()> {
    let mut line = Vec::new();
    event.write_json(&mut line);
    line.push(b'\n');
    Ok(out.write_all(&line)?)
}

/// One session at a time: what another says meanwhile waits, on disk if it is much.
#[derive(Default)]
struct InTurn {
    speaks: Option<usize>,
    waiting: BTreeMap<usize, Held>,
}

/// How much of a waiting session is kept in memory.
const HELD: usize = 1024 * 1024;

#[derive(Default)]
struct Held {
    newest: Vec<u8>,
    disk: Option<File>,
}

impl InTurn {
    fn take(&mut self, told: &Translated, out: &mut dyn Write) -> Result<()> {
        let speaks = *self.speaks.get_or_insert(told.lane);
        if speaks == told.lane {
            return line(out, &told.event);
        }
        let held = self.waiting.entry(told.lane).or_default();
        told.event.write_json(&mut held.newest);
        held.newest.push(b'\n');
        if held.newest.len() > HELD {
            held.spill()?;
        }
        Ok(())
    }

    /// Once nobody is in the middle of a run, those who waited are heard, up to one who is.
    fn pass_on(&mut self, is_open: impl Fn(usize) -> bool, out: &mut dyn Write) -> Result<()> {
        if self.speaks.is_some_and(&is_open) {
            return Ok(());
        }
        self.speaks = None;
        while let Some((lane, held)) = self.waiting.pop_first() {
            held.tell(out)?;
            if is_open(lane) {
                self.speaks = Some(lane);
                break;
            }
        }
        Ok(())
    }
}

impl Held {
    fn spill(&mut self) -> Result<()> {
        let disk = match &mut self.disk {
            Some(disk) => disk,
            none => none.insert(tempfile::tempfile().context("no temporary file could be made")?),
        };
        disk.write_all(&self.newest)?;
        self.newest.clear();
        Ok(())
    }

    fn tell(self, out: &mut dyn Write) -> Result<()> {
        if let Some(mut disk) = self.disk {
            disk.rewind()?;
            let mut piece = vec![0; 64 * 1024];
            loop {
                match disk.read(&mut piece)? {
                    0 => break,
                    count => out.write_all(piece.get(..count).unwrap_or_default())?,
                }
            }
        }
        Ok(out.write_all(&self.newest)?)
    }
}

/// One file per session.
struct Files {
    directory: PathBuf,
    held: BTreeMap<usize, Vec<u8>>,
    begun: BTreeMap<usize, PathBuf>,
}

/// How much of a session is kept before it is written to its file.
const PAGE: usize = 64 * 1024;

impl Files {
    fn new(directory: &Path) -> Result<Self> {
        fs::create_dir_all(directory)
            .with_context(|| format!("{} cannot be made", directory.display()))?;
        Ok(Self { directory: directory.to_owned(), held: BTreeMap::new(), begun: BTreeMap::new() })
    }

    fn take(&mut self, told: &Translated) -> Result<()> {
        let held = self.held.entry(told.lane).or_default();
        told.event.write_json(held);
        held.push(b'\n');
        if held.len() < PAGE { Ok(()) } else { self.write(told.lane) }
    }

    fn end(&mut self) -> Result<()> {
        let lanes: Vec<usize> = self.held.keys().copied().collect();
        lanes.into_iter().try_for_each(|lane| self.write(lane))
    }

    fn write(&mut self, lane: usize) -> Result<()> {
        let Some(page) = self.held.remove(&lane) else { return Ok(()) };
        let path = self.directory.join(format!("session-{:04}.jsonl", lane + 1));
        let begun = self.begun.insert(lane, path.clone()).is_some();
        let mut options = OpenOptions::new();
        // A file that was there before is not added to, and not overwritten unseen.
        if begun {
            options.append(true)
        } else {
            options.write(true).create_new(true)
        };
        let file = options.open(&path);
        let mut file = file.with_context(|| format!("{} cannot be written", path.display()))?;
        Ok(file.write_all(&page)?)
    }
}

/// What it cost, for people.
fn tell(report: &Report, err: &mut dyn Write) -> Result<()> {
    let plural =
        |count: u64, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    writeln!(
        err,
        "{} to {}: {} read, {} written",
        report.from,
        report.to,
        plural(report.messages, "message"),
        plural(report.events, "event")
    )?;
    let (unread, count) = report.unread();
    for (message, why) in unread.iter().take(SHOWN) {
        writeln!(err, "  message {message} was not read: {}", text::one_line(why))?;
    }
    rest(err, unread.len(), count)?;
    let lost: Vec<(&str, &str, u64)> = report.lost().collect();
    if !lost.is_empty() {
        writeln!(err, "Fields that {} has no place for:", report.to.title())?;
    }
    for (kind, field, count) in lost.iter().take(SHOWN) {
        writeln!(err, "  {kind} {} ({count})", text::one_line(field))?;
    }
    rest(err, lost.len(), lost.len() as u64)?;
    let notes: Vec<(String, u64)> = report
        .notes()
        .map(|(kind, about, count)| (format!("{}: {}", kind.words(), text::one_line(about)), count))
        .collect();
    if !notes.is_empty() {
        writeln!(err, "What had to be done to stay within {}:", report.to.title())?;
    }
    for (note, count) in notes.iter().take(SHOWN) {
        writeln!(err, "  {note} ({count})")?;
    }
    rest(err, notes.len(), notes.len() as u64)
}

/// How many lines of a kind people are shown; --json has all of them.
const SHOWN: usize = 20;

fn rest(err: &mut dyn Write, kept: usize, count: u64) -> Result<()> {
    let shown = kept.min(SHOWN) as u64;
    if count > shown {
        writeln!(err, "  and {} more; --json tells all", count - shown)?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "translate_tests.rs"]
mod tests;
