//! An entry of the ledger, which is one write of one row, and the store of the entries.

use std::time::Duration;

use hookgate::dedupe::{EventKey, StoreFuture};

use crate::reconcile::{RowHash, row_state};

/// The service's last attempt comes 26 h 36 min after the event.
const KEPT: i64 = micros_of_seconds(27 * 60 * 60);
/// The most characters of a writer's name.
const NAME: usize = 64;
/// How far the clocks of this machine and of the service may differ: the receiver accepts
/// signatures of this age.
const CLOCKS: i64 = micros_of_seconds(300);
/// How far the `createdAt` of an update's event may be from the `updatedAt` of its answer.
const EVENT: i64 = micros_of_seconds(60);

const fn micros_of_seconds(seconds: i64) -> i64 {
    seconds * 1_000_000
}

/// A digest of the kind of change, the data model and the row: where the entries that may be an
/// event's cause are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place(pub(super) [u8; 16]);

impl Place {
    fn new(kind: &str, model: &str, row: &str) -> Self {
        let row = EventKey::new(model, row);
        Self(*EventKey::new(kind, &row.to_hex()).as_bytes())
    }

    pub(crate) fn created(model: &str, row: &str) -> Self {
        Self::new("created", model, row)
    }

    /// Of a row whose creation is not answered yet.
    pub(crate) fn creating(model: &str) -> Self {
        Self::new("creating", model, "")
    }

    /// Of a row whose creation has an unknown outcome.
    pub(crate) fn maybe_created(model: &str, values: &RowHash) -> Self {
        let values = values.to_bytes();
        let hex: String = values.iter().map(|byte| format!("{byte:02x}")).collect();
        Self::new("maybe created", model, &hex)
    }

    pub(crate) fn updated(model: &str, row: &str) -> Self {
        Self::new("updated", model, row)
    }

    pub(crate) fn deleted(model: &str, row: &str) -> Self {
        Self::new("deleted", model, row)
    }
}

/// The write that caused an event, from [`Ledger::echo`](crate::Ledger::echo).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Echo {
    /// The name of the writer: see [`Client::writer`](crate::Client::writer).
    pub writer: String,
}

/// A write. Times are in microseconds since 1970.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) place: Place,
    pub(super) writer: String,
    pub(super) written_at: i64,
    /// The time up to which the answer may come. Past, or the least, once it has come.
    pub(super) open_until: i64,
    /// The event's `createdAt` is not before this, by the service's clock.
    pub(super) since: i64,
    /// Nor behind this.
    pub(super) until: i64,
    pub(crate) written: RowHash,
    /// The values of the answer, where they differ from those that were written.
    pub(super) answered: Option<RowHash>,
    /// The key of the event that was marked.
    pub(super) taken: Option<[u8; 16]>,
}

impl Entry {
    /// A write that is about to be sent, and will be answered within this time.
    pub(crate) fn new(place: Place, writer: &str, now: i64, time: Duration) -> Self {
        let open_until = now.saturating_add(i64::try_from(time.as_micros()).unwrap_or(i64::MAX));
        Self {
            place,
            writer: writer.to_owned(),
            written_at: now,
            open_until,
            since: now.saturating_sub(CLOCKS),
            until: open_until.saturating_add(CLOCKS),
            written: RowHash::default(),
            answered: None,
            taken: None,
        }
    }

    /// The write may have been made.
    pub(crate) fn unknown(mut self, place: Place, now: i64) -> Self {
        self.place = place;
        self.open_until = i64::MIN;
        self.until = now.saturating_add(CLOCKS);
        self
    }

    /// The row was created or deleted. It happens once in a row's life, so the time does not
    /// matter.
    pub(crate) fn made(mut self, place: Place) -> Self {
        if self.place != place {
            // The event was taken before the row's id was known. It may be the event of another row
            // with equal values.
            self.taken = None;
            self.place = place;
        }
        self.open_until = i64::MIN;
        (self.since, self.until) = (i64::MIN, i64::MAX);
        self
    }

    /// The row was updated. Where it had these values before, `updatedAt` may be old, and a later
    /// change to these values is not taken for this write.
    pub(crate) fn updated(
        mut self,
        mut answered: RowHash,
        updated_at: Option<&str>,
        now: i64,
    ) -> Self {
        answered.retain(|name| self.written.knows(name));
        self = self.answering(answered);
        self.open_until = i64::MIN;
        self.until = now.saturating_add(CLOCKS);
        if let Some(at) = updated_at.and_then(row_state::micros) {
            self.since = at.saturating_sub(EVENT);
            self.until = at.saturating_add(EVENT);
        }
        self
    }

    pub(crate) fn answering(mut self, answered: RowHash) -> Self {
        self.answered = (answered != self.written).then_some(answered);
        self
    }

    pub(super) fn is_open(&self, now: i64) -> bool {
        now < self.open_until
    }

    pub(super) fn is_over(&self, now: i64) -> bool {
        self.written_at < oldest(now)
    }

    /// Whether its event may have been made at this time. `None`: the event has no date that can be
    /// read.
    pub(super) fn may_be_at(&self, at: Option<i64>) -> bool {
        match at {
            Some(at) => self.since <= at && at <= self.until,
            None => self.since == i64::MIN,
        }
    }

    /// How far the event's time is from the time of the write.
    pub(super) fn distance(&self, at: Option<i64>) -> u64 {
        let write = match self.open_until {
            // Not known where the row alone proves the cause.
            i64::MIN if self.since == i64::MIN => return 0,
            i64::MIN => self.since / 2 + self.until / 2,
            _ => self.written_at,
        };
        at.map_or(0, |at| at.abs_diff(write))
    }

    pub(super) fn echo(&self) -> Echo {
        Echo {
            writer: self.writer.clone(),
        }
    }
}

/// Entries that were written before this time are over.
pub(super) fn oldest(now: i64) -> i64 {
    now.saturating_sub(KEPT)
}

/// A writer's name: bounded, and without characters that a terminal acts on.
pub(super) fn name(name: &str) -> String {
    let mut name: String = name.chars().take(NAME).collect();
    name.retain(|char| !char.is_control());
    name
}

/// A store of entries. Every store passes the tests in `tests/it/ledger/contract.rs`.
///
/// 1. **A change is one indivisible step** that succeeds only on the revision that was read:
///    [`swap`](Self::swap).
/// 2. Numbers rise, and none is used twice.
pub(super) trait Store: Send + Sync + 'static {
    /// Adds one copy of the entry for each hash in `written`, with revision 1, and removes the
    /// entries outside the bounds. Returns the numbers of the new entries.
    fn add<'a>(
        &'a self,
        entry: &'a Entry,
        written: &'a [RowHash],
        bounds: Bounds,
    ) -> StoreFuture<'a, Vec<i64>>;

    /// Returns the entries at these places, three at most, in the order of their numbers.
    fn find<'a>(&'a self, places: &'a [Place]) -> StoreFuture<'a, Vec<Kept>>;

    /// If the present revision is `revision`, writes `entry` with the next revision, or removes the
    /// stored entry where `entry` is `None`. Returns whether it did so. The writer, the time and
    /// the written values of an entry never change.
    fn swap(&self, number: i64, revision: i64, entry: Option<Entry>) -> StoreFuture<'_, bool>;

    #[cfg(feature = "postgres")]
    fn migrate(&self) -> StoreFuture<'_, ()> {
        StoreFuture::ready(Ok(()))
    }
}

/// Which entries are forgotten.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Those that were written before this time.
    pub(super) oldest: i64,
    /// Those that are not among the last `capacity` entries.
    pub(super) capacity: u64,
}

impl Bounds {
    /// The least number that is kept.
    pub(super) fn least(self, last: i64) -> i64 {
        last.saturating_sub_unsigned(self.capacity)
            .saturating_add(1)
    }
}

/// An entry as it is kept.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(super) number: i64,
    pub(super) revision: i64,
    pub(super) entry: Entry,
}
