//! The binaries as people and agents use them: real files, real sockets, a real `kill -9`.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    clippy::string_slice,
    reason = "a test that cannot go on should stop where it stands"
)]

mod aaep_stdio; // JSON-RPC on standard input and output
mod asks; // what waits, and every way to answer it
mod bad_input; // whatever comes in, the strictest answer goes out
mod check_bad_input; // what is no stream, or a broken one
mod check_live; // endpoints that answer, hang, or hang up
mod commands; // help, usage, exit codes
mod demo; // the newcomer's minute
mod disk; // full, read-only, and whether it has confirmed
mod docs; // what the guides show
mod doors; // who may come in
mod examples; // the client library at work
mod kept_data; // what earlier versions left
mod kill; // kill -9 under load
mod kill_push; // the same, while programs push and somebody follows
mod kill_search; // kill -9 before the search index has what was acknowledged
mod log; // the journal from its file
mod policy; // verdicts, rules while a gateway runs, grants
mod push; // events from other programs
mod rail; // a hook asks, a person answers
mod restart; // open asks survive
mod streams; // the same session three ways
mod support;
mod tamper; // the journal's file, changed behind its back
mod tls; // https: certificates that verify, and those that do not

#[test]
fn no_test_file_is_forgotten() {
    let main = include_str!("main.rs");
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    for entry in std::fs::read_dir(here).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let module = name.trim_end_matches(".rs");
        assert!(
            name == "main.rs" || main.contains(&format!("mod {module};")),
            "{name} is not listed"
        );
    }
}
