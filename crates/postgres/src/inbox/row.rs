//! The table's columns, and their values as Rust's types.

use std::time::Duration;

use bytes::Bytes;
use hookgate::{
    clock::UnixSeconds,
    dedupe::{EventKey, StoreError, StoreErrorKind},
};
use hookgate_inbox::engine::{Entry, readable_id, readable_type};
use hookgate_inbox::{EntryId, EntryState, Listed};
use tokio_postgres::Row;

/// The longest retention, lease or wait: PostgreSQL can add it to any other time.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 3_600);

/// The columns that are read to list an entry.
pub(super) const LISTED: &str = "id, event_id, event_type, scope, state, tries, last_error,
  octet_length(body)::bigint AS body_bytes,
  (extract(epoch FROM accepted_at) * 1000)::bigint AS accepted_ms,
  (extract(epoch FROM CASE state WHEN 2 THEN forget_at ELSE due_at END) * 1000)::bigint AS until_ms";

/// The further columns that are read to handle an entry.
pub(super) const ENTRY: &str = "key, row_key, digest, received_at, signed_at, key_name, subscription, workspace, body, traceparent";

/// A part of a statement whose transaction is flushed before it is answered, even if the server or
/// the role has switched that off. Stricter settings stay, and `local` stays too.
macro_rules! durable {
    () => {
        "durable AS MATERIALIZED (
  SELECT CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', true)
    ELSE current_setting('synchronous_commit') END AS setting
)"
    };
}
pub(super) use durable;

/// The error for a row that cannot be read: another program has changed it, or the table is a
/// different one.
fn unreadable(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable).caused_by(source)
}

/// Reads a column, with the type that the table has for it.
pub(super) fn column<'a, T>(row: &'a Row, name: &str) -> Result<T, StoreError>
where
    T: tokio_postgres::types::FromSql<'a>,
{
    row.try_get(name).map_err(unreadable)
}

/// Reads the columns of `LISTED`.
pub(super) fn listed(row: &Row) -> Result<Listed, StoreError> {
    let state = EntryState::of_number(column::<i16>(row, "state")?.into());
    let state = state.ok_or_else(|| unreadable("the entry has no valid state"))?;
    let until = unsigned(column(row, "until_ms")?);
    Ok(Listed {
        id: EntryId::new(column(row, "id")?),
        event_id: readable_id(column(row, "event_id")?),
        event_type: readable_type(column(row, "event_type")?),
        scope: column(row, "scope")?,
        state,
        tries: tries(row)?,
        accepted_at: unsigned(column(row, "accepted_ms")?),
        until: (state != EntryState::Dead).then_some(until),
        last_error: column(row, "last_error")?,
        body_bytes: unsigned(column(row, "body_bytes")?),
    })
}

/// Reads the columns of `LISTED` and `ENTRY`.
#[expect(clippy::disallowed_methods, reason = "a stored entry was authentic")]
pub(super) fn entry(row: &Row) -> Result<Entry, StoreError> {
    let row_key: Option<&[u8]> = column(row, "row_key")?;
    Ok(Entry {
        key: key(column(row, "key")?)?,
        row: row_key.map(key).transpose()?,
        digest: column::<i64>(row, "digest")?.cast_unsigned(),
        event_id: column(row, "event_id")?,
        event_type: column(row, "event_type")?,
        timestamp: column(row, "signed_at")?,
        received_at: UnixSeconds::new(column(row, "received_at")?),
        scope: column(row, "scope")?,
        key_name: column(row, "key_name")?,
        subscription_id: column(row, "subscription")?,
        pinned_workspace: column(row, "workspace")?,
        body: Bytes::from(column::<Vec<u8>>(row, "body")?),
        traceparent: column(row, "traceparent")?,
    })
}

pub(super) fn tries(row: &Row) -> Result<u32, StoreError> {
    Ok(u32::try_from(column::<i32>(row, "tries")?).unwrap_or_default())
}

fn key(bytes: &[u8]) -> Result<EventKey, StoreError> {
    bytes
        .try_into()
        .map(EventKey::from_bytes)
        .map_err(unreadable)
}

/// Returns seconds for `$n * interval '1 second'`.
pub(super) fn seconds(time: Duration) -> f64 {
    time.min(LONGEST).as_secs_f64()
}

/// Returns the time of this number of seconds, if there is one. A negative number is zero.
pub(super) fn time(seconds: Option<f64>) -> Option<Duration> {
    let seconds = seconds?;
    Some(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}

pub(super) fn at_most(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Returns a stored count or time; a negative one becomes zero.
pub(super) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}
