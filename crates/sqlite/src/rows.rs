//! The last handled event of each row, in the file of a store.

use std::time::Duration;

use hookgate::dedupe::StoreFuture;
use hookgate_order::{LastHandled, OrderStore};
use rusqlite::{OptionalExtension, Row, params};

use super::calls::Kind;
use super::claims::full;
use super::store::SqliteStore;
use super::units::millis;

impl OrderStore for SqliteStore {
    fn last<'a>(&'a self, row: &'a [u8; 16]) -> StoreFuture<'a, Option<(u64, LastHandled)>> {
        let key = *row;
        let found = self.inner.calls.begin(0, move |on, now, room| {
            if !room {
                return Err(full().into());
            }
            let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
            Ok(on.last.query_row(params![key, now], read).optional()?)
        });
        StoreFuture::boxed(async move {
            let known = |(revision, last): (i64, Vec<u8>)| {
                Ok((revision.unsigned_abs(), LastHandled::from_bytes(&last)?))
            };
            found.await?.map(known).transpose()
        })
    }

    fn swap<'a>(
        &'a self,
        row: &'a [u8; 16],
        revision: u64,
        last: LastHandled,
        retain: Duration,
    ) -> StoreFuture<'a, bool> {
        let Ok(revision) = i64::try_from(revision) else {
            return StoreFuture::ready(Ok(false));
        };
        let (key, last, retain) = (*row, last.to_bytes(), millis(retain));
        StoreFuture::boxed(self.inner.calls.ask(Kind::Certain, move |on, now| {
            let written = match revision {
                0 => on.insert.execute(params![key, last, now, retain])?,
                _ => {
                    let values = params![key, last, now, retain, revision];
                    on.update.execute(values)?
                }
            };
            Ok(written > 0)
        }))
    }
}
