//! The bodies of the fuzz targets, and the slow and obvious second implementation that some of them ask.
//!
//! Plain functions from bytes to nothing, which panic when a property does not hold. libFuzzer calls them from
//! `fuzz_targets/`; `replay.rs`, a test of the crate itself, calls them on stable with every input of `corpus/`.

#![allow(clippy::unwrap_used, clippy::expect_used)] // A target stops at what it did not expect.
#![allow(unreachable_pub, missing_docs, missing_debug_implementations)] // Nothing here is anybody's API.

mod choices;
mod made;
mod obvious;
pub mod targets;
