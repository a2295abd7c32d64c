//! The client against the emulator, over HTTP on this machine, and the reconciliation against a
//! list that changes. Test names are sentences.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)] // a failed expectation must stop the test
#![allow(unreachable_pub, missing_debug_implementations)] // a test has no API
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // The numbers are the tests' own.

mod batches;
mod errors;
mod failures;
#[cfg(feature = "reconcile")]
mod ledger;
mod names;
mod objects;
mod rates;
#[cfg(feature = "reconcile")]
mod reconcile;
mod rows;
mod support;
mod transports;
mod triggers;
