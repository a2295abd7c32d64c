//! The order of a row's events, inside the transaction that writes the effects.

use std::time::Duration;

use hookgate::{Delivery, dedupe::StoreError};
use hookgate_order::{OrderedIn, RowValues};
use tokio_postgres::Transaction;
use tokio_postgres::types::{ToSql, Type};

use super::failure::store_error;

/// Locks a row's record inside a transaction and reads it: the first statement of [`order_in`], for
/// users of sqlx, diesel or SeaORM.
///
/// `$1` (`bytea`) is [`RowValues::key`]. It returns one row with one column, `last` (`bytea`, or
/// `NULL`), for [`RowValues::judge`].
///
/// It waits for another transaction that has locked the record. A serialization failure (SQLSTATE
/// `40001`) means that another transaction was faster, and a deadlock (`40P01`) that two
/// transactions lock two rows in different order: roll back and answer 503.
///
/// # Security
/// **Run it inside a transaction that has begun**, the one with the effects. Outside a transaction
/// the lock ends with the statement.
pub const LOCK_ROW: &str = "WITH known AS MATERIALIZED (
  SELECT last, until FROM hookgate_order WHERE key = $1 FOR UPDATE
), made AS (
  INSERT INTO hookgate_order AS met (key, revision, last, until)
  SELECT $1, (extract(epoch FROM clock_timestamp()) * 1000)::bigint, '', clock_timestamp() WHERE NOT EXISTS (SELECT FROM known)
  ON CONFLICT (key) DO UPDATE SET revision = met.revision
  RETURNING last, until
)
SELECT CASE WHEN until > clock_timestamp() THEN last END AS last FROM (TABLE known UNION ALL TABLE made) AS locked";

/// Writes a row's record inside a transaction, after [`LOCK_ROW`]: the second statement of
/// [`order_in`], for users of sqlx, diesel or SeaORM.
///
/// | parameter | type | is |
/// |---|---|---|
/// | `$1` | `bytea` | [`RowValues::key`] |
/// | `$2` | `bytea` | [`OrderedIn::record`]; where it is `None`, leave this statement out |
/// | `$3` | `bigint` | [`RowValues::retain_micros`]: how long the row is remembered, in microseconds |
pub const WRITE_ROW: &str = "UPDATE hookgate_order
SET revision = revision + 1, last = $2, until = clock_timestamp() + $3 * interval '1 microsecond' WHERE key = $1";

/// Returns the place of the event among the handled events of its row, and records the event inside
/// your own transaction: the writes of the transaction and the record are committed together, or
/// neither is.
///
/// ```no_run
/// use hookgate_order::Order;
/// use hookgate::{Delivery, HandlerError};
/// use hookgate_postgres::{claim_in, order_in};
/// use std::time::Duration;
///
/// const RETAIN: Duration = Duration::from_secs(48 * 60 * 60);
///
/// async fn write_order(client: &mut tokio_postgres::Client, delivery: &Delivery) -> Result<(), HandlerError> {
///     let transaction = client.transaction().await?;
///     claim_in(&transaction, "orders", delivery, RETAIN).await?.fresh()?;
///     if order_in(&transaction, "orders", delivery, RETAIN).await?.order == Order::Newest {
///         transaction.execute("UPDATE orders SET …", &[]).await?;
///     }
///     Ok(transaction.commit().await?)
/// }
/// ```
///
/// `name` and `retain` are as with [`claim_in`](super::claim_in). That call is not needed for the
/// order, but a duplicate needs no order. An event that is not about a row is
/// [`Unknown`](hookgate_order::Order::Unknown), and so is one that can't be read.
///
/// The row's record is locked until the transaction ends, so that the events of a row are handled
/// one after the other, and the order is exact. **It waits for the lock**, unlike `claim_in`: set a
/// `lock_timeout` below the 4.5 s of the receiver's budget. It is two statements, neither of them
/// prepared; the second is left out where nothing changes. The record is rolled back with the
/// transaction, also with a savepoint that is rolled back.
///
/// # Errors
/// Those of [`claim_in`](super::claim_in). [`TimedOut`](hookgate::dedupe::StoreErrorKind::TimedOut)
/// also where another transaction holds the row for longer than the `lock_timeout`,
/// [`Conflict`](hookgate::dedupe::StoreErrorKind::Conflict) also after a deadlock, and
/// [`Corrupt`](hookgate::dedupe::StoreErrorKind::Corrupt) where another program has written the
/// record.
pub async fn order_in(
    transaction: &Transaction<'_>,
    name: &str,
    delivery: &Delivery,
    retain: Duration,
) -> Result<OrderedIn, StoreError> {
    let Some(values) = RowValues::of(name, delivery, retain) else {
        return Ok(OrderedIn::NO_ROW);
    };
    let key = values.key();
    let locked = transaction
        .query_typed_one(LOCK_ROW, &[(&key, Type::BYTEA)])
        .await
        .map_err(store_error)?;
    let ordered = values.judge(locked.try_get("last").map_err(store_error)?)?;
    if let Some(record) = ordered.record() {
        let bound: [(&(dyn ToSql + Sync), Type); 3] = [
            (&key, Type::BYTEA),
            (&record, Type::BYTEA),
            (&values.retain_micros(), Type::INT8),
        ];
        let written = transaction.execute_typed(WRITE_ROW, &bound).await;
        written.map_err(store_error)?;
    }
    Ok(ordered)
}
