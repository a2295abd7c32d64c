//! The stored form of a delivery, and its conversion back to a delivery.

use std::fmt;
use std::str::FromStr;

use bytes::Bytes;

use crate::clock::UnixSeconds;
use crate::dangerous;
use crate::dedupe::{EventKey, body_digest};
use crate::event::{EventId, EventType};
use crate::verify::Malformed;
use crate::walk::{Delivery, StoredDelivery};

/// The last error of an entry that cannot be converted to a delivery: another program has changed it, or the disk has damaged it.
pub(crate) const UNREADABLE: &str = "unreadable: this entry is none that was accepted";

/// The number of an entry of an inbox. Numbers follow the order of acceptance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(pub(crate) i64);

/// The text that [`FromStr`] reads.
impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Reads a positive number in decimal digits.
impl FromStr for EntryId {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        match text.parse() {
            Ok(number @ 1..) if !text.starts_with('+') => Ok(Self(number)),
            _ => Err(Malformed),
        }
    }
}

/// The state of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EntryState {
    /// Waits to be leased: for the first time, or after a back-off.
    Queued,
    /// A worker has leased it. If the lease has ended, the worker was killed or is blocked, and another worker takes the entry.
    Running,
    /// Handled. Its body is deleted; its id is remembered until its retention ends.
    Done,
    /// A dead letter: it is not run again, unless an operator makes it due.
    Dead,
}

impl EntryState {
    /// Returns the state of this number in an engine's table: `as` gives the number of a state.
    pub(crate) fn of_number(number: i64) -> Option<Self> {
        let mut all = [Self::Queued, Self::Running, Self::Done, Self::Dead].into_iter();
        all.find(|&state| state as i64 == number)
    }
}

/// A delivery as an engine keeps it.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) key: EventKey,
    /// A digest of scope, data model and row, for events that name a row.
    pub(crate) row: Option<EventKey>,
    /// Detects a different body with the same id, also when the stored body is deleted.
    pub(crate) digest: u64,
    pub(crate) event_id: String,
    pub(crate) event_type: String,
    /// The timestamp that was signed.
    pub(crate) timestamp: String,
    pub(crate) received_at: UnixSeconds,
    pub(crate) scope: String,
    pub(crate) key_name: String,
    pub(crate) subscription: Option<String>,
    pub(crate) workspace: Option<String>,
    pub(crate) body: Bytes,
    /// The trace of the request. Kept as long as the body.
    pub(crate) traceparent: Option<String>,
}

impl Entry {
    pub(crate) fn of(delivery: &Delivery) -> Self {
        let stored = delivery.to_stored();
        Self {
            key: *delivery.key(),
            row: delivery.row().map(|(model, row)| {
                // The model has its length before it, so that no two pairs of model and row give the same text.
                let row = format!("{}:{model}{row}", model.len());
                EventKey::new(&stored.scope, &row)
            }),
            digest: body_digest(&stored.body),
            event_id: stored.event_id,
            event_type: stored.event_type,
            timestamp: stored.timestamp,
            received_at: stored.received_at,
            scope: stored.scope,
            key_name: stored.key_name,
            subscription: stored.subscription_id,
            workspace: stored.pinned_workspace,
            body: stored.body,
            traceparent: stored.traceparent,
        }
    }

    /// Converts the entry to the delivery as it was accepted.
    ///
    /// # Errors
    /// Its parts, if they are no valid delivery: another program has changed them.
    pub(crate) fn into_delivery(self) -> Result<Delivery, Box<StoredDelivery>> {
        let stored = StoredDelivery {
            body: self.body,
            timestamp: self.timestamp,
            signature: None, // an inbox is trusted, and keeps no signature
            event_id: self.event_id,
            event_type: self.event_type,
            received_at: self.received_at,
            scope: self.scope,
            key_name: self.key_name,
            subscription_id: self.subscription,
            pinned_workspace: self.workspace,
            traceparent: self.traceparent,
        };
        dangerous::restore(&stored).map_err(|Malformed| Box::new(stored))
    }
}

/// Returns the id and the type of an entry that may be damaged.
pub(crate) fn stored_head(event_id: &str, event_type: &str) -> (EventId, EventType) {
    (EventId::stored(event_id), EventType::stored(event_type))
}

/// Returns a stored count or time; a negative one becomes zero.
pub(crate) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_read_as_it_is_shown() {
        for number in [1, 42, i64::MAX] {
            let shown = EntryId(number).to_string();
            assert_eq!(shown.parse(), Ok(EntryId(number)));
        }
        for text in [
            "",
            "0",
            "-1",
            "+1",
            " 1",
            "1 ",
            "0x1",
            "9223372036854775808",
        ] {
            assert_eq!(text.parse::<EntryId>(), Err(Malformed), "{text:?}");
        }
    }
}
