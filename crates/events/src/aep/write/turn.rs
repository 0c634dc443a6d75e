//! Turns, subagents, changes of the workspace, and what only has a name in another protocol.

use serde_json::{Value, json};

use super::draft::{Draft, Thread, told};
use super::{OWN, Scene, Writer};
use crate::activity::{Ending, Usage, What};
use crate::aep::event::{Type, is_response};
use crate::event::Protocol;
use crate::finding::Severity;
use crate::translate::NoteKind;
use crate::written::{Fields, Written};

/// What is known about the end of a turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct TurnEnd<'a> {
    pub(super) ending: &'a Ending,
    pub(super) summary: Option<&'a str>,
    pub(super) result: Option<&'a Value>,
    pub(super) usage: &'a [Usage],
}

/// Fields of a foreign event that mean the same in ours. Who and where are told by the envelope.
const FOREIGN: &[&str] = &[
    "content",
    "attachments",
    "metrics",
    "lifecycle",
    "action",
    "tool",
    "server",
    "skill",
    "decision",
];

/// The longest type of an event that is passed on.
const KIND_CHARS: usize = 128;

impl Writer {
    pub(super) fn turn_ended(
        &mut self,
        scene: Scene<'_>,
        end: TurnEnd<'_>,
        out: &mut Vec<Written>,
    ) {
        // Nothing has ended; the asks it waits for are told.
        if matches!(end.ending, Ending::Suspended { .. }) {
            return;
        }
        self.finish_all(scene, out);
        self.turn_open = false;
        let facts = |draft: Draft| {
            let ending = match end.ending {
                Ending::Completed | Ending::Failed { category: None, .. } => None,
                other => serde_json::to_value(other).ok(),
            };
            draft
                .usage(end.usage)
                .carry("summary", end.summary)
                .carry("result", end.result.filter(|result| !result.is_null()).cloned())
                .carry("ending", ending)
        };
        let reason = reason(end.ending);
        let stop = Draft::new("agent.stop").lifecycle("reason", Some(&reason));
        if let Ending::Failed { message, code, .. } = end.ending {
            let draft = Draft::new("agent.error").lifecycle("reason", code.as_deref());
            self.emit(scene, facts(draft.content("notification", message.as_str())), out);
            self.emit(scene, stop, out);
        } else {
            self.emit(scene, facts(stop), out);
        }
    }

    pub(super) fn subagent_started(
        &mut self,
        scene: Scene<'_>,
        what: &What,
        out: &mut Vec<Written>,
    ) {
        let What::SubagentStarted { id, name, description, parent, action } = what else { return };
        let spawning = action.as_ref().map(|action| {
            let open = self.open.get(action);
            open.map_or_else(|| action.clone(), |request| request.named.action.id.clone())
        });
        let draft = Draft::new("subagent.start")
            .carry("subagent", Some(json!({ "name": name, "description": description })));
        let thread = Thread { id: id.clone(), parent: parent.clone(), action: spawning };
        self.emit(scene, Draft { thread: Some(thread), ..draft }, out);
    }

    pub(super) fn subagent_ended(&mut self, scene: Scene<'_>, what: &What, out: &mut Vec<Written>) {
        let What::SubagentEnded { id, ending, result } = what else { return };
        let mut draft = Draft::new("subagent.stop").lifecycle("reason", Some(&reason(ending)));
        match result {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) => draft = draft.content("response", text.as_str()),
            Some(other) => {
                draft = draft.content("response", other.to_string());
                draft = draft.carry("result", Some(other.clone()));
            }
        }
        if let Ending::Failed { message, .. } = ending {
            draft = draft.content("notification", message.as_str());
        }
        if *ending != Ending::Completed {
            draft = draft.carry("ending", serde_json::to_value(ending).ok());
        }
        let thread =
            Thread { id: id.clone(), parent: scene.context.subagent.clone(), action: None };
        self.emit(scene, Draft { thread: Some(thread), ..draft }, out);
    }

    pub(super) fn workspace_changed(
        &mut self,
        scene: Scene<'_>,
        (paths, reason): (&[String], Option<&str>),
        out: &mut Vec<Written>,
    ) {
        let mut roots: Vec<_> = paths.iter().filter(|path| !path.is_empty()).collect();
        if roots.len() > 64 || roots.iter().any(|path| path.len() > 4_096) {
            self.notes.add(NoteKind::Shortened, "workspace.roots");
            roots.retain(|path| path.len() <= 4_096);
            roots.truncate(64);
        }
        let cwd = scene.context.cwd.as_deref().filter(|cwd| !cwd.is_empty());
        if cwd.is_none() && roots.is_empty() {
            let paths = paths.to_vec();
            let reason = reason.map(str::to_owned);
            self.unworded(scene, &What::WorkspaceChanged { paths, reason }, out);
            return;
        }
        let mut workspace = Fields::default();
        workspace.maybe("cwd", cwd.map(|cwd| crate::text::shorten(cwd, 4_096)));
        if !roots.is_empty() {
            workspace.put("roots", json!(roots));
        }
        let draft = Draft::new("workspace.changed")
            .lifecycle("reason", reason)
            .field("workspace", workspace)
            .carry("paths", Some(json!(paths)));
        self.emit(scene, draft, out);
    }

    /// What the protocol has no word for goes out under the name it has here.
    pub(super) fn unworded(&mut self, scene: Scene<'_>, what: &What, out: &mut Vec<Written>) {
        let (name, fields) = told(what);
        let mut draft = Draft::new(format!("x.{name}")).own("what", fields);
        if let What::Used { usage } = what {
            let metrics = super::draft::metrics(std::slice::from_ref(usage));
            if !metrics.is_empty() {
                draft = draft.field("metrics", metrics);
            }
        }
        self.emit(scene, draft, out);
    }

    /// What only its own protocol knows: as it is if that is this one, else as data.
    pub(super) fn raw(&mut self, scene: Scene<'_>, what: &What, out: &mut Vec<Written>) {
        let What::Raw { protocol: Protocol::Aep, kind, text, event: Value::Object(event) } = what
        else {
            self.unworded(scene, what, out);
            return;
        };
        if is_response(event) {
            if !self.handed_on(scene, &Value::Object(event.clone()), out) {
                self.unworded(scene, what, out);
            }
            return;
        }
        // A type that means something is told through what it means, or not at all.
        let extends = event.get("extensions").is_none_or(|it| it.is_object() || it.is_null());
        let passes = extends
            && kind.contains('.')
            && kind.len() <= KIND_CHARS
            && Type::from_alias(kind).is_none()
            && !kind.starts_with("x.ask");
        if !passes {
            self.unworded(scene, what, out);
            return;
        }
        let mut draft = Draft::new(kind.clone());
        for &field in FOREIGN {
            if let Some(value) = event.get(field).filter(|value| !value.is_null()) {
                draft.fields.put(field, value.clone());
            }
        }
        draft.extensions = match event.get("extensions") {
            Some(Value::Object(extensions)) => {
                let mut extensions = extensions.clone();
                // What others call ours is not ours.
                extensions.remove(OWN);
                (!extensions.is_empty()).then(|| Box::new(extensions))
            }
            _ => None,
        };
        if let Some(text) = text.as_deref().filter(|_| !draft.fields.has("content")) {
            draft = draft.content("notification", text);
        }
        let before = (self.seq, self.n, self.ended, out.len());
        self.emit(scene, draft, out);
        let fits = out.last().is_some_and(|event| {
            let findings = crate::check::alone(Protocol::Aep, &event.to_json());
            findings.iter().all(|finding| finding.rule.severity <= Severity::Note)
        });
        if !fits {
            (self.seq, self.n, self.ended) = (before.0, before.1, before.2);
            out.truncate(before.3);
            self.unworded(scene, what, out);
        }
    }
}

/// Why it ended, in a word or a few.
fn reason(ending: &Ending) -> String {
    match ending {
        Ending::Completed => "completed".to_owned(),
        Ending::Failed { .. } => "error".to_owned(),
        Ending::Suspended { .. } => "suspended".to_owned(),
        Ending::Cancelled { by, reason: None } => format!("cancelled by {by}"),
        Ending::Cancelled { by, reason: Some(reason) } => format!("cancelled by {by}: {reason}"),
    }
}
