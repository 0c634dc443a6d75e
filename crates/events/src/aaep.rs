//! AAEP 1.0: an agent tells assistive technology what it does.
//!
//! | module | what it does |
//! |---|---|
//! | [`event`] | the twelve types of events: names, fields and words, as types and as data |
//! | [`handshake`], [`reply`] | the messages that are no events |
//! | [`check`] | what one message alone can break |
//! | [`sequence`] | what only the order of messages can break |
//! | [`voice`] | how one subscriber wants to be spoken to |
//! | [`coalesce`] | text that comes in tokens → pieces that end where a subscriber wants them to end |
//! | [`read`] | the protocol's events → activities |
//! | [`mod@write`] | activities → the protocol's events |
//! | [`shape`] | activities → what one subscriber is sent, by the terms that were agreed on |

pub mod check;
pub mod coalesce;
pub mod event;
pub mod handshake;
pub mod read;
pub mod reply;
pub mod sequence;
pub mod shape;
pub mod voice;
pub mod write;
