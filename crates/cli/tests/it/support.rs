//! A real gateway in a process of its own, and the ways to talk to it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// The command line's binary.
pub(crate) const BANISTER: &str = env!("CARGO_BIN_EXE_banister");

/// A gateway that is killed when the test ends.
pub(crate) struct Gateway {
    pub(crate) dir: tempfile::TempDir,
    child: Option<Child>,
}

impl Gateway {
    pub(crate) fn start() -> Self {
        let mut gateway = Self::stopped();
        gateway.up();
        gateway
    }

    /// A data directory whose gateway has run once, and does not run now.
    pub(crate) fn stopped() -> Self {
        // Short, because a socket's path may not be long.
        let dir = tempfile::Builder::new().prefix("bt").tempdir_in("/tmp").unwrap();
        Self { dir, child: None }
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.dir.path().join("d")
    }

    /// Starts it, and waits until it answers.
    pub(crate) fn up(&mut self) {
        self.up_with(&[]);
    }

    pub(crate) fn up_with(&mut self, more: &[&str]) {
        self.launch(Command::new(BANISTER), more);
    }

    /// Starts it, and leaves it room for no more than so many bytes a file.
    pub(crate) fn up_full(&mut self, bytes: u32) {
        let mut shell = Command::new("bash");
        // Ignored, the signal becomes an error, as on a disk that is full.
        shell.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\"", BANISTER]);
        self.launch(shell, &[]);
        let pid = self.child.as_ref().unwrap().id().to_string();
        let limit = format!("--fsize={bytes}:{bytes}");
        assert!(Command::new("prlimit").args(["--pid", &pid, &limit]).status().unwrap().success());
    }

    /// Starts it by another program, which is given the arguments.
    pub(crate) fn up_by(&mut self, command: Command) {
        self.launch(command, &[]);
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// Starts it, and does not wait for it.
    pub(crate) fn begin(&mut self) {
        self.spawn(Command::new(BANISTER), &[]);
    }

    fn launch(&mut self, command: Command, more: &[&str]) {
        self.spawn(command, more);
        wait_for("the gateway to start", || {
            self.data().join("gateway.json").exists() && UnixStream::connect(self.socket()).is_ok()
        });
    }

    fn spawn(&mut self, mut command: Command, more: &[&str]) {
        let _gone = std::fs::remove_file(self.data().join("gateway.json"));
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.dir.path().join("log"))
            .unwrap();
        let child = command
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(self.data())
            .args(more)
            .env("HOME", self.dir.path())
            .env_remove("XDG_CONFIG_HOME")
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        self.child = Some(child);
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _dead = child.kill();
            child.wait().unwrap();
        }
    }

    /// Asks it to stop, and waits until it has.
    pub(crate) fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let pid = child.id().to_string();
            assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
            assert!(child.wait().unwrap().success());
        }
    }

    /// `kill -9` while others still use it.
    pub(crate) fn kill_shared(&self) {
        let pid = self.child.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args(["-9", &pid]).status().unwrap().success());
    }

    /// Asks it to stop, as a service manager does.
    pub(crate) fn terminate(&self) {
        let pid = self.child.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    pub(crate) fn running(&self) -> Value {
        let text = std::fs::read_to_string(self.data().join("gateway.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.data().join("banister.sock")
    }

    pub(crate) fn address(&self) -> String {
        self.running()["address"].as_str().unwrap().to_owned()
    }

    pub(crate) fn key(&self, name: &str) -> String {
        std::fs::read_to_string(self.data().join("keys").join(name)).unwrap()
    }

    /// Runs a command on this gateway.
    pub(crate) fn banister(&self, args: &[&str]) -> Output {
        Command::new(BANISTER).args(args).arg("--data").arg(self.data()).output().unwrap()
    }

    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let output = self.banister(args);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{args:?}: {output:?}"))
    }

    /// Starts the installed hook with a payload.
    pub(crate) fn hook(&self, event: &str, payload: &[u8]) -> Child {
        start_hook(&self.data().join("hook/banister-hook"), event, payload)
    }

    /// Runs the installed hook to its end.
    pub(crate) fn hooked(&self, event: &str, payload: &Value) -> Output {
        self.hook(event, payload.to_string().as_bytes()).wait_with_output().unwrap()
    }

    /// The id of the one ask that is open, once it is.
    pub(crate) fn asked(&self) -> String {
        let mut id = None;
        wait_for("an ask", || {
            let inbox = self.json(&["inbox", "--json"]);
            id = inbox["asks"][0]["id"].as_str().map(str::to_owned);
            id.is_some()
        });
        id.unwrap()
    }

    pub(crate) fn records(&self) -> Vec<Value> {
        let output = self.banister(&["log", "show", "--json", "--limit", "1000000"]);
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// One request over the Unix socket with the person's key.
    pub(crate) fn get(&self, path: &str) -> Response {
        let key = self.key("person.key");
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: banister\r\nAuthorization: Bearer {key}\r\nConnection: close\r\n\r\n"
        );
        exchange(UnixStream::connect(self.socket()).unwrap(), request.as_bytes())
    }

    /// One raw request over TCP.
    pub(crate) fn raw(&self, request: &str) -> Response {
        exchange(TcpStream::connect(self.address()).unwrap(), request.as_bytes())
    }

    /// What a stream says until it has been quiet for a while, as it stands in a recording.
    pub(crate) fn stream(&self, path: &str, extra: &str, quiet: Duration) -> String {
        self.stream_to("person.key", path, extra, quiet)
    }

    /// The same with another key.
    pub(crate) fn stream_to(&self, key: &str, path: &str, extra: &str, quiet: Duration) -> String {
        let key = self.key(key);
        let mut socket = UnixStream::connect(self.socket()).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: banister\r\nAuthorization: Bearer {key}\r\n{extra}\r\n"
        );
        socket.write_all(request.as_bytes()).unwrap();
        let mut bytes = Vec::new();
        let begun = Instant::now();
        let mut last = None;
        while last.is_none_or(|last: Instant| last.elapsed() < quiet) {
            assert!(
                begun.elapsed() < Duration::from_secs(30),
                "the stream says nothing, or too much"
            );
            let mut buffer = [0; 8_192];
            match socket.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => {
                    bytes.extend_from_slice(&buffer[..count]);
                    if bytes.windows(6).any(|window| window == b"data: ") {
                        last = Some(Instant::now());
                    }
                }
                Err(_) => {}
            }
        }
        Response::parse(&bytes).body
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Starts a hook's binary with a payload on stdin.
pub(crate) fn start_hook(hook: &Path, event: &str, payload: &[u8]) -> Child {
    let mut child = Command::new(hook)
        .args(["claude-code", event])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let payload = payload.to_vec();
    // A hook that has heard enough may close its end.
    std::thread::spawn(move || stdin.write_all(&payload));
    child
}

/// One HTTP response.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Response {
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        let chunked = head.to_lowercase().contains("transfer-encoding: chunked");
        let body = if chunked { unchunk(body) } else { body.to_owned() };
        Self { status, head: head.to_lowercase(), body }
    }
}

fn unchunk(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let Ok(size) = usize::from_str_radix(size.trim(), 16) else { break };
        if size == 0 || rest.len() < size {
            break;
        }
        whole.push_str(&rest[..size]);
        body = rest.get(size + 2..).unwrap_or_default();
    }
    whole
}

pub(crate) fn exchange(mut stream: impl Read + Write, request: &[u8]) -> Response {
    stream.write_all(request).unwrap();
    let mut bytes = Vec::new();
    let _cut = stream.read_to_end(&mut bytes);
    Response::parse(&bytes)
}

pub(crate) fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_mins(1);
    while !done() {
        assert!(Instant::now() < until, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A Claude Code payload.
pub(crate) fn payload(event: &str, fields: &Value) -> Value {
    let mut payload = json!({
        "session_id": "one", "prompt_id": "p1", "cwd": "/home/dev/orbit",
        "permission_mode": "default", "hook_event_name": event,
    });
    payload.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    payload
}

/// A Claude Code payload for a command.
pub(crate) fn command(id: &str, command: &str) -> Value {
    payload(
        "PreToolUse",
        &json!({ "tool_name": "Bash", "tool_use_id": id, "tool_input": { "command": command } }),
    )
}

/// What Claude Code reads from the hook: the decision and its reason.
pub(crate) fn decision(output: &Output) -> (String, String) {
    let answer: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("not a native answer: {output:?}"));
    let said = &answer["hookSpecificOutput"];
    let word = |key: &str| said[key].as_str().unwrap_or_default().to_owned();
    (word("permissionDecision"), word("permissionDecisionReason"))
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}
