//! `banister-hook AGENT [EVENT]`: see the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    banister_hook::main(std::env::args_os().skip(1))
}
