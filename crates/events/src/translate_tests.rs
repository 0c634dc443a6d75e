use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::activity::{
    Action, ActionKind, Context, Ending, Outcome, Role, Status, What, arbitrary,
};
use crate::check::Checker;
use crate::finding::Severity;

fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

fn carrying() -> Voice {
    Voice { carry: true, ..Voice::default() }
}

fn translated(from: Protocol, to: Protocol, stream: &[Value]) -> Vec<Value> {
    let mut translator = Translator::new(Source::Protocol(from), to, carrying());
    let mut told: Vec<Translated> = Vec::new();
    for event in stream {
        told.extend(translator.message(event.to_string().as_bytes(), now()).unwrap());
    }
    told.extend(translator.finish());
    told.into_iter().map(|told| told.event.into_value()).collect()
}

fn written(protocol: Protocol, activities: &[Activity]) -> Vec<Value> {
    let mut writer = Writer::for_protocol(protocol, carrying(), "t");
    let mut events: Vec<Written> =
        activities.iter().flat_map(|activity| writer.write(activity)).collect();
    events.extend(writer.close());
    events.into_iter().map(Written::into_value).collect()
}

fn read(protocol: Protocol, stream: &[Value]) -> Vec<What> {
    let origin = Origin { session: "s".into(), seq: 1, time: now() };
    let mut reader = Reader::trusting(protocol);
    let mut activities = Vec::new();
    for event in stream {
        let message = Message::of_value(protocol, event.clone());
        reader.read(&message, None, &origin, &mut activities);
    }
    activities.into_iter().map(|activity| activity.what).collect()
}

fn complaints(protocol: Protocol, stream: &[Value]) -> Vec<String> {
    let mut checker = Checker::new(protocol);
    let mut findings = Vec::new();
    for event in stream {
        findings.extend(checker.message(event.to_string().as_bytes()).clone());
    }
    findings.extend(checker.finish());
    findings
        .iter()
        .filter(|finding| finding.rule.severity > Severity::Note)
        .map(|finding| format!("{} {} {}", finding.rule.code, finding.pointer, finding.message))
        .collect()
}

fn pairs() -> impl Iterator<Item = (Protocol, Protocol)> {
    Protocol::ALL
        .into_iter()
        .flat_map(|from| Protocol::ALL.map(|to| (from, to)))
        .filter(|(from, to)| from != to)
}

// Up to twelve translations a case, and their parts are tried by themselves: these laws get one case in twenty.

#[test]
fn whatever_one_protocol_says_the_others_say_validly() {
    arbitrary::hold(20, &arbitrary::session(), |session| {
        for from in Protocol::ALL {
            let stream = written(from, &session);
            for to in Protocol::ALL {
                let there = translated(from, to, &stream);
                let complaints = complaints(to, &there);
                prop_assert_eq!(
                    complaints,
                    Vec::<String>::new(),
                    "{} to {}: {:#?}",
                    from,
                    to,
                    there
                );
            }
        }
        Ok(())
    });
}

#[test]
fn what_is_carried_comes_back() {
    arbitrary::hold(20, &story(), |story| {
        for (from, to) in pairs() {
            let stream = written(from, &story);
            let back = translated(to, from, &translated(from, to, &stream));
            prop_assert_eq!(
                gist(&read(from, &back)),
                gist(&read(from, &stream)),
                "{} to {}",
                from,
                to
            );
        }
        Ok(())
    });
}

/// What every protocol can tell of a session: who said what, what was done, asked and answered, and how turns ended.
#[derive(Debug, Default, PartialEq)]
struct Gist {
    said: Vec<(String, String)>,
    done: Vec<(String, String, Option<Status>)>,
    asked: Vec<Option<Outcome>>,
    ended: Vec<&'static str>,
}

fn gist(activities: &[What]) -> Gist {
    let mut gist = Gist::default();
    let mut asks: Vec<(String, usize)> = Vec::new();
    for what in activities {
        match what {
            What::Said { message, role: Role::Assistant, text, .. } => {
                match gist.said.last_mut().filter(|(known, _)| known == message) {
                    Some((_, so_far)) => so_far.push_str(text),
                    None => gist.said.push((message.clone(), text.clone())),
                }
            }
            What::ActionRequested { action, .. } => {
                gist.done.push((action.id.clone(), action.tool.clone(), None));
            }
            What::ActionEnded { id, status, .. } => {
                let known = gist.done.iter_mut().rev().find(|(known, _, _)| known == id);
                if let Some((_, _, end)) = known {
                    *end = Some(*status);
                }
            }
            What::AskOpened { ask } => {
                asks.push((ask.id.clone(), gist.asked.len()));
                gist.asked.push(None);
            }
            What::AskClosed { id, outcome, .. } => {
                let place =
                    asks.iter().rev().find(|(known, _)| known == id).map(|(_, place)| *place);
                if let Some(end) = place.and_then(|place| gist.asked.get_mut(place)) {
                    *end = Some(*outcome);
                }
            }
            What::TurnEnded { ending, .. } => gist.ended.push(match ending {
                Ending::Completed => "completed",
                Ending::Failed { .. } => "failed",
                Ending::Cancelled { .. } => "cancelled",
                Ending::Suspended { .. } => continue,
            }),
            _ => {}
        }
    }
    gist
}

/// A session as agents have them: turns one after another, in each some talk and some work.
fn story() -> impl Strategy<Value = Vec<Activity>> {
    let step = prop_oneof![
        "[a-z]{1,9}( [a-z]{1,9}){0,4}\\.".prop_map(Step::Say),
        ("[A-Z][a-z]{2,8}", "[a-z -]{1,12}", any::<bool>()).prop_map(|(tool, command, good)| {
            Step::Act {
                tool,
                command,
                status: if good { Status::Success } else { Status::Failure },
            }
        }),
    ];
    let turn = (prop::collection::vec(step, 0..6), 0_u8..3);
    prop::collection::vec(turn, 1..4).prop_map(|turns| {
        let mut whats = Vec::new();
        for (number, (steps, ending)) in turns.into_iter().enumerate() {
            let request = Some(format!("do number {number}"));
            whats.push((number, What::TurnStarted { request, summary: None }));
            for (place, step) in steps.into_iter().enumerate() {
                let id = format!("toolu_{number}-{place}");
                match step {
                    Step::Say(text) => {
                        let message = format!("msg-{number}/{place}");
                        let role = Role::Assistant;
                        whats.push((number, What::Said { message, role, text, last: true }));
                    }
                    Step::Act { tool, command, status } => {
                        let input = Some(json!({ "command": command }));
                        let kind = ActionKind::Tool;
                        let action = Action { kind, input, ..Action::unseen(&id, &tool) };
                        whats.push((number, What::ActionRequested { action, gate: None }));
                        let error = (status == Status::Failure).then(|| "it broke".to_owned());
                        let output = error.is_none().then(|| json!("fine"));
                        let duration_ms = None;
                        whats.push((
                            number,
                            What::ActionEnded { id, tool, status, output, error, duration_ms },
                        ));
                    }
                }
            }
            let ending = match ending {
                0 => Ending::Completed,
                1 => Ending::failed("it went wrong"),
                _ => Ending::Cancelled { by: "user".to_owned(), reason: None },
            };
            whats.push((
                number,
                What::TurnEnded { ending, summary: None, result: None, usage: Vec::new() },
            ));
        }
        let whole = whats.into_iter().zip(1..);
        whole
            .map(|((turn, what), seq)| Activity {
                origin: Origin { session: "s".into(), seq, time: now() },
                context: Arc::new(Context {
                    agent: "tester".to_owned(),
                    session: Some("thread 1".to_owned()),
                    turn: Some(format!("run-{turn}")),
                    ..Context::default()
                }),
                what,
            })
            .collect()
    })
}

#[derive(Debug, Clone)]
enum Step {
    Say(String),
    Act { tool: String, command: String, status: Status },
}

#[test]
fn whatever_a_coding_agent_tells_its_hooks_every_protocol_says_validly() {
    let agents = aep::mapping::Agents::builtin().unwrap();
    for agent in agents.iter() {
        for to in Protocol::ALL {
            let source = Source::Hook { mapping: agent, hook: None };
            let mut translator = Translator::new(source, to, carrying());
            let mut told = Vec::new();
            let mut payloads = 0;
            for (hook, payload) in agent.examples() {
                let named = json!({ "hook": hook, "payload": payload }).to_string();
                told.extend(translator.message(named.as_bytes(), now()).unwrap());
                payloads += 1;
            }
            told.extend(translator.finish());
            assert!(payloads > 4 && told.len() > 4, "{}: {payloads} payloads", agent.name);
            // Sessions that are interleaved in AG-UI go out one after another.
            told.sort_by_key(|told| told.lane);
            let events: Vec<Value> = told.into_iter().map(|told| told.event.into_value()).collect();
            assert_eq!(complaints(to, &events), Vec::<String>::new(), "{} to {to}", agent.name);
        }
    }
}

#[test]
fn the_table_is_what_was_measured() {
    let folder =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/translation");
    for from in Protocol::ALL {
        let yaml = std::fs::read_to_string(folder.join(format!("{from}.yaml"))).unwrap();
        let examples: Vec<Example> = serde_saphyr::from_str(&yaml).unwrap();
        let measured = measure(from, &examples);
        let known = Table::builtin();
        for (kind, rows) in measured.types(from) {
            for (to, row) in rows {
                assert_eq!(
                    known.row(from, kind, *to),
                    Some(row),
                    "{from} {kind} to {to}: run `cargo xtask gen`"
                );
            }
        }
        let rows =
            |table: &Table| table.types(from).map(|(kind, _)| kind.to_owned()).collect::<Vec<_>>();
        assert_eq!(rows(known), rows(&measured), "every row has an example");
    }
}

#[test]
fn every_type_of_every_protocol_has_its_row() {
    let table = Table::builtin();
    let rows = |from| table.types(from).map(|(kind, _)| kind.to_owned()).collect::<Vec<_>>();
    let spoken =
        aaep::event::Type::ALL.iter().map(|kind| crate::written::short(kind.name()).to_owned());
    let streamed = agui::event::Type::ALL.iter().map(|kind| kind.name().to_owned());
    let hooked = aep::event::Type::ALL.iter().map(|kind| kind.name().to_owned());
    for (from, mut kinds) in [
        (Protocol::Aaep, spoken.collect::<Vec<_>>()),
        (Protocol::Agui, streamed.collect()),
        (Protocol::Aep, hooked.collect()),
    ] {
        kinds.retain(|kind| !rows(from).contains(kind));
        assert_eq!(kinds, Vec::<String>::new(), "{from}");
    }
}

#[test]
fn what_is_not_json_is_told_and_the_next_message_is_read() {
    let mut translator =
        Translator::new(Source::Protocol(Protocol::Agui), Protocol::Aep, carrying());
    assert!(translator.message(b"{\"type\": \"RUN_STA", now()).is_err());
    assert!(translator.message(b"[1, 2]", now()).unwrap().is_empty());
    let start = br#"{"type": "RUN_STARTED", "threadId": "t", "runId": "r"}"#;
    assert_eq!(translator.message(start, now()).unwrap().len(), 1);
    let (unread, count) = translator.report().unread();
    assert_eq!((unread.len(), count), (2, 2));
    assert_eq!((unread[0].0, unread[1].0), (1, 2), "by number");
}

#[test]
fn sessions_that_are_interleaved_are_told_apart() {
    let event = |id: &str, session: &str, kind: &str| {
        json!({
            "aep_version": "0.1", "id": id, "type": kind, "time": "2026-11-15T09:00:00.000Z",
            "agent": { "slug": "claude" }, "session": { "id": session },
        })
    };
    let stream = [
        event("e1", "one", "agent.start"),
        event("e2", "two", "agent.start"),
        event("e3", "one", "agent.stop"),
        event("e4", "two", "agent.stop"),
    ];
    let mut translator =
        Translator::new(Source::Protocol(Protocol::Aep), Protocol::Agui, carrying());
    let lanes: Vec<Vec<usize>> = stream
        .iter()
        .map(|event| {
            let told = translator.message(event.to_string().as_bytes(), now()).unwrap();
            told.iter().map(|told| told.lane).collect()
        })
        .collect();
    assert_eq!(lanes, [[0], [1], [0], [1]]);
}

#[test]
fn a_run_that_waits_is_answered_in_another_protocol_and_goes_on() {
    let run = [
        json!({ "type": "RUN_STARTED", "threadId": "t-1", "runId": "r-1", "protocolVersion": "1.0" }),
        json!({ "type": "TOOL_CALL_START", "toolCallId": "c-1", "toolCallName": "push" }),
        json!({ "type": "TOOL_CALL_ARGS", "toolCallId": "c-1", "delta": "{\"to\": \"main\"}" }),
        json!({ "type": "TOOL_CALL_END", "toolCallId": "c-1" }),
        json!({
            "type": "RUN_FINISHED", "threadId": "t-1", "runId": "r-1",
            "outcome": { "type": "interrupt", "interrupts": [{
                "id": "int-1", "reason": "tool_call", "toolCallId": "c-1", "message": "Push to main?",
            }] },
        }),
    ];
    let mut heard = translated(Protocol::Agui, Protocol::Aaep, &run);
    let asked = heard
        .iter()
        .find(|event| event["type"] == "aaep:agent.awaiting.confirmation")
        .expect("a person is asked");
    // The stream is still open: what the cut at its end closed is taken off.
    let token = asked["reply_token"].clone();
    let open = heard.iter().position(|event| event["reply_token"] == token).unwrap();
    heard.truncate(open + 1);
    heard.push(json!({
        "type": "confirmation.reply", "reply_token": token, "decision": "accept",
        "subscription_id": "sub_1", "timestamp": "2027-01-15T08:00:01.000Z",
    }));
    let back = translated(Protocol::Aaep, Protocol::Agui, &heard);
    let resumed: Vec<&Value> =
        back.iter().filter_map(|event| event.pointer("/input/resume/0")).collect();
    assert_eq!(resumed.len(), 1, "{back:#?}");
    assert_eq!(resumed[0]["interruptId"], "int-1", "the original run's own id");
    assert_eq!(resumed[0]["status"], "resolved");
    assert_eq!(resumed[0]["payload"]["approved"], true);
}
