//! Why the gateway's answer could not be had.
//!
//! Each variant is a reason a person reads on stderr, so each one also names its remedy.
//! None of them is ever turned into an allowed call: what is answered instead is the section's fallback.

use std::fmt::{self, Write as _};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// What kept the hook from passing on the gateway's answer.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The command line is not `AGENT [EVENT]`.
    Usage,
    /// An agent or event name has characters that no agent's name has.
    Name {
        /// The name as given, control characters escaped.
        given: String,
    },
    /// The configuration file cannot be read.
    ConfUnreadable {
        /// Where it should be.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The configuration file can be read but not understood.
    ConfInvalid {
        /// The line it stopped at, or 0 for the file as a whole.
        line: usize,
        /// What is wrong there.
        problem: &'static str,
    },
    /// No section of the configuration fits, not even `[* *]`.
    NoSection,
    /// The payload could not be read from stdin.
    Stdin(io::Error),
    /// Stdin was still open when the time was up.
    StdinStalled(Duration),
    /// The gateway could not be reached, or went away and did not return.
    Unreachable {
        /// The socket that was tried.
        socket: String,
        /// What the system said last.
        source: io::Error,
    },
    /// The gateway took the call, but no answer came in time.
    NoAnswer(Duration),
    /// The gateway answered with another status than 200.
    Refused {
        /// The HTTP status.
        status: u16,
        /// The first line of the body, bounded, control characters escaped.
        detail: String,
    },
    /// The answer is not one that this hook understands.
    Malformed(&'static str),
    /// This platform has no Unix sockets.
    Platform,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage => write!(f, "the hook was not called as `banister-hook AGENT [EVENT]`"),
            Self::Name { given } => write!(f, "`{given}` is not the name of an agent or event"),
            Self::ConfUnreadable { path, source } => {
                let path = escape_controls(&path.to_string_lossy());
                write!(f, "the hook's configuration {path} cannot be read ({source})")
            }
            Self::ConfInvalid { line: 0, problem } => {
                write!(f, "the hook's configuration is not usable: {problem}")
            }
            Self::ConfInvalid { line, problem } => {
                write!(f, "line {line} of the hook's configuration is not usable: {problem}")
            }
            Self::NoSection => write!(f, "the hook's configuration has no section for this call"),
            Self::Stdin(source) => write!(f, "the payload could not be read ({source})"),
            Self::StdinStalled(limit) => {
                write!(f, "the payload did not end within {} ms", limit.as_millis())
            }
            Self::Unreachable { socket, source } => {
                write!(f, "the gateway cannot be reached at {socket} ({source})")
            }
            Self::NoAnswer(limit) => {
                write!(f, "no answer came from the gateway within {} ms", limit.as_millis())
            }
            Self::Refused { status, detail } => {
                match status {
                    401 => write!(f, "the gateway does not know this hook's key (status 401)")?,
                    403 => write!(f, "this hook's key may not emit (status 403)")?,
                    404 => write!(f, "the gateway does not know this agent or event (status 404)")?,
                    413 => write!(f, "the payload is too large for the gateway (status 413)")?,
                    500..=599 => write!(f, "the gateway failed (status {status})")?,
                    _ => write!(f, "the gateway did not take the call (status {status})")?,
                }
                if detail.is_empty() { Ok(()) } else { write!(f, ": {detail}") }
            }
            Self::Malformed(problem) => {
                write!(f, "the gateway's answer cannot be understood: {problem}")
            }
            Self::Platform => write!(f, "the hook needs Unix sockets, which this platform lacks"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::ConfUnreadable { source, .. }
            | Self::Stdin(source)
            | Self::Unreachable { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl Error {
    /// What the person can do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Unreachable { .. } => "Start the gateway with: banister serve",
            Self::NoAnswer(_) => "See what is waiting with: banister inbox",
            Self::Refused { status: 401 | 403, .. } => {
                "Start the gateway again, which writes the hook a valid key: banister serve"
            }
            Self::Stdin(_) | Self::StdinStalled(_) => "Try the call again",
            Self::Platform => "Run the agent where Unix sockets exist",
            _ => "The gateway's log tells more",
        }
    }
}

/// Shows control and other invisible characters instead of letting a terminal obey them.
pub(crate) fn escape_controls(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() || is_invisible(character) {
            // Writing to a String cannot fail.
            write!(shown, "⟨U+{:04X}⟩", u32::from(character)).ok();
        } else {
            shown.push(character);
        }
    }
    shown
}

/// Characters that reorder or hide the text around them.
fn is_invisible(character: char) -> bool {
    matches!(character,
        '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}')
}
