#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| hookgate_fuzz::targets::typed_event::run(input));
