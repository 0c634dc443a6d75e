//! One HTTP/1.1 request and its response, as bytes.
//!
//! Only what the gateway's hook door uses is understood: a status, a few headers, a body of known length. Anything
//! else is malformed, which ends in the fallback.

use std::time::Duration;

use crate::error::{Error, escape_controls};
use crate::intake::Payload;
use crate::name::Name;

const LARGEST_HEAD: usize = 16 * 1024;
const LARGEST_BODY: usize = 16 * 1024 * 1024;
const LONGEST_DETAIL: usize = 200;

/// One call, the same on every attempt.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) agent: &'a Name,
    pub(crate) event: &'a Name,
    pub(crate) key: &'a str,
    pub(crate) idempotency: &'a str,
    pub(crate) payload: &'a Payload,
}

impl Call<'_> {
    /// The request in one buffer, so that it leaves in one write.
    pub(crate) fn request(&self, waits: Duration) -> Vec<u8> {
        let Self { agent, event, key, idempotency, payload } = self;
        let truncated = if payload.is_truncated() {
            format!("Banister-Truncated: {}\r\n", payload.total)
        } else {
            String::new()
        };
        let head = format!(
            "POST /hooks/{agent}/{event} HTTP/1.1\r\n\
             Host: banister\r\n\
             Authorization: Bearer {key}\r\n\
             Content-Type: application/json\r\n\
             Content-Length: {length}\r\n\
             Idempotency-Key: {idempotency}\r\n\
             Banister-Deadline-Ms: {waits}\r\n\
             {truncated}\
             Connection: close\r\n\r\n",
            length = payload.bytes.len(),
            waits = waits.as_millis(),
        );
        let mut request = Vec::with_capacity(head.len() + payload.bytes.len());
        request.extend_from_slice(head.as_bytes());
        request.extend_from_slice(&payload.bytes);
        request
    }
}

/// What the gateway wants the agent to get.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) exit: u8,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

/// How far a response has come.
#[derive(Debug)]
pub(crate) enum Progress {
    /// More bytes are needed.
    Incomplete,
    /// All of it is there.
    Complete(Answer),
}

/// Reads as much of a response as there is; `ended` says that no more will come.
pub(crate) fn response(received: &[u8], ended: bool) -> Result<Progress, Error> {
    let Some(end) = received.windows(4).position(|window| window == b"\r\n\r\n") else {
        return if received.len() > LARGEST_HEAD {
            Err(Error::Malformed("its head does not end"))
        } else {
            incomplete(ended)
        };
    };
    let (head, body) = received.split_at_checked(end + 4).unwrap_or_default();
    let head = std::str::from_utf8(head).map_err(|_| Error::Malformed("its head is not text"))?;
    let head = Head::parse(head)?;
    if head.status != 200 {
        return refused(&head, body, ended);
    }
    let length = head.length.ok_or(Error::Malformed("it has no length"))?;
    if length > LARGEST_BODY {
        return Err(Error::Malformed("it is too long"));
    }
    let exit = head.exit.ok_or(Error::Malformed("it names no exit code"))?;
    let stderr = head.stderr.ok_or(Error::Malformed("it does not say where stderr begins"))?;
    let stdout = length.checked_sub(stderr).ok_or(Error::Malformed("stderr exceeds the body"))?;
    let Some(body) = body.get(..length) else {
        return incomplete(ended);
    };
    let (stdout, stderr) = body.split_at_checked(stdout).unwrap_or_default();
    Ok(Progress::Complete(Answer { exit, stdout: stdout.to_vec(), stderr: stderr.to_vec() }))
}

fn incomplete(ended: bool) -> Result<Progress, Error> {
    if ended { Err(Error::Malformed("it ends too early")) } else { Ok(Progress::Incomplete) }
}

/// An error response is complete as soon as its first line is there, or as much of it as is shown.
fn refused(head: &Head, body: &[u8], ended: bool) -> Result<Progress, Error> {
    let whole = head.length.is_some_and(|length| body.len() >= length);
    let line = body.split(|&byte| byte == b'\n').next().unwrap_or_default();
    // Four bytes are the most that one character takes.
    let enough = line.len() < body.len() || line.len() >= 4 * LONGEST_DETAIL;
    if !(ended || whole || enough || head.chunked) {
        return Ok(Progress::Incomplete);
    }
    let detail = if head.chunked { String::new() } else { detail(line) };
    Err(Error::Refused { status: head.status, detail })
}

fn detail(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let shown: String = text.trim().chars().take(LONGEST_DETAIL).collect();
    escape_controls(&shown)
}

#[derive(Debug, Default)]
struct Head {
    status: u16,
    length: Option<usize>,
    exit: Option<u8>,
    stderr: Option<usize>,
    chunked: bool,
}

impl Head {
    fn parse(text: &str) -> Result<Self, Error> {
        let mut lines = text.split("\r\n");
        let status = lines
            .next()
            .and_then(|line| line.strip_prefix("HTTP/1.1 ").or(line.strip_prefix("HTTP/1.0 ")))
            .and_then(|rest| rest.get(..3))
            .and_then(|digits| digits.parse().ok())
            .ok_or(Error::Malformed("it does not begin like HTTP"))?;
        let mut head = Self { status, ..Self::default() };
        for line in lines.take_while(|line| !line.is_empty()) {
            let (name, value) =
                line.split_once(':').ok_or(Error::Malformed("a header has no value"))?;
            let value = value.trim();
            if name.eq_ignore_ascii_case("content-length") {
                once(&mut head.length, value, "its length is not one number")?;
            } else if name.eq_ignore_ascii_case("banister-exit") {
                once(&mut head.exit, value, "its exit code is not one number from 0 to 255")?;
            } else if name.eq_ignore_ascii_case("banister-stderr-length") {
                once(&mut head.stderr, value, "the length of stderr is not one number")?;
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                head.chunked = true;
            }
        }
        Ok(head)
    }
}

fn once<T: std::str::FromStr>(
    slot: &mut Option<T>,
    value: &str,
    problem: &'static str,
) -> Result<(), Error> {
    // `parse` would take a leading plus sign.
    let number = value.bytes().all(|byte| byte.is_ascii_digit()).then(|| value.parse().ok());
    if slot.is_some() {
        return Err(Error::Malformed(problem));
    }
    *slot = Some(number.flatten().ok_or(Error::Malformed(problem))?);
    Ok(())
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
