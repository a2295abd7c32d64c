//! The entries that an operator's call concerns.

use std::time::Duration;

use super::entry::{EntryId, EntryState};

/// Selects entries for an operator's call: all entries that meet every condition that is set.
///
/// ```
/// use std::time::Duration;
/// use hookgate_inbox::{EntryState, Selection};
///
/// let stuck = Selection::all().state(EntryState::Dead).older_than(Duration::from_secs(86_400));
/// # let _ = stuck;
/// ```
///
/// An [engine](super::engine) reads the conditions from its fields.
#[derive(Clone, Debug, Default)]
#[must_use]
#[non_exhaustive]
pub struct Selection {
    /// The number of the entry.
    pub id: Option<EntryId>,
    /// The event's id.
    pub event_id: Option<String>,
    /// The state.
    pub state: Option<EntryState>,
    /// The least time since the acceptance.
    pub older_than: Option<Duration>,
}

impl Selection {
    /// Every entry.
    pub fn all() -> Self {
        Self::default()
    }

    /// Only the entry with this number.
    pub fn id(mut self, id: EntryId) -> Self {
        self.id = Some(id);
        self
    }

    /// Only entries of the event with this id: one in each scope.
    pub fn event_id(mut self, event_id: impl Into<String>) -> Self {
        self.event_id = Some(event_id.into());
        self
    }

    /// Only entries in this state.
    pub fn state(mut self, state: EntryState) -> Self {
        self.state = Some(state);
        self
    }

    /// Only entries that were accepted at least this long ago.
    pub fn older_than(mut self, age: Duration) -> Self {
        self.older_than = Some(age);
        self
    }

    /// Returns one selection for each of these states that this selection includes.
    pub fn in_each(
        &self,
        states: &'static [EntryState],
    ) -> impl Iterator<Item = (EntryState, Self)> {
        let meant = |state: &EntryState| self.state.is_none_or(|meant| meant == *state);
        let states = states.iter().copied().filter(meant);
        states.map(|state| (state, self.clone().state(state)))
    }
}

/// A part of a list, in the order in which entries were accepted.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Page {
    /// The entries after this one.
    pub after: EntryId,
    /// The largest number of entries.
    pub most: usize,
}

impl Page {
    /// The first entries, at most `most`.
    #[must_use]
    pub fn first(most: usize) -> Self {
        Self::after(EntryId::new(i64::MIN), most)
    }

    /// The entries after `last`, at most `most`.
    #[must_use]
    pub fn after(last: EntryId, most: usize) -> Self {
        Self { after: last, most }
    }
}
