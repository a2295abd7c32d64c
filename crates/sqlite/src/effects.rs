//! Claims inside the transaction that writes the effects.

use std::time::Duration;

use crate::fault::store_error;
use hookgate::{
    Delivery,
    dedupe::{ClaimValues, ClaimedIn, StoreError},
};
use rusqlite::{Connection, Transaction};

/// The tables of the events that were claimed in transactions, and of the last handled event of
/// each row, for a migration tool of your own; [`migrate`] runs it. It may be run again.
///
/// A trigger deletes ended records: each new record of a table deletes two whose retention has
/// ended, in the same transaction, so that the tables do not grow without end and nothing has to be
/// scheduled.
pub const SCHEMA: &str = concat!(
    "CREATE TABLE IF NOT EXISTS hookgate_effects (
  key BLOB PRIMARY KEY,
  body INTEGER NOT NULL,
  until INTEGER NOT NULL,
  fresh INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS hookgate_effects_by_time ON hookgate_effects (until);
CREATE TRIGGER IF NOT EXISTS hookgate_effects_forget AFTER INSERT ON hookgate_effects BEGIN
  DELETE FROM hookgate_effects WHERE key <> new.key AND key IN (
    SELECT key FROM hookgate_effects WHERE until <= CAST(unixepoch('subsec') * 1000 AS INTEGER) ORDER BY until LIMIT 2);
END;
",
    super::claims::rows!(),
    "
CREATE TRIGGER IF NOT EXISTS hookgate_order_forget AFTER INSERT ON hookgate_order BEGIN
  DELETE FROM hookgate_order WHERE key <> new.key AND key IN (
    SELECT key FROM hookgate_order WHERE until <= CAST(unixepoch('subsec') * 1000 AS INTEGER) ORDER BY until LIMIT 2);
END;"
);

/// Claims an event inside the transaction of its run, in one statement: the statement of
/// [`claim_in`], for users of sqlx.
///
/// [`ClaimValues`] has the values to bind:
///
/// | parameter | type | is |
/// |---|---|---|
/// | `?1` | `BLOB` | [`key`](ClaimValues::key): the program's name, scope and id, as 16 bytes |
/// | `?2` | `INTEGER` | [`body`](ClaimValues::body): distinguishes another body under the same id |
/// | `?3` | `INTEGER` | [`retain_micros`](ClaimValues::retain_micros): how long the event is remembered, in microseconds |
///
/// It returns one row:
///
/// | column | type | is |
/// |---|---|---|
/// | `outcome` | `TEXT` | `fresh`: go on, and commit. `duplicate`: the effects are committed, or were written earlier in this transaction |
/// | `same_body` | `INTEGER`, 0 or 1 | of a duplicate: whether it had this body. `NULL` if there is no duplicate |
///
/// `SQLITE_BUSY` means that another transaction writes, and `SQLITE_BUSY_SNAPSHOT` that one has
/// committed since this one began, which can't happen after `BEGIN IMMEDIATE`: roll back and
/// answer 503.
///
/// # Security
/// **Run it inside a transaction that has begun**, the one with the effects. Outside a transaction
/// the claim is committed separately: when the effects then fail, the event is lost.
pub const CLAIM_IN: &str = "INSERT INTO hookgate_effects (key, body, until, fresh)
VALUES (?1, ?2, CAST(unixepoch('subsec') * 1000 AS INTEGER) + ?3 / 1000, 1)
ON CONFLICT (key) DO UPDATE SET fresh = 0
RETURNING CASE fresh WHEN 1 THEN 'fresh' ELSE 'duplicate' END AS outcome, CASE fresh WHEN 0 THEN body = ?2 END AS same_body";

/// Makes the tables for [`claim_in`] and `order_in`, unless they exist: the statements of
/// [`SCHEMA`].
///
/// # Errors
/// [`TimedOut`](hookgate::dedupe::StoreErrorKind::TimedOut): another connection writes for longer
/// than the `busy_timeout`. [`Denied`](hookgate::dedupe::StoreErrorKind::Denied),
/// [`Full`](hookgate::dedupe::StoreErrorKind::Full),
/// [`Corrupt`](hookgate::dedupe::StoreErrorKind::Corrupt),
/// [`NotAStore`](hookgate::dedupe::StoreErrorKind::NotAStore): the file can't be written, the disk
/// is full, the file is damaged, or is not an SQLite database.
pub fn migrate(connection: &Connection) -> Result<(), StoreError> {
    connection.execute_batch(SCHEMA).map_err(store_error)
}

/// Claims the event inside your own transaction: the writes of the transaction and the record of
/// the event are committed together, or neither is.
///
/// ```
/// use hookgate::dedupe::EventKey;
/// use hookgate::dedupe::{ClaimValues, ClaimedIn};
/// use hookgate_sqlite::{claim_values_in, migrate};
/// use std::time::Duration;
///
/// let mut database = rusqlite::Connection::open_in_memory()?;
/// migrate(&database)?;
/// let values = ClaimValues::new("orders", EventKey::new("default", "evt_1"), b"{}", Duration::from_secs(48 * 60 * 60));
/// let transaction = database.transaction()?;
/// assert_eq!(claim_values_in(&transaction, &values)?, ClaimedIn::Fresh);
/// transaction.rollback()?; // and the claim with it
/// let transaction = database.transaction()?;
/// assert_eq!(claim_values_in(&transaction, &values)?, ClaimedIn::Fresh);
/// assert_eq!(claim_values_in(&transaction, &values)?, ClaimedIn::Duplicate { same_body: true });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// `name` is the name of the program. Two programs on one file use two names: otherwise, an event
/// that one of them has handled would be a duplicate for the other. `retain` is how long the event
/// is remembered; pass the receiver's own retention, or longer, and pass the same to an inbox's
/// workers as their `claim_retention`.
///
/// The table is in the file of your own tables: call [`migrate`] once. The crate's page has
/// [a handler](crate#exactly-once) and the effects of the kinds of transactions.
///
/// # Errors
/// Roll the transaction back, and answer 503: [`StoreError`] is that answer, of a handler.
/// - [`TimedOut`](hookgate::dedupe::StoreErrorKind::TimedOut): another connection writes for longer
///   than the `busy_timeout`. After `BEGIN IMMEDIATE` it can't happen here.
/// - [`Conflict`](hookgate::dedupe::StoreErrorKind::Conflict): this transaction has read before it
///   claims, and another one has committed since. After `BEGIN IMMEDIATE` it can't happen.
/// - [`Missing`](hookgate::dedupe::StoreErrorKind::Missing): [`migrate`] was not called.
/// - [`Full`](hookgate::dedupe::StoreErrorKind::Full),
///   [`Denied`](hookgate::dedupe::StoreErrorKind::Denied),
///   [`Corrupt`](hookgate::dedupe::StoreErrorKind::Corrupt): see [`migrate`].
pub fn claim_in(
    transaction: &Transaction<'_>,
    name: &str,
    delivery: &Delivery,
    retain: Duration,
) -> Result<ClaimedIn, StoreError> {
    claim_values_in(transaction, &delivery.claim_values(name, retain))
}

/// Claims as [`claim_in`] does, for an event that was not received as a delivery here.
///
/// # Errors
/// Those of [`claim_in`].
pub fn claim_values_in(
    transaction: &Transaction<'_>,
    values: &ClaimValues,
) -> Result<ClaimedIn, StoreError> {
    let mut claim = transaction.prepare(CLAIM_IN).map_err(store_error)?;
    let bound = (values.key(), values.body(), values.retain_micros());
    let same_body: Option<bool> = claim
        .query_row(bound, |row| row.get("same_body"))
        .map_err(store_error)?;
    Ok(
        same_body.map_or(ClaimedIn::Fresh, |same_body| ClaimedIn::Duplicate {
            same_body,
        }),
    )
}
