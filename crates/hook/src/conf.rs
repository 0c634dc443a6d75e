//! `hook.conf`: where the gateway is, and what to answer when it is not there.
//!
//! The file lies beside the executable and is written at install. Writer ([`render`]) and reader ([`parse`])
//! are both here, so that they cannot drift apart. The environment is never consulted: an agent can set it.
//!
//! Lines are `key = value`, `[agent event]` or a comment that *begins* with `#`; a `#` inside a value is part
//! of it. Values are one line with `\n`, `\r` and `\\` escaped. A line that is not understood makes the file
//! unusable rather than being skipped: a misspelt `gated` must not turn a gate off.

use std::fmt::Write as _;
use std::time::Duration;

use crate::error::Error;
use crate::name::Name;

/// The longest deadline a section may have.
pub const LONGEST_DEADLINE: Duration = Duration::from_hours(24);

/// The event (or agent) of a section that fits any.
pub const ANY: &str = "*";

/// Everything the hook knows without asking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conf {
    /// Path of the gateway's Unix socket.
    pub socket: String,
    /// The emit key, sent as a bearer token.
    pub key: String,
    /// The directory that takes payloads which no gateway took.
    pub spool: String,
    /// How long a gateway that went away is waited for.
    pub reconnect: Duration,
    /// What to do per agent and event.
    pub sections: Vec<Section>,
}

/// How calls of one agent and event are handled when the gateway gives no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// The agent's install name, or [`ANY`].
    pub agent: String,
    /// The agent's own name of the event, or [`ANY`].
    pub event: String,
    /// How long the hook may take in all; shorter than the agent's own limit.
    pub deadline: Duration,
    /// Whether the agent waits for permission here.
    pub gated: bool,
    /// The exit code of the fallback.
    pub exit: u8,
    /// The fallback's stdout; `{why}` becomes the reason, escaped as the inside of a JSON string.
    pub stdout: String,
    /// The fallback's stderr; `{why}` becomes the reason as it is.
    pub stderr: String,
}

impl Section {
    /// A section that refuses with exit code 2 and the reason on stderr.
    pub fn strictest(agent: impl Into<String>, event: impl Into<String>) -> Self {
        Self {
            agent: agent.into(),
            event: event.into(),
            deadline: Duration::from_secs(4),
            gated: true,
            exit: 2,
            stdout: String::new(),
            stderr: String::from("Banister refused this: {why}"),
        }
    }

    fn fits(&self, agent: &str, event: &str) -> bool {
        self.agent == agent && self.event == event
    }
}

impl Conf {
    /// The section for an agent's event: its own, else the agent's `*`, else `[* *]`.
    pub fn section(&self, agent: &str, event: &str) -> Option<&Section> {
        [(agent, event), (agent, ANY), (ANY, ANY)]
            .into_iter()
            .find_map(|(agent, event)| self.sections.iter().find(|s| s.fits(agent, event)))
    }

    /// The shortest deadline any event of this agent has, for when the event is not known yet.
    pub(crate) fn shortest_deadline(&self, agent: &str) -> Option<Duration> {
        let own = self.sections.iter().filter(|s| s.agent == agent).map(|s| s.deadline).min();
        own.or_else(|| self.section(ANY, ANY).map(|s| s.deadline))
    }
}

/// Writes a configuration so that [`parse`] reads the same one.
///
/// A `[* *]` section is added when there is none. Sections under names that no hook can be called with are
/// left out: nothing could ever reach them.
pub fn render(conf: &Conf) -> String {
    let mut text = String::from("# Written by Banister. Read by banister-hook beside this file.\n");
    for (key, value) in [("socket", &conf.socket), ("key", &conf.key), ("spool", &conf.spool)] {
        pair(&mut text, key, value);
    }
    pair(&mut text, "reconnect_ms", &conf.reconnect.as_millis().to_string());
    for each in conf.sections.iter().filter(|s| can_be_called(&s.agent) && can_be_called(&s.event))
    {
        section(&mut text, each);
    }
    if !conf.sections.iter().any(|s| s.fits(ANY, ANY)) {
        section(&mut text, &Section::strictest(ANY, ANY));
    }
    text
}

fn can_be_called(name: &str) -> bool {
    name == ANY || Name::parse(name.as_ref()).is_ok()
}

fn section(text: &mut String, section: &Section) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "[{} {}]", section.agent, section.event);
    pair(text, "deadline_ms", &section.deadline.as_millis().to_string());
    pair(text, "gated", if section.gated { "yes" } else { "no" });
    pair(text, "exit", &section.exit.to_string());
    pair(text, "stdout", &section.stdout);
    pair(text, "stderr", &section.stderr);
}

fn pair(text: &mut String, key: &str, value: &str) {
    text.push_str(key);
    text.push_str(" = ");
    for character in value.chars() {
        match character {
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\\' => text.push_str("\\\\"),
            other => text.push(other),
        }
    }
    text.push('\n');
}

/// Reads a whole configuration.
pub fn parse(text: &str) -> Result<Conf, Error> {
    parse_where(text, |_, _| true)
}

/// Reads the head of a configuration and those sections that can fit one call.
///
/// `event` is `None` while it is not known. Other sections cost a look at each line, no more.
pub(crate) fn parse_for(text: &str, agent: &str, event: Option<&str>) -> Result<Conf, Error> {
    parse_where(text, |section_agent, section_event| {
        (section_agent == agent || section_agent == ANY)
            && (section_event == ANY || event.is_none_or(|event| event == section_event))
    })
}

fn parse_where(text: &str, wanted: impl Fn(&str, &str) -> bool) -> Result<Conf, Error> {
    let mut head = Head::default();
    let mut sections: Vec<Section> = Vec::new();
    let mut place = Place::Head;
    for (index, line) in text.lines().enumerate() {
        let invalid = |problem| Error::ConfInvalid { line: index + 1, problem };
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(title) = line.strip_prefix('[') {
            let (agent, event) = title
                .strip_suffix(']')
                .and_then(|title| title.split_once(' '))
                .ok_or_else(|| invalid("a section is written [agent event]"))?;
            if wanted(agent, event) {
                if sections.iter().any(|s| s.fits(agent, event)) {
                    return Err(invalid("this section was there before"));
                }
                sections.push(Section::strictest(agent, event));
                place = Place::Section;
            } else {
                place = Place::Skipped;
            }
            continue;
        }
        if let Place::Skipped = place {
            continue;
        }
        let (key, value) = line.split_once('=').ok_or_else(|| invalid("a line is key = value"))?;
        let value = unescape(value.strip_prefix(' ').unwrap_or(value)).map_err(invalid)?;
        match (&place, sections.last_mut()) {
            (Place::Section, Some(section)) => section.set(key.trim_end(), value),
            _ => head.set(key.trim_end(), value),
        }
        .map_err(invalid)?;
    }
    if sections.iter().any(|s| s.gated && s.exit == 0 && s.stdout.trim().is_empty()) {
        let problem = "a gated section must refuse, by its exit code or on stdout";
        return Err(Error::ConfInvalid { line: 0, problem });
    }
    head.complete(sections)
}

enum Place {
    Head,
    Section,
    Skipped,
}

#[derive(Default)]
struct Head {
    socket: Option<String>,
    key: Option<String>,
    spool: Option<String>,
    reconnect: Option<Duration>,
}

impl Head {
    fn set(&mut self, key: &str, value: String) -> Result<(), &'static str> {
        match key {
            "socket" => self.socket = Some(value),
            // The key becomes part of a header line.
            "key" if value.bytes().all(|byte| byte.is_ascii_graphic()) => self.key = Some(value),
            "key" => return Err("a key is made of printable ASCII characters"),
            "spool" => self.spool = Some(value),
            "reconnect_ms" => self.reconnect = Some(milliseconds(&value)?),
            _ => return Err("this key is not known outside a section"),
        }
        Ok(())
    }

    fn complete(self, sections: Vec<Section>) -> Result<Conf, Error> {
        let missing = |problem| Error::ConfInvalid { line: 0, problem };
        Ok(Conf {
            socket: self.socket.ok_or_else(|| missing("it names no socket"))?,
            key: self.key.ok_or_else(|| missing("it has no key"))?,
            spool: self.spool.ok_or_else(|| missing("it names no spool"))?,
            reconnect: self.reconnect.unwrap_or(Duration::from_secs(10)),
            sections,
        })
    }
}

impl Section {
    fn set(&mut self, key: &str, value: String) -> Result<(), &'static str> {
        match (key, value.as_str()) {
            ("deadline_ms", text) => self.deadline = milliseconds(text)?,
            ("gated", "yes") => self.gated = true,
            ("gated", "no") => self.gated = false,
            ("gated", _) => return Err("gated is yes or no"),
            ("exit", text) => self.exit = text.parse().map_err(|_| "an exit code is 0 to 255")?,
            ("stdout", _) => self.stdout = value,
            ("stderr", _) => self.stderr = value,
            _ => return Err("this key is not known in a section"),
        }
        Ok(())
    }
}

fn milliseconds(text: &str) -> Result<Duration, &'static str> {
    let problem = "a time is a number of milliseconds, a day at most";
    let duration = Duration::from_millis(text.parse().map_err(|_| problem)?);
    if duration <= LONGEST_DEADLINE { Ok(duration) } else { Err(problem) }
}

fn unescape(value: &str) -> Result<String, &'static str> {
    if !value.contains('\\') {
        return Ok(value.to_owned());
    }
    let mut text = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        text.push(match character {
            '\\' => match characters.next() {
                Some('n') => '\n',
                Some('r') => '\r',
                Some('\\') => '\\',
                _ => return Err("a backslash is followed by n, r or another backslash"),
            },
            plain => plain,
        });
    }
    Ok(text)
}

#[cfg(test)]
#[path = "conf_tests.rs"]
mod tests;
