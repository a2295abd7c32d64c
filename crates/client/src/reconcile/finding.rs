//! Findings: rows that differ from the handled events.

use std::fmt;

use hookgate::{
    Properties,
    dedupe::{EventKey, StoreError},
    event::{DataModelId, EventError, RowId},
};
use serde::de::DeserializeOwned;

use super::mirror::{Mirror, Mirrored, one};
use super::row_state::{Life, RowState};

/// A row that changed without a handled event. `R` is the type of its properties, by default
/// [`Properties`].
///
/// It is not an [`Event`](hookgate::Event), because it was not signed. It has the values of the row
/// at the time of reading, which may be the result of several changes. Write a handler that brings
/// your data to the row's state.
#[derive(Clone)]
#[non_exhaustive]
pub enum Reconciled<R = Properties> {
    /// The row exists, and no handled event created it.
    Created(Found<R>),
    /// The row has other values than the handled events left.
    Updated(Found<R>),
    /// The row was absent in three complete passes, and no event for it was handled since the first
    /// of them began.
    Deleted(Gone<R>),
    /// The row differs, and the reason is not proven: check it yourself.
    Unresolved(Unresolved),
}

/// A row that was read.
#[derive(Clone)]
#[non_exhaustive]
pub struct Found<R = Properties> {
    /// The finding's id. It is the same in every replica that finds the same state of the row.
    pub id: String,
    /// The row's data model.
    pub datamodel_id: DataModelId,
    /// The row.
    pub row_id: RowId,
    /// Its `updatedAt`, as the service wrote it.
    pub updated_at: String,
    /// Its properties, by name.
    pub properties: R,
    /// Its properties as the handled events left them, if the mirror keeps values. `None` for a
    /// created row.
    pub before: Option<R>,
}

/// A row that is gone.
#[derive(Clone)]
#[non_exhaustive]
pub struct Gone<R = Properties> {
    /// The finding's id: the same in every replica.
    pub id: String,
    /// The row's data model.
    pub datamodel_id: DataModelId,
    /// The row.
    pub row_id: RowId,
    /// Its properties as the handled events left them, if the mirror keeps values.
    pub before: Option<R>,
}

/// A row that differs for an unknown reason. It is reported in each pass in which it differs.
#[derive(Clone)]
#[non_exhaustive]
pub struct Unresolved {
    /// The row's data model.
    pub datamodel_id: DataModelId,
    /// The row.
    pub row_id: RowId,
    /// The reason.
    pub reason: UnresolvedReason,
    /// What the finding would be if the reason were not: `updated` or `deleted`.
    pub difference: &'static str,
    /// Its `updatedAt`, as the service wrote it. `None` if the row is absent.
    pub updated_at: Option<String>,
    /// Its properties, by name. `None` if the row is absent.
    pub properties: Option<Properties>,
    /// Its properties as the handled events left them, if the mirror keeps values.
    pub before: Option<Properties>,
}

/// The reason why a difference is not a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UnresolvedReason {
    /// More rows differ than the guard allows. The service may write the values of events and of
    /// rows differently, or a property was renamed. After an outage, that many rows may really have
    /// changed.
    ManyUpdates,
    /// More rows are absent than the guard allows.
    ManyDeletions,
    /// The row is absent. But rows move in the list, and changes without an event were found: it
    /// may have moved.
    MovingList,
    /// The row was read twice with an `updatedAt` that is older than its last handled event.
    StaleRead,
}

impl UnresolvedReason {
    /// Returns the reason in a few words.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ManyUpdates => "too many rows differ at once",
            Self::ManyDeletions => "too many rows are absent at once",
            Self::MovingList => "absent from a list whose rows move",
            Self::StaleRead => "read with an older updatedAt than its last event",
        }
    }
}

impl<R> Reconciled<R> {
    /// The finding's id. `None` if it is unresolved.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        match self {
            Self::Created(found) | Self::Updated(found) => Some(&found.id),
            Self::Deleted(gone) => Some(&gone.id),
            Self::Unresolved(_) => None,
        }
    }

    /// The row.
    #[must_use]
    pub fn row_id(&self) -> &RowId {
        match self {
            Self::Created(found) | Self::Updated(found) => &found.row_id,
            Self::Deleted(gone) => &gone.row_id,
            Self::Unresolved(unresolved) => &unresolved.row_id,
        }
    }

    /// The row's data model.
    #[must_use]
    pub fn datamodel_id(&self) -> &DataModelId {
        match self {
            Self::Created(found) | Self::Updated(found) => &found.datamodel_id,
            Self::Deleted(gone) => &gone.datamodel_id,
            Self::Unresolved(unresolved) => &unresolved.datamodel_id,
        }
    }

    /// One of `created`, `updated`, `deleted` and `unresolved`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Created(_) => "created",
            Self::Updated(_) => "updated",
            Self::Deleted(_) => "deleted",
            Self::Unresolved(_) => "unresolved",
        }
    }
}

impl Reconciled {
    /// Reads the properties as a type of your own.
    ///
    /// # Errors
    /// A property does not fit the type.
    pub fn to<R: DeserializeOwned>(&self) -> Result<Reconciled<R>, EventError> {
        let read =
            |properties: &Option<Properties>| properties.as_ref().map(Properties::to).transpose();
        let found = |found: &Found| {
            Ok::<_, EventError>(Found {
                id: found.id.clone(),
                datamodel_id: found.datamodel_id.clone(),
                row_id: found.row_id.clone(),
                updated_at: found.updated_at.clone(),
                properties: found.properties.to()?,
                before: read(&found.before)?,
            })
        };
        Ok(match self {
            Self::Created(row) => Reconciled::Created(found(row)?),
            Self::Updated(row) => Reconciled::Updated(found(row)?),
            Self::Deleted(gone) => Reconciled::Deleted(Gone {
                id: gone.id.clone(),
                datamodel_id: gone.datamodel_id.clone(),
                row_id: gone.row_id.clone(),
                before: read(&gone.before)?,
            }),
            Self::Unresolved(unresolved) => Reconciled::Unresolved(unresolved.clone()),
        })
    }
}

/// Implements `Debug` with ids and no value.
macro_rules! debug {
    ($($type:ident),+) => {
        $(impl<R> fmt::Debug for $type<R> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($type))
                    .field("id", &self.id)
                    .field("row_id", &self.row_id)
                    .finish_non_exhaustive()
            }
        })+
    };
}
debug! { Found, Gone }

/// Shows the row and no value.
impl fmt::Debug for Unresolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unresolved")
            .field("row_id", &self.row_id)
            .field("reason", &self.reason)
            .field("difference", &self.difference)
            .finish_non_exhaustive()
    }
}

/// Shows the row and no value.
impl<R> fmt::Debug for Reconciled<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.kind(), self.row_id())
    }
}

/// A finding of the planner, with the write that belongs to it.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The finding.
    pub reconciled: Reconciled,
    /// The mirror's revision of the row that it was found on.
    pub(super) revision: u64,
    /// The row's state once the finding is handled. `None` if it is unresolved.
    pub(super) state: Option<RowState>,
}

impl Finding {
    /// Writes the row's new state to the mirror. Call it after the finding was handled. If an event
    /// for the row was handled meanwhile, nothing is written, and the next pass compares again.
    ///
    /// # Errors
    /// The mirror could not be written: the next pass finds the row again, under the same id.
    pub async fn record(&self, mirror: &(impl Mirror + ?Sized)) -> Result<(), StoreError> {
        self.write(mirror).await.map(drop)
    }

    /// Puts the row in doubt until the finding is written: its handler may not end. Returns whether
    /// the mirror's row is the one that it was found on.
    pub(super) async fn mark(
        &mut self,
        mirror: &(impl Mirror + ?Sized),
    ) -> Result<bool, StoreError> {
        let (model, row) = (self.reconciled.datamodel_id(), self.reconciled.row_id());
        let known = one(mirror, model, row).await?;
        let revision = known.as_ref().map_or(0, |known| known.revision);
        if revision != self.revision || mirror.is_read_only() {
            return Ok(revision == self.revision);
        }
        let state = known.map(|known| known.state);
        let mut state = state.unwrap_or_else(|| RowState::blank(Life::Uncreated));
        state.hash.set_doubt(Some(state.hash.doubt().unwrap_or(0)));
        let is_marked = mirror.swap(model, row, revision, state).await?;
        self.revision += u64::from(is_marked);
        Ok(is_marked)
    }

    /// Returns whether the state was written.
    pub(super) async fn write(&self, mirror: &(impl Mirror + ?Sized)) -> Result<bool, StoreError> {
        let Some(mut state) = self.state.clone() else {
            return Ok(false);
        };
        if !mirror.keeps_values() {
            state.values = None;
        }
        let (model, row) = (self.reconciled.datamodel_id(), self.reconciled.row_id());
        mirror.swap(model, row, self.revision, state).await
    }
}

/// The part of a finding's version for a row in doubt: its state may have been found before, and is
/// handled once more.
pub(super) fn doubt(known: Option<&Mirrored>) -> String {
    match known.and_then(|known| known.state.hash.doubt()) {
        Some(number @ 1..) => format!(" {number}"),
        _ => String::new(),
    }
}

/// A finding's id: a digest of the row and of the state that was found.
pub(super) fn finding_id(model: &DataModelId, kind: &str, row: &RowId, state: &str) -> String {
    let found = EventKey::new(kind, state).to_hex();
    let key = EventKey::new(model.as_str(), &format!("{found}{row}"));
    format!("rec_{}", key.to_hex())
}
