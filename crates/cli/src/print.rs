//! The one place that writes to the terminal. A reader that went away is not an error.

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use crate::failure::{FAILED, Failure, USAGE};

/// Runs a command with buffered stdout and plain stderr.
pub(crate) fn with(
    run: impl FnOnce(&mut dyn Write, &mut dyn Write) -> anyhow::Result<u8>,
) -> anyhow::Result<u8> {
    let mut out = BufWriter::new(io::stdout().lock());
    let mut err = io::stderr().lock();
    let code = match run(&mut out, &mut err) {
        Ok(code) => code,
        Err(error) if broken_pipe(&error) => return Ok(crate::failure::GOOD),
        Err(error) => return Err(error),
    };
    match out.flush() {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(code),
    }
}

/// A line for people.
pub(crate) fn tell(line: &str) {
    // Nobody is left to be told that this failed.
    writeln!(io::stderr().lock(), "{line}").ok();
}

/// A line of data.
pub(crate) fn say(line: &str) {
    writeln!(io::stdout().lock(), "{line}").ok();
}

/// What clap found wrong, or the help that was asked for.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    error.print().ok();
    ExitCode::from(if error.use_stderr() { USAGE } else { crate::failure::GOOD })
}

/// Why a command failed, with its causes and its exit code.
pub(crate) fn failure(error: &anyhow::Error) -> ExitCode {
    let mut line = format!("banister: {error}");
    let no_gateway = matches!(
        error.downcast_ref::<banister_client::Error>(),
        Some(banister_client::Error::NoGateway { .. })
    );
    // There the message says what to do; what the system said about a socket helps nobody.
    for cause in error.chain().skip(1).filter(|_| !no_gateway) {
        let cause = cause.to_string();
        if !line.contains(&cause) {
            line.push_str(": ");
            line.push_str(&cause);
        }
    }
    tell(&line);
    ExitCode::from(error.downcast_ref::<Failure>().map_or(FAILED, |failure| failure.code))
}

fn broken_pipe(error: &anyhow::Error) -> bool {
    let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
    kind == Some(io::ErrorKind::BrokenPipe)
}
