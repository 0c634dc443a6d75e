use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::held::HELD_EVENTS;
use super::*;
use crate::aaep::event::{Boundary, RiskLevel, Verbosity};
use crate::aaep::handshake::EventFilters;
use crate::activity::{
    Action, Ask, AskKind, Context, Decision, Ending, Gate, Origin, Outcome, Risk, Role, Status,
    What, arbitrary,
};
use crate::check::Checker;
use crate::event::Protocol;
use crate::finding::{Finding, Severity};

const BEGIN: i64 = 1_800_000_000_000;

fn ms(ms: i64) -> Timestamp {
    Timestamp::from_millisecond(BEGIN + ms).unwrap()
}

/// A shaper that is fed one thing after another, each at its time.
struct Feed {
    shaper: Shaper,
    seq: u64,
}

impl Feed {
    fn new(requested: &Capabilities) -> Self {
        let (terms, _, _) = Terms::negotiate(requested, &Limits::default());
        Self { shaper: Shaper::new(terms), seq: 0 }
    }

    fn at(&mut self, time: i64, what: What) -> Vec<Value> {
        self.of("s_1", time, what)
    }

    fn of(&mut self, session: &str, time: i64, what: What) -> Vec<Value> {
        self.seq += 1;
        let activity = Activity {
            origin: Origin { session: session.into(), seq: self.seq, time: ms(time) },
            context: Arc::new(Context { agent: "claude".to_owned(), ..Context::default() }),
            what,
        };
        self.shaper.take(&activity, ms(time))
    }

    fn rest(&mut self) -> Vec<Value> {
        let mut out = Vec::new();
        while let Some(due) = self.shaper.due() {
            let sent = self.shaper.tick(due);
            assert!(!sent.is_empty(), "what is due is sent");
            out.extend(sent);
        }
        out
    }
}

fn rate(rate: u64) -> Capabilities {
    Capabilities { max_events_per_second: Some(rate), ..Capabilities::default() }
}

fn filters(include: &[&str], exclude: &[&str]) -> Capabilities {
    let list = |patterns: &[&str]| {
        (!patterns.is_empty()).then(|| patterns.iter().map(|text| (*text).to_owned()).collect())
    };
    let filters =
        EventFilters { include: list(include), exclude: list(exclude), ..EventFilters::default() };
    Capabilities { event_filters: Some(filters), ..Capabilities::default() }
}

fn started() -> What {
    What::TurnStarted { request: None, summary: None }
}

fn completed() -> What {
    What::TurnEnded { ending: Ending::Completed, summary: None, result: None, usage: Vec::new() }
}

fn failed() -> What {
    let ending = Ending::failed("no more disk");
    What::TurnEnded { ending, summary: None, result: None, usage: Vec::new() }
}

fn said(text: &str, last: bool) -> What {
    What::Said { message: "m".to_owned(), role: Role::Assistant, text: text.to_owned(), last }
}

fn progress(percent: f64) -> What {
    What::Progressed {
        percent: Some(percent),
        step: None,
        total: None,
        description: None,
        eta_ms: None,
    }
}

fn requested(gate: Option<Gate>) -> What {
    What::ActionRequested { action: Action::unseen("a", "Bash"), gate }
}

fn gate(decision: Decision) -> Gate {
    Gate {
        decision,
        rule: "r".to_owned(),
        reason: "It leaves the machine.".to_owned(),
        risk: Risk::High,
        irreversible: Some(true),
        opaque: None,
        safer: None,
    }
}

fn ended() -> What {
    What::ActionEnded {
        id: "a".to_owned(),
        tool: "Bash".to_owned(),
        status: Status::Success,
        output: None,
        error: None,
        duration_ms: None,
    }
}

fn asked() -> What {
    let ask = Ask {
        action: Some(Action::unseen("a", "Bash")),
        gate: Some(gate(Decision::Ask)),
        ..Ask::new("ask_1", "rpl_1", AskKind::Confirmation)
    };
    What::AskOpened { ask: Box::new(ask) }
}

fn accepted() -> What {
    What::AskClosed {
        id: "ask_1".to_owned(),
        action: Some(Action::unseen("a", "Bash")),
        outcome: Outcome::Accepted,
        by: "user".to_owned(),
        message: None,
        response: None,
        updated_input: None,
    }
}

fn outline(events: &[Value]) -> Vec<String> {
    events
        .iter()
        .map(|event| match (&event["from_state"], &event["chunk"]) {
            (Value::String(from), _) => format!("{from}→{}", event["to_state"].as_str().unwrap()),
            (_, Value::String(text)) => format!("“{text}”"),
            _ => event["type"].as_str().unwrap().trim_start_matches("aaep:agent.").to_owned(),
        })
        .collect()
}

fn numbers(events: &[Value]) -> Vec<u64> {
    events.iter().map(|event| event["sequence_number"].as_u64().unwrap()).collect()
}

#[test]
fn filters_know_exact_names_beginnings_and_both_forms() {
    let uri = "https://aaep-protocol.org/types/agent.tool.*";
    for (capabilities, wanted, unwanted) in [
        (filters(&["aaep:agent.tool.*"], &[]), "tool.invoked", "session.started"),
        (filters(&[uri], &[]), "tool.completed", "state.changed"),
        (filters(&["*"], &["aaep:agent.state.changed"]), "tool.invoked", "state.changed"),
        (filters(&["aaep:agent.*"], &[uri]), "session.started", "tool.invoked"),
        (filters(&[], &["aaep:agent.session.*"]), "state.changed", "session.completed"),
    ] {
        let (terms, _, _) = Terms::negotiate(&capabilities, &Limits::default());
        assert!(terms.wants(&format!("aaep:agent.{wanted}")), "{wanted}");
        assert!(!terms.wants(&format!("aaep:agent.{unwanted}")), "{unwanted}");
    }
}

#[test]
fn what_is_critical_passes_every_filter() {
    let mut feed = Feed::new(&filters(&[], &["*"]));
    assert_eq!(feed.at(0, started()), Vec::<Value>::new());
    let sent = feed.at(1, failed());
    assert_eq!(outline(&sent), ["session.errored"]);
    assert_eq!(numbers(&sent), [1], "the start was number 0");
    assert!(feed.shaper.sessions.is_empty());
}

#[test]
fn events_over_the_rate_wait_for_their_turn() {
    let mut feed = Feed::new(&rate(2));
    assert_eq!(outline(&feed.at(0, started())), ["session.started"]);
    assert_eq!(feed.shaper.due(), Some(ms(500)));
    assert_eq!(feed.at(100, requested(None)), Vec::<Value>::new());
    assert_eq!(feed.shaper.tick(ms(499)), Vec::<Value>::new());
    assert_eq!(outline(&feed.shaper.tick(ms(500))), ["idle→calling_tool"]);
    assert_eq!(outline(&feed.shaper.tick(ms(5_000))), ["tool.invoked"]);
    assert_eq!(feed.shaper.due(), None);
}

#[test]
fn a_fifth_of_a_second_may_come_at_once() {
    let mut feed = Feed::new(&rate(10));
    assert_eq!(feed.at(0, started()).len(), 2);
    assert_eq!(feed.at(0, requested(None)), Vec::<Value>::new());
    assert_eq!(feed.shaper.due(), Some(ms(100)));
}

#[test]
fn held_output_becomes_one_piece() {
    let mut feed = Feed::new(&rate(1));
    let mut sent = feed.at(0, started());
    sent.extend(feed.at(0, said("One. Two. ", false)));
    sent.extend(feed.at(100, said("Three. ", false)));
    sent.extend(feed.at(200, said("Four.", true)));
    sent.extend(feed.rest());
    assert_eq!(outline(&sent), ["session.started", "“One. Two. Three. Four.”", "idle→thinking"]);
    let output = &sent[1];
    assert_eq!(
        (&output["position"], &output["complete"], &output["coalesce_hint"]),
        (&json!(0), &json!(true), &json!("completion"))
    );
    assert_eq!(numbers(&sent), [0, 1, 2]);
}

#[test]
fn merged_output_keeps_within_the_limit() {
    let mut feed = Feed::new(&rate(1));
    let mut sent = feed.at(0, started());
    let sentence = "Ä. ".repeat(2_000);
    for _ in 0..10 {
        sent.extend(feed.at(10, said(&sentence, false)));
    }
    sent.extend(feed.at(20, completed()));
    sent.extend(feed.rest());
    let chunks: Vec<&str> = sent.iter().filter_map(|event| event["chunk"].as_str()).collect();
    assert_eq!(chunks.concat(), sentence.repeat(10));
    assert!(chunks.iter().all(|chunk| chunk.chars().count() <= 16_384));
    assert!(chunks.len() < 8);
}

#[test]
fn of_held_progress_the_newest_is_told() {
    let mut feed = Feed::new(&rate(1));
    let mut sent = feed.at(0, started());
    for step in 1..=9 {
        sent.extend(feed.at(step, progress(10.0 * f64::from(i32::try_from(step).unwrap()))));
    }
    sent.extend(feed.rest());
    assert_eq!(outline(&sent), ["session.started", "idle→thinking", "progress.updated"]);
    assert_eq!(sent[2]["progress"]["percent"], 90.0);
}

#[test]
fn held_states_chain_and_vanish_where_they_lead_back() {
    let mut feed = Feed::new(&rate(1));
    let mut sent = feed.at(0, started());
    sent.extend(feed.shaper.tick(ms(1_000)));
    assert_eq!(outline(&sent), ["session.started", "idle→thinking"]);
    feed.at(1_001, said("Hello.", true));
    assert_eq!(outline(&feed.rest()), ["“Hello.”"]);
}

#[test]
fn a_refusal_is_told_even_where_states_merge() {
    let mut feed = Feed::new(&rate(1));
    feed.at(0, started());
    feed.at(1, requested(Some(gate(Decision::Deny))));
    let sent = feed.rest();
    assert_eq!(outline(&sent), ["idle→deciding", "deciding→thinking"]);
    assert!(sent[0]["summary_normal"].as_str().unwrap().contains("It leaves the machine."));
}

#[test]
fn a_question_waits_for_nothing_and_takes_along_what_is_held() {
    let mut feed = Feed::new(&rate(1));
    let mut sent = feed.at(0, started());
    sent.extend(feed.at(1, said("Wait. ", false)));
    sent.extend(feed.at(2, requested(Some(gate(Decision::Ask)))));
    let now = feed.at(3, asked());
    assert_eq!(outline(&now), ["“Wait. ”", "idle→awaiting_input", "awaiting.confirmation"]);
    sent.extend(now);
    // Three events that are not critical went out in the first second: the fourth comes after the third second.
    feed.at(4, accepted());
    assert_eq!(feed.shaper.due(), Some(ms(3_000)));
    let later = feed.rest();
    assert_eq!(outline(&later), ["awaiting_input→calling_tool", "tool.invoked"]);
    sent.extend(later);
    assert_eq!(numbers(&sent), (0..6).collect::<Vec<_>>());
}

#[test]
fn a_question_takes_along_nothing_of_other_sessions() {
    let mut feed = Feed::new(&rate(1));
    feed.at(0, started());
    feed.of("s_2", 1, started());
    let sent = feed.of("s_2", 2, failed());
    assert_eq!(outline(&sent), ["session.started", "idle→thinking", "session.errored"]);
    assert_eq!(outline(&feed.rest()), ["idle→thinking"]);
}

#[test]
fn a_calm_subscriber_hears_of_work_and_waiting_only() {
    let calm = Capabilities { cognitive_load: Some(RiskLevel::Low), ..Capabilities::default() };
    let mut feed = Feed::new(&calm);
    let steps = vec![
        started(),
        progress(10.0),
        said("Hello.", true),
        requested(Some(gate(Decision::Deny))),
        requested(Some(gate(Decision::Ask))),
        asked(),
        accepted(),
        ended(),
        said("Done.", true),
        completed(),
    ];
    let sent: Vec<Value> =
        steps.into_iter().zip(0..).flat_map(|(what, time)| feed.at(time, what)).collect();
    assert_eq!(
        outline(&sent),
        [
            "session.started",
            "idle→thinking",
            "“Hello.”",
            "thinking→deciding",
            "deciding→thinking",
            "thinking→awaiting_input",
            "awaiting.confirmation",
            "awaiting_input→calling_tool",
            "tool.invoked",
            "tool.completed",
            "“Done.”",
            "session.completed",
        ]
    );
}

#[test]
fn slow_readers_get_paragraphs_under_the_hints_they_asked_for() {
    let wanted = |pace, boundaries: &[Boundary]| {
        let requested = Capabilities {
            pace_wpm: Some(pace),
            coalesce_boundaries: Some(boundaries.to_vec()),
            ..Capabilities::default()
        };
        Terms::negotiate(&requested, &Limits::default()).0
    };
    let terms = wanted(80, &[Boundary::Sentence, Boundary::Completion]);
    assert_eq!(terms.voice().boundaries, [Boundary::Paragraph, Boundary::Completion]);
    assert_eq!(terms.hint("paragraph"), "sentence");
    assert_eq!(terms.hint("completion"), "completion");
    assert_eq!(wanted(200, &[Boundary::Word]).voice().boundaries, [Boundary::Word]);
    assert_eq!(wanted(80, &[Boundary::None]).voice().boundaries, [Boundary::None]);
    assert_eq!(wanted(80, &[Boundary::Completion]).hint("paragraph"), "none");
}

#[test]
fn nothing_is_honoured_beyond_what_was_asked_for() {
    let requested = Capabilities {
        max_events_per_second: Some(5),
        languages: Some(vec!["tlh".to_owned(), "zh-Hant-TW".to_owned(), "JA-jp".to_owned()]),
        supports_confirmation_reply: Some(true),
        supported_conformance_levels: Some(vec![2, 3]),
        supported_extensions: Some(vec!["https://a.example/v1".to_owned()]),
        preferred_verbosity: Some(Verbosity::Terse),
        ..Capabilities::default()
    };
    let own = Limits { events_per_second: Some(100), levels: vec![1, 2], ..Limits::default() };
    let (terms, honoured, notes) = Terms::negotiate(&requested, &own);
    assert_eq!(terms.voice().language, "ja");
    assert_eq!(honoured.languages, Some(vec!["JA-jp".to_owned()]));
    assert_eq!(honoured.max_events_per_second, Some(5));
    assert_eq!(honoured.supported_conformance_levels, Some(vec![2]));
    assert_eq!(honoured.supported_extensions, None);
    assert!(terms.can_confirm() && !terms.can_clarify());
    assert_eq!(notes.len(), 1);
    let mute = Limits { replies: false, ..Limits::default() };
    assert!(!Terms::negotiate(&requested, &mute).0.can_confirm());
}

#[test]
fn languages_are_found_by_their_beginning() {
    let own =
        Limits { languages: vec!["fr-CA".to_owned(), "zh-Hant".to_owned()], ..Limits::default() };
    for (wanted, spoken, honoured) in [
        ("fr", "fr-CA", true),
        ("zh-Hant-TW", "zh-Hant", true),
        ("zh-Hant-x-a", "zh-Hant", true),
        ("zh-Hans", "fr-CA", false),
        ("f", "fr-CA", false),
    ] {
        let requested =
            Capabilities { languages: Some(vec![wanted.to_owned()]), ..Capabilities::default() };
        let (terms, answer, notes) = Terms::negotiate(&requested, &own);
        assert_eq!(terms.voice().language, spoken, "{wanted}");
        assert_eq!(answer.languages.is_some(), honoured, "{wanted}");
        assert_eq!(notes.is_empty(), honoured, "{wanted}");
    }
}

#[test]
fn new_terms_change_what_they_name_and_reach_what_is_held() {
    let first = filters(&["aaep:agent.*"], &["aaep:agent.progress.updated"]);
    let mut feed = Feed::new(&Capabilities { max_events_per_second: Some(1), ..first });
    feed.at(0, started());
    assert_eq!(feed.shaper.held(), 1);
    let changed = filters(&[], &["aaep:agent.state.*"]);
    let (honoured, _) = feed.shaper.renegotiate(&changed, &Limits::default());
    assert_eq!(honoured.max_events_per_second, Some(1));
    let filters = honoured.event_filters.unwrap();
    assert_eq!(filters.include, Some(vec!["aaep:agent.*".to_owned()]));
    assert_eq!(filters.exclude, Some(vec!["aaep:agent.state.*".to_owned()]));
    assert_eq!((feed.shaper.held(), feed.shaper.due()), (0, None));
    let back = Capabilities {
        event_filters: Some(EventFilters { exclude: Some(Vec::new()), ..EventFilters::default() }),
        max_events_per_second: Some(100),
        ..Capabilities::default()
    };
    feed.shaper.renegotiate(&back, &Limits::default());
    let mut sent = feed.at(2_000, requested(None));
    sent.extend(feed.rest());
    assert_eq!(outline(&sent), ["idle→calling_tool", "tool.invoked"]);
}

#[test]
fn what_waits_is_bounded_and_only_progress_is_dropped() {
    let mut feed = Feed::new(&rate(1));
    let mut sent = feed.at(0, started());
    let mut work = 0;
    for _ in 0..HELD_EVENTS / 2 {
        sent.extend(feed.at(1, requested(None)));
        sent.extend(feed.at(1, progress(1.0)));
        sent.extend(feed.at(1, ended()));
        work += 2;
        assert!(feed.shaper.held() <= HELD_EVENTS);
    }
    assert!(feed.shaper.dropped() > 0);
    assert!(sent.len() > 1, "what cannot wait goes ahead of the rate");
    sent.extend(feed.rest());
    let tools = sent.iter().filter(|event| event.get("tool").is_some()).count();
    assert_eq!(tools, work);
    assert_eq!(numbers(&sent), (0..sent.len() as u64).collect::<Vec<_>>());
}

#[test]
fn a_subscription_follows_a_bounded_number_of_conversations() {
    let mut feed = Feed::new(&Capabilities::default());
    for number in 0..CONVERSATIONS + 10 {
        feed.of(&format!("s_{number}"), 0, started());
        assert!(feed.shaper.writers.len() <= CONVERSATIONS);
    }
}

#[test]
fn a_closed_stream_is_whole() {
    let mut feed = Feed::new(&rate(1));
    let mut sent = feed.at(0, started());
    sent.extend(feed.at(1, requested(None)));
    sent.extend(feed.shaper.close(ms(2)));
    assert_eq!(feed.shaper.due(), None);
    assert_eq!(outline(&sent).last().map(String::as_str), Some("session.cancelled"));
    assert_eq!(numbers(&sent), (0..sent.len() as u64).collect::<Vec<_>>());
    assert_eq!(faults(&[Call { time: 0, step: None, sent }]), None);
}

#[test]
fn another_language_is_spoken_from_the_next_event_on() {
    let mut feed = Feed::new(&Capabilities::default());
    let hears = |sent: &[Value], tag: &str| {
        sent.iter().all(|event| event["localization_hints"]["primary_language"] == tag)
    };
    assert!(hears(&feed.at(0, started()), "en"));
    let japanese =
        Capabilities { languages: Some(vec!["ja-JP".to_owned()]), ..Capabilities::default() };
    feed.shaper.renegotiate(&japanese, &Limits::default());
    let sent = feed.at(1, requested(None));
    assert!(hears(&sent, "ja"));
    assert_eq!(numbers(&sent), [2, 3], "the session goes on");
}

fn capabilities() -> impl Strategy<Value = Capabilities> {
    let filter = prop::option::of(prop::collection::vec(
        prop::sample::select(vec![
            "aaep:agent.*".to_owned(),
            "aaep:agent.tool.*".to_owned(),
            "aaep:agent.output.streaming".to_owned(),
            "aaep:agent.state.changed".to_owned(),
            "https://aaep-protocol.org/types/agent.session.*".to_owned(),
            "*".to_owned(),
        ]),
        0..3,
    ));
    (plain(), filter.clone(), filter).prop_map(|(plain, include, exclude)| Capabilities {
        event_filters: Some(EventFilters { include, exclude, ..EventFilters::default() }),
        ..plain
    })
}

/// Capabilities without filters.
fn plain() -> impl Strategy<Value = Capabilities> {
    (
        prop::option::of(prop_oneof![1_u64..8, 8_u64..200]),
        prop::option::of(prop::sample::subsequence(Boundary::ALL.to_vec(), 1..=5)),
        prop::option::of(prop::sample::select(RiskLevel::ALL.to_vec())),
        prop::option::of(50_u64..400),
        prop::option::of(prop::sample::select(Verbosity::ALL.to_vec())),
        prop::sample::select(vec!["en", "ja", "ar-EG", "es"]),
    )
        .prop_map(|(rate, boundaries, load, pace_wpm, verbosity, language)| Capabilities {
            max_events_per_second: rate,
            coalesce_boundaries: boundaries,
            cognitive_load: load,
            pace_wpm,
            preferred_verbosity: verbosity,
            languages: Some(vec![language.to_owned()]),
            ..Capabilities::default()
        })
}

/// One story: what happens in how many conversations, after how many milliseconds each.
fn story() -> impl Strategy<Value = Vec<(Activity, i64)>> {
    let gap = prop_oneof![3 => Just(0_i64), 3 => 0_i64..200, 2 => 200_i64..3_000, 1 => -500_i64..0];
    (arbitrary::session(), prop::collection::vec((gap, 0_u8..3), 24), 1_u8..4).prop_map(
        |(session, steps, conversations)| {
            let steps = session.into_iter().zip(steps);
            steps
                .map(|(mut activity, (gap, conversation))| {
                    let name = format!("s_{}", conversation % conversations);
                    if let What::AskOpened { ask } = &mut activity.what {
                        ask.token.push_str(&name);
                    }
                    activity.origin.session = name.into();
                    (activity, gap)
                })
                .collect()
        },
    )
}

/// One call and what came out of it.
struct Call {
    time: i64,
    /// Which activity was taken.
    step: Option<usize>,
    sent: Vec<Value>,
}

/// Everything that is sent. With `saved`, the shaper is saved and resumed before each call.
fn run(requested: &Capabilities, story: &[(Activity, i64)], saved: bool) -> Vec<Call> {
    let (terms, _, _) = Terms::negotiate(requested, &Limits::default());
    let mut shaper = Shaper::new(terms);
    let mut calls = Vec::new();
    let mut now = 0_i64;
    for (step, (activity, gap)) in story.iter().enumerate() {
        let next = now + gap;
        while let Some(due) = shaper.due().filter(|due| *due < ms(next)) {
            let time = due.as_microsecond();
            calls.push(Call { time, step: None, sent: shaper.tick(due) });
        }
        now = next;
        if saved {
            shaper = serde_json::from_str(&serde_json::to_string(&shaper).unwrap()).unwrap();
        }
        let sent = shaper.take(activity, ms(now));
        calls.push(Call { time: ms(now).as_microsecond(), step: Some(step), sent });
    }
    while let Some(due) = shaper.due() {
        calls.push(Call { time: due.as_microsecond(), step: None, sent: shaper.tick(due) });
    }
    calls
}

fn events(calls: &[Call]) -> Vec<&Value> {
    calls.iter().flat_map(|call| &call.sent).collect()
}

/// The same story without a subscription: each activity's events.
fn unshaped(requested: &Capabilities, story: &[(Activity, i64)]) -> Vec<Vec<Value>> {
    let (terms, _, _) = Terms::negotiate(requested, &Limits::default());
    let mut writers: BTreeMap<&str, Writer> = BTreeMap::new();
    story
        .iter()
        .map(|(activity, _)| {
            let conversation: &str = &activity.origin.session;
            writers.entry(conversation).or_insert_with(|| writer(&terms)).write(activity)
        })
        .collect()
}

fn is_critical(event: &Value) -> bool {
    event["urgency"] == "critical"
}

fn texts<'a>(events: impl IntoIterator<Item = &'a Value>) -> BTreeMap<&'a str, String> {
    let mut texts: BTreeMap<&str, String> = BTreeMap::new();
    for event in events {
        if let (Some(output), Some(text)) = (event["output_id"].as_str(), event["chunk"].as_str()) {
            texts.entry(output).or_default().push_str(text);
        }
    }
    texts
}

fn faults(calls: &[Call]) -> Option<String> {
    let mut checker = Checker::new(Protocol::Aaep);
    let is_fault = |finding: &Finding| finding.rule.severity > Severity::Note;
    for event in events(calls) {
        if let Some(fault) = checker.value(event).into_iter().find(is_fault) {
            return Some(format!("{fault:?}\n{:.600}", event.to_string()));
        }
    }
    checker.finish().into_iter().find(is_fault).map(|fault| format!("{fault:?}"))
}

/// The ids of everything that is never merged, by session.
fn firm<'a>(events: impl IntoIterator<Item = &'a Value>) -> BTreeMap<&'a str, Vec<&'a str>> {
    const SOFT: [&str; 3] = ["output.streaming", "progress.updated", "state.changed"];
    let mut firm: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for event in events {
        let text = |field: &str| event[field].as_str().unwrap();
        if !SOFT.iter().any(|soft| text("type").ends_with(soft)) {
            firm.entry(text("session_id")).or_default().push(text("event_id"));
        }
    }
    firm
}

/// Whether what is not critical keeps to the rate. What a critical event drags along is paid for by what follows.
#[expect(
    clippy::cast_precision_loss,
    reason = "a model of the budget in another arithmetic than the code's"
)]
fn keeps_to(rate: u64, calls: &[Call]) -> Result<(), String> {
    let rate = rate as f64;
    let burst = (rate / 5.0).floor().max(1.0);
    let (mut level, mut last) = (burst, None);
    let mut times = Vec::new();
    let mut dragging = false;
    for call in calls {
        let now = last.map_or(call.time, |last: i64| last.max(call.time));
        level = (level + (now - last.unwrap_or(now)) as f64 * rate / 1e6).min(burst);
        last = Some(now);
        for (place, event) in call.sent.iter().enumerate() {
            let same = |later: &&Value| later["session_id"] == event["session_id"];
            if is_critical(event) {
                continue;
            }
            let dragged = call.sent[place..].iter().filter(same).any(is_critical);
            if !dragged && level < 1.0 - 1e-3 {
                return Err(format!("{event} was sent with {level} left"));
            }
            level -= 1.0;
            dragging |= dragged;
            times.push(now);
        }
    }
    for seconds in [1_i64, 2, 5].into_iter().filter(|_| !dragging) {
        let most = (1.2 * rate * seconds as f64).max(1.0);
        for (place, begin) in times.iter().enumerate() {
            let end = begin + seconds * 1_000_000;
            let within = times[place..].iter().filter(|time| **time < end).count();
            if within as f64 > most {
                return Err(format!("{within} events within {seconds} s"));
            }
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn without_filters_the_stream_is_valid_whole_and_keeps_to_the_rate(
        requested in plain(),
        story in story(),
    ) {
        let calls = run(&requested, &story, false);
        prop_assert_eq!(faults(&calls), None);
        let all = unshaped(&requested, &story);
        prop_assert_eq!(texts(events(&calls)), texts(all.iter().flatten()));
        prop_assert_eq!(firm(events(&calls)), firm(all.iter().flatten()));
        if let Some(rate) = requested.max_events_per_second {
            prop_assert_eq!(keeps_to(rate, &calls), Ok(()));
        }
    }

    #[test]
    fn with_filters_what_is_wanted_or_critical_is_sent_in_one_numbered_chain(
        requested in capabilities(),
        story in story(),
    ) {
        let (terms, _, _) = Terms::negotiate(&requested, &Limits::default());
        let calls = run(&requested, &story, false);
        let all = unshaped(&requested, &story);
        let mut sessions: BTreeMap<&str, (u64, &str)> = BTreeMap::new();
        for call in &calls {
            let critical = |events: &[Value]| -> Vec<Value> {
                events.iter().filter(|event| is_critical(event)).map(|event| event["event_id"].clone()).collect()
            };
            let expected = call.step.map_or_else(Vec::new, |step| critical(&all[step]));
            prop_assert_eq!(critical(&call.sent), expected);
            for event in &call.sent {
                let kind = event["type"].as_str().unwrap();
                prop_assert!(is_critical(event) || terms.wants(kind));
                let known = sessions
                    .entry(event["session_id"].as_str().unwrap())
                    .or_insert((u64::from(!kind.ends_with("started")), "idle"));
                prop_assert_eq!(event["sequence_number"].as_u64(), Some(known.0));
                known.0 += 1;
                if let (Some(from), Some(to)) = (event["from_state"].as_str(), event["to_state"].as_str()) {
                    prop_assert_eq!(from, known.1);
                    known.1 = to;
                }
            }
        }
    }

    #[test]
    fn saved_and_resumed_it_sends_the_same(requested in capabilities(), story in story()) {
        let (one, other) = (run(&requested, &story, false), run(&requested, &story, true));
        prop_assert_eq!(events(&one), events(&other));
    }
}
