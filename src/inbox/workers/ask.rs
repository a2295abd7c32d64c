//! Calls of the store. A call may hang, fail or panic; none of these ends a worker.

use std::time::Duration;

use tokio::time::timeout;

use crate::caught::caught;
use crate::dedupe::StoreFuture;
use crate::dedupe::{StoreError, StoreErrorKind};
use crate::layer::CatchUnwind;

/// Calls the store, and waits for its answer for at most `patience`.
pub(super) async fn ask<'a, T: Unpin>(
    patience: Duration,
    call: impl FnOnce() -> StoreFuture<'a, T>,
) -> Result<T, StoreError> {
    let panicked = || StoreError::new(StoreErrorKind::Unavailable).caused_by("the store panicked");
    let asked = caught(call).map_err(|_| panicked())?;
    match timeout(patience, CatchUnwind::new(asked)).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(_)) => Err(panicked()),
        Err(_) => Err(StoreError::new(StoreErrorKind::TimedOut)),
    }
}
