//! The tests of the tools for tests: signing, events, logs, replay, explanations, the sender, the
//! conformance of stores.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)] // a failed expectation must stop the test
#![allow(unreachable_pub, missing_debug_implementations)] // a test has no API
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // The numbers are the tests' own.

mod explain;
mod factory;
mod log;
mod replay;
mod schemes;
mod sender;
mod sinks;
mod stalls;
mod stores;

// Shared with the tests of the library and of the engines.
#[allow(dead_code, unused_imports, unused_macros)]
#[path = "../../../../tests/servers/support/expect.rs"]
mod expect;
#[allow(dead_code)]
#[path = "../../../../tests/it/harness.rs"]
mod harness;
#[allow(dead_code)]
#[path = "../../../../tests/it/process.rs"]
mod process;
#[allow(dead_code)]
#[path = "../../../../tests/it/store_proxy.rs"]
mod store_proxy;
#[allow(dead_code)]
#[path = "../../../../tests/it/support.rs"]
mod support;

use expect::says;
