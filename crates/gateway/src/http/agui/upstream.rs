//! `POST /agui/upstreams/{name}`: a configured agent, run through the gateway.
//!
//! A request that cannot be served is refused before the run begins; from then on whatever goes wrong is said within the
//! stream. A client that leaves does not end the run: who comes back is told what it missed.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::response::Response;
use banister_events::agui::encoding::Encoding;
use banister_events::agui::write::Writer;
use banister_events::limits;
use bytes::Bytes;
use http::StatusCode;
use serde_json::Value;
use tokio::sync::oneshot;

use super::{asked, negotiate, stream, word};
use crate::asks::ParkClaim;
use crate::attach::{AttachedRun, UNCOVERED};
use crate::deliver::{Gone, KeepAlive, Outlet};
use crate::http::api::problem;
use crate::http::body::{fed, whole};
use crate::http::{Problem, Shared};
use crate::keys::{Guest, Scope};
use crate::upstream::conduct::PlannedRun;
use crate::upstream::resume::{FrontEndResume, NotResumed};
use crate::upstream::{Failure, Listener, Live, RunSlot, Upstream, session_of};

/// How many events may be told before a reader is waited for.
const AT_ONCE: usize = 64;

pub(in crate::http) async fn run(
    State(shared): State<Shared>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let guest = shared.admit(request.method(), request.headers(), Scope::Watch)?;
    if !guest.may(Scope::Emit) && !guest.may(Scope::Answer) {
        let message = "this key may only watch, and a run is more than that";
        return Err(Problem::new(StatusCode::FORBIDDEN, "scope", message)
            .remedy("use a key that may watch and emit, or watch and answer"));
    }
    let upstream = shared.gateway.upstreams.configured.get(&name).cloned().ok_or_else(|| {
        let message = format!("no upstream is called {name}");
        Problem::new(StatusCode::NOT_FOUND, "upstream", message)
            .remedy("name it in config.toml under [upstreams], and start the gateway again")
    })?;
    let encoding = negotiate(request.headers());
    let body = whole(request.into_body(), limits::MESSAGE_BYTES).await?;
    let input = asked(&body)?;
    let resumes = input.get("resume").and_then(Value::as_array).is_some_and(|it| !it.is_empty());
    if resumes && !guest.may(Scope::Answer) {
        let message = "this key may not answer, and resume does";
        return Err(Problem::new(StatusCode::FORBIDDEN, "scope", message)
            .remedy("resume with a key that carries the scope answer"));
    }
    let upstreams = &shared.gateway.upstreams;
    let known = upstreams.last_run(&name, word(&input, "threadId"));
    let is_known = known.is_some_and(|live| live.is_run(word(&input, "runId")));
    let mut run = RunRequest { name, upstream, body, input, parked: None };
    let mut late = None;
    if resumes && !is_known && !run.take_parked(&shared, &guest).await? {
        late = upstreams.last_run(&run.name, word(&run.input, "threadId"));
        if late.is_none() {
            return Ok(attach(&shared, guest, encoding, run));
        }
    }
    let slot = match late {
        Some(live) => RunSlot::Join(live),
        // What was answered goes on when the run before is over, whoever still listens to that.
        None if run.parked.is_some() => upstreams
            .next_run(&run.name, &run.input)
            .map_or(RunSlot::Full, |(live, before)| RunSlot::Start(live, before)),
        None => upstreams.slot(&run.name, &run.input),
    };
    let (out, body) = fed();
    let outlet = Outlet::new(encoding, out);
    let keep_alive = outlet.keep_alive(run.upstream.keep_alive);
    let (live, listener, input) = match slot {
        RunSlot::Join(live) => {
            let listener = live.listen();
            (live, listener, Some(run.input))
        }
        RunSlot::Start(live, before) => {
            // Also while it is only about to begin.
            let listener = live.listen();
            run.begin(&shared, Arc::clone(&live), before).await?;
            (live, listener, None)
        }
        RunSlot::Busy => {
            let message = "somebody listens to another run of this thread";
            return Err(Problem::new(StatusCode::CONFLICT, "busy", message)
                .remedy("wait for its end, or run without a new message to listen as well")
                .retry_in(5));
        }
        RunSlot::Full => {
            let message = "too many runs are under way";
            return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "full", message)
                .remedy("try again when one of them is over")
                .retry_in(10));
        }
    };
    let hearing = Hearing { live, outlet, keep_alive, input, _listener: listener };
    shared.gateway.tasks.spawn(hear(shared.clone(), guest, hearing));
    Ok(stream(encoding, body))
}

/// A run that a client asks for.
struct RunRequest {
    name: String,
    upstream: Upstream,
    body: Bytes,
    input: Value,
    /// The right to go on with the run that waited, where this one answers it.
    parked: Option<ParkClaim>,
}

impl RunRequest {
    /// Gives the answers of `resume`, and takes the run that waited for them. Gives whether there is something to run:
    /// not where everything was answered elsewhere.
    async fn take_parked(&mut self, shared: &Shared, guest: &Guest) -> Result<bool, Problem> {
        let by = (shared.door.name, guest.key.as_str());
        let asked = (&self.body, &self.input);
        match shared.gateway.front_end_resume(&self.name, asked, by).await {
            Ok(FrontEndResume::PassOn) => Ok(true),
            Ok(FrontEndResume::Late) => Ok(false),
            Ok(FrontEndResume::Go { claim, body, input }) => {
                (self.parked, self.body, self.input) = (Some(*claim), body, input);
                Ok(true)
            }
            Err(NotResumed::Uncovered(interrupts)) => {
                let message = format!("resume has no entry for {}", interrupts.join(", "));
                Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "resume", message)
                    .at(UNCOVERED.code, "/resume")
                    .remedy(UNCOVERED.remedy))
            }
            Err(NotResumed::Failed(refused)) => Err(problem(&refused)),
            Err(NotResumed::Error(error)) => Err(Problem::internal(&error)),
        }
    }

    /// Begins the run, which goes on by itself.
    async fn begin(
        self,
        shared: &Shared,
        live: Arc<Live>,
        before: Option<Arc<Live>>,
    ) -> Result<(), Problem> {
        let Self { name, upstream, body, input, parked } = self;
        let (begun, answer) = oneshot::channel();
        let planned = PlannedRun { name, upstream, body, input, live, before, parked };
        let (gateway, stop) = (Arc::clone(&shared.gateway), shared.stop.clone());
        shared.gateway.tasks.spawn(async move {
            if let Some(claim) = Arc::clone(&gateway).conduct(planned, stop, begun).await {
                gateway.resume_failed(claim, "the agent gave no run").await;
            }
        });
        match answer.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(failure)) => {
                let status = match failure {
                    Failure::Silent => StatusCode::GATEWAY_TIMEOUT,
                    Failure::CalledOff => StatusCode::SERVICE_UNAVAILABLE,
                    _ => StatusCode::BAD_GATEWAY,
                };
                Err(Problem::new(status, "upstream", failure.to_string()).remedy(
                    "see whether the agent runs where config.toml says, and takes this input",
                ))
            }
            Err(gone) => Err(Problem::internal(&gone)),
        }
    }
}

/// The session of the thread as a run: what a front end gets that answers what was answered long ago.
fn attach(shared: &Shared, guest: Guest, encoding: Encoding, run: RunRequest) -> Response {
    let RunRequest { name, input, .. } = run;
    let session = session_of(&name, word(&input, "threadId"));
    let writer = Writer::new(word(&input, "threadId"), word(&input, "runId"));
    let (out, body) = fed();
    let outlet = Outlet::new(encoding, out);
    let run = AttachedRun { session, writer, outlet, resumed: Vec::new(), input, guest };
    let gateway = Arc::clone(&shared.gateway);
    shared.gateway.tasks.spawn(gateway.attach(run, shared.stop.clone()));
    stream(encoding, body)
}

/// Somebody who listens to a run.
struct Hearing {
    live: Arc<Live>,
    outlet: Outlet,
    keep_alive: KeepAlive,
    /// What it came back with, where it came back.
    input: Option<Value>,
    _listener: Listener,
}

/// Tells a run to one client, until it is over, its key is revoked or the gateway stops.
async fn hear(shared: Shared, guest: Guest, mut hearing: Hearing) {
    let live = Arc::clone(&hearing.live);
    tokio::select! {
        // Of the end that the run itself has when the gateway stops, and ours, either will do.
        () = shared.stop.cancelled() => {
            hearing.outlet.fail("shutdown", "the gateway stops; run again once it is back");
        }
        () = shared.gateway.keys.gone(&guest) => {
            hearing.outlet.fail("revoked", "the key of this run was revoked");
        }
        told = hearing.tell() => if told.is_ok() {
            live.end_heard();
        }
    }
}

impl Hearing {
    async fn tell(&mut self) -> Result<(), Gone> {
        let Self { live, outlet, keep_alive, input, .. } = self;
        let mut bell = live.bell();
        let mut seen = 0;
        if let Some(input) = input.take() {
            let (events, count, over) = live.again(&input);
            if over {
                return outlet.pass_last(&events);
            }
            seen = count;
            outlet.pass(&events).await?;
        }
        loop {
            bell.borrow_and_update();
            let (events, over) = live.after(seen);
            seen += events.len();
            if !events.is_empty() {
                keep_alive.renew();
            }
            let (first, last) = match events.len().checked_sub(1) {
                Some(at) if over => events.split_at(at),
                _ => (events.as_slice(), [].as_slice()),
            };
            for piece in first.chunks(AT_ONCE) {
                outlet.pass(piece).await?;
            }
            if over {
                return outlet.pass_last(last);
            }
            keep_alive.wait(&mut bell).await?;
        }
    }
}
