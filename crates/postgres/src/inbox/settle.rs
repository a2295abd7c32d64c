//! Renewals and settlements: one statement each, guarded by the claim token.

use std::time::Duration;

use hookgate::dedupe::{ClaimToken, Ownership, StoreError};
use hookgate_inbox::EntryId;
use hookgate_inbox::engine::End;
use tokio_postgres::types::Type;

use super::row::{durable, seconds};
use crate::Postgres;

const RENEW: &str =
    "UPDATE hookgate_inbox SET due_at = clock_timestamp() + $3 * interval '1 second'
WHERE id = $1 AND token = $2 AND state = 1 RETURNING 1";

/// A settled entry keeps its token until it is leased again, and a repeated call finds the token
/// and changes nothing. `state`: 0 queued, 1 running, 2 done, 3 dead.
const SETTLE: &str = concat!(
    "WITH ",
    durable!(),
    " UPDATE hookgate_inbox SET
  state = CASE state WHEN 1 THEN $3 ELSE state END,
  due_at = CASE WHEN state = 1 AND $3 = 0 THEN clock_timestamp() + $4 * interval '1 second' ELSE due_at END,
  last_error = CASE WHEN state = 1 AND $5 IS NOT NULL THEN $5 ELSE last_error END,
  tries = CASE WHEN state = 1 AND $6 THEN greatest(tries - 1, 0) ELSE tries END,
  body = CASE WHEN state = 1 AND $3 = 2 THEN ''::bytea ELSE body END,
  traceparent = CASE WHEN state = 1 AND $3 = 2 THEN NULL ELSE traceparent END
FROM durable WHERE id = $1 AND token = $2 AND durable.setting <> 'off'
RETURNING 1"
);

pub(super) async fn renew(
    postgres: &Postgres,
    id: EntryId,
    token: ClaimToken,
    lease: Duration,
) -> Result<Ownership, StoreError> {
    let types = [Type::INT8, Type::BYTEA, Type::FLOAT8];
    let token = token.as_bytes().as_slice();
    let renewed = postgres
        .query_for_lease(RENEW, &types, &[&id.get(), &token, &seconds(lease)])
        .await?;
    Ok(Ownership::from_held(!renewed.is_empty()))
}

pub(super) async fn settle(
    postgres: &Postgres,
    id: EntryId,
    token: ClaimToken,
    end: End,
) -> Result<Ownership, StoreError> {
    let is_returned = matches!(end, End::Return);
    let (state, after, error) = end.stored();
    let types = [
        Type::INT8,
        Type::BYTEA,
        Type::INT2,
        Type::FLOAT8,
        Type::TEXT,
        Type::BOOL,
    ];
    let token = token.as_bytes().as_slice();
    let settled = postgres
        .query_for_lease(
            SETTLE,
            &types,
            &[
                &id.get(),
                &token,
                &(state as i16),
                &seconds(after),
                &error,
                &is_returned,
            ],
        )
        .await?;
    Ok(Ownership::from_held(!settled.is_empty()))
}
