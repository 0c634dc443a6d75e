//! Arbitrary sequences of activities, for the tests that hold every writer to its protocol.

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// Text as agents send it: ordinary, empty, hostile, long.
fn words() -> impl Strategy<Value = String> {
    prop_oneof![
        60 => "[a-z ]{1,20}",
        10 => Just(String::new()),
        10 => any::<String>(),
        10 => Just("rm -rf / \u{202e} password=hunter2 \u{0}".to_owned()),
        1 => (0_usize..40_000).prop_map(|n| "é".repeat(n)),
    ]
}

/// Ids from a small pool, so that they meet again.
fn ident() -> impl Strategy<Value = String> {
    prop_oneof!["[abc]", Just("toolu_01/ odd".to_owned()), Just("call_1".to_owned())]
}

/// Asks are named apart from everything else.
fn ask_ident() -> impl Strategy<Value = String> {
    ident().prop_map(|id| format!("ask_{id}"))
}

fn action() -> impl Strategy<Value = Action> {
    let kind = prop_oneof![
        Just(ActionKind::Tool),
        Just(ActionKind::Mcp),
        Just(ActionKind::Skill),
        Just(ActionKind::Subagent),
        Just(ActionKind::Other),
    ];
    (ident(), kind, words(), prop::option::of(words()), prop::option::of(words())).prop_map(
        |(id, kind, tool, server, command)| Action {
            id,
            kind,
            tool,
            server,
            original_name: None,
            input: command.map(|command| json!({ "command": command })),
            rationale: None,
        },
    )
}

fn risk() -> impl Strategy<Value = Risk> {
    prop_oneof![Just(Risk::Low), Just(Risk::Medium), Just(Risk::High)]
}

fn gate() -> impl Strategy<Value = Gate> {
    let decision = prop_oneof![Just(Decision::Allow), Just(Decision::Ask), Just(Decision::Deny)];
    (decision, risk(), any::<Option<bool>>(), words()).prop_map(
        |(decision, risk, irreversible, reason)| Gate {
            decision,
            rule: "pack.test".to_owned(),
            reason,
            risk,
            irreversible,
            opaque: None,
            safer: None,
        },
    )
}

fn ask() -> impl Strategy<Value = Ask> {
    let kind = prop_oneof![
        Just(AskKind::Confirmation),
        words().prop_map(|question| AskKind::Clarification { question }),
    ];
    (
        ask_ident(),
        words(),
        kind,
        prop::option::of(action()),
        prop::option::of(gate()),
        -5_i64..200_000,
    )
        .prop_map(|(id, token, kind, action, gate, seconds)| Ask {
            id,
            token,
            kind,
            action,
            gate,
            digest: String::new(),
            deadline: Timestamp::from_second(1_800_000_000 + seconds).unwrap_or_default(),
        })
}

fn what() -> impl Strategy<Value = What> {
    let status = prop_oneof![
        Just(Status::Success),
        Just(Status::Failure),
        Just(Status::Timeout),
        Just(Status::Cancelled),
    ];
    let outcome = prop_oneof![
        3 => Just(Outcome::Accepted),
        1 => Just(Outcome::Rejected),
        1 => Just(Outcome::Expired),
        1 => Just(Outcome::Withdrawn),
    ];
    let ending = prop_oneof![
        Just(Ending::Completed),
        words().prop_map(|message| Ending::Failed { message }),
        words().prop_map(|by| Ending::Cancelled { by }),
    ];
    prop_oneof![
        1 => prop::option::of(words()).prop_map(|source| What::SessionStarted { source }),
        1 => prop::option::of(words()).prop_map(|reason| What::SessionEnded { reason }),
        3 => prop::option::of(words()).prop_map(|request| What::TurnStarted { request }),
        2 => ending.prop_map(|ending| What::TurnEnded { ending }),
        5 => (ident(), words(), any::<bool>())
            .prop_map(|(message, text, last)| What::Said { message, text, last }),
        1 => words().prop_map(|text| What::Thought { text }),
        1 => (prop::option::of(any::<f64>()), prop::option::of(words()))
            .prop_map(|(percent, description)| What::Progressed { percent, description }),
        6 => (action(), prop::option::of(gate()))
            .prop_map(|(action, gate)| What::ActionRequested { action, gate }),
        6 => (ident(), words(), status, prop::option::of(words()), prop::option::of(any::<u64>()))
            .prop_map(|(id, tool, status, error, duration_ms)| What::ActionEnded {
                id, tool, status, output: error.clone().map(Value::String), error, duration_ms,
            }),
        2 => (action(), words(), prop::option::of(words()))
            .prop_map(|(action, by, reason)| What::ActionDenied { action, by, reason }),
        4 => ask().prop_map(|ask| What::AskOpened { ask }),
        4 => (ask_ident(), prop::option::of(action()), outcome, prop::option::of(words()))
            .prop_map(|(id, action, outcome, message)| What::AskClosed {
                id, action, outcome, by: "user".to_owned(), message,
            }),
        1 => words().prop_map(|reason| What::HandedOff { reason }),
        1 => words().prop_map(|text| What::Notified { text }),
        1 => (words(), prop::option::of(words())).prop_map(|(kind, text)| What::Other { kind, text }),
    ]
}

/// A session: records in order, several activities a record, a clock that may run backwards.
pub(crate) fn session() -> impl Strategy<Value = Vec<Activity>> {
    let one = (what(), any::<bool>(), -3_i64..10, prop::option::of(words()));
    prop::collection::vec(one, 0..24).prop_map(|steps| {
        let mut seq = 1;
        let mut second = 1_800_000_000_i64;
        steps
            .into_iter()
            .map(|(what, same_record, step, name)| {
                if !same_record {
                    seq += 1;
                    second += step;
                }
                Activity {
                    origin: Origin {
                        session: "s_test".to_owned(),
                        seq,
                        time: Timestamp::from_second(second).unwrap_or_default(),
                    },
                    context: Context {
                        agent: "claude".to_owned(),
                        agent_name: name,
                        turn: Some("t1".to_owned()),
                        ..Context::default()
                    },
                    what,
                }
            })
            .collect()
    })
}
