//! The fields at the top of a message, found in one pass.
//!
//! Conditions between fields and the order of events look at the same few fields: nobody searches the object again.
//! Where a name stands twice, the last one counts, as everywhere.

use crate::json::View;

macro_rules! parts {
    ($($field:ident = $name:literal),* $(,)?) => {
        /// What stands at the top of an event or a hook response.
        #[derive(Clone, Copy, Default)]
        pub(in crate::aep) struct Parts<'a> {
            $(pub(in crate::aep) $field: Option<View<'a>>,)*
        }

        impl<'a> Parts<'a> {
            /// The parts of an object; none of any other value.
            pub(in crate::aep) fn of(object: View<'a>) -> Self {
                let mut parts = Self::default();
                for (name, value) in object.entries() {
                    match name.as_str().as_deref() {
                        $(Some($name) => parts.$field = Some(value),)*
                        _ => {}
                    }
                }
                parts
            }
        }
    };
}

parts! {
    aep_version = "aep_version",
    id = "id",
    kind = "type",
    time = "time",
    agent = "agent",
    session = "session",
    user = "user",
    workspace = "workspace",
    action = "action",
    tool = "tool",
    server = "server",
    skill = "skill",
    content = "content",
    attachments = "attachments",
    decision = "decision",
    lifecycle = "lifecycle",
    extensions = "extensions",
    control = "control",
    request_event_id = "request_event_id",
    action_id = "action_id",
}

impl Parts<'_> {
    /// Whether the message is a hook response: those travel among events and have no type. What names the event that
    /// it answers is one, even where it forgot to say what to do.
    pub(in crate::aep) fn is_response(&self) -> bool {
        self.kind.is_none() && (self.control.is_some() || self.request_event_id.is_some())
    }
}
