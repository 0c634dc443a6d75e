//! `banister log search`: what was said and done, by words. What was found is marked with `**`, so that no colour is
//! needed to see it.
//!
//! The index follows the records. A search waits until it has everything that was recorded before the search began,
//! where a gateway is there to index it; else it says how many records are not indexed yet.

use std::time::Duration;

use banister_events::event::time_text;
use banister_events::text;
use banister_journal::{Archive, Error, Hit, Order, Part, Query, Syntax};
use clap::{Args, ValueEnum};
use serde_json::json;

use super::count;
use super::moment::Moment;
use crate::failure::{Failure, GOOD};
use crate::print;

#[derive(Debug, Args)]
pub(super) struct SearchArgs {
    /// Words and "quoted phrases", all of which have to occur; word* for a beginning
    #[arg(value_name = "WORDS", required = true)]
    words: Vec<String>,
    /// Take the words as a query in SQLite's FTS5 language: AND, OR, NOT, NEAR
    #[arg(long)]
    raw: bool,
    /// Only this session, by its whole id
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    /// Only this agent
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// Only this kind, such as message or action
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    /// Only from this moment on: a time, a date, or how long ago, like 12h
    #[arg(long, value_name = "TIME")]
    since: Option<Moment>,
    /// Only before this moment
    #[arg(long, value_name = "TIME")]
    until: Option<Moment>,
    /// What comes first
    #[arg(long, value_enum, default_value_t = By::Time)]
    order: By,
    /// How many
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// Continue an earlier search: its "next"
    #[arg(long, value_name = "CURSOR")]
    after: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum By {
    /// The newest
    Time,
    /// What fits best, among the newest 10,000
    Rank,
}

/// How long a search waits for the index, and how often it looks.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(10);

/// Waits until the index has what is recorded now; how many records it does not have.
fn caught_up(archive: &Archive) -> Result<u64, Error> {
    let head = archive.head()?;
    let mut looks = PATIENCE.as_millis() / LOOK.as_millis();
    loop {
        let missing = head.saturating_sub(archive.indexed()?);
        if missing == 0 || looks == 0 || !archive.has_writer() {
            return Ok(missing);
        }
        looks -= 1;
        std::thread::sleep(LOOK);
    }
}

pub(super) fn run(archive: &Archive, args: &SearchArgs) -> anyhow::Result<u8> {
    let query = Query {
        text: args.words.join(" "),
        syntax: if args.raw { Syntax::Raw } else { Syntax::Words },
        session: args.session.clone(),
        agent: args.agent.clone(),
        kind: args.kind.clone(),
        since: args.since.map(Moment::time),
        until: args.until.map(Moment::time),
        order: match args.order {
            By::Time => Order::Newest,
            By::Rank => Order::Relevance,
        },
        limit: args.limit.into(),
        after: args.after.clone(),
    };
    let missing = caught_up(archive)?;
    let page = archive.search(&query).map_err(|error| match error {
        Error::Query { .. } if args.raw => anyhow::Error::from(Failure::usage(format!(
            "{error}; without --raw every text can be looked for"
        ))),
        Error::Query { .. } => Failure::usage(error.to_string()).into(),
        error => error.into(),
    })?;
    print::with(|out, err| {
        if missing > 0 {
            let records = count(missing, "record");
            writeln!(
                err,
                "Not indexed yet: {records}. A gateway that runs on the journal indexes them."
            )?;
        }
        if args.json {
            let hits: Vec<_> = page.hits.iter().map(object).collect();
            let found = json!({ "schema": "banister.search/v1", "hits": hits, "next": page.next, "unindexed": missing });
            writeln!(out, "{found}")?;
            return Ok(GOOD);
        }
        for hit in &page.hits {
            writeln!(out, "{}", line(hit))?;
        }
        if page.hits.is_empty() {
            writeln!(err, "Nothing was found.")?;
        }
        if let Some(next) = &page.next {
            writeln!(err, "There is more: add --after {next}")?;
        }
        Ok(GOOD)
    })
}

fn line(hit: &Hit) -> String {
    let session: String = hit.session.chars().take(10).collect();
    format!(
        "{}  {session}  {:>4}  {:<10}  {}  {}: {}",
        time_text(hit.time),
        hit.seq,
        text::one_line(&hit.kind),
        text::one_line(&hit.agent),
        text::one_line(&marked(&hit.title)),
        text::one_line(&marked(&hit.snippet)),
    )
}

fn object(hit: &Hit) -> serde_json::Value {
    json!({
        "session": hit.session, "seq": hit.seq, "time": hit.time.to_string(),
        "agent": hit.agent, "kind": hit.kind, "title": hit.title, "snippet": hit.snippet,
    })
}

fn marked(parts: &[Part]) -> String {
    let mark = |part: &Part| {
        if part.found { format!("**{}**", part.text) } else { part.text.clone() }
    };
    parts.iter().map(mark).collect()
}
