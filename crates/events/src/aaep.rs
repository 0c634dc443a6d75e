//! AAEP 1.0: an agent tells assistive technology what it does.
//!
//! | module | what it does |
//! |---|---|
//! | [`event`] | the twelve types of events: names, fields and words, as types and as data |
//! | [`handshake`], [`reply`] | the messages that are no events |
//! | [`check`] | what one message alone can break |
//! | [`sequence`] | what only the order of messages can break |
//! | [`voice`] | how one subscriber wants to be spoken to |
//! | [`read`] | the protocol's events → activities |
//! | [`mod@write`] | activities → the protocol's events |

pub mod check;
pub mod event;
pub mod handshake;
pub mod read;
pub mod reply;
pub mod sequence;
pub mod voice;
pub mod write;
