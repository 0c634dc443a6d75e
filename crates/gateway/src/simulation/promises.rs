//! What was promised, held against the journal.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use banister_events::aaep::write::Writer;
use banister_events::activity::{Decision, Outcome};
use banister_journal::{Journal, Kind, Record};
use serde_json::Value;

use crate::Gateway;
use crate::asks::AskDraft;
use crate::facts::{AskFact, CloseFact};
use crate::keep::Keeper;
use crate::project::Projection;

/// What everybody was told.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// Id → the event as it was sent, and where it was said to stand.
    pub(super) taken: HashMap<String, (String, String, u64)>,
    /// Where refused events were said to stand.
    pub(super) refused: Vec<(String, u64)>,
    /// What those heard who waited.
    pub(super) heard: Vec<Heard>,
    /// Ask → how it was said to have ended.
    pub(super) answered: Vec<(String, Outcome)>,
    /// How many requests are under way.
    pub(super) under_way: usize,
    /// What broke a promise at once.
    pub(super) broken: Vec<String>,
}

/// What somebody heard who waited.
#[derive(Debug)]
pub(super) struct Heard {
    /// The id of the event.
    pub(super) id: String,
    pub(super) allowed: bool,
    /// Where the journal stood.
    pub(super) head: u64,
}

impl Ledger {
    /// A receipt for an event.
    pub(super) fn receipt(&mut self, id: Option<&str>, text: &str, receipt: &Value) {
        let word = |name: &str| receipt[name].as_str().unwrap_or_default().to_owned();
        let (status, session) = (word("status"), word("session"));
        let Some(position) = receipt["position"].as_u64() else {
            self.broken.push(format!("no position in {receipt}"));
            return;
        };
        if status == "refused" {
            self.refused.push((text.to_owned(), position));
            return;
        }
        let Some(id) = id else {
            self.broken.push(format!("{text} was {status}"));
            return;
        };
        let now = (text.to_owned(), session, position);
        match self.taken.get(id) {
            Some(first) if status == "recorded" || *first != now => {
                self.broken.push(format!("{id} was {status} as {now:?} after {first:?}"));
            }
            Some(_) => {}
            None => {
                self.taken.insert(id.to_owned(), now);
            }
        }
    }
}

/// The asks that are open by the journal alone, in the order of their ids.
pub(super) fn open_asks(records: &[Arc<Record>]) -> Vec<String> {
    let mut open = BTreeSet::new();
    for record in records {
        match record.kind {
            Kind::Ask => {
                let fact: AskFact = serde_json::from_slice(record.exact()).unwrap();
                open.insert(fact.ask.id);
            }
            Kind::Answer | Kind::Expiry | Kind::Withdrawal => {
                let fact: CloseFact = serde_json::from_slice(&record.body).unwrap();
                let was = open.remove(&fact.ask);
                assert!(was, "{} was closed and not open", fact.ask);
            }
            _ => {}
        }
    }
    open.into_iter().collect()
}

/// That numbers have no gaps and chains hold.
pub(super) fn whole(records: &[Arc<Record>], path: &std::path::Path) {
    let mut seqs: HashMap<&str, u64> = HashMap::new();
    let mut ids = std::collections::HashSet::new();
    for (position, record) in (1..).zip(records) {
        assert_eq!(record.position, position);
        let seq = seqs.entry(&record.session).or_default();
        *seq += 1;
        assert_eq!(record.seq, *seq, "in {}", record.session);
        if let Some(id) = &record.event_id {
            assert!(ids.insert((&record.source.key, id)), "{id} stands there twice");
        }
    }
    let report = Journal::verify(path).unwrap();
    assert!(report.is_clean(), "{report:?}");
}

/// That everything anybody was told is so.
pub(super) fn kept(ledger: &Ledger, records: &[Arc<Record>], keeper: &Keeper) {
    let at = |position: u64| &records[usize::try_from(position - 1).unwrap()];
    for (id, (text, session, position)) in &ledger.taken {
        let record = at(*position);
        assert_eq!(record.event_id.as_ref(), Some(id));
        assert_eq!((record.kind, &record.session), (Kind::Event, session));
        assert!(keeper.is_again(text.as_bytes(), record), "{id} is not what was sent");
    }
    for (text, position) in &ledger.refused {
        assert_eq!(at(*position).kind, Kind::Unreadable);
        assert!(keeper.is_again(text.as_bytes(), at(*position)), "{text}");
    }
    let mut ends: HashMap<String, (u64, Kind, Outcome)> = HashMap::new();
    for record in records {
        if let Kind::Answer | Kind::Expiry | Kind::Withdrawal = record.kind {
            let fact: CloseFact = serde_json::from_slice(&record.body).unwrap();
            let end = (record.position, record.kind, fact.outcome);
            assert!(ends.insert(fact.ask.clone(), end).is_none(), "{} ended twice", fact.ask);
        }
    }
    let mut told: HashMap<&str, Outcome> = HashMap::new();
    for (ask, outcome) in &ledger.answered {
        assert!(told.insert(ask, *outcome).is_none(), "two answers to {ask} counted");
        let (_, kind, recorded) = ends[ask];
        assert_eq!((kind, recorded), (Kind::Answer, *outcome), "{ask}");
    }
    for heard in ledger.heard.iter().filter(|heard| heard.allowed) {
        let record = records
            .iter()
            .find(|record| record.event_id.as_ref() == Some(&heard.id))
            .unwrap_or_else(|| panic!("{} was allowed and is not recorded", heard.id));
        assert!(record.position <= heard.head, "{} was allowed before it was recorded", heard.id);
        let gate = record.gate.clone().unwrap_or_default();
        let decision: Decision = serde_json::from_value(gate["decision"].clone()).unwrap();
        match decision {
            Decision::Allow => {}
            Decision::Ask => {
                let ask = AskDraft::id_for(&record.source.key, &heard.id);
                let (position, kind, outcome) = ends[&ask];
                assert_eq!((kind, outcome), (Kind::Answer, Outcome::Accepted), "{}", heard.id);
                assert!(position <= heard.head, "{} was allowed before the answer", heard.id);
            }
            Decision::Deny => panic!("{} was denied and allowed", heard.id),
        }
    }
}

/// That no turn is open in any session.
pub(super) fn turns_ended(gateway: &Gateway, records: &[Arc<Record>]) {
    let mut sessions: HashMap<&str, (Projection, Writer)> = HashMap::new();
    for record in records {
        let (projection, writer) = sessions
            .entry(&record.session)
            .or_insert_with(|| (Projection::new(Arc::clone(&gateway.agents)), Writer::new("en")));
        for activity in projection.next(record) {
            writer.write(&activity);
        }
    }
    if let Some((open, _)) = sessions.iter().find(|(_, (_, writer))| writer.is_open()) {
        let told: Vec<String> = records
            .iter()
            .filter(|record| record.session == *open)
            .map(|record| {
                format!("{} {} {}", record.time, record.kind.as_str(), record.source.protocol)
            })
            .collect();
        panic!("the turn of {open} never ended: {told:#?}");
    }
}
