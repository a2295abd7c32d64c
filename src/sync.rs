//! The locks and counters that threads share to decide which of them runs.
//!
//! Usually these are the types of the standard library. In this crate's own tests under `--cfg
//! shuttle` they are the types of shuttle, which stops at each use and chooses the thread that
//! continues: see `src/dedupe/races.rs`.

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

/// Locks a mutex. Every step leaves the state behind it consistent, so it stays usable after a
/// panic elsewhere (in a clock, for example).
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
