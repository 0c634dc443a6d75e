//! One transaction of the writer: batches become chained records. It keeps what it learns to itself until the
//! writer has committed.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use rusqlite::{CachedStatement, Transaction, params};

use crate::chain::{self, Kept, Link};
use crate::heads::{Head, Heads};
use crate::prepared::Prepared;
use crate::record::{Appended, Record};
use crate::sqlite::{signed, unsigned};
use crate::{Error, read};

/// One open transaction. What it learns becomes the writer's only if it commits.
pub(super) struct Group<'a> {
    transaction: &'a Transaction<'a>,
    heads: &'a mut Heads,
    touched: HashMap<String, Span>,
    position: u64,
    /// Looks for a record by its sender's id.
    known: CachedStatement<'a>,
    /// Adds a record.
    insert: CachedStatement<'a>,
}

/// The first and the last record that a group added to a session.
pub(super) struct Span {
    first: Arc<Record>,
    pub(super) last: Arc<Record>,
}

impl<'a> Group<'a> {
    /// A group that goes on after a position.
    pub(super) fn new(
        transaction: &'a Transaction<'a>,
        heads: &'a mut Heads,
        position: u64,
    ) -> rusqlite::Result<Self> {
        let known =
            transaction.prepare_cached("SELECT 1 FROM record WHERE key = ?1 AND event_id = ?2")?;
        let insert = transaction.prepare_cached(
            "INSERT INTO record (position, session, seq, time, kind, protocol, agent, door, key,
                 turn, action, event_id, reader, body, findings, gate, prev, hash,
                 level, digest, commitment)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17,
                 ?18, ?19, ?20, ?21)",
        )?;
        Ok(Self { transaction, heads, touched: HashMap::new(), position, known, insert })
    }

    /// The sessions it added to, and the position of its last record.
    pub(super) fn end(self) -> (HashMap<String, Span>, u64) {
        (self.touched, self.position)
    }

    /// Records the batch, or finds before anything is written why not.
    pub(super) fn append(
        &mut self,
        batch: Vec<Prepared>,
    ) -> rusqlite::Result<Result<Appended, Error>> {
        match self.refusal(&batch) {
            Err(Error::Sqlite(error)) => return Err(error),
            Err(error) => return Ok(Err(error)),
            Ok(Some(duplicate)) => return Ok(Ok(duplicate)),
            Ok(None) => {}
        }
        let mut records = Vec::with_capacity(batch.len());
        for prepared in batch {
            records.push(self.add(prepared)?);
        }
        Ok(Ok(Appended::Recorded(records)))
    }

    fn refusal(&mut self, batch: &[Prepared]) -> Result<Option<Appended>, Error> {
        let mut seen = HashSet::new();
        for (index, Prepared { draft, captured, .. }) in batch.iter().enumerate() {
            let Some(event_id) = &draft.event_id else {
                continue;
            };
            let key = &draft.source.key;
            let known = self.known.exists((key, event_id))?;
            let first = if known && index == 0 {
                read::of_event(self.transaction, key, event_id)?
            } else {
                None
            };
            match first {
                Some(first) => {
                    // What was not kept is compared by its digest.
                    let same_bytes =
                        first.body == draft.body && first.captured.digest == captured.digest;
                    return Ok(Some(Appended::Duplicate { first: Arc::new(first), same_bytes }));
                }
                None if !known && seen.insert((key, event_id)) => {}
                None => {
                    let (key, event_id) = (key.clone(), event_id.clone());
                    return Err(Error::EventIdTaken { key, event_id });
                }
            }
        }
        Ok(None)
    }

    fn add(&mut self, prepared: Prepared) -> rusqlite::Result<Arc<Record>> {
        let Prepared { draft, time, body, findings, gate, captured, salt } = prepared;
        let head = self.head(&draft.session)?;
        let (seq, prev) = (head.seq + 1, head.hash);
        let link = Link {
            session: &draft.session,
            seq,
            time: &time,
            protocol: &draft.source.protocol,
            agent: &draft.source.agent,
            door: &draft.source.door,
            key: &draft.source.key,
            turn: draft.turn.as_deref(),
            action: draft.action.as_deref(),
            kind: draft.kind.as_str(),
            reader: draft.reader,
            event_id: draft.event_id.as_deref(),
            body,
            findings: findings.as_deref(),
            gate: gate.as_deref(),
            prev,
            kept: Kept {
                level: captured.level.as_str(),
                digest: captured.digest,
                commitment: captured.commitment,
            },
        };
        let hash = link.hash();
        let position = self.position + 1;
        self.insert.execute(params![
            signed(position),
            link.session,
            signed(seq),
            link.time,
            link.kind,
            link.protocol,
            link.agent,
            link.door,
            link.key,
            link.turn,
            link.action,
            link.event_id,
            link.reader,
            draft.body.as_ref(),
            link.findings,
            link.gate,
            prev,
            hash,
            link.kept.level,
            link.kept.digest,
            link.kept.commitment,
        ])?;
        self.position = position;
        let record = Arc::new(Record {
            position,
            session: draft.session,
            seq,
            time: draft.time,
            kind: draft.kind,
            source: draft.source,
            turn: draft.turn,
            action: draft.action,
            event_id: draft.event_id,
            reader: draft.reader,
            body: draft.body,
            findings: draft.findings,
            gate: draft.gate,
            prev,
            hash,
            captured,
        });
        self.hold(&record, &salt)?;
        if let Some(span) = self.touched.get_mut(&record.session) {
            span.last = Arc::clone(&record);
        } else {
            let span = Span { first: Arc::clone(&record), last: Arc::clone(&record) };
            self.touched.insert(record.session.clone(), span);
        }
        Ok(record)
    }

    /// Stores the exact bytes that are held beside a record.
    fn hold(&self, record: &Record, salt: &[u8; 32]) -> rusqlite::Result<()> {
        if let Some(exact) = &record.captured.exact {
            self.transaction
                .prepare_cached("INSERT INTO held (position, salt, body) VALUES (?1, ?2, ?3)")?
                .execute((signed(record.position), salt, exact.as_ref()))?;
        }
        Ok(())
    }

    fn head(&mut self, session: &str) -> rusqlite::Result<Head> {
        if let Some(Span { last, .. }) = self.touched.get(session) {
            return Ok(Head { seq: last.seq, hash: last.hash });
        }
        if let Some(head) = self.heads.get(session) {
            return Ok(head);
        }
        let mut statement =
            self.transaction.prepare_cached("SELECT seq, hash FROM session WHERE session = ?1")?;
        let mut rows = statement.query([session])?;
        match rows.next()? {
            None => Ok(Head { seq: 0, hash: chain::START }),
            Some(row) => Ok(Head { seq: unsigned(row.get(0)?), hash: row.get(1)? }),
        }
    }
}

impl Span {
    pub(super) fn store(&self, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
        let Self { first, last } = self;
        transaction
            .prepare_cached(
                "INSERT INTO session (session, agent, protocol, first, last, position, seq, hash)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
                 ON CONFLICT (session) DO UPDATE SET last = excluded.last,
                     -- Of a session that retention has emptied, nothing older is left.
                     first = iif(EXISTS (SELECT 1 FROM cut WHERE cut.session = session.session
                         AND cut.seq = session.seq), excluded.first, first),
                     position = excluded.position, seq = excluded.seq, hash = excluded.hash",
            )?
            .execute(params![
                first.session,
                first.source.agent,
                first.source.protocol,
                first.time.to_string(),
                last.time.to_string(),
                signed(last.position),
                signed(last.seq),
                last.hash,
            ])?;
        Ok(())
    }
}
