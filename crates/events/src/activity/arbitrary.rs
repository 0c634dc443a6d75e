//! Arbitrary sequences of activities, for the tests that hold every writer to its protocol.

use proptest::prelude::*;
use proptest::test_runner::{TestCaseResult, TestRunner};
use serde_json::json;

use std::sync::Arc;

use super::*;

/// Tries a law on one in so many of the usual cases: for laws of which one case costs as much as a hundred of others.
/// `proptest!` takes the number from `PROPTEST_CASES` whenever that is set, whatever its own configuration says.
pub(crate) fn hold<S: Strategy>(
    one_in: u32,
    strategy: &S,
    law: impl Fn(S::Value) -> TestCaseResult,
) {
    let mut config = ProptestConfig::default();
    (config.cases, config.failure_persistence) = ((config.cases / one_in).max(32), None);
    if let Err(error) = TestRunner::new(config).run(strategy, law) {
        panic!("{error}");
    }
}

/// Text as agents send it: ordinary, empty, hostile, long.
fn words() -> impl Strategy<Value = String> {
    prop_oneof![
        600 => "[a-z ]{1,20}",
        100 => Just(String::new()),
        100 => any::<String>(),
        100 => Just("rm -rf / \u{202e} password=hunter2 \u{0}".to_owned()),
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

fn action() -> BoxedStrategy<Action> {
    let kind = prop_oneof![
        Just(ActionKind::Tool),
        Just(ActionKind::Mcp),
        Just(ActionKind::Skill),
        Just(ActionKind::Subagent),
        Just(ActionKind::Other),
    ];
    (ident(), kind, words(), prop::option::of(words()), prop::option::of(words()))
        .prop_map(|(id, kind, tool, server, command)| Action {
            id,
            kind,
            tool,
            server,
            original_name: None,
            input: command.map(|command| json!({ "command": command })),
            rationale: None,
        })
        .boxed()
}

fn risk() -> impl Strategy<Value = Risk> {
    prop_oneof![Just(Risk::Low), Just(Risk::Medium), Just(Risk::High)]
}

fn gate() -> BoxedStrategy<Gate> {
    let decision = prop_oneof![Just(Decision::Allow), Just(Decision::Ask), Just(Decision::Deny)];
    (decision, risk(), any::<Option<bool>>(), words())
        .prop_map(|(decision, risk, irreversible, reason)| Gate {
            decision,
            rule: "pack.test".to_owned(),
            reason,
            risk,
            irreversible,
            opaque: None,
            safer: None,
        })
        .boxed()
}

fn response_kind() -> impl Strategy<Value = ResponseKind> {
    prop_oneof![
        Just(ResponseKind::Freetext),
        Just(ResponseKind::YesNo),
        Just(ResponseKind::MultipleChoice),
        Just(ResponseKind::Numeric),
    ]
}

fn clarification() -> BoxedStrategy<AskKind> {
    let choice = (words(), words()).prop_map(|(value, label)| Choice { value, label });
    (
        words(),
        prop::collection::vec(response_kind(), 0..5),
        prop::collection::vec(choice, 0..4),
        prop::option::of(words()),
        prop::option::of(words()),
    )
        .prop_map(|(question, kinds, choices, context, default)| AskKind::Clarification {
            question,
            kinds,
            choices,
            context,
            default,
        })
        .boxed()
}

fn ask() -> BoxedStrategy<Ask> {
    let kind = prop_oneof![
        3 => Just(AskKind::Confirmation),
        1 => clarification(),
        1 => words().prop_map(|text| AskKind::Plan { text }),
    ];
    (
        (ask_ident(), words(), kind),
        prop::option::of(action()),
        prop::option::of(gate()),
        prop::option::of(-5_i64..200_000),
        prop::option::of(words()),
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(|((id, token, kind), action, gate, seconds, words, accept, schema)| Ask {
            action,
            gate,
            deadline: seconds
                .map(|seconds| Timestamp::from_second(1_800_000_000 + seconds).unwrap_or_default()),
            words,
            defaults_to_accept: accept,
            schema: schema.then(|| json!({ "type": "object" })),
            ..Ask::new(id, token, kind)
        })
        .boxed()
}

/// Small JSON, as results, states and cards hold.
fn data() -> BoxedStrategy<Value> {
    prop_oneof![
        words().prop_map(Value::String),
        any::<i32>().prop_map(Value::from),
        Just(Value::Null),
        (words(), words()).prop_map(|(key, value)| json!({ key: [value, 1] })),
    ]
    .boxed()
}

/// A JSON Patch, often one that fits nothing.
fn patch() -> BoxedStrategy<Value> {
    prop_oneof![
        data().prop_map(|value| json!([{ "op": "add", "path": "/a", "value": value }])),
        Just(json!([{ "op": "remove", "path": "/a" }])),
        Just(json!([{ "op": "replace", "path": "", "value": {} }])),
        Just(json!([])),
        data(),
    ]
    .boxed()
}

fn ending() -> BoxedStrategy<Ending> {
    prop_oneof![
        2 => Just(Ending::Completed),
        1 => (words(), prop::option::of(words()), prop::option::of(words()))
            .prop_map(|(message, code, category)| Ending::Failed { message, code, category }),
        1 => (words(), prop::option::of(words()))
            .prop_map(|(by, reason)| Ending::Cancelled { by, reason }),
        1 => prop::collection::vec(ask_ident(), 0..3).prop_map(|asks| Ending::Suspended { asks }),
    ]
    .boxed()
}

fn usage() -> impl Strategy<Value = Usage> {
    (prop::option::of(words()), any::<Option<u64>>(), any::<Option<u64>>())
        .prop_map(|(model, input, output)| Usage { model, input, output, ..Usage::default() })
}

fn lifecycle() -> BoxedStrategy<What> {
    prop_oneof![
        1 => prop::option::of(words()).prop_map(|source| What::SessionStarted { source }),
        1 => prop::option::of(words()).prop_map(|reason| What::SessionEnded { reason }),
        3 => (prop::option::of(words()), prop::option::of(words()))
            .prop_map(|(request, summary)| What::TurnStarted { request, summary }),
        3 => (
            ending(),
            prop::option::of(words()),
            prop::option::of(data()),
            prop::collection::vec(usage(), 0..2),
        )
            .prop_map(|(ending, summary, result, usage)| What::TurnEnded {
                ending, summary, result, usage,
            }),
        1 => (words(), prop::option::of(words()))
            .prop_map(|(state, summary)| What::StateChanged { state, summary }),
        1 => (
            prop::option::of(any::<f64>()),
            any::<Option<u64>>(),
            any::<Option<u64>>(),
            prop::option::of(words()),
            any::<Option<u64>>(),
        )
            .prop_map(|(percent, step, total, description, eta_ms)| What::Progressed {
                percent, step, total, description, eta_ms,
            }),
        1 => ident().prop_map(|name| What::StepStarted { name }),
        1 => ident().prop_map(|name| What::StepEnded { name }),
        1 => (ident(), words(), prop::option::of(ident()), prop::option::of(ident())).prop_map(
            |(id, name, parent, action)| What::SubagentStarted {
                id, description: Some(name.clone()), name, parent, action,
            }
        ),
        1 => (ident(), ending(), prop::option::of(data()))
            .prop_map(|(id, ending, result)| What::SubagentEnded { id, ending, result }),
    ]
    .boxed()
}

fn work() -> BoxedStrategy<What> {
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
    prop_oneof![
        1 => (ident(), words(), words())
            .prop_map(|(id, tool, delta)| What::ActionDrafted { id, tool, delta }),
        6 => (action(), prop::option::of(gate()))
            .prop_map(|(action, gate)| What::ActionRequested { action, gate }),
        6 => (
            ident(),
            words(),
            status,
            prop::option::of(data()),
            prop::option::of(words()),
            prop::option::of(any::<u64>()),
        )
            .prop_map(|(id, tool, status, output, error, duration_ms)| What::ActionEnded {
                id, tool, status, output, error, duration_ms,
            }),
        2 => (action(), words(), prop::option::of(words()))
            .prop_map(|(action, by, reason)| What::ActionDenied { action, by, reason }),
        4 => ask().prop_map(|ask| What::AskOpened { ask: Box::new(ask) }),
        4 => (
            ask_ident(),
            prop::option::of(action()),
            outcome,
            prop::option::of(words()),
            prop::option::of(data()),
            prop::option::of(data()),
        )
            .prop_map(|(id, action, outcome, message, response, updated_input)| What::AskClosed {
                id, action, outcome, by: "user".to_owned(), message, response, updated_input,
            }),
    ]
    .boxed()
}

fn talk() -> BoxedStrategy<What> {
    let role = prop_oneof![
        5 => Just(Role::Assistant),
        1 => Just(Role::User),
        1 => Just(Role::System),
        1 => Just(Role::Developer),
    ];
    let message = (ident(), words())
        .prop_map(|(id, text)| json!({ "id": id, "role": "user", "content": text }));
    prop_oneof![
        8 => (ident(), role, words(), any::<bool>())
            .prop_map(|(message, role, text, last)| What::Said { message, role, text, last }),
        3 => (ident(), words(), any::<bool>())
            .prop_map(|(message, text, last)| What::Thought { message, text, last }),
        1 => words().prop_map(|text| What::Planned { text }),
        1 => (words(), prop::option::of(words()), prop::option::of(words()))
            .prop_map(|(reason, target, uri)| What::HandedOff { reason, target, uri }),
        1 => data().prop_map(|state| What::StateSet { state }),
        1 => patch().prop_map(|patch| What::StatePatched { patch }),
        1 => prop::collection::vec(prop_oneof![9 => message, 1 => data()], 0..3)
            .prop_map(|messages| What::MessagesSet { messages }),
        1 => (ident(), words(), words(), any::<bool>()).prop_map(|(id, kind, text, replace)| {
            let content = [("text".to_owned(), Value::String(text))].into_iter().collect();
            What::CardShown { id, kind, content, replace }
        }),
        1 => (ident(), words(), patch())
            .prop_map(|(id, kind, patch)| What::CardPatched { id, kind, patch }),
        1 => prop::option::of(words()).prop_map(|trigger| What::Compacted { trigger }),
        1 => (prop::collection::vec(words(), 0..3), prop::option::of(words()))
            .prop_map(|(paths, reason)| What::WorkspaceChanged { paths, reason }),
        1 => words().prop_map(|text| What::Notified { text }),
        1 => (words(), prop::option::of(words()))
            .prop_map(|(message, code)| What::Erred { message, code }),
        1 => usage().prop_map(|usage| What::Used { usage }),
        1 => (0_usize..3, words(), prop::option::of(words()), data()).prop_map(
            |(protocol, kind, text, event)| What::Raw {
                protocol: Protocol::ALL.get(protocol).copied().unwrap_or(Protocol::Aep),
                kind, text, event,
            }
        ),
    ]
    .boxed()
}

fn what() -> BoxedStrategy<What> {
    prop_oneof![3 => lifecycle(), 5 => work(), 4 => talk()].boxed()
}

/// A session: records in order, several activities a record, a clock that may run backwards.
pub(crate) fn session() -> impl Strategy<Value = Vec<Activity>> {
    let subagent = prop_oneof![8 => Just(None), 1 => ident().prop_map(Some)];
    let one = (what(), any::<bool>(), -3_i64..10, prop::option::of(words()), subagent);
    prop::collection::vec(one, 0..24).prop_map(|steps| {
        let mut seq = 1;
        let mut second = 1_800_000_000_i64;
        steps
            .into_iter()
            .map(|(what, same_record, step, name, subagent)| {
                if !same_record {
                    seq += 1;
                    second += step;
                }
                Activity {
                    origin: Origin {
                        session: "s_test".into(),
                        seq,
                        time: Timestamp::from_second(second).unwrap_or_default(),
                    },
                    context: Arc::new(Context {
                        agent: "claude".to_owned(),
                        agent_name: name,
                        turn: Some("t1".to_owned()),
                        subagent,
                        ..Context::default()
                    }),
                    what,
                }
            })
            .collect()
    })
}
