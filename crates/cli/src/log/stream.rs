//! The record as a protocol's events, written as the gateway writes them to those who watch. Sessions come one after
//! another, the one that began first at first; what is open at the end of one is closed, so that each is a whole stream.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

use banister_events::aaep::voice::Voice;
use banister_events::aep::mapping::Agents;
use banister_events::event::Protocol;
use banister_events::{Writer, Written};
use banister_gateway::project::Projection;
use banister_journal::{Archive, Kind};

use super::count;
use super::export::Wanted;

pub(super) fn write(
    archive: &Archive,
    wanted: &Wanted<'_>,
    protocol: Protocol,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> anyhow::Result<()> {
    let agents = Arc::new(Agents::builtin()?);
    let mut sessions = archive.sessions()?;
    sessions.retain(|row| row.session.starts_with(wanted.session));
    sessions.sort_by(|a, b| (a.first, &a.session).cmp(&(b.first, &b.session)));
    let mut silent: BTreeMap<&str, u64> = BTreeMap::new();
    for row in sessions {
        let mut projection = Projection::new(Arc::clone(&agents));
        let mut writer = Writer::for_protocol(protocol, Voice::live("en"), &row.session);
        let mut seq = 0;
        loop {
            let chunk = archive.session(&row.session, seq)?;
            let Some(last) = chunk.last() else { break };
            seq = last.seq;
            for record in &chunk {
                // What came before is needed to understand the rest.
                let activities = projection.next(record);
                if !wanted.covers(record.time) {
                    continue;
                }
                if activities.is_empty() {
                    *silent.entry(why(record.kind)).or_default() += 1;
                }
                for activity in activities {
                    print(writer.write(&activity), out)?;
                }
            }
        }
        print(writer.close(), out)?;
    }
    for (why, number) in silent {
        writeln!(err, "{} left out: {why}.", count(number, "record"))?;
    }
    Ok(())
}

fn print(events: Vec<Written>, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut lines = Vec::new();
    for event in events {
        event.write_json(&mut lines);
        lines.push(b'\n');
    }
    out.write_all(&lines)?;
    Ok(())
}

/// Why a record became no event.
fn why(kind: Kind) -> &'static str {
    match kind {
        Kind::Unreadable => "what could not be read",
        Kind::Event => {
            "messages that say nothing the protocols know, or whose content was not kept"
        }
        _ => "facts that the protocols have no event for",
    }
}
