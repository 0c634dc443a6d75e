//! Listens on a TCP port and a Unix socket.
//!
//! The loop is our own, because what stands before a service that any web page can knock at needs bounds: on the time a
//! request's head may take, on the number of connections, on how long a shutdown waits.

use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use crate::http::aaep::framed::AAEP_KEY;
use crate::http::{self, Door, Shared};
use crate::{Error, Gateway};

const HEAD_TIME: Duration = Duration::from_secs(10);
/// Apart, so that nobody at the port can keep a hook from its socket.
const MOST_AT_PORT: usize = 2_048;
const MOST_AT_SOCKET: usize = 384;
/// How many files are open beside connections, at most: the journal's, the listeners, those that are turned away.
const OTHER_FILES: usize = 128;
/// How many that are one too many are told so at a time.
const MOST_TURNED_AWAY: usize = 64;
const BUSY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n\
    Content-Type: application/json\r\nContent-Length: 80\r\n\r\n\
    {\"error\":{\"code\":\"busy\",\"message\":\"there are too many connections; try again\"}}\n";
const DRAIN: Duration = Duration::from_secs(3);
/// How long requests that are under way when a gateway stops may take.
const IN_FLIGHT: Duration = Duration::from_secs(1);
const SWEEP: Duration = Duration::from_millis(500);
/// The rule files are looked at once in so many sweeps.
const RULES_EVERY: u32 = 2;
/// The spool is looked at once in so many sweeps.
const SPOOL_EVERY: u32 = 20;

/// A gateway that listens.
#[derive(Debug)]
pub struct Serving {
    /// Where it listens for browsers and programs.
    pub address: SocketAddr,
    /// Where it listens for hooks and the command line.
    pub socket: PathBuf,
    /// Where AAEP is spoken in length frames, if it could be opened.
    pub aaep: Option<PathBuf>,
    gateway: Arc<Gateway>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Serving {
    /// Stops: no new connections, a short time for those that are open.
    pub async fn stop(self) {
        self.stop.cancel();
        self.tasks.close();
        if tokio::time::timeout(DRAIN, self.tasks.wait()).await.is_err() {
            tracing::warn!("Some connections were still open and are cut.");
        }
        let rest = self.gateway.indexer.catch_up(self.gateway.journal.head());
        if !matches!(tokio::time::timeout(DRAIN, rest).await, Ok(Ok(_))) {
            tracing::warn!("Some records are indexed when the gateway starts again.");
        }
        look_after(&self.gateway).await;
        for socket in std::iter::once(&self.socket).chain(&self.aaep) {
            if let Err(error) = std::fs::remove_file(socket) {
                tracing::debug!(%error, "The socket was not removed.");
            }
        }
    }
}

/// Where AAEP is spoken in length frames, by the socket that hooks use: under the producer's name, in a folder `aaep`
/// beside it. In the runtime directory that is where AAEP's binding looks for it.
pub fn aaep_socket(socket: &Path) -> PathBuf {
    socket.with_file_name("aaep").join(format!("{}.sock", crate::manifest::AGENT_ID))
}

/// Begins to listen.
pub async fn start(
    gateway: &Arc<Gateway>,
    listen: SocketAddr,
    socket: &Path,
) -> Result<Serving, Error> {
    if !listen.ip().is_loopback() {
        let source = std::io::Error::other("only this machine is served; use a loopback address");
        return Err(Error::Listen { address: listen.to_string(), source });
    }
    let unix = bind_socket(socket)?;
    let failed = |source| Error::Listen { address: listen.to_string(), source };
    let tcp = TcpListener::bind(listen).await.map_err(failed)?;
    let address = tcp.local_addr().map_err(failed)?;
    let _first = gateway.address.set(address);
    let stop = CancellationToken::new();
    let tasks = gateway.tasks.clone();

    let web = http::router(Arc::clone(gateway), Door::web(address), stop.clone());
    let local = http::router(Arc::clone(gateway), Door::socket(), stop.clone());
    let run = |most, turned_away| Run {
        gateway: Arc::clone(gateway),
        stop: stop.clone(),
        tasks: tasks.clone(),
        connections: Arc::new(Semaphore::new(most)),
        turned_away: Arc::new(Semaphore::new(turned_away)),
    };
    tasks.spawn({
        let run = run(most_at_port(open_files()), MOST_TURNED_AWAY);
        async move {
            loop {
                let accepted = tokio::select! {
                    () = run.stop.cancelled() => break,
                    accepted = tcp.accept() => accepted,
                };
                match accepted {
                    Ok((stream, _)) => {
                        let _nodelay = stream.set_nodelay(true);
                        run.connection(stream, web.clone());
                    }
                    Err(error) => pause(&error).await,
                }
            }
        }
    });
    // A hook that is cut off tries again; one that is told anything else has its answer.
    let run = run(MOST_AT_SOCKET, 0);
    tasks.spawn(async move {
        loop {
            let accepted = tokio::select! {
                () = run.stop.cancelled() => break,
                accepted = unix.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => run.connection(stream, local.clone()),
                Err(error) => pause(&error).await,
            }
        }
    });
    let aaep = aaep_socket(socket);
    let aaep = match bind_socket(&aaep) {
        Ok(listener) => {
            tasks.spawn(talk(listener, Arc::clone(gateway), stop.clone()));
            Some(aaep)
        }
        Err(error) => {
            tracing::warn!(%error, "AAEP is not spoken on a socket of its own.");
            None
        }
    };
    tasks.spawn(housekeeping(Arc::clone(gateway), stop.clone()));
    tasks.spawn(upkeep(Arc::clone(gateway), stop.clone()));
    tasks.spawn(Arc::clone(gateway).resume_parked(stop.clone()));
    tasks.spawn(gateway.indexer.clone().follow(stop.clone()));
    let (socket, gateway) = (socket.to_owned(), Arc::clone(gateway));
    Ok(Serving { address, socket, aaep, gateway, stop, tasks })
}

/// Takes AAEP's subscribers. How many there may be is the subscriptions' to say.
async fn talk(listener: UnixListener, gateway: Arc<Gateway>, stop: CancellationToken) {
    let shared = Shared { gateway, door: Door::aaep(), stop };
    loop {
        let accepted = tokio::select! {
            () = shared.stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                shared.gateway.tasks.spawn(http::aaep::framed::serve(shared.clone(), stream));
            }
            Err(error) => pause(&error).await,
        }
    }
}

/// How many files may be open, once that is as many as the system lets us have.
fn open_files() -> Option<u64> {
    let now = getrlimit(Resource::Nofile);
    let mut raised = now;
    raised.current = now.maximum;
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => now.maximum,
        Err(error) => {
            tracing::debug!(%error, "The limit on open files stays as it is.");
            now.current
        }
    }
}

/// As many connections as there may be files beside all others, at least a few.
fn most_at_port(files: Option<u64>) -> usize {
    let files = files.and_then(|files| usize::try_from(files).ok()).unwrap_or(usize::MAX);
    let most = files.saturating_sub(MOST_AT_SOCKET + OTHER_FILES).clamp(64, MOST_AT_PORT);
    if most < MOST_AT_PORT {
        tracing::warn!(most, "Few files may be open, so there can be few connections.");
    }
    most
}

#[derive(Clone)]
struct Run {
    gateway: Arc<Gateway>,
    stop: CancellationToken,
    tasks: TaskTracker,
    connections: Arc<Semaphore>,
    turned_away: Arc<Semaphore>,
}

impl Run {
    fn connection(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        router: Router,
    ) {
        let Ok(permit) = Arc::clone(&self.connections).try_acquire_owned() else {
            self.turn_away(stream);
            return;
        };
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            let _permit = permit;
            let service = TowerToHyperService::new(router);
            let mut builder = http1::Builder::new();
            builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME).keep_alive(true);
            let connection =
                builder.serve_connection(TokioIo::new(stream), service).with_upgrades();
            let mut connection = std::pin::pin!(connection);
            let ended = tokio::select! {
                ended = &mut connection => ended,
                () = stop.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    // Streams are told the end; hooks that wait on a person do not end by themselves.
                    tokio::time::timeout(IN_FLIGHT, connection).await.unwrap_or(Ok(()))
                }
            };
            if let Err(error) = ended {
                tracing::debug!(%error, "A connection ended early.");
            }
        });
    }

    /// Over the limit a connection is told so, where there is room for that, and closed.
    fn turn_away(&self, mut stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        self.gateway.metrics.turned_away();
        tracing::warn!("Too many connections; one was turned away.");
        let Ok(permit) = Arc::clone(&self.turned_away).try_acquire_owned() else { return };
        self.tasks.spawn(async move {
            let _permit = permit;
            let told = async {
                stream.write_all(BUSY).await?;
                stream.shutdown().await?;
                // Until the other side has read it: what closes with bytes unread may take the answer along.
                let mut rest = [0; 1_024];
                while stream.read(&mut rest).await? > 0 {}
                Ok::<_, std::io::Error>(())
            };
            // Whoever does not listen is not told.
            drop(tokio::time::timeout(IN_FLIGHT, told).await);
        });
    }
}

async fn housekeeping(gateway: Arc<Gateway>, stop: CancellationToken) {
    let mut round: u32 = 0;
    loop {
        if round.is_multiple_of(SPOOL_EVERY) {
            let taken = gateway.take_in_spool().await;
            if taken > 0 {
                tracing::info!(taken, "Payloads that hooks had kept were recorded.");
            }
        }
        round = round.wrapping_add(1);
        tokio::select! {
            () = stop.cancelled() => break,
            () = tokio::time::sleep(SWEEP) => {}
        }
        if round.is_multiple_of(RULES_EVERY) {
            let gateway = Arc::clone(&gateway);
            // Loading rules takes longer than a step of a task may.
            drop(tokio::task::spawn_blocking(move || gateway.policy_store.refresh()).await);
        }
        gateway.desk.sweep().await;
        gateway.sweep_subscriptions().await;
        gateway.end_idle_turns().await;
    }
}

/// Signs the journal now and then, and removes what is too old. Apart from the rest, because it may take its time.
async fn upkeep(gateway: Arc<Gateway>, stop: CancellationToken) {
    let (sign, prune) = {
        let policy = gateway.keeper.policy();
        (policy.sign_every, policy.prune_every)
    };
    let mut sign = tokio::time::interval(sign.max(SWEEP));
    let mut prune = tokio::time::interval(prune.max(SWEEP));
    for ticks in [&mut sign, &mut prune] {
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    }
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            _ = sign.tick() => look_after(&gateway).await,
            _ = prune.tick() => match gateway.keeper.prune(gateway.desk.sessions()).await {
                Ok(Some(pruned)) if pruned.records > 0 => {
                    tracing::info!(records = pruned.records, "Old records were removed.");
                }
                Ok(_) => {}
                Err(error) => tracing::error!(%error, "Old records could not be removed."),
            },
        }
    }
}

async fn look_after(gateway: &Gateway) {
    if let Err(error) = gateway.history.tidy().await {
        tracing::error!(%error, "The desk could not be tidied.");
    }
    if let Err(error) = gateway.keeper.sign().await {
        tracing::error!(%error, "The journal could not be signed.");
    }
}

async fn pause(error: &std::io::Error) {
    // Out of file descriptors, most likely: spinning would not bring any back.
    tracing::warn!(%error, "A connection could not be accepted.");
    tokio::time::sleep(Duration::from_millis(100)).await;
}

/// Binds the socket so that only its owner can connect. A socket that another gateway answers on is left alone.
fn bind_socket(path: &Path) -> Result<UnixListener, Error> {
    let failed = |source| Error::Listen { address: path.display().to_string(), source };
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(failed)?;
    }
    if let Ok(file) = std::fs::symlink_metadata(path) {
        let answered = std::os::unix::net::UnixStream::connect(path).is_ok();
        if answered || !file.file_type().is_socket() {
            let message =
                if answered { "another gateway listens there" } else { "it is not a socket" };
            return Err(failed(std::io::Error::new(std::io::ErrorKind::AddrInUse, message)));
        }
        std::fs::remove_file(path).map_err(failed)?;
    }
    let listener = UnixListener::bind(path).map_err(failed)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
    Ok(listener)
}

#[cfg(test)]
#[path = "serve_tests.rs"]
mod tests;
