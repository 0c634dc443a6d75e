//! AG-UI 1.0: an agent streams to a front end.
//!
//! | module | what it does |
//! |---|---|
//! | [`follow`] | where a reader starts: bytes of events → messages and state |
//! | [`event`], [`message`], [`input`], [`capabilities`] | the protocol's events and what is in them, as types, tables and schemas |
//! | [`encoding`], [`protobuf`] | how events go out, and who gets which form |
//! | [`repair`] | the nearest stream that a client runs clean |
//! | [`rejoin`] | what whoever passes a run on knows of its events |
//! | [`reduce`], [`patch`] | messages and state as runs build them; JSON Patch |
//! | [`check`], [`sequence`] | what one event alone can break, and what only their order can |
//! | [`read`], [`mod@write`] | the protocol's events → activities, and back |

pub mod capabilities;
pub mod check;
pub mod encoding;
pub(crate) mod enforce;
pub mod event;
mod expand;
pub mod follow;
pub mod input;
pub mod message;
pub mod patch;
pub mod protobuf;
pub mod read;
pub mod reduce;
pub mod rejoin;
pub mod repair;
pub mod response_schema;
mod retired;
pub mod sequence;
mod step;
pub mod write;
