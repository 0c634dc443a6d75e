//! The journal from outside, as the gateway uses it.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "all of this is test code, also the functions that tests share"
)]

/// Less is kept than came, and the exact bytes as long as an ask is open.
mod capture;
/// Many writers at once.
mod concurrent;
/// What every back end has to keep.
mod contract;
/// The process is killed while it writes.
mod crash;
/// The disk is full, cannot be written, or is slow.
mod disk;
/// Checkpoints, and what they find that chains cannot.
mod evidence;
/// A file of an older layout.
mod migrate;
/// A million records; run by hand.
mod million;
/// Old records go, and it stays provable.
mod retention;
/// What goes in comes out.
mod roundtrip;
/// Finding things by words.
mod search;
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
