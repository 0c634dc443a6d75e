//! Everything that could be wrong with a message, one thing or a few at a time.

use serde_json::{Value, json};

/// One change to one of the bases.
#[derive(Debug, Clone)]
pub(super) struct Mutation {
    pub(super) base: usize,
    pointer: String,
    change: Change,
}

#[derive(Debug, Clone)]
enum Change {
    Drop,
    Set(Value),
    Add(&'static str, Value),
}

impl Mutation {
    /// Changes a message; nothing, where the place is already gone.
    pub(super) fn apply(&self, message: &mut Value) {
        match &self.change {
            Change::Set(value) => {
                if let Some(place) = message.pointer_mut(&self.pointer) {
                    *place = value.clone();
                }
            }
            Change::Add(name, value) => {
                if let Some(Value::Object(object)) = message.pointer_mut(&self.pointer) {
                    object.insert((*name).into(), value.clone());
                }
            }
            Change::Drop => {
                let (parent, last) = self.pointer.rsplit_once('/').unwrap();
                match message.pointer_mut(parent) {
                    Some(Value::Object(object)) => {
                        object.shift_remove(&last.replace("~1", "/").replace("~0", "~"));
                    }
                    Some(Value::Array(items)) => {
                        let index = last.parse().unwrap_or(usize::MAX);
                        if index < items.len() {
                            items.remove(index);
                        }
                    }
                    _ => {}
                }
            }
        }
    }
}

/// Every single change to every place of every base.
pub(super) fn singles(bases: &[Value]) -> Vec<Mutation> {
    let mut all = Vec::new();
    for (base, message) in bases.iter().enumerate() {
        let mut changes = vec![(String::new(), additions(message))];
        walk(message, "", &mut changes);
        let changes = changes.into_iter().flat_map(|(pointer, changes)| {
            changes.into_iter().map(move |change| (pointer.clone(), change))
        });
        all.extend(changes.map(|(pointer, change)| Mutation { base, pointer, change }));
    }
    all
}

fn walk(value: &Value, pointer: &str, changes: &mut Vec<(String, Vec<Change>)>) {
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(object) => object.iter().map(|(name, value)| (escape(name), value)).collect(),
        Value::Array(items) => {
            items.iter().enumerate().map(|(index, value)| (index.to_string(), value)).collect()
        }
        _ => Vec::new(),
    };
    for (step, value) in inner {
        let pointer = format!("{pointer}/{step}");
        let mut here = vec![Change::Drop];
        here.extend(anything().into_iter().map(Change::Set));
        here.extend(variants(value).into_iter().map(Change::Set));
        here.extend(additions(value));
        changes.push((pointer.clone(), here));
        walk(value, &pointer, changes);
    }
}

fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Values of every type and of many formats.
fn anything() -> Vec<Value> {
    vec![
        json!(null),
        json!(true),
        json!(false),
        json!(0),
        json!(1),
        json!(-1),
        json!(0.5),
        json!(2.0),
        json!(101),
        json!(1001),
        json!(86_401),
        json!(100_001),
        json!(86_400_001),
        json!(u64::MAX),
        json!(1e300),
        json!(""),
        json!(" "),
        json!("x"),
        json!("evt_"),
        json!("sess_a b"),
        json!("rpl_\u{e9}"),
        json!("1.0"),
        json!("1.0.0"),
        json!("2026-02-30T00:00:00Z"),
        json!("2026-03-09T05:30:00"),
        json!("2026-03-09T05:30:00.25Z"),
        json!("2026-03-09T12:00:60Z"),
        json!("https://a.example/%zz"),
        json!("https://a.example/\u{e9}"),
        json!("//a.example"),
        json!("https://a b"),
        json!("acme:thing"),
        json!("aaep:agent.purple"),
        json!("https://aaep-protocol.org/types/agent.tool.invoked"),
        json!("critical"),
        json!("accept"),
        json!("high"),
        json!([]),
        json!([null]),
        json!([1]),
        json!([1, 1]),
        json!(["a", "a"]),
        json!(["a", "b"]),
        json!([[]]),
        json!([{}]),
        json!({}),
        json!({"a": 1}),
        json!({"a": {}}),
        json!({"a": null}),
    ]
}

/// Values close to this one.
fn variants(value: &Value) -> Vec<Value> {
    match value {
        Value::String(text) => {
            let mut near = vec![
                format!("{text}\n"),
                format!(" {text}"),
                format!("{text}!"),
                format!("{text}/"),
                format!("{text}\u{e9}"),
                text.to_uppercase(),
                text.to_lowercase(),
                text.chars().skip(1).collect(),
                text.replace(['.', '-', ':'], ""),
                text.replace('_', ""),
                text.repeat(2),
                text.replace("aaep:", "https://aaep-protocol.org/types/"),
            ];
            let fill = |length: usize| {
                format!("{text}{}", "a".repeat(length.saturating_sub(text.chars().count())))
            };
            near.extend([64, 65, 70, 256, 257, 1024, 1025, 4096, 4097, 16_384, 16_385].map(fill));
            near.into_iter().map(Value::String).collect()
        }
        Value::Number(number) => {
            let number = number.as_f64().unwrap();
            vec![
                json!(number),
                json!(-number),
                json!(number + 0.5),
                json!(number.to_string()),
                json!(number * 1e6),
            ]
        }
        Value::Array(items) => {
            let mut near = Vec::new();
            if let Some(first) = items.first() {
                let with =
                    |more: Value| Value::Array(items.iter().cloned().chain([more]).collect());
                near.extend([
                    with(first.clone()),
                    with(json!(null)),
                    with(json!(7)),
                    with(json!({})),
                ]);
                near.push(json!([first]));
            }
            near.extend(
                [17, 33, 65, 257]
                    .map(|count| (0..count).map(|index| json!(format!("en-{index}"))).collect()),
            );
            near
        }
        _ => Vec::new(),
    }
}

/// Fields that an object should not have, or not like this.
fn additions(value: &Value) -> Vec<Change> {
    if !value.is_object() {
        return Vec::new();
    }
    vec![
        Change::Add("payload", json!({"a": 1})),
        Change::Add("extra", json!(1)),
        Change::Add("nothing", json!(null)),
        Change::Add("aaep_mood", json!("fine")),
        Change::Add("@id", json!("urn:x")),
        Change::Add("summary_normal_yo", json!("Adiro")),
        Change::Add("summary_normal_yo", json!(5)),
        Change::Add("irreversible", json!(true)),
        Change::Add("reversibility", json!("irreversible")),
        Change::Add("risk_level", json!("medium")),
        Change::Add("default_decision", json!("accept")),
    ]
}

/// Random numbers that are the same in every run.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 16).unwrap() % bound
    }
}

/// This many mutated messages: single changes in a random order, then several changes to one message at a time.
pub(super) fn mutants(bases: &[Value], count: usize) -> impl Iterator<Item = Value> {
    let mut dice = Dice::new(0x5eed_cafe);
    let mut singles = singles(bases);
    for last in (1..singles.len()).rev() {
        singles.swap(last, dice.below(last + 1));
    }
    let mut of_base = vec![Vec::new(); bases.len()];
    for (index, single) in singles.iter().enumerate() {
        of_base[single.base].push(index);
    }
    (0..count).map(move |index| {
        let first = &singles[index % singles.len()];
        let mut message = bases[first.base].clone();
        first.apply(&mut message);
        let more = if index < singles.len() { 0 } else { 1 + dice.below(3) };
        for _ in 0..more {
            let others = &of_base[first.base];
            singles[others[dice.below(others.len())]].apply(&mut message);
        }
        message
    })
}
