//! How handled events change the mirror.

use std::fmt;

use hookgate::{
    Event, EventData,
    dedupe::{StoreError, StoreErrorKind},
    event::{Changes, DataModelId, Json, RowId},
};
use hookgate_order::Order;

use super::hash::{name_hash, value_hash};
use super::mirror::{Mirror, one};
use super::row_state::{Life, RowState, micros, set, written};

/// The result of [`feed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fed {
    /// The mirror has a new state of the row.
    Written,
    /// The mirror already had this state or a newer one: the event is a late retry, or its row was
    /// repaired before.
    Known,
    /// The event is not about a row.
    NoRow,
}

/// Writes a handled event to the mirror. Call it after the event was handled, for each event of the
/// reconciled data models, in any order. A second call changes nothing.
///
/// If your handler writes a table, use [`begin`] and [`Begun::finish`] in place of it: they also
/// find the rows that a crash, or an event at the same time, has left wrong there.
///
/// The event must have all signed properties, so it is an
/// [`Event<Properties>`](hookgate::Properties). If your handler uses its own row type, read the
/// delivery a second time with `delivery.event::<Properties>()`.
///
/// # Errors
/// The mirror could not be read or written. The event stays handled, and a pass finds its row as
/// updated.
pub async fn feed(mirror: &(impl Mirror + ?Sized), event: &Event) -> Result<Fed, StoreError> {
    write(mirror, event, None).await
}

/// Returns whether a pass has read the row with the event's change, and your handler was given it.
/// This recognises a retry that comes after its row was repaired. Answer such an event
/// `hookgate::layer::AlreadyHandled`.
///
/// It does not recognise an event whose change was undone before a pass read the row, unless the
/// row was changed again since.
///
/// # Errors
/// The mirror could not be read. Answer 503, as `?` does in a handler: without the mirror, an old
/// event may overwrite a repair.
pub async fn is_known(mirror: &(impl Mirror + ?Sized), event: &Event) -> Result<bool, StoreError> {
    let Some((model, row)) = place(event) else {
        return Ok(false);
    };
    let known = one(mirror, model, row).await?;
    Ok(known.is_some_and(|known| knows(&known.state, event)))
}

/// An event that [`begin`] has noted in the mirror. If it is dropped, the next pass gives its row
/// to the handler.
#[must_use = "an event that is not finished leaves its row in doubt"]
pub struct Begun<'a, M: ?Sized> {
    mirror: &'a M,
    event: &'a Event,
    order: Order,
    /// `None` if the event is not about a row.
    noted: Option<Noted>,
}

struct Noted {
    /// Of the row in the mirror, unless another handler has written it since.
    revision: u64,
    /// Whether the handler leaves its table as [`after`] leaves the mirror.
    is_certain: bool,
}

/// Notes in the mirror that this event is being handled. Call it before the handler changes your
/// table, with the order that the [`OrderGuard`](hookgate_order) told, and [`Begun::finish`]
/// afterwards.
///
/// `None` if the event [is known](is_known): answer `hookgate::layer::AlreadyHandled`.
///
/// From here on the row [is doubtful](RowState::is_doubtful), and the next pass gives it to its
/// handler, unless `finish` ends the doubt. A row stays in doubt if the process is killed or the
/// handler fails; if another event or a finding of the row is handled at the same time, also in
/// another process; or if the order is not [`Newest`](Order::Newest) and the mirror does not have
/// the event's values.
///
/// # Errors
/// The mirror could not be read or written. Answer 503, as `?` does in a handler.
pub async fn begin<'a, M: Mirror + ?Sized>(
    mirror: &'a M,
    event: &'a Event,
    order: Order,
) -> Result<Option<Begun<'a, M>>, StoreError> {
    let begun = |order, noted| Begun {
        mirror,
        event,
        order,
        noted,
    };
    let Some((model, row)) = place(event) else {
        return Ok(Some(begun(order, None)));
    };
    for _ in 0..TRIES {
        let known = one(mirror, model, row).await?;
        let revision = known.as_ref().map_or(0, |known| known.revision);
        let known = known.map(|known| known.state);
        if known.as_ref().is_some_and(|known| knows(known, event)) {
            return Ok(None);
        }
        // The guard does not know an event whose process was killed before its record, and no
        // repair.
        let order = match order {
            Order::Newest if !known.as_ref().is_none_or(|known| is_newer(known, event)) => {
                Order::Unknown
            }
            order => order,
        };
        let is_certain = known.as_ref().map_or(order == Order::Newest, |known| {
            !known.is_doubtful() && (order == Order::Newest || has_change(known, event))
        });
        let mut next = known.unwrap_or_else(|| RowState::blank(Life::Uncreated));
        let noted = revision.saturating_add(1);
        next.hash.set_doubt(Some(noted));
        if mirror.swap(model, row, revision, next).await? {
            let noted = Noted {
                revision: noted,
                is_certain,
            };
            return Ok(Some(begun(order, Some(noted))));
        }
    }
    Err(StoreError::new(StoreErrorKind::Conflict))
}

impl<M: Mirror + ?Sized> Begun<'_, M> {
    /// The order to handle the event by: that of the guard, or [`Unknown`](Order::Unknown) if the
    /// guard took the event for the newest and the mirror has a newer one.
    #[must_use]
    pub fn order(&self) -> Order {
        self.order
    }

    /// Writes the event to the mirror, as [`feed`] does, and ends the doubt. Call it once your
    /// table is written.
    ///
    /// # Errors
    /// The mirror could not be read or written. The event is handled, and the next pass gives its
    /// row to the handler.
    pub async fn finish(self) -> Result<Fed, StoreError> {
        write(self.mirror, self.event, self.noted).await
    }
}

/// Shows the event's id and no value.
impl<M: ?Sized> fmt::Debug for Begun<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Begun")
            .field("event", &self.event.id)
            .field("order", &self.order)
            .finish_non_exhaustive()
    }
}

/// Each time another writer was faster.
const TRIES: u32 = 16;

async fn write(
    mirror: &(impl Mirror + ?Sized),
    event: &Event,
    noted: Option<Noted>,
) -> Result<Fed, StoreError> {
    let Some((model, row)) = place(event) else {
        return Ok(Fed::NoRow);
    };
    for _ in 0..TRIES {
        let known = one(mirror, model, row).await?;
        let revision = known.as_ref().map_or(0, |known| known.revision);
        let known = known.map(|known| known.state);
        // Before its first event, a row is noted with nothing known of it.
        let of_events = known.as_ref().filter(|known| !known.is_blank());
        let next = after(of_events, event, mirror.keeps_values());
        let fed = match next {
            Some(_) => Fed::Written,
            None => Fed::Known,
        };
        let Some(mut next) = next.or_else(|| known.clone()) else {
            return Ok(fed);
        };
        let doubt = known.as_ref().and_then(|known| known.hash.doubt());
        next.hash.set_doubt(match &noted {
            None => doubt,
            Some(noted) if noted.is_certain && noted.revision == revision => None,
            // Another handler wrote the row since, and may have ended the doubt.
            Some(_) => doubt.or(Some(revision.saturating_add(1))),
        });
        if known.as_ref() == Some(&next) || mirror.swap(model, row, revision, next).await? {
            return Ok(fed);
        }
    }
    Err(StoreError::new(StoreErrorKind::Conflict))
}

/// An event has the change that a pass has read, or it is a change of what the pass has found. A
/// row's `updatedAt` may be a little earlier than the event of its change, so a row as it was read
/// also shows it by its values.
fn knows(state: &RowState, event: &Event) -> bool {
    let is_contained = is_contained(state, micros_of(event));
    let is_read = is_contained || state.is_as_read() && !state.is_doubtful();
    match (&event.data, state.life) {
        (EventData::RowDeleted(_), life) => is_read && life == Life::Deleted,
        (EventData::RowCreated(_), Life::Live) | (EventData::RowUpdated(_), Life::Deleted) => {
            is_read
        }
        (EventData::RowUpdated(_), _) => is_contained || is_read && has_change(state, event),
        // A later creation restores the row under its old id.
        _ => is_contained,
    }
}

/// Whether the event is later than all that the state has, and changes the mirror as its handler
/// changes a table.
fn is_newer(state: &RowState, event: &Event) -> bool {
    let is_restored = state.life == Life::Deleted && matches!(event.data, EventData::RowUpdated(_));
    micros_of(event) > state.updated_at && !is_restored
}

/// Whether the event changes nothing in the state, nor in a table that equals it.
fn has_change(state: &RowState, event: &Event) -> bool {
    let has = |name: &str, json: Option<&Json>| {
        let now = json.and_then(|json| value_hash(name, json));
        state.life == Life::Live && state.hash.value(name_hash(name)) == now
    };
    match &event.data {
        EventData::RowCreated(row) => row
            .properties
            .iter()
            .all(|(name, value)| has(name, value.json())),
        EventData::RowUpdated(row) => row
            .changes
            .iter()
            .all(|(name, sides)| has(name, sides.after.json())),
        EventData::RowDeleted(_) => state.life == Life::Deleted,
        _ => false,
    }
}

fn place(event: &Event) -> Option<(&DataModelId, &RowId)> {
    Some((event.data.datamodel_id()?, event.data.row_id()?))
}

/// Returns the row's state after the event; `None` if the event changes nothing.
fn after(known: Option<&RowState>, event: &Event, keep: bool) -> Option<RowState> {
    let at = micros_of(event);
    match (&event.data, known) {
        (EventData::RowCreated(row), None) => {
            Some(RowState::read(Life::Live, at, &row.properties, keep))
        }
        (EventData::RowCreated(row), Some(known)) => match known.life {
            Life::Live if known.is_as_read() => None,
            // Restored under its old id.
            _ if at > known.updated_at => {
                let state = RowState::read(Life::Live, at, &row.properties, keep);
                Some(RowState {
                    read_at: known.read_at,
                    ..state
                })
            }
            // Updates came first, and are newer than what the row was created with.
            Life::Uncreated => Some(known.completed_by(&row.properties, keep)),
            Life::Live | Life::Deleted => None,
        },
        (EventData::RowUpdated(row), known) => {
            let blank = RowState::blank(Life::Uncreated);
            updated(known.unwrap_or(&blank), at, &row.changes, keep)
        }
        (EventData::RowDeleted(_), Some(known)) if known.life == Life::Deleted => None,
        (EventData::RowDeleted(_), known) => {
            let mut state = RowState::blank(Life::Deleted);
            state.updated_at = at.max(known.and_then(|known| known.updated_at));
            state.read_at = known.and_then(|known| known.read_at);
            Some(state)
        }
        _ => None,
    }
}

/// An update that is newer than the state is taken over. Of another one, the times do not say
/// whether it is contained: a property is taken over if it is as the update found it.
fn updated(known: &RowState, at: Option<i64>, changes: &Changes, keep: bool) -> Option<RowState> {
    if known.life == Life::Deleted || is_contained(known, at) {
        return None;
    }
    let is_newer = at.is_some() && at > known.updated_at;
    let mut state = known.clone();
    let mut values = state.take_values(keep);
    for (name, sides) in changes.iter() {
        let (before, now) = (sides.before.json(), sides.after.json());
        let hash = name_hash(name);
        let was = before.and_then(|json| value_hash(name, json));
        let is_unknown = known.life == Life::Uncreated && !known.hash.knows(hash);
        if is_newer || is_unknown || known.hash.value(hash) == was {
            state
                .hash
                .set(hash, now.and_then(|json| value_hash(name, json)));
            if let Some(values) = &mut values {
                set(values, name, now);
            }
        }
    }
    if state.life == Life::Live {
        state.hash = state.hash.without_empty();
    }
    state.updated_at = at.max(known.updated_at);
    state.values = values.and_then(|values| written(&values));
    (state != *known).then_some(state)
}

fn is_contained(state: &RowState, at: Option<i64>) -> bool {
    at.is_some() && at <= state.read_at
}

fn micros_of(event: &Event) -> Option<i64> {
    micros(event.created_at.as_str())
}
