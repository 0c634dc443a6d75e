//! Emit, subscribe and answer, from Rust.
//!
//! A [`Client`] talks JSON to a gateway over its Unix socket or over HTTP, one connection per request. Everything it
//! reads is bounded, and so is the time it waits for a response; only an open stream may last. A [`Feed`] connects again
//! when it is cut and goes on where it was; nothing else is retried. [`agui`] runs agents that speak AG-UI, a gateway's
//! sessions among them. [`transport`] is the HTTP below both, with TLS, for other crates of Banister as well.
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
pub mod transport;

pub use banister_events::frame::sse::Message as SseMessage;
pub use client::Client;
pub use emit::{Outbox, Receipt, Status};
pub use endpoint::{Address, AddressError, Endpoint};
pub use error::{Error, Result};
pub use feed::{Feed, FeedEvent, Follow};
pub use inbox::{Answer, AnswerContent, Decision, Extended, OpenAsk, Remember};
pub use stream::EventStream;
