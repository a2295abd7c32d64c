//! `hookgate explain`: the output for the mistakes that the library finds.

mod command;
#[allow(dead_code)] // shared with the tests of the library
#[path = "../../../testing/tests/it/explain/mistakes.rs"]
mod mistakes;
