//! The judgement: an event against the row's record. No I/O.

use std::cmp::Ordering;

use hookgate::{
    Delivery,
    event::{DataModelId, RowId},
};

use super::event::{RowChange, RowEvent};
use super::known::{Changed, Known};
use super::moment::Moment;
use super::store::LastHandled;

/// The order of an event among the handled events of its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// No newer event of the row was handled: the row was unknown, or its newest handled event is
    /// older, or is this one.
    Newest,
    /// A newer event of the row was handled.
    Stale,
    /// It is not known which event is newer. Possible reasons: their `createdAt` are equal, or
    /// differ by less than the unit in which they are written; `createdAt` is not a date with a
    /// time; the event updates a deleted row, and no new creation was handled; or the event is not
    /// about a row.
    Unknown,
}

impl Order {
    /// Returns `newest`, `stale` or `unknown`, for a log or a metric.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Newest => "newest",
            Self::Stale => "stale",
            Self::Unknown => "unknown",
        }
    }
}

/// The sign that an event of a row was missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GapReason {
    /// A `before` of an update differs from the value that the last handled event left.
    BeforeDiffers,
    /// The row was updated, but its creation was not seen.
    NotCreated,
}

impl GapReason {
    /// Returns `before_differs` or `not_created`, for a log or a metric.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::BeforeDiffers => "before_differs",
            Self::NotCreated => "not_created",
        }
    }
}

/// A handled event about a row.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Ordered {
    /// The delivery.
    pub delivery: Delivery,
    /// The data model of the row.
    pub model: DataModelId,
    /// The row.
    pub row: RowId,
    /// The order that the handler was told.
    pub order: Order,
    /// Whether another event of the row was handled and recorded at the same time, by another
    /// process or another guard: the handler of the older event may have written last. The record
    /// belongs to the newer event.
    pub has_overlapped: bool,
    /// The sign that another event of the row was missed, or has not come yet.
    pub gap: Option<GapReason>,
}

/// An event against the row's record.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Judgement {
    pub(crate) order: Order,
    pub(crate) gap: Option<GapReason>,
    /// The record once the event is handled. `None` if nothing is to be written.
    pub(crate) next: Option<LastHandled>,
}

/// Judges an event against the row's record.
///
/// A row without a record may be older than the guard, or its record has ended: an update of it
/// does not show a gap.
pub(crate) fn judge(last: Option<&LastHandled>, event: &RowEvent) -> Judgement {
    let judged = |order, gap, next| Judgement { order, gap, next };
    let Some(at) = event.at else {
        return judged(Order::Unknown, None, None);
    };
    let next = |known| {
        Some(LastHandled {
            at,
            event: event.event,
            is_deleted: matches!(event.change, RowChange::Deleted),
            is_doubtful: false,
            known,
        })
    };
    let Some(last) = last else {
        let known = after(&Known::default(), &event.change);
        return judged(Order::Newest, None, next(known));
    };
    if last.event == event.event && !last.is_doubtful {
        // Its run was repeated, for example since the process died before the claim was committed.
        return judged(Order::Newest, None, None);
    }
    match at.compare(last.at) {
        None => judged(Order::Unknown, None, beside(last, &event.change, Some(at))),
        Some(Ordering::Less) => judged(Order::Stale, None, beside(last, &event.change, None)),
        Some(_) => match &event.change {
            RowChange::Updated(_) if last.is_deleted => {
                // The row may have been created again, so this event is newer than that creation.
                let next = next(after(&last.known, &event.change)).map(|next| LastHandled {
                    is_deleted: true,
                    is_doubtful: true,
                    ..next
                });
                judged(Order::Unknown, Some(GapReason::NotCreated), next)
            }
            change => {
                let gap = differs(&last.known, change).then_some(GapReason::BeforeDiffers);
                judged(Order::Newest, gap, next(after(&last.known, change)))
            }
        },
    }
}

/// The properties after an event that is newer.
fn after(known: &Known, change: &RowChange) -> Known {
    match change {
        RowChange::Created(values) => Known::created(values),
        RowChange::Updated(changes) => {
            let mut known = known.clone();
            for &Changed { name, after, .. } in changes {
                known.set(name, after);
            }
            known
        }
        RowChange::Deleted => Known::default(),
    }
}

/// Returns the record after an event that is older, or may be newer: then with its time. It remains
/// the record of the newest event. `None` if nothing changes.
fn beside(
    last: &LastHandled,
    change: &RowChange,
    may_be_newer: Option<Moment>,
) -> Option<LastHandled> {
    let mut next = last.clone();
    if let Some(at) = may_be_newer {
        next.is_doubtful = true;
        // An event that lies between the two times is not the newest.
        next.at = last.at.spanning(at);
    }
    // A deleted row has known properties only if it was updated since: its creation is the one that
    // was missing, or may be.
    let may_live = may_be_newer.is_some() || last.known != Known::default();
    match change {
        RowChange::Created(values) if last.is_deleted && may_live => {
            next.is_deleted = false;
            next.known.complete(values);
        }
        _ if last.is_deleted => {}
        RowChange::Created(values) => next.known.complete(values),
        RowChange::Updated(changes) => next.known.doubt(changes),
        RowChange::Deleted => next.known.forget(),
    }
    (next != *last).then_some(next)
}

/// Returns whether a value from before the change is known to be another one.
fn differs(known: &Known, change: &RowChange) -> bool {
    let RowChange::Updated(changes) = change else {
        return false;
    };
    changes.iter().any(|changed| {
        let value = known.value(changed.name);
        value.is_some_and(|value| value != changed.before)
    })
}

#[cfg(test)]
mod tests;
