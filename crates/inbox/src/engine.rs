//! The contract between the workers of an inbox and the [`Engine`] that stores its entries.
//!
//! `hookgate-sqlite` and `hookgate-postgres` have an engine each. An engine of your own is passed
//! to [`Inbox::on`](super::Inbox::on); the suite that both pass, in the module `contract` of the
//! feature of the same name, checks it.

use std::fmt;
use std::future::{Future, ready};
use std::pin::Pin;
use std::time::Duration;

use hookgate::{
    dedupe::{ClaimToken, Ownership, ScopesInUse, StoreFuture},
    event::{EventId, EventType},
    sink::Accepted,
};

use tokio::sync::Notify;

use super::entry::{EntryId, EntryState};
use super::selection::{Page, Selection};

pub use super::entry::{Entry, UNREADABLE};

/// Stores the entries of an inbox.
///
/// ```text
///           lease                      settle(Done)
///  queued ─────────▶ running(token) ─────────────────▶ done ── retention over ──▶ gone
///    ▲                 │   │  │
///    ├── Retry, Return ┘   │  └── Dead, or tries used up ──▶ dead ── purge ──▶ gone
///    └── the lease ends ───┘                                   │
///    └────────────────────────── retry ────────────────────────┘
/// ```
/// An operator's `Erase` makes an entry done from any state, without a body.
///
/// A run is counted (`tries`) when its entry is leased, so that an event whose handler kills the
/// process ends as a dead letter as well. The time of the first lease is stored with the entry:
/// from then on its effect may have happened. Each call is one atomic and durable step. Renewal and
/// settlement carry the claim token of the lease. With another token they return `Lost` and change
/// nothing; repeated with the same token after a lost reply, they return `Held`. The engine uses
/// its own clock. An error or a reason is one line of text, which is stored unchanged.
///
/// # Errors
/// **An error means unknown**: the call may or may not have taken effect. The same holds where a
/// call panics, or is dropped because its time is over. So each call can be repeated:
///
/// | call | after an error |
/// |---|---|
/// | `accept` | the delivery is answered 503; the copy that the sender delivers is accepted, or is a duplicate |
/// | `lease` | repeated after a pause; entries that it has leased all the same are due when their leases end |
/// | `renew` | repeated, for as long as the entry runs |
/// | `settle` | repeated for ten minutes, or for the time of a lease if that is longer; then the entry is due when its lease ends |
/// | all others | returned to the caller |
///
/// With [`Refused`](hookgate::dedupe::StoreErrorKind::Refused) the engine says that the same call
/// fails each time, such as for a text outside of its encoding. A settlement that is refused is
/// sent once more, at once, with a plainer text of the failure, and then not again: the entry is
/// due when its lease ends. Return another kind, such as
/// [`Unavailable`](hookgate::dedupe::StoreErrorKind::Unavailable), for a call that may succeed
/// later. In all other calls the workers treat the kinds alike.
///
/// # Security
/// Entries are not verified again when they are leased: who can write to the store decides which
/// events are handled.
pub trait Engine: fmt::Debug + Send + Sync + 'static {
    /// Stores an entry, unless its [key](Entry::key) is known, and answers when it is durable. The
    /// id is remembered for `retain` from now, and for as long as its entry is not done.
    ///
    /// # Errors
    /// [`Full`](hookgate::dedupe::StoreErrorKind::Full) where there is no room for the entry: the
    /// delivery is answered 503, as after any error.
    fn accept(&self, entry: Entry, retain: Duration) -> StoreFuture<'_, Accepted>;

    /// Leases entries that are due, the longest due first.
    fn lease(&self, request: LeaseRequest) -> StoreFuture<'_, Batch>;

    /// Makes the lease end this long after now.
    fn renew(&self, id: EntryId, token: ClaimToken, lease: Duration) -> StoreFuture<'_, Ownership>;

    /// Ends a run.
    ///
    /// # Errors
    /// [`Refused`](hookgate::dedupe::StoreErrorKind::Refused) if this `end` can never be stored:
    /// see the errors of the trait.
    fn settle(&self, id: EntryId, token: ClaimToken, end: End) -> StoreFuture<'_, Ownership>;

    /// Wakes a worker when entries may have become due. The engine calls `notify_one` after each
    /// commit that may have made some due, and for those of other processes as far as it can detect
    /// them. A worker that is not woken finds them when it polls.
    fn changed(&self) -> &Notify;

    /// Returns entries in the order of their numbers.
    fn list(&self, which: Selection, page: Page) -> StoreFuture<'_, Vec<Listed>>;

    /// Returns an entry with its body; the body of an entry that is done is empty.
    fn show(&self, id: EntryId) -> StoreFuture<'_, Option<(Listed, Entry)>>;

    /// Makes this change to the selected entries, and returns their number.
    ///
    /// # Errors
    /// An error after some of several steps carries the number of entries that were changed:
    /// [`StoreError::after_changes`](hookgate::dedupe::StoreError::after_changes).
    fn operate(&self, which: Selection, change: Change) -> StoreFuture<'_, u64>;

    /// Overwrites the bytes of deleted entries, where the engine keeps a file of its own.
    fn overwrite_deleted(&self) -> StoreFuture<'_, ()> {
        StoreFuture::ready(Ok(()))
    }

    /// Counts the entries.
    fn stats(&self) -> StoreFuture<'_, InboxStats>;

    /// The acceptors of this process.
    fn scopes_in_use(&self) -> &ScopesInUse;

    /// Completes when the engine is dropped and has closed its resources. Completes at once if the
    /// engine has none.
    fn end(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(ready(()))
    }
}

/// The parameters of a worker's lease call.
#[derive(Clone, Debug)]
pub struct LeaseRequest {
    /// The largest number of entries to lease.
    pub most: usize,
    /// How long the leases last.
    pub lease: Duration,
    /// An entry whose last permitted run ended without a settlement becomes a dead letter instead,
    /// with [`NEVER_SETTLED`].
    pub max_tries: u32,
    /// An entry whose first lease began longer ago becomes a dead letter instead, with [`TOO_OLD`]:
    /// its effect may have happened, and its claim may be forgotten. An entry whose first lease
    /// lies more than [`CLOCK_LEAP`] in the future becomes one with [`CLOCK_JUMPED`], as its age is
    /// not known. `None`: no limit.
    pub run_within: Option<Duration>,
    /// Lease no entry whose row is running under another lease, and no two entries of one row.
    pub serial_by_row: bool,
    /// The entries that run in this process. They are not leased, even if their leases have ended
    /// by the engine's clock.
    pub except: Vec<EntryId>,
}

/// The entries that a call has leased.
#[derive(Debug, Default)]
pub struct Batch {
    /// The leased entries.
    pub jobs: Vec<Job>,
    /// The time until another entry is due, as far as it is known now.
    pub next_in: Option<Duration>,
    /// Entries that became dead letters: their last lease ended without a settlement, or their
    /// first one began too long ago.
    pub dead_lettered: Vec<Listed>,
}

/// The largest step of a clock, forward or back, at which no claim is forgotten before its entry is
/// too old to be run.
pub const CLOCK_LEAP: Duration = Duration::from_secs(3_600);

/// The last error of an entry whose last permitted run ended without a settlement.
pub const NEVER_SETTLED: &str = "the lease of its last try ended without an outcome: the process was killed or blocked, or the handler ran for too long";

/// The last error of an entry that is too old to be run without an operator's decision.
pub const TOO_OLD: &str = "not run again: its first run began so long ago that its effect may be there while the claim of it is forgotten. Look whether the effect is there; then purge the entry, or run it with: hookgate inbox retry --even-if-older-than-claims";

/// The last error of an entry that is not run because its first lease lies more than [`CLOCK_LEAP`]
/// in the future.
pub const CLOCK_JUMPED: &str = "not run again: its first run lies in the future, so the clock was set back since or ran ahead before, and the age of the entry is not known. Look whether its effect is there; then purge the entry, or run it with: hookgate inbox retry --even-if-older-than-claims";

/// The change that an operator makes to entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// They are due now, with their count of runs set to zero, and with `forgets_age` as if they
    /// had never been leased.
    Retry {
        /// Whether the age of the entries is forgotten too.
        forgets_age: bool,
    },
    /// They become dead letters.
    DeadLetter {
        /// Their last error: one line.
        reason: String,
    },
    /// They are deleted, and their ids forgotten.
    Purge,
    /// They become done, and everything of them that may tell of a person is deleted: the body, the
    /// row, the last error. A run under way loses its lease. `waiting`: also queued and running
    /// entries.
    Erase {
        /// Whether queued and running entries are erased too.
        waiting: bool,
    },
    /// Their last errors are deleted, and nothing else.
    EraseLastError,
}

impl Change {
    /// Returns the states from which this change is possible, in the order in which entries are
    /// looked for: none is found again in the state to which it was changed.
    #[must_use]
    pub fn states(&self) -> &'static [EntryState] {
        use EntryState::{Dead, Done, Queued, Running};
        match self {
            Self::Retry { .. } => &[Queued, Dead],
            Self::DeadLetter { .. } => &[Queued],
            Self::Purge => &[Dead, Done],
            Self::Erase { waiting: false } => &[Done, Dead],
            Self::Erase { waiting: true } | Self::EraseLastError => &[Done, Dead, Running, Queued],
        }
    }
}

/// A leased entry.
pub struct Job {
    /// The number of the entry.
    pub id: EntryId,
    /// The token of the lease, drawn for it with [`ClaimToken::new`].
    pub token: ClaimToken,
    /// The number of runs, this one included.
    pub tries: u32,
    /// The time from acceptance to the lease.
    pub waited: Duration,
    /// The entry with its body.
    pub entry: Entry,
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job")
            .field("id", &self.id)
            .field("tries", &self.tries)
            .finish_non_exhaustive()
    }
}

/// How a run ended.
#[derive(Clone, Debug)]
pub enum End {
    /// Handled.
    Done,
    /// Failed: the entry is due again after this time.
    Retry {
        /// The time until it is due.
        after: Duration,
        /// The reason, one line.
        error: String,
    },
    /// The run cannot succeed, or has failed for the last permitted time: the entry becomes a dead
    /// letter.
    Dead {
        /// The reason, one line.
        error: String,
    },
    /// Not begun, or cut off by a shutdown: the entry is due at once, and the run does not count.
    Return,
}

impl End {
    /// Returns the values that are stored with the entry: its state, the time until it is due, and
    /// the reason of the failure.
    #[must_use]
    pub fn stored(&self) -> (EntryState, Duration, Option<&str>) {
        match self {
            Self::Done => (EntryState::Done, Duration::ZERO, None),
            Self::Retry { after, error } => (EntryState::Queued, *after, Some(error)),
            Self::Dead { error } => (EntryState::Dead, Duration::ZERO, Some(error)),
            Self::Return => (EntryState::Queued, Duration::ZERO, None),
        }
    }

    /// Replaces the error by a plainer text: the same text in ASCII, with a `?` for each other
    /// character, or, if it is ASCII already, a fixed text that does not describe the failure.
    /// Returns false if there is no error.
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

/// An entry as a list shows it: without the body.
#[derive(Clone, Debug)]
pub struct Listed {
    /// The number of the entry.
    pub id: EntryId,
    /// The event's id. `unreadable` if another program has changed it to an invalid one.
    pub event_id: EventId,
    /// The event's type, or `unreadable`.
    pub event_type: EventType,
    /// The scope of the key ring that verified it.
    pub scope: String,
    /// Its state.
    pub state: EntryState,
    /// The number of its runs.
    pub tries: u32,
    /// When it was accepted, in milliseconds since 1970-01-01T00:00:00Z.
    pub accepted_at: u64,
    /// When it is due (queued), its lease ends (running) or its id is forgotten (done), in the same
    /// unit. `None`: a dead letter.
    pub until: Option<u64>,
    /// Why its last run failed.
    pub last_error: Option<String>,
    /// The number of bytes of its body; zero if it is done.
    pub body_bytes: u64,
}

/// The number of entries of an inbox in each state, and the age of the oldest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InboxStats {
    /// Entries that wait to be leased.
    pub queued: u64,
    /// Queued entries that were run before.
    pub retrying: u64,
    /// Entries that are leased.
    pub running: u64,
    /// Dead letters.
    pub dead: u64,
    /// Entries that are done, and whose ids are remembered.
    pub done: u64,
    /// The age of the oldest entry that is queued or running, since its acceptance.
    pub oldest: Option<Duration>,
}

/// Returns the id that a table has, or `unreadable` where another program has changed it to an
/// invalid one.
#[must_use]
pub fn readable_id(text: &str) -> EventId {
    EventId::parse(text).unwrap_or_else(|_| match EventId::parse("unreadable") {
        Ok(id) => id,
        Err(_) => unreachable!("it is a usable text"),
    })
}

/// Returns the type that a table has, or `unreadable`.
#[must_use]
pub fn readable_type(text: &str) -> EventType {
    EventType::parse(text).unwrap_or_else(|_| match EventType::parse("unreadable") {
        Ok(event_type) => event_type,
        Err(_) => unreachable!("it is a usable text"),
    })
}

/// The most bytes of the reason of a failure, as it is stored with an entry.
const REASON_BYTES: usize = 512;

/// Returns at most [`REASON_BYTES`] bytes of the text. The result has no character that ends a line
/// or controls a terminal, and any database accepts it as text.
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::new();
    for char in text.chars() {
        let char = if char.is_control() { ' ' } else { char };
        if line.len() + char.len_utf8() > REASON_BYTES - '…'.len_utf8() {
            line.push('…');
            break;
        }
        line.push(char);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_one_line_of_bounded_length() {
        assert_eq!(
            one_line("first\nsecond\r\u{1b}[2J\0third"),
            "first second  [2J third"
        );
        for letter in ["x", "ä", "€", "🦀"] {
            let long = one_line(&letter.repeat(1_000));
            assert!(
                long.len() <= REASON_BYTES && long.len() > REASON_BYTES - 8,
                "{}",
                long.len()
            );
            assert!(long.ends_with('…'));
        }
        assert_eq!(
            one_line(&"x".repeat(REASON_BYTES - 3)).len(),
            REASON_BYTES - 3
        );
    }
}
