#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| knee_fuzz::cookie_date::check(data));
