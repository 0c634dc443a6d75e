//! A gateway of forty lines, a directory that cleans up after itself, and a way to call the hook.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use banister_hook::{Conf, Section, render};

#[expect(clippy::disallowed_methods, reason = "the tests measure real deadlines")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// A directory with a `hook.conf`, removed at the end.
pub(crate) struct Home(PathBuf);

impl Home {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("bh-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).expect("temporary directory");
        Self(path)
    }

    /// A home whose agent `tester` has a gated event `Ask` and tells everything else.
    pub(crate) fn configured() -> Self {
        let home = Self::new();
        home.write(&home.conf());
        home
    }

    pub(crate) fn conf(&self) -> Conf {
        let second = Duration::from_secs(1);
        let path = |name| self.path(name).to_str().expect("UTF-8").to_owned();
        Conf {
            socket: path("s"),
            key: "bk_emit_test".into(),
            spool: path("spool"),
            reconnect: Duration::from_millis(600),
            sections: vec![
                Section { deadline: 3 * second, ..Section::strictest("tester", "Ask") },
                Section {
                    deadline: 3 * second,
                    exit: 0,
                    stdout: r#"{"deny":"{why}"}"#.into(),
                    stderr: String::new(),
                    ..Section::strictest("tester", "AskInJson")
                },
                Section {
                    deadline: second,
                    gated: false,
                    exit: 0,
                    stderr: "Banister did not record this yet: {why}".into(),
                    ..Section::strictest("tester", "*")
                },
            ],
        }
    }

    pub(crate) fn write(&self, conf: &Conf) {
        fs::write(self.path("hook.conf"), render(conf)).expect("written");
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Calls the hook with a payload that arrives through a pipe.
    pub(crate) fn call(&self, agent: &str, event: Option<&str>, payload: &[u8]) -> Outcome {
        let (reader, mut writer) = std::io::pipe().expect("pipe");
        let payload = payload.to_vec();
        let feeding = thread::spawn(move || writer.write_all(&payload).is_ok());
        let outcome = self.call_with(agent, event, OwnedFd::from(reader).into());
        assert!(feeding.join().expect("fed"), "the agent saw a broken pipe");
        outcome
    }

    pub(crate) fn call_with(&self, agent: &str, event: Option<&str>, stdin: File) -> Outcome {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let started = now();
        let exit = banister_hook::run(
            &self.path("hook.conf"),
            agent.as_ref(),
            event.map(AsRef::as_ref),
            stdin,
            &mut stdout,
            &mut stderr,
        );
        let stderr = String::from_utf8(stderr).expect("UTF-8");
        Outcome { exit, stdout, stderr, took: started.elapsed() }
    }

    /// The spooled calls, in the order of their names.
    pub(crate) fn spooled(&self) -> Vec<Vec<u8>> {
        let mut paths: Vec<PathBuf> = fs::read_dir(self.path("spool"))
            .map(|entries| entries.map(|entry| entry.expect("entry").path()).collect())
            .unwrap_or_default();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "spool"));
        paths.sort();
        paths.iter().map(|path| fs::read(path).expect("readable")).collect()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) exit: u8,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
    pub(crate) took: Duration,
}

impl Outcome {
    /// Asserts the strictest answer, for the given reason.
    pub(crate) fn assert_refused(&self, reason: &str) {
        assert_eq!((self.exit, self.stdout.as_slice()), (2, &b""[..]), "{self:?}");
        assert!(self.stderr.starts_with("Banister refused this: "), "{self:?}");
        assert!(self.stderr.contains(reason), "{reason:?} is not in {self:?}");
        assert_eq!(self.stderr.lines().count(), 1, "{self:?}");
    }
}

/// What a request said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let find = |line: &'_ str| line.split_once(": ").is_some_and(|(key, _)| key == name);
        let line = self.head.lines().find(|line| find(line))?;
        line.split_once(": ").map(|(_, value)| value)
    }
}

/// What the gateway does with a request.
pub(crate) enum Reply {
    Bytes(Vec<u8>),
    HangUp,
    Silence,
}

pub(crate) fn answer(exit: u8, stdout: &[u8], stderr: &[u8]) -> Reply {
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nbanister-exit: {exit}\r\n\
         banister-stderr-length: {}\r\nconnection: close\r\n\r\n",
        stdout.len() + stderr.len(),
        stderr.len(),
    );
    Reply::Bytes([head.as_bytes(), stdout, stderr].concat())
}

pub(crate) struct Gateway {
    socket: PathBuf,
    stopping: Arc<AtomicBool>,
    seen: Arc<Mutex<Vec<Request>>>,
    serving: Option<JoinHandle<()>>,
}

impl Gateway {
    /// Serves one connection after the other; `reply` gets the number of the request, from 0.
    pub(crate) fn start(
        home: &Home,
        reply: impl Fn(usize, &Request) -> Reply + Send + 'static,
    ) -> Self {
        let socket = home.path("s");
        let listener = UnixListener::bind(&socket).expect("bound");
        let stopping = Arc::new(AtomicBool::new(false));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (stop, requests) = (Arc::clone(&stopping), Arc::clone(&seen));
        let serving = thread::spawn(move || {
            let mut silent = Vec::new();
            for stream in listener.incoming() {
                let mut stream = stream.expect("accepted");
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                let Some(request) = read_request(&mut stream) else {
                    continue;
                };
                let number = {
                    let mut requests = requests.lock().expect("lock");
                    requests.push(request.clone());
                    requests.len() - 1
                };
                match reply(number, &request) {
                    Reply::Bytes(bytes) => drop(stream.write_all(&bytes)),
                    Reply::HangUp => {}
                    Reply::Silence => silent.push(stream),
                }
            }
        });
        Self { socket, stopping, seen, serving: Some(serving) }
    }

    pub(crate) fn seen(&self) -> Vec<Request> {
        self.seen.lock().expect("lock").clone()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::SeqCst);
        UnixStream::connect(&self.socket).ok();
        fs::remove_file(&self.socket).ok();
        if let Some(serving) = self.serving.take() {
            serving.join().expect("the gateway of the test did not panic");
        }
    }
}

fn read_request(stream: &mut UnixStream) -> Option<Request> {
    let mut received = Vec::new();
    let mut chunk = vec![0; 65536];
    loop {
        let length = stream.read(&mut chunk).ok().filter(|length| *length > 0)?;
        received.extend_from_slice(&chunk[..length]);
        let Some(end) = received.windows(4).position(|window| window == b"\r\n\r\n") else {
            continue;
        };
        let head = String::from_utf8(received[..end].to_vec()).expect("UTF-8");
        let mut request = Request { head, body: Vec::new() };
        let length: usize =
            request.header("Content-Length").expect("a length").parse().expect("a number");
        if received.len() >= end + 4 + length {
            request.body = received.split_off(end + 4);
            return Some(request);
        }
    }
}

/// Held while a program is written or started: a child forked in between would keep the program open for writing,
/// and then it cannot be run.
static PROGRAMS: Mutex<()> = Mutex::new(());

/// Puts the built hook into a home, beside its `hook.conf`.
pub(crate) fn installed(home: &Home) -> PathBuf {
    let _alone = PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner);
    let hook = home.path("banister-hook");
    fs::copy(env!("CARGO_BIN_EXE_banister-hook"), &hook).expect("copied");
    hook
}

pub(crate) fn spawn(command: &mut Command) -> Child {
    let _alone = PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner);
    command.spawn().expect("started")
}
