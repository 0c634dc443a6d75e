use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::activity::{Ask, AskKind, Context, Origin, Outcome, arbitrary};
use crate::{aaep, aep};

fn activity(seq: u64, what: What) -> Activity {
    let time = Timestamp::from_second(1_800_000_000 + seq.cast_signed()).unwrap();
    Activity {
        origin: Origin { session: "s_1".into(), seq, time },
        context: Arc::new(Context::default()),
        what,
    }
}

fn turn(seq: u64, requested: bool) -> OpenTurn {
    let since = Timestamp::from_second(1_800_000_000 + seq.cast_signed()).unwrap();
    OpenTurn { seq, since, requested, follows: None }
}

fn request() -> What {
    What::TurnStarted { request: None, summary: None }
}

fn end(ending: Ending) -> What {
    What::TurnEnded { ending, summary: None, result: None, usage: Vec::new() }
}

#[test]
fn a_turn_lasts_from_its_request_to_its_end_or_the_next_request() {
    let mut turns = Turns::default();
    assert!(!turns.add(&activity(1, What::Notified { text: "Hello.".to_owned() })));
    assert_eq!(turns.open(), None, "news is no work");
    assert!(turns.add(&activity(2, request())));
    assert!(!turns.add(&activity(3, What::Planned { text: "Tidy up.".to_owned() })));
    assert_eq!(turns.open(), Some(turn(2, true)));
    assert!(turns.add(&activity(4, request())));
    let second = OpenTurn { follows: Some(2), ..turn(4, true) };
    assert_eq!(turns.open(), Some(second));
    turns.add(&activity(5, end(Ending::Suspended { asks: Vec::new() })));
    assert_eq!(turns.open(), Some(second), "it goes on with the answers");
    turns.add(&activity(6, end(Ending::Completed)));
    assert_eq!(turns.open(), None);
    assert!(turns.add(&activity(7, What::Planned { text: "More.".to_owned() })));
    assert_eq!(turns.open(), Some(turn(7, false)), "nobody was seen to ask for it");
    turns.add(&activity(8, What::SessionEnded { reason: None }));
    assert_eq!(turns.open(), None);
    turns.add(&activity(8, request()));
    assert_eq!(turns.open(), Some(OpenTurn { follows: Some(7), ..turn(8, true) }));
}

#[test]
fn an_ask_waits_until_it_is_closed_also_after_the_end_of_its_turn() {
    let mut turns = Turns::default();
    let ask = Ask::new("ask_1".to_owned(), "rpl_1".to_owned(), AskKind::Confirmation);
    turns.add(&activity(1, What::AskOpened { ask: Box::new(ask) }));
    turns.add(&activity(2, end(Ending::Completed)));
    assert!(turns.open().is_none() && turns.is_waiting());
    let since = Timestamp::from_second(1_800_000_001).unwrap();
    assert_eq!(turns.asks().collect::<Vec<_>>(), [("ask_1", since)]);
    let closed = What::AskClosed {
        id: "ask_1".to_owned(),
        action: None,
        outcome: Outcome::Accepted,
        by: "user".to_owned(),
        message: None,
        response: None,
        updated_input: None,
    };
    assert!(!turns.add(&activity(3, closed)));
    assert!(!turns.is_waiting() && turns.open().is_none());
}

proptest! {
    /// Writers open and close turns by themselves, to keep to their protocols. They agree on when.
    #[test]
    fn every_writer_has_the_same_turns_open(session in arbitrary::session()) {
        let mut turns = Turns::default();
        let (mut spoken, mut hooks) = (aaep::write::Writer::new("en"), aep::write::Writer::default());
        let mut asked = BTreeSet::new();
        for activity in &session {
            // No ask is opened twice: ids of asks are unique.
            if let What::AskOpened { ask } = &activity.what
                && !asked.insert(ask.id.clone())
            {
                continue;
            }
            let began = turns.add(activity);
            let starts = |event: &serde_json::Value| event["type"] == "aaep:agent.session.started";
            prop_assert_eq!(spoken.write(activity).iter().any(starts), began, "{:?}", activity);
            prop_assert_eq!(spoken.is_open(), turns.open().is_some(), "{:?}", activity);
            hooks.write(activity);
            let requested = turns.open().is_some_and(|turn| turn.requested);
            prop_assert_eq!(hooks.is_open(), requested, "{:?}", activity);
        }
    }
}
