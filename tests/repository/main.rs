//! The checks of texts and counts. Test names are sentences.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)] // a failed expectation must stop the test

mod imports;
mod invariants;
mod links;
mod lists;
#[cfg(target_os = "linux")] // other systems compile other packages
mod packages;
#[cfg(target_os = "linux")] // a link stands beside the package that is made
mod snippets;
