#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    reason = "helpers of tests fail and speak as tests do"
)]
#![expect(clippy::disallowed_methods, reason = "the environment says how much to test")]
#![expect(
    clippy::case_sensitive_file_extension_comparisons,
    reason = "names of messages are no names of files"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use banister_events::aaep::{self, event as aaep_event};
use banister_events::aep;
use banister_events::agui;
use banister_events::check;
use banister_events::event::Protocol;
use banister_events::finding::Severity;
use banister_events::schema;
use jsonschema::{Registry, Validator};
use serde_json::Value;

mod bases;
mod mutate;

/// Validators by the file name of their schema, without folder and ending.
struct Schemas(BTreeMap<String, Validator>);

impl Schemas {
    fn new(files: &[(String, Value)]) -> Self {
        let id = |schema: &Value| schema["$id"].as_str().unwrap().to_owned();
        let pairs = files.iter().map(|(_, schema)| (id(schema), schema.clone()));
        let registry = Registry::new().extend(pairs).unwrap().prepare().unwrap();
        let compile = |(file, schema): &(String, Value)| {
            let stem = file.strip_suffix(".schema.json").unwrap().rsplit('/').next().unwrap();
            let validator = jsonschema::options()
                .with_registry(&registry)
                .should_validate_formats(true)
                .build(schema)
                .unwrap_or_else(|error| panic!("{file}: {error}"));
            (stem.to_owned(), validator)
        };
        Self(files.iter().map(compile).collect())
    }

    fn own(protocol: Protocol) -> Self {
        Self::new(&schema::all(protocol))
    }

    /// The protocol's own, where they are at hand.
    fn reference() -> Option<Self> {
        let folder = crate::workspace().join("../shared/data/aaep-schemas");
        let files = files_below(&folder);
        let read = |path: &PathBuf| -> (String, Value) {
            let name = path.strip_prefix(&folder).unwrap().to_str().unwrap().to_owned();
            (name, serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap())
        };
        let schemas: Vec<(String, Value)> =
            files.iter().filter(|path| is_schema(path)).map(read).collect();
        if schemas.is_empty() {
            eprintln!("skipped: no schemas at {}", folder.display());
            return None;
        }
        Some(Self::new(&schemas))
    }

    /// The validator that a message is for; none for messages that nobody has described.
    fn for_message(&self, protocol: Protocol, message: &Value) -> Option<&Validator> {
        let kind = message.get("type").and_then(Value::as_str).unwrap_or_default();
        // Extensions may have replies of their own.
        let is_reply = kind.ends_with(".reply") && message.get("@context").is_none();
        if protocol == Protocol::Aaep && (aaep_event::is_control(kind) || is_reply) {
            return self.0.get(kind.strip_prefix("aaep:").unwrap_or(kind));
        }
        let (name, fallback) = match protocol {
            Protocol::Aaep => {
                let uri = kind.strip_prefix("https://aaep-protocol.org/types/");
                (uri.or(kind.strip_prefix("aaep:")).unwrap_or(kind), "envelope")
            }
            Protocol::Agui => (kind, "RAW"),
            Protocol::Aep if message.get("type").is_none() && message.get("control").is_some() => {
                ("response", "response")
            }
            Protocol::Aep => (kind, "event"),
        };
        self.0.get(name).or_else(|| self.0.get(fallback))
    }
}

fn is_schema(path: &Path) -> bool {
    path.to_str().is_some_and(|path| path.ends_with(".schema.json"))
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

#[test]
fn the_committed_schemas_are_up_to_date() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
    let mut expected = BTreeMap::new();
    for protocol in Protocol::ALL {
        for (file, schema) in schema::all(protocol) {
            let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
            let twice = expected.insert(folder.join(protocol.name()).join(file), text);
            assert_eq!(twice, None);
        }
    }
    if std::env::var("BANISTER_WRITE_SCHEMAS").is_ok_and(|set| set == "1") {
        for (path, text) in &expected {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
    }
    let present: BTreeSet<PathBuf> = files_below(&folder).into_iter().collect();
    let known: BTreeSet<PathBuf> = expected.keys().cloned().collect();
    let stale = "run this test with BANISTER_WRITE_SCHEMAS=1, and delete what is no longer made";
    assert_eq!(present, known, "{stale}");
    for (path, text) in expected {
        let found = std::fs::read_to_string(&path).unwrap();
        assert!(found == text, "{} is stale: {stale}", path.display());
    }
}

/// The messages of the recordings that break no rule: their name and bytes.
fn passing(protocol: Protocol) -> Vec<(String, Vec<u8>)> {
    recordings(protocol).into_iter().filter(|(name, _)| !name.contains(".fail.")).collect()
}

fn recordings(protocol: Protocol) -> Vec<(String, Vec<u8>)> {
    let folder = crate::workspace().join("conformance").join(protocol.name());
    let mut messages = Vec::new();
    let files = files_below(&folder);
    for path in files.iter().filter(|path| path.extension().is_some_and(|end| end == "jsonl")) {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let bytes = std::fs::read(path).unwrap();
        let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        messages.extend(lines.map(|line| (name.clone(), line.to_vec())));
    }
    assert!(messages.len() > 50, "{protocol}: {} messages", messages.len());
    messages
}

/// Samples of AEP that were not written here.
fn samples() -> Vec<(String, Vec<u8>)> {
    let files = files_below(&crate::workspace().join("../shared/agents/aep"));
    let json = files.into_iter().filter(|path| path.extension().is_some_and(|end| end == "json"));
    json.map(|path| (path.display().to_string(), std::fs::read(&path).unwrap())).collect()
}

#[test]
fn schemas_take_what_breaks_no_rule() {
    for protocol in Protocol::ALL {
        let schemas = Schemas::own(protocol);
        let mut messages = passing(protocol);
        if protocol == Protocol::Aep {
            messages.extend(samples());
        }
        for (name, bytes) in messages {
            let Ok(message) = serde_json::from_slice::<Value>(&bytes) else { continue };
            let Some(validator) = schemas.for_message(protocol, &message) else { continue };
            let errors: Vec<String> = validator
                .iter_errors(&message)
                .map(|error| format!("{}: {error}", error.instance_path()))
                .collect();
            assert_eq!(errors, [""; 0], "{name}: {message}");
        }
    }
}

#[test]
fn schemas_of_agui_take_what_its_types_write_and_nothing_beside() {
    let schemas = Schemas::own(Protocol::Agui);
    let mut input = agui::input::RunInput::new("t", "r");
    let resume = agui::input::Resume::resolved("i", true);
    let message = agui::message::UserMessage::new("m", "Hello");
    input.messages.push(agui::message::Message::User(message));
    input.resume = Some(vec![resume]);
    let capabilities = agui::capabilities::Capabilities {
        multimodal: Some(agui::capabilities::Multimodal::default()),
        ..agui::capabilities::Capabilities::default()
    };
    for (name, written) in [
        ("RunAgentInput", serde_json::to_value(input).unwrap()),
        ("AgentCapabilities", serde_json::to_value(capabilities).unwrap()),
    ] {
        let validator = &schemas.0[name];
        assert!(validator.is_valid(&written), "{:?}", validator.validate(&written));
        let mut foreign = written.clone();
        foreign["mood"] = Value::from("fine");
        assert!(!validator.is_valid(&foreign), "{foreign}");
        for (field, _) in written.as_object().unwrap() {
            let mut null = written.clone();
            null[field] = Value::Null;
            assert!(!validator.is_valid(&null), "{null}");
        }
    }
}

#[test]
fn schemas_take_the_bases_of_all_mutants_and_so_do_the_checks() {
    for (protocol, bases) in [(Protocol::Aaep, bases::aaep()), (Protocol::Aep, bases::aep())] {
        let schemas = Schemas::own(protocol);
        for base in bases {
            let validator = schemas.for_message(protocol, &base).unwrap();
            assert!(validator.is_valid(&base), "{:?}", validator.validate(&base));
            assert_eq!(errors(protocol, &base), [""; 0], "{base}");
        }
    }
    let Some(reference) = Schemas::reference() else { return };
    for base in bases::aaep() {
        if let Some(validator) = reference.for_message(Protocol::Aaep, &base) {
            assert!(validator.is_valid(&base), "{:?}", validator.validate(&base));
        }
    }
}

/// The errors of the check, warnings aside.
fn errors(protocol: Protocol, message: &Value) -> Vec<String> {
    findings(protocol, message, Severity::Error)
}

/// The errors of the check, and its warnings about messages that are no events: several of those are known by
/// examples alone, so what is wrong with them is no error.
fn complaints(protocol: Protocol, message: &Value) -> Vec<String> {
    let kind = message.get("type").and_then(Value::as_str).unwrap_or_default();
    let is_event = protocol != Protocol::Aaep || !aaep_event::is_control(kind);
    findings(protocol, message, if is_event { Severity::Error } else { Severity::Warning })
}

fn findings(protocol: Protocol, message: &Value, floor: Severity) -> Vec<String> {
    check::value(protocol, message)
        .into_iter()
        .filter(|finding| finding.rule.severity >= floor)
        .map(|finding| format!("{} {}: {}", finding.rule.code, finding.pointer, finding.message))
        .collect()
}

/// How many mutants are tried; the full tier sets more.
fn count() -> usize {
    let more = std::env::var("BANISTER_MUTANTS").ok().and_then(|count| count.parse().ok());
    more.unwrap_or(0).max(20_000)
}

/// Something that the protocol's own schemas reject and we do not.
struct Tolerated {
    place: &'static str,
    keyword: &'static str,
    /// Tells by the value at the place and by what the schema says about it.
    is_meant: fn(&Value, &str) -> bool,
    because: &'static str,
}

const TOLERATED: &[Tolerated] = &[
    Tolerated {
        place: "/type",
        keyword: "const",
        is_meant: |kind, _| {
            kind.as_str().is_some_and(|kind| kind.starts_with("https://aaep-protocol.org/types/"))
        },
        because: "the text makes the URI of a core type equal to its short name (AAEP-3.2.2-R4)",
    },
    Tolerated {
        place: "/@context",
        keyword: "oneOf",
        is_meant: |context, _| {
            let uris = context.as_array().filter(|uris| uris[0] == aaep_event::CONTEXT);
            let is_absolute = |uri: &Value| uri.as_str().is_some_and(|uri| uri.contains(':'));
            uris.is_some_and(|uris| uris.iter().all(is_absolute))
        },
        because: "contexts are names to compare, never fetched: a colon makes one absolute enough",
    },
    Tolerated {
        place: "",
        keyword: "required",
        is_meant: |reply, says| {
            says.starts_with("\"subscription_id\"")
                && reply["type"].as_str().is_some_and(|kind| kind.ends_with(".reply"))
        },
        because: "a subscriber that never shook hands has no subscription to name; we warn",
    },
    Tolerated {
        place: "/decision",
        keyword: "enum",
        is_meant: |decision, _| decision.as_str().is_some_and(|word| !word.is_empty()),
        because: "extensions may bring decisions of their own (allowed_replies lists them); we warn",
    },
];

fn is_tolerated(validator: &Validator, message: &Value, used: &mut BTreeSet<&str>) -> bool {
    validator.iter_errors(message).all(|error| {
        let entry = TOLERATED.iter().find(|entry| {
            entry.place == error.instance_path().as_str()
                && entry.keyword == error.kind().keyword()
                && (entry.is_meant)(error.instance(), &error.to_string())
        });
        used.extend(entry.map(|entry| entry.because));
        entry.is_some()
    })
}

/// An error for people, cut to what they can read.
fn brief(error: &jsonschema::ValidationError<'_>) -> String {
    format!("{}: {error}", error.instance_path()).chars().take(160).collect()
}

#[test]
fn no_mutant_passes_that_the_protocols_own_schemas_reject() {
    let Some(reference) = Schemas::reference() else { return };
    let (mut both, mut ours, mut theirs, mut neither) = (0, 0, 0, 0);
    let mut used = BTreeSet::new();
    let mut missed = Vec::new();
    let has_schema = |mutant: &Value| reference.for_message(Protocol::Aaep, mutant).is_some();
    let bases = bases::aaep();
    let mutants = mutate::mutants(&bases, usize::MAX).filter(has_schema);
    for mutant in mutants.take(count()) {
        let Some(validator) = reference.for_message(Protocol::Aaep, &mutant) else { continue };
        match (errors(Protocol::Aaep, &mutant).is_empty(), validator.is_valid(&mutant)) {
            (false, false) => both += 1,
            (false, true) => ours += 1,
            (true, true) => neither += 1,
            (true, false) => {
                theirs += 1;
                if !is_tolerated(validator, &mutant, &mut used) {
                    missed.push(brief(&validator.iter_errors(&mutant).next().unwrap()));
                }
            }
        }
    }
    eprintln!(
        "rejected by both {both}, by ours only {ours}, by theirs only {theirs}, by neither {neither}"
    );
    let distinct: BTreeSet<&String> = missed.iter().collect();
    assert_eq!(distinct, BTreeSet::new(), "{} mutants", missed.len());
    assert_eq!(used.len(), TOLERATED.len(), "an entry of the list is no longer needed: {used:?}");
    assert!(both > 5_000 && neither > 1_000, "the mutants are too alike");
}

/// Whether a message is of a draft of AEP that has no schema yet.
fn is_newer(message: &Value) -> bool {
    let version = message.get("aep_version").and_then(Value::as_str).unwrap_or_default();
    version.starts_with("0.") && version != aep::event::VERSION
}

#[test]
fn what_our_schema_rejects_our_check_rejects_too() {
    for (protocol, bases) in [(Protocol::Aaep, bases::aaep()), (Protocol::Aep, bases::aep())] {
        let schemas = Schemas::own(protocol);
        let (mut rejected, mut missed) = (0, BTreeSet::new());
        let count = if protocol == Protocol::Aaep { count() } else { count() / 4 };
        for mutant in mutate::mutants(&bases, count) {
            let Some(validator) = schemas.for_message(protocol, &mutant) else { continue };
            if is_newer(&mutant) {
                continue;
            }
            if let Err(error) = validator.validate(&mutant) {
                rejected += 1;
                if complaints(protocol, &mutant).is_empty() {
                    missed.insert(brief(&error));
                }
            }
        }
        eprintln!("{protocol}: {rejected} of {count} mutants rejected by the schema");
        assert_eq!(missed, BTreeSet::new());
        assert!(rejected > 1_000, "{protocol}: {rejected}");
    }
}

/// What is left of a message after it was decoded and written again.
fn rewritten(protocol: Protocol, bytes: &[u8]) -> Result<Value, banister_events::record::Error> {
    let kind = serde_json::from_slice::<Value>(bytes).unwrap_or_default();
    let kind = kind.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    let value = match protocol {
        Protocol::Aep => serde_json::to_value(aep::event::Message::parse(bytes)?),
        Protocol::Agui => serde_json::to_value(agui::event::Event::parse(bytes)?),
        Protocol::Aaep if aaep_event::is_control(&kind) => {
            serde_json::to_value(aaep::handshake::Message::parse(bytes)?)
        }
        Protocol::Aaep => serde_json::to_value(aaep_event::Event::parse(bytes)?),
    };
    Ok(value.unwrap())
}

#[test]
fn every_recording_is_written_again_with_every_field() {
    for protocol in Protocol::ALL {
        let mut messages = recordings(protocol);
        if protocol == Protocol::Aep {
            messages.extend(samples());
        }
        let mut read = 0;
        for (name, bytes) in messages {
            match rewritten(protocol, &bytes) {
                Ok(value) => {
                    read += 1;
                    assert_eq!(value, serde_json::from_slice::<Value>(&bytes).unwrap(), "{name}");
                }
                Err(error) => assert!(name.contains(".fail."), "{name}: {error}"),
            }
        }
        assert!(read > 50, "{protocol}: {read}");
    }
}

/// A value in which whole numbers are written one way.
fn plain(value: Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().map_or(Value::Null, Value::from),
        Value::Array(items) => items.into_iter().map(plain).collect(),
        Value::Object(object) => {
            object.into_iter().map(|(name, value)| (name, plain(value))).collect()
        }
        other => other,
    }
}

#[test]
fn what_the_check_takes_can_be_decoded_and_loses_nothing() {
    for (protocol, bases) in [(Protocol::Aaep, bases::aaep()), (Protocol::Aep, bases::aep())] {
        let schemas = Schemas::own(protocol);
        let mut read = 0;
        for mutant in mutate::mutants(&bases, count() / 4) {
            if schemas.for_message(protocol, &mutant).is_none() {
                continue;
            }
            match rewritten(protocol, mutant.to_string().as_bytes()) {
                Ok(value) => {
                    read += 1;
                    assert_eq!(plain(value), plain(mutant));
                }
                // Counts have no upper bound on the wire; here they have 64 bits.
                Err(error) if error.to_string().contains("`1e+300`, expected u64") => {}
                Err(error) => {
                    assert_ne!(complaints(protocol, &mutant), [""; 0], "{error}: {mutant}");
                }
            }
        }
        assert!(read > 1_000, "{protocol}: {read}");
    }
}

#[test]
fn aaep_events_are_written_in_the_recommended_order() {
    for base in bases::aaep().into_iter().take(12) {
        let mut shuffled: Vec<_> = base.as_object().unwrap().clone().into_iter().collect();
        shuffled.reverse();
        let shuffled = Value::Object(shuffled.into_iter().collect());
        let event = aaep_event::Event::parse(shuffled.to_string().as_bytes()).unwrap().to_json();
        let names: Vec<&String> = event.as_object().unwrap().keys().collect();
        let head = [
            "@context",
            "aaep_version",
            "type",
            "event_id",
            "session_id",
            "sequence_number",
            "timestamp",
            "producer",
            "verbosity",
            "urgency",
            "localization_hints",
            "correlation_id",
        ];
        assert_eq!(names[..head.len()], head);
        assert_eq!(names.last().unwrap().as_str(), "extensions");
    }
}

#[test]
fn words_and_formats_of_uris_and_times_agree_with_json_schema() {
    let validator = |format: &str| {
        let schema = serde_json::json!({"type": "string", "format": format});
        jsonschema::options().should_validate_formats(true).build(&schema).unwrap()
    };
    let (uri, time) = (validator("uri"), validator("date-time"));
    let base = bases::aaep().remove(1);
    let fits = |field: &str, text: &str| {
        let mut event = base.clone();
        event[field] = Value::from(text);
        errors(Protocol::Aaep, &event).is_empty()
    };
    for text in [
        "https://a.example",
        "a:b",
        "a:",
        "urn:x:y",
        "http://[::1]/",
        "http://[::1",
        "http://a.example:80x/",
        "http://a@b@c/",
        "a://b?c#d",
        "a://b#c#d",
        "a:%41",
        "a:%4",
        "a b:c",
        "1a:b",
        "a+b-c.d:e",
        "a:\\b",
        "a:{b}",
        "a:\u{e9}",
        "a",
        "",
        "a:[b]",
    ] {
        // A scheme with nothing behind it leads nowhere.
        let expected = uri.is_valid(&Value::from(text)) && text != "a:";
        assert_eq!(fits("result_uri", text), expected, "{text}");
    }
    for text in [
        "2026-01-31T12:00:00Z",
        "2026-02-29T12:00:00Z",
        "2024-02-29T12:00:00Z",
        "2026-01-31T24:00:00Z",
        "2016-12-31T23:59:60Z",
        "2016-12-31T12:59:60Z",
        "2017-01-01T00:59:60+01:00",
        "2026-01-31T12:00:00+24:00",
        "2026-01-31T12:00:00+01:60",
        "2026-01-31T12:00:00",
        "2026-1-31T12:00:00Z",
        "2026-01-31T12:00:00.Z",
        "2026-01-31T12:00:00.123Z",
        "26-01-31T12:00:00Z",
        "2026-01-31T12:00Z",
        "2026-01-31T12:00:00.123456-23:59",
    ] {
        assert_eq!(fits("timestamp", text), time.is_valid(&Value::from(text)), "{text}");
    }
}
