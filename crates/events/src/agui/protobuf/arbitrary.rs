//! Arbitrary events of all types, made along the tables.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::SAFE;
use super::tables::{ARMS, BASE, Field, Kind, Message, Presence, Rule};

fn words() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "[a-z/]{1,4}", any::<String>(), "[é-￿]{40,200}"]
}

fn open() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-SAFE..=SAFE).prop_map(Value::from),
        any::<f64>().prop_filter_map("as JavaScript prints it", |double| {
            (double.is_finite() && double.fract() != 0.0).then(|| Value::from(double))
        }),
        words().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            object(inner),
        ]
    })
    .boxed()
}

fn object(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    prop::collection::vec((words(), value), 0..3)
        .prop_map(|pairs| Value::Object(pairs.into_iter().collect()))
}

/// A value for a field, as it is read back.
fn value(kind: Kind) -> BoxedStrategy<Value> {
    match kind {
        Kind::Text => words().prop_map(Value::from).boxed(),
        Kind::Bool => any::<bool>().prop_map(Value::from).boxed(),
        Kind::Integer => (-SAFE..=SAFE).prop_map(Value::from).boxed(),
        Kind::Word(words) => prop::sample::select(words).prop_map(Value::from).boxed(),
        Kind::Any => open(),
        Kind::Some => open().prop_filter("null is none", |value| !value.is_null()).boxed(),
        Kind::Object => object(open()).boxed(),
        Kind::Message(message) => object_of(message),
        Kind::Base => Just(json!({})).boxed(),
        Kind::List(item) => prop::collection::vec(value(*item), 0..3).prop_map(Value::from).boxed(),
    }
}

fn list(message: &'static Message, name: &str) -> BoxedStrategy<Value> {
    let field = message.fields.iter().find(|field| field.name == name).unwrap();
    value(field.kind)
}

fn optional(field: &'static Field) -> BoxedStrategy<Option<Value>> {
    match field.presence {
        Presence::Must | Presence::Filled => value(field.kind).prop_map(Some).boxed(),
        // An empty list is read back as none.
        Presence::May => prop::option::of(value(field.kind))
            .prop_map(|value| value.filter(|value| value != &json!([])))
            .boxed(),
    }
}

/// An object of a message's own fields, and what its rule makes of them.
fn object_of(message: &'static Message) -> BoxedStrategy<Value> {
    let arms = matches!(message.rule, Rule::Part | Rule::Source);
    if arms {
        return prop::sample::select(message.fields.iter().collect::<Vec<_>>())
            .prop_flat_map(|field| {
                value(field.kind).prop_map(|mut value| {
                    value["type"] = json!(field.name);
                    value
                })
            })
            .boxed();
    }
    let ruled = |field: &&Field| match message.rule {
        Rule::Outcome(siblings) => {
            field.name == "outcome" || siblings.iter().any(|(name, _)| *name == field.name)
        }
        Rule::Content => ["content", "contentParts"].contains(&field.name),
        Rule::Chat => ["role", "content", "contentParts", "activityContent"].contains(&field.name),
        _ => false,
    };
    let plain: Vec<_> = message
        .fields
        .iter()
        .filter(|field| !ruled(field) && !matches!(field.kind, Kind::Base))
        .map(|field| optional(field).prop_map(|value| (field.name, value)))
        .collect();
    (plain, by_rule(message))
        .prop_map(|(fields, ruled)| {
            let fields = fields.into_iter().filter_map(|(name, value)| Some((name, value?)));
            fields.map(|(name, value)| (name.to_owned(), value)).chain(ruled).collect()
        })
        .boxed()
}

/// What the rule of a message adds.
fn by_rule(message: &'static Message) -> BoxedStrategy<Vec<(String, Value)>> {
    let named = |name: &'static str| move |value: Value| vec![(name.to_owned(), value)];
    match message.rule {
        Rule::Outcome(siblings) => {
            let known = prop::sample::select(siblings).prop_flat_map(move |(name, kind)| {
                list(message, name).prop_map(move |list| {
                    let mut outcome = json!({"type": kind});
                    if list != json!([]) || kind == "interrupt" {
                        outcome[name] = list;
                    }
                    vec![("outcome".to_owned(), outcome)]
                })
            });
            let other =
                "[a-z]{1,9}".prop_filter("an interrupt has interrupts", |kind| kind != "interrupt");
            let other = other.prop_map(|kind| vec![("outcome".to_owned(), json!({"type": kind}))]);
            prop_oneof![Just(Vec::new()), known, other].boxed()
        }
        Rule::Content => prop_oneof![
            words().prop_map(Value::from).prop_map(named("content")),
            list(message, "contentParts").prop_map(named("content")),
        ]
        .boxed(),
        Rule::Chat => {
            let with = |roles: &'static [&'static str], content: BoxedStrategy<Value>| {
                (prop::sample::select(roles), content).prop_map(|(role, content)| {
                    vec![("role".to_owned(), json!(role)), ("content".to_owned(), content)]
                })
            };
            prop_oneof![
                Just(vec![("role".to_owned(), json!("assistant"))]),
                with(
                    &["developer", "system", "assistant", "reasoning", "user", "tool", "wizard"],
                    value(Kind::Text)
                ),
                with(&["user", "tool"], list(message, "contentParts")),
                with(&["activity", "wizard"], value(Kind::Object)),
            ]
            .boxed()
        }
        _ => Just(Vec::new()).boxed(),
    }
}

/// An event of any type, as it is read back.
pub(super) fn event() -> impl Strategy<Value = Value> {
    prop::sample::select(ARMS.iter().collect::<Vec<_>>()).prop_flat_map(|arm| {
        let base = BASE.fields.iter().filter(|field| field.name != "type");
        let base: Vec<_> =
            base.map(|field| optional(field).prop_map(|value| (field.name, value))).collect();
        (object_of(arm.message), base).prop_map(|(mut event, base)| {
            event["type"] = json!(arm.kind.name());
            for (name, value) in base {
                if let Some(value) = value {
                    event[name] = value;
                }
            }
            event
        })
    })
}
