//! AEP 0.1: the hooks of coding agents in one shape.
//!
//! | module | what it does |
//! |---|---|
//! | [`types`] | the event types: names, families, aliases, as data |
//! | [`event`] | fields and enums of the protocol, as data |
//! | [`check`] | what one message alone can break |
//! | [`sequence`] | what only the order of messages can break |
//! | [`read`] | the protocol's events → activities |
//! | [`mod@write`] | activities → the protocol's events |
//! | [`response`] | hook responses ⇄ answers |
//! | [`mapping`] | a native hook payload → an event |
//! | [`dialect`] | an answer → what a native hook expects |
//! | [`show`] | an event → lines that people read |

pub mod check;
pub mod dialect;
pub mod event;
pub mod mapping;
pub mod read;
pub mod response;
pub mod sequence;
pub mod show;
pub mod types;
pub mod write;
