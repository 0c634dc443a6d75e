//! The built binary, beside its `hook.conf`, started as an agent starts it.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::support::{Gateway, Home, answer, installed, now, spawn};

fn start(hook: &Path, arguments: &[&str], payload: &[u8]) -> Output {
    let mut child = spawn(
        Command::new(hook)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped()),
    );
    child.stdin.take().expect("piped").write_all(payload).ok();
    child.wait_with_output().expect("ended")
}

#[test]
fn the_binary_passes_the_answer_on() {
    let home = Home::configured();
    let hook = installed(&home);
    let gateway = Gateway::start(&home, |_, request| answer(3, &request.body.clone(), b"\xff\x00"));
    let output = start(&hook, &["tester", "Ask"], b"\x00\x01{");
    assert_eq!(output.status.code(), Some(3));
    assert_eq!((output.stdout, output.stderr), (b"\x00\x01{".to_vec(), b"\xff\x00".to_vec()));
    drop(gateway);
}

#[test]
fn a_link_to_the_binary_finds_the_same_configuration() {
    let home = Home::configured();
    let hook = installed(&home);
    let elsewhere = Home::new();
    symlink(&hook, elsewhere.path("link")).expect("linked");
    let gateway = Gateway::start(&home, |_, _| answer(0, b"found", b""));
    assert_eq!(start(&elsewhere.path("link"), &["tester", "Ask"], b"{}").stdout, b"found");
    drop(gateway);
}

#[test]
fn without_a_gateway_the_binary_refuses() {
    let home = Home::configured();
    let output = start(&installed(&home), &["tester", "Ask"], b"{}");
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(2), &b""[..]));
    let stderr = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(stderr.ends_with("Start the gateway with: banister serve\n"), "{stderr}");
    assert_eq!(home.spooled().len(), 1);
}

#[test]
fn wrong_arguments_and_a_missing_configuration_refuse() {
    let home = Home::new();
    let hook = installed(&home);
    for arguments in [&[][..], &["tester", "Ask", "more"], &["tester"], &["--version"]] {
        let output = start(&hook, arguments, b"{}");
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(2), &b""[..]));
        assert!(output.stderr.starts_with(b"Banister refused this: "), "{output:?}");
    }
}

#[test]
fn the_environment_changes_nothing() {
    let home = Home::configured();
    let hook = installed(&home);
    let other = Home::configured();
    let decoy = Gateway::start(&other, |_, _| answer(0, b"allowed", b""));
    let output = spawn(
        Command::new(&hook)
            .args(["tester", "Ask"])
            .env("BANISTER_SOCKET", other.path("s"))
            .env("XDG_RUNTIME_DIR", other.path(""))
            .env("HOME", other.path(""))
            .current_dir(other.path(""))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped()),
    )
    .wait_with_output()
    .expect("ended");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(decoy.seen(), []);
}

#[test]
fn closed_output_neither_panics_nor_allows() {
    let home = Home::configured();
    let hook = installed(&home);
    let gateway = Gateway::start(&home, |_, _| answer(0, b"{\"deny\":1}", b"why"));
    let mut child = spawn(
        Command::new(&hook)
            .args(["tester", "Ask"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped()),
    );
    drop(child.stdout.take());
    drop(child.stderr.take());
    drop(child.stdin.take());
    assert_eq!(child.wait().expect("ended").code(), Some(2));
    drop(gateway);
}

#[test]
fn a_stalled_stdin_cannot_keep_the_binary_alive() {
    let home = Home::configured();
    let hook = installed(&home);
    let started = now();
    let mut child = spawn(
        Command::new(&hook)
            .args(["tester", "Told"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped()),
    );
    let held_open = child.stdin.take();
    let mut stderr = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut stderr).expect("read");
    assert_eq!(child.wait().expect("ended").code(), Some(0));
    assert!(stderr.contains("did not end within 1000 ms"), "{stderr}");
    assert!(started.elapsed() < Duration::from_secs(3));
    drop(held_open);
    let spooled = fs::read_dir(home.path("spool")).expect("spool").count();
    assert_eq!(spooled, 1);
}
