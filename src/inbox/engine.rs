//! What an inbox keeps its entries in: the contract between the workers and SQLite or PostgreSQL.

use std::fmt;
use std::future::{Future, ready};
use std::pin::Pin;
use std::str::FromStr;
use std::time::Duration;

use tokio::sync::Notify;

use super::entry::Entry;
use super::sink::Accepted;
use crate::dedupe::{ClaimToken, Ownership, ScopesInUse, StoreFuture};
use crate::error::Malformed;
use crate::event::{EventId, EventType};

/// Names an entry of an inbox: in the order in which they were accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(pub(crate) i64);

/// As [`FromStr`] reads it.
///
/// [`FromStr`]: std::str::FromStr
impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A positive number in decimal digits.
impl FromStr for EntryId {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text
            .parse()
            .ok()
            .filter(|&number: &i64| is_plain && number > 0);
        number.map(Self).ok_or(Malformed)
    }
}

/// ```text
///           lease                      settle(Done)
///  queued ─────────▶ running(token) ─────────────────▶ done ── retention over ──▶ gone
///    ▲                 │   │  │
///    ├── Retry, Return ┘   │  └── Dead, or tries used up ──▶ dead ── purge ──▶ gone
///    └── the lease ends ───┘                                   │
///    └────────────────────────── retry ────────────────────────┘
/// ```
///
/// A try is counted when it is leased, so that an event whose handler kills the process comes to an end as well. When an entry is first
/// leased is written down with it: from then on its effect may be there. Each call is one
/// indivisible and durable step. Renewal and settlement carry the lease's token; with another one they are `Lost` and change nothing;
/// repeated with the same one after a lost reply, they are `Held`. Time is the engine's own. An error or a reason is a line that is kept as
/// it comes.
pub(crate) trait Engine: fmt::Debug + Send + Sync + 'static {
    fn accept(&self, entry: Entry, retain: Duration) -> StoreFuture<'_, Accepted>;

    /// Leases entries whose turn it is, the longest due first.
    fn lease(&self, ask: Ask) -> StoreFuture<'_, Batch>;

    fn renew(&self, id: EntryId, token: ClaimToken, lease: Duration) -> StoreFuture<'_, Ownership>;

    fn settle(&self, id: EntryId, token: ClaimToken, end: End) -> StoreFuture<'_, Ownership>;

    /// Is notified when an entry may have become due: in this process, and in others as far as the engine can tell.
    fn changed(&self) -> &Notify;

    fn list(&self, which: Selection, page: Page) -> StoreFuture<'_, Vec<Listed>>;

    /// An entry whole; the body of one that is done is gone.
    fn show(&self, id: EntryId) -> StoreFuture<'_, Option<(Listed, Entry)>>;

    /// Makes entries that wait or are dead due now, with all their tries before them. Says how many.
    fn retry(&self, which: Selection, age: Age) -> StoreFuture<'_, u64>;

    /// Makes entries that wait dead letters. Says how many.
    fn bury(&self, which: Selection, reason: String) -> StoreFuture<'_, u64>;

    /// Deletes dead letters, or entries that are done, and forgets their ids. Says how many.
    fn purge(&self, which: Selection) -> StoreFuture<'_, u64>;

    fn stats(&self) -> StoreFuture<'_, InboxStats>;

    /// The acceptors of this process.
    fn scopes_in_use(&self) -> &ScopesInUse;

    /// Ends when the engine is dropped and has given back what it held. At once where that is nothing.
    fn end(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(ready(()))
    }
}

/// What a worker asks for.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    /// At most so many.
    pub(crate) most: usize,
    pub(crate) lease: Duration,
    /// An entry whose lease ended on its last try becomes a dead letter instead.
    pub(crate) max_tries: u32,
    /// An entry whose first lease began longer ago becomes a dead letter instead, with [`TOO_OLD`]: its effect may be there, and the claim
    /// of it forgotten. So does one whose first lease lies ahead by more than [`CLOCK_LEAP`], as its age is not known. `None`: however old.
    pub(crate) run_within: Option<Duration>,
    /// None of a row that another lease runs on, and no two of one row.
    pub(crate) serial_by_row: bool,
    /// Those that run in this process, whatever the engine's clock says of their leases.
    pub(crate) except: Vec<EntryId>,
}

#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) jobs: Vec<Job>,
    /// How long until another entry is due, as far as known now.
    pub(crate) next_in: Option<Duration>,
    /// Became dead letters: the lease of their last try ended without a settlement, or their first lease began too long ago.
    pub(crate) buried: Vec<Listed>,
}

/// A clock may be set by so much, forward or back, and no claim is forgotten before its entry is too old to be run.
pub(crate) const CLOCK_LEAP: Duration = Duration::from_secs(3_600);

/// The last error of an entry that is too old to be run without an operator's word.
pub(crate) const TOO_OLD: &str = "not run again: its first run began so long ago that its effect may be there while the claim of it is forgotten. Look whether the effect is there; then purge the entry, or run it all the same with: hookgate inbox retry --even-if-older-than-claims";

/// Which age of an entry counts when an operator makes it due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Age {
    /// From its first lease on, as before.
    SinceFirstLease,
    /// None: it is run as if it had never been leased.
    Forgotten,
}

/// A leased entry.
pub(crate) struct Job {
    pub(crate) id: EntryId,
    pub(crate) token: ClaimToken,
    /// This one included.
    pub(crate) tries: u32,
    /// From acceptance to the lease.
    pub(crate) waited: Duration,
    pub(crate) entry: Entry,
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job")
            .field("id", &self.id)
            .field("tries", &self.tries)
            .finish_non_exhaustive()
    }
}

/// How a try ended.
#[derive(Clone, Debug)]
pub(crate) enum End {
    /// Handled.
    Done,
    /// Failed: due again after this time.
    Retry { after: Duration, error: String },
    /// Can't or won't succeed.
    Dead { error: String },
    /// Not begun, or cut off by a shutdown: due at once, and the try does not count.
    Return,
}

impl End {
    /// What is kept with the entry of why the try failed.
    pub(crate) fn error(&self) -> Option<&str> {
        match self {
            Self::Retry { error, .. } | Self::Dead { error } => Some(error),
            Self::Done | Self::Return => None,
        }
    }

    /// Puts a plainer text in the place of its error: the same in ASCII, with a `?` for each other letter, or where it is that already, one
    /// that says nothing of the failure. False where there is none.
    pub(crate) fn make_plain(&mut self) -> bool {
        let (Self::Retry { error, .. } | Self::Dead { error }) = self else {
            return false;
        };
        *error = if error.is_ascii() {
            "the store refused the reason of this failure".to_owned()
        } else {
            let plain = |letter: char| if letter.is_ascii() { letter } else { '?' };
            error.chars().map(plain).collect()
        };
        true
    }
}

/// Selection entries an operator means: all of them, but for what is asked besides.
///
/// ```
/// use std::time::Duration;
/// use hookgate::inbox::{EntryState, Selection};
///
/// let stuck = Selection::all().state(EntryState::Dead).older_than(Duration::from_secs(86_400));
/// # let _ = stuck;
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Selection {
    pub(crate) id: Option<EntryId>,
    pub(crate) event_id: Option<String>,
    pub(crate) state: Option<EntryState>,
    pub(crate) older_than: Option<Duration>,
}

impl Selection {
    /// Every entry.
    pub fn all() -> Self {
        Self::default()
    }

    /// The one with this number.
    pub fn id(mut self, id: EntryId) -> Self {
        self.id = Some(id);
        self
    }

    /// Those of the event with this id: one in each scope.
    pub fn event_id(mut self, event_id: impl Into<String>) -> Self {
        self.event_id = Some(event_id.into());
        self
    }

    /// Those that stand there.
    pub fn state(mut self, state: EntryState) -> Self {
        self.state = Some(state);
        self
    }

    /// Those that were accepted at least so long ago.
    pub fn older_than(mut self, age: Duration) -> Self {
        self.older_than = Some(age);
        self
    }

    /// The same, a state after the other, of those that can be meant.
    pub(crate) fn in_each(
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
pub struct Page {
    pub(crate) after: Option<EntryId>,
    pub(crate) most: usize,
}

impl Page {
    /// The first entries, at most so many.
    #[must_use]
    pub fn first(most: usize) -> Self {
        Self { after: None, most }
    }

    /// The entries after this one, at most so many.
    #[must_use]
    pub fn after(last: EntryId, most: usize) -> Self {
        Self {
            after: Some(last),
            most,
        }
    }
}

/// Where an entry stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EntryState {
    /// Waits for its turn: for the first time, or for the end of a back-off.
    Queued,
    /// A worker has leased it. Where the lease has ended, its worker is gone or stands still, and the next one takes it.
    Running,
    /// Handled. Its body is deleted; its id is remembered until its retention ends.
    Done,
    /// Nobody tries again, unless told to.
    Dead,
}

/// Where entries stand that can be made due.
pub(crate) const RETRIED: &[EntryState] = &[EntryState::Queued, EntryState::Dead];
/// Where entries stand that can be made dead letters.
pub(crate) const BURIED: &[EntryState] = &[EntryState::Queued];
/// Where entries stand that can be deleted.
pub(crate) const PURGED: &[EntryState] = &[EntryState::Dead, EntryState::Done];

/// An entry as a list shows it: without the body.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Listed {
    /// Its number.
    pub id: EntryId,
    /// The event's id. `unreadable` where somebody else has written there what is none.
    pub event_id: EventId,
    /// The event's type, or `unreadable`.
    pub event_type: EventType,
    /// The scope of the keys that proved it.
    pub scope: String,
    /// Where it stands.
    pub state: EntryState,
    /// How often it was tried.
    pub tries: u32,
    /// When it was accepted, in milliseconds since 1970-01-01T00:00:00Z.
    pub accepted_at: u64,
    /// When it is due, when its lease ends, or when its id is forgotten, by its state, in the same unit. `None` for a dead letter.
    pub until: Option<u64>,
    /// Why its last try failed.
    pub last_error: Option<String>,
    /// Bytes of its body; of one that is done, zero.
    pub body_bytes: u64,
}

/// What a name is read as. Where somebody else has written what is none, its entry is listed all the same: who looks for it must find it.
pub(crate) fn readable<T>(
    name: &str,
    parse: impl Fn(&str) -> Result<T, Malformed>,
) -> Result<T, Malformed> {
    parse(name).or_else(|_| parse("unreadable"))
}

/// An inbox in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct InboxStats {
    /// Entries that wait for their turn.
    pub queued: u64,
    /// Of those, the ones that have failed before.
    pub retrying: u64,
    /// Entries under a lease.
    pub running: u64,
    /// Dead letters.
    pub dead: u64,
    /// Entries that are done, and whose ids are remembered.
    pub done: u64,
    /// How long ago the oldest entry that is queued or running was accepted.
    pub oldest: Option<Duration>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_read_as_it_is_shown() {
        for number in [1, 42, i64::MAX] {
            let shown = EntryId(number).to_string();
            assert_eq!(shown.parse(), Ok(EntryId(number)));
        }
        for text in [
            "",
            "0",
            "-1",
            "+1",
            " 1",
            "1 ",
            "0x1",
            "9223372036854775808",
        ] {
            assert_eq!(text.parse::<EntryId>(), Err(Malformed), "{text:?}");
        }
    }
}
