use proptest::prelude::*;

use super::*;
use crate::activity::arbitrary;
use crate::check::Checker;
use crate::event::Protocol;

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
