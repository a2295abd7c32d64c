//! The integration tests: one binary, a module a behaviour. Names are sentences.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)] // A test stops at what it did not expect.
#![allow(unreachable_pub, missing_debug_implementations)] // Nothing here is anybody's API.
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // The numbers are the tests' own.

mod events;
#[cfg(feature = "tower")]
mod harness;
#[cfg(feature = "axum")]
mod layer;
mod leaks;
mod parsers;
#[cfg(feature = "testing")]
mod stores;
mod ui;
mod vectors;
