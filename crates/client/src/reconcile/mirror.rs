//! The mirror: the state of each row as the handled events left it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use hookgate::{
    CallFuture, Changes, DataModelId, Date, Event, EventData, Json, Properties, RowId, StoreError,
    StoreErrorKind,
};

use super::hash::{RowHash, name_hash, value_hash};

/// The future of a mirror's call.
pub type MirrorFuture<'a, T> = CallFuture<'a, Result<T, StoreError>>;

/// Remembers the state of each row as the handled events and repairs left it.
///
/// A program calls [`feed`] with each event that it has handled, and the reconciliation compares the service's rows with these
/// states. [`MemoryMirror`](super::MemoryMirror) forgets at a restart; `SqliteMirror` and `PostgresMirror` (features `sqlite`,
/// `postgres`) do not. All of them, and your own, pass [`contract::check`](super::contract::check).
///
/// 1. **A write is one indivisible step** that succeeds only on the state that the writer has read: [`swap`](Self::swap).
/// 2. **A revision is never used twice for one row**, so an unchanged revision says that nothing was written.
/// 3. A row of one data model is no row of another, also with the same id.
pub trait Mirror: fmt::Debug + Send + Sync + 'static {
    /// Returns the states of these rows. A row without a state is left out.
    fn get<'a>(
        &'a self,
        model: &'a DataModelId,
        rows: &'a [RowId],
    ) -> MirrorFuture<'a, Vec<(RowId, Mirrored)>>;

    /// Returns the states of at most `limit` rows whose ids are greater than `after`, in the order of the ids' bytes. Fewer than
    /// `limit` only at the end.
    fn list<'a>(
        &'a self,
        model: &'a DataModelId,
        after: Option<&'a RowId>,
        limit: usize,
    ) -> MirrorFuture<'a, Vec<(RowId, Mirrored)>>;

    /// Writes the row's state with the revision `revision + 1`, if its present revision is `revision`: 0 for a row without a
    /// state. Returns whether it was written.
    fn swap<'a>(
        &'a self,
        model: &'a DataModelId,
        row: &'a RowId,
        revision: u64,
        state: RowState,
    ) -> MirrorFuture<'a, bool>;

    /// Whether to write the values of rows as well as their hashes: then a finding has the values from before, at the price of
    /// a copy of the data. `false` by default.
    fn keeps_values(&self) -> bool {
        false
    }
}

/// A row's state, with the number of times that it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mirrored {
    /// Counts the writes of this row, from 1.
    pub revision: u64,
    /// The state.
    pub state: RowState,
}

/// The state of a row.
#[derive(Clone, PartialEq, Eq)]
pub struct RowState {
    /// Whether the row exists.
    pub life: Life,
    /// When it was last changed, as far as is known here: in microseconds since 1970, by the service's clock. `None` where the
    /// service wrote no date.
    pub updated_at: Option<i64>,
    /// The row's `updatedAt` in the last reading that was written here. Changes up to it are contained in the state.
    pub read_at: Option<i64>,
    /// The hash of its properties.
    pub hash: RowHash,
    /// Its properties by name, as a JSON object, where the mirror [keeps values](Mirror::keeps_values).
    pub values: Option<String>,
}

/// Whether a row exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// It was updated, and its creation was not seen: the state has the properties that were updated.
    Uncreated,
    /// It exists.
    Live,
    /// It is deleted. The state stays, so that a late event does not bring the row back.
    Deleted,
}

/// The numbers of a database.
#[cfg(any(feature = "postgres", feature = "sqlite"))]
impl Life {
    pub(super) fn number(self) -> i16 {
        match self {
            Self::Uncreated => 0,
            Self::Live => 1,
            Self::Deleted => 2,
        }
    }

    pub(super) fn from_number(number: i16) -> Option<Self> {
        [Self::Uncreated, Self::Live, Self::Deleted]
            .into_iter()
            .find(|life| life.number() == number)
    }
}

/// The result of [`feed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fed {
    /// The mirror has a new state of the row.
    Written,
    /// The mirror had this state or a newer one already: a late retry, or an event that was repaired before.
    Known,
    /// The event is not about a row.
    NoRow,
}

/// Shows no value.
impl fmt::Debug for RowState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowState")
            .field("life", &self.life)
            .field("updated_at", &self.updated_at)
            .field("hash", &self.hash)
            .finish_non_exhaustive()
    }
}

/// Writes a handled event into the mirror. Call it after the event was handled, for each event of the data models that are
/// reconciled, in any order; a second call changes nothing.
///
/// The event's properties must be all that were signed, so the event is an [`Event<Properties>`](Properties): with a row type of
/// your own, read the delivery a second time with `delivery.event::<Properties>()`.
///
/// # Errors
/// The mirror could not be read or written. The event stays handled, and the row is found as updated by a reconciliation.
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

/// Returns whether the mirror has the event's change already, so that a handler can leave it alone: a retry that comes after the
/// change was found and repaired has another id than the repair, and is recognised by its values.
///
/// An event whose change was undone meanwhile by an event that was handled before it is not recognised.
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
        EventData::RowCreated(_) => state.life != Life::Uncreated,
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
    match &event.data {
        EventData::RowCreated(row) => Some((&row.datamodel_id, &row.row_id)),
        EventData::RowUpdated(row) => Some((&row.datamodel_id, &row.row_id)),
        EventData::RowDeleted(row) => Some((&row.datamodel_id, &row.row_id)),
        _ => None,
    }
}

pub(super) async fn one(
    mirror: &(impl Mirror + ?Sized),
    model: &DataModelId,
    row: &RowId,
) -> Result<Option<Mirrored>, StoreError> {
    let rows = std::slice::from_ref(row);
    Ok(mirror.get(model, rows).await?.pop().map(|(_, state)| state))
}

/// Returns the row's state after the event; `None` where the event changes nothing.
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

type Values = BTreeMap<String, Json>;

fn set(values: &mut Values, name: &str, json: Option<&Json>) {
    match json {
        Some(json) => drop(values.insert(name.to_owned(), json.clone())),
        None => drop(values.remove(name)),
    }
}

fn written(values: &Values) -> Option<String> {
    serde_json::to_string(values).ok()
}

impl RowState {
    /// A row that was read whole, or was just created.
    pub(super) fn read(life: Life, at: Option<i64>, properties: &Properties, keep: bool) -> Self {
        Self {
            updated_at: at,
            hash: RowHash::of(properties),
            values: keep
                .then(|| serde_json::to_string(properties).ok())
                .flatten(),
            ..Self::blank(life)
        }
    }

    pub(super) fn blank(life: Life) -> Self {
        Self {
            life,
            updated_at: None,
            read_at: None,
            hash: RowHash::default(),
            values: None,
        }
    }

    fn completed_by(&self, properties: &Properties, keep: bool) -> Self {
        let mut state = self.clone();
        state.life = Life::Live;
        let mut values = state.take_values(keep);
        let created = RowHash::of(properties);
        for (name, value) in properties.iter() {
            let hash = name_hash(name);
            if !self.hash.knows(hash) {
                state.hash.set(hash, created.value(hash));
                if let Some(values) = &mut values {
                    set(values, name, value.json());
                }
            }
        }
        state.hash = state.hash.without_empty();
        state.values = values.and_then(|values| written(&values));
        state
    }

    /// The values to change, unless this mirror keeps none, or kept none when the row was written.
    fn take_values(&mut self, keep: bool) -> Option<Values> {
        if !keep {
            return None;
        }
        match self.values.take() {
            Some(text) => serde_json::from_str(&text).ok(),
            None => {
                (self.life == Life::Uncreated && self.hash == RowHash::default()).then(Values::new)
            }
        }
    }

    /// The values as properties.
    pub(super) fn properties(&self) -> Option<Properties> {
        serde_json::from_str(self.values.as_deref()?).ok()
    }
}

fn micros_of(event: &Event) -> Option<i64> {
    micros(event.created_at.as_str())
}

/// Returns the time in microseconds since 1970; `None` for a text that is no date.
pub(super) fn micros(text: &str) -> Option<i64> {
    i64::try_from(Date::parse(text).ok()?.unix_nanos() / 1_000).ok()
}

impl<M: Mirror + ?Sized> Mirror for Arc<M> {
    fn get<'a>(
        &'a self,
        model: &'a DataModelId,
        rows: &'a [RowId],
    ) -> MirrorFuture<'a, Vec<(RowId, Mirrored)>> {
        (**self).get(model, rows)
    }

    fn list<'a>(
        &'a self,
        model: &'a DataModelId,
        after: Option<&'a RowId>,
        limit: usize,
    ) -> MirrorFuture<'a, Vec<(RowId, Mirrored)>> {
        (**self).list(model, after, limit)
    }

    fn swap<'a>(
        &'a self,
        model: &'a DataModelId,
        row: &'a RowId,
        revision: u64,
        state: RowState,
    ) -> MirrorFuture<'a, bool> {
        (**self).swap(model, row, revision, state)
    }

    fn keeps_values(&self) -> bool {
        (**self).keeps_values()
    }
}
