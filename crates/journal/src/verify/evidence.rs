//! What the checkpoints tell, held against the records: those in the journal first, then those that were shown.
//!
//! A checkpoint that is not genuine tells nothing: its fault is reported, its heads are not looked at.

use rusqlite::{Connection, OptionalExtension};

use super::{
    Bad, BadCheckpoint, CUTS, Evidence, Forgery, Report, State, Through, What, cut, cut_of,
    natural, text,
};
use crate::PublicKey;
use crate::checkpoint::{Checkpoint, Cut};
use crate::sqlite::signed;

/// How many keys a report names.
const KEYS: usize = 16;

pub(super) fn check(
    connection: &Connection,
    evidence: &Evidence,
    report: &mut Report,
) -> rusqlite::Result<()> {
    let mut checks = Checks { connection, pins: &evidence.pins, report };
    checks.report.authenticity.pinned = !evidence.pins.is_empty();
    checks.report.completeness.shown = evidence.checkpoints.len() as u64;
    checks.stored()?;
    for checkpoint in &evidence.checkpoints {
        checks.shown(checkpoint)?;
    }
    checks.cuts()?;
    let told = report.completeness.checkpoints + report.completeness.shown > 0;
    report.completeness.state = match report.completeness.bad {
        0 if told => State::Good,
        0 => State::Unknown,
        _ => State::Bad,
    };
    report.authenticity.state = match report.authenticity.bad {
        0 if told && report.authenticity.pinned => State::Good,
        0 => State::Unknown,
        _ => State::Bad,
    };
    Ok(())
}

struct Checks<'a> {
    connection: &'a Connection,
    pins: &'a [PublicKey],
    report: &'a mut Report,
}

impl Checks<'_> {
    fn stored(&mut self) -> rusqlite::Result<()> {
        let connection = self.connection;
        let mut statement =
            connection.prepare("SELECT number, document FROM checkpoint ORDER BY number")?;
        let mut rows = statement.query([])?;
        let mut before: (u64, [u8; 32]) = (0, [0; 32]);
        while let Some(row) = rows.next()? {
            self.report.completeness.checkpoints += 1;
            let number = natural(row, 0).unwrap_or_default();
            let parsed = text(row, 1).and_then(|text| Checkpoint::parse(text).ok());
            let Some(checkpoint) = parsed.filter(|checkpoint| checkpoint.number == number) else {
                self.forged(number, false, Forgery::Unreadable);
                continue;
            };
            let follows = (number, checkpoint.prev) == (before.0 + 1, before.1);
            before = (number, checkpoint.hash());
            if !follows {
                self.forged(number, false, Forgery::Link);
            }
            if self.genuine(&checkpoint, false) {
                self.through(&checkpoint, false);
                self.heads(&checkpoint)?;
            }
        }
        Ok(())
    }

    fn shown(&mut self, checkpoint: &Checkpoint) -> rusqlite::Result<()> {
        if !self.genuine(checkpoint, true) {
            return Ok(());
        }
        match self.document(checkpoint.number)? {
            None => self.forged(checkpoint.number, true, Forgery::Absent),
            Some(stored) if stored.hash() == checkpoint.hash() => {}
            Some(_) => self.forged(checkpoint.number, true, Forgery::Replaced),
        }
        self.through(checkpoint, true);
        self.heads(checkpoint)
    }

    fn document(&self, number: u64) -> rusqlite::Result<Option<Checkpoint>> {
        let query = "SELECT document FROM checkpoint WHERE number = ?1";
        let mut statement = self.connection.prepare_cached(query)?;
        let text: Option<Option<String>> =
            statement.query_row([signed(number)], |row| Ok(row.get(0).ok())).optional()?;
        Ok(text.flatten().and_then(|text| Checkpoint::parse(&text).ok()))
    }

    fn genuine(&mut self, checkpoint: &Checkpoint, shown: bool) -> bool {
        let Checkpoint { number, key, .. } = checkpoint;
        let keys = &mut self.report.authenticity.keys;
        if keys.len() < KEYS && !keys.contains(key) {
            keys.push(*key);
        }
        let fault = if !checkpoint.is_signed() {
            Forgery::Signature
        } else if !self.pins.is_empty() && !self.pins.contains(key) {
            Forgery::Key
        } else if checkpoint.epoch != self.report.epoch {
            Forgery::Epoch
        } else {
            return true;
        };
        self.forged(*number, shown, fault);
        false
    }

    /// Each head has to be there still, unless retention has removed it since.
    fn heads(&mut self, checkpoint: &Checkpoint) -> rusqlite::Result<()> {
        let connection = self.connection;
        let mut statement = connection
            .prepare_cached("SELECT position, hash FROM record WHERE session = ?1 AND seq = ?2")?;
        for head in &checkpoint.heads {
            let mut rows = statement.query((&head.session, signed(head.seq)))?;
            let found = rows.next()?.map(|row| (natural(row, 0), row.get::<_, [u8; 32]>(1).ok()));
            let bad = match found {
                Some((_, Some(hash))) if hash == head.hash => continue,
                Some((position, _)) => Bad {
                    position: position.unwrap_or_default(),
                    session: head.session.clone(),
                    seq: head.seq,
                    what: What::Signed,
                },
                None => match cut_of(connection, &head.session)? {
                    Some(cut) if cut.seq > head.seq => continue,
                    Some(cut) if cut.seq == head.seq && cut.hash == head.hash => continue,
                    cut => self.missing(&head.session, head.seq, cut.as_ref())?,
                },
            };
            self.found(bad);
        }
        Ok(())
    }

    /// The first record that is not there, of those up to a number.
    fn missing(&self, session: &str, seq: u64, cut: Option<&Cut>) -> rusqlite::Result<Bad> {
        let query = "SELECT position, seq FROM record WHERE session = ?1 AND seq < ?2
                     ORDER BY seq DESC LIMIT 1";
        let last = self
            .connection
            .prepare_cached(query)?
            .query_row((session, signed(seq)), |row| Ok((natural(row, 0), natural(row, 1))))
            .optional()?;
        let (position, last) = match last {
            Some((position, last)) => (position.unwrap_or_default(), last.unwrap_or_default()),
            None => (0, cut.map_or(0, |cut| cut.seq)),
        };
        let seq = seq.min(last.saturating_add(1));
        Ok(Bad { position, session: session.to_owned(), seq, what: What::Missing })
    }

    /// Each cut has to be told of, exactly so, by a genuine checkpoint.
    fn cuts(&mut self) -> rusqlite::Result<()> {
        let connection = self.connection;
        let mut statement = connection.prepare(
            "SELECT session, seq, hash, time, reason, checkpoint FROM cut ORDER BY checkpoint, session",
        )?;
        let mut rows = statement.query([])?;
        let mut told: Option<(u64, Option<Checkpoint>)> = None;
        while let Some(row) = rows.next()? {
            let number = natural(row, 5).unwrap_or_default();
            if told.as_ref().is_none_or(|(known, _)| *known != number) {
                let genuine = |checkpoint: &Checkpoint| {
                    checkpoint.is_signed()
                        && checkpoint.epoch == self.report.epoch
                        && (self.pins.is_empty() || self.pins.contains(&checkpoint.key))
                };
                told = Some((number, self.document(number)?.filter(genuine)));
            }
            let cut = cut(row);
            let told = told.as_ref().and_then(|(_, checkpoint)| checkpoint.as_ref());
            match cut {
                Some(cut) if told.is_some_and(|told| told.cuts.contains(&cut)) => {
                    let pruned = &mut self.report.pruned;
                    pruned.records += cut.seq;
                    pruned.sessions += 1;
                    if pruned.cuts.len() < CUTS {
                        pruned.cuts.push(cut);
                    }
                }
                _ => {
                    let session = text(row, 0).unwrap_or_default().to_owned();
                    let seq = natural(row, 1).unwrap_or_default();
                    self.found(Bad { position: 0, session, seq, what: What::Cut });
                }
            }
        }
        Ok(())
    }

    fn through(&mut self, checkpoint: &Checkpoint, shown: bool) {
        let through = &mut self.report.completeness.through;
        let Checkpoint { number, time, .. } = checkpoint;
        match through {
            Some(through) if through.number > *number => {}
            _ => *through = Some(Through { number: *number, time: time.clone(), shown }),
        }
    }

    fn forged(&mut self, number: u64, shown: bool, what: Forgery) {
        let authenticity = &mut self.report.authenticity;
        authenticity.bad += 1;
        authenticity.first_bad.get_or_insert(BadCheckpoint { number, shown, what });
    }

    fn found(&mut self, bad: Bad) {
        let completeness = &mut self.report.completeness;
        completeness.bad += 1;
        let first = completeness.first_bad.as_ref();
        if first.is_none_or(|first| bad.position < first.position) {
            completeness.first_bad = Some(bad);
        }
    }
}
