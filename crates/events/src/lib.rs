//! What an agent event is, in three protocols, and how one becomes another.
//!
//! Everything here is pure: bytes and values in, values out. No clock, no files, no sockets, no async.
//! The modules stand in the order in which a message meets them:
//!
//! | module | what it does |
//! |---|---|
//! | [`frame`] | bytes → messages (SSE, NDJSON) and back |
//! | [`message`] | one message: its bytes, parsed once |
//! | [`event`] | which protocol a message speaks |
//! | [`capture`] | what has to be known of a message to keep it |
//! | [`aaep`], [`agui`], [`aep`] | per protocol: `event`, `check`, `sequence`, `read`, `write` |
//! | [`activity`] | the common vocabulary that readers produce and writers consume |
//! | [`reader`], [`writer`] | the one choice of a reader or a writer by protocol |
//! | [`written`] | an event on its way out: JSON that was made once |
//! | [`translate`] | one protocol becomes another, and what that cost |
//! | [`record`], [`schema`] | how messages are declared, and the JSON Schemas that come of it |
//! | [`finding`] | what is wrong with data: rule, place, message, remedy |
//! | [`locale`] | every sentence a person hears or reads |

pub mod aaep;
pub mod activity;
pub mod aep;
pub mod agui;
pub mod capture;
pub mod check;
pub mod event;
pub mod finding;
pub mod frame;
pub mod id;
pub mod json;
pub mod limits;
pub mod locale;
pub mod message;
pub mod reader;
pub mod record;
pub mod schema;
pub mod text;
pub mod translate;
pub mod writer;
pub mod written;

pub use message::Message;
pub use reader::Reader;
pub use writer::Writer;
pub use written::Written;
