//! Turns and subagents: how they end, and what they used up.

use serde_json::Value;

use super::{Moment, Reader, SUBAGENTS, content, count, owned, text};
use crate::activity::{Ending, Usage, What};
use crate::json;

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
    let Some(reason) = text(moment.event, "/lifecycle/reason") else { return Ending::Completed };
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
    let usage = Usage {
        provider: None,
        model: None,
        input: count(event, "input_tokens"),
        output: count(event, "output_tokens"),
        total: count(event, "total_tokens"),
        reasoning: count(event, "reasoning_tokens"),
        cache_read: count(event, "cache_read_tokens"),
        cache_write: count(event, "cache_write_tokens"),
    };
    (usage != Usage::default()).then(|| Usage {
        provider: owned(event, "/model/provider"),
        model: owned(event, "/model/id"),
        ..usage
    })
}

/// What changed: the roots, else the one folder that is named.
pub(super) fn workspace_changed(moment: Moment<'_>) -> What {
    let event = moment.event;
    let roots = json::at(event, "/workspace/roots").and_then(Value::as_array);
    let mut paths: Vec<String> =
        roots.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    if paths.is_empty() {
        let one =
            owned(event, "/workspace/project_path").or_else(|| owned(event, "/workspace/cwd"));
        paths.extend(one);
    }
    What::WorkspaceChanged {
        paths: moment.trusted("paths").unwrap_or(paths),
        reason: owned(event, "/lifecycle/reason"),
    }
}

/// Which subagent an event is about: the thread, else who runs it, else what started it.
fn subagent(event: &Value) -> Option<String> {
    owned(event, "/session/conversation_id")
        .or_else(|| owned(event, "/agent/instance_id"))
        .or_else(|| owned(event, "/session/parent/spawning_action_id"))
        .or_else(|| owned(event, "/action/id"))
}

pub(super) fn subagent_ended(moment: Moment<'_>) -> What {
    let event = moment.event;
    let Some(id) = subagent(event) else { return moment.raw("subagent.stop") };
    let entries = event.get("content").and_then(Value::as_array);
    let answers =
        entries.into_iter().flatten().any(|entry| text(entry, "/type") == Some("response"));
    let said = content(event, &["response"]).filter(|_| answers).map(Value::String);
    What::SubagentEnded { id, ending: ending(moment), result: moment.trusted("result").or(said) }
}

impl Reader {
    /// The subagent above the one that an event is about; the agent itself is none.
    pub(super) fn subagent_above(&self, event: &Value) -> Option<String> {
        let above = text(event, "/session/parent/conversation_id")?;
        self.subagents.iter().any(|known| known == above).then(|| above.to_owned())
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
        let action = owned(event, "/session/parent/spawning_action_id");
        let spawned = action.as_deref().and_then(|action| self.book.action(action));
        let of_input = |names: &[&str]| {
            let input = spawned.and_then(|action| action.input.as_ref())?;
            names.iter().find_map(|name| input.get(name)?.as_str()).map(str::to_owned)
        };
        let told: Option<Value> = moment.trusted("subagent");
        let told = |key: &str| told.as_ref().and_then(|told| owned(told, key));
        let name = told("/name").or_else(|| of_input(&["subagent_type", "agent_type", "name"]));
        let description = told("/description").or_else(|| of_input(&["description"]));
        out.push(What::SubagentStarted {
            name: name.unwrap_or_else(|| id.clone()),
            id,
            description,
            parent: moment.context.subagent.clone(),
            action,
        });
    }
}
