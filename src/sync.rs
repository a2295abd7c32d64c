//! The locks and counters that threads share where they decide who runs.
//!
//! The standard library's. In this crate's own tests under `--cfg shuttle` they are those of shuttle, which stops at each of them
//! and chooses who goes on: see `src/dedupe/races.rs`.

#[cfg(not(all(test, shuttle)))]
pub(crate) use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicUsize},
};

#[cfg(all(test, shuttle))]
pub(crate) use shuttle::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicUsize},
};
