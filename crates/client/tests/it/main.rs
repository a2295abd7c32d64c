//! The client against the emulator, over HTTP on this machine. Test names are sentences.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)] // a failed expectation must stop the test
#![allow(unreachable_pub, missing_debug_implementations)] // a test has no API

mod batches;
mod errors;
mod failures;
mod names;
mod objects;
mod rates;
mod rows;
mod structs;
mod support;
mod transports;
mod triggers;
