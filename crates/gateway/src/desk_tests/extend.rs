//! More time to answer.

use super::*;
use banister_events::check::Checker;
use banister_events::event::Protocol;
use banister_events::finding::{Finding, Severity};
use banister_events::{aaep, aep, agui};
use jiff::Timestamp;

use crate::project::Projection;

const HOUR: Duration = Duration::from_hours(1);

fn more(by: Option<Duration>) -> ExtendRequest {
    ExtendRequest { by, door: "cli", key: "person".to_owned(), digest: None }
}

/// A call that its agent waits an hour for, and its ask.
async fn patient(gateway: &Arc<Gateway>, event_id: &str) -> (Gate, String) {
    let call = Incoming { wait: HOUR, ..incoming(Some(event_id), "git push --force") };
    let accepted = gateway.accept(&call).await.unwrap();
    (accepted.gate.unwrap(), accepted.ask.unwrap())
}

/// What everybody is told of all records, in a protocol.
fn told(gateway: &Gateway, protocol: Protocol) -> Vec<Value> {
    let records = gateway.journal.after(0, 100_000).unwrap();
    let mut projection = Projection::new(Arc::clone(&gateway.agents));
    let activities: Vec<_> = records.iter().flat_map(|record| projection.next(record)).collect();
    match protocol {
        Protocol::Aaep => {
            let mut writer = aaep::write::Writer::new("en");
            let mut events: Vec<Value> =
                activities.iter().flat_map(|it| writer.write(it)).collect();
            events.extend(writer.close());
            events
        }
        Protocol::Aep => {
            let mut writer = aep::write::Writer::default();
            activities.iter().flat_map(|it| writer.write(it)).collect()
        }
        Protocol::Agui => {
            let mut writer = agui::write::Writer::recording("t");
            let mut events: Vec<Value> =
                activities.iter().flat_map(|it| writer.write(it)).collect();
            writer.finish(None, &mut events);
            events
        }
    }
}

fn assert_conformant(gateway: &Gateway) {
    for protocol in Protocol::ALL {
        let events = told(gateway, protocol);
        assert!(!events.is_empty(), "{protocol}");
        let mut checker = Checker::new(protocol);
        let mut found: Vec<Finding> = events.iter().flat_map(|it| checker.value(it)).collect();
        found.extend(checker.finish());
        found.retain(|finding| finding.rule.severity == Severity::Error);
        assert_eq!(found, [], "{protocol}: {events:#?}");
    }
}

#[tokio::test]
async fn the_first_deadline_is_earlier_than_the_agents_own_where_there_is_something_to_extend() {
    let room = room();
    patient(&room.gateway, "k1").await;
    room.gateway.accept(&incoming(Some("k2"), "git push")).await.unwrap();
    let open = room.gateway.desk.inbox();
    let long = open.iter().find(|it| it.is_extendable()).unwrap();
    let short = open.iter().find(|it| !it.is_extendable()).unwrap();
    let after = |time: Option<Timestamp>| time.unwrap().duration_since(room.clock.now()).as_secs();
    assert_eq!((after(long.ask.deadline), after(long.limit)), (300, 3_600));
    assert_eq!((after(short.ask.deadline), after(short.limit)), (60, 60));
}

#[tokio::test]
async fn who_waits_goes_on_waiting_and_the_old_token_is_late() {
    let room = room();
    let desk = &room.gateway.desk;
    let (gate, ask) = patient(&room.gateway, "k1").await;
    let old = desk.inbox().remove(0);
    let waiting = desk.decide(Some(&gate), Some(&ask));
    let answering = async {
        tokio::task::yield_now().await;
        room.clock.advance(Duration::from_secs(200));
        let extended = desk.extend(&ask, &more(None)).await.unwrap();
        assert_ne!((&extended.ask.id, &extended.ask.token), (&old.ask.id, &old.ask.token));
        assert_eq!((&extended.ask.digest, extended.limit), (&old.ask.digest, old.limit));
        assert_eq!(desk.inbox().len(), 1);
        // Later than the first deadline: what was extended counts.
        room.clock.advance(Duration::from_secs(200));
        desk.sweep().await;
        let late = Answer {
            token: old.ask.token.clone(),
            reply: activity::Reply::Accept { updated_input: None },
            by: None,
            message: None,
            time: None,
        };
        let late = desk.reply(&late, "http", "person").await.unwrap_err();
        assert!(late.to_string().contains("extended"), "{late}");
        assert!(desk.inbox().first().is_some_and(|it| it.waiting), "it waits on the new one");
        desk.reply(
            &Answer {
                token: extended.ask.token.clone(),
                reply: activity::Reply::Accept { updated_input: None },
                by: None,
                message: None,
                time: None,
            },
            "http",
            "person",
        )
        .await
        .unwrap()
    };
    let (decided, fact) = tokio::join!(waiting, answering);
    assert_eq!(decided.behavior, Behavior::Allow);
    assert_eq!(desk.closed(&ask).unwrap().ask, fact.ask, "the old id leads to the end");
    let kinds: Vec<_> =
        room.gateway.journal.after(0, 10).unwrap().iter().map(|record| record.kind).collect();
    assert_eq!(kinds, [Kind::Event, Kind::Ask, Kind::Withdrawal, Kind::Ask, Kind::Answer]);
    assert_conformant(&room.gateway);
}

#[tokio::test]
async fn everybody_is_told_that_it_is_asked_again_and_what_is_accepted_then_runs_confirmed() {
    let room = room();
    let (_, ask) = patient(&room.gateway, "k1").await;
    room.gateway.desk.extend(&ask, &more(None)).await.unwrap();
    room.gateway.desk.answer(&ask, &reply(true)).await.unwrap();
    let spoken = told(&room.gateway, Protocol::Aaep);
    let field = |event: &Value, name: &str| event[name].as_str().unwrap_or_default().to_owned();
    let kind = |event: &&Value, kind: &str| field(event, "type").ends_with(kind);
    let asked: Vec<_> = spoken.iter().filter(|it| kind(it, "awaiting.confirmation")).collect();
    assert_eq!(asked.len(), 2);
    assert_ne!(asked[0]["reply_token"], asked[1]["reply_token"]);
    let said: Vec<_> = spoken.iter().map(|event| field(event, "summary_normal")).collect();
    assert!(said.iter().any(|line| line.contains("more time to answer")), "{said:#?}");
    let run = spoken.iter().find(|it| kind(it, "tool.invoked")).unwrap();
    assert_eq!(run["irreversible"], true, "a person said yes to it: {run}");
    assert!(run.pointer("/extensions/banister.unconfirmed").is_none(), "{run}");
    assert_conformant(&room.gateway);
}

#[tokio::test]
async fn no_extension_goes_beyond_the_time_that_the_agent_itself_waits() {
    let room = room();
    let desk = &room.gateway.desk;
    let (_, ask) = patient(&room.gateway, "k1").await;
    let extended = desk.extend(&ask, &more(Some(Duration::from_hours(9)))).await.unwrap();
    assert_eq!(extended.ask.deadline, extended.limit);
    assert!(!extended.is_extendable());
    let refused = desk.extend(&ask, &more(None)).await.unwrap_err();
    assert!(matches!(refused, Refused::Limit(_)), "{refused}");
    assert_eq!(desk.inbox().len(), 1, "a refused extension leaves it as it is");
    desk.answer(&ask, &reply(false)).await.unwrap();
    assert!(matches!(desk.extend(&ask, &more(None)).await, Err(Refused::Late(_))));
}

#[tokio::test]
async fn what_is_over_is_not_extended() {
    let room = room();
    let desk = &room.gateway.desk;
    let (_, ask) = patient(&room.gateway, "k1").await;
    room.clock.advance(Duration::from_secs(301));
    let late = desk.extend(&ask, &more(None)).await.unwrap_err();
    assert!(matches!(late, Refused::Late(fact) if fact.outcome == Outcome::Expired));
    assert!(desk.inbox().is_empty());
    let wrong = ExtendRequest { digest: Some("x".to_owned()), ..more(None) };
    let (_, other) = patient(&room.gateway, "k2").await;
    assert!(matches!(desk.extend(&other, &wrong).await, Err(Refused::Another)));
    assert!(matches!(desk.extend("nothing", &more(None)).await, Err(Refused::Unknown(_))));
}

#[tokio::test]
async fn an_extended_ask_survives_a_restart_and_its_hook_finds_it() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Clock::manual("2026-11-15T09:00:00Z".parse().unwrap());
    let gateway = open(dir.path(), &clock);
    let (_, ask) = patient(&gateway, "k1").await;
    let first = gateway.desk.extend(&ask, &more(None)).await.unwrap();
    let extended = gateway.desk.extend(&ask, &more(None)).await.unwrap();
    assert_ne!(first.ask.id, extended.ask.id);
    drop(gateway);
    let gateway = open(dir.path(), &clock);
    let open = gateway.desk.inbox();
    assert_eq!(open.len(), 1);
    assert_eq!((&open[0].ask, open[0].limit), (&extended.ask, extended.limit));
    // The hook comes back under its idempotency key.
    let call = Incoming { wait: HOUR, ..incoming(Some("k1"), "git push --force") };
    let again = gateway.accept(&call).await.unwrap();
    assert!(again.duplicate);
    let waiting = gateway.desk.decide(again.gate.as_ref(), again.ask.as_deref());
    let yes = reply(true);
    let answering = gateway.desk.answer(&ask, &yes);
    let (decided, answered) = tokio::join!(waiting, answering);
    assert_eq!(decided.behavior, Behavior::Allow);
    assert_eq!(answered.unwrap().ask, extended.ask.id);
    assert_conformant(&gateway);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_answers_and_an_extension_at_once_the_first_answer_wins_and_nothing_is_lost() {
    let room = room();
    for round in 0..40 {
        let gateway = &room.gateway;
        let (gate, ask) = patient(gateway, &format!("k{round}")).await;
        let waiting = {
            let (desk, ask) = (gateway.desk.clone(), ask.clone());
            gateway.tasks.spawn(async move { desk.decide(Some(&gate), Some(&ask)).await })
        };
        let give = |accept: bool| {
            let (desk, ask) = (gateway.desk.clone(), ask.clone());
            gateway.tasks.spawn(async move { desk.answer(&ask, &reply(accept)).await })
        };
        let extend = {
            let (desk, ask) = (gateway.desk.clone(), ask.clone());
            let tasks = gateway.tasks.clone();
            move || tasks.spawn(async move { desk.extend(&ask, &more(None)).await })
        };
        let (yes, more, no) = match round % 3 {
            0 => (give(true), extend(), give(false)),
            1 => {
                let more = extend();
                (give(true), more, give(false))
            }
            _ => {
                let no = give(false);
                (give(true), extend(), no)
            }
        };
        let (yes, no) = (yes.await.unwrap(), no.await.unwrap());
        let more = more.await.unwrap();
        assert_eq!(u8::from(yes.is_ok()) + u8::from(no.is_ok()), 1, "{yes:?} {no:?}");
        assert!(matches!(more, Ok(_) | Err(Refused::Late(_))), "{more:?}");
        let decided = waiting.await.unwrap();
        assert_eq!(decided.behavior == Behavior::Allow, yes.is_ok(), "{decided:?}");
        assert!(gateway.desk.inbox().is_empty());
    }
    let records = room.gateway.journal.after(0, 1_000).unwrap();
    let count = |kind: Kind| records.iter().filter(|record| record.kind == kind).count();
    assert_eq!(count(Kind::Answer), 40);
    assert_eq!(count(Kind::Ask), 40 + count(Kind::Withdrawal));
    assert_conformant(&room.gateway);
}
