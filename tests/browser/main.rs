//! The pages of `hookgate emulate` and `hookgate listen --page` in a real browser: Debian's chromium, over the DevTools protocol.
//!
//! Where the machine has no chromium, the tests are left out with a message; with `HOOKGATE_REQUIRE_TOOLS` they fail.

#[macro_use]
mod screen;
mod emulator;
mod look;
mod receiver;
mod rows;

use emulator::Served;
use receiver::Receives;
