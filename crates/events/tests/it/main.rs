//! What the library promises about data outside it.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

/// Every rule has a passing and a failing recording, and every recording a rule.
mod conformance;
/// Every rule of the protocols has a row, and every row a code or a reason.
mod coverage;
/// Samples of AEP that were not written here.
mod samples;
/// The generated schemas: up to date, and in agreement with the checks and with the protocol's own.
mod schemas;
mod streams;

use std::path::{Path, PathBuf};

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
