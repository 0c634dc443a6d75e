//! The disk: it has confirmed before anybody is told; when it is full nothing is lost and nothing is allowed; where it is
//! read-only nothing starts, and what is there can be read.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::support::{BANISTER, Gateway, Response, command, decision, stderr, stdout, wait_for};

fn event(id: &str, text: &str) -> Value {
    json!({
        "aep_version": "0.1", "id": id, "type": "prompt.submitted", "time": "2026-11-15T09:00:00.000Z",
        "agent": { "slug": "finch" }, "session": { "id": "one" },
        "content": [{ "type": "prompt", "text": text }],
    })
}

fn post(gateway: &Gateway, path: &str, body: &str) -> Response {
    let (host, key, length) = (gateway.address(), gateway.key("agent.key"), body.len());
    gateway.raw(&format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {key}\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    ))
}

fn push(gateway: &Gateway, id: &str, text: &str) -> Response {
    post(gateway, "/aep/v0.1/events", &event(id, text).to_string())
}

/// What a traced program did that matters here, in its order.
#[derive(Debug, PartialEq)]
enum Step {
    /// A request with this mark came in.
    Heard(String),
    /// The disk confirmed the journal's log.
    Synced,
    /// A whole answer began to leave.
    Told,
}

/// Reads what strace wrote. A call that others interrupt stands on two lines; what it did is done with the second.
fn steps(trace: &str) -> Vec<Step> {
    let mut begun: HashMap<&str, bool> = HashMap::new();
    let mut steps = Vec::new();
    for line in trace.lines() {
        let Some((thread, call)) = line.split_once(' ') else { continue };
        let call = call.trim_start();
        let log = |text: &str| text.contains("sync(") && text.contains("journal.db-wal");
        if call.ends_with("<unfinished ...>") && call.contains("sync(") {
            begun.insert(thread, log(call));
        } else if call.starts_with("<... f") && call.contains("sync resumed>") {
            if begun.remove(thread) == Some(true) && call.ends_with("= 0") {
                steps.push(Step::Synced);
            }
        } else if log(call) && call.ends_with("= 0") {
            steps.push(Step::Synced);
        } else if call.contains("HTTP/1.1 200 OK") {
            steps.push(Step::Told);
        } else if let Some(at) = call.find("mark-") {
            let rest = &call[at..];
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-');
            // Only where it came in: it is written to the log as well.
            let read = ["read(", "recvfrom(", "readv(", "recvmsg(", "<... re"];
            if read.iter().any(|name| call.starts_with(name)) {
                steps.push(Step::Heard(rest[..end.unwrap_or(rest.len())].to_owned()));
            }
        }
    }
    steps
}

/// Whether the sync lay between a request and its answer, for each mark.
fn synced(steps: &[Step]) -> Vec<(String, bool)> {
    let mut found = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        let Step::Heard(mark) = step else { continue };
        let until = steps[at..].iter().position(|step| *step == Step::Told);
        let until = until.unwrap_or_else(|| panic!("{mark} was not answered"));
        found.push((mark.clone(), steps[at..at + until].contains(&Step::Synced)));
    }
    found
}

#[cfg(target_os = "linux")]
#[test]
fn the_disk_has_confirmed_between_a_push_and_its_receipt() {
    let works = Command::new("strace").args(["-o", "/dev/null", "true"]).output();
    if !works.is_ok_and(|output| output.status.success()) {
        let must = std::env::var("BANISTER_STRACE").is_ok();
        assert!(!must, "strace is not installed, or may not trace");
        eprintln!(
            "NOT TESTED: strace is not installed, or may not trace; `./test disk` installs it"
        );
        return;
    }
    let mut gateway = Gateway::stopped();
    let trace = gateway.dir.path().join("trace");
    let mut strace = Command::new("strace");
    let calls = "trace=fsync,fdatasync,read,recvfrom,readv,recvmsg,write,writev,sendto,sendmsg";
    // -D: the gateway is our child, strace is not.
    strace.args(["-D", "-f", "-y", "-s", "4096", "-e", calls, "-o"]).arg(&trace).arg(BANISTER);
    gateway.up_by(strace);
    for n in 0..20 {
        let answer = push(&gateway, &format!("mark-push-{n}-"), "Go.");
        assert!(answer.status == 200 && answer.body.contains("recorded"), "{answer:?}");
    }
    for n in 0..10 {
        let call = |kind: &str, line: &str| command(&format!("mark-{kind}-{n}-"), line).to_string();
        let path = "/hooks/claude-code/PreToolUse";
        let answer = post(&gateway, path, &call("deny", "rm -rf /"));
        assert!(answer.body.contains("\"deny\""), "{answer:?}");
        let answer = post(&gateway, path, &call("allow", "git status"));
        assert!(answer.body.contains("\"allow\""), "{answer:?}");
    }
    gateway.stop();
    wait_for("the trace to end", || {
        std::fs::read_to_string(&trace).is_ok_and(|text| text.trim_end().ends_with("+++"))
    });
    let text = std::fs::read_to_string(&trace).unwrap();
    let found = synced(&steps(&text));
    let of = |kind: &str| -> Vec<bool> {
        let start = format!("mark-{kind}-");
        found
            .iter()
            .filter(|(mark, _)| mark.starts_with(&start))
            .map(|(_, synced)| *synced)
            .collect()
    };
    assert_eq!(of("push"), [true; 20], "{found:?}");
    assert_eq!(of("deny"), [true; 10], "{found:?}");
    // What a rule allows need not wait for the disk: some does not, or this test could not tell.
    assert_eq!(of("allow").len(), 10, "{found:?}");
    assert!(of("allow").contains(&false), "{found:?}");
}

/// Pushes until the journal takes no more; gives how many were acknowledged, and the refusal.
fn fill(gateway: &Gateway, name: &str) -> (usize, Response) {
    let text = "x".repeat(20_000);
    for n in 0..2_000 {
        let answer = push(gateway, &format!("{name}-{n}"), &text);
        if answer.status != 200 {
            return (n, answer);
        }
    }
    panic!("the journal never was full");
}

/// Full, then not: what was acknowledged is there, what was not is not, and nobody was allowed anything meanwhile.
fn survives(gateway: &mut Gateway, full: &dyn Fn(&Gateway), room: &dyn Fn(&Gateway)) {
    assert_eq!(push(gateway, "first", "Go.").status, 200);
    full(gateway);
    let (acknowledged, refusal) = fill(gateway, "full");
    assert_eq!(refusal.status, 503, "{refusal:?}");
    assert!(refusal.head.contains("\r\nretry-after: 1"), "{refusal:?}");
    let error: Value = serde_json::from_str(&refusal.body).unwrap();
    assert_eq!(error["error"]["code"], "journal", "{error}");
    let mut call = command("t1", "git status");
    // Larger than what a push needed, which was more than its text: there is no room for this either.
    call["tool_input"]["description"] = "x".repeat(200_000).into();
    let (said, reason) = decision(&gateway.hooked("PreToolUse", &call));
    assert_eq!(said, "deny", "{reason}");
    let mut action = event("asks", "");
    action["type"] = json!("action.requested");
    action["action"] = json!({
        "type": "tool_call", "id": "a1", "input": { "command": "git status", "x": "x".repeat(200_000) },
    });
    action["tool"] = json!({ "type": "native", "name": "Bash" });
    let held = post(gateway, "/aep/v0.1/decide", &action.to_string());
    assert_eq!(held.status, 503, "{held:?}");
    assert!(!held.body.contains("\"behavior\":\"allow\""), "{held:?}");
    assert_eq!(gateway.get("/healthz").status, 200);
    // Who reads is not disturbed.
    assert_eq!(gateway.get("/api/sessions").status, 200);

    room(gateway);
    let again = push(gateway, &format!("full-{acknowledged}"), &"x".repeat(20_000));
    assert_eq!(again.status, 200, "there is room again: {again:?}");
    assert_eq!(gateway.get("/readyz").status, 200);
    call["tool_use_id"] = json!("t2");
    assert_eq!(decision(&gateway.hooked("PreToolUse", &call)).0, "allow");
    gateway.kill();
    let verified = gateway.banister(&["log", "verify"]);
    assert_eq!(verified.status.code(), Some(0), "{verified:?}");
    let records = gateway.records();
    let pushed: Vec<&str> = records
        .iter()
        .filter_map(|record| record["event_id"].as_str())
        .filter(|id| id.starts_with("full-"))
        .collect();
    let expected: Vec<String> = (0..=acknowledged).map(|n| format!("full-{n}")).collect();
    assert_eq!(pushed, expected);
}

#[test]
fn a_file_that_may_not_grow_refuses_and_goes_on_when_it_may() {
    let mut gateway = Gateway::stopped();
    gateway.up_full(0x7fff_ffff);
    let limit = |bytes: &str| {
        let limit = format!("--fsize={bytes}:");
        move |gateway: &Gateway| {
            let pid = gateway.pid().to_string();
            assert!(
                Command::new("prlimit").args(["--pid", &pid, &limit]).status().unwrap().success()
            );
        }
    };
    survives(&mut gateway, &limit("600000"), &limit("2147483647"));
}

/// A file system of a test's own, where this may be had; gone when the test ends.
struct Mount(PathBuf);

impl Mount {
    fn new(path: &Path, size: &str) -> Option<Self> {
        std::fs::create_dir_all(path).unwrap();
        let options = format!("size={size},mode=0700");
        let mut mount = Command::new("mount");
        let output = mount.args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(path).output();
        output.is_ok_and(|output| output.status.success()).then(|| Self(path.to_owned()))
    }

    fn remount(&self, how: &str) {
        let options = format!("remount,{how}");
        let output = Command::new("mount").args(["-o", &options]).arg(&self.0).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _output = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

#[test]
fn a_full_disk_refuses_and_goes_on_when_there_is_room() {
    let mut gateway = Gateway::stopped();
    let Some(_mount) = Mount::new(&gateway.data(), "64m") else {
        eprintln!("NOT TESTED: no file system can be mounted here; root can");
        return;
    };
    gateway.up();
    let ballast = |gateway: &Gateway| gateway.data().join("ballast");
    let full = move |gateway: &Gateway| {
        use std::io::Write;
        let mut file = std::fs::File::create(ballast(gateway)).unwrap();
        let piece = vec![0; 64 * 1024];
        while file.write_all(&piece).is_ok() {}
    };
    let room = move |gateway: &Gateway| std::fs::remove_file(ballast(gateway)).unwrap();
    survives(&mut gateway, &full, &room);
    drop(gateway);
}

fn serve(gateway: &Gateway) -> Output {
    gateway.banister(&["serve", "--listen", "127.0.0.1:0"])
}

#[test]
fn nothing_starts_on_a_read_only_disk_and_what_is_there_is_read() {
    let mut gateway = Gateway::stopped();
    let Some(mount) = Mount::new(&gateway.data(), "64m") else {
        eprintln!("NOT TESTED: no file system can be mounted here; root can");
        return;
    };
    // Stopped in order, and not: with its log empty, and full.
    for (id, killed) in [("one", false), ("two", true)] {
        gateway.up();
        assert_eq!(push(&gateway, id, "Go.").status, 200);
        if killed {
            gateway.kill();
        } else {
            gateway.stop();
        }
        mount.remount("ro");
        let refused = serve(&gateway);
        assert_eq!(refused.status.code(), Some(3), "{refused:?}");
        assert!(stderr(&refused).to_lowercase().contains("read-only"), "{}", stderr(&refused));
        let verified = gateway.banister(&["log", "verify"]);
        assert_eq!(verified.status.code(), Some(0), "{verified:?}");
        let shown = stdout(&gateway.banister(&["log", "show", "--json"]));
        assert!(shown.contains(&format!("\"event_id\":\"{id}\"")), "{shown}");
        mount.remount("rw");
    }
}

#[test]
fn nothing_starts_on_a_journal_that_cannot_be_written() {
    let mut gateway = Gateway::start();
    assert_eq!(push(&gateway, "one", "Go.").status, 200);
    gateway.stop();
    let journal = gateway.data().join("journal.db");
    let protect = |writable: bool| {
        use std::os::unix::fs::PermissionsExt;
        let mode = if writable { 0o600 } else { 0o400 };
        std::fs::set_permissions(&journal, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    protect(false);
    // Permissions mean nothing to root: then the file itself is mounted read-only.
    let root = std::fs::File::options().append(true).open(&journal).is_ok();
    let bound = root.then(|| {
        let bind = |args: &[&str]| {
            let output = Command::new("mount").args(args).arg(&journal).output();
            output.is_ok_and(|output| output.status.success())
        };
        bind(&["--bind", journal.to_str().unwrap()]) && bind(&["-o", "remount,ro,bind"])
    });
    let _mount = bound.map(|_| Mount(journal.clone()));
    if bound == Some(false) {
        eprintln!("NOT TESTED: a file cannot be made read-only here");
        return;
    }
    let refused = serve(&gateway);
    assert_eq!(refused.status.code(), Some(3), "{refused:?}");
    assert!(stderr(&refused).contains("journal.db cannot be written"), "{}", stderr(&refused));
    let verified = gateway.banister(&["log", "verify"]);
    assert_eq!(verified.status.code(), Some(0), "{verified:?}");
}
