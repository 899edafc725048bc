#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| knee_fuzz::scenario_file::check(data));
