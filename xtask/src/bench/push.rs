//! Batches on their way into a gateway, over connections that stay open.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, ensure};
use banister_events::event::Protocol;

use super::check::corpus;
use super::now;

/// How many events a batch has.
pub(super) const BATCH: usize = 256;
/// How far the numbers of two connections' sessions lie apart.
const APART: u64 = 1_000_000;

/// Events in batches, one a line. Each connection has sessions of its own, as agents do.
#[derive(Debug)]
pub(super) struct Load {
    path: &'static str,
    /// Connection → its batches.
    batches: Vec<Vec<String>>,
    pub(super) events: u64,
}

impl Load {
    /// At least `bytes` of conformant sessions, numbered from `first`, for so many connections.
    pub(super) fn new(
        protocol: Protocol,
        bytes: usize,
        first: u64,
        at_once: usize,
    ) -> anyhow::Result<Self> {
        let path = if protocol == Protocol::Aep { "/aep/v0.1/events" } else { "/aaep/v1/events" };
        let mut load = Self { path, batches: Vec::new(), events: 0 };
        for connection in 0..at_once as u64 {
            let first = first + connection * APART;
            let (text, events) = corpus::recording(protocol, bytes / at_once, first)?;
            let lines: Vec<&str> = text.lines().collect();
            load.batches.push(lines.chunks(BATCH).map(|lines| lines.join("\n")).collect());
            load.events += events;
        }
        Ok(load)
    }

    /// Pushes everything; each connection sends its next batch when the one before is acknowledged.
    pub(super) fn push(&self, address: &str, key: &str) -> anyhow::Result<Duration> {
        let mut clients = Vec::new();
        for batches in &self.batches {
            clients.push((Client::connect(address, key)?, batches));
        }
        let began = now();
        std::thread::scope(|scope| {
            let work: Vec<_> = clients
                .into_iter()
                .map(|(mut client, batches)| {
                    scope.spawn(move || {
                        batches.iter().try_for_each(|batch| client.push(self.path, batch))
                    })
                })
                .collect();
            let done = |work: std::thread::ScopedJoinHandle<'_, anyhow::Result<()>>| {
                work.join().map_err(|_| anyhow::anyhow!("a pusher broke off"))?
            };
            work.into_iter().try_for_each(done)
        })?;
        Ok(began.elapsed())
    }
}

/// One connection.
#[derive(Debug)]
pub(super) struct Client {
    stream: BufReader<TcpStream>,
    head: String,
}

impl Client {
    pub(super) fn connect(address: &str, key: &str) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).with_context(|| address.to_owned())?;
        stream.set_nodelay(true)?;
        let head = format!("Host: {address}\r\nAuthorization: Bearer {key}");
        Ok(Self { stream: BufReader::new(stream), head })
    }

    /// Sends lines and waits until they are acknowledged.
    pub(super) fn push(&mut self, path: &str, lines: &str) -> anyhow::Result<()> {
        let request = format!(
            "POST {path} HTTP/1.1\r\n{}\r\nContent-Type: application/x-ndjson\r\nContent-Length: {}\r\n\r\n{lines}",
            self.head,
            lines.len(),
        );
        self.stream.get_mut().write_all(request.as_bytes())?;
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        ensure!(line.starts_with("HTTP/1.1 200 "), "the server answered {line:?}");
        let mut length = 0;
        loop {
            line.clear();
            self.stream.read_line(&mut line)?;
            let field = line.trim_end().to_ascii_lowercase();
            if field.is_empty() {
                break;
            }
            if let Some(value) = field.strip_prefix("content-length:") {
                length = value.trim().parse()?;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        let refused = body.windows(9).any(|word| word == b"\"refused\"");
        ensure!(!refused, "an event was refused: {}", String::from_utf8_lossy(&body));
        Ok(())
    }
}
