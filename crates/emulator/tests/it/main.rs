//! The emulator over HTTP, as the specification's reader uses it. A module a section; `docs.rs`
//! says which test shows which statement.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)] // a failed expectation must stop the test
#![allow(unreachable_pub, missing_debug_implementations)] // a test has no API

mod access;
mod authentication;
mod control;
mod data_models;
mod deliveries;
mod docs;
mod envelope;
mod explain;
mod fuzzed;
mod inspector;
mod limits;
mod reserved_keys;
mod retries;
mod rows;
mod seeds;
mod support;
mod things;
mod triggers;
mod values;
mod week;

use support::Service;
