//! Converts rows of the tables to the crate's types.

use bytes::Bytes;
use rusqlite::{Error, Result, Row};

use crate::UnixSeconds;
use crate::dedupe::EventKey;
use crate::event::{EventId, EventType};
use crate::inbox::engine::Listed;
use crate::inbox::entry::{Entry, EntryId, EntryState, unsigned};

/// The columns of `entries` that [`listed`] reads, in its order.
pub(super) const LISTED: &str =
    "id, event_id, event_type, scope, state, tries, accepted_at, until, last_error, body_bytes";

pub(super) fn listed(row: &Row<'_>) -> Result<Listed> {
    let number: i64 = row.get(4)?;
    let state = EntryState::of_number(number).ok_or(Error::IntegralValueOutOfRange(4, number))?;
    let until: Option<i64> = row.get(7)?;
    Ok(Listed {
        id: EntryId(row.get(0)?),
        event_id: EventId::stored(&lossy(row.get_ref(1)?.as_bytes()?)),
        event_type: EventType::stored(&lossy(row.get_ref(2)?.as_bytes()?)),
        scope: lossy(row.get_ref(3)?.as_bytes()?),
        state,
        tries: narrow(row.get(5)?),
        accepted_at: unsigned(row.get(6)?),
        until: until.filter(|_| state != EntryState::Dead).map(unsigned),
        last_error: row.get_ref(8)?.as_bytes_or_null()?.map(lossy),
        body_bytes: if state == EntryState::Done {
            0
        } else {
            unsigned(row.get(9)?)
        },
    })
}

/// Reads text that another program may have changed.
fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The columns of `entries` and `bodies` that [`entry`] reads, in its order.
pub(super) const ENTRY: &str = "entries.key, row, digest, event_id, event_type, timestamp, received_at, scope, key_name, subscription, workspace, body, traceparent";

/// Reads an entry whose columns begin at `first`.
#[expect(clippy::disallowed_methods, reason = "a stored entry was authentic")]
pub(super) fn entry(row: &Row<'_>, first: usize) -> Result<Entry> {
    let body: Option<Vec<u8>> = row.get(first + 11)?;
    let digest: i64 = row.get(first + 2)?;
    let of_row: Option<[u8; 16]> = row.get(first + 1)?;
    Ok(Entry {
        key: EventKey::from_bytes(row.get(first)?),
        row: of_row.map(EventKey::from_bytes),
        digest: digest.cast_unsigned(),
        event_id: row.get(first + 3)?,
        event_type: row.get(first + 4)?,
        timestamp: row.get(first + 5)?,
        received_at: UnixSeconds::new(row.get(first + 6)?),
        scope: row.get(first + 7)?,
        key_name: row.get(first + 8)?,
        subscription: row.get(first + 9)?,
        workspace: row.get(first + 10)?,
        body: body.map(Bytes::from).unwrap_or_default(),
        // Text of another type is no trace; it does not make the entry unreadable.
        traceparent: row.get(first + 12).unwrap_or_default(),
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
