//! Claims inside the transaction that writes the effects.

use std::time::Duration;

use hookgate::{
    Delivery,
    dedupe::{ClaimValues, ClaimedIn, StoreError},
};
use tokio_postgres::types::Type;
use tokio_postgres::{Error, Transaction};

use super::failure::store_error;

/// Claims an event inside the transaction of its run, in one statement: the statement of
/// [`claim_in`], for users of sqlx, diesel or SeaORM.
///
/// [`ClaimValues`] has the values to bind:
///
/// | parameter | type | is |
/// |---|---|---|
/// | `$1` | `bytea` | [`key`](ClaimValues::key): the program's name, scope and id, as 16 bytes |
/// | `$2` | `bigint` | [`body`](ClaimValues::body): distinguishes another body under the same id |
/// | `$3` | `bigint` | [`retain_micros`](ClaimValues::retain_micros): how long the event is remembered, in microseconds |
///
/// It returns one row:
///
/// | column | type | is |
/// |---|---|---|
/// | `outcome` | `text` | `fresh`: go on, and commit. `duplicate`: the effects are committed. `held`: another transaction has claimed it; answer 503 |
/// | `same_body` | `boolean` | of a duplicate: whether it had this body. `NULL` if there is no duplicate, or if the body could not be read yet: then run the statement again |
///
/// A serialization failure (SQLSTATE `40001`) means that another transaction was faster: roll back
/// and answer 503. It comes from this statement or from the commit, at `REPEATABLE READ` and
/// `SERIALIZABLE` alone.
///
/// # Security
/// **Run it inside a transaction that has begun**, the one with the effects. Outside a transaction
/// the claim is committed separately: when the effects then fail, the event is lost.
pub const CLAIM_IN: &str = "WITH known AS MATERIALIZED (
  SELECT body = $2 AS same_body FROM hookgate_effects WHERE key = $1
), locked AS MATERIALIZED (
  SELECT pg_try_advisory_xact_lock(('x' || encode(substr($1, 1, 8), 'hex'))::bit(64)::bigint) AS got
  WHERE NOT EXISTS (SELECT FROM known)
), claimed AS (
  INSERT INTO hookgate_effects (key, body, until)
  SELECT $1, $2, clock_timestamp() + $3 * interval '1 microsecond' FROM locked WHERE got
  ON CONFLICT (key) DO NOTHING RETURNING key
)
SELECT CASE
    WHEN EXISTS (SELECT FROM claimed) THEN 'fresh'
    WHEN EXISTS (SELECT FROM locked WHERE NOT got) THEN 'held'
    ELSE 'duplicate'
  END AS outcome, (SELECT same_body FROM known) AS same_body";

/// Claims the event inside your own transaction: the writes of the transaction and the record of
/// the event are committed together, or neither is.
///
/// `name` is the [name of the program](super#names). Replicas use one name. Two programs in one
/// schema use two names: otherwise, an event that one of them has handled would be a duplicate for
/// the other.
///
/// It is one statement in one round trip, not prepared, and it never waits for another transaction.
/// `retain` is how long the event is remembered; pass the receiver's own retention, or longer, and
/// pass the same to an inbox's workers as their `claim_retention`. The claim is rolled back with
/// the transaction, also with a savepoint that is rolled back.
///
/// The crate's page has [an example](super#exactly-once) and the effects of the isolation levels. A
/// transaction of the crate `deadpool-postgres` is passed as `&*transaction`.
///
/// # Errors
/// The transaction has failed with the statement: roll it back.
/// - [`Conflict`](hookgate::dedupe::StoreErrorKind::Conflict): at `REPEATABLE READ` or
///   `SERIALIZABLE`, another transaction has committed since this one began. Answer 503, or begin
///   again: then it is a duplicate. A commit may fail in the same way:
///   [`store_error`](crate::store_error) shows it.
/// - [`Missing`](hookgate::dedupe::StoreErrorKind::Missing),
///   [`Denied`](hookgate::dedupe::StoreErrorKind::Denied): as in [`migrate`](super::migrate).
/// - [`Aborted`](hookgate::dedupe::StoreErrorKind::Aborted): the transaction had failed before.
/// - [`TimedOut`](hookgate::dedupe::StoreErrorKind::TimedOut),
///   [`Unavailable`](hookgate::dedupe::StoreErrorKind::Unavailable): see there.
pub async fn claim_in(
    transaction: &Transaction<'_>,
    name: &str,
    delivery: &Delivery,
    retain: Duration,
) -> Result<ClaimedIn, StoreError> {
    claim_values_in(transaction, &delivery.claim_values(name, retain)).await
}

/// Claims as [`claim_in`] does, for an event that was not received as a delivery here.
///
/// # Errors
/// Those of [`claim_in`].
pub async fn claim_values_in(
    transaction: &Transaction<'_>,
    values: &ClaimValues,
) -> Result<ClaimedIn, StoreError> {
    // Where the other transaction has ended while the statement ran, the statement saw only that
    // the event is a duplicate; the next one reads the record. Where it can't either, the bodies
    // can't be compared, which is reported as a difference.
    for _ in 0..2 {
        if let Some(claimed) = asked(transaction, values).await.map_err(store_error)? {
            return Ok(claimed);
        }
    }
    Ok(ClaimedIn::Duplicate { same_body: false })
}

/// Runs the statement. Returns `None` for a duplicate whose body could not be read.
async fn asked(
    transaction: &Transaction<'_>,
    values: &ClaimValues,
) -> Result<Option<ClaimedIn>, Error> {
    let row = transaction
        .query_typed_one(
            CLAIM_IN,
            &[
                (&values.key(), Type::BYTEA),
                (&values.body(), Type::INT8),
                (&values.retain_micros(), Type::INT8),
            ],
        )
        .await?;
    let same_body: Option<bool> = row.try_get("same_body")?;
    Ok(match row.try_get("outcome")? {
        "fresh" => Some(ClaimedIn::Fresh),
        "held" => Some(ClaimedIn::Running),
        _ => same_body.map(|same_body| ClaimedIn::Duplicate { same_body }),
    })
}
