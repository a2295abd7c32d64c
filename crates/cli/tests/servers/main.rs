//! The command with stores that need a server of their own: each test starts the servers that it
//! needs on free loopback ports, and stops them.
//!
//! Where a server's program is missing, its tests print that and are left out; `scripts/test`
//! installs missing programs, and sets `HOOKGATE_REQUIRE_TOOLS`, with which no test is left out.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)] // a failed expectation must stop the test
#![allow(unreachable_pub, missing_debug_implementations)] // a test has no API
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // The numbers are the tests' own.
#![cfg(unix)]

#[allow(dead_code, unused_imports)] // shared with the tests of the library
#[path = "../../../../tests/servers/support/mod.rs"]
mod support;

mod command;
mod erase;
mod names;
