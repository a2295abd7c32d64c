//! One insert, durable when it is answered.

use std::time::Duration;

use hookgate::{
    dedupe::{StoreError, StoreErrorKind},
    sink::Accepted,
};
use hookgate_inbox::engine::Entry;
use tokio_postgres::types::Type;

use super::row::{column, durable, seconds};
use super::table::Table;

/// Inserts the entry. If it conflicts with a visible row, returns whether that row has the same
/// body.
const ACCEPT: &str = concat!(
    "WITH ",
    durable!(),
    ", stored AS (
  INSERT INTO hookgate_inbox (key, row_key, digest, event_id, event_type, signed_at, received_at, scope, key_name,
    subscription, workspace, body, accepted_at, due_at, forget_at, namespace, traceparent)
  SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, clock.now, clock.now, clock.now + $13 * interval '1 second', $14, $15
  FROM durable, (SELECT clock_timestamp() AS now) AS clock
  WHERE durable.setting <> 'off'
  ON CONFLICT (namespace, key) DO NOTHING
  RETURNING id
)
SELECT true AS is_new, true AS same_body FROM stored
UNION ALL
SELECT false, digest = $3 FROM hookgate_inbox WHERE namespace = $14 AND key = $1"
);

const ACCEPT_TYPES: [Type; 15] = [
    Type::BYTEA,
    Type::BYTEA,
    Type::INT8,
    Type::TEXT,
    Type::TEXT,
    Type::TEXT,
    Type::INT8,
    Type::TEXT,
    Type::TEXT,
    Type::TEXT,
    Type::TEXT,
    Type::BYTEA,
    Type::FLOAT8,
    Type::TEXT,
    Type::TEXT,
];

/// The most statements for one id, if other processes store and delete the same id at the same
/// moment.
const ATTEMPTS: usize = 3;

pub(super) async fn accept(
    table: &Table,
    entry: &Entry,
    retain: Duration,
) -> Result<Accepted, StoreError> {
    let row_key = entry.row.as_ref().map(|row| row.as_bytes().as_slice());
    for _ in 0..ATTEMPTS {
        let rows = table
            .postgres
            .query(
                ACCEPT,
                &ACCEPT_TYPES,
                &[
                    &entry.key.as_bytes().as_slice(),
                    &row_key,
                    &entry.digest.cast_signed(),
                    &entry.event_id,
                    &entry.event_type,
                    &entry.timestamp,
                    &entry.received_at.as_i64(),
                    &entry.scope,
                    &entry.key_name,
                    &entry.subscription_id,
                    &entry.pinned_workspace,
                    &entry.body.as_ref(),
                    &seconds(retain),
                    &&*table.name,
                    &entry.traceparent,
                ],
            )
            .await?;
        // No row: a copy was stored after this statement had begun, so the statement does not see
        // it. The next one does.
        if let Some(row) = rows.first() {
            return if column(row, "is_new")? {
                Ok(Accepted::New)
            } else {
                let same_body = column(row, "same_body")?;
                Ok(Accepted::Duplicate { same_body })
            };
        }
    }
    let why = "others store and forget the same id all the time";
    Err(StoreError::new(StoreErrorKind::Unavailable).caused_by(why))
}
