//! A session as one AG-UI run: what happened so far, then what happens, until the turn ends or waits for a person.
//!
//! An open ask shows at once as a card. The run ends over it only when nothing else of the turn is open; what follows
//! the answer is the next run. A key that is revoked, and a gateway that stops, end the run with the reason.

use std::collections::HashSet;
use std::sync::Arc;

use banister_events::agui::write::{History, Writer};
use banister_events::finding::{Binds, Rule, Severity};
use banister_journal::Record;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::deliver::{Gone, KEEP_ALIVE, KeepAlive, Outlet};
use crate::keys::Guest;
use crate::project::Projection;
use crate::{Error, Gateway};

/// The name of the event that tells what became of the answers a run came with.
pub(crate) const RESUMED: &str = "banister.resume";

/// Nothing of that name was ever asked.
pub static UNKNOWN: Rule = Rule {
    code: "RESUME-01",
    severity: Severity::Error,
    opt_in: false,
    binds: Binds::Subscriber,
    text: "An entry of resume is about an interrupt of the session",
    remedy: "Answer the interrupts that the last run ended with, by their ids",
};
/// The answer is none to what was asked.
pub static UNFIT: Rule = Rule {
    code: "RESUME-02",
    severity: Severity::Error,
    opt_in: false,
    binds: Binds::Subscriber,
    text: "The payload of an entry of resume fits the interrupt's responseSchema",
    remedy: "Send a payload that the interrupt's responseSchema describes",
};

/// An interrupt is open, and nothing answers it.
pub static UNCOVERED: Rule = Rule {
    code: "RESUME-03",
    severity: Severity::Error,
    opt_in: false,
    binds: Binds::Subscriber,
    text: "resume has an entry for every interrupt of the run that is open",
    remedy: "Answer or cancel every interrupt that the last run ended with",
};

/// The rules about `resume`.
pub static RULES: [&Rule; 3] = [&UNKNOWN, &UNFIT, &UNCOVERED];

/// A run that a client asked for.
pub(crate) struct AttachedRun {
    /// The session.
    pub(crate) session: String,
    /// Writes the run.
    pub(crate) writer: Writer,
    /// Where it goes.
    pub(crate) outlet: Outlet,
    /// What became of the answers it came with.
    pub(crate) resumed: Vec<Value>,
    /// What the client said it has.
    pub(crate) input: Value,
    /// Who asked.
    pub(crate) guest: Guest,
}

/// Why a run was not streamed to its end.
enum RunFailure {
    Gone,
    Unread(Error),
}

impl From<Gone> for RunFailure {
    fn from(_: Gone) -> Self {
        Self::Gone
    }
}

impl From<Error> for RunFailure {
    fn from(error: Error) -> Self {
        Self::Unread(error)
    }
}

/// What a client has to drop before it gets all messages, so that it has them in this order: it keeps those it has
/// where they are, and appends the others. None where that is right already. `has` is what it sent, which never has
/// cards; where all cards of the thread are among the messages, those go as well.
pub(crate) fn dropping(messages: &[Value], has: &HashSet<&str>, all_cards: bool) -> Option<Value> {
    let word = |message: &'_ Value, name: &str| {
        message.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let is_card = |message: &Value| word(message, "role") == "activity";
    let sent = |message: &Value| has.contains(word(message, "id").as_str());
    let missing = messages.iter().position(|it| !is_card(it) && !sent(it))?;
    let kept = messages.iter().rposition(|it| if is_card(it) { all_cards } else { sent(it) })?;
    if kept < missing || !messages.iter().any(sent) {
        return None;
    }
    let owned = if all_cards { Value::Null } else { json!([]) };
    Some(json!({
        "type": "MESSAGES_SNAPSHOT",
        "messages": messages.get(..missing).unwrap_or_default(),
        "metadata": { "@ag-ui/client": { "authoritativeActivityTypes": owned } },
    }))
}

/// The ids of the messages that an input has.
pub(crate) fn sent(input: &Value) -> HashSet<&str> {
    let messages = input.get("messages").and_then(Value::as_array);
    messages.into_iter().flatten().filter_map(|message| message.get("id")?.as_str()).collect()
}

impl Gateway {
    /// Streams one session as an AG-UI run until its turn ends or waits, its key is revoked or the gateway stops.
    pub(crate) async fn attach(self: Arc<Self>, mut run: AttachedRun, stop: CancellationToken) {
        let guest = run.guest.clone();
        let streamed = tokio::select! {
            () = stop.cancelled() => {
                return run.outlet.fail("shutdown", "the gateway stops; run again once it is back");
            }
            () = self.keys.gone(&guest) => {
                return run.outlet.fail("revoked", "the key of this run was revoked");
            }
            streamed = self.stream_run(&mut run) => streamed,
        };
        if let Err(RunFailure::Unread(error)) = streamed {
            tracing::error!(%error, "A session could not be read.");
            run.outlet.fail("internal", "the session could not be read");
        }
    }

    async fn stream_run(&self, run: &mut AttachedRun) -> Result<(), RunFailure> {
        let AttachedRun { session, writer, outlet, resumed, input, .. } = run;
        let mut bell = self.hub.bell();
        let end = *bell.borrow_and_update();
        let mut projection = Projection::new(Arc::clone(&self.agents));
        let mut history = History::default();
        let mut seq = 0;
        let mut last = 0;
        loop {
            let batch = self.session_after(session, seq).await?;
            let Some(newest) = batch.last() else { break };
            seq = newest.seq;
            for record in &batch {
                last = last.max(record.position);
                for activity in projection.next(record) {
                    history.add(&activity);
                }
            }
        }
        let mut events = writer.begin(&history);
        let restated = |event: &Value| event.get("messages")?.as_array().cloned();
        if let Some(messages) = events.get(1).and_then(restated)
            && let Some(first) = dropping(&messages, &sent(input), true)
        {
            events.insert(1, first);
        }
        if !resumed.is_empty() {
            let outcomes = json!({ "type": "CUSTOM", "name": RESUMED, "value": resumed });
            events.insert(events.len().min(1), outcomes);
        }
        if projection.waits() {
            events.extend(writer.interrupt());
        }
        if !history.turn_open() && !writer.is_finished() {
            writer.finish(None, &mut events);
        }
        drop(history);
        outlet.send(&events).await?;
        let mut position = last.max(end);
        let mut keep_alive = outlet.keep_alive(KEEP_ALIVE);
        while !outlet.is_ended() {
            let batch = self.next_of(&mut position, &mut bell, &mut keep_alive).await?;
            let mut events = Vec::new();
            let new = |record: &&Arc<Record>| record.session == *session && record.seq > seq;
            for record in batch.iter().filter(new) {
                let parsed = self.hub.message(record.position);
                for activity in projection.next_parsed(record, parsed.as_ref()) {
                    events.extend(writer.write(&activity));
                }
            }
            // Only now: what was asked may have been answered since. What others ask can not be answered here.
            if projection.waits() {
                events.extend(writer.interrupt());
            }
            if !events.is_empty() {
                keep_alive.renew();
            }
            outlet.send(&events).await?;
        }
        Ok(())
    }

    /// Waits for records after `position`, saying now and then that the stream is alive.
    async fn next_of(
        &self,
        position: &mut u64,
        bell: &mut watch::Receiver<u64>,
        keep_alive: &mut KeepAlive,
    ) -> Result<Vec<Arc<Record>>, RunFailure> {
        loop {
            let published = *bell.borrow_and_update();
            if published > *position {
                let mut batch = self.after(*position).await?;
                // What is in the journal and not yet published comes with the next ring of the bell.
                batch.retain(|record| record.position <= published);
                if let Some(newest) = batch.last() {
                    *position = newest.position;
                    return Ok(batch);
                }
            }
            keep_alive.wait(bell).await?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_drops_what_comes_after_something_that_it_lacks() {
        let message = |id: &str, role: &str| json!({ "id": id, "role": role });
        let all = [
            message("u", "user"),
            message("m", "assistant"),
            message("x", "tool"),
            message("a", "activity"),
        ];
        let ids = |has: &[&'static str], cards| {
            let event = dropping(&all, &has.iter().copied().collect(), cards)?;
            let kept = event["messages"].as_array()?.iter();
            Some(kept.map(|it| it["id"].as_str().unwrap_or_default().to_owned()).collect())
        };
        let kept: Option<Vec<String>> = ids(&["u", "m"], true);
        assert_eq!(kept, Some(vec!["u".to_owned(), "m".to_owned()]), "it may have the card");
        assert_eq!(ids(&["u", "m"], false), None, "whose cards they are is not known");
        assert_eq!(ids(&["u", "x"], false), Some(vec!["u".to_owned()]));
        assert_eq!(ids(&["u", "m", "x"], true), None, "it lacks nothing");
        assert_eq!(ids(&[], true), None, "it has nothing");
    }
}
