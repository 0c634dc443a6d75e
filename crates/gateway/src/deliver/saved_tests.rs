use std::collections::BTreeSet;

use banister_events::event::Protocol;
use banister_events::id;
use banister_events::id::EventRef;
use banister_journal::{Draft, Durability, Entry, Kind, Record, Source};
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::*;
use crate::clock::Clock;
use crate::deliver::{EventCursor, FollowTerms, ResumeRequest, Start};
use crate::{Gateway, Settings};

/// Numbers that look random and are the same each time.
pub(in crate::deliver) struct Dice(pub(in crate::deliver) u64);

impl Dice {
    pub(in crate::deliver) fn roll(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }
}

pub(in crate::deliver) fn house() -> (tempfile::TempDir, Arc<Gateway>) {
    let dir = tempfile::tempdir().unwrap();
    let gateway = again(&dir);
    (dir, gateway)
}

pub(in crate::deliver) fn again(dir: &tempfile::TempDir) -> Arc<Gateway> {
    Gateway::open(Settings::new(dir.path().join("data")), Clock::default()).unwrap()
}

/// The id of a session.
pub(in crate::deliver) fn name(number: u64) -> String {
    id::derive("s_", &[&number.to_string()])
}

pub(in crate::deliver) fn draft(session: &str, event: &Value) -> Draft {
    Draft {
        session: session.to_owned(),
        time: "2026-11-15T09:00:00Z".parse().unwrap(),
        kind: Kind::Event,
        source: Source {
            protocol: "aep".to_owned(),
            agent: "a".to_owned(),
            door: "http".to_owned(),
            key: "k".to_owned(),
        },
        turn: None,
        action: None,
        event_id: None,
        reader: 1,
        body: Bytes::from(event.to_string()),
        findings: Value::Null,
        gate: None,
    }
}

pub(in crate::deliver) fn event(session: &str, number: u64, kind: &str) -> Value {
    let mut event = json!({
        "aep_version": "0.1", "id": format!("evt_{session}_{number}"), "type": kind,
        "time": "2026-11-15T09:00:00.000Z", "agent": { "slug": "a" }, "session": { "id": session },
    });
    let content = |kind: &str| json!([{ "type": kind, "text": format!("About {number}") }]);
    match kind {
        "prompt.submitted" => event["content"] = content("prompt"),
        "model.response" => event["content"] = content("message"),
        "action.requested" => {
            event["action"] = json!({ "type": "shell", "id": format!("act_{number}"),
                "input": { "command": "ls" } });
            event["tool"] = json!({ "type": "native", "name": "Bash" });
        }
        _ => {}
    }
    event
}

/// Sessions that go on at the same time, in turns that begin and mostly end. The last thing that happens is told.
pub(in crate::deliver) async fn play(
    gateway: &Gateway,
    dice: &mut Dice,
    sessions: u64,
    records: u64,
) {
    let kinds = [
        "prompt.submitted",
        "model.response",
        "model.response",
        "action.requested",
        "model.response",
        "agent.stop",
        "session.end",
    ];
    let mut entries = Vec::new();
    for number in 0..records {
        let session = name(dice.roll(sessions));
        let kind = kinds[usize::try_from(dice.roll(kinds.len() as u64)).unwrap()];
        entries.push(draft(&session, &event(&session, number, kind)));
    }
    entries.push(draft(&name(1), &event(&name(1), records, "prompt.submitted")));
    for batch in entries.chunks(256) {
        let facts = batch.iter().cloned().map(|draft| Entry::from(draft).into()).collect();
        gateway.history.commit(facts, Durability::Written).await.unwrap();
    }
}

/// What the ids of all frames of a record begin with.
pub(in crate::deliver) fn ids_of(gateway: &Gateway, protocol: Protocol, record: &Record) -> String {
    let Record { session, seq, time, position, .. } = record;
    let first = match protocol {
        Protocol::Aep => format!("{}.{position}.0", gateway.journal.epoch()),
        _ => EventRef::new(session, *seq, *time, 0).to_string(),
    };
    first.strip_suffix('0').unwrap().to_owned()
}

/// What a follower gets until the newest record and a moment more: the id and the bytes of each frame.
pub(in crate::deliver) async fn followed(
    gateway: &Arc<Gateway>,
    terms: FollowTerms,
) -> Vec<(String, String)> {
    let (out, frames) = mpsc::channel(4);
    let newest = gateway.journal.after(gateway.hub.head() - 1, 1).unwrap().remove(0);
    let newest = ids_of(gateway, terms.protocol, &newest);
    let task = gateway.tasks.spawn(Arc::clone(gateway).follow(terms, out));
    let text = received(frames, &newest).await;
    task.abort();
    split(&text)
}

/// The bytes of a stream until an id that begins so, and a moment more.
pub(in crate::deliver) async fn received(
    mut frames: mpsc::Receiver<Bytes>,
    newest: &str,
) -> String {
    let newest = format!("id: {newest}");
    let mut text = Vec::new();
    let mut wait = std::time::Duration::from_mins(1);
    while let Ok(Some(bytes)) = tokio::time::timeout(wait, frames.recv()).await {
        if String::from_utf8_lossy(&bytes).contains(&newest) {
            wait = std::time::Duration::from_millis(50);
        }
        text.extend_from_slice(&bytes);
    }
    String::from_utf8(text).unwrap()
}

/// The frames of a stream that have data, with their ids.
pub(in crate::deliver) fn split(text: &str) -> Vec<(String, String)> {
    let frame = |frame: &str| {
        let id = frame.lines().find_map(|line| line.strip_prefix("id: "))?;
        frame.contains("\ndata: ").then(|| (id.to_owned(), frame.to_owned()))
    };
    text.split("\n\n").filter_map(frame).collect()
}

/// Where a stream goes on after an id.
pub(in crate::deliver) async fn resumed(
    gateway: &Gateway,
    protocol: Protocol,
    session: Option<&str>,
    seen: &str,
) -> Start {
    let request = ResumeRequest { seen, protocol, session, mark: "mine" };
    gateway.resume_start(request).await.unwrap().unwrap()
}

fn is_in_order(gateway: &Gateway, frames: &[(String, String)]) -> bool {
    let cursor = |(id, _): &(String, String)| EventCursor::parse(id, gateway.journal.epoch());
    frames.iter().all(|frame| cursor(frame).is_some()) && frames.is_sorted_by_key(cursor)
}

pub(in crate::deliver) fn terms(
    protocol: Protocol,
    session: Option<&str>,
    start: Start,
) -> FollowTerms {
    FollowTerms { protocol, session: session.map(str::to_owned), start, language: "en".to_owned() }
}

#[tokio::test]
async fn a_stream_that_is_resumed_anywhere_is_the_one_that_was_never_cut() {
    let (dir, gateway) = house();
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    play(&gateway, &mut dice, 2, 2_500).await;
    for protocol in [Protocol::Aep, Protocol::Aaep] {
        let one = name(1);
        for only in [None, Some(one.as_str())] {
            let whole = followed(&gateway, terms(protocol, only, Start::Beginning)).await;
            assert!(whole.len() > 800, "{}", whole.len());
            assert!(protocol == Protocol::Aaep || is_in_order(&gateway, &whole));
            for _ in 0..4 {
                let cut = usize::try_from(dice.roll(whole.len() as u64 - 9)).unwrap();
                let start = resumed(&gateway, protocol, only, &whole[cut].0).await;
                let rest = followed(&gateway, terms(protocol, only, start)).await;
                assert_eq!(rest, whole[cut + 1..], "{protocol:?} {only:?} cut at {cut}");
            }
        }
    }
    // The same from a gateway that remembers nothing.
    let whole = followed(&gateway, terms(Protocol::Aaep, None, Start::Beginning)).await;
    let cut = whole.len() - 7;
    stopped(gateway).await;
    let gateway = again(&dir);
    let start = resumed(&gateway, Protocol::Aaep, None, &whole[cut].0).await;
    let rest = followed(&gateway, terms(Protocol::Aaep, None, start)).await;
    assert_eq!(rest, whole[cut + 1..]);
}

#[tokio::test]
async fn who_stalls_falls_behind_alone_and_misses_nothing() {
    let (_dir, gateway) = house();
    let mut dice = Dice(3);
    let follow = |room| {
        let (out, frames) = mpsc::channel(room);
        let terms = terms(Protocol::Aep, None, Start::Beginning);
        gateway.tasks.spawn(Arc::clone(&gateway).follow(terms, out));
        frames
    };
    let (mut quick, mut stalled) = (follow(10_000), follow(1));
    assert!(quick.recv().await.is_some(), "it has begun");
    // More than a feed has at hand.
    for _ in 0..4 {
        play(&gateway, &mut dice, 2, 1_000).await;
    }
    let newest = format!("id: {}.{}.", gateway.journal.epoch(), gateway.hub.head());
    let mut heard = [Vec::new(), Vec::new()];
    for (frames, heard) in [&mut quick, &mut stalled].into_iter().zip(&mut heard) {
        while !String::from_utf8_lossy(heard).contains(&newest) {
            let soon = std::time::Duration::from_mins(1);
            let bytes = tokio::time::timeout(soon, frames.recv()).await.unwrap().unwrap();
            heard.extend_from_slice(&bytes);
        }
    }
    let [quick, stalled] = heard.map(|heard| String::from_utf8(heard).unwrap());
    assert!(quick.len() > 512 * 1024, "{}", quick.len());
    assert_eq!(
        stalled.trim_start_matches(": connected\n\n"),
        quick.trim_start_matches(": connected\n\n")
    );
}

pub(in crate::deliver) async fn stopped(gateway: Arc<Gateway>) {
    gateway.tasks.close();
    gateway.tasks.wait().await;
    drop(gateway);
}

#[tokio::test]
async fn who_joins_late_is_told_the_open_turns_and_reads_no_session_that_is_at_rest() {
    let (dir, gateway) = house();
    let mut dice = Dice(7);
    play(&gateway, &mut dice, 40, 2_000).await;
    let rendering = Rendering::Events { protocol: Protocol::Aep, language: "en".to_owned() };
    let fresh = || {
        SavedChannels::new(gateway.journal.clone(), Arc::clone(&gateway.agents), rendering.clone())
    };
    // What is open by reading everything.
    let saved = fresh();
    let mut open = BTreeSet::new();
    for newest in gateway.journal.changed(0).unwrap() {
        let turn = saved.turn_at(&newest.session, newest.seq).unwrap();
        open.extend(turn.map(|turn| (turn.session, turn.from, turn.to)));
    }
    assert!(!open.is_empty() && open.len() < 40, "{}", open.len());
    let found = |saved: &SavedChannels| -> BTreeSet<_> {
        let (end, turns) = saved.open_turns(|| gateway.hub.head()).unwrap();
        assert_eq!(end, gateway.hub.head());
        turns.into_iter().map(|turn| (turn.session, turn.from, turn.to)).collect()
    };
    let look = fresh();
    assert_eq!(found(&look), open);
    // The same after more has happened, seen by one that goes on and by one that begins.
    play(&gateway, &mut dice, 40, 500).await;
    assert_eq!(found(&look), found(&fresh()));
    // A late joiner hears of every open turn from its beginning, and of nothing else.
    let whole = followed(&gateway, terms(Protocol::Aep, None, Start::Beginning)).await;
    let late = followed(&gateway, terms(Protocol::Aep, None, Start::Now)).await;
    let open: BTreeSet<String> = found(&look).into_iter().map(|(session, ..)| session).collect();
    let heard: BTreeSet<String> = late
        .iter()
        .map(|(_, frame)| {
            let data = frame.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
            let event: Value = serde_json::from_str(data).unwrap();
            event["session"]["id"].as_str().unwrap_or_default().to_owned()
        })
        .filter(|session| !session.is_empty())
        .collect();
    assert_eq!(heard.len(), open.len());
    assert!(is_in_order(&gateway, &late));
    assert!(late.iter().all(|frame| whole.contains(frame)), "no frame is another one");
    drop(dir);
}

#[tokio::test]
async fn to_come_back_costs_a_thousand_records_or_a_quarter_of_what_is_told() {
    let (_dir, gateway) = house();
    let mut dice = Dice(11);
    play(&gateway, &mut dice, 1, 8_000).await;
    let rendering = Rendering::Events { protocol: Protocol::Aep, language: "en".to_owned() };
    let saved = SavedChannels::new(gateway.journal.clone(), Arc::clone(&gateway.agents), rendering);
    let session = name(0);
    saved.at(&session, 8_000).unwrap();
    for seq in (0..=8_000).step_by(97) {
        let (at, _) = saved.nearest(&session, seq);
        let bound = EVERY.max((8_000 - seq) / THINNED) + EVERY;
        assert!(seq - at <= bound, "to be at {seq} again, {} records are read", seq - at);
    }
    let states = saved.states();
    let kept = states.of.get(&session).unwrap().states.len();
    assert_eq!(kept, states.count);
    assert!(kept < 12, "{kept} states of 8,000 records");
}

#[test]
fn the_states_that_are_kept_are_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = again(&dir);
    let rendering = Rendering::Events { protocol: Protocol::Aep, language: "en".to_owned() };
    let saved = SavedChannels::new(gateway.journal.clone(), Arc::clone(&gateway.agents), rendering);
    for number in 0..STATES as u64 * 3 {
        saved.keep(&number.to_string(), 1_000, saved.fresh());
        let states = saved.states();
        assert!(states.count <= STATES);
        assert_eq!(states.count, states.of.len());
    }
    let states = saved.states();
    assert!(states.of.contains_key(&(STATES * 3 - 1).to_string()));
    assert!(!states.of.contains_key("0"));
}
