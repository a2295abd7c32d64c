//! The package has tests alone.
#![forbid(unsafe_code)]
