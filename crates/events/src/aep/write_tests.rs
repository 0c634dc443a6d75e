use proptest::prelude::*;

use super::*;
use crate::activity::arbitrary;
use crate::check::Checker;
use crate::event::Protocol;

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
