//! The order of a row's events, inside the transaction that writes the effects: the values that
//! PostgreSQL and SQLite have in common.

use std::time::Duration;

use hookgate::{
    Delivery,
    dedupe::{EventKey, StoreError},
};

use super::event::RowEvent;
use super::judge::{GapReason, Judgement, Order, judge};
use super::store::LastHandled;

/// The values to bind to the statements `LOCK_ROW` and `WRITE_ROW`, of PostgreSQL or of SQLite: see
/// there.
///
/// In a transaction of another database: lock the record of this [key](Self::key) and read its
/// bytes, if it has not ended; [`judge`](Self::judge) the event against them; then write [the next
/// bytes](OrderedIn::record), if there are any, for the [retention](Self::retain_micros). Where
/// there are no values, the result is [`OrderedIn::NO_ROW`].
#[derive(Clone, Debug)]
pub struct RowValues {
    key: EventKey,
    event: RowEvent,
    retain_micros: i64,
}

impl RowValues {
    /// Returns the values of a delivery. `name` is the name of the program, and the row is
    /// remembered for `retain`. `None` if the event is not about a row, or can't be read: its order
    /// is [`Unknown`](Order::Unknown).
    #[must_use]
    pub fn of(name: &str, delivery: &Delivery, retain: Duration) -> Option<Self> {
        let event = RowEvent::read(delivery).ok()??;
        Some(Self {
            key: EventKey::from_bytes(event.row_key).named(name),
            event,
            retain_micros: micros(retain),
        })
    }

    /// Returns the first value of both statements: 16 bytes.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        self.key.as_bytes()
    }

    /// Judges the event against the column `last` that `LOCK_ROW` returned.
    ///
    /// # Errors
    /// [`Corrupt`](hookgate::dedupe::StoreErrorKind::Corrupt): these are not the bytes of a record.
    pub fn judge(&self, last: Option<&[u8]>) -> Result<OrderedIn, StoreError> {
        let last = last.map(LastHandled::from_bytes).transpose()?;
        let Judgement { order, gap, next } = judge(last.as_ref(), &self.event);
        Ok(OrderedIn {
            order,
            gap,
            record: next.map(|next| next.to_bytes()),
        })
    }

    /// Returns the third value of `WRITE_ROW`: how long the row is remembered, in microseconds.
    #[must_use]
    pub fn retain_micros(&self) -> i64 {
        self.retain_micros
    }
}

/// Limited to a hundred years, so that it can be added to a time in any database.
fn micros(time: Duration) -> i64 {
    const MAX: Duration = Duration::from_secs(100 * 366 * 24 * 60 * 60);
    i64::try_from(time.min(MAX).as_micros()).unwrap_or(i64::MAX)
}

/// The result of `order_in`: the order of the event among the handled events of its row.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "an event that is not the newest must not overwrite what a newer one left"]
#[non_exhaustive]
pub struct OrderedIn {
    /// Whether a newer event of the row was handled.
    pub order: Order,
    /// A sign that an event of the row was missed.
    pub gap: Option<GapReason>,
    record: Option<Vec<u8>>,
}

impl OrderedIn {
    /// The result for an event without [`RowValues`].
    pub const NO_ROW: Self = Self {
        order: Order::Unknown,
        gap: None,
        record: None,
    };

    /// Returns the second value of `WRITE_ROW`. `None` if there is nothing to write.
    #[must_use]
    pub fn record(&self) -> Option<&[u8]> {
        self.record.as_deref()
    }
}
