//! The record of a row, the newest event that was handled, and the store of the records: two calls.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hookgate::dedupe::{StoreError, StoreErrorKind, StoreFuture};

use super::known::Known;
use super::moment::Moment;

/// The newest handled event of a row, as a store keeps it: its `createdAt`, a digest of its id,
/// whether the row is deleted, and hashes of the properties that events named. It holds no value
/// and no id in clear.
///
/// A store keeps its [bytes](Self::to_bytes): 31, and 16 for each of at most 256 properties. The
/// first byte is the number of their form, 1. A later version reads the forms of earlier ones.
#[derive(Clone, PartialEq, Eq)]
pub struct LastHandled {
    pub(super) at: Moment,
    /// The key of the event.
    pub(super) event: [u8; 16],
    /// Whether the row was deleted, and its new creation was not handled.
    pub(super) is_deleted: bool,
    /// Whether the event is [`Unknown`](super::Order::Unknown) when it comes again: another event
    /// of its time was handled since, or it updates a deleted row.
    pub(super) is_doubtful: bool,
    pub(super) known: Known,
}

/// The first byte of each record.
const FORM: u8 = 1;
/// The bits of the second byte.
const DELETED: u8 = 1;
const DOUBTFUL: u8 = 2;

impl LastHandled {
    /// Returns the bytes, for a store. Equal records have equal bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let (micros, resolution) = self.at.to_parts();
        let flags = u8::from(self.is_deleted) * DELETED + u8::from(self.is_doubtful) * DOUBTFUL;
        let mut bytes = vec![FORM, flags];
        bytes.extend_from_slice(&micros.to_be_bytes());
        bytes.extend_from_slice(&resolution.to_be_bytes());
        bytes.extend_from_slice(&self.event);
        self.known.write(&mut bytes);
        bytes
    }

    /// Returns the record from bytes that a store has kept.
    ///
    /// # Errors
    /// [`Corrupt`](StoreErrorKind::Corrupt): they are not those of a record. Another program may
    /// have written them.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, StoreError> {
        let advice = "a row's record has a form that this version does not know";
        Self::parse(bytes).ok_or_else(|| StoreError::saying(StoreErrorKind::Corrupt, advice))
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let (&[form, flags], rest) = bytes.split_first_chunk()?;
        let (&micros, rest) = rest.split_first_chunk()?;
        let (&resolution, rest) = rest.split_first_chunk()?;
        let (&event, rest) = rest.split_first_chunk()?;
        let at = Moment::from_parts(i64::from_be_bytes(micros), u32::from_be_bytes(resolution))?;
        let known = Known::read(rest)?;
        (form == FORM && flags <= DELETED | DOUBTFUL).then_some(Self {
            at,
            event,
            is_deleted: flags & DELETED != 0,
            is_doubtful: flags & DOUBTFUL != 0,
            known,
        })
    }
}

impl fmt::Debug for LastHandled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LastHandled")
            .field("at", &self.at)
            .field("is_deleted", &self.is_deleted)
            .finish_non_exhaustive()
    }
}

/// Remembers the newest handled event of each row.
///
/// `row` is a digest of the receiver's scope, the data model and the row: 128 bits of SHA-256.
/// [`MemoryOrderStore`](super::MemoryOrderStore) forgets at a restart; `SqliteStore` and
/// `PostgresStore` (packages `hookgate-sqlite`, `hookgate-postgres`, feature `order`) do not. All
/// of them, and your own, pass [`contract::check`](super::contract::check).
///
/// 1. **A write is one indivisible step** that succeeds only on the record that the writer has
///    read: [`swap`](Self::swap).
/// 2. **A revision is never used twice for one row**, not even after its record has ended, and is
///    never 0. So an unchanged revision means that nothing was written.
/// 3. **A record ends after its retention**, and not before, unless a store in memory is full. An
///    ended record is treated as absent.
/// 4. **An error means unknown**: the write may or may not have taken effect.
pub trait OrderStore: fmt::Debug + Send + Sync + 'static {
    /// Returns the row's record with its revision.
    fn last<'a>(&'a self, row: &'a [u8; 16]) -> StoreFuture<'a, Option<(u64, LastHandled)>>;

    /// Writes the row's record with another revision, and keeps it for `retain` from now, if its
    /// present revision is `revision`: 0 for a row without a record. Returns whether it was
    /// written.
    fn swap<'a>(
        &'a self,
        row: &'a [u8; 16],
        revision: u64,
        last: LastHandled,
        retain: Duration,
    ) -> StoreFuture<'a, bool>;
}

/// A shared store is a store.
impl<S: OrderStore + ?Sized> OrderStore for Arc<S> {
    fn last<'a>(&'a self, row: &'a [u8; 16]) -> StoreFuture<'a, Option<(u64, LastHandled)>> {
        (**self).last(row)
    }

    fn swap<'a>(
        &'a self,
        row: &'a [u8; 16],
        revision: u64,
        last: LastHandled,
        retain: Duration,
    ) -> StoreFuture<'a, bool> {
        (**self).swap(row, revision, last, retain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_from_its_bytes_and_from_no_others() {
        let known = Known::created(&[([1; 8], [2; 8]), ([3; 8], [4; 8])]);
        for (is_deleted, is_doubtful) in
            [(false, false), (false, true), (true, false), (true, true)]
        {
            let last = LastHandled {
                at: Moment::read("2026-11-21T09:30:00.250Z").unwrap(),
                event: [7; 16],
                is_deleted,
                is_doubtful,
                known: known.clone(),
            };
            let bytes = last.to_bytes();
            assert_eq!(bytes.len(), 31 + 2 * 16);
            assert_eq!(LastHandled::from_bytes(&bytes).unwrap(), last);
            for length in 0..bytes.len() {
                let cut = LastHandled::from_bytes(&bytes[..length]);
                assert_eq!(cut.is_ok(), [31, 47].contains(&length), "{length}");
            }
            for (at, wrong) in [(0, 2), (1, 4), (11, 9), (30, 2), (31, 9)] {
                let mut bytes = bytes.clone();
                bytes[at] = wrong;
                let error = LastHandled::from_bytes(&bytes).unwrap_err();
                assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{at}");
            }
        }
    }
}
