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
//! Symbolic links are therefore followed only where the caller names them ([`Subject::with_links`]). [`explain`] says the
//! same as [`evaluate`], with every command, its effects and the rule that spoke about it.
//!
//! An action is read once, by [`Rules::read`]; all rules that are asked about it share that [`Subject`].

mod effects;
mod error;
mod evaluate;
mod examples;
mod explain;
mod floor;
mod host;
mod layer;
mod named;
mod pack;
mod path;
mod request;
mod rule;
mod rules;
pub mod shell;
mod subject;
mod tools;
mod wildcard;
mod yaml;

pub use effects::{Effect, EffectKind};
pub use error::{Error, RuleFault};
pub use evaluate::evaluate;
pub use examples::Tried;
pub use explain::{Explained, Explanation, explain};
pub use layer::Layer;
pub use pack::{Pack, UnknownPack};
pub use request::ActionRequest;
pub use rules::{Described, Layers, RuleSource, Rules};
pub use subject::Subject;
