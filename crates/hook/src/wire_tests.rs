use super::*;

fn problem(received: &[u8]) -> String {
    match response(received, true) {
        Err(error) => error.to_string(),
        Ok(progress) => panic!("{progress:?}"),
    }
}

fn ok(headers: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\n{headers}\r\n\r\n{body}").into_bytes()
}

#[test]
fn an_answer_is_complete_at_its_last_byte_and_not_before() {
    let whole = ok("banister-exit: 7\r\nBANISTER-STDERR-LENGTH: 2\r\nContent-Length:5", "outer");
    for length in 0..whole.len() {
        let progress = response(&whole[..length], false).expect("well-formed");
        assert!(matches!(progress, Progress::Incomplete), "{length}");
        assert!(response(&whole[..length], true).is_err(), "{length}");
    }
    let Ok(Progress::Complete(answer)) = response(&whole, false) else { panic!("incomplete") };
    let expected = Answer { exit: 7, stdout: b"out".to_vec(), stderr: b"er".to_vec() };
    assert_eq!(answer, expected);
}

#[test]
fn malformed_answers_are_named() {
    let good = "Banister-Exit: 0\r\nBanister-Stderr-Length: 0\r\nContent-Length: 0";
    assert!(response(&ok(good, ""), false).is_ok());
    for (headers, expected) in [
        ("Banister-Stderr-Length: 0\r\nContent-Length: 0", "no exit code"),
        ("Banister-Exit: 0\r\nContent-Length: 0", "where stderr begins"),
        ("Banister-Exit: 0\r\nBanister-Stderr-Length: 0", "no length"),
        ("Banister-Exit: 256\r\nBanister-Stderr-Length: 0\r\nContent-Length: 0", "0 to 255"),
        ("Banister-Exit: -1", "0 to 255"),
        ("Banister-Exit: +1", "0 to 255"),
        ("Banister-Exit: ", "0 to 255"),
        ("Banister-Exit: zero", "0 to 255"),
        ("Banister-Exit: 2\r\nBanister-Exit: 0", "0 to 255"),
        ("Banister-Exit: 0\r\nBanister-Stderr-Length: 1\r\nContent-Length: 0", "exceeds"),
        (
            "Banister-Exit: 0\r\nBanister-Stderr-Length: 0\r\nContent-Length: 99999999999",
            "too long",
        ),
        ("Content-Length: 99999999999999999999999", "not one number"),
        ("no colon", "no value"),
    ] {
        let problem = problem(&ok(headers, ""));
        assert!(problem.contains(expected), "{headers}: {problem}");
    }
    assert!(problem(b"SSH-2.0-x\r\n\r\n").contains("begin like HTTP"));
    assert!(problem(b"HTTP/1.1 2").contains("too early"));
    assert!(problem(b"HTTP/1.1 200 OK\r\n\xff: 1\r\n\r\n").contains("not text"));
    assert!(problem(&vec![b'x'; LARGEST_HEAD + 1]).contains("does not end"));
}

#[test]
fn a_refusal_shows_the_first_line_of_its_body() {
    let refused = |status: &str, body: &str| {
        let length = body.len();
        let text = format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n\r\n{body}");
        match response(text.as_bytes(), false) {
            Err(error) => error.to_string(),
            Ok(progress) => panic!("{progress:?}"),
        }
    };
    assert_eq!(refused("401", ""), "the gateway does not know this hook's key (status 401)");
    assert_eq!(refused("500", "disk full\nmore"), "the gateway failed (status 500): disk full");
    assert_eq!(
        refused("413", "\u{1b}[31mred\r\n"),
        "the payload is too large for the gateway (status 413): ⟨U+001B⟩[31mred"
    );
    let long = refused("418", &"é".repeat(5000));
    assert_eq!(long.matches('é').count(), LONGEST_DETAIL);
}

#[test]
fn a_refusal_in_chunks_is_known_by_its_status_alone() {
    let text = b"HTTP/1.1 503 X\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbusy\r\n0\r\n\r\n";
    assert_eq!(problem(text), "the gateway failed (status 503)");
}
