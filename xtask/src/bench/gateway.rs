//! A gateway of its own, in a directory of its own, ended by its own handle.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde_json::Value;

/// A gateway that runs until it is dropped.
#[derive(Debug)]
pub(super) struct Gateway {
    child: Child,
    data: PathBuf,
    /// Where it listens on TCP.
    pub(super) address: String,
    socket: PathBuf,
    /// The key that hooks come with.
    pub(super) key: String,
}

impl Gateway {
    pub(super) fn start(banister: &Path, data: &Path) -> anyhow::Result<Self> {
        let log = std::fs::File::create(data.with_extension("log"))?;
        let child = Command::new(banister)
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(data)
            // The person's own rules and settings must not decide what is measured.
            .env_clear()
            .env("HOME", data)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .with_context(|| banister.display().to_string())?;
        let mut gateway = Self {
            child,
            data: data.to_owned(),
            address: String::new(),
            socket: PathBuf::new(),
            key: String::new(),
        };
        gateway.wait()?;
        Ok(gateway)
    }

    /// Waits until it has told where it listens.
    fn wait(&mut self) -> anyhow::Result<()> {
        for _ in 0..500 {
            if let Some(status) = self.child.try_wait()? {
                bail!("the gateway ended at once, with {status}");
            }
            let told = std::fs::read(self.data.join("gateway.json")).ok();
            if let Some(told) = told.and_then(|told| serde_json::from_slice::<Value>(&told).ok()) {
                let text = |key: &str| told.get(key).and_then(Value::as_str).map(str::to_owned);
                self.address = text("address").context("gateway.json has no address")?;
                self.socket = text("socket").context("gateway.json has no socket")?.into();
                let key = std::fs::read_to_string(self.data.join("keys/agent.key"))?;
                key.trim().clone_into(&mut self.key);
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        bail!("the gateway did not begin to listen within ten seconds");
    }

    /// The number of its process.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Puts another hook where agents find it.
    pub(super) fn install(&self, hook: &Path) -> anyhow::Result<PathBuf> {
        let place = self.data.join("hook/banister-hook");
        let fresh = self.data.join("hook/banister-hook.fresh");
        std::fs::copy(hook, &fresh).with_context(|| hook.display().to_string())?;
        std::fs::rename(&fresh, &place)?;
        Ok(place)
    }

    /// Asks what the hook asks, over the same socket, without starting a program for it.
    pub(super) fn ask(&self, payload: &str, number: usize) -> anyhow::Result<String> {
        let mut stream = UnixStream::connect(&self.socket)?;
        let request = format!(
            "POST /hooks/claude-code/PreToolUse HTTP/1.1\r\nHost: banister\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\nIdempotency-Key: bench-{number}\r\n\
             Connection: close\r\n\r\n{payload}",
            self.key,
            payload.len(),
        );
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        ensure!(answer.starts_with("HTTP/1.1 200 "), "the gateway answered {answer:?}");
        Ok(answer)
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        if self.child.kill().and_then(|()| self.child.wait()).is_err() {
            crate::tell("bench: the gateway could not be ended");
        }
    }
}

/// Answers everything on a socket with the same words, at once, for as long as this program runs.
pub(super) fn parrot(socket: &Path, words: &str) -> anyhow::Result<()> {
    let listener = UnixListener::bind(socket).with_context(|| socket.display().to_string())?;
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nbanister-exit: 0\r\nbanister-stderr-length: 0\r\n\
         connection: close\r\n\r\n{words}",
        words.len(),
    );
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            // A hook that gets no answer is seen by whoever started it.
            stream.and_then(|stream| reply(stream, &answer)).ok();
        }
    });
    Ok(())
}

/// Reads one request to its end and answers it.
fn reply(mut stream: UnixStream, answer: &str) -> std::io::Result<()> {
    let mut request = Vec::new();
    let mut chunk = [0; 8_192];
    loop {
        let length = stream.read(&mut chunk)?;
        request.extend_from_slice(chunk.get(..length).unwrap_or_default());
        let text = String::from_utf8_lossy(&request);
        let whole = text.split_once("\r\n\r\n").is_some_and(|(head, body)| {
            let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
            length
                .and_then(|length| length.parse().ok())
                .is_some_and(|length: usize| body.len() >= length)
        });
        if whole || length == 0 {
            return stream.write_all(answer.as_bytes());
        }
    }
}
