//! The order of the events of a row.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)] // a failed expectation must stop the test
#![allow(unreachable_pub, missing_debug_implementations)] // a test has no API
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // The numbers are the tests' own.

mod example;
mod guards;
#[cfg(feature = "metrics")]
mod metrics;
#[allow(dead_code)] // its `main` is run as a process
#[path = "../../examples/ordered.rs"]
mod ordered;

// Shared with the tests of the library.
#[allow(dead_code)]
#[path = "../../../../tests/it/process.rs"]
mod process;
#[allow(dead_code)]
#[path = "../../../../tests/it/store_proxy.rs"]
mod store_proxy;
#[allow(dead_code)]
#[path = "../../../../tests/it/support.rs"]
mod support;
