//! One declaration of an object, three uses: a Rust type, the table that messages are checked with, a JSON Schema.
//!
//! `record!` declares an object that stands on its own, `part!` fields that stand beside others in one object,
//! `words!` a set of words. Comments on fields are what Rust documentation and schemas say about them.
//!
//! ```text
//! record! {
//!     /// Who emits events.
//!     pub strict Producer {
//!         /// A stable name of the agent, never with its version in it.
//!         must agent_id: String = NAME,
//!         /// What kind of producer it is.
//!         may kind as "type": String = NAME,
//!     }
//! }
//! ```
//!
//! gives the struct `Producer` with serde, `Producer::FIELDS` and `Producer::SHAPE` for the check, and through them
//! the schema.
//!
//! Decoding is for reading, not for judging: it fails only where a value cannot be held by its type or a required
//! one is not there, and whatever a record does not know is kept and written again. Judging is up to
//! [`crate::check`].
//!
//! | keyword | effect |
//! |---|---|
//! | `must` | required; a plain field |
//! | `may` | optional; an [`Option`] that is left out when it is `None` |
//! | `strict` | null is no value of a field, unless the field takes any JSON |
//! | `lenient` | null is read as absence, and written again as it came |

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::check::shape::{Field, Shape};
use crate::json::Parser;

/// Why bytes are not the message they should be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// They are no JSON.
    #[error("the message is not JSON: {0}")]
    Json(#[from] crate::json::Error),
    /// A field is missing or of another type.
    #[error("the message does not decode: {0}")]
    Field(#[from] serde_json::Error),
}

/// A message as it came, and what it says.
///
/// Reading a message never costs its bytes: signatures, hashes and records are made over what was sent.
///
/// ```
/// use banister_events::aep::event::Event;
/// use banister_events::record::Kept;
/// let sent = br#"{"aep_version": "0.1", "id": "evt_1", "type": "agent.stop",
///     "time": "2026-01-31T12:00:00Z", "agent": {"slug": "cursor"}}"#;
/// let kept = Kept::<Event>::parse(sent.as_slice())?;
/// assert_eq!(kept.view.agent.slug, "cursor");
/// assert_eq!(&*kept.bytes, sent);
/// # Ok::<(), banister_events::record::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Kept<T> {
    /// What was sent, to the byte.
    pub bytes: Box<[u8]>,
    /// What it says.
    pub view: T,
}

impl<T: DeserializeOwned> Kept<T> {
    /// Decodes a message and keeps its bytes.
    pub fn parse(bytes: impl Into<Box<[u8]>>) -> Result<Self, Error> {
        let bytes = bytes.into();
        let view = parse(&bytes)?;
        Ok(Self { bytes, view })
    }
}

/// Decodes a message. What is JSON is decided by [`crate::json`], as for the checks.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    let value = Parser::default().parse(bytes)?.root().to_value();
    Ok(serde_json::from_value(value)?)
}

/// What a declaration says, as data.
pub(crate) trait Record {
    /// What it is, for schemas.
    const ABOUT: &'static str;
    /// The table that messages are compared with.
    const FIELDS: &'static [Field];
    /// Nothing but these fields.
    const SHAPE: Shape = Shape { parts: &[Self::FIELDS], closed: true };
    /// These fields and any others.
    const OPEN: Shape = Shape { parts: &[Self::FIELDS], closed: false };
}

/// Takes a field out of an object; null is a value like any other.
pub(crate) fn strict<T: DeserializeOwned>(
    object: &mut Map<String, Value>,
    name: &str,
) -> Result<Option<T>, serde_json::Error> {
    let Some(value) = object.shift_remove(name) else { return Ok(None) };
    let decoded =
        T::deserialize(&value).or_else(|error| whole(&value).map_or(Err(error), T::deserialize));
    decoded.map(Some).map_err(|error| serde::de::Error::custom(format_args!("{name}: {error}")))
}

/// Takes a field out of an object; null stays where it is unless the field takes any JSON.
pub(crate) fn lenient<T: DeserializeOwned>(
    object: &mut Map<String, Value>,
    name: &str,
) -> Result<Option<T>, serde_json::Error> {
    match object.get(name) {
        Some(Value::Null) if T::deserialize(Value::Null).is_err() => Ok(None),
        _ => strict(object, name),
    }
}

/// A number such as `3.0` as `3`, alone or in a list: JSON does not tell them apart.
fn whole(value: &Value) -> Option<Value> {
    if let Value::Array(items) = value {
        return Some(
            items.iter().map(|item| whole(item).unwrap_or_else(|| item.clone())).collect(),
        );
    }
    let number = value.as_f64().filter(|number| value.is_f64() && number.fract() == 0.0)?;
    // Beyond this, doubles skip whole numbers.
    let exact = number.abs() <= 9_007_199_254_740_992.0;
    #[expect(clippy::cast_possible_truncation, reason = "whole and in range, as was just seen")]
    exact.then(|| Value::from(number as i64))
}

/// The error for a required field that is not there.
pub(crate) fn missing(name: &str) -> serde_json::Error {
    serde::de::Error::custom(format_args!("{name}: missing"))
}

/// Takes the `type` out of a message that is known by it.
pub(crate) fn tag(object: &mut Map<String, Value>, tag: &str) -> Result<(), serde_json::Error> {
    let found: String = strict(object, "type")?.ok_or_else(|| missing("type"))?;
    if found == tag {
        return Ok(());
    }
    Err(serde::de::Error::custom(format_args!("type: {tag} is expected, not {found:?}")))
}

/// The name of a field on the wire.
macro_rules! wire {
    ($name:ident) => {
        stringify!($name)
    };
    ($name:ident $wire:literal) => {
        $wire
    };
}

/// The type of a field.
macro_rules! slot {
    (must $type:ty) => { $type };
    (may $type:ty) => { Option<$type> };
}

/// Whether a field is required.
macro_rules! required {
    (must) => {
        true
    };
    (may) => {
        false
    };
}

/// Takes a field out of an object.
macro_rules! take {
    (must $mode:ident, $object:ident, $wire:expr) => {
        $crate::record::$mode($object, $wire)?.ok_or_else(|| $crate::record::missing($wire))?
    };
    (may $mode:ident, $object:ident, $wire:expr) => {
        $crate::record::$mode($object, $wire)?
    };
}

/// Writes a field.
macro_rules! put {
    (must $value:expr, $out:ident, $wire:expr) => {
        $out.serialize_entry($wire, &$value)?
    };
    (may $value:expr, $out:ident, $wire:expr) => {
        if let Some(value) = &$value {
            $out.serialize_entry($wire, value)?;
        }
    };
}

/// The table of a record's fields, and how they are taken out of an object and written.
macro_rules! fields {
    (
        $mode:ident $Record:ident [$($about:literal)*] [$($tag:literal)?] [$($rest:ident)?]
        $($need:ident $name:ident [$($wire:literal)?] [$($doc:literal)*] $kind:expr;)*
    ) => {
        impl $crate::record::Record for $Record {
            const ABOUT: &'static str = concat!($($about, "\n"),*);
            const FIELDS: &'static [$crate::check::shape::Field] = &[
                $($crate::check::shape::Field {
                    name: "type",
                    required: true,
                    kind: $crate::check::shape::Kind::Word(&[$tag]),
                    about: "Which message this is.",
                },)?
                $($crate::check::shape::Field {
                    name: $crate::record::wire!($name $($wire)?),
                    required: $crate::record::required!($need),
                    kind: $kind,
                    about: concat!($($doc, "\n"),*),
                },)*
            ];
        }

        impl $Record {
            /// Takes what it knows out of an object; the rest stays.
            pub(crate) fn take(
                object: &mut serde_json::Map<String, serde_json::Value>,
            ) -> Result<Self, serde_json::Error> {
                $($crate::record::tag(object, $tag)?;)?
                Ok(Self {
                    $($name: $crate::record::take!(
                        $need $mode, object, $crate::record::wire!($name $($wire)?)
                    ),)*
                    $($rest: std::mem::take(object),)?
                })
            }

            /// Writes its fields in the order of the table.
            pub(crate) fn put<M: serde::ser::SerializeMap>(&self, out: &mut M) -> Result<(), M::Error> {
                $(out.serialize_entry("type", $tag)?;)?
                $($crate::record::put!(
                    $need self.$name, out, $crate::record::wire!($name $($wire)?)
                );)*
                $(for (name, value) in &self.$rest {
                    out.serialize_entry(name, value)?;
                })?
                Ok(())
            }
        }
    };
}

/// Declares fields that stand beside others in one object.
macro_rules! part {
    ($(
        $(#[doc = $about:literal])*
        $(#[derive($Default:ident)])?
        pub $mode:ident $Record:ident {
            $($(#[doc = $doc:literal])*
            $need:ident $name:ident $(as $wire:literal)? : $type:ty = $kind:expr,)*
        }
    )*) => {$(
        $(#[doc = $about])*
        #[derive(Debug, Clone, PartialEq $(, $Default)?)]
        pub struct $Record {
            $($(#[doc = $doc])* pub $name: $crate::record::slot!($need $type),)*
        }

        $crate::record::fields! {
            $mode $Record [$($about)*] [] []
            $($need $name [$($wire)?] [$($doc)*] $kind;)*
        }
    )*};
}

/// Declares objects. One with `= "…"` behind its name is a message that is known by this `type`.
macro_rules! record {
    ($(
        $(#[doc = $about:literal])*
        $(#[derive($Default:ident)])?
        pub $mode:ident $Record:ident $(= $tag:literal)? {
            $($(#[doc = $doc:literal])*
            $need:ident $name:ident $(as $wire:literal)? : $type:ty = $kind:expr,)*
        }
    )*) => {$(
        $(#[doc = $about])*
        #[derive(Debug, Clone, PartialEq $(, $Default)?)]
        pub struct $Record {
            $($(#[doc = $doc])* pub $name: $crate::record::slot!($need $type),)*
            /// Every field that is not known here, as it came.
            pub unknown: serde_json::Map<String, serde_json::Value>,
        }

        $crate::record::fields! {
            $mode $Record [$($about)*] [$($tag)?] [unknown]
            $($need $name [$($wire)?] [$($doc)*] $kind;)*
        }

        $crate::record::object_serde!($Record);
    )*};
}

/// Serde for what has `take` and `put`.
macro_rules! object_serde {
    ($Type:ident) => {
        impl serde::Serialize for $Type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut out = serializer.serialize_map(None)?;
                self.put(&mut out)?;
                serde::ser::SerializeMap::end(out)
            }
        }

        impl<'de> serde::Deserialize<'de> for $Type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let mut object = serde::Deserialize::deserialize(deserializer)?;
                Self::take(&mut object).map_err(serde::de::Error::custom)
            }
        }
    };
}

/// Declares a set of words. Words outside it are read and written as they are: a later version may have more.
macro_rules! words {
    ($(
        $(#[doc = $about:literal])*
        pub enum $Set:ident {
            $($(#[doc = $doc:literal])* $Word:ident = $word:literal,)*
        }
    )*) => {$(
        $(#[doc = $about])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        pub enum $Set {
            $($(#[doc = $doc])* $Word,)*
            /// A word outside the set, as it came.
            Other(String),
        }

        impl $Set {
            /// Every word of the set, in the order documents list them.
            pub const ALL: &'static [Self] = &[$(Self::$Word),*];

            /// Every word of the set, as written on the wire.
            pub const WORDS: &'static [&'static str] = &[$($word),*];

            /// The word on the wire.
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$Word => $word,)*
                    Self::Other(word) => word,
                }
            }

            /// The member of the set that is written like this, or [`Self::Other`].
            pub fn parse(word: &str) -> Self {
                match word {
                    $($word => Self::$Word,)*
                    other => Self::Other(other.to_owned()),
                }
            }
        }

        impl serde::Serialize for $Set {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }

        impl<'de> serde::Deserialize<'de> for $Set {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let word = <String as serde::Deserialize>::deserialize(deserializer)?;
                Ok(Self::parse(&word))
            }
        }
    )*};
}

pub(crate) use {fields, object_serde, part, put, record, required, slot, take, wire, words};

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
