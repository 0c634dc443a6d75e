//! `banister aaep-stdio`: AAEP's stdio binding, for subscribers that start their producer as a process.
//!
//! JSON-RPC 2.0, one message a line, on standard input and output; what people should know goes to standard error. Behind
//! it is the gateway that runs, and the person's key: whoever starts this may watch and answer. What a subscriber says is
//! passed on as it came, and so is what it is told.

use std::collections::VecDeque;
use std::io::{Read as _, Write};
use std::path::Path;

use anyhow::Context as _;
use banister_events::frame::jsonrpc::{Envelope, Method, read};
use banister_events::frame::{length, ndjson};
use banister_gateway::keys::Keys;
use banister_gateway::serve::{AAEP_KEY, aaep_socket};
use clap::Args;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::sync::mpsc;

use crate::data_dir::{DataDir, Running, block_on};
use crate::failure::{Failure, GOOD};

/// The longest message of either side.
const LONGEST: usize = 1024 * 1024;
/// How much is read at once, and how often ahead of the gateway.
const PIECE: usize = 16 * 1024;
const AHEAD: usize = 4;

/// JSON-RPC's numbers for what goes wrong.
mod code {
    pub(super) const NOT_JSON: i64 = -32700;
    pub(super) const NO_REQUEST: i64 = -32600;
    pub(super) const NO_METHOD: i64 = -32601;
    pub(super) const NO_PARAMETERS: i64 = -32602;
}

#[derive(Debug, Args)]
#[command(
    after_help = "Methods: aaep.subscribe, aaep.renegotiate, aaep.reply, aaep.close, aaep.ping; aaep.event comes back.\n\
                  Exit codes: 0 the subscriber left; 2 wrong usage; 3 there is no gateway, or it has gone"
)]
pub(crate) struct AaepStdioArgs {
    #[command(flatten)]
    data_dir: DataDir,
}

pub(crate) fn run(args: &AaepStdioArgs, out: &mut dyn Write) -> anyhow::Result<u8> {
    let dir = args.data_dir.path()?;
    let socket = aaep_socket(&Running::read(&dir)?.socket);
    let path = dir.join("keys").join(Keys::PERSON);
    let key = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    block_on(async {
        let gateway = connect(&socket, key.trim()).await?;
        match bridge(gateway, typed(), out).await? {
            End::Left => Ok(GOOD),
            End::Gone => Err(Failure::failed("the gateway has gone").into()),
        }
    })
}

async fn connect(socket: &Path, key: &str) -> anyhow::Result<UnixStream> {
    let mut gateway = UnixStream::connect(socket).await.map_err(|error| {
        let message = format!("no gateway speaks AAEP at {}: {error}", socket.display());
        Failure::failed(message)
    })?;
    let hello = json!({ "type": AAEP_KEY, "key": key }).to_string();
    send(&mut gateway, hello.as_bytes()).await?;
    Ok(gateway)
}

/// Who ended it.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Left,
    Gone,
}

/// Standard input, piece by piece; the channel ends with it. A thread of its own reads it: it can wait for ever, and the
/// end of everything else must not wait for it.
fn typed() -> mpsc::Receiver<Vec<u8>> {
    let (sender, typed) = mpsc::channel(AHEAD);
    std::thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        let mut piece = vec![0; PIECE];
        while let Ok(count @ 1..) = input.read(&mut piece) {
            let read = piece.get(..count).unwrap_or_default().to_vec();
            if sender.blocking_send(read).is_err() {
                return;
            }
        }
    });
    typed
}

/// Passes on what either side says, until one of them leaves. Whoever does not read what it is told holds up the rest.
async fn bridge(
    gateway: UnixStream,
    mut typed: mpsc::Receiver<Vec<u8>>,
    out: &mut dyn Write,
) -> anyhow::Result<End> {
    let (mut from, mut to) = gateway.into_split();
    let (mut lines, mut frames) = (ndjson::Lines::new(LONGEST), length::Messages::new(LONGEST));
    let mut heard = vec![0; PIECE];
    let mut talk = Talk::default();
    loop {
        tokio::select! {
            piece = typed.recv() => {
                let ended = piece.is_none();
                let piece = piece.unwrap_or_default();
                let mut piece = piece.as_slice();
                loop {
                    let line = if ended { lines.end() } else { lines.read(&mut piece) };
                    let Some((_, line)) = line else { break };
                    let (pass, answer) = match line {
                        Ok(line) => talk.said(line),
                        Err(_) => (None, Some(failure(None, code::NO_REQUEST, "this line is too long"))),
                    };
                    if let Some(message) = pass
                        && send(&mut to, &message).await.is_err()
                    {
                        return Ok(End::Gone);
                    }
                    if let Some(answer) = answer {
                        tell(out, &answer)?;
                    }
                }
                if ended {
                    return Ok(End::Left);
                }
            }
            count = from.read(&mut heard) => {
                // A connection that breaks is one that ends.
                let mut piece = heard.get(..count.unwrap_or(0)).unwrap_or_default();
                if piece.is_empty() {
                    return Ok(if talk.closes { End::Left } else { End::Gone });
                }
                while let Some((_, message)) = frames.read(&mut piece) {
                    let message = message.context("what the gateway says is too long")?;
                    if let Some(line) = talk.heard(message) {
                        tell(out, &line)?;
                    }
                }
            }
        }
    }
}

/// Whatever has an id.
#[derive(Debug, Deserialize)]
struct Named<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
}

/// A conversation: what is asked and not answered yet.
#[derive(Debug, Default)]
struct Talk {
    asked: VecDeque<Box<RawValue>>,
    closes: bool,
}

impl Talk {
    /// What a line of the subscriber's is for the gateway, and what it is answered at once.
    fn said(&mut self, line: &[u8]) -> (Option<Vec<u8>>, Option<String>) {
        let Some(Ok(envelope)) = read(line) else {
            let refusal = match serde_json::from_slice::<&RawValue>(line) {
                Ok(_) => {
                    let object = line.trim_ascii_start().starts_with(b"{");
                    let named = serde_json::from_slice::<Named<'_>>(line).ok().filter(|_| object);
                    let id = named.and_then(|named| named.id);
                    failure(id, code::NO_REQUEST, "this is no request that AAEP knows")
                }
                Err(_) => failure(None, code::NOT_JSON, "this is not JSON"),
            };
            return (None, Some(refusal));
        };
        let message = envelope.message().map(<[u8]>::to_vec);
        match envelope {
            Envelope::Request { id, method, .. } => match (method, message) {
                (Method::Ping, _) => (None, Some(response(id, &json!({})))),
                (Method::Subscribe | Method::Renegotiate, Some(message)) => {
                    self.asked.push_back(id.to_owned());
                    (Some(message), None)
                }
                (Method::Reply | Method::Close, Some(message)) => {
                    // Notifications by the book; who asks for an answer hears that it was passed on.
                    (Some(message), Some(response(id, &Value::Null)))
                }
                (Method::Subscribe | Method::Renegotiate | Method::Reply | Method::Close, None) => {
                    let why = "the message is missing";
                    (None, Some(failure(Some(id), code::NO_PARAMETERS, why)))
                }
                (Method::Event | Method::Other(_), _) => {
                    let why = "there is no such method here";
                    (None, Some(failure(Some(id), code::NO_METHOD, why)))
                }
            },
            Envelope::Notification { method: Method::Close, .. } => {
                self.closes = true;
                (message, None)
            }
            Envelope::Notification { method: Method::Reply, .. } => (message, None),
            Envelope::Notification { .. }
            | Envelope::Response { .. }
            | Envelope::Failure { .. } => (None, None),
        }
    }

    /// What a message of the gateway's is for the subscriber.
    fn heard(&mut self, message: &[u8]) -> Option<String> {
        let message: &RawValue = serde_json::from_slice(message).ok()?;
        let kind: Value = serde_json::from_str(message.get()).ok()?;
        let kind = kind.get("type").and_then(Value::as_str).unwrap_or_default();
        let method = match kind {
            "subscription.accepted" | "subscription.rejected" => {
                let id = self.asked.pop_front()?;
                return Some(response(&id, message));
            }
            "subscription.close" => "aaep.close",
            _ => "aaep.event",
        };
        let line = json!({ "jsonrpc": "2.0", "method": method });
        Some(with(&line, "params", message.get()))
    }
}

fn response(id: &RawValue, result: &(impl serde::Serialize + ?Sized)) -> String {
    let line = with(&json!({ "jsonrpc": "2.0" }), "id", id.get());
    let result = serde_json::to_string(result).unwrap_or_else(|_| "null".to_owned());
    format!("{},\"result\":{result}}}", line.strip_suffix('}').unwrap_or_default())
}

fn failure(id: Option<&RawValue>, code: i64, message: &str) -> String {
    let id = id.map_or("null", RawValue::get);
    let error = json!({ "code": code, "message": message });
    let line = with(&json!({ "jsonrpc": "2.0" }), "id", id);
    format!("{},\"error\":{error}}}", line.strip_suffix('}').unwrap_or_default())
}

/// An object with one more member, whose bytes stay as they are.
fn with(object: &Value, name: &str, bytes: &str) -> String {
    let object = object.to_string();
    format!("{},\"{name}\":{bytes}}}", object.strip_suffix('}').unwrap_or_default())
}

fn tell(out: &mut dyn Write, line: &str) -> anyhow::Result<()> {
    // Whatever came with line ends between its members is one line here.
    writeln!(out, "{}", line.replace(['\n', '\r'], " "))?;
    Ok(out.flush()?)
}

async fn send(to: &mut (impl AsyncWrite + Unpin), message: &[u8]) -> anyhow::Result<()> {
    let mut frame = Vec::new();
    length::write(&mut frame, message)?;
    Ok(to.write_all(&frame).await?)
}

#[cfg(test)]
#[path = "aaep_stdio_tests.rs"]
mod tests;
