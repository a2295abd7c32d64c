//! The stored form of a delivery, and its conversion back to a delivery.

use std::fmt;
use std::str::FromStr;

use bytes::Bytes;
use hookgate::{
    Delivery, Scheme, clock::UnixSeconds, dangerous, dedupe::EventKey, internal::body_digest,
    receiver::StoredDelivery, verify::Malformed,
};

/// The last error of an entry that cannot be converted to a delivery: another program has changed
/// it, or the disk has damaged it.
pub const UNREADABLE: &str = "unreadable: this entry is none that was accepted";

/// The number of an entry of an inbox. Numbers follow the order of acceptance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(i64);

impl EntryId {
    /// Returns the number that an engine has given to the entry.
    #[must_use]
    pub const fn new(number: i64) -> Self {
        Self(number)
    }

    /// Returns the number.
    #[must_use]
    pub fn get(self) -> i64 {
        self.0
    }
}

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
pub enum EntryState {
    /// Waits to be leased: for the first time, or after a back-off.
    Queued,
    /// A worker has leased it. If the lease has ended, the worker was killed or is blocked, and
    /// another worker takes the entry.
    Running,
    /// Handled. Its body is deleted; its id is remembered until its retention ends.
    Done,
    /// A dead letter: it is not run again, unless an operator makes it due.
    Dead,
}

impl EntryState {
    /// Returns the state that an engine's table has as this number: `state as i64` gives the number
    /// of a state.
    ///
    /// ```
    /// use hookgate_inbox::EntryState;
    ///
    /// assert_eq!(EntryState::of_number(EntryState::Dead as i64), Some(EntryState::Dead));
    /// assert_eq!(EntryState::of_number(9), None);
    /// ```
    #[must_use]
    pub fn of_number(number: i64) -> Option<Self> {
        let mut all = [Self::Queued, Self::Running, Self::Done, Self::Dead].into_iter();
        all.find(|&state| state as i64 == number)
    }
}

/// A delivery as an engine keeps it: the columns of its table. An engine writes and reads them, and
/// changes none.
///
/// Its `Debug` shows nothing of the body.
#[derive(Clone, PartialEq, Eq)]
pub struct Entry {
    /// The key of the event: two entries with the same key are copies.
    pub key: EventKey,
    /// A digest of scope, data model and row, for events that name a row.
    pub row: Option<EventKey>,
    /// Detects a different body with the same id, also when the stored body is deleted.
    pub digest: u64,
    /// The event's id.
    pub event_id: String,
    /// The event's type.
    pub event_type: String,
    /// The timestamp that was signed. Where the delivery is of another scheme than the default one,
    /// the scheme's name and a slash are in front: `stripe/1763690000`, `github/`.
    pub timestamp: String,
    /// The time of the receiver's wall clock when the delivery arrived.
    pub received_at: UnixSeconds,
    /// The scope of the key ring that verified it.
    pub scope: String,
    /// The name of the key that verified it.
    pub key_name: String,
    /// The subscription whose keys verified it, if there is more than one subscription.
    pub subscription_id: Option<String>,
    /// The workspace that the subscription's keys are pinned to.
    pub pinned_workspace: Option<String>,
    /// The raw bytes that were signed. Empty once the entry is done.
    pub body: Bytes,
    /// The trace of the request. Kept as long as the body.
    pub traceparent: Option<String>,
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("event_id", &self.event_id)
            .field("event_type", &self.event_type)
            .field("scope", &self.scope)
            .finish_non_exhaustive()
    }
}

impl Entry {
    pub(crate) fn of(delivery: &Delivery) -> Self {
        let stored = delivery.to_stored();
        Self {
            key: *delivery.key(),
            row: delivery.row().map(|(model, row)| {
                // The model has its length before it, so that no two pairs of model and row give
                // the same text.
                let row = format!("{}:{model}{row}", model.len());
                EventKey::new(&stored.scope, &row)
            }),
            digest: body_digest(&stored.body),
            event_id: stored.event_id,
            event_type: stored.event_type,
            timestamp: match stored.scheme == Scheme::WORKSPACE.name() {
                true => stored.timestamp,
                false => format!("{}/{}", stored.scheme, stored.timestamp),
            },
            received_at: stored.received_at,
            scope: stored.scope,
            key_name: stored.key_name,
            subscription_id: stored.subscription_id,
            pinned_workspace: stored.pinned_workspace,
            body: stored.body,
            traceparent: stored.traceparent,
        }
    }

    /// Converts the entry to the delivery as it was accepted.
    ///
    /// # Errors
    /// Its parts, if they are not a valid delivery: another program has changed them.
    pub(crate) fn into_delivery(self) -> Result<Delivery, Box<StoredDelivery>> {
        let (scheme, timestamp) = match self.timestamp.rsplit_once('/') {
            Some((scheme, timestamp)) => (scheme.to_owned(), timestamp.to_owned()),
            None => (Scheme::WORKSPACE.name().to_owned(), self.timestamp),
        };
        let stored = StoredDelivery {
            body: self.body,
            timestamp,
            signature: None, // an inbox is trusted, and keeps no signature
            event_id: self.event_id,
            event_type: self.event_type,
            received_at: self.received_at,
            scope: self.scope,
            key_name: self.key_name,
            subscription_id: self.subscription_id,
            pinned_workspace: self.pinned_workspace,
            traceparent: self.traceparent,
            scheme,
        };
        dangerous::restore(&stored).map_err(|Malformed| Box::new(stored))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_keeps_the_scheme_of_its_delivery() {
        for (scheme, timestamp) in [
            ("workspace", "1763690000"),
            ("stripe", "1763690000"),
            ("github", ""),
            ("acme", "1763690000"),
            ("a/b", ""),
        ] {
            let attributes = [
                ("hookgate-scheme", scheme),
                ("hookgate-timestamp", timestamp),
                ("hookgate-event-id", "evt_1"),
                ("hookgate-event-type", "a.b"),
                ("x-service-timestamp", timestamp),
                ("x-service-event-id", "evt_1"),
                ("x-service-event-type", "a.b"),
            ];
            let find = |name: &str| attributes.iter().find(|(other, _)| *other == name);
            let of = |name: &str| find(name).map(|(_, value)| *value);
            let stored = StoredDelivery::from_attributes("{}", of);
            let delivery = dangerous::restore(&stored).unwrap();
            let again = Entry::of(&delivery).into_delivery().unwrap();
            assert_eq!(again.verified().scheme_name(), scheme);
            assert_eq!(again.to_stored().timestamp, timestamp, "{scheme}");
            assert_eq!(again.key(), delivery.key());
        }
    }

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
