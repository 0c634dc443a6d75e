//! AG-UI 1.0: an agent streams to a front end.
//!
//! | module | what it does |
//! |---|---|
//! | [`event`] | names, fields and enums of the protocol, as data |
//! | [`check`] | what one message alone can break |
//! | [`sequence`] | what only the order of messages can break |
//! | [`read`] | the protocol's events → activities |
//! | [`mod@write`] | activities → the protocol's events |

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
pub mod repair;
pub mod sequence;
mod step;
pub mod write;
