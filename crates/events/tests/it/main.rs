//! What the library promises about data outside it.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

/// Every rule has a passing and a failing recording, and every recording a rule.
mod conformance;
/// Samples of AEP that were not written here.
mod samples;

use std::path::{Path, PathBuf};

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
