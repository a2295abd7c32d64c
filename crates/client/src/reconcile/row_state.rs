//! The state of a row in the mirror.

use std::collections::BTreeMap;
use std::fmt;

use hookgate::{
    Properties,
    event::{Date, Json},
    internal::from_foreign_json,
};

use super::hash::{RowHash, name_hash};

/// The state of a row.
#[derive(Clone, PartialEq, Eq)]
pub struct RowState {
    /// Whether the row exists.
    pub life: Life,
    /// The time of its last known change, in microseconds since 1970, by the service's clock.
    /// `None` if the service wrote no date.
    pub updated_at: Option<i64>,
    /// The row's `updatedAt` when it was last read from the service and written here. The state
    /// contains all changes up to this time. Of a row that a pass has found as deleted, it is
    /// `updated_at`.
    pub read_at: Option<i64>,
    /// The hash of its properties.
    pub hash: RowHash,
    /// Its properties by name, as a JSON object, if the mirror [keeps
    /// values](super::Mirror::keeps_values).
    pub values: Option<String>,
}

/// Whether a row exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// It was updated, but its creation was not seen: the state has only the updated properties.
    Uncreated,
    /// It exists.
    Live,
    /// It is deleted. The state is kept, so that a late event does not bring the row back.
    Deleted,
}

/// The numbers of a database.
#[cfg(any(feature = "postgres", feature = "sqlite"))]
impl Life {
    pub(super) fn number(self) -> i64 {
        match self {
            Self::Uncreated => 0,
            Self::Live => 1,
            Self::Deleted => 2,
        }
    }

    pub(super) fn from_number(number: i64) -> Option<Self> {
        [Self::Uncreated, Self::Live, Self::Deleted]
            .into_iter()
            .find(|life| life.number() == number)
    }
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

pub(super) type Values = BTreeMap<String, Json>;

pub(super) fn set(values: &mut Values, name: &str, json: Option<&Json>) {
    match json {
        Some(json) => drop(values.insert(name.to_owned(), json.clone())),
        None => drop(values.remove(name)),
    }
}

pub(super) fn written(values: &Values) -> Option<String> {
    serde_json::to_string(values).ok()
}

impl RowState {
    /// Whether your own data may differ from this state: an event or a finding of the row is being
    /// handled, or its handling did not end, or it overlapped another one, or its order was not
    /// certain. The next pass gives the row to its handler.
    #[must_use]
    pub fn is_doubtful(&self) -> bool {
        self.hash.doubt().is_some()
    }

    /// Whether all of the state was read by a pass, or was found to be deleted, and no event has
    /// changed it since.
    pub(super) fn is_as_read(&self) -> bool {
        self.read_at.is_some() && self.updated_at <= self.read_at
    }

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

    /// Whether nothing is known of the row, but that an event of it, or a finding, is being
    /// handled.
    pub(super) fn is_blank(&self) -> bool {
        let mut blank = Self::blank(Life::Uncreated);
        blank.hash.set_doubt(self.hash.doubt());
        *self == blank
    }

    pub(super) fn completed_by(&self, properties: &Properties, keep: bool) -> Self {
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
    pub(super) fn take_values(&mut self, keep: bool) -> Option<Values> {
        if !keep {
            return None;
        }
        match self.values.take() {
            Some(text) => from_foreign_json(text.as_bytes()).ok(),
            None => {
                (self.life == Life::Uncreated && self.hash == RowHash::default()).then(Values::new)
            }
        }
    }

    /// The values as properties.
    pub(super) fn properties(&self) -> Option<Properties> {
        from_foreign_json(self.values.as_deref()?.as_bytes()).ok()
    }
}

/// Returns the time in microseconds since 1970; `None` for a text that is not a date.
pub(crate) fn micros(text: &str) -> Option<i64> {
    i64::try_from(Date::parse(text).ok()?.unix_nanos().ok()? / 1_000).ok()
}
