use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::agui::event::arbitrary::{self, Foreign};

proptest! {
    #[test]
    fn an_input_is_written_as_it_came(
        sent in arbitrary::object(&<RunInput as crate::record::Record>::SHAPE, Foreign::Sometimes)
    ) {
        let input = RunInput::parse(json!(sent).to_string().as_bytes()).unwrap();
        prop_assert_eq!(serde_json::to_value(&input).unwrap(), json!(sent));
    }

    #[test]
    fn a_thread_goes_on_when_each_interrupt_has_one_answer_in_time(
        late in prop::collection::vec(any::<bool>(), 0..6),
        cancelled in prop::collection::vec(any::<bool>(), 6),
    ) {
        let pending: Vec<Interrupt> = late
            .iter()
            .enumerate()
            .map(|(index, late)| Interrupt {
                expires_at: late.then(|| "1970-01-01T00:00:00Z".to_owned()),
                ..Interrupt::new(index.to_string(), "confirmation")
            })
            .collect();
        let resume: Vec<Resume> = pending
            .iter()
            .zip(&cancelled)
            .rev()
            .map(|(interrupt, cancelled)| {
                let id = interrupt.id.clone();
                if *cancelled { Resume::cancelled(id) } else { Resume::resolved(id, true) }
            })
            .collect();
        let found = gaps(&pending, &resume, 0);
        let too_late = late.iter().zip(&cancelled).map(|(late, cancelled)| *late && !cancelled);
        let expected: Vec<Gap<'_>> = pending
            .iter()
            .zip(too_late)
            .filter_map(|(interrupt, too_late)| too_late.then_some(Gap::Expired(interrupt)))
            .collect();
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn every_way_in_which_answers_do_not_match_is_told() {
    let pending = ["a", "b", "c"].map(|id| Interrupt::new(id, "confirmation"));
    let mut vague = Resume::cancelled("c");
    vague.status = ResumeStatus::Other("maybe".into());
    let resume = [
        Resume::resolved("a", json!({"ok": 1})),
        Resume::cancelled("x"),
        vague,
        Resume::cancelled("a"),
    ];
    let found = gaps(&pending, &resume, 0);
    let expected = [
        Gap::Unanswered(&pending[1]),
        Gap::Unanswered(&pending[2]),
        Gap::Unknown(&resume[1]),
        Gap::Repeated(&resume[3]),
    ];
    assert_eq!(found, expected);
    assert_eq!(found.iter().map(Gap::is_blocking).collect::<Vec<_>>(), [true, true, false, false]);
}

#[test]
fn a_second_answer_does_not_hide_that_the_first_came_too_late() {
    let late = [Interrupt {
        expires_at: Some("1970-01-01T00:00:00Z".into()),
        ..Interrupt::new("a", "confirmation")
    }];
    for resume in [
        [Resume::cancelled("a"), Resume::resolved("a", true)],
        [Resume::resolved("a", true), Resume::cancelled("a")],
    ] {
        assert_eq!(gaps(&late, &resume, 0), [Gap::Expired(&late[0]), Gap::Repeated(&resume[1])]);
    }
}

#[test]
fn answers_are_written_without_nulls() {
    assert_eq!(
        json!([
            Resume::resolved("a", json!({"ok": false})),
            Resume::resolved("b", json!(null)),
            Resume::cancelled("c")
        ]),
        json!([
            {"interruptId": "a", "status": "resolved", "payload": {"ok": false}},
            {"interruptId": "b", "status": "resolved"},
            {"interruptId": "c", "status": "cancelled"},
        ]),
    );
}

#[test]
fn absent_lists_are_not_empty_ones_and_null_is_neither() {
    let least = json!({"threadId": "t", "runId": "r", "messages": []});
    let read = |field: &str, value: Value| {
        let mut input = least.clone();
        input[field] = value;
        serde_json::from_value::<RunInput>(input)
    };
    assert_eq!(read("runId", json!("r")).unwrap().tools, None);
    assert_eq!(read("tools", json!([])).unwrap().tools, Some(Vec::new()));
    assert_eq!(read("state", json!(null)).unwrap().state, Some(Value::Null));
    for field in ["tools", "context", "forwardedProps", "resume", "parentRunId", "messages"] {
        assert!(read(field, json!(null)).is_err(), "{field}");
    }
}
