//! Many who listen to server-sent events, in one thread.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;

use super::now;

/// Every event has one, and nothing else does.
const EVENT: &[u8] = b"\ndata: ";
/// Stands before the moment at which an event was sent, in nanoseconds.
pub(super) const SENT: &[u8] = b"sent=";

/// Those who listen; they hang up when this is dropped.
pub(super) struct Audience {
    _runtime: Runtime,
    ears: Vec<Arc<Ear>>,
}

/// What one of them has heard.
#[derive(Debug, Default)]
struct Ear {
    connected: AtomicBool,
    events: AtomicU64,
    /// The beginning of what it was sent, where that is kept.
    kept: std::sync::Mutex<Vec<u8>>,
    late: std::sync::Mutex<Vec<Duration>>,
}

/// What is done with what is heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hearing {
    Count,
    /// How late each event is, by the moment that it tells.
    Times(std::time::Instant),
}

impl Audience {
    pub(super) fn gather(
        address: &str,
        request: &str,
        size: usize,
        hearing: Hearing,
    ) -> anyhow::Result<Self> {
        let address: SocketAddr = address.parse()?;
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let mut ears = Vec::new();
        for number in 0..size {
            let ear = Arc::new(Ear::default());
            ears.push(Arc::clone(&ear));
            let request = request.to_owned();
            let keep = number == 0;
            runtime.spawn(async move {
                if let Err(error) = listen(&ear, address, &request, (hearing, keep)).await {
                    crate::tell(&format!("bench: a listener ended: {error}"));
                }
            });
            // Not all at the same moment: the queue of a listening socket is short.
            if number % 50 == 49 {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        let audience = Self { _runtime: runtime, ears };
        for _ in 0..6_000 {
            if audience.ears.iter().all(|ear| ear.connected.load(Ordering::Acquire)) {
                return Ok(audience);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        bail!("not all could connect");
    }

    /// How many events were heard, over all.
    pub(super) fn events(&self) -> u64 {
        self.ears.iter().map(|ear| ear.events.load(Ordering::Acquire)).sum()
    }

    /// Waits until everybody has heard the same and nothing more comes.
    pub(super) fn settle(&self) -> anyhow::Result<u64> {
        let (mut before, mut quiet) = (u64::MAX, 0);
        for _ in 0..3_000 {
            let count = self.events();
            quiet = if count == before { quiet + 1 } else { 0 };
            before = count;
            if quiet >= 20 {
                let first = self.ears.first().map(|ear| ear.events.load(Ordering::Acquire));
                let first = first.context("somebody listens")?;
                let same = self.ears.iter().all(|ear| ear.events.load(Ordering::Acquire) == first);
                ensure!(same, "not everybody has heard the same number of events");
                return Ok(count);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        bail!("it does not become quiet");
    }

    /// The bytes that the first of them was sent, without the framing of HTTP.
    pub(super) fn heard(&self) -> anyhow::Result<Vec<u8>> {
        let kept = self.ears.first().context("somebody listens")?;
        let kept = kept.kept.lock().map_err(|_| anyhow::anyhow!("a listener broke off"))?;
        unchunked(&kept).context("what was heard is not chunked HTTP")
    }

    /// How late events were.
    pub(super) fn late(&self) -> Vec<Duration> {
        let late = |ear: &Arc<Ear>| ear.late.lock().map(|late| late.clone()).unwrap_or_default();
        self.ears.iter().flat_map(late).collect()
    }
}

async fn listen(
    ear: &Ear,
    address: SocketAddr,
    request: &str,
    (hearing, keep): (Hearing, bool),
) -> anyhow::Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut buffer = vec![0; 64 * 1024];
    // What may be the beginning of a mark at the end of what was read last.
    let mut rest: Vec<u8> = Vec::new();
    loop {
        let count = stream.read(&mut buffer).await?;
        let Some(bytes) = buffer.get(..count).filter(|bytes| !bytes.is_empty()) else {
            bail!("the server hung up");
        };
        if keep && let Ok(mut kept) = ear.kept.lock() {
            kept.extend_from_slice(bytes);
        }
        rest.extend_from_slice(bytes);
        if !ear.connected.load(Ordering::Relaxed) && find(&rest, b": connected").is_some() {
            ear.connected.store(true, Ordering::Release);
        }
        let mut events = 0;
        let mut from = 0;
        while let Some(at) = rest.get(from..).and_then(|rest| find(rest, EVENT)) {
            let begin = from + at;
            let Some(line) = rest.get(begin + EVENT.len()..) else { break };
            let Some(end) = line.iter().position(|byte| *byte == b'\n') else { break };
            if let (Hearing::Times(start), Some(line)) = (hearing, line.get(..end)) {
                let late = sent(line).map(|sent| now().duration_since(start).saturating_sub(sent));
                if let (Some(late), Ok(mut all)) = (late, ear.late.lock()) {
                    all.push(late);
                }
            }
            events += 1;
            from = begin + EVENT.len() + end;
        }
        ear.events.fetch_add(events, Ordering::AcqRel);
        let keep_from = match rest.get(from..).and_then(|rest| find(rest, EVENT)) {
            Some(at) => from + at,
            None => from.max(rest.len().saturating_sub(EVENT.len())),
        };
        rest.drain(..keep_from);
    }
}

/// When an event was sent, by what it says.
fn sent(line: &[u8]) -> Option<Duration> {
    let digits = line.get(find(line, SENT)? + SENT.len()..)?;
    let digits = digits.split(|byte| !byte.is_ascii_digit()).next()?;
    Some(Duration::from_nanos(std::str::from_utf8(digits).ok()?.parse().ok()?))
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    let first = *what.first()?;
    let mut from = 0;
    loop {
        let at = from + text.get(from..)?.iter().position(|byte| *byte == first)?;
        if text.get(at..)?.starts_with(what) {
            return Some(at);
        }
        from = at + 1;
    }
}

fn unchunked(text: &[u8]) -> Option<Vec<u8>> {
    let mut rest = text.get(find(text, b"\r\n\r\n")? + 4..)?;
    let mut all = Vec::new();
    while let Some(end) = find(rest, b"\r\n") {
        let length = usize::from_str_radix(std::str::from_utf8(rest.get(..end)?).ok()?, 16).ok()?;
        let Some(chunk) = rest.get(end + 2..end + 2 + length) else { break };
        all.extend_from_slice(chunk);
        rest = rest.get(end + 2 + length + 2..).unwrap_or_default();
    }
    Some(all)
}
