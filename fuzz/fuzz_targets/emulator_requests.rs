#![no_main]
#![allow(clippy::unwrap_used)] // A target panics on an unexpected result.

#[allow(dead_code)] // shared with the other targets
#[path = "../src/choices.rs"]
mod choices;
#[allow(dead_code)] // each target calls one function of it
#[path = "../src/emulator.rs"]
mod emulator;

libfuzzer_sys::fuzz_target!(|input: &[u8]| emulator::requests(input));
