//! Converts the table's rows to entries.

use bytes::Bytes;
use hookgate::{
    clock::UnixSeconds,
    dedupe::{EventKey, StoreError, StoreErrorKind},
};
use hookgate_inbox::engine::{Entry, readable_id, readable_type};
use hookgate_inbox::{EntryId, EntryState, Listed};
use tokio_postgres::Row;

use super::units::unsigned;

/// The error for a row that cannot be read: another program has changed it, or the table is a different one.
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
