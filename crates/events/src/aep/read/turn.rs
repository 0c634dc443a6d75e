//! Turns and subagents: how they end, and what they used up.

use std::borrow::Cow;

use serde_json::Value;

use super::{Moment, Reader, SUBAGENTS, content, count};
use crate::activity::{Ending, Usage, What};
use crate::json::View;

/// The end of a turn.
pub(super) fn ended(moment: Moment<'_>, ending: Ending) -> What {
    let used = || usage(moment).into_iter().collect();
    What::TurnEnded {
        ending,
        summary: moment.trusted("summary"),
        result: moment.trusted("result"),
        usage: moment.trusted("usage").unwrap_or_else(used),
    }
}

/// How a turn or a subagent ended, by the reason that is given. Reasons of vendors are all a completion of some kind,
/// unless they say otherwise.
pub(super) fn ending(moment: Moment<'_>) -> Ending {
    match moment.trusted("ending") {
        None | Some(Ending::Completed) => {}
        Some(known) => return known,
    }
    let Some(reason) = moment.event.text("/lifecycle/reason") else { return Ending::Completed };
    let reason = &*reason;
    let cancelled = |by: &str, reason: Option<&str>| Ending::Cancelled {
        by: by.to_owned(),
        reason: reason.map(str::to_owned),
    };
    let begins =
        |start: &str| reason.get(..start.len()).is_some_and(|it| it.eq_ignore_ascii_case(start));
    match reason {
        "error" | "failed" | "failure" => {
            let said = content(moment.event, &["notification"]);
            Ending::failed(said.unwrap_or_else(|| reason.to_owned()))
        }
        "timeout" => cancelled("timeout", None),
        "truncated" => cancelled("system", Some(reason)),
        _ if begins("cancelled by ") => {
            let rest = reason.get("cancelled by ".len()..).unwrap_or_default();
            match rest.split_once(": ") {
                Some((by, why)) => cancelled(by, Some(why)),
                None => cancelled(rest, None),
            }
        }
        _ if begins("cancel") || begins("abort") || begins("interrupt") => {
            cancelled("user", Some(reason))
        }
        _ => Ending::Completed,
    }
}

/// What was used up, if the metrics say so.
pub(super) fn usage(moment: Moment<'_>) -> Option<Usage> {
    let event = moment.event;
    let metrics = event.get("metrics")?;
    let usage = Usage {
        provider: None,
        model: None,
        input: count(metrics, "input_tokens"),
        output: count(metrics, "output_tokens"),
        total: count(metrics, "total_tokens"),
        reasoning: count(metrics, "reasoning_tokens"),
        cache_read: count(metrics, "cache_read_tokens"),
        cache_write: count(metrics, "cache_write_tokens"),
    };
    (usage != Usage::default()).then(|| Usage {
        provider: event.owned("/model/provider"),
        model: event.owned("/model/id"),
        ..usage
    })
}

/// What changed: the roots, else the one folder that is named.
pub(super) fn workspace_changed(moment: Moment<'_>) -> What {
    let event = moment.event;
    let roots = event.at("/workspace/roots").into_iter().flat_map(View::items);
    let mut paths: Vec<String> = roots.filter_map(View::as_str).map(Cow::into_owned).collect();
    if paths.is_empty() {
        let one = event.owned("/workspace/project_path").or_else(|| event.owned("/workspace/cwd"));
        paths.extend(one);
    }
    What::WorkspaceChanged {
        paths: moment.trusted("paths").unwrap_or(paths),
        reason: event.owned("/lifecycle/reason"),
    }
}

/// Which subagent an event is about: the thread, else who runs it, else what started it.
fn subagent(event: View<'_>) -> Option<String> {
    event
        .owned("/session/conversation_id")
        .or_else(|| event.owned("/agent/instance_id"))
        .or_else(|| event.owned("/session/parent/spawning_action_id"))
        .or_else(|| event.owned("/action/id"))
}

pub(super) fn subagent_ended(moment: Moment<'_>) -> What {
    let event = moment.event;
    let Some(id) = subagent(event) else { return moment.raw("subagent.stop") };
    let mut entries = event.get("content").into_iter().flat_map(View::items);
    let answers = entries.any(|entry| entry.get("type").is_some_and(|kind| kind.is("response")));
    let said = content(event, &["response"]).filter(|_| answers).map(Value::String);
    What::SubagentEnded { id, ending: ending(moment), result: moment.trusted("result").or(said) }
}

impl Reader {
    /// The subagent above the one that an event is about; the agent itself is none.
    pub(super) fn subagent_above<'a>(&self, event: View<'a>) -> Option<Cow<'a, str>> {
        let above = event.text("/session/parent/conversation_id")?;
        self.subagents.iter().any(|known| **known == *above).then_some(above)
    }

    pub(super) fn subagent_started(&mut self, moment: Moment<'_>, out: &mut Vec<What>) {
        let event = moment.event;
        let Some(id) = subagent(event) else {
            out.push(moment.raw("subagent.start"));
            return;
        };
        if !self.subagents.contains(&id) {
            self.subagents.push_back(id.clone());
            if self.subagents.len() > SUBAGENTS {
                self.subagents.pop_front();
            }
        }
        let action = event.owned("/session/parent/spawning_action_id");
        let spawned = action.as_deref().and_then(|action| self.book.action(action));
        let of_input = |names: &[&str]| {
            let input = spawned.and_then(|action| action.input.as_ref())?;
            names.iter().find_map(|name| input.get(name)?.as_str()).map(str::to_owned)
        };
        let told: Option<Value> = moment.trusted("subagent");
        let told = |key: &str| Some(told.as_ref()?.get(key)?.as_str()?.to_owned());
        let name = told("name").or_else(|| of_input(&["subagent_type", "agent_type", "name"]));
        let description = told("description").or_else(|| of_input(&["description"]));
        out.push(What::SubagentStarted {
            name: name.unwrap_or_else(|| id.clone()),
            id,
            description,
            parent: moment.context.subagent.clone(),
            action,
        });
    }
}
