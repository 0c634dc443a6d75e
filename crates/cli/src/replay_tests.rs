use std::cell::RefCell;

use super::*;

fn receipt(index: usize) -> Receipt {
    let (status, session) = (Status::Recorded, "s_1".to_owned());
    Receipt { index, status, session, position: Some(1), findings: Vec::new() }
}

/// What is pushed when messages are played, and the pauses in between.
fn played(speed: Option<f64>, messages: &[&str]) -> (Vec<(Outbox, usize)>, Vec<Duration>, Tally) {
    let (pushes, pauses) = (RefCell::new(Vec::new()), RefCell::new(Vec::new()));
    let push = |outbox: &Outbox, lines: Bytes| {
        let count = lines.split(|byte| *byte == b'\n').count() - 1;
        pushes.borrow_mut().push((outbox.clone(), count));
        Ok((0..count).map(receipt).collect())
    };
    let pause = |pause| pauses.borrow_mut().push(pause);
    let mut player = Player {
        push: &push,
        pause: &pause,
        speed,
        protocol: None,
        thread: "replay".to_owned(),
        lines: Vec::new(),
        count: 0,
        last: None,
        tally: Tally::default(),
    };
    for message in messages {
        player.play(message.as_bytes()).unwrap();
    }
    player.flush().unwrap();
    let tally = player.tally;
    (pushes.into_inner(), pauses.into_inner(), tally)
}

#[test]
fn threads_are_pushed_apart_and_batches_are_bounded() {
    let start = |thread: &str| format!(r#"{{"type":"RUN_STARTED","threadId":"{thread}"}}"#);
    let (first, second) = (start("a"), start("b"));
    let text = r#"{"type":"TEXT_MESSAGE_CHUNK","delta":"x"}"#;
    let mut messages = vec![text, first.as_str()];
    messages.extend(vec![text; BATCH]);
    messages.extend([second.as_str(), "{\n\"type\": \"RUN_FINISHED\"\n}"]);
    let (pushes, pauses, tally) = played(None, &messages);
    let outbox = Outbox::agui;
    let expected =
        [(outbox("replay"), 1), (outbox("a"), BATCH), (outbox("a"), 1), (outbox("b"), 2)];
    assert_eq!(pushes, expected);
    assert!(pauses.is_empty());
    assert_eq!(tally.recorded, BATCH as u64 + 4);
}

#[test]
fn pauses_are_kept_at_the_speed_that_was_asked_for() {
    let event = |second: u32| {
        format!(
            r#"{{"aep_version":"0.1","time":"2026-11-15T09:00:{second:02}Z","type":"agent.start"}}"#
        )
    };
    let events = [event(0), event(0), event(4), event(3), event(5)];
    let messages: Vec<&str> = events.iter().map(String::as_str).collect();
    let (pushes, pauses, _) = played(Some(2.0), &messages);
    assert_eq!(pauses, [Duration::from_secs(2), Duration::from_secs(1)], "never backwards");
    let counts: Vec<usize> = pushes.iter().map(|(_, count)| *count).collect();
    assert_eq!(counts, [2, 2, 1], "what came before a pause is pushed before it");
}

#[test]
fn speeds_are_numbers_above_zero() {
    assert_eq!(speed("2.5"), Ok(2.5));
    for bad in ["0", "-1", "NaN", "inf", "fast", ""] {
        assert!(speed(bad).is_err(), "{bad}");
    }
}
