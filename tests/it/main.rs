//! The integration tests: one binary, a module for each behaviour. Test names are sentences.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)] // a failed expectation must stop the test
#![allow(unreachable_pub, missing_debug_implementations)] // a test has no API
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // The numbers are the tests' own.

#[cfg(feature = "axum")]
mod accept;
#[cfg(feature = "axum")]
mod bodies;
#[cfg(feature = "axum")]
mod claimed;
#[cfg(feature = "axum")]
mod crowd;
#[cfg(feature = "axum")]
mod entry_points;
mod events;
mod examples;
#[cfg(feature = "axum")]
#[allow(dead_code)] // not every set of features has each fault
mod faulty;
#[cfg(feature = "axum")]
mod fuzz;
mod guarantees;
#[cfg(all(feature = "axum", feature = "testing"))]
mod handle;
#[cfg(feature = "axum")]
mod handler_errors;
#[cfg(feature = "axum")]
#[allow(dead_code)] // not every set of features uses all of it
mod harness;
#[cfg(feature = "axum")]
mod health;
#[cfg(all(feature = "axum", feature = "metrics"))]
mod held;
#[cfg(feature = "axum")]
mod http2;
#[cfg(feature = "axum")]
mod layer;
mod leaks;
#[cfg(feature = "axum")]
mod leases;
#[cfg(all(feature = "axum", feature = "lookup"))]
mod lookup;
#[cfg(all(feature = "axum", feature = "metrics"))]
mod metrics;
#[cfg(feature = "axum")]
mod model;
#[cfg(feature = "axum")]
mod neighbours;
#[cfg(feature = "axum")]
mod observer;
#[cfg(feature = "axum")]
mod once;
#[cfg(all(feature = "axum", feature = "metrics"))]
mod operations;
#[cfg(feature = "axum")]
mod oversized;
mod parsers;
#[cfg(feature = "axum")]
mod positions;
#[allow(dead_code)] // not every set of features starts every example
mod process;
#[cfg(feature = "axum")]
mod queue;
mod readme;
#[cfg(feature = "axum")]
mod ready;
#[cfg(feature = "axum")]
mod refusals;
#[cfg(all(feature = "axum", feature = "inbox", feature = "testing"))]
mod reserved_keys;
#[cfg(feature = "axum")]
mod route;
#[cfg(feature = "axum")]
mod run;
#[cfg(feature = "axum")]
mod schemes;
#[cfg(feature = "axum")]
mod scopes;
#[cfg(feature = "axum")]
mod senders;
#[cfg(feature = "axum")]
mod shutdown;
#[cfg(feature = "axum")]
mod store_proxy;
#[cfg(feature = "axum")]
mod stored;
mod stores;
#[cfg(feature = "axum")]
#[allow(dead_code)] // not every set of features uses all of it
mod support;
#[cfg(all(feature = "axum", feature = "tracing"))]
mod tracing;
mod traits;
mod vectors;
#[cfg(feature = "axum")]
mod wire;
