#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| knee_fuzz::content_coding::check(data));
