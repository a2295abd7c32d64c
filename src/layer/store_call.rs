//! Calls of a store that is code from outside this crate.

use std::time::Duration;

use tokio::time::timeout;

use super::catch::{CatchUnwind, caught};
use crate::dedupe::{StoreError, StoreErrorKind, StoreFuture};

/// Calls a store, and waits for its answer for at most `limit`. The call may hang, fail or panic: each is an error.
pub(crate) async fn call_store<'a, T: Unpin>(
    limit: Duration,
    call: impl FnOnce() -> StoreFuture<'a, T>,
) -> Result<T, StoreError> {
    let panicked = || StoreError::new(StoreErrorKind::Unavailable).caused_by("the store panicked");
    let asked = caught(call).map_err(|_| panicked())?;
    match timeout(limit, CatchUnwind::new(asked)).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(_)) => Err(panicked()),
        Err(_) => Err(StoreError::new(StoreErrorKind::TimedOut)),
    }
}
