//! What coding agents start on every tool call.
//!
//! The hook forwards the agent's payload to the gateway, waits, and passes on the answer as it is. It reads no
//! JSON and decides nothing. When there is no answer it gives the fallback that was configured at install, and
//! when even that is missing it refuses: exit code 2, the reason on stderr. The payload is then kept in the spool.
//!
//! It guarantees: nothing on stdout but the answer; no setting taken from the environment; no wait for stdin or for
//! an answer past the deadline. Two things std cannot bound: the first connect to a gateway that hangs with a full
//! queue before any hook has given up on it (see `exchange`), and an agent that does not read what it asked for.
//! It deliberately has no dependency, since its start is paid per call.
//!
//! | module | what it does |
//! |---|---|
//! | [`conf`] | where the gateway is and what to answer without it |
//! | `name` | which agent and event this is |
//! | `intake` | stdin, whole or bounded |
//! | `wire`, `exchange` | the question and the answer |
//! | `spool` | what no gateway took |

#![cfg_attr(
    not(unix),
    expect(dead_code, reason = "a platform without a gateway never gets as far as a call")
)]

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

#[cfg(unix)]
mod clock;
pub mod conf;
mod error;
#[cfg(unix)]
mod exchange;
#[cfg(unix)]
mod hook;
#[cfg(unix)]
mod intake;
mod name;
#[cfg(unix)]
pub mod spool;
#[cfg(unix)]
mod wire;

pub use conf::{Conf, Section, parse, render};
pub use error::Error;

/// The name of the configuration file beside the executable.
pub const CONF_FILE: &str = "hook.conf";

/// The exit code with which agents understand that a call is refused.
const REFUSED: u8 = 2;

/// Runs the hook on the process's own stdin, stdout and stderr.
///
/// `arguments` are those after the program's name: `AGENT [EVENT]`.
pub fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let mut stdout = std::io::stdout().lock();
    let mut stderr = std::io::stderr().lock();
    let mut arguments = arguments.fuse();
    let exit = match (arguments.next(), arguments.next(), arguments.next()) {
        (Some(agent), event, None) => {
            match own_stdin().and_then(|stdin| Ok((stdin, own_conf()?))) {
                Ok((stdin, conf)) => {
                    run(&conf, &agent, event.as_deref(), stdin, &mut stdout, &mut stderr)
                }
                Err(error) => refuse(&error, &mut stderr),
            }
        }
        _ => refuse(&Error::Usage, &mut stderr),
    };
    ExitCode::from(exit)
}

/// Runs the hook with a given configuration and given streams; returns the exit code.
///
/// `stdin` is a file so that its reading can be bounded in time.
#[cfg(unix)]
pub fn run(
    conf: &Path,
    agent: &OsStr,
    event: Option<&OsStr>,
    stdin: File,
    stdout: &mut dyn Write,
    stderr: &mut dyn Write,
) -> u8 {
    hook::run(conf, agent, event, stdin, hook::Output { stdout, stderr })
}

/// Refuses: without Unix sockets there is no gateway to ask.
#[cfg(not(unix))]
pub fn run(
    _conf: &Path,
    _agent: &OsStr,
    _event: Option<&OsStr>,
    _stdin: File,
    _stdout: &mut dyn Write,
    stderr: &mut dyn Write,
) -> u8 {
    refuse(&Error::Platform, stderr)
}

/// The strictest answer: what a hook says that could not even find out what to say.
fn refuse(error: &Error, stderr: &mut dyn Write) -> u8 {
    // With stderr closed the exit code still refuses.
    writeln!(stderr, "Banister refused this: {error}. {}", error.remedy()).ok();
    REFUSED
}

#[cfg(unix)]
fn own_stdin() -> Result<File, Error> {
    use std::os::fd::AsFd as _;
    std::io::stdin().as_fd().try_clone_to_owned().map(File::from).map_err(Error::Stdin)
}

#[cfg(not(unix))]
fn own_stdin() -> Result<File, Error> {
    Err(Error::Platform)
}

/// The configuration beside the executable, wherever a link to it may lie.
fn own_conf() -> Result<std::path::PathBuf, Error> {
    let unreadable = |source| Error::ConfUnreadable { path: CONF_FILE.into(), source };
    let executable = std::env::current_exe().map_err(unreadable)?;
    // Linux has resolved it already.
    #[cfg(not(target_os = "linux"))]
    let executable = executable.canonicalize().map_err(unreadable)?;
    Ok(executable.with_file_name(CONF_FILE))
}
