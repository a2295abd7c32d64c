//! The store of claims also keeps the last handled event of each row.

use std::time::Duration;

use super::rows::{Known, Swap};
use super::store::SqliteStore;
use super::writer::{Answer, Task};
use crate::dedupe::{EventKey, StoreFuture};
use crate::order::{LastHandled, OrderStore};

impl OrderStore for SqliteStore {
    fn last<'a>(&'a self, row: &'a [u8; 16]) -> StoreFuture<'a, Option<(u64, LastHandled)>> {
        let of = |answer| match answer {
            Answer::Last(known) => Some(known),
            _ => None,
        };
        StoreFuture::boxed(async move {
            let known = self
                .ask(&EventKey::from_bytes(*row), Task::Last, of)
                .await?;
            let read = |(revision, last): Known| {
                Ok((revision.unsigned_abs(), LastHandled::from_bytes(&last)?))
            };
            known.map(read).transpose()
        })
    }

    fn swap<'a>(
        &'a self,
        row: &'a [u8; 16],
        revision: u64,
        last: LastHandled,
        retain: Duration,
    ) -> StoreFuture<'a, bool> {
        let of = |answer| match answer {
            Answer::Swapped(written) => Some(written),
            _ => None,
        };
        StoreFuture::boxed(async move {
            let Ok(revision) = i64::try_from(revision) else {
                return Ok(false);
            };
            let last = last.to_bytes();
            let swap = Task::Swap(Swap {
                revision,
                last,
                retain,
            });
            self.ask(&EventKey::from_bytes(*row), swap, of).await
        })
    }
}
