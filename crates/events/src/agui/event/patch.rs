//! JSON Patch operations (RFC 6902). Applying them is not done here.

use serde_json::Value;

use super::declare::{Union, member, union};
use super::kinds::list;
use crate::check::shape::Kind;

/// A list of operations.
pub(super) const PATCH: Kind = list(&PatchOperation::KIND);

const POINTER: Kind = Kind::Format {
    looks: "a JSON Pointer",
    fits: is_pointer,
    pattern: "^(/([^/~]|~[01])*)*$",
    format: "",
};

member! {
    /// A place, and the value that belongs there.
    pub PatchValue {
        /// The place, as a JSON Pointer.
        must path: String = POINTER,
        /// The value; null is one.
        must value: Value = Kind::Any,
    }

    /// A place.
    pub PatchPath {
        /// The place, as a JSON Pointer.
        must path: String = POINTER,
    }

    /// A place, and another that its value comes from.
    pub PatchFrom {
        /// Where the value comes from, as a JSON Pointer.
        must from: String = POINTER,
        /// Where it goes to, as a JSON Pointer.
        must path: String = POINTER,
    }
}

union! {
    /// One operation of a patch. Operations are the only objects of the protocol that may carry fields of one's own.
    ///
    /// ```
    /// use banister_events::agui::event::{PatchOperation, PatchValue};
    /// let add = PatchOperation::Add(PatchValue::new("/rows/-", None::<bool>));
    /// assert_eq!(serde_json::to_string(&add)?, r#"{"op":"add","path":"/rows/-","value":null}"#);
    /// assert!(serde_json::from_str::<PatchOperation>(r#"{"op": "add", "path": "/rows/-"}"#).is_err());
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub open PatchOperation by may "op" {
        /// A value is put in.
        Add(PatchValue) = "add",
        /// A value takes the place of another.
        Replace(PatchValue) = "replace",
        /// Nothing changes, unless the value there is another: then the whole patch fails.
        Test(PatchValue) = "test",
        /// A value is taken out.
        Remove(PatchPath) = "remove",
        /// A value changes its place.
        Move(PatchFrom) = "move",
        /// A value is put in a second place.
        Copy(PatchFrom) = "copy",
    }
}

fn is_pointer(text: &str) -> bool {
    let mut tildes = text.split('~');
    let is_rooted = text.is_empty() || text.starts_with('/');
    is_rooted && tildes.next().is_some() && tildes.all(|rest| rest.starts_with(['0', '1']))
}
