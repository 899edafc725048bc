#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| knee_fuzz::http3::check(data));
