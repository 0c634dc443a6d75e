//! `run` with every kind of gateway and every kind of stdin.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use crate::support::{Gateway, Home, Reply, answer};

const PAYLOAD: &[u8] = br#"{"hook_event_name":"Ask","tool":"Bash"}"#;

#[test]
fn the_answer_passes_through_byte_for_byte() {
    let home = Home::configured();
    let all: Vec<u8> = (0..=255).collect();
    let expected = all.clone();
    let gateway = Gateway::start(&home, move |_, _| answer(213, &all, b"for people\n"));
    let outcome = home.call("tester", Some("Ask"), PAYLOAD);
    assert_eq!((outcome.exit, outcome.stdout), (213, expected));
    assert_eq!(outcome.stderr, "for people\n");
    assert_eq!(home.spooled(), Vec::<Vec<u8>>::new());
    drop(gateway);
}

#[test]
fn the_request_carries_all_that_the_gateway_needs() {
    let home = Home::configured();
    let gateway = Gateway::start(&home, |_, _| answer(0, b"", b""));
    assert_eq!(home.call("tester", Some("Ask"), PAYLOAD).exit, 0);
    assert_eq!(home.call("tester", Some("Ask"), PAYLOAD).exit, 0);
    let [first, second] = &gateway.seen()[..] else { panic!("two requests") };
    assert!(first.head.starts_with("POST /hooks/tester/Ask HTTP/1.1\r\nHost: banister\r\n"));
    assert_eq!(first.header("Authorization"), Some("Bearer bk_emit_test"));
    assert_eq!(first.header("Content-Type"), Some("application/json"));
    assert_eq!(first.header("Connection"), Some("close"));
    assert_eq!(first.header("Banister-Truncated"), None);
    let waits: u64 = first.header("Banister-Deadline-Ms").expect("sent").parse().expect("number");
    assert!((1000..=3000).contains(&waits), "{waits}");
    let key = first.header("Idempotency-Key").expect("sent");
    assert!(key.len() == 32 && key.bytes().all(|byte| byte.is_ascii_hexdigit()), "{key}");
    assert_ne!(Some(key), second.header("Idempotency-Key"));
    assert_eq!(first.body, PAYLOAD);
}

#[test]
fn without_a_gateway_a_gated_call_is_refused_and_kept() {
    let home = Home::configured();
    let outcome = home.call("tester", Some("Ask"), PAYLOAD);
    outcome.assert_refused("Start the gateway with: banister serve");
    outcome.assert_refused("the gateway cannot be reached at ");
    assert!(outcome.took >= Duration::from_millis(400), "{outcome:?}");
    assert!(outcome.took < Duration::from_secs(2), "{outcome:?}");
    let [call] = &home.spooled()[..] else { panic!("one call") };
    let text = String::from_utf8(call.clone()).expect("UTF-8");
    let (head, payload) = text.split_once("\n\n").expect("a blank line");
    let lines: Vec<&str> = head.lines().collect();
    assert_eq!(lines[..3], ["banister-spool 1", "agent: tester", "event: Ask"]);
    let key = lines[3].strip_prefix("idempotency: ").expect("key");
    assert_eq!(key.len(), 32);
    assert_eq!(lines[4], "answered: deny");
    let time = lines[5].strip_prefix("time_ms: ").expect("time");
    assert_eq!(lines.len(), 6);
    assert_eq!(payload.as_bytes(), PAYLOAD);
    let file = home.path("spool").join(format!("{time}-{key}.spool"));
    assert_eq!(fs::metadata(file).expect("named so").permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(home.path("spool")).expect("spool").count(), 1, "no leftovers");
}

#[test]
fn without_a_gateway_an_event_that_nobody_waits_on_is_only_kept() {
    let home = Home::configured();
    let outcome = home.call("tester", Some("Told"), b"{}");
    assert_eq!((outcome.exit, outcome.stdout.as_slice()), (0, &b""[..]));
    assert!(outcome.stderr.starts_with("Banister did not record this yet: the gateway"));
    let [call] = &home.spooled()[..] else { panic!("one call") };
    assert!(String::from_utf8_lossy(call).contains("\nanswered: none\n"));
}

#[test]
fn a_reason_on_stdout_stays_inside_its_json_string() {
    let home = Home::configured();
    let gateway = Gateway::start(&home, |_, _| {
        Reply::Bytes(b"HTTP/1.1 500 X\r\n\r\nsaid \"no\" \\ \x1b[0m".to_vec())
    });
    let outcome = home.call("tester", Some("AskInJson"), PAYLOAD);
    let stdout = String::from_utf8(outcome.stdout).expect("UTF-8");
    assert_eq!(outcome.exit, 0);
    assert!(stdout.contains(r#": said \"no\" \\ ⟨U+001B⟩[0m. The"#), "{stdout}");
    drop(gateway);
}

#[test]
fn a_gateway_that_returns_gets_the_same_call_again() {
    let home = Home::configured();
    let gateway = Gateway::start(&home, |number, _| match number {
        0 => Reply::HangUp,
        _ => answer(0, b"yes", b""),
    });
    let outcome = home.call("tester", Some("Ask"), PAYLOAD);
    assert_eq!((outcome.exit, outcome.stdout.as_slice()), (0, &b"yes"[..]), "{outcome:?}");
    let [first, second] = &gateway.seen()[..] else { panic!("two requests") };
    assert_eq!(first.header("Idempotency-Key"), second.header("Idempotency-Key"));
    assert_eq!(first.body, second.body);
    assert!(home.spooled().is_empty());
}

#[test]
fn a_gateway_that_was_down_for_a_moment_still_answers() {
    let home = Home::configured();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| home.call("tester", Some("Ask"), PAYLOAD));
        thread::sleep(Duration::from_millis(250));
        let gateway = Gateway::start(&home, |_, _| answer(0, b"late", b""));
        let outcome = waiting.join().expect("no panic");
        assert_eq!((outcome.exit, outcome.stdout.as_slice()), (0, &b"late"[..]), "{outcome:?}");
        drop(gateway);
    });
}

#[test]
fn a_gateway_that_dies_for_good_refuses_after_the_time_of_grace() {
    let home = Home::configured();
    let gateway = Gateway::start(&home, |_, _| Reply::HangUp);
    let outcome = home.call("tester", Some("Ask"), PAYLOAD);
    outcome.assert_refused("the gateway cannot be reached at ");
    assert!(outcome.took < Duration::from_secs(2), "{outcome:?}");
    let keys: Vec<_> =
        gateway.seen().iter().map(|r| r.header("Idempotency-Key").map(str::to_owned)).collect();
    assert!(keys.len() >= 3, "{keys:?}");
    assert!(keys.windows(2).all(|pair| pair[0] == pair[1]), "{keys:?}");
    let [call] = &home.spooled()[..] else { panic!("one call") };
    let key = keys[0].as_deref().expect("sent");
    assert!(String::from_utf8_lossy(call).contains(&format!("idempotency: {key}\n")));
}

#[test]
fn other_statuses_and_garbage_are_refused_at_once() {
    for (reply, reason) in [
        ("HTTP/1.1 401 X\r\ncontent-length: 0\r\n\r\n", "does not know this hook's key"),
        ("HTTP/1.1 413 X\r\ncontent-length: 4\r\n\r\nhuge", "(status 413): huge."),
        ("HTTP/1.1 503 X\r\n\r\nbusy\nsecret", "the gateway failed (status 503): busy."),
        ("HTTP/1.1 204 X\r\n\r\n", "status 204"),
        ("220 mail.example ESMTP\r\n", "it ends too early"),
        ("220 mail.example ESMTP\r\n\r\n", "it does not begin like HTTP"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", "it names no exit code"),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 9\r\nbanister-exit: 0\r\nbanister-stderr-length: 0\r\n\r\nshort",
            "it ends too early",
        ),
    ] {
        let home = Home::configured();
        let gateway = Gateway::start(&home, move |_, _| Reply::Bytes(reply.into()));
        let outcome = home.call("tester", Some("Ask"), PAYLOAD);
        outcome.assert_refused(reason);
        assert!(outcome.took < Duration::from_millis(500), "{outcome:?}");
        assert_eq!(gateway.seen().len(), 1, "{reply}");
        assert_eq!(home.spooled().len(), 1, "{reply}");
    }
}

#[test]
fn a_gateway_that_says_nothing_is_left_at_the_deadline() {
    let home = Home::configured();
    let gateway = Gateway::start(&home, |_, _| Reply::Silence);
    let outcome = home.call("tester", Some("Ask"), PAYLOAD);
    outcome.assert_refused("no answer came from the gateway within 3000 ms");
    assert!(outcome.took >= Duration::from_millis(2900), "{outcome:?}");
    assert!(outcome.took < Duration::from_secs(4), "{outcome:?}");
    assert_eq!(gateway.seen().len(), 1);
    assert_eq!(home.spooled().len(), 1);
}

#[test]
fn a_gateway_that_trickles_its_answer_is_left_at_the_deadline() {
    let home = Home::configured();
    let listener = UnixListener::bind(home.path("s")).expect("bound");
    let trickling = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("accepted");
        while stream.write_all(b"H").is_ok() {
            thread::sleep(Duration::from_millis(50));
        }
    });
    let outcome = home.call("tester", Some("Told"), PAYLOAD);
    assert!(outcome.took < Duration::from_millis(1500), "{outcome:?}");
    assert!(outcome.stderr.contains("no answer came"), "{outcome:?}");
    trickling.join().expect("no panic");
}

#[test]
fn a_gateway_whose_queue_is_full_cannot_hold_a_hook_past_its_deadline() {
    let home = Home::configured();
    let listener = UnixListener::bind(home.path("s")).expect("bound");
    // The first hook gives up on a gateway that accepts nothing, and says so to those after it.
    assert!(home.call("tester", Some("Told"), PAYLOAD).stderr.contains("no answer came"));
    // A connection that was given up keeps its place in the queue, so this blocks when there is none left.
    let (socket, queued) = (home.path("s"), Arc::new(AtomicU32::new(0)));
    let counting = Arc::clone(&queued);
    let filling = thread::spawn(move || {
        while UnixStream::connect(&socket).is_ok() {
            counting.fetch_add(1, Ordering::SeqCst);
        }
    });
    let mut before = 0;
    while queued.load(Ordering::SeqCst) != before || before == 0 {
        before = queued.load(Ordering::SeqCst);
        thread::sleep(Duration::from_millis(300));
    }
    assert!(!filling.is_finished(), "the queue is full");
    let outcome = home.call("tester", Some("Ask"), PAYLOAD);
    outcome.assert_refused("no answer came from the gateway within 3000 ms");
    assert!(outcome.took < Duration::from_secs(4), "{outcome:?}");
    drop(listener);
    filling.join().expect("no panic");
    fs::remove_file(home.path("s")).expect("removed");
    let gateway = Gateway::start(&home, |_, _| answer(0, b"back", b""));
    assert_eq!(home.call("tester", Some("Ask"), PAYLOAD).stdout, b"back");
    assert!(!home.path("spool").join(".unanswered").exists(), "trust has returned");
    drop(gateway);
}

#[test]
fn a_payload_of_nine_mebibytes_is_drained_and_sent_in_part() {
    let home = Home::configured();
    let gateway = Gateway::start(&home, |_, _| answer(0, b"", b""));
    let huge: Vec<u8> = (0..9 * 1024 * 1024_u32).map(|i| i.to_le_bytes()[0]).collect();
    assert_eq!(home.call("tester", Some("Ask"), &huge).exit, 0);
    let [request] = &gateway.seen()[..] else { panic!("one request") };
    assert_eq!(request.header("Banister-Truncated"), Some("9437184"));
    assert!(request.body == huge[..1024 * 1024]);
}

#[test]
fn a_payload_of_eight_mebibytes_is_sent_whole() {
    let home = Home::configured();
    let gateway = Gateway::start(&home, |_, _| answer(0, b"", b""));
    let large = vec![b'x'; 8 * 1024 * 1024];
    assert_eq!(home.call("tester", Some("Ask"), &large).exit, 0);
    let [request] = &gateway.seen()[..] else { panic!("one request") };
    assert_eq!(request.header("Banister-Truncated"), None);
    assert!(request.body == large);
}

#[test]
fn a_truncated_payload_says_so_in_the_spool() {
    let home = Home::configured();
    let outcome = home.call("tester", Some("Ask"), &vec![b'x'; 9 * 1024 * 1024]);
    outcome.assert_refused("cannot be reached");
    let [call] = &home.spooled()[..] else { panic!("one call") };
    assert!(String::from_utf8_lossy(&call[..400]).contains("\ntruncated: 9437184\n\nxxx"));
}

#[test]
fn empty_and_broken_payloads_are_forwarded_as_they_are() {
    let home = Home::configured();
    let gateway = Gateway::start(&home, |_, _| answer(0, b"", b""));
    for payload in [&b""[..], br#"{"hook_event_name":"As"#, b"\xff\x00\xfe"] {
        assert_eq!(home.call("tester", Some("Ask"), payload).exit, 0);
    }
    let bodies: Vec<_> = gateway.seen().into_iter().map(|request| request.body).collect();
    assert_eq!(bodies, [&b""[..], br#"{"hook_event_name":"As"#, b"\xff\x00\xfe"]);
}

#[test]
fn stdin_may_be_a_file_a_socket_or_a_device() {
    let home = Home::configured();
    let gateway = Gateway::start(&home, |_, request| answer(0, &request.body.clone(), b""));
    fs::write(home.path("payload"), PAYLOAD).expect("written");
    let file = File::open(home.path("payload")).expect("opened");
    assert_eq!(home.call_with("tester", Some("Ask"), file).stdout, PAYLOAD);
    let (ours, mut theirs) = UnixStream::pair().expect("pair");
    theirs.write_all(PAYLOAD).expect("written");
    drop(theirs);
    assert_eq!(home.call_with("tester", Some("Ask"), OwnedFd::from(ours).into()).stdout, PAYLOAD);
    let device = File::open("/dev/null").expect("opened");
    assert_eq!(home.call_with("tester", Some("Ask"), device).stdout, b"");
    drop(gateway);
}

#[test]
fn a_payload_that_comes_late_and_in_pieces_is_read_whole() {
    let home = Home::configured();
    let gateway = Gateway::start(&home, |_, request| answer(0, &request.body.clone(), b""));
    let (reader, mut writer) = std::io::pipe().expect("pipe");
    let writing = thread::spawn(move || {
        for byte in PAYLOAD {
            writer.write_all(&[*byte]).expect("written");
            thread::sleep(Duration::from_millis(2));
        }
    });
    let outcome = home.call_with("tester", Some("Ask"), OwnedFd::from(reader).into());
    assert_eq!(outcome.stdout, PAYLOAD);
    writing.join().expect("no panic");
    drop(gateway);
}

#[test]
fn a_stdin_that_stalls_is_left_at_the_deadline() {
    let home = Home::configured();
    let gateway = Gateway::start(&home, |_, _| answer(0, b"", b""));
    let (reader, mut writer) = std::io::pipe().expect("pipe");
    writer.write_all(b"{\"half\":").expect("written");
    let pipe: File = OwnedFd::from(reader).into();
    let (ours, theirs) = UnixStream::pair().expect("pair");
    let socket: File = OwnedFd::from(ours).into();
    for stdin in [pipe, socket] {
        let outcome = home.call_with("tester", Some("Ask"), stdin);
        outcome.assert_refused("the payload did not end within 3000 ms");
        assert!(outcome.took < Duration::from_secs(4), "{outcome:?}");
    }
    assert_eq!(gateway.seen(), []);
    assert!(home.spooled()[0].ends_with(b"\n\n{\"half\":"));
    drop((writer, theirs));
}

#[test]
fn a_stdin_that_never_ends_is_left_at_the_deadline() {
    let home = Home::configured();
    let endless = File::open("/dev/zero").expect("opened");
    let outcome = home.call_with("tester", Some("Ask"), endless);
    outcome.assert_refused("the payload did not end within 3000 ms");
    assert!(outcome.took < Duration::from_secs(5), "{outcome:?}");
}

#[test]
fn the_event_comes_from_the_payload_when_the_command_line_has_none() {
    let home = Home::configured();
    home.call("tester", None, PAYLOAD).assert_refused("cannot be reached");
    let told = home.call("tester", None, br#"{"hook_event_name":"Told"}"#);
    assert_eq!(told.exit, 0);
    assert!(String::from_utf8_lossy(&home.spooled()[1]).contains("\nevent: Told\n"));
}

#[test]
fn an_event_that_nobody_names_is_taken_for_a_gated_one() {
    let home = Home::configured();
    home.call("tester", None, b"{}").assert_refused("cannot be reached");
    assert!(String::from_utf8_lossy(&home.spooled()[0]).contains("\nevent: -\n"));
    let gateway = Gateway::start(&home, |_, _| answer(0, b"", b""));
    assert_eq!(home.call("tester", None, b"{}").exit, 0);
    assert!(gateway.seen()[0].head.starts_with("POST /hooks/tester/- HTTP/1.1\r\n"));
}

#[test]
fn an_agent_that_is_not_configured_gets_the_last_resort() {
    let home = Home::configured();
    home.call("stranger", Some("Anything"), PAYLOAD).assert_refused("cannot be reached");
    assert_eq!(home.spooled().len(), 1);
}

#[test]
fn a_configuration_without_a_fitting_section_refuses() {
    let home = Home::configured();
    let text = fs::read_to_string(home.path("hook.conf")).expect("read");
    let (without, _) = text.split_once("[* *]").expect("last resort");
    fs::write(home.path("hook.conf"), without).expect("written");
    let gateway = Gateway::start(&home, |_, _| answer(0, b"", b""));
    home.call("stranger", Some("Ask"), PAYLOAD).assert_refused("no section for this call");
    assert_eq!(gateway.seen(), []);
    assert_eq!(home.spooled().len(), 1);
}

#[test]
fn a_configuration_that_cannot_be_used_refuses() {
    let home = Home::new();
    home.call("tester", Some("Told"), PAYLOAD).assert_refused("hook.conf cannot be read");
    fs::write(home.path("hook.conf"), b"\xff").expect("written");
    home.call("tester", Some("Told"), PAYLOAD).assert_refused("cannot be read");
    fs::write(home.path("hook.conf"), "x".repeat(2 * 1024 * 1024)).expect("written");
    home.call("tester", Some("Told"), PAYLOAD).assert_refused("cannot be read");
    fs::write(home.path("hook.conf"), "gated = no\n").expect("written");
    home.call("tester", Some("Told"), PAYLOAD).assert_refused("line 1 of the hook's configuration");
}

#[test]
fn odd_names_are_refused_before_anything_is_sent() {
    let home = Home::configured();
    let gateway = Gateway::start(&home, |_, _| answer(0, b"", b""));
    for (agent, event) in [
        ("a/b", "Ask"),
        ("tester", "Ask%20x"),
        ("tester", "../x"),
        ("--help", "Ask"),
        ("", "Ask"),
        ("tester", "A\r\nX: y"),
    ] {
        home.call(agent, Some(event), PAYLOAD)
            .assert_refused("is not the name of an agent or event");
    }
    assert_eq!(gateway.seen(), []);
}

#[test]
fn a_full_spool_takes_no_more_and_says_so() {
    let home = Home::configured();
    fs::create_dir(home.path("spool")).expect("made");
    for number in 0..=10_000 {
        File::create(home.path("spool").join(number.to_string())).expect("made");
    }
    let outcome = home.call("tester", Some("Ask"), PAYLOAD);
    assert_eq!(outcome.exit, 2);
    let last = outcome.stderr.lines().last();
    assert_eq!(last, Some("Banister could not keep this event for later: the spool is full."));
    assert!(home.spooled().is_empty());
}

#[test]
fn a_spool_that_cannot_be_made_is_told_too() {
    let home = Home::configured();
    fs::write(home.path("spool"), "a file").expect("written");
    let outcome = home.call("tester", Some("Ask"), PAYLOAD);
    assert_eq!(outcome.exit, 2);
    assert!(
        outcome.stderr.contains("Banister could not keep this event for later: "),
        "{outcome:?}"
    );
}
