//! Our side of AG-UI, for scripts that compare it with the protocol's own packages.

mod follow;
mod protobuf;
mod repair;

/// Does what the word says; none where it says nothing known.
pub(crate) fn run(what: &str) -> Option<anyhow::Result<()>> {
    match what {
        "follow" => Some(follow::run()),
        "protobuf" => Some(protobuf::run()),
        "repair" => Some(repair::run()),
        _ => None,
    }
}
