#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| banister_fuzz::policy_parsers(data));
