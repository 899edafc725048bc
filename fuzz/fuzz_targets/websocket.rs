#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| knee_fuzz::websocket::check(data));
