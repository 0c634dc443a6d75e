use banister_events::aaep::shape::Terms;
use banister_events::aaep::write::Writer;
use banister_journal::{Appended, Draft, Durability, Entry, Retention, SigningKey};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::super::saved::tests::{
    Dice, again, draft, event, followed, house, ids_of, name, play, received, resumed, split,
    stopped, terms,
};
use super::*;
use crate::project::Projection;
use crate::subscriptions::{StreamSink, SubscriptionStream};

const AAEP: Protocol = Protocol::Aaep;

async fn append(gateway: &Gateway, drafts: Vec<Draft>) -> Vec<Arc<Record>> {
    let facts = drafts.into_iter().map(|draft| Entry::from(draft).into()).collect();
    let committed = gateway.history.commit(facts, Durability::Written).await.unwrap();
    let Appended::Recorded(records) = committed else { panic!("these are new") };
    records
}

/// What a subscription without wishes is sent.
async fn subscribed(
    gateway: &Arc<Gateway>,
    session: Option<&str>,
    start: Start,
) -> Vec<(String, String)> {
    let (out, frames) = mpsc::channel(4);
    let (_orders, orders) = mpsc::channel(1);
    let stream = SubscriptionStream {
        gateway: Arc::clone(gateway),
        terms: Terms::default(),
        sink: StreamSink::Frames(out),
        session: session.map(str::to_owned),
        start: Some(start),
        greeting: None,
    };
    let newest = gateway.journal.after(gateway.hub.head() - 1, 1).unwrap().remove(0);
    let newest = ids_of(gateway, AAEP, &newest);
    let task = gateway.tasks.spawn(stream.run(orders));
    let text = received(frames, &newest).await;
    task.abort();
    split(&text)
}

fn data((_, frame): &(String, String)) -> Value {
    let data = frame.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
    serde_json::from_str(data).unwrap()
}

/// `epoch.position.n` of every frame, as ids once were: found by writing every record again.
fn cursors(gateway: &Gateway, only: Option<&str>) -> Vec<String> {
    let mut sessions = std::collections::HashMap::new();
    let mut found = Vec::new();
    for record in gateway.journal.after(0, 10_000).unwrap() {
        let (projection, writer) = sessions
            .entry(record.session.clone())
            .or_insert_with(|| (Projection::new(Arc::clone(&gateway.agents)), Writer::new("en")));
        let activities = projection.next(&record);
        let events = activities.iter().flat_map(|activity| writer.write(activity));
        let count = u32::try_from(events.count()).unwrap();
        if only.is_none_or(|only| only == record.session) {
            let cursor = |n| EventCursor { position: record.position, n };
            found.extend((0..count).map(|n| cursor(n).written(gateway.journal.epoch())));
        }
    }
    found
}

#[tokio::test]
async fn a_stream_cut_at_any_event_goes_on_by_the_events_id_and_by_older_cursors() {
    let (dir, gateway) = house();
    play(&gateway, &mut Dice(0x51ed_270b_9f0c_33a1), 3, 60).await;
    let one = name(1);
    for only in [None, Some(one.as_str())] {
        let whole = followed(&gateway, terms(AAEP, only, Start::Beginning)).await;
        assert!(whole.len() > 30, "{}", whole.len());
        for frame in &whole {
            assert_eq!(data(frame)["event_id"], frame.0.as_str(), "the frame's id is the event's");
        }
        let older = cursors(&gateway, only);
        assert_eq!(older.len(), whole.len());
        // After the last one nothing comes that could be waited for.
        for cut in 0..whole.len() - 1 {
            let start = resumed(&gateway, AAEP, only, &whole[cut].0).await;
            assert_eq!(resumed(&gateway, AAEP, only, &older[cut]).await, start, "{cut}");
            let rest = followed(&gateway, terms(AAEP, only, start)).await;
            assert_eq!(rest, whole[cut + 1..], "{only:?} cut at {cut}");
        }
    }
    let whole = followed(&gateway, terms(AAEP, None, Start::Beginning)).await;
    let older = cursors(&gateway, None);
    stopped(gateway).await;
    let gateway = again(&dir);
    for cut in (0..whole.len() - 1).step_by(7) {
        let start = resumed(&gateway, AAEP, None, &whole[cut].0).await;
        assert_eq!(resumed(&gateway, AAEP, None, &older[cut]).await, start, "{cut}");
        let rest = followed(&gateway, terms(AAEP, None, start)).await;
        assert_eq!(rest, whole[cut + 1..], "cut at {cut}, after a restart");
    }
}

#[tokio::test]
async fn a_subscription_cut_at_any_event_goes_on_by_the_events_id() {
    let (_dir, gateway) = house();
    play(&gateway, &mut Dice(0x0dd0_c0ff_ee15_600d), 3, 40).await;
    let one = name(1);
    for only in [None, Some(one.as_str())] {
        let whole = subscribed(&gateway, only, Start::Beginning).await;
        assert!(whole.len() > 15, "{}", whole.len());
        for cut in 0..whole.len() - 1 {
            assert_eq!(data(&whole[cut])["event_id"], whole[cut].0.as_str());
            let start = resumed(&gateway, AAEP, only, &whole[cut].0).await;
            let rest = subscribed(&gateway, only, start).await;
            assert_eq!(ids(&rest), ids(&whole[cut + 1..]), "{only:?} cut at {cut}");
            assert_eq!(rest, whole[cut + 1..], "{only:?} cut at {cut}");
        }
        // Whoever comes late is sent the same events as those who were there.
        let late = subscribed(&gateway, only, Start::Now).await;
        assert!(late.len() > 1 && data(&late[0])["sequence_number"] == 0, "{:?}", ids(&late));
        for frame in &late {
            assert!(whole.contains(frame), "{frame:?}");
        }
    }
}

fn ids(frames: &[(String, String)]) -> Vec<&str> {
    frames.iter().map(|(id, _)| id.as_str()).collect()
}

#[tokio::test]
async fn ids_of_the_version_before_are_found_among_the_newest_records() {
    let (_dir, gateway) = house();
    let prompt = draft(&name(1), &event(&name(1), 1, "prompt.submitted"));
    let record = append(&gateway, vec![prompt]).await.remove(0);
    for n in 0..2_u32 {
        let (seq, n) = (record.seq.to_string(), n.to_string());
        let id = derive("evt_", &["aaep", &record.session, &seq, &n]);
        let cursor = EventCursor { position: record.position, n: n.parse().unwrap() };
        for only in [None, Some(record.session.as_str())] {
            assert_eq!(resumed(&gateway, AAEP, only, &id).await, Start::After(cursor));
        }
        let other = resumed(&gateway, AAEP, Some(&name(2)), &id).await;
        assert_eq!(other, Start::Exhausted);
    }
}

/// An AAEP event that an agent pushed.
fn pushed(key: &str, session: &str, id: &str) -> Draft {
    let event = json!({
        "@context": "https://aaep-protocol.org/context/v1", "type": "aaep:agent.session.started",
        "event_id": id, "session_id": "sess_1", "timestamp": "2026-11-15T09:00:00.000Z",
        "producer": { "agent_id": key }, "urgency": "normal", "summary_normal": "It begins.",
        "localization_hints": { "primary_language": "en" },
    });
    let mut draft = draft(session, &event);
    draft.source.protocol = AAEP.name().to_owned();
    key.clone_into(&mut draft.source.key);
    draft.event_id = Some(id.to_owned());
    draft
}

#[tokio::test]
async fn an_id_that_two_agents_chose_is_told_apart_by_the_session_of_the_stream() {
    let (_dir, gateway) = house();
    let (one, two) = (name(1), name(2));
    let drafts =
        vec![pushed("a", &one, "evt_7"), pushed("b", &two, "evt_7"), pushed("c", &two, "evt_8")];
    let records = append(&gateway, drafts).await;
    let after = |at: usize| Start::After(EventCursor::whole(records[at].position));
    assert_eq!(resumed(&gateway, AAEP, Some(&one), "evt_7").await, after(0));
    assert_eq!(resumed(&gateway, AAEP, Some(&two), "evt_7").await, after(1));
    assert_eq!(resumed(&gateway, AAEP, None, "evt_7").await, after(1), "the newest");
    assert_eq!(resumed(&gateway, AAEP, Some(&one), "evt_8").await, Start::Exhausted);
    assert_eq!(resumed(&gateway, Protocol::Aep, None, "evt_7").await, Start::Exhausted);
    // What an agent calls its event does not lead anywhere else than our own ids do.
    let own = EventRef::new(&one, 1, records[0].time, 0).to_string();
    let records = append(&gateway, vec![pushed("a", &two, &own)]).await;
    assert_eq!(records.len(), 1);
    let first = EventCursor { position: 1, n: 0 };
    assert_eq!(resumed(&gateway, AAEP, None, &own).await, Start::After(first));
}

#[tokio::test]
async fn an_id_that_leads_nowhere_is_exhausted() {
    let (_dir, gateway) = house();
    let prompt = draft(&name(1), &event(&name(1), 1, "prompt.submitted"));
    let record = append(&gateway, vec![prompt]).await.remove(0);
    let (session, time) = (record.session.as_str(), record.time);
    let later = time + jiff::SignedDuration::from_millis(1);
    let epoch = gateway.journal.epoch();
    let unknown = [
        String::new(),
        "evt_".to_owned(),
        "evt_unknown".to_owned(),
        "\u{e9}vt_1".to_owned(),
        derive("evt_", &["other"]),
        // Another gateway's: the session, the number or the time is another.
        EventRef::new(&name(2), 1, time, 0).to_string(),
        EventRef::new(session, 2, time, 0).to_string(),
        EventRef::new(session, 0, time, 0).to_string(),
        EventRef::new(session, u64::MAX, time, 0).to_string(),
        EventRef::new(session, 1, later, 0).to_string(),
        "other.1.0".to_owned(),
        "other.1.0.mine".to_owned(),
        format!("{epoch}.2.0"),
        format!("{epoch}.1.0.0.mine"),
    ];
    for id in unknown {
        assert_eq!(resumed(&gateway, AAEP, None, &id).await, Start::Exhausted, "{id}");
    }
    let known = EventRef::new(session, 1, time, 0).to_string();
    let cursor = EventCursor { position: 1, n: 0 };
    assert_eq!(resumed(&gateway, AAEP, None, &known).await, Start::After(cursor));
    let merged = banister_events::id::merged(&known, &known);
    assert_eq!(resumed(&gateway, AAEP, None, &merged).await, Start::After(cursor));
    let marked = format!("{epoch}.1.0.mine");
    assert_eq!(resumed(&gateway, AAEP, None, &marked).await, Start::AfterSent(cursor));
    let request = ResumeRequest {
        seen: &format!("{epoch}.1.0.theirs"),
        protocol: AAEP,
        session: None,
        mark: "mine",
    };
    assert_eq!(gateway.resume_start(request).await.unwrap(), Err(ForeignCursor));
}

#[tokio::test]
async fn after_what_retention_has_removed_only_what_is_whole_goes_on() {
    let (dir, gateway) = house();
    let written = [
        (1, "prompt.submitted", "2026-11-01T09:00:00Z"),
        (3, "prompt.submitted", "2026-11-01T09:00:00Z"),
        (2, "prompt.submitted", "2026-11-15T09:00:00Z"),
        (1, "agent.stop", "2026-11-02T09:00:00Z"),
        (2, "agent.stop", "2026-11-15T09:00:00Z"),
        (3, "model.response", "2026-11-15T09:00:00Z"),
        (3, "prompt.submitted", "2026-11-15T09:00:00Z"),
        (3, "model.response", "2026-11-15T09:00:00Z"),
    ];
    let drafts = (0..).zip(written).map(|(number, (session, kind, time))| Draft {
        time: time.parse().unwrap(),
        ..draft(&name(session), &event(&name(session), number, kind))
    });
    let records = append(&gateway, drafts.collect()).await;
    let now: jiff::Timestamp = "2026-11-16T09:00:00Z".parse().unwrap();
    let before = Some("2026-11-10T09:00:00Z".parse().unwrap());
    let retention = Retention { before, ..Retention::default() };
    let key = SigningKey::open(&dir.path().join("data").join(SigningKey::FILE)).unwrap();
    let pruned = gateway.journal.prune(retention, &key, now).await.unwrap();
    assert_eq!((pruned.records, gateway.journal.pruned()), (3, 4));
    stopped(gateway).await;
    let gateway = again(&dir);
    let start = async |position: u64, only: Option<&str>| {
        let Record { session, seq, time, .. } = &*records[usize::try_from(position - 1).unwrap()];
        let id = EventRef::new(session, *seq, *time, 0).to_string();
        resumed(&gateway, AAEP, only, &id).await
    };
    let after = |position| Start::After(EventCursor { position, n: 0 });
    for (position, session) in [(1, 1), (2, 3), (4, 1)] {
        assert_eq!(start(position, None).await, Start::Exhausted, "{position} is gone");
        assert_eq!(start(position, Some(&name(session))).await, Start::Exhausted, "{position}");
    }
    let only = name(2);
    assert_eq!(start(3, None).await, Start::Exhausted, "4 would be missing");
    assert_eq!(start(3, Some(&only)).await, after(3), "4 is of another session");
    assert_eq!(start(5, None).await, after(5));
    assert_eq!(start(6, None).await, Start::Exhausted, "its turn has lost its beginning");
    assert_eq!(start(8, None).await, after(8), "its turn is whole");
    append(&gateway, vec![draft(&only, &event(&only, 9, "prompt.submitted"))]).await;
    let whole = followed(&gateway, terms(AAEP, Some(&only), Start::Beginning)).await;
    let rest = followed(&gateway, terms(AAEP, Some(&only), after(3))).await;
    assert_eq!(rest, whole[1..]);
}
