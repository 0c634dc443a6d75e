//! What is open in one turn, and which ids were used.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::aaep::coalesce::Coalescer;
use crate::activity::{Action, Gate};
use crate::id;
use crate::text::Redactor;

/// The states that the writer itself goes through. Agents may name others.
pub(super) mod state {
    pub(in crate::aaep::write) const IDLE: &str = "idle";
    pub(in crate::aaep::write) const THINKING: &str = "thinking";
    pub(in crate::aaep::write) const CALLING_TOOL: &str = "calling_tool";
    pub(in crate::aaep::write) const WRITING_OUTPUT: &str = "writing_output";
    pub(in crate::aaep::write) const AWAITING_INPUT: &str = "awaiting_input";
    pub(in crate::aaep::write) const DECIDING: &str = "deciding";
    pub(in crate::aaep::write) const HANDING_OFF: &str = "handing_off";
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Turn {
    pub(super) session_id: String,
    pub(super) sequence: u64,
    pub(super) state: String,
    pub(super) began: Timestamp,
    /// The time of the last event.
    pub(super) last: Timestamp,
    /// Action id → the call that was announced.
    pub(super) tools: BTreeMap<String, Call>,
    /// How many calls were announced.
    pub(super) calls: u64,
    pub(super) call_ids: Ids,
    pub(super) output_ids: Ids,
    /// Actions that may not run before a person says so.
    pub(super) held: BTreeMap<String, (Action, Gate)>,
    /// Actions that a person accepted before they were requested.
    pub(super) granted: VecDeque<Grant>,
    /// Actions that were refused: an end that is reported all the same is not announced.
    pub(super) refused: VecDeque<String>,
    /// Ask id → what waits.
    pub(super) waits: BTreeMap<String, Wait>,
    /// What was asked since nothing waited, and how often.
    pub(super) words: BTreeMap<String, u32>,
    pub(super) output: Option<Output>,
    /// The last percentage that was told, and when.
    pub(super) percent: Option<(f64, Timestamp)>,
}

impl Turn {
    pub(super) fn new(session_id: String, time: Timestamp) -> Self {
        Self {
            session_id,
            sequence: 0,
            state: state::IDLE.to_owned(),
            began: time,
            last: time,
            tools: BTreeMap::new(),
            calls: 0,
            call_ids: Ids::default(),
            output_ids: Ids::default(),
            held: BTreeMap::new(),
            granted: VecDeque::new(),
            refused: VecDeque::new(),
            waits: BTreeMap::new(),
            words: BTreeMap::new(),
            output: None,
            percent: None,
        }
    }

    /// Remembers that an action must not run; of very many, the oldest are let go.
    pub(super) fn refuse(&mut self, action: &str) {
        if !self.is_refused(action) {
            if self.refused.len() >= REMEMBERED {
                self.refused.pop_front();
            }
            self.refused.push_back(action.to_owned());
        }
    }

    pub(super) fn is_refused(&self, action: &str) -> bool {
        self.refused.iter().any(|refused| refused == action)
    }

    /// Takes the consent to exactly this action, if there is one.
    pub(super) fn take_grant(&mut self, action: &Action) -> Option<Grant> {
        let same = |grant: &Grant| {
            let asked = &grant.action;
            asked.id == action.id
                && asked.tool == action.tool
                && asked.server == action.server
                && asked.input == action.input
        };
        let at = self.granted.iter().position(same)?;
        self.granted.remove(at)
    }
}

/// How many ids, refusals and consents are remembered.
pub(super) const REMEMBERED: usize = 4_096;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Call {
    pub(super) tool: String,
    /// The tool's name for people.
    pub(super) title: String,
    pub(super) id: String,
}

/// A yes that was given before the action was requested.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Grant {
    pub(super) ask: String,
    pub(super) action: Action,
    pub(super) gate: Option<Gate>,
}

/// Something that waits on a person.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Wait {
    /// The action that is asked about: an answer confirms nothing else.
    pub(super) action: Option<Action>,
    /// What was told about the action.
    pub(super) gate: Option<Gate>,
    /// Whether a yes or no is asked for.
    pub(super) confirmation: bool,
    pub(super) asked: Timestamp,
    pub(super) deadline: Timestamp,
    /// How often it was told that time runs out.
    pub(super) told: u8,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Output {
    pub(super) message: String,
    pub(super) id: String,
    pub(super) position: usize,
    pub(super) coalescer: Coalescer,
    pub(super) redactor: Redactor,
    /// What may be shown, and waits for a place where it can be cut.
    pub(super) ready: String,
    /// The message's own id, if it has to travel with the first chunk.
    pub(super) origin: Option<String>,
}

/// Ids that were used. What fits and is new is kept, everything else gets an id of its own.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Ids(BTreeSet<String>);

impl Ids {
    /// The foreign id if it has AAEP's shape and is new, else the derived one.
    pub(super) fn take(
        &mut self,
        prefix: &str,
        foreign: &str,
        derived: impl FnOnce() -> String,
    ) -> String {
        let full = self.0.len() >= REMEMBERED;
        if !full && id::conforms(prefix, foreign) && self.0.insert(foreign.to_owned()) {
            return foreign.to_owned();
        }
        let mut own = derived();
        while self.0.contains(&own) {
            own = id::derive(prefix, &[&own]);
        }
        if !full {
            self.0.insert(own.clone());
        }
        own
    }
}
