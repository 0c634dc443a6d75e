use proptest::prelude::*;

use super::*;
use crate::activity::arbitrary;
use crate::check::Checker;
use crate::event::Protocol;

#[test]
fn secrets_reach_neither_the_history_nor_the_stream() {
    let leaky = [
        What::TurnStarted { request: Some("use password=hunter2".to_owned()), summary: None },
        What::Said {
            role: crate::activity::Role::Assistant,
            message: "m".to_owned(),
            text: "key sk-abcdef123".to_owned(),
            last: true,
        },
        What::ActionRequested {
            action: Action {
                input: Some(json!({ "command": "curl -H 'X-Api-Key: s3cr3t' h" })),
                ..Action::unseen("a", "Bash")
            },
            gate: None,
        },
    ];
    let activities = leaky.map(|what| Activity {
        origin: crate::activity::Origin {
            session: "s".into(),
            seq: 1,
            time: jiff::Timestamp::default(),
        },
        context: crate::activity::Context::default().into(),
        what,
    });
    let mut history = History::default();
    let mut writer = Writer::new("t", "r");
    let mut told = writer.begin(&history);
    for activity in &activities {
        history.add(activity);
        told.extend(writer.write(activity));
    }
    told.extend(history.messages());
    let told = Value::Array(told).to_string();
    for secret in ["hunter2", "sk-abcdef123", "s3cr3t"] {
        assert!(!told.contains(secret), "{secret} leaked: {told}");
    }
}

#[test]
fn a_history_that_no_event_can_hold_is_restated_from_where_it_fits() {
    let mut history = History::default();
    for seq in 0..12 {
        let text = format!("{seq}").repeat(1 << 19);
        let what = What::Said {
            role: crate::activity::Role::Assistant,
            message: format!("m{seq}"),
            text,
            last: true,
        };
        let origin =
            crate::activity::Origin { session: "s".into(), seq, time: jiff::Timestamp::default() };
        history.add(&Activity {
            origin,
            context: crate::activity::Context::default().into(),
            what,
        });
    }
    let messages = history.messages();
    assert!((2..12).contains(&messages.len()), "{}", messages.len());
    let newest = messages.last().and_then(|message| message["content"].as_str()).unwrap();
    assert!(newest.starts_with("1111"), "the newest one is there");
    let mut checker = Checker::new(Protocol::Agui);
    for event in Writer::new("t", "r").begin(&history) {
        assert_eq!(checker.value(&event), []);
    }
}

proptest! {
    #[test]
    fn whatever_happens_the_run_is_valid(session in arbitrary::session(), cut in 0_usize..24) {
        let cut = cut.min(session.len());
        let (before, after) = session.split_at(cut);
        let mut history = History::default();
        for activity in before {
            history.add(activity);
        }
        let mut writer = Writer::new("thread", "run");
        let mut events = writer.begin(&history);
        events.extend(after.iter().flat_map(|activity| writer.write(activity)));
        writer.finish(None, &mut events);
        let mut checker = Checker::new(Protocol::Agui);
        for event in &events {
            let findings = checker.value(event);
            prop_assert!(findings.is_empty(), "{findings:?}\n{:.600}", event.to_string());
        }
        let left = checker.finish();
        prop_assert!(left.is_empty(), "{left:?}");
        let ends = events.iter().filter(|event| {
            matches!(event["type"].as_str(), Some("RUN_FINISHED" | "RUN_ERROR"))
        });
        prop_assert_eq!(ends.count(), 1);
    }
}
