//! What must hold whatever the input: the bodies of the fuzz targets.
//!
//! They live here, apart from the fuzzer, so that `tests/replay.rs` can run them over the seeds on stable. A target
//! fails by panicking; that is its only way to say something.

use banister_events::aaep::voice::Voice;
use banister_events::activity::{Action, ActionKind, Activity, Decision, Origin};
use banister_events::aep::mapping::{Agents, Stamp};
use banister_events::agui::follow::{Ending, Follower};
use banister_events::agui::protobuf;
use banister_events::agui::repair::Repairer;
use banister_events::check::Checker;
use banister_events::event::Protocol;
use banister_events::finding::Severity;
use banister_events::translate::{Source, Translator};
use banister_events::{Message, aaep, aep, agui};
use banister_policy::{ActionRequest, Rules, evaluate, shell};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::fmt::Write;
use std::sync::LazyLock;

pub mod frames;

/// A target's name and its body.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: [Target; 14] = [
    ("frame_sse", frames::sse),
    ("frame_ndjson", frames::ndjson),
    ("frame_length", frames::length),
    ("frame_jsonrpc", frames::jsonrpc),
    ("frame_json", frames::json),
    ("check_aaep", check_aaep),
    ("check_agui", check_agui),
    ("check_aep", check_aep),
    ("agui_protobuf", agui_protobuf),
    ("agui_repair", agui_repair),
    ("hook_payload", hook_payload),
    ("policy_parsers", policy_parsers),
    ("policy_shell", policy_shell),
    ("translate", translate),
];

/// AAEP: the checker takes any lines.
pub fn check_aaep(data: &[u8]) {
    check(Protocol::Aaep, data);
}

/// AG-UI: the checker takes any lines.
pub fn check_agui(data: &[u8]) {
    check(Protocol::Agui, data);
}

/// AEP: the checker takes any lines.
pub fn check_aep(data: &[u8]) {
    check(Protocol::Aep, data);
}

/// Checks the input as JSON lines, twice: a checker must not depend on anything but what it was given.
fn check(protocol: Protocol, data: &[u8]) {
    let told = || {
        let mut checker = Checker::new(protocol);
        let mut told: Vec<_> =
            data.split(|byte| *byte == b'\n').flat_map(|line| checker.message(line)).collect();
        told.extend(checker.finish());
        told
    };
    let first = told();
    for finding in &first {
        assert!(!finding.rule.code.is_empty() && !finding.message.is_empty(), "{finding:?}");
        let rooted = finding.pointer.is_empty() || finding.pointer.starts_with('/');
        assert!(rooted, "{:?} is a JSON Pointer", finding.pointer);
    }
    assert_eq!(first, told(), "the same input, the same findings");
}

/// AG-UI: whatever lines come, a client follows what repair makes of them to an end, and repair leaves that alone.
///
/// # Panics
///
/// Where that does not hold.
pub fn agui_repair(data: &[u8]) {
    let repaired = |lines: &[Vec<u8>]| {
        let mut repairer = Repairer::default();
        let mut out: Vec<_> =
            lines.iter().flat_map(|line| repairer.bytes(line.clone().into())).collect();
        out.extend(repairer.finish());
        out.iter().map(|event| event.bytes().to_vec()).collect::<Vec<_>>()
    };
    let lines: Vec<Vec<u8>> = data.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let once = repaired(&lines);
    let mut follower = Follower::default();
    for event in &once {
        let taken = follower.event(event);
        assert!(taken.is_ok(), "{taken:?}: {}", String::from_utf8_lossy(event));
    }
    assert!(once.is_empty() || follower.ending() != Ending::Truncated, "every run has an end");
    assert_eq!(repaired(&once), once, "what is right passes byte for byte");
}

/// AG-UI's binary form: whatever was read or made of JSON can be written, is read back, and is then written the same.
///
/// # Panics
///
/// Where that does not hold.
pub fn agui_protobuf(data: &[u8]) {
    let read = protobuf::decode(data).ok().flatten();
    for event in [read, serde_json::from_slice(data).ok()].into_iter().flatten() {
        // Not every event has a binary form, nor has everything that bytes can say a place in one.
        let Ok(bytes) = protobuf::encode(&event) else { continue };
        assert!(!bytes.is_empty(), "{event}");
        let again = protobuf::decode(&bytes).expect("it is read").expect("it is known");
        assert_eq!(protobuf::encode(&again), Ok(bytes), "{event}");
    }
}

static AGENTS: LazyLock<Agents> =
    LazyLock::new(|| Agents::builtin().expect("the embedded mappings load"));
static RULES: LazyLock<Rules> =
    LazyLock::new(|| Rules::builtin().expect("the embedded rules load"));

/// Hook payloads, one per line as `HOOK JSON`, for every known agent: mapped, gated, read and written in all three
/// protocols, with no finding in what was written.
///
/// # Panics
///
/// Where that does not hold.
pub fn hook_payload(data: &[u8]) {
    for agent in AGENTS.iter() {
        let mut session = Session::default();
        for line in data.split(|byte| *byte == b'\n').take(200) {
            let Ok(line) = std::str::from_utf8(line) else { continue };
            let (hook, payload) = line.split_once(' ').unwrap_or(("-", line));
            let Ok(payload) = serde_json::from_str::<Value>(payload) else { continue };
            let time = Timestamp::from_second(1_800_000_000 + session.seq.cast_signed())
                .expect("a time within reach");
            let stamp = Stamp { session: "s_fuzz", seq: session.seq, time };
            let mapped = agent.map(hook, &payload, &stamp);
            let origin = Origin { session: "s_fuzz".into(), seq: session.seq, time };
            for event in mapped.events {
                let event = Message::of_value(Protocol::Aep, event);
                let event = event.document();
                let gate = aep::read::action(event.root())
                    .filter(|_| mapped.gated)
                    .map(|action| gate(&agent.agent, &action));
                session.reader.read(event.root(), gate.as_ref(), &origin, &mut session.activities);
            }
            session.seq += 1;
        }
        session.write();
    }
}

fn gate(agent: &str, action: &Action) -> banister_events::activity::Gate {
    let (cwd, home) = (Some("/home/me/project"), Some("/home/me"));
    let own = ["/home/me/.config/banister".into()];
    let request = ActionRequest { agent, action, cwd, project: None, home, own: &own };
    evaluate(&RULES, &RULES.read(&request))
}

/// One session on its way through a reader into the writers.
#[derive(Default)]
struct Session {
    seq: u64,
    reader: aep::read::Reader,
    activities: Vec<Activity>,
}

impl Session {
    fn write(&self) {
        let mut spoken = aaep::write::Writer::new("en");
        clean(Protocol::Aaep, &self.events(|activity| spoken.write(activity)));
        let mut plain = aep::write::Writer::default();
        clean(Protocol::Aep, &self.events(|activity| plain.write(activity)));
        // A front end that attached before the first event, and one that came when all was over.
        let mut live = agui::write::Writer::new("thread", "run");
        let mut history = agui::write::History::default();
        let mut events = live.begin(&history);
        events.extend(self.events(|activity| live.write(activity)));
        live.finish(None, &mut events);
        clean(Protocol::Agui, &events);
        for activity in &self.activities {
            history.add(activity);
        }
        let mut late = agui::write::Writer::new("thread", "run");
        let mut events = late.begin(&history);
        late.finish(None, &mut events);
        clean(Protocol::Agui, &events);
    }

    fn events(&self, write: impl FnMut(&Activity) -> Vec<Value>) -> Vec<Value> {
        self.activities.iter().flat_map(write).collect()
    }
}

/// Insists that a protocol's own checker finds nothing wrong with what was written. Notes are not wrong: a hook that no
/// mapping knows goes out under a type of its own, which is worth a note.
fn clean(protocol: Protocol, events: &[Value]) {
    let mut checker = Checker::new(protocol);
    let mut told = String::new();
    for event in events {
        for finding in
            checker.value(event).iter().filter(|finding| finding.rule.severity > Severity::Note)
        {
            let (code, message) = (finding.rule.code, &finding.message);
            writeln!(told, "{code} {}: {message}\n  {event}", finding.pointer)
                .expect("a string takes it");
        }
    }
    // A session that is still open is no fault of the writer's.
    assert!(told.is_empty(), "{} has findings:\n{told}", protocol.title());
}

/// Any lines, taken for any protocol: what every translation writes is valid, and is taken back as validly.
///
/// # Panics
///
/// Where that does not hold.
pub fn translate(data: &[u8]) {
    for from in Protocol::ALL {
        for to in Protocol::ALL {
            let lines = data.split(|byte| *byte == b'\n').take(200).map(<[u8]>::to_vec);
            let there = translated(from, to, lines);
            clean(to, &there);
            let lines = there.iter().map(|event| event.to_string().into_bytes());
            clean(from, &translated(to, from, lines));
        }
    }
}

fn translated(from: Protocol, to: Protocol, lines: impl Iterator<Item = Vec<u8>>) -> Vec<Value> {
    let voice = Voice { carry: true, ..Voice::default() };
    let mut translator = Translator::new(Source::Protocol(from), to, voice);
    let now = Timestamp::from_second(1_800_000_000).expect("a time within reach");
    let mut told = Vec::new();
    for line in lines {
        told.extend(translator.message(&line, now).unwrap_or_default());
    }
    told.extend(translator.finish());
    // Sessions that are interleaved in AG-UI go out one after another.
    told.sort_by_key(|told| told.lane);
    told.into_iter().map(|told| told.event.into_value()).collect()
}

/// Shell text: reading it ends, what is opaque is never allowed, and nothing allowed hides a command that is denied.
///
/// # Panics
///
/// Where that does not hold.
pub fn policy_shell(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let reading = shell::read(text);
    assert!(reading.commands.len() <= shell::MAX_COMMANDS, "bounded");
    assert!(text.len() <= shell::MAX_TEXT || reading.opaque.is_some(), "too long to be read");
    let verdict = |command: &str| gate("claude", &bash(command)).decision;
    let decision = verdict(text);
    if reading.opaque.is_some() {
        assert_ne!(decision, Decision::Allow, "{text:?} is opaque");
    }
    // What follows on a line of its own counts, whatever stood before it; a backslash would join the lines.
    if !text.ends_with('\\') {
        let after = format!("{text}\nrm -rf /");
        assert_ne!(verdict(&after), Decision::Allow, "{after:?}");
    }
}

/// Reading shell: where three parsers accept a text of simple commands, they agree on every word.
///
/// The other two overflow their stacks on deep nesting, so texts are short and have nothing that nests.
///
/// # Panics
///
/// If all accept a text and their words differ.
pub fn policy_parsers(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let plain = |c: char| c.is_ascii_alphanumeric() || " ./_-'\"\\=:,+@%;&|\n".contains(c);
    // One of the others removes every backslash in double quotes, which a shell does not.
    let differs = text.contains('\\') && text.contains('"');
    if text.len() > 256 || differs || !text.chars().all(plain) {
        return;
    }
    let reading = shell::read(text);
    let joins = |step: &str| step == "pipeline";
    let is_plain = |simple: &shell::Simple| {
        simple.assignments.is_empty() && simple.steps.iter().all(|step| joins(step))
    };
    if reading.opaque.is_some() || !reading.commands.iter().all(is_plain) {
        return;
    }
    let ours: Vec<Vec<&str>> = reading
        .commands
        .iter()
        .map(|simple| simple.argv.iter().map(|word| word.text.as_str()).collect())
        .collect();
    let (Some(brush), Some(rable)) = (brush_words(text), rable_words(text)) else { return };
    assert_eq!(brush, rable, "{text:?}");
    // Wrappers are seen through here and not there.
    if ours.iter().map(Vec::len).eq(brush.iter().map(Vec::len)) {
        assert_eq!(ours, brush, "{text:?}");
    }
}

fn brush_words(text: &str) -> Option<Vec<Vec<String>>> {
    let tokens = brush_parser::tokenize_str(text).ok()?;
    brush_parser::parse_tokens(&tokens, &brush_parser::ParserOptions::default()).ok()?;
    let mut commands = vec![Vec::new()];
    for token in &tokens {
        match token {
            brush_parser::Token::Word(word, _) => {
                commands.last_mut()?.push(brush_parser::unquote_str(word));
            }
            brush_parser::Token::Operator(operator, _) => match operator.as_str() {
                ";" | "&" | "&&" | "|" | "||" | "\n" => commands.push(Vec::new()),
                _ => return None,
            },
        }
    }
    commands.retain(|words| !words.is_empty());
    Some(commands)
}

fn rable_words(text: &str) -> Option<Vec<Vec<String>>> {
    let mut commands = Vec::new();
    let mut nodes: Vec<rable::Node> = rable::parse(text, false).ok()?;
    nodes.reverse();
    while let Some(node) = nodes.pop() {
        match node.kind {
            rable::NodeKind::Command { assignments, words, redirects }
                if assignments.is_empty() && redirects.is_empty() =>
            {
                let words = words.into_iter().map(|word| match word.kind {
                    rable::NodeKind::Word { value, .. } => Some(brush_parser::unquote_str(&value)),
                    _ => None,
                });
                commands.push(words.collect::<Option<Vec<String>>>()?);
            }
            rable::NodeKind::Pipeline { commands, .. } => nodes.extend(commands.into_iter().rev()),
            rable::NodeKind::List { items } => {
                nodes.extend(items.into_iter().map(|item| item.command).rev());
            }
            _ => return None,
        }
    }
    Some(commands)
}

fn bash(command: &str) -> Action {
    Action {
        id: "toolu_fuzz".to_owned(),
        kind: ActionKind::Tool,
        tool: "Bash".to_owned(),
        server: None,
        original_name: None,
        input: Some(json!({ "command": command })),
        rationale: None,
    }
}
