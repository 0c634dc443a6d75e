//! `banister check` on live endpoints: good ones, and those that answer something else, late, or half.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use banister_events::agui::encoding;

use crate::support::{BANISTER, stderr, stdout};

const START: &str = "data: {\"type\":\"RUN_STARTED\",\"threadId\":\"t\",\"runId\":\"r\",\"protocolVersion\":\"1.0\"}\n\n";
const END: &str = "data: {\"type\":\"RUN_FINISHED\",\"threadId\":\"t\",\"runId\":\"r\"}\n\n";
const HEAD: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";

/// A server that hands each connection to `answer`, and tells the heads and bodies of the requests.
fn serve(answer: impl Fn(&str, &mut TcpStream) + Send + 'static) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (tell, told) = sync_channel(16);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = String::new();
            let mut piece = [0; 4096];
            while !whole(&request) {
                match stream.read(&mut piece) {
                    Ok(0) | Err(_) => break,
                    Ok(count) => request.push_str(&String::from_utf8_lossy(&piece[..count])),
                }
            }
            tell.try_send(request.clone()).ok();
            answer(&request, &mut stream);
        }
    });
    (address, told)
}

fn whole(request: &str) -> bool {
    let Some((head, body)) = request.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| {
        line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse::<usize>().ok()
    });
    body.len() >= length.unwrap_or(0)
}

fn start(args: &[&str]) -> Child {
    Command::new(BANISTER)
        .arg("check")
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn check(args: &[&str]) -> Output {
    start(args).wait_with_output().unwrap()
}

#[test]
fn a_stream_is_checked_as_it_comes_with_the_headers_that_were_given() {
    let (address, requests) = serve(|_, stream| {
        write!(stream, "{HEAD}: hello\n\n{START}").unwrap();
        write!(stream, "data: {{\"type\":\"STEP_FINISHED\",\"stepName\":\"s\"}}\n\n{END}").unwrap();
    });
    let secret = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(secret.path(), "Authorization: Bearer s3cret\n").unwrap();
    let file = format!("@{}", secret.path().display());
    let url = format!("{address}/events?from=start");
    let output = check(&["--header", "X-One: 1", "--header", &file, &url]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(
        stdout(&output).contains(&format!(" --> {url}:5:42 /stepName\n")),
        "{}",
        stdout(&output)
    );
    assert!(stderr(&output).starts_with("3 events, AG-UI 1.0: 1 error, "), "{}", stderr(&output));
    let request = requests.recv().unwrap().to_ascii_lowercase();
    assert!(request.starts_with("get /events?from=start http/1.1\r\n"), "{request}");
    for header in ["accept: text/event-stream", "x-one: 1", "authorization: bearer s3cret"] {
        assert!(request.contains(&format!("\r\n{header}\r\n")), "{request}");
    }
}

#[test]
fn an_agent_is_sent_a_run_and_its_answer_is_judged_as_one_client_would() {
    let (address, requests) = serve(|request, stream| {
        let nested = if request.contains("/nested") {
            START.replace("\"t\"", "\"u\"")
        } else {
            String::new()
        };
        write!(stream, "{HEAD}{START}{nested}{END}").unwrap();
    });
    let good = check(&["--protocol", "agui", &format!("{address}/agent")]);
    assert_eq!(good.status.code(), Some(0), "{}{}", stdout(&good), stderr(&good));
    let request = requests.recv().unwrap();
    assert!(request.starts_with("POST /agent HTTP/1.1\r\n"), "{request}");
    let (_, body) = request.split_once("\r\n\r\n").unwrap();
    let input: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!(input["protocolVersion"], "1.0");
    assert_eq!(input["messages"][0]["role"], "user");
    let nested = check(&["--protocol", "agui", &format!("{address}/nested")]);
    assert!(stdout(&nested).contains("AGUI-SEQ-04"), "{}", stdout(&nested));
}

#[test]
fn an_agent_is_sent_the_input_that_was_given_and_only_if_it_is_one() {
    let (address, requests) = serve(|_, stream| write!(stream, "{HEAD}{START}{END}").unwrap());
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    std::fs::write(path, r#"{"threadId":"mine","runId":"r","messages":[]}"#).unwrap();
    assert_eq!(check(&["--input", path, &address]).status.code(), Some(0));
    assert!(requests.recv().unwrap().ends_with(r#"{"threadId":"mine","runId":"r","messages":[]}"#));
    std::fs::write(path, r#"{"threadId":"mine"}"#).unwrap();
    let refused = check(&["--input", path, &address]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("runId: missing"), "{}", stderr(&refused));
}

#[test]
fn an_agent_that_answers_something_else_is_told_apart() {
    for (head, told) in [
        (
            "200 OK\r\nContent-Type: application/json",
            "the answer is application/json, where an agent",
        ),
        ("200 OK", "the answer is without a type, where an agent"),
        ("422 Unprocessable Content", "the answer is 422"),
        ("202 Accepted", "the answer is 202 Accepted, without a type, where an agent"),
        ("204 No Content", "the answer is 204 No Content: it has no events"),
    ] {
        let (address, _requests) = serve(move |_, stream| {
            write!(stream, "HTTP/1.1 {head}\r\nConnection: close\r\n\r\n{{}}").unwrap();
        });
        let output = check(&["--protocol", "agui", &address]);
        assert_eq!(output.status.code(), Some(3));
        assert!(stderr(&output).contains(told), "{}", stderr(&output));
    }
    let (address, _requests) = serve(|_, stream| {
        write!(stream, "HTTP/1.1 405 Method Not Allowed\r\nConnection: close\r\n\r\n").unwrap();
    });
    assert!(stderr(&check(&[&address])).contains("with --protocol agui"));
}

/// What `banister check --protocol agui` says to an agent that answers with these bytes under this type.
fn answered(content_type: &str, body: impl Into<Vec<u8>>, args: &[&str]) -> Output {
    let head = HEAD.replace("text/event-stream", content_type);
    let body = body.into();
    let (address, _requests) = serve(move |_, stream| {
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(&body).unwrap();
    });
    check(&[&["--protocol", "agui", &address], args].concat())
}

const BINARY: &str = "application/vnd.ag-ui.event+proto";

/// The binary form of `START` and `END`.
fn binary() -> Vec<u8> {
    let mut bytes = Vec::new();
    for frame in [START, END] {
        let event = serde_json::from_str(frame.trim_start_matches("data: ")).unwrap();
        encoding::frame(encoding::Encoding::Protobuf, &event, &mut bytes).unwrap();
    }
    bytes
}

#[test]
fn an_answer_of_one_event_is_judged_by_order() {
    let alone = "data: {\"type\":\"TEXT_MESSAGE_CONTENT\",\"messageId\":\"m\",\"delta\":\"x\"}\n\n";
    let unknown = "data: {\"type\":\"RunStarted\",\"threadId\":\"t\",\"runId\":\"r\"}\n\n";
    for (body, code) in
        [(START, "[AGUI-SEQ-26]"), (alone, "[AGUI-SEQ-03]"), (unknown, "[AGUI-SEQ-03]")]
    {
        let output = answered("text/event-stream", body, &[]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(stdout(&output).contains(code), "{}", stdout(&output));
    }
}

#[test]
fn an_answer_is_read_as_what_it_calls_itself() {
    let lines = format!("{START}{END}").replace("data: ", "");
    let output = answered("text/event-stream", lines, &[]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(stdout(&output).contains("[AGUI-SSE-02]"), "{}", stdout(&output));
    assert!(stderr(&output).contains("no events: line 1 is JSON outside a data field"));

    assert_eq!(answered(BINARY, binary(), &[]).status.code(), Some(0));
    for (kind, body, said) in [
        (BINARY, format!("{START}{END}").into_bytes(), "and is text"),
        ("text/event-stream", binary(), "and is binary"),
    ] {
        let output = answered(kind, body, &[]);
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        assert!(stderr(&output).contains(said), "{}", stderr(&output));
    }
    let output = answered(&format!("{BINARY}; charset=utf-8"), binary(), &[]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(stdout(&output).contains("error[AGUI-HTTP-01]"), "{}", stdout(&output));
    assert!(stderr(&output).starts_with("2 events, "), "checked all the same: {}", stderr(&output));
}

#[test]
fn an_agent_that_falls_silent_or_does_not_hang_up_is_left() {
    let begun = Instant::now();
    for (body, code) in [(START.to_owned(), 3), (format!("{START}{END}"), 0)] {
        let (address, _requests) = serve(move |_, stream| {
            write!(stream, "{HEAD}{body}").unwrap();
            loop {
                std::thread::sleep(Duration::from_millis(50));
                if write!(stream, ": still here\n\n").is_err() {
                    break;
                }
            }
        });
        let output = check(&["--protocol", "agui", "--timeout", "0.5", &address]);
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        let silent = "no further event within 0.5 s, and the run has not ended (--timeout)";
        assert_eq!(stderr(&output).contains(silent), code == 3, "{}", stderr(&output));
        assert_eq!(stdout(&output).contains("note[AGUI-HTTP-02]"), code == 0, "{output:?}");
    }
    assert!(begun.elapsed() < Duration::from_secs(20));
}

#[test]
fn an_agent_may_take_its_time_between_events_and_has_more_of_it_with_each() {
    let (address, _requests) = serve(|_, stream| {
        write!(stream, "{HEAD}{START}").unwrap();
        for _ in 0..4 {
            std::thread::sleep(Duration::from_millis(700));
            write!(stream, "data: {{\"type\":\"RAW\",\"event\":1}}\n\n").unwrap();
        }
        write!(stream, "{END}").unwrap();
    });
    let output = check(&["--protocol", "agui", "--timeout", "2", &address]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn an_agent_that_answers_another_run_is_told_so() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    for (input, said) in [
        (r#"{"threadId":"t","runId":"r","messages":[]}"#, None),
        (r#"{"threadId":"t","runId":"s","messages":[]}"#, Some("runId is \"r\"")),
        (r#"{"threadId":"u","runId":"r","messages":[]}"#, Some("threadId is \"t\"")),
    ] {
        std::fs::write(path, input).unwrap();
        let output = answered("text/event-stream", format!("{START}{END}"), &["--input", path]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert_eq!(stdout(&output).contains("warning[AGUI-HTTP-03]"), said.is_some(), "{output:?}");
        assert!(stdout(&output).contains(said.unwrap_or_default()), "{}", stdout(&output));
    }
}

#[test]
fn a_stream_that_we_leave_owes_no_end() {
    let (address, _requests) = serve(|_, stream| {
        write!(stream, "{HEAD}{START}").unwrap();
        stream
            .write_all(
                &START.replace("\"r\"", "\"s\"").replace("RUN_STARTED", "CUSTOM").into_bytes(),
            )
            .unwrap();
        std::thread::sleep(Duration::from_secs(30));
    });
    let begun = Instant::now();
    let timed = check(&["--for", "0.5", &address]);
    assert!(!stdout(&timed).contains("end of input"), "{}", stdout(&timed));
    assert!(stderr(&timed).starts_with("2 events, "), "{}", stderr(&timed));
    let (address, _requests) = serve(|_, stream| {
        write!(stream, "{HEAD}{START}{END}{START}").unwrap();
        std::thread::sleep(Duration::from_secs(30));
    });
    let counted = check(&["--events", "2", &address]);
    assert_eq!(counted.status.code(), Some(0), "{}", stdout(&counted));
    assert!(begun.elapsed() < Duration::from_secs(20));
}

#[test]
fn an_interrupt_ends_a_check_with_its_summary() {
    let (address, requests) = serve(|_, stream| {
        write!(stream, "{HEAD}{START}{END}").unwrap();
        std::thread::sleep(Duration::from_secs(30));
    });
    let child = start(&[&address]);
    requests.recv().unwrap();
    std::thread::sleep(Duration::from_secs(1));
    let interrupt = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(interrupt.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(stderr(&output), "2 events, AG-UI 1.0: 0 errors, 0 warnings, 0 notes\n");
}

#[test]
fn an_answer_that_is_no_stream_is_an_error_that_says_so() {
    let page = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: 6\r\n\r\n<html>";
    let shouted = "HTTP/1.1 200 OK\r\nContent-Type: Text/HTML\r\nContent-Length: 6\r\n\r\n<html>";
    let xhtml =
        "HTTP/1.1 200 OK\r\nContent-Type: application/xhtml+xml\r\nContent-Length: 6\r\n\r\n<html>";
    let bare = "HTTP/1.1 200 OK\r\nContent-Length: 21\r\n\r\n<!doctype html><body>";
    let gone = "HTTP/1.1 404 Not Found\r\nContent-Length: 25\r\n\r\n{\"message\":\"no such path\"}";
    let moved = "HTTP/1.1 302 Found\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n";
    for (answer, said) in [
        (page, "text/html"),
        (shouted, "text/html"),
        (xhtml, "application/xhtml+xml"),
        (bare, "this looks like a web page (HTML)"),
        (gone, "404 Not Found"),
        (moved, "302 Found, to /other"),
        ("SSH-2.0-nothing\r\n", "no HTTP answer"),
        ("", "no HTTP answer"),
    ] {
        let (address, _requests) = serve(move |_, stream| {
            stream.write_all(answer.as_bytes()).ok();
        });
        let output = check(&[&address]);
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        assert!(stderr(&output).starts_with(&format!("error: {address}: ")), "{}", stderr(&output));
        assert!(stderr(&output).contains(said), "{}", stderr(&output));
    }
}

#[test]
fn an_endpoint_that_hangs_is_left_after_the_timeout() {
    let (address, _requests) = serve(|_, _| std::thread::sleep(Duration::from_mins(1)));
    let begun = Instant::now();
    let output = check(&["--timeout", "0.5", &address]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(stderr(&output).contains("no answer within 0.5 s"), "{}", stderr(&output));
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[test]
fn an_endpoint_that_sends_no_event_is_left_after_the_timeout() {
    let (address, _requests) = serve(|_, stream| {
        write!(stream, "{HEAD}: hello\n\n").unwrap();
        std::thread::sleep(Duration::from_mins(1));
    });
    let begun = Instant::now();
    let output = check(&["--timeout", "0.5", &address]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(stderr(&output).contains("no event within 0.5 s (--timeout)"), "{}", stderr(&output));
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_stream_may_be_quiet_once_an_event_came_and_as_long_as_it_is_told_to() {
    let (address, _requests) = serve(|_, stream| {
        write!(stream, "{HEAD}{START}").unwrap();
        std::thread::sleep(Duration::from_secs(1));
        write!(stream, "{END}").unwrap();
    });
    let output = check(&["--timeout", "0.3", &address]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let (address, _requests) = serve(|_, stream| {
        write!(stream, "{HEAD}").unwrap();
        std::thread::sleep(Duration::from_mins(1));
    });
    let output = check(&["--timeout", "0.3", "--for", "1", &address]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(stderr(&output).contains("the input has no events"), "{}", stderr(&output));
}

#[test]
fn a_stream_that_is_joined_is_not_blamed_for_its_beginning() {
    let event =
        r#"{"type":"aaep:agent.state.changed","session_id":"sess_01HZAAAAAAAAAAAAAAAAAAAAAA"}"#;
    let events = format!("data: {event}\n\n").repeat(2);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &events).unwrap();
    let recorded = check(&[file.path().to_str().unwrap()]);
    assert!(stdout(&recorded).contains("[AAEP-4.1.1-R1]"), "{}", stdout(&recorded));
    let (address, _requests) = serve(move |_, stream| {
        write!(stream, "{HEAD}{events}").unwrap();
    });
    let joined = check(&[&address]);
    assert!(!stdout(&joined).contains("[AAEP-4.1.1-R1]"), "{}", stdout(&joined));
    assert!(stderr(&joined).starts_with("2 events, AAEP "), "{}", stderr(&joined));
}

#[test]
fn nobody_there_is_an_error() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let output = check(&[&format!("http://{free}/events")]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(stderr(&output).contains("cannot connect"), "{}", stderr(&output));
}

#[test]
fn a_connection_that_ends_inside_a_message_is_reported() {
    let half = "data: {\"type\":\"RUN_FIN";
    let chunked = HEAD.replace("Connection: close", "Transfer-Encoding: chunked");
    let cut = format!("{chunked}{:x}\r\n{START}{half}", 5000);
    for (answer, said) in [
        (format!("{HEAD}{START}{half}"), "bytes into a message"),
        (cut, "the connection was cut after"),
    ] {
        let (address, _requests) = serve(move |_, stream| {
            stream.write_all(answer.as_bytes()).unwrap();
        });
        let output = check(&[&address]);
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        assert!(stderr(&output).contains(said), "{}", stderr(&output));
    }
}

#[test]
fn a_subscription_is_opened_checked_and_followed() {
    let accepted =
        r#"{"type":"subscription.accepted","subscription_id":"sub_1","aaep_version":"1.0.0"}"#;
    let location = "Location: /aaep/v1/events?subscription_id=sub_1\r\n";
    for (location, accepted) in [("", accepted), (location, "{\"type\": oops}")] {
        let (address, requests) = serve(move |request, stream| {
            if request.starts_with("POST") {
                let length = accepted.len();
                write!(
                    stream,
                    "HTTP/1.1 201 Created\r\n{location}Content-Length: {length}\r\n\r\n{accepted}"
                )
                .unwrap();
            } else {
                write!(stream, "{HEAD}data: {{\"type\":\"aaep:agent.state.changed\"}}\n\n")
                    .unwrap();
            }
        });
        let output = check(&["--json", "--subscribe", &format!("{address}/aaep/v1/events")]);
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(
            (&report["protocol"], &report["events"]),
            (&"aaep".into(), &2.into()),
            "{report}"
        );
        let files: Vec<&str> = report["findings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|f| f["file"].as_str().unwrap())
            .collect();
        let answer = format!("{address}/aaep/v1/subscriptions");
        assert!(files.contains(&answer.as_str()) || location.is_empty(), "{report}");
        let post = requests.recv().unwrap();
        assert!(post.starts_with("POST /aaep/v1/subscriptions HTTP/1.1\r\n"), "{post}");
        let body: serde_json::Value =
            serde_json::from_str(post.split_once("\r\n\r\n").unwrap().1).unwrap();
        assert_eq!(body["type"], "subscription.request");
        let get = requests.recv().unwrap();
        assert!(get.starts_with("GET /aaep/v1/events?subscription_id=sub_1 HTTP/1.1\r\n"), "{get}");
    }
}

#[test]
fn a_refused_subscription_says_why() {
    let rejected = r#"{"type":"subscription.rejected","reason_code":"rate_limit","reason_message":"too many of you"}"#;
    let nameless =
        r#"{"type":"subscription.rejected","reason_code":"rate_limit","reason_message":""}"#;
    let broken = r#"{"type":"subscription.rejected","reason_message":"too many of you"}"#;
    for (status, rejected, code, said) in [
        ("200 OK", rejected, 3, "too many of you"),
        ("429 Too Many Requests", rejected, 3, "too many of you"),
        ("200 OK", nameless, 1, "refused: rate_limit"),
        ("429 Too Many Requests", broken, 1, "too many of you"),
    ] {
        let (address, _requests) = serve(move |_, stream| {
            let length = rejected.len();
            write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{rejected}")
                .unwrap();
        });
        let output = check(&["--subscribe", &format!("{address}/events")]);
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        assert!(stderr(&output).contains(said), "{}", stderr(&output));
        assert_eq!(stdout(&output).contains("/subscriptions:1:"), code == 1, "{}", stdout(&output));
    }
}
