//! Emit, subscribe and answer, from Rust.
//!
//! A [`Client`] talks JSON to a gateway over its Unix socket or plain HTTP, one connection per request. Everything it
//! reads is bounded, and so is the time it waits for a response; only an open stream may last. A [`Feed`] connects again
//! when it is cut and goes on where it was; nothing else is retried. It speaks no TLS: a gateway listens on this machine.
//! [`agui`] runs agents that speak AG-UI, a gateway's sessions among them.
//!
//! ```no_run
//! use banister_client::{Answer, Client, Endpoint};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> banister_client::Result<()> {
//! let client = Client::new(Endpoint::parse("http://127.0.0.1:7717")?, "bk_answer_0123");
//! for ask in client.inbox().await? {
//!     client.answer(&ask.id, &Answer::reject("not before the release")).await?;
//! }
//! # Ok(())
//! # }
//! ```

pub mod agui;
mod client;
mod emit;
mod endpoint;
mod error;
mod feed;
mod inbox;
mod stream;

pub use banister_events::frame::sse::Message as SseMessage;
pub use client::Client;
pub use emit::{Outbox, Receipt, Status};
pub use endpoint::Endpoint;
pub use error::{Error, Result};
pub use feed::{Feed, Follow, Told};
pub use inbox::{Answer, Decision, Extended, OpenAsk, Remember, Said};
pub use stream::EventStream;
