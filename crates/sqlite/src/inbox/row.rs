//! Converts rows of the tables to the crate's types.

use bytes::Bytes;
use hookgate::{clock::UnixSeconds, dedupe::EventKey};
use hookgate_inbox::engine::{Entry, readable_id, readable_type};
use hookgate_inbox::{EntryId, EntryState, Listed};
use rusqlite::{Error, Result, Row};

use crate::units::unsigned;

/// The columns of `entries` that [`listed`] reads, by their names.
pub(super) const LISTED: &str =
    "id, event_id, event_type, scope, state, tries, accepted_at, until, last_error, body_bytes";

pub(super) fn listed(row: &Row<'_>) -> Result<Listed> {
    let column = row.as_ref().column_index("state")?;
    let number: i64 = row.get(column)?;
    let state = EntryState::of_number(number);
    let state = state.ok_or(Error::IntegralValueOutOfRange(column, number))?;
    let until: Option<i64> = row.get("until")?;
    Ok(Listed {
        id: EntryId::new(row.get("id")?),
        event_id: readable_id(&lossy(row.get_ref("event_id")?.as_bytes()?)),
        event_type: readable_type(&lossy(row.get_ref("event_type")?.as_bytes()?)),
        scope: lossy(row.get_ref("scope")?.as_bytes()?),
        state,
        tries: narrow(row.get("tries")?),
        accepted_at: unsigned(row.get("accepted_at")?),
        until: until.filter(|_| state != EntryState::Dead).map(unsigned),
        last_error: row.get_ref("last_error")?.as_bytes_or_null()?.map(lossy),
        body_bytes: match state {
            EntryState::Done => 0,
            _ => unsigned(row.get("body_bytes")?),
        },
    })
}

/// Reads text that another program may have changed.
fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The columns of `entries` and `bodies` that [`entry`] reads. They are the first of a statement,
/// in this order, so that no name of theirs is looked up.
pub(super) const ENTRY: &str = "entries.key, row, digest, event_id, event_type, timestamp, received_at, scope, key_name, subscription, workspace, body, traceparent";

#[expect(clippy::disallowed_methods, reason = "a stored entry was authentic")]
pub(super) fn entry(row: &Row<'_>) -> Result<Entry> {
    let body: Option<Vec<u8>> = row.get(11)?;
    let digest: i64 = row.get(2)?;
    let of_row: Option<[u8; 16]> = row.get(1)?;
    Ok(Entry {
        key: EventKey::from_bytes(row.get(0)?),
        row: of_row.map(EventKey::from_bytes),
        digest: digest.cast_unsigned(),
        event_id: row.get(3)?,
        event_type: row.get(4)?,
        timestamp: row.get(5)?,
        received_at: UnixSeconds::new(row.get(6)?),
        scope: row.get(7)?,
        key_name: row.get(8)?,
        subscription_id: row.get(9)?,
        pinned_workspace: row.get(10)?,
        body: body.map(Bytes::from).unwrap_or_default(),
        // Text of another type is not a trace; it does not make the entry unreadable.
        traceparent: row.get(12).unwrap_or_default(),
    })
}

/// Returns the row key of an entry. An invalid key is read as none.
pub(super) fn of_row(row: &Row<'_>, column: usize) -> Result<Option<[u8; 16]>> {
    let blob = row.get_ref(column)?.as_blob_or_null().unwrap_or_default();
    Ok(blob.and_then(|blob| blob.try_into().ok()))
}

/// Whether the error means that the entry cannot be read, and not that the file failed.
pub(super) fn is_unreadable(error: &Error) -> bool {
    matches!(
        error,
        Error::FromSqlConversionFailure(..)
            | Error::InvalidColumnType(..)
            | Error::IntegralValueOutOfRange(..)
            | Error::Utf8Error(..)
    )
}

pub(super) fn narrow(number: i64) -> u32 {
    u32::try_from(number.max(0)).unwrap_or(u32::MAX)
}
