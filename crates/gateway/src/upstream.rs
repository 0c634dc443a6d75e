//! AG-UI agents that run through the gateway: called, verified, repaired, recorded, passed on.
//!
//! A run belongs to nobody's connection. Its events are durable before a client sees them, and it is read to its end
//! whether somebody listens or not, within a bound on time and size; then it has an end, whatever the agent did. Who
//! comes back to a run is told its messages and its state, then what follows: it ends with what a client has that was
//! there all the time.
//!
//! What passes is what the agent sent, byte for byte, where it is right. What was changed on the way is kept beside as
//! it came. A thread has one run at a time. After a restart of the gateway nobody comes back to a run that was cut by
//! it: asking again is a new run.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use banister_client::Address;
use banister_client::transport::{HttpClient, HttpError};
use banister_events::event::Protocol;
use banister_events::id;
use banister_journal::{Draft, Kind, Source};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use crate::facts::UPSTREAM;

mod call;
pub(crate) mod conduct;
mod guard;
mod interrupts;
mod live;
pub(crate) mod resume;

pub(crate) use call::Failure;
pub(crate) use live::{Listener, Live};

/// The version of the reading that is recorded with each event.
const READER: u32 = 1;
/// How many runs are under way at once.
const RUNS: usize = 64;
/// How many threads are remembered, and how many bytes of what their last runs said.
const THREADS: usize = 1_024;
const THREAD_BYTES: usize = 256 * 1024 * 1024;

/// What is done about events that break the protocol.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UpstreamPolicy {
    /// The nearest that a client runs clean is passed on.
    #[default]
    Repair,
    /// The run ends with the rule that was broken.
    Strict,
    /// It is passed on as it is, and recorded with what is wrong.
    Report,
}

/// One agent that runs through the gateway.
#[derive(Clone)]
pub struct Upstream {
    /// Where it listens.
    pub address: Address,
    /// What is sent along with every request.
    headers: HeaderMap,
    /// How it is reached, and whose certificates are trusted.
    http: HttpClient,
    /// What is done about events that break the protocol.
    pub policy: UpstreamPolicy,
    /// Whether it is asked for the binary form.
    pub binary: bool,
    /// How long its answer may take to begin.
    pub start: Duration,
    /// How long it may be silent.
    pub idle: Duration,
    /// How long a run may take.
    pub longest: Duration,
    /// How many bytes a run may have.
    pub bytes: usize,
    /// After how much silence clients are told that the run is still there.
    pub keep_alive: Duration,
    /// For how long an agent that cannot be reached is called again, where a run that waited goes on.
    pub resume: Duration,
}

impl Upstream {
    /// An agent, with nothing else said about it.
    pub fn new(address: Address) -> Self {
        Self {
            address,
            headers: HeaderMap::new(),
            http: HttpClient::new(),
            policy: UpstreamPolicy::default(),
            binary: false,
            start: Duration::from_secs(30),
            idle: Duration::from_mins(5),
            longest: Duration::from_hours(1),
            bytes: 64_000_000,
            keep_alive: crate::deliver::keep_alive::KEEP_ALIVE,
            resume: Duration::from_secs(30),
        }
    }

    /// Sends a header along with every request. Gives whether it can be one.
    pub fn header(&mut self, name: &str, value: &str) -> bool {
        let name = HeaderName::try_from(name);
        let (Ok(name), Ok(mut value)) = (name, HeaderValue::try_from(value)) else { return false };
        value.set_sensitive(true);
        self.headers.insert(name, value);
        true
    }

    /// Trusts the certificates in a PEM text, and no others, for an agent that speaks TLS.
    pub fn trust(&mut self, pem: &[u8]) -> Result<(), HttpError> {
        self.http = HttpClient::new().with_authorities(pem)?;
        Ok(())
    }
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Headers carry keys.
        let Self { address, policy, .. } = self;
        f.debug_struct("Upstream")
            .field("address", address)
            .field("policy", policy)
            .finish_non_exhaustive()
    }
}

/// The session that a thread of an upstream is.
pub(crate) fn session_of(upstream: &str, thread: &str) -> String {
    let key = format!("{UPSTREAM}{upstream}");
    id::derive("s_", &[&key, Protocol::Agui.name(), thread])
}

/// The source of what an upstream sends.
pub(crate) fn source(upstream: &str) -> Source {
    Source {
        protocol: Protocol::Agui.name().to_owned(),
        agent: upstream.to_owned(),
        door: "upstream".to_owned(),
        key: format!("{UPSTREAM}{upstream}"),
    }
}

/// A record of an upstream's session.
pub(crate) fn note(
    session: &str,
    source: &Source,
    (kind, body): (Kind, Bytes),
    turn: Option<String>,
    time: Timestamp,
) -> Draft {
    Draft {
        session: session.to_owned(),
        time,
        kind,
        source: source.clone(),
        turn,
        action: None,
        event_id: None,
        reader: READER,
        body,
        findings: Value::Null,
        gate: None,
    }
}

/// The configured agents, and the last run of every thread.
#[derive(Debug, Default)]
pub(crate) struct Upstreams {
    pub(crate) configured: BTreeMap<String, Upstream>,
    threads: Mutex<Threads>,
}

#[derive(Debug, Default)]
struct Threads {
    last: HashMap<(String, String), (Arc<Live>, u64)>,
    touched: u64,
}

/// What becomes of a request for a run.
#[derive(Debug)]
pub(crate) enum RunSlot {
    /// It is about a run that is there.
    Join(Arc<Live>),
    /// It is a new run; it begins when the one before is over.
    Start(Arc<Live>, Option<Arc<Live>>),
    /// Somebody listens to another run of the thread.
    Busy,
    /// Too many are under way.
    Full,
}

impl Upstreams {
    pub(crate) fn new(configured: BTreeMap<String, Upstream>) -> Self {
        Self { configured, threads: Mutex::default() }
    }

    /// Where a request belongs. A run that was asked for by the same id is the same run. So is one that is under way, or
    /// whose end nobody heard, where the request brings nothing new.
    pub(crate) fn slot(&self, upstream: &str, input: &Value) -> RunSlot {
        let word = |name: &str| input.get(name).and_then(Value::as_str).unwrap_or_default();
        let key = (upstream.to_owned(), word("threadId").to_owned());
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.touched += 1;
        let now = threads.touched;
        let mut before = None;
        if let Some((live, touched)) = threads.last.get_mut(&key) {
            *touched = now;
            if live.is_run(word("runId")) || live.is_due() && live.knows_all_of(input) {
                return RunSlot::Join(Arc::clone(live));
            }
            if !live.is_over() {
                if live.is_heard() {
                    return RunSlot::Busy;
                }
                // Whoever goes on with something new does not wait for it any more.
                live.call_off();
                before = Some(Arc::clone(live));
            }
        }
        if threads.last.values().filter(|(live, _)| !live.is_over()).count() >= RUNS {
            return RunSlot::Full;
        }
        let last = threads.last.get(&key).map(|(live, _)| live.as_ref());
        let live = Arc::new(Live::new(input, last));
        threads.last.insert(key, (Arc::clone(&live), now));
        threads.forget();
        RunSlot::Start(live, before)
    }
}

impl Upstreams {
    /// The last run of a thread.
    pub(crate) fn last_run(&self, upstream: &str, thread: &str) -> Option<Arc<Live>> {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.touched += 1;
        let now = threads.touched;
        let key = (upstream.to_owned(), thread.to_owned());
        let (live, touched) = threads.last.get_mut(&key)?;
        *touched = now;
        Some(Arc::clone(live))
    }

    /// A run that nobody listens to; it begins when the one before is over. None where too many are under way.
    pub(crate) fn next_run(
        &self,
        upstream: &str,
        input: &Value,
    ) -> Option<(Arc<Live>, Option<Arc<Live>>)> {
        let thread = input.get("threadId").and_then(Value::as_str).unwrap_or_default();
        let key = (upstream.to_owned(), thread.to_owned());
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        if threads.last.values().filter(|(live, _)| !live.is_over()).count() >= RUNS {
            return None;
        }
        threads.touched += 1;
        let now = threads.touched;
        let before = threads.last.get(&key).map(|(live, _)| Arc::clone(live));
        let live = Arc::new(Live::new(input, before.as_deref()));
        threads.last.insert(key, (Arc::clone(&live), now));
        threads.forget();
        Some((live, before))
    }

    /// A run did not begin: whoever asks for it again asks the agent again.
    fn lose(&self, live: &Arc<Live>) {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.last.retain(|_, (known, _)| !Arc::ptr_eq(known, live));
    }
}

impl Threads {
    /// Forgets the runs that are over, those first that nobody asked for longest, until there is room.
    fn forget(&mut self) {
        let mut over: Vec<(u64, (String, String), usize)> = self
            .last
            .iter()
            .filter(|(_, (live, _))| live.is_over())
            .map(|(key, (live, touched))| (*touched, key.clone(), live.bytes()))
            .collect();
        over.sort_unstable_by_key(|(touched, ..)| *touched);
        let mut bytes: usize = over.iter().map(|(.., bytes)| bytes).sum();
        for (_, key, size) in over {
            if self.last.len() <= THREADS && bytes <= THREAD_BYTES {
                break;
            }
            bytes -= size;
            self.last.remove(&key);
        }
    }
}

#[cfg(test)]
#[path = "upstream_tests.rs"]
mod tests;
