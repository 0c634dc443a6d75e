//! The journal from outside, as the gateway uses it.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "all of this is test code, also the functions that tests share"
)]

/// Many writers at once.
mod concurrent;
/// What every back end has to keep.
mod contract;
/// The process is killed while it writes.
mod crash;
/// What goes in comes out.
mod roundtrip;
/// A helper: drafts and a runtime.
mod support;
/// Somebody changes the file.
mod tamper;

#[test]
fn no_test_file_is_forgotten() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let module = name.strip_suffix(".rs").unwrap();
        let listed = include_str!("main.rs").contains(&format!("mod {module};\n"));
        assert!(module == "main" || listed, "{name} is not listed in main.rs");
    }
}
