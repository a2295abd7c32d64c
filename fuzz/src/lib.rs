//! The bodies of the fuzz targets, and the slow and obvious second implementation that some of them
//! are compared with.
//!
//! Plain functions from bytes to nothing, which panic when a property does not hold. libFuzzer
//! calls them from `fuzz_targets/`; `replay.rs`, a test of the crate itself, calls them on stable
//! with every input of `corpus/`.

#![allow(clippy::unwrap_used, clippy::expect_used)] // A target panics on an unexpected result.
#![allow(unreachable_pub, missing_docs, missing_debug_implementations)] // This crate is not a public API.

mod choices;
mod made;
mod obvious;
pub mod targets;
