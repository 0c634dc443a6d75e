//! What is kept of each source, and for how long; and the signatures that prove it later.
//!
//! The journal does what it is told; what it is told is decided here. A source is an agent. What agents send is kept at
//! the level of its source. Banister's own facts (asks and how they ended) are needed to understand what came after, so
//! they are kept at every level, but without what the level leaves out: `redacted` takes credentials out, `metadata` all
//! content, `none` also what it was about. While an ask is open its exact action is held beside the record.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::time::Duration;

use banister_events::activity::{Ask, AskKind, Context};
use banister_events::text;
use banister_journal::{
    Capture, DigestKey, Draft, Entry, Journal, Level, Pruned, Record, Retention, SigningKey,
};
use bytes::Bytes;
use serde_json::Value;

use crate::Error;
use crate::clock::Clock;
use crate::facts::{AskFact, CloseFact, Handoff, ParkedFact};

/// What stands where content was.
const LEFT_OUT: &str = "[not kept]";

/// How much is kept, and how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapturePolicy {
    /// The capture level of every source that has none of its own.
    pub level: Level,
    /// Agent → its capture level.
    pub levels: BTreeMap<String, Level>,
    /// How old a record may become; for ever where nothing is said.
    pub age: Option<Duration>,
    /// How many bytes the records may take, before the oldest go.
    pub bytes: Option<u64>,
    /// How often the journal is signed, if something has changed.
    pub sign_every: Duration,
    /// How often old records are looked for.
    pub prune_every: Duration,
}

impl Default for CapturePolicy {
    fn default() -> Self {
        Self {
            level: Level::Full,
            levels: BTreeMap::new(),
            age: None,
            bytes: None,
            sign_every: Duration::from_mins(10),
            prune_every: Duration::from_hours(1),
        }
    }
}

/// Decides what is kept.
#[derive(Debug, Clone)]
pub struct Keeper {
    policy: CapturePolicy,
    journal: Journal,
    clock: Clock,
    signing: SigningKey,
    digest: DigestKey,
}

impl Keeper {
    /// Opens the two keys in the data directory, or makes them.
    pub fn open(
        data: &Path,
        policy: CapturePolicy,
        journal: &Journal,
        clock: &Clock,
    ) -> Result<Self, Error> {
        Ok(Self {
            policy,
            journal: journal.clone(),
            clock: clock.clone(),
            signing: SigningKey::open(&data.join(SigningKey::FILE))?,
            digest: DigestKey::open(&data.join(DigestKey::FILE))?,
        })
    }

    /// How much is kept, and how long.
    pub fn policy(&self) -> &CapturePolicy {
        &self.policy
    }

    /// What is recorded of an agent's message.
    pub fn message(&self, draft: Draft) -> Entry {
        self.capture(&draft.source.agent).apply(draft)
    }

    /// The same, where less is kept of it than what came: the digest is of that.
    pub(crate) fn part(&self, draft: Draft, part: Bytes) -> Entry {
        let exact = draft.body.clone();
        let draft = Draft { body: part, ..draft };
        self.capture(&draft.source.agent).apply_to(draft, &exact)
    }

    /// Whether a record is of these bytes. What was not kept is compared by its digest.
    pub(crate) fn is_again(&self, bytes: &[u8], record: &Record) -> bool {
        match record.captured.digest {
            Some(digest) => digest == self.digest.digest(bytes),
            None => record.body == bytes,
        }
    }

    /// What is recorded of an ask; its exact form is held until it closes.
    pub fn ask(&self, draft: Draft, fact: &AskFact) -> Entry {
        let exact = draft.body.clone();
        let level = self.level(&draft.source.agent);
        let draft = match level {
            Level::Full => draft,
            Level::Redacted => Draft { body: redact(&exact).into(), ..draft },
            Level::Metadata | Level::None => Draft { body: json(&bare(fact, level)), ..draft },
        };
        let draft = named(draft, level);
        self.capture(&draft.source.agent).instead(draft, &exact).holding(exact)
    }

    /// What is recorded of a run that waits; its exact form is kept until it has gone on.
    pub(crate) fn parked(&self, draft: Draft, fact: &ParkedFact) -> Entry {
        let exact = draft.body.clone();
        let level = self.level(&draft.source.agent);
        let draft = match level {
            Level::Full => draft,
            Level::Redacted => Draft { body: redact(&exact).into(), ..draft },
            Level::Metadata | Level::None => {
                let fact = ParkedFact { input: Value::Null, ..fact.clone() };
                Draft { body: json(&fact), ..draft }
            }
        };
        let draft = named(draft, level);
        self.capture(&draft.source.agent).instead(draft, &exact).holding(exact)
    }

    /// What is recorded of the end of an ask.
    pub fn close(&self, draft: Draft, fact: &CloseFact) -> Entry {
        let exact = draft.body.clone();
        let level = self.level(&draft.source.agent);
        let draft = match level {
            Level::Full => draft,
            Level::Redacted => Draft { body: redact(&exact).into(), ..draft },
            Level::Metadata | Level::None => {
                let fact = CloseFact { message: None, response: None, ..fact.clone() };
                Draft { body: json(&fact), ..draft }
            }
        };
        let draft = named(draft, level);
        self.capture(&draft.source.agent).instead(draft, &exact)
    }

    /// Signs where the journal stands, if something has changed. Gives how many checkpoints that made.
    pub async fn sign(&self) -> Result<usize, Error> {
        Ok(self.journal.checkpoint(&self.signing, self.clock.now()).await?.len())
    }

    /// Removes what is too old or too much, but nothing of these sessions. `None` where everything is kept for ever.
    pub async fn prune(&self, keep: HashSet<String>) -> Result<Option<Pruned>, Error> {
        let CapturePolicy { age, bytes, .. } = self.policy;
        if age.is_none() && bytes.is_none() {
            return Ok(None);
        }
        let now = self.clock.now();
        // What would be older than time itself keeps everything.
        let before = age.and_then(|age| now.checked_sub(age).ok());
        let retention = Retention { before, bytes, keep };
        Ok(Some(self.journal.prune(retention, &self.signing, now).await?))
    }

    /// How much is kept of a source.
    pub(crate) fn level(&self, agent: &str) -> Level {
        self.policy.levels.get(agent).copied().unwrap_or(self.policy.level)
    }

    fn capture(&self, agent: &str) -> Capture<'_> {
        Capture { level: self.level(agent), redact: &redact, digest_key: &self.digest }
    }
}

/// A text or a payload without credentials; byte for byte what it was, where there are none.
pub(crate) fn redact(bytes: &[u8]) -> Vec<u8> {
    if let Ok(value) = serde_json::from_slice::<Value>(bytes) {
        let clean = text::redact_json(&value);
        if clean == value {
            return bytes.to_vec();
        }
        return serde_json::to_vec(&clean).unwrap_or_default();
    }
    match std::str::from_utf8(bytes) {
        Ok(plain) => text::redact(plain).into_owned().into_bytes(),
        // What was cut in the middle of a character is text all the same.
        Err(_) => text::redact(&String::from_utf8_lossy(bytes)).into_owned().into_bytes(),
    }
}

/// Without the turn and the action, where not even those are kept.
fn named(draft: Draft, level: Level) -> Draft {
    let clean = |name: Option<String>| name.map(|name| text::redact(&name).into_owned());
    match level {
        Level::Full => draft,
        Level::Redacted | Level::Metadata => {
            Draft { turn: clean(draft.turn), action: clean(draft.action), ..draft }
        }
        Level::None => Draft { turn: None, action: None, ..draft },
    }
}

/// An ask without its content: enough to know that something was asked, and how it ended.
fn bare(fact: &AskFact, level: Level) -> AskFact {
    let AskFact { ask, context, handoff, .. } = fact.clone();
    let (action, context) = if level == Level::None {
        (None, Context { agent: context.agent, ..Context::default() })
    } else {
        let bare = |mut action: banister_events::activity::Action| {
            (action.input, action.rationale) = (None, None);
            action
        };
        (ask.action.map(bare), Context { cwd: None, ..context })
    };
    let kind = match ask.kind {
        AskKind::Confirmation => AskKind::Confirmation,
        AskKind::Clarification { .. } => AskKind::question(LEFT_OUT),
        AskKind::Plan { .. } => AskKind::Plan { text: LEFT_OUT.to_owned() },
    };
    let gate = ask.gate.map(|mut gate| {
        LEFT_OUT.clone_into(&mut gate.reason);
        (gate.opaque, gate.safer) = (gate.opaque.map(|_| LEFT_OUT.to_owned()), None);
        gate
    });
    let ask = Ask { kind, action, gate, words: None, schema: None, ..ask };
    let handoff =
        handoff.map(|handoff| Handoff { reason: LEFT_OUT.to_owned(), uri: None, ..handoff });
    AskFact { ask, context, handoff, ..fact.clone() }
}

fn json(fact: &impl serde::Serialize) -> Bytes {
    Bytes::from(serde_json::to_vec(fact).unwrap_or_default())
}

#[cfg(test)]
#[path = "keep_tests.rs"]
mod tests;
