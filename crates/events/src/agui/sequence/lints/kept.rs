//! A document that patches change, kept as long as it is small.

use serde_json::Value;

use crate::agui::patch::{self, PatchError, Reason};
use crate::json::View;

/// A document as it is known.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    content: Content,
    /// At most so many bytes, written out.
    bytes: usize,
    limit: usize,
}

#[derive(Debug, Clone)]
enum Content {
    /// As it came: most documents are never patched.
    Raw(Box<str>),
    Value(Value),
}

/// What became of a document.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Patched {
    /// It is another one now.
    Done,
    /// It is as it was, for this reason.
    Failed(PatchError),
    /// It may have become too large: it is not known any more.
    TooLarge,
}

impl Kept {
    /// A document; none where it is too large.
    pub(super) fn new(value: View<'_>, limit: usize) -> Option<Self> {
        let raw = value.raw();
        (raw.len() <= limit).then(|| Self {
            content: Content::Raw(raw.into()),
            bytes: raw.len(),
            limit,
        })
    }

    /// Applies a patch.
    pub(super) fn patch(&mut self, patch: View<'_>) -> Patched {
        let mut copies = false;
        self.bytes = self.bytes.saturating_add(patch.raw().len());
        for operation in patch.items() {
            // A copy can double the document however short it is.
            if operation.get("op").is_some_and(|op| op.is("copy")) {
                copies = true;
                self.bytes = self.bytes.saturating_mul(2);
            }
        }
        if self.bytes > self.limit {
            return Patched::TooLarge;
        }
        if let Content::Raw(raw) = &self.content {
            self.content = Content::Value(serde_json::from_str(raw).unwrap_or_default());
        }
        let Content::Value(value) = &mut self.content else {
            return Patched::TooLarge;
        };
        let applied = patch::apply(value, patch);
        if copies {
            self.bytes = value.to_string().len();
        }
        match applied {
            Ok(()) => Patched::Done,
            // These are bounds of our own.
            Err(PatchError { reason: Reason::Depth | Reason::Size, .. }) => Patched::TooLarge,
            Err(error) => Patched::Failed(error),
        }
    }
}
