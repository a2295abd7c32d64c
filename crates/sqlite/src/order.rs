//! The order of a row's events: inside the transaction that writes the effects, and as the store of
//! an order guard.

use std::time::Duration;

use hookgate::{
    Delivery,
    dedupe::{StoreError, StoreFuture},
};
use hookgate_order::{LastHandled, OrderStore, OrderedIn, RowValues};
use rusqlite::{OptionalExtension, Row, Transaction, params};

use super::calls::Kind;
use super::claims::full;
use super::fault::store_error;
use super::store::SqliteStore;
use super::units::millis;

/// Locks a row's record inside a transaction and reads it: the first statement of [`order_in`], for
/// users of sqlx.
///
/// `?1` (`BLOB`) is [`RowValues::key`]. It returns one row with one column, `last` (`BLOB`, or
/// `NULL`), for [`RowValues::judge`].
///
/// `SQLITE_BUSY` and `SQLITE_BUSY_SNAPSHOT` mean the same as with [`CLAIM_IN`](super::CLAIM_IN):
/// roll back and answer 503.
pub const LOCK_ROW: &str = "INSERT INTO hookgate_order AS known (key, revision, last, until)
VALUES (?1, CAST(unixepoch('subsec') * 1000 AS INTEGER), x'', CAST(unixepoch('subsec') * 1000 AS INTEGER))
ON CONFLICT (key) DO UPDATE SET revision = known.revision
RETURNING CASE WHEN until > CAST(unixepoch('subsec') * 1000 AS INTEGER) THEN last END AS last";

/// Writes a row's record inside a transaction, after [`LOCK_ROW`]: the second statement of
/// [`order_in`], for users of sqlx.
///
/// | parameter | type | is |
/// |---|---|---|
/// | `?1` | `BLOB` | [`RowValues::key`] |
/// | `?2` | `BLOB` | [`OrderedIn::record`]; where it is `None`, leave this statement out |
/// | `?3` | `INTEGER` | [`RowValues::retain_micros`]: how long the row is remembered, in microseconds |
pub const WRITE_ROW: &str = "UPDATE hookgate_order
SET revision = revision + 1, last = ?2, until = CAST(unixepoch('subsec') * 1000 AS INTEGER) + ?3 / 1000 WHERE key = ?1";

/// Returns the place of the event among the handled events of its row, and records the event inside
/// your own transaction: the writes of the transaction and the record are committed together, or
/// neither is.
///
/// ```
/// use hookgate_order::Order;
/// use hookgate::{Delivery, HandlerError};
/// use hookgate_sqlite::{claim_in, order_in};
/// use rusqlite::{Connection, TransactionBehavior};
/// use std::time::Duration;
///
/// const RETAIN: Duration = Duration::from_secs(48 * 60 * 60);
///
/// fn write_order(database: &mut Connection, delivery: &Delivery) -> Result<(), HandlerError> {
///     let transaction = database.transaction_with_behavior(TransactionBehavior::Immediate)?;
///     claim_in(&transaction, "orders", delivery, RETAIN)?.fresh()?;
///     if order_in(&transaction, "orders", delivery, RETAIN)?.order == Order::Newest {
///         transaction.execute("UPDATE orders SET …", [])?;
///     }
///     Ok(transaction.commit()?)
/// }
/// ```
///
/// `name` and `retain` are as with [`claim_in`](super::claim_in). That call is not needed for the
/// order, but a duplicate needs no order. An event that is not about a row is
/// [`Unknown`](hookgate_order::Order::Unknown), and so is one that can't be read. The table is made
/// by [`migrate`](super::migrate).
///
/// SQLite lets one transaction write at a time, and this call writes, so that no other event of the
/// row is handled until the transaction ends: the order is exact. Prefer `BEGIN IMMEDIATE`, as with
/// `claim_in`.
///
/// # Errors
/// Those of [`claim_in`](super::claim_in). [`Corrupt`](hookgate::dedupe::StoreErrorKind::Corrupt)
/// also where another program has written the record.
pub fn order_in(
    transaction: &Transaction<'_>,
    name: &str,
    delivery: &Delivery,
    retain: Duration,
) -> Result<OrderedIn, StoreError> {
    let Some(values) = RowValues::of(name, delivery, retain) else {
        return Ok(OrderedIn::NO_ROW);
    };
    let mut lock = transaction.prepare(LOCK_ROW).map_err(store_error)?;
    let last: Option<Vec<u8>> = lock
        .query_row([values.key()], |row| row.get("last"))
        .map_err(store_error)?;
    let ordered = values.judge(last.as_deref())?;
    if let Some(record) = ordered.record() {
        let bound = (values.key(), record, values.retain_micros());
        let mut write = transaction.prepare(WRITE_ROW).map_err(store_error)?;
        write.execute(bound).map_err(store_error)?;
    }
    Ok(ordered)
}

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
