//! The integration tests: one binary, a module a behaviour. Names are sentences.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)] // A test stops at what it did not expect.

mod events;
mod leaks;
mod parsers;
mod stores;
mod ui;
mod vectors;
