//! The delivery log: what is recorded of a delivery, and how it is written. Test names are
//! sentences.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)] // a failed expectation must stop the test
#![allow(unreachable_pub, missing_debug_implementations)] // a test has no API
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // The numbers are the tests' own.

mod example;
// Shared with the tests of the library.
#[path = "../../../testing/tests/it/log/folder.rs"]
mod folder;
#[allow(dead_code)]
#[path = "../../../../tests/it/harness.rs"]
mod harness;
#[allow(dead_code)]
#[path = "../../../../tests/it/process.rs"]
mod process;
mod recorded;
mod written;

use folder::{Folder, delivery, delivery_of, ids};
