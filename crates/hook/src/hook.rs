//! One call from start to end.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _, Write};
use std::path::Path;
use std::time::Duration;

use crate::clock::Deadline;
use crate::conf::{self, ANY, Conf, Section};
use crate::error::Error;
use crate::intake::Payload;
use crate::name::{self, Name};
use crate::wire::{Answer, Call};
use crate::{REFUSED, exchange, refuse, spool};

const LARGEST_CONF: u64 = 1024 * 1024;
/// How long an agent is listened to that will be refused whatever it says.
const COURTESY: Duration = Duration::from_secs(1);

/// Where the answer goes.
pub(crate) struct Output<'a> {
    pub(crate) stdout: &'a mut dyn Write,
    pub(crate) stderr: &'a mut dyn Write,
}

pub(crate) fn run(
    conf: &Path,
    agent: &OsStr,
    event: Option<&OsStr>,
    stdin: File,
    mut output: Output<'_>,
) -> u8 {
    let clock = Deadline::starting_now(COURTESY);
    match prepare(conf, agent, event) {
        Ok((conf, agent, event)) => answer(&conf, &agent, event, stdin, clock, &mut output),
        Err(error) => {
            // An agent whose write fails may take that for a broken hook and go on.
            Payload::default().fill(stdin, &clock).ok();
            refuse(&error, output.stderr)
        }
    }
}

fn prepare(
    path: &Path,
    agent: &OsStr,
    event: Option<&OsStr>,
) -> Result<(Conf, Name, Option<Name>), Error> {
    let agent = Name::parse(agent)?;
    let event = event.map(Name::parse).transpose()?;
    let unreadable = |source| Error::ConfUnreadable { path: path.to_owned(), source };
    let text = read_bounded(path).map_err(unreadable)?;
    let conf = conf::parse_for(&text, agent.as_str(), event.as_ref().map(Name::as_str))?;
    Ok((conf, agent, event))
}

fn read_bounded(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::with_capacity(4096);
    File::open(path)?.take(LARGEST_CONF + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST_CONF {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    String::from_utf8(bytes).map_err(|_| io::ErrorKind::InvalidData.into())
}

fn answer(
    conf: &Conf,
    agent: &Name,
    event: Option<Name>,
    stdin: File,
    clock: Deadline,
    output: &mut Output<'_>,
) -> u8 {
    let limit = match &event {
        Some(event) => conf.section(agent.as_str(), event.as_str()).map(|s| s.deadline),
        None => conf.shortest_deadline(agent.as_str()),
    };
    let idempotency = idempotency();
    let mut payload = Payload::default();
    let read = payload.fill(stdin, &clock.with_limit(limit.unwrap_or(COURTESY)));
    let (event, section) = route(conf, agent, event, &payload);
    let call =
        Call { agent, event: &event, key: &conf.key, idempotency: &idempotency, payload: &payload };
    let (section, asked) = match section {
        Some(section) => {
            let deadline = clock.with_limit(section.deadline);
            let asked = read.and_then(|()| exchange::ask(conf, &call, &deadline));
            (section, asked)
        }
        None => (Section::strictest(ANY, ANY), Err(Error::NoSection)),
    };
    match asked {
        Ok(answer) => output.deliver(&answer, section.gated),
        Err(error) => {
            // Registered under another name than the payload bears: nobody knows whether the agent waits on it.
            let misnamed = name::event_in(&payload.bytes).is_some_and(|named| named != event);
            let section = if misnamed && !section.gated {
                Section::strictest(agent.as_str(), event.as_str())
            } else {
                section
            };
            let exit = output.deliver(&fallback(&section, &error), section.gated);
            let answered = if section.gated { "deny" } else { "none" };
            if let Err(problem) = spool::keep(Path::new(&conf.spool), &call, answered) {
                output.note(&format!("Banister could not keep this event for later: {problem}."));
            }
            exit
        }
    }
}

/// Settles which event this is and which section speaks for it.
///
/// An event that nobody named may be one that the agent waits on, so then only a refusing section will do.
fn route(
    conf: &Conf,
    agent: &Name,
    event: Option<Name>,
    payload: &Payload,
) -> (Name, Option<Section>) {
    if let Some(event) = event.or_else(|| name::event_in(&payload.bytes)) {
        let section = conf.section(agent.as_str(), event.as_str()).cloned();
        return (event, section);
    }
    let section = conf.section(agent.as_str(), ANY).map(|section| {
        let strictest = Section::strictest(agent.as_str(), ANY);
        if section.gated {
            section.clone()
        } else {
            Section { deadline: section.deadline, ..strictest }
        }
    });
    (Name::unknown(), section)
}

fn fallback(section: &Section, error: &Error) -> Answer {
    let why = format!("{error}. {}", error.remedy());
    let mut stderr = section.stderr.replace("{why}", &why);
    if !stderr.is_empty() && !stderr.ends_with('\n') {
        stderr.push('\n');
    }
    // Agents that listen to stdout read JSON there, and one quote from outside must not break it.
    let quoted = why.replace('\\', "\\\\").replace('"', "\\\"");
    Answer {
        exit: section.exit,
        stdout: section.stdout.replace("{why}", &quoted).into_bytes(),
        stderr: stderr.into_bytes(),
    }
}

/// 128 random bits in hexadecimal: the same call is never counted twice.
fn idempotency() -> String {
    let mut bits = [0; 16];
    let random = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bits));
    if random.is_err() {
        bits = std::array::from_fn(|_| seeded_byte());
    }
    format!("{:032x}", u128::from_ne_bytes(bits))
}

/// A byte from the seed that std takes from the system, where no device can be opened.
fn seeded_byte() -> u8 {
    use std::hash::{BuildHasher as _, Hasher as _, RandomState};
    let [byte, ..] = RandomState::new().build_hasher().finish().to_ne_bytes();
    byte
}

impl Output<'_> {
    /// Hands over an answer; returns the exit code that goes with it.
    fn deliver(&mut self, answer: &Answer, gated: bool) -> u8 {
        let told = self.stdout.write_all(&answer.stdout).and_then(|()| self.stdout.flush());
        self.stderr.write_all(&answer.stderr).ok();
        // A refusal on a stdout that nobody reads would pass for consent.
        if told.is_err() && gated && answer.exit == 0 { REFUSED } else { answer.exit }
    }

    fn note(&mut self, line: &str) {
        writeln!(self.stderr, "{line}").ok();
    }
}
