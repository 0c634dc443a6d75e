//! The record as a protocol's events, written as the gateway writes them to those who watch. Sessions come one after
//! another, the one that began first at first; what is open at the end of one is closed, so that each is a whole stream.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

use banister_events::activity::Activity;
use banister_events::aep::mapping::Agents;
use banister_events::event::Protocol;
use banister_events::{aaep, aep, agui};
use banister_gateway::project::Projection;
use banister_journal::{Archive, Kind};
use serde_json::Value;

use super::count;
use super::export::Wanted;

enum Writer {
    Aep(Box<aep::write::Writer>),
    Aaep(Box<aaep::write::Writer>),
    Agui(Box<agui::write::Writer>),
}

impl Writer {
    fn new(protocol: Protocol, session: &str) -> Self {
        match protocol {
            Protocol::Aep => Self::Aep(Box::default()),
            Protocol::Aaep => Self::Aaep(Box::new(aaep::write::Writer::new("en"))),
            Protocol::Agui => Self::Agui(Box::new(agui::write::Writer::recording(session))),
        }
    }

    fn write(&mut self, activity: &Activity) -> Vec<Value> {
        match self {
            Self::Aep(writer) => writer.write(activity),
            Self::Aaep(writer) => writer.write(activity),
            Self::Agui(writer) => writer.write(activity),
        }
    }

    fn close(&mut self) -> Vec<Value> {
        match self {
            Self::Aep(writer) => writer.close(),
            Self::Aaep(writer) => writer.close(),
            Self::Agui(writer) => writer.close(),
        }
    }
}

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
        let mut writer = Writer::new(protocol, &row.session);
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
                    print(&writer.write(&activity), out)?;
                }
            }
        }
        print(&writer.close(), out)?;
    }
    for (why, number) in silent {
        writeln!(err, "{} left out: {why}.", count(number, "record"))?;
    }
    Ok(())
}

fn print(events: &[Value], out: &mut dyn Write) -> anyhow::Result<()> {
    for event in events {
        writeln!(out, "{event}")?;
    }
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
