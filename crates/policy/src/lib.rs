//! May this action run?
//!
//! One action goes in, one [`Gate`](banister_events::activity::Gate) comes out, with the rule that said so and a
//! reason a person can read:
//!
//! ```text
//! action ─▶ subject ─▶ shell ─▶ effects ─▶ floor ─▶ rules ─▶ gate
//!           tool class  every    reads,     nothing  deny, ask,
//!           and paths   command  writes …   lifts it allow
//! ```
//!
//! Guarantees: [`evaluate`] is total, pure and never panics; what cannot be read is never allowed; what no rule
//! speaks about is asked. It deliberately looks at nothing but its arguments: no file, no clock, no environment.
//! Symbolic links are therefore followed only where the caller names them ([`Request::links`]). [`explain`] says the same
//! as [`evaluate`], with every command, its effects and the rule that spoke about it.

pub mod effects;
mod error;
mod evaluate;
mod examples;
mod explain;
mod floor;
mod host;
mod layers;
mod named;
mod pack;
mod path;
mod rule;
mod rules;
pub mod shell;
mod subject;
mod tools;

pub use error::{Error, Fault};
pub use evaluate::{Request, evaluate};
pub use examples::Tried;
pub use explain::{Explained, Explanation, explain};
pub use layers::{Layer, Layers, Source};
pub use named::named_paths;
pub use pack::{Pack, UnknownPack};
pub use rules::{Described, Rules};
