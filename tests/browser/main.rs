//! The pages of `hookgate emulate` and `hookgate listen --page` in a real browser: Debian's
//! chromium, over the DevTools protocol.
//!
//! Where the machine has no chromium, the tests are left out with a message; with
//! `HOOKGATE_REQUIRE_TOOLS` they fail.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)] // a failed expectation must stop the test

#[macro_use]
mod screen;
mod devtools;
mod emulator;
mod listen;
mod looks;
mod one_view;
mod picture;
mod receiver;
mod rows;
mod safe;
mod webhooks;
mod workspace;

use emulator::Served;
use receiver::Receives;
