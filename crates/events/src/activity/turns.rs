//! Which turn of a session is open, since when, and what waits on a person.
//!
//! A turn begins with a request, or with the first thing that an agent does without a request that was seen. It ends
//! with its own end, with the end of the session, or with the next request. What waits on a person keeps waiting after
//! the end of its turn, until it is closed.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Activity, Ending, Role, What};
use crate::text;

/// How many open asks are remembered.
const ASKS: usize = 4_096;
/// How much of a text is looked at, to see whether there is anything in it.
const LOOKED_AT: usize = 64;

/// The turns of one session, after the activities that were added so far.
///
/// ```
/// use banister_events::activity::Turns;
/// let turns = Turns::default();
/// assert!(turns.open().is_none() && !turns.is_waiting());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turns {
    open: Option<OpenTurn>,
    /// The last turn that ended: the records that it began and ended with.
    ended: Option<(u64, u64)>,
    asks: BTreeMap<String, Timestamp>,
}

/// A turn that has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenTurn {
    /// The number of the record that it began with.
    pub seq: u64,
    /// When it began.
    pub since: Timestamp,
    /// Whether it began with a request. If not, the agent acted without a request that was seen.
    pub requested: bool,
    /// The record that the turn before it began with, where that one ended with the record that this one began with.
    pub follows: Option<u64>,
}

impl Turns {
    /// Takes the session's next activity. Says whether a turn began with it.
    pub fn add(&mut self, activity: &Activity) -> bool {
        let Activity { origin, what, .. } = activity;
        match what {
            What::AskOpened { ask } if self.asks.len() < ASKS => {
                self.asks.entry(ask.id.clone()).or_insert(origin.time);
            }
            What::AskClosed { id, .. } => {
                self.asks.remove(id);
            }
            _ => {}
        }
        let requested = matches!(what, What::TurnStarted { .. });
        let begins = requested || self.open.is_none() && what.is_work();
        if (begins || what.ends_turn())
            && let Some(turn) = self.open.take()
        {
            self.ended = Some((turn.seq, origin.seq));
        }
        if begins {
            let follows =
                self.ended.filter(|(_, last)| *last == origin.seq).map(|(first, _)| first);
            let (seq, since) = (origin.seq, origin.time);
            self.open = Some(OpenTurn { seq, since, requested, follows });
        }
        begins
    }

    /// The turn that is open.
    pub fn open(&self) -> Option<OpenTurn> {
        self.open
    }

    /// Whether anything waits on a person.
    pub fn is_waiting(&self) -> bool {
        !self.asks.is_empty()
    }

    /// The asks that are open, by their ids, and when each was opened.
    pub fn asks(&self) -> impl Iterator<Item = (&str, Timestamp)> {
        self.asks.iter().map(|(id, since)| (id.as_str(), *since))
    }
}

impl What {
    /// Whether the turn that is open ends with it. A turn that is suspended goes on with the answers it waits for.
    pub fn ends_turn(&self) -> bool {
        match self {
            Self::TurnEnded { ending, .. } => !matches!(ending, Ending::Suspended { .. }),
            Self::SessionEnded { .. } => true,
            _ => false,
        }
    }

    /// Whether it shows that an agent is at work, so that it begins a turn where none is open. News about the
    /// surroundings, and what other people say, does not.
    fn is_work(&self) -> bool {
        match self {
            Self::Said { role, .. } => *role == Role::Assistant,
            Self::StateChanged { state, .. } => has_text(state),
            Self::Progressed { percent, step, description, .. } => {
                percent.is_some_and(f64::is_finite)
                    || step.is_some_and(|step| (1..=1 << 53).contains(&step))
                    || description.as_deref().is_some_and(has_text)
            }
            Self::Planned { .. }
            | Self::ActionRequested { .. }
            | Self::ActionEnded { .. }
            | Self::ActionDenied { .. }
            | Self::AskOpened { .. }
            | Self::HandedOff { .. }
            | Self::StepStarted { .. }
            | Self::SubagentStarted { .. }
            | Self::SubagentEnded { .. }
            | Self::Erred { .. } => true,
            Self::SessionStarted { .. }
            | Self::SessionEnded { .. }
            | Self::TurnStarted { .. }
            | Self::TurnEnded { .. }
            | Self::StepEnded { .. }
            | Self::Thought { .. }
            | Self::ActionDrafted { .. }
            | Self::AskClosed { .. }
            | Self::StateSet { .. }
            | Self::StatePatched { .. }
            | Self::MessagesSet { .. }
            | Self::CardShown { .. }
            | Self::CardPatched { .. }
            | Self::Compacted { .. }
            | Self::WorkspaceChanged { .. }
            | Self::Notified { .. }
            | Self::Used { .. }
            | Self::Raw { .. } => false,
        }
    }
}

fn has_text(text: &str) -> bool {
    !text::for_people(text, LOOKED_AT).trim().is_empty()
}

#[cfg(test)]
#[path = "turns_tests.rs"]
mod tests;
