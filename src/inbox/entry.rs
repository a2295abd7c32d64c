//! The stored form of a delivery, and its conversion back to a delivery.

use std::fmt;
use std::str::FromStr;

use bytes::Bytes;

use crate::clock::UnixSeconds;
use crate::dedupe::{EventKey, body_digest};
use crate::event::{EventHead, EventId, EventType, row_of};
use crate::verify::{Malformed, StoredRing, Timestamp, Verified};
use crate::walk::Delivery;

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
        let proof = delivery.verified().proof();
        Self {
            key: *delivery.key(),
            row: row_of(delivery.verified()).map(|(model, row)| {
                // The model has its length before it, so that no two pairs of model and row give the same text.
                let row = format!("{}:{model}{row}", model.len());
                EventKey::new(proof.scope(), &row)
            }),
            digest: body_digest(delivery.body()),
            event_id: delivery.event_id().to_owned(),
            event_type: delivery.event_type().to_owned(),
            timestamp: proof.timestamp().as_str().to_owned(),
            received_at: delivery.received_at(),
            scope: proof.scope().to_owned(),
            key_name: proof.key_name().to_owned(),
            subscription: proof.subscription_id().map(str::to_owned),
            workspace: proof.pinned_workspace().map(str::to_owned),
            body: delivery.body().clone(),
            traceparent: delivery.traceparent().map(str::to_owned),
        }
    }

    /// Converts the entry to the delivery as it was accepted.
    ///
    /// # Errors
    /// The entry itself, if it is not a valid delivery: another program has changed it.
    pub(crate) fn into_delivery(self) -> Result<Delivery, Box<Self>> {
        let (Ok(id), Ok(event_type), Ok(timestamp)) = (
            EventId::parse(&self.event_id),
            EventType::parse(&self.event_type),
            Timestamp::parse(self.timestamp.as_bytes()),
        ) else {
            return Err(Box::new(self));
        };
        let noted = StoredRing {
            scope: self.scope,
            key_name: self.key_name,
            subscription: self.subscription,
            workspace: self.workspace,
        };
        let verified = Verified::given_back(timestamp, noted, self.body);
        let traceparent = self.traceparent.as_deref();
        Ok(Delivery::given_back(
            verified,
            EventHead { id, event_type },
            self.received_at,
            traceparent,
        ))
    }
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
