//! May this action run?
//!
//! One action goes in, one [`Gate`](banister_events::activity::Gate) comes out, with the rule that said so and a
//! reason a person can read:
//!
//! ```text
//! action ─▶ subject ─▶ shell ─▶ floor ─▶ rules ─▶ gate
//!           tool class  simple   nothing  deny, ask,
//!           and paths   commands lifts it allow
//! ```
//!
//! Guarantees: [`evaluate`] is total, pure and never panics; what cannot be read is never allowed; what no rule
//! speaks about is asked. It deliberately looks at nothing but its arguments: no file, no clock, no environment.
//! Symbolic links are therefore not followed; whoever calls can pass both names of a path.

mod error;
mod evaluate;
mod floor;
mod path;
mod rule;
mod rules;
pub mod shell;
mod subject;
mod tools;

pub use error::Error;
pub use evaluate::{Request, evaluate};
pub use rules::Rules;
