//! A mirror in memory.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hookgate::{
    clock::{Clock, Monotonic, SystemClock},
    dedupe::StoreFuture,
    event::{DataModelId, RowId},
};

use super::mirror::{Mirror, Mirrored};
use super::row_state::{Life, RowState};

type Rows = BTreeMap<RowId, Kept>;

struct Kept {
    known: Mirrored,
    written_at: Monotonic,
}

/// A mirror in memory, lost at a restart: for tests, and for a program that fills it again at each
/// start.
///
/// A row takes its id, 24 bytes for each property, about 150 bytes more, and its values if they are
/// kept.
pub struct MemoryMirror {
    models: Mutex<BTreeMap<DataModelId, Rows>>,
    keeps_values: bool,
    clock: Arc<dyn Clock>,
}

impl Default for MemoryMirror {
    fn default() -> Self {
        Self {
            models: Mutex::default(),
            keeps_values: false,
            clock: Arc::new(SystemClock),
        }
    }
}

impl MemoryMirror {
    /// Keeps the values of rows as well: see [`Mirror::keeps_values`].
    #[must_use]
    pub fn with_values() -> Self {
        Self {
            keeps_values: true,
            ..Self::default()
        }
    }

    /// Measures the age of states with this clock.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    fn models(&self) -> MutexGuard<'_, BTreeMap<DataModelId, Rows>> {
        // No step leaves the map half changed.
        self.models.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Mirror for MemoryMirror {
    fn get<'a>(
        &'a self,
        model: &'a DataModelId,
        rows: &'a [RowId],
    ) -> StoreFuture<'a, Vec<(RowId, Mirrored)>> {
        let models = self.models();
        let found = models.get(model).into_iter().flat_map(|known| {
            rows.iter()
                .filter_map(|row| Some((row.clone(), known.get(row)?.known.clone())))
        });
        StoreFuture::ready(Ok(found.collect()))
    }

    fn list<'a>(
        &'a self,
        model: &'a DataModelId,
        after: Option<&'a RowId>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<(RowId, Mirrored)>> {
        let models = self.models();
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let listed = models.get(model).into_iter().flat_map(|known| {
            let range = known.range::<RowId, _>((from, Bound::Unbounded));
            range.map(|(row, kept)| (row.clone(), kept.known.clone()))
        });
        StoreFuture::ready(Ok(listed.take(limit).collect()))
    }

    fn swap<'a>(
        &'a self,
        model: &'a DataModelId,
        row: &'a RowId,
        revision: u64,
        state: RowState,
    ) -> StoreFuture<'a, bool> {
        let mut models = self.models();
        let rows = models.entry(model.clone()).or_default();
        let is_unchanged = rows.get(row).map_or(0, |kept| kept.known.revision) == revision;
        if is_unchanged {
            let revision = revision.saturating_add(1);
            let kept = Kept {
                known: Mirrored { revision, state },
                written_at: self.clock.monotonic(),
            };
            rows.insert(row.clone(), kept);
        }
        StoreFuture::ready(Ok(is_unchanged))
    }

    fn forget<'a>(&'a self, model: &'a DataModelId, age: Duration) -> StoreFuture<'a, u64> {
        let now = self.clock.monotonic();
        let mut models = self.models();
        let mut forgotten = 0;
        if let Some(rows) = models.get_mut(model) {
            let before = rows.len();
            rows.retain(|_, kept| {
                kept.known.state.life != Life::Deleted
                    || now.saturating_since(kept.written_at) < age
            });
            forgotten = before - rows.len();
        }
        StoreFuture::ready(Ok(forgotten as u64))
    }

    fn keeps_values(&self) -> bool {
        self.keeps_values
    }
}

/// Shows no row.
impl fmt::Debug for MemoryMirror {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryMirror").finish_non_exhaustive()
    }
}
