//! How AG-UI's objects are declared: once, for a Rust type, the table of the check and a schema.
//!
//! `object!` declares an object that stands on its own, `member!` one that is told from others by a tag, `union!` those
//! others. The tag is the union's business: a member has neither the field nor serde. Whatever has required fields gets
//! a `new` that takes them; whatever has none is [`Default`].

use crate::check::shape::Kind;

/// An object whose shape depends on a word in it.
pub(crate) trait Union {
    /// The table that messages are compared with.
    const KIND: Kind;
}

/// Declares objects that are told from others by a tag.
macro_rules! member {
    ($(
        $(#[doc = $about:literal])*
        pub $Record:ident {
            $($(#[doc = $doc:literal])*
            $need:ident $name:ident $(as $wire:literal)? : $type:ty = $kind:expr,)*
        }
    )*) => {$(
        $(#[doc = $about])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $Record {
            $($(#[doc = $doc])* pub $name: $crate::record::slot!($need $type),)*
            /// Every field that is not known here, as it came.
            pub unknown: serde_json::Map<String, serde_json::Value>,
        }

        $crate::record::fields! {
            strict $Record [$($about)*] [] [unknown]
            $($need $name [$($wire)?] [$($doc)*] $kind;)*
        }

        $crate::agui::event::declare::new! { $Record [] [] $($need $name: $type,)* }
    )*};
}

/// Declares objects that stand on their own.
macro_rules! object {
    ($(
        $(#[doc = $about:literal])*
        pub $Record:ident { $($fields:tt)* }
    )*) => {$(
        $crate::agui::event::declare::member! { $(#[doc = $about])* pub $Record { $($fields)* } }

        $crate::record::object_serde!($Record);
    )*};
}

/// How an object is made of what it has to have.
macro_rules! new {
    ($Record:ident [] [$($may:ident)*]) => {
        impl Default for $Record {
            fn default() -> Self {
                Self { $($may: None,)* unknown: serde_json::Map::new() }
            }
        }
    };
    ($Record:ident [$($must:ident: $type:ty,)+] [$($may:ident)*]) => {
        impl $Record {
            /// One with the fields that are required, and no others.
            pub fn new($($must: impl Into<$type>),+) -> Self {
                Self { $($must: $must.into(),)+ $($may: None,)* unknown: serde_json::Map::new() }
            }
        }
    };
    ($Record:ident [$($musts:tt)*] [$($mays:tt)*] must $name:ident: $type:ty, $($rest:tt)*) => {
        $crate::agui::event::declare::new! {
            $Record [$($musts)* $name: $type,] [$($mays)*] $($rest)*
        }
    };
    ($Record:ident [$($musts:tt)*] [$($mays:tt)*] may $name:ident: $type:ty, $($rest:tt)*) => {
        $crate::agui::event::declare::new! { $Record [$($musts)*] [$($mays)* $name] $($rest)* }
    };
}

/// Declares what a tag tells apart. One with a tag that is not known is read and written as it is, and so is one
/// without any where the tag only `may` be there. In an `open` union, members may have fields of one's own.
macro_rules! union {
    ($(
        $(#[doc = $about:literal])*
        pub $openness:ident $Union:ident by $need:ident $tag:literal {
            $($(#[doc = $doc:literal])* $Variant:ident($Member:ident) = $word:literal,)*
        }
    )*) => {$(
        $(#[doc = $about])*
        #[derive(Debug, Clone, PartialEq)]
        pub enum $Union {
            $($(#[doc = $doc])* $Variant($Member),)*
            /// One that is not known here, with every field as it came.
            Other(serde_json::Map<String, serde_json::Value>),
        }

        impl $crate::agui::event::declare::Union for $Union {
            const KIND: $crate::check::shape::Kind = $crate::check::shape::Kind::Union {
                tag: $tag,
                members: &[$((
                    $word,
                    $crate::check::shape::Shape {
                        parts: &[
                            &[$crate::check::shape::must($tag, $crate::check::shape::STRING)],
                            <$Member as $crate::record::Record>::FIELDS,
                        ],
                        closed: $crate::agui::event::declare::is_closed!($openness),
                    },
                )),*],
            };
        }

        impl $Union {
            #[doc = concat!("The word on the wire that tells which it is, its `", $tag, "`.")]
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$Variant(_) => $word,)*
                    Self::Other(fields) => {
                        fields.get($tag).and_then(serde_json::Value::as_str).unwrap_or_default()
                    }
                }
            }

            fn take(
                object: &mut serde_json::Map<String, serde_json::Value>,
            ) -> Result<Self, serde_json::Error> {
                match object.get($tag).and_then(serde_json::Value::as_str) {
                    $(Some($word) => {
                        object.shift_remove($tag);
                        $Member::take(object).map(Self::$Variant)
                    })*
                    None if $crate::record::required!($need) => Err($crate::record::missing($tag)),
                    _ => Ok(Self::Other(std::mem::take(object))),
                }
            }

            fn put<M: serde::ser::SerializeMap>(&self, out: &mut M) -> Result<(), M::Error> {
                match self {
                    $(Self::$Variant(member) => {
                        out.serialize_entry($tag, $word)?;
                        member.put(out)
                    })*
                    Self::Other(fields) => {
                        fields.iter().try_for_each(|(name, value)| out.serialize_entry(name, value))
                    }
                }
            }
        }

        $crate::record::object_serde!($Union);
    )*};
}

/// Whether members of a union have no fields of one's own.
macro_rules! is_closed {
    (closed) => {
        true
    };
    (open) => {
        false
    };
}

pub(crate) use {is_closed, member, new, object, union};
