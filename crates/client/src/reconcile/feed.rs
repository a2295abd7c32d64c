//! How handled events change the mirror.

use hookgate::{Changes, DataModelId, Event, EventData, RowId, StoreError, StoreErrorKind};

use super::hash::{name_hash, value_hash};
use super::mirror::{Mirror, one};
use super::row_state::{Life, RowState, micros, set, written};

/// The result of [`feed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fed {
    /// The mirror has a new state of the row.
    Written,
    /// The mirror already had this state or a newer one: the event is a late retry, or its row was repaired before.
    Known,
    /// The event is not about a row.
    NoRow,
}

/// Writes a handled event to the mirror. Call it after the event was handled, for each event of the reconciled data models,
/// in any order. A second call changes nothing.
///
/// The event must have all signed properties, so it is an [`Event<Properties>`](hookgate::Properties). If your handler uses its own row
/// type, read the delivery a second time with `delivery.event::<Properties>()`.
///
/// # Errors
/// The mirror could not be read or written. The event stays handled, and a pass finds its row as updated.
pub async fn feed(mirror: &(impl Mirror + ?Sized), event: &Event) -> Result<Fed, StoreError> {
    /// Each time another writer was faster.
    const TRIES: u32 = 16;
    let Some((model, row)) = place(event) else {
        return Ok(Fed::NoRow);
    };
    for _ in 0..TRIES {
        let known = one(mirror, model, row).await?;
        let Some(state) = after(
            known.as_ref().map(|known| &known.state),
            event,
            mirror.keeps_values(),
        ) else {
            return Ok(Fed::Known);
        };
        let revision = known.map_or(0, |known| known.revision);
        if mirror.swap(model, row, revision, state).await? {
            return Ok(Fed::Written);
        }
    }
    Err(StoreError::new(StoreErrorKind::Conflict))
}

/// Returns whether the mirror already has the event's change. This recognises, by its values, a retry that comes after its row was
/// repaired. Answer such an event `hookgate::AlreadyHandled`.
///
/// It does not recognise an event whose change was undone by another event that was handled before it.
///
/// # Errors
/// The mirror could not be read: handle the event then.
pub async fn is_known(mirror: &(impl Mirror + ?Sized), event: &Event) -> Result<bool, StoreError> {
    let Some((model, row)) = place(event) else {
        return Ok(false);
    };
    let known = one(mirror, model, row).await?;
    let Some(state) = known.map(|known| known.state) else {
        return Ok(false);
    };
    Ok(match &event.data {
        EventData::RowCreated(_) => match state.life {
            Life::Uncreated => false,
            Life::Live => true,
            // A later one restores the row under its old id.
            Life::Deleted => micros_of(event) <= state.updated_at,
        },
        EventData::RowDeleted(_) => state.life == Life::Deleted,
        EventData::RowUpdated(row) => {
            state.life == Life::Deleted
                || is_contained(&state, micros_of(event))
                || has_all(&state, &row.changes)
        }
        _ => false,
    })
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
            Life::Live => None,
            // Updates came first, and are newer than what the row was created with.
            Life::Uncreated => Some(known.completed_by(&row.properties, keep)),
            // Restored under its old id.
            Life::Deleted if at > known.updated_at => {
                Some(RowState::read(Life::Live, at, &row.properties, keep))
            }
            Life::Deleted => None,
        },
        (EventData::RowUpdated(row), known) => {
            let blank = RowState::blank(Life::Uncreated);
            updated(known.unwrap_or(&blank), at, &row.changes, keep)
        }
        (EventData::RowDeleted(_), Some(known)) if known.life == Life::Deleted => None,
        (EventData::RowDeleted(_), known) => {
            let mut state = RowState::blank(Life::Deleted);
            state.updated_at = at.max(known.and_then(|known| known.updated_at));
            Some(state)
        }
        _ => None,
    }
}

/// An update that is newer than the state is taken over. Of another one, the times do not say whether it is contained: a property
/// is taken over if it is as the update found it.
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

fn has_all(state: &RowState, changes: &Changes) -> bool {
    state.life == Life::Live
        && changes.iter().all(|(name, sides)| {
            let now = sides.after.json().and_then(|json| value_hash(name, json));
            state.hash.value(name_hash(name)) == now
        })
}

fn micros_of(event: &Event) -> Option<i64> {
    micros(event.created_at.as_str())
}
