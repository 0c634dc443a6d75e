//! Finding what was said and done, by words. The caller says what can be found: whole messages and actions, when they
//! end, not the pieces they came in. The index is a projection; it is not hashed, and can be made again from the records.
//!
//! The index is fed after records are acknowledged, in the order of their positions. It says how far it has come: whoever
//! feeds it goes on from there, also after a crash. A search finds what is in the index when it begins.
//!
//! By time, pages never overlap and never leave a hit out, also while records are added. By relevance, only the newest
//! 10,000 hits are compared, and pages are exact as long as nothing is added. How text is split into words is written in
//! `words.rs`.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::str::FromStr;

use jiff::Timestamp;
use rusqlite::types::ToSql;
use rusqlite::{Connection, ErrorCode, OptionalExtension, Row, named_params};
use serde::Serialize;

use crate::sqlite::{signed, unsigned};
use crate::{Error, Level, Record, words};

/// How many hits a page has at most.
pub const PAGE: usize = 1_000;

/// How many hits are compared when they are ordered by relevance: the newest.
const COMPARED: i64 = 10_000;

/// A text that can be found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    /// What it is, such as `message` or `action`.
    pub kind: String,
    /// What it is called in a list: a tool's name, a role.
    pub title: String,
    /// The text.
    pub text: String,
}

/// A text that can be found, and the record it leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Indexed {
    /// The session.
    pub session: String,
    /// The number of the record in the session.
    pub seq: u64,
    /// When it was said or done.
    pub time: Timestamp,
    /// The agent.
    pub agent: String,
    /// What it is, such as `message` or `action`.
    pub kind: String,
    /// What it is called in a list: a tool's name, a role.
    pub title: String,
    /// The text.
    pub text: String,
}

impl Indexed {
    /// A text that leads to a record, as far as the record's capture level lets it be found: nothing of a record that
    /// keeps no content, and no secrets where those are removed.
    pub fn new(record: &Record, passage: Passage, redact: &dyn Fn(&str) -> String) -> Option<Self> {
        let Passage { kind, title, text } = passage;
        let (title, text) = match record.captured.level {
            Level::Full => (title, text),
            Level::Redacted => (redact(&title), redact(&text)),
            Level::Metadata | Level::None => return None,
        };
        Some(Self {
            session: record.session.clone(),
            seq: record.seq,
            time: record.time,
            agent: record.source.agent.clone(),
            kind,
            title,
            text,
        })
    }
}

/// What the index is fed with at once: everything that can be found of the records after one position, up to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexBatch {
    pub(crate) after: u64,
    pub(crate) through: u64,
    /// Split for the index.
    pub(crate) rows: Vec<Indexed>,
}

impl IndexBatch {
    /// The texts of the records after `after`, up to and with `through`. Splits them into words, which takes its time.
    /// Texts longer than 256 KiB are found by their beginning.
    pub fn new(after: u64, through: u64, rows: Vec<Indexed>) -> Self {
        let split = |row: Indexed| {
            let (title, text) = (words::segmented(&row.title), words::segmented(&row.text));
            Indexed { title, text, ..row }
        };
        Self { after, through, rows: rows.into_iter().map(split).collect() }
    }

    /// How many texts there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no text.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.rows.iter().map(|row| row.title.len() + row.text.len()).sum()
    }
}

/// What to look for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// The words.
    pub text: String,
    /// What the words mean.
    pub syntax: Syntax,
    /// Only in this session.
    pub session: Option<String>,
    /// Only of this agent.
    pub agent: Option<String>,
    /// Only of this kind.
    pub kind: Option<String>,
    /// Only from this moment on.
    pub since: Option<Timestamp>,
    /// Only before this moment.
    pub until: Option<Timestamp>,
    /// What comes first.
    pub order: Order,
    /// How many hits at once, at most [`PAGE`].
    pub limit: usize,
    /// Where to go on: [`Page::next`] of the page before.
    pub after: Option<String>,
}

/// What the text of a query means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Syntax {
    /// Words and "quoted phrases", all of which have to occur; `word*` for a beginning. Nothing is an error.
    #[default]
    Words,
    /// The language of SQLite's FTS5; a mistake is [`Error::Query`].
    Raw,
}

/// What comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// What was indexed last.
    #[default]
    Newest,
    /// What fits best.
    Relevance,
}

/// Some hits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Page {
    /// The hits, in the order that was asked for.
    pub hits: Vec<Hit>,
    /// Where the next page begins, if there may be one.
    pub next: Option<String>,
}

/// One hit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hit {
    /// The session.
    pub session: String,
    /// The number of the record in the session.
    pub seq: u64,
    /// When it was said or done.
    pub time: Timestamp,
    /// The agent.
    pub agent: String,
    /// What it is.
    pub kind: String,
    /// The title, with what was found in it.
    pub title: Vec<Part>,
    /// Some of the text, with what was found in it.
    pub snippet: Vec<Part>,
}

/// A piece of a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Part {
    /// The piece.
    pub text: String,
    /// Whether it is what was looked for.
    pub found: bool,
}

/// Where a page begins. `through` keeps what was added meanwhile out of later pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cursor {
    Before(i64),
    Best { through: i64, offset: i64 },
}

impl FromStr for Cursor {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let number = |text: &str| text.parse().ok().filter(|number| *number >= 0);
        let cursor = match text.split('.').collect::<Vec<_>>().as_slice() {
            ["n", id] => number(id).map(Self::Before),
            ["r", through, offset] => number(through)
                .zip(number(offset))
                .map(|(through, offset)| Self::Best { through, offset }),
            _ => None,
        };
        cursor.ok_or_else(|| {
            let message = "the cursor is not one that a search gave".to_owned();
            Error::Query { message }
        })
    }
}

pub(crate) fn search(connection: &Connection, query: &Query) -> Result<Page, Error> {
    let matching = match query.syntax {
        Syntax::Words => words::expression(&query.text)?,
        Syntax::Raw => words::raw(&query.text)?,
    };
    let Some(matching) = matching else {
        return Ok(Page::default());
    };
    let cursor = query.after.as_deref().map(str::parse).transpose()?;
    // One moment for all that is read.
    let moment = connection.unchecked_transaction()?;
    let range = range(&moment, query)?;
    let (first, last) = range.into_inner();
    let found = match (query.order, cursor) {
        (Order::Newest, None) => newest(&moment, query, &matching, first..=last),
        (Order::Newest, Some(Cursor::Before(id))) => {
            newest(&moment, query, &matching, first..=last.min(id.saturating_sub(1)))
        }
        (Order::Relevance, None) => best(&moment, query, &matching, (first..=last, 0)),
        (Order::Relevance, Some(Cursor::Best { through, offset })) => {
            best(&moment, query, &matching, (first..=last.min(through), offset))
        }
        _ => {
            let message = "the cursor is of another order".to_owned();
            return Err(Error::Query { message });
        }
    };
    found.map_err(|error| match error {
        Error::Sqlite(error)
            if query.syntax == Syntax::Raw
                && error.sqlite_error_code() == Some(ErrorCode::Unknown) =>
        {
            Error::Query { message: said(&error) }
        }
        error => error,
    })
}

/// The numbers between which all hits lie: those of a session lie close together.
fn range(connection: &Connection, query: &Query) -> Result<RangeInclusive<i64>, Error> {
    let bounds = |row: &Row<'_>| {
        let (first, last): (Option<i64>, Option<i64>) = (row.get(0)?, row.get(1)?);
        Ok(first.unwrap_or(0)..=last.unwrap_or(-1))
    };
    Ok(match &query.session {
        Some(session) => connection
            .prepare_cached("SELECT min(id), max(id) FROM passage WHERE session = ?1")?
            .query_row([session], bounds)?,
        None => connection
            .prepare_cached("SELECT (SELECT min(id) FROM passage), (SELECT max(id) FROM passage)")?
            .query_row([], bounds)?,
    })
}

fn said(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqliteFailure(_, Some(message)) => message.clone(),
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        other => other.to_string(),
    }
}

/// What every hit has to fulfil beyond the words.
macro_rules! filter {
    () => {
        "passage_words.rowid >= :first AND passage_words.rowid <= :last
         AND (:session IS NULL OR passage.session = :session)
         AND (:agent IS NULL OR passage.agent = :agent)
         AND (:kind IS NULL OR passage.kind = :kind)
         AND (:since IS NULL OR passage.time >= :since)
         AND (:until IS NULL OR passage.time < :until)"
    };
}

/// What is shown of a hit, after its number.
macro_rules! shown {
    () => {
        "passage.session, passage.seq, passage.time, passage.agent, passage.kind,
         highlight(passage_words, 0, :open, :close),
         snippet(passage_words, 1, :open, :close, '…', 24)"
    };
}

fn newest(
    connection: &Connection,
    query: &Query,
    matching: &str,
    range: RangeInclusive<i64>,
) -> Result<Page, Error> {
    let limit = query.limit.min(PAGE);
    // One pass: a search for a beginning pays for all words that begin so each time it is made.
    let mut statement = connection.prepare_cached(concat!(
        "SELECT passage.id, ",
        shown!(),
        " FROM passage_words CROSS JOIN passage ON passage.id = passage_words.rowid
         WHERE passage_words MATCH :matching AND ",
        filter!(),
        " ORDER BY passage_words.rowid DESC LIMIT :limit"
    ))?;
    let (open, close) = (words::OPEN.to_string(), words::CLOSE.to_string());
    let mut found: Vec<(i64, Hit)> = collect(
        &mut statement,
        (query, &range),
        &[
            (":matching", &matching),
            (":limit", &signed(limit as u64 + 1)),
            (":open", &open),
            (":close", &close),
        ],
        |row| Ok((row.get(0)?, hit(row)?)),
    )?;
    let more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| more).map(|(id, _)| format!("n.{id}"));
    Ok(Page { hits: found.into_iter().map(|(_, hit)| hit).collect(), next })
}

fn best(
    connection: &Connection,
    query: &Query,
    matching: &str,
    (range, offset): (RangeInclusive<i64>, i64),
) -> Result<Page, Error> {
    let limit = query.limit.min(PAGE);
    let mut statement = connection.prepare_cached(concat!(
        "WITH hit AS MATERIALIZED (
             SELECT passage.id AS id, passage_words.rank AS rank
             FROM passage_words CROSS JOIN passage ON passage.id = passage_words.rowid
             WHERE passage_words MATCH :matching AND ",
        filter!(),
        "    ORDER BY passage_words.rowid DESC LIMIT :compared)
         SELECT id FROM hit ORDER BY rank, id DESC LIMIT :limit OFFSET :offset"
    ))?;
    let mut ids: Vec<i64> = collect(
        &mut statement,
        (query, &range),
        &[
            (":matching", &matching),
            (":compared", &COMPARED),
            (":limit", &signed(limit as u64 + 1)),
            (":offset", &offset),
        ],
        |row| row.get(0),
    )?;
    let more = ids.len() > limit;
    ids.truncate(limit);
    let next =
        more.then(|| format!("r.{}.{}", range.end(), offset.saturating_add(signed(limit as u64))));
    Ok(Page { hits: hits(connection, matching, &ids)?, next })
}

fn collect<T>(
    statement: &mut rusqlite::Statement<'_>,
    (query, range): (&Query, &RangeInclusive<i64>),
    parameters: &[(&str, &dyn ToSql)],
    take: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<T>, Error> {
    let (since, until) = (query.since.map(micros), query.until.map(micros));
    let mut all: Vec<(&str, &dyn ToSql)> = vec![
        (":first", range.start()),
        (":last", range.end()),
        (":session", &query.session),
        (":agent", &query.agent),
        (":kind", &query.kind),
        (":since", &since),
        (":until", &until),
    ];
    all.extend(parameters);
    let found = statement.query_map(all.as_slice(), take)?;
    Ok(found.collect::<Result<_, _>>()?)
}

/// These hits, in their order, in one pass over what lies between them.
fn hits(connection: &Connection, matching: &str, ids: &[i64]) -> Result<Vec<Hit>, Error> {
    let (Some(first), Some(last)) = (ids.iter().min(), ids.iter().max()) else {
        return Ok(Vec::new());
    };
    // The plus keeps the index from being asked for each of them by itself.
    let mut statement = connection.prepare_cached(concat!(
        "SELECT passage.id, ",
        shown!(),
        " FROM passage_words CROSS JOIN passage ON passage.id = passage_words.rowid
         WHERE passage_words MATCH :matching AND passage_words.rowid >= :first
             AND passage_words.rowid <= :last
             AND +passage_words.rowid IN (SELECT value FROM json_each(:ids))"
    ))?;
    let (open, close) = (words::OPEN.to_string(), words::CLOSE.to_string());
    let wanted = serde_json::Value::from(ids).to_string();
    let parameters = named_params! {
        ":matching": matching, ":open": open, ":close": close,
        ":first": first, ":last": last, ":ids": wanted,
    };
    let found = statement.query_map(parameters, |row| Ok((row.get(0)?, hit(row)?)))?;
    let mut found = found.collect::<Result<HashMap<i64, Hit>, _>>()?;
    Ok(ids.iter().filter_map(|id| found.remove(id)).collect())
}

fn hit(row: &Row<'_>) -> rusqlite::Result<Hit> {
    Ok(Hit {
        session: row.get(1)?,
        seq: unsigned(row.get(2)?),
        time: Timestamp::from_microsecond(row.get(3)?).unwrap_or_default(),
        agent: row.get(4)?,
        kind: row.get(5)?,
        title: parts(&row.get::<_, String>(6)?),
        snippet: parts(&row.get::<_, String>(7)?),
    })
}

/// What the index marked, taken apart. Marks that follow one another at once are one.
fn parts(marked: &str) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for (index, piece) in marked.split(words::OPEN).enumerate() {
        let (found, rest) = match piece.split_once(words::CLOSE) {
            Some((found, rest)) if index > 0 => (found, rest),
            _ => ("", piece),
        };
        for (text, found) in [(found, true), (rest, false)] {
            let text = words::readable(text);
            match parts.last_mut() {
                _ if text.is_empty() => {}
                Some(last) if last.found == found => last.text.push_str(&text),
                _ => parts.push(Part { text, found }),
            }
        }
    }
    parts
}

/// Adds a batch to the index and notes how far that has come; or gives how far it has come, where the batch does not
/// follow on that. Retention may have removed records that the batch is of: those are left out.
pub(crate) fn feed(connection: &Connection, batch: &IndexBatch) -> rusqlite::Result<Option<u64>> {
    let found = indexed(connection)?;
    if found != batch.after || batch.through < found {
        return Ok(Some(found));
    }
    let mut cut = connection.prepare_cached("SELECT seq FROM cut WHERE session = ?1")?;
    let mut cuts: HashMap<&str, u64> = HashMap::new();
    let mut rows = Vec::with_capacity(batch.rows.len());
    for row in &batch.rows {
        let session = row.session.as_str();
        let removed = if let Some(removed) = cuts.get(session) {
            *removed
        } else {
            let removed = cut.query_row([session], |row| row.get(0)).optional()?;
            *cuts.entry(session).or_insert(unsigned(removed.unwrap_or_default()))
        };
        if row.seq > removed {
            rows.push(row);
        }
    }
    add(connection, &rows)?;
    set_indexed(connection, batch.through)?;
    Ok(None)
}

/// The position up to which everything is in the index.
pub(crate) fn indexed(connection: &Connection) -> rusqlite::Result<u64> {
    let mut statement =
        connection.prepare_cached("SELECT value FROM meta WHERE name = 'indexed'")?;
    let found: Option<i64> = statement.query_row([], |row| row.get(0)).optional()?;
    Ok(unsigned(found.unwrap_or_default()))
}

fn set_indexed(connection: &Connection, position: u64) -> rusqlite::Result<()> {
    let mut statement = connection
        .prepare_cached("INSERT OR REPLACE INTO meta (name, value) VALUES ('indexed', ?1)")?;
    statement.execute([signed(position)]).map(drop)
}

/// The words come last, and in one go: whatever is written between them has the index write out what it holds.
fn add(connection: &Connection, rows: &[&Indexed]) -> rusqlite::Result<()> {
    let mut passage = connection.prepare_cached(
        "INSERT INTO passage (session, seq, time, agent, kind, title, text)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    let mut ids = Vec::with_capacity(rows.len());
    for row in rows {
        let Indexed { session, seq, time, agent, kind, title, text } = row;
        let cells = (session, signed(*seq), micros(*time), agent, kind, title, text);
        ids.push(passage.insert(cells)?);
    }
    let mut words = connection
        .prepare_cached("INSERT INTO passage_words (rowid, title, text) VALUES (?1, ?2, ?3)")?;
    for (id, Indexed { title, text, .. }) in ids.into_iter().zip(rows) {
        words.execute((id, title, text))?;
    }
    Ok(())
}

/// Removes what can be found of a session up to a record, at most so much of it. Gives how much that was.
pub(crate) fn remove(
    connection: &Connection,
    (session, seq): (&str, u64),
    most: usize,
) -> rusqlite::Result<usize> {
    let (seq, most) = (signed(seq), signed(most as u64));
    connection
        .prepare_cached(
            "INSERT INTO passage_words (passage_words, rowid, title, text)
             SELECT 'delete', id, title, text FROM passage WHERE session = ?1 AND seq <= ?2
             ORDER BY seq, id LIMIT ?3",
        )?
        .execute((session, seq, most))?;
    connection
        .prepare_cached(
            "DELETE FROM passage WHERE id IN
                 (SELECT id FROM passage WHERE session = ?1 AND seq <= ?2 ORDER BY seq, id LIMIT ?3)",
        )?
        .execute((session, seq, most))
}

/// Removes all rows at once. One by one would take hours where there are millions.
pub(crate) fn clear(connection: &Connection) -> Result<(), Error> {
    connection.execute_batch(
        "DELETE FROM passage;
         INSERT INTO passage_words (passage_words) VALUES ('delete-all');",
    )?;
    set_indexed(connection, 0)?;
    Ok(())
}

fn micros(time: Timestamp) -> i64 {
    time.as_microsecond()
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
