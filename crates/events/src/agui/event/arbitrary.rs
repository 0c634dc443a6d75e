//! Arbitrary JSON of a shape, for the tests that hold types and tables to each other.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::check::shape::{Kind, Shape};

/// Whether there is something that the tables do not know: fields, members of unions, words.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Foreign {
    Never,
    Sometimes,
}

/// Text as agents send it: ordinary, empty, anything.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![5 => "[a-z ]{1,8}", 1 => Just(String::new()), 1 => any::<String>()]
}

/// Any JSON, three levels deep.
pub(crate) fn json() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        // Parts of powers of two are read back as they were written.
        (-99_i32..99).prop_map(|n| json!(f64::from(n) + 0.25)),
        (0_u32..99).prop_map(|n| json!(f64::from(n))),
        text().prop_map(Value::from),
    ];
    let nest = |inner: BoxedStrategy<Value>| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((text(), inner), 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    };
    leaf.boxed().prop_recursive(3, 12, 4, nest).boxed()
}

fn map() -> impl Strategy<Value = Map<String, Value>> {
    prop::collection::vec((text(), json()), 0..3).prop_map(Map::from_iter)
}

/// An object of a shape, its fields in any order.
pub(crate) fn object(shape: &'static Shape, foreign: Foreign) -> BoxedStrategy<Map<String, Value>> {
    let known = shape.fields().map(|field| {
        let value = of(&field.kind, foreign);
        let value = if field.required {
            value.prop_map(Some).boxed()
        } else {
            prop::option::of(value).boxed()
        };
        value.prop_map(|value| value.map(|value| (field.name.to_owned(), value))).boxed()
    });
    let known: Vec<_> = known.collect();
    let extra = match foreign {
        Foreign::Never => Just(Vec::new()).boxed(),
        Foreign::Sometimes => {
            prop::collection::vec(("x-[a-z]{1,3}", json()).prop_map(Some), 0..2).boxed()
        }
    };
    (known, extra)
        .prop_map(|(known, extra)| [known, extra].concat())
        .prop_shuffle()
        .prop_map(|fields| fields.into_iter().flatten().collect())
        .boxed()
}

/// A value of a kind.
fn of(kind: &'static Kind, foreign: Foreign) -> BoxedStrategy<Value> {
    let list = |item| prop::collection::vec(of(item, foreign), 0..3);
    match kind {
        Kind::Any => json(),
        Kind::Some => json().prop_filter("null is no value", |value| !value.is_null()).boxed(),
        Kind::Text { .. } => text().prop_map(Value::from).boxed(),
        Kind::Word(words) => prop::sample::select(*words).prop_map(Value::from).boxed(),
        Kind::Format { fits, .. } => "(/([a-z0-9-]|~[01]){0,3}){0,3}"
            .prop_filter("of this format", |text| fits(text))
            .prop_map(Value::from)
            .boxed(),
        Kind::Bool => any::<bool>().prop_map(Value::from).boxed(),
        Kind::Integer { min, max } => (*min..=*max).prop_map(Value::from).boxed(),
        Kind::Object => map().prop_map(Value::Object).boxed(),
        Kind::Record(shape) => object(shape, foreign).prop_map(Value::Object).boxed(),
        Kind::List { min, item, .. } => {
            prop::collection::vec(of(item, foreign), *min..min + 3).prop_map(Value::from).boxed()
        }
        Kind::Union { tag, members } => {
            let known = members.iter().map(move |(word, shape)| {
                object(shape, foreign).prop_map(move |mut object| {
                    object.insert((*tag).to_owned(), Value::from(*word));
                    Value::Object(object)
                })
            });
            let known = proptest::strategy::Union::new(known.map(Strategy::boxed));
            let unknown = (map(), json()).prop_map(move |(mut object, word)| {
                object.insert((*tag).to_owned(), word);
                Value::Object(object)
            });
            match foreign {
                Foreign::Never => known.boxed(),
                Foreign::Sometimes => prop_oneof![9 => known, 1 => unknown].boxed(),
            }
        }
        Kind::TextOr(item) => {
            prop_oneof![text().prop_map(Value::from), list(item).prop_map(Value::from)].boxed()
        }
        Kind::Number { .. } | Kind::RecordAnd(..) | Kind::Each(_) | Kind::Either(_) => {
            panic!("AG-UI has no field of this kind")
        }
    }
}
