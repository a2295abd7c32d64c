//! The integration tests of the command: one binary, a module for each behaviour. Test names are
//! sentences.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)] // a failed expectation must stop the test
#![allow(unreachable_pub, missing_debug_implementations)] // a test has no API
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // The numbers are the tests' own.

#[cfg(unix)]
mod api;
mod cli;
mod doctor;
#[cfg(unix)]
mod emulate;
#[cfg(feature = "sqlite")]
mod explain;
#[cfg(feature = "sqlite")]
mod inbox;
#[cfg(not(feature = "sqlite"))]
mod left_out;
mod listen;
mod log;
#[cfg(unix)]
mod pictures;
#[allow(dead_code)] // shared with the tests of the library
#[path = "../../../../tests/it/process.rs"]
mod process;
mod readme;
#[cfg(all(unix, feature = "sqlite"))]
mod reconcile;
mod replay;
mod scheme;
mod send;
#[allow(dead_code)] // shared with the tests of the library
#[path = "../../../../tests/servers/support/server.rs"]
mod server;
mod simulate;
#[cfg(unix)]
mod terminal;
