//! The command beside what stands on a server of its own: each test starts the servers that it needs on free loopback ports, and
//! stops them.
//!
//! Where a server's program is missing, its tests say so and are left out; `scripts/test` installs what is missing, and sets
//! `HOOKGATE_REQUIRE_TOOLS`, with which nothing is left out.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)] // A test stops at what it did not expect.
#![allow(unreachable_pub, missing_debug_implementations)] // Nothing here is anybody's API.
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // The numbers are the tests' own.
#![cfg(unix)]

#[allow(dead_code, unused_imports)] // shared with the tests of the library
#[path = "../../../../tests/servers/support/mod.rs"]
mod support;

mod command;
mod names;
