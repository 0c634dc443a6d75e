use proptest::prelude::*;

use super::*;
use crate::activity::arbitrary;
use crate::check::Checker;
use crate::event::Protocol;

#[test]
fn what_was_refused_and_ran_all_the_same_is_told_under_an_id_of_its_own() {
    let origin =
        crate::activity::Origin { session: "s".into(), seq: 1, time: jiff::Timestamp::default() };
    let mut writer = Writer::default();
    let mut tell = |what: What, seq: u64| {
        let origin = crate::activity::Origin { seq, ..origin.clone() };
        writer.write(&Activity {
            origin,
            context: crate::activity::Context::default().into(),
            what,
        })
    };
    let action = Action::unseen("a", "Bash");
    tell(What::ActionDenied { action, by: "user".to_owned(), reason: None }, 1);
    let end = |status| What::ActionEnded {
        id: "a".to_owned(),
        tool: "Bash".to_owned(),
        status,
        output: None,
        error: None,
        duration_ms: None,
    };
    assert!(tell(end(Status::Failure), 2).is_empty(), "the refusal was its end");
    let events = tell(end(Status::Success), 3);
    let kinds: Vec<_> = events.iter().map(|event| event["type"].clone()).collect();
    assert_eq!(kinds, ["action.requested", "action.completed"]);
    assert_ne!(events[1]["action"]["id"], "a");
    assert_eq!(events[1]["extensions"]["x-banister"]["action_id"], "a");
}

proptest! {
    #[test]
    fn whatever_happens_the_stream_is_valid(session in arbitrary::session()) {
        let mut writer = Writer::default();
        let mut checker = Checker::new(Protocol::Aep);
        for activity in &session {
            for event in writer.write(activity) {
                let findings: Vec<_> = checker.value(&event).into_iter()
                    .filter(|finding| finding.rule.severity > crate::finding::Severity::Note)
                    .collect();
                prop_assert!(findings.is_empty(), "{findings:?}\n{:.600}", event.to_string());
            }
        }
    }
}
