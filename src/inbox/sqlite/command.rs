//! The commands for the writer's thread, their answers, and the data that the threads share with their callers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};

use crate::dedupe::{ClaimToken, Ownership, ScopesInUse, StoreError, StoreErrorKind};
use crate::inbox::engine::{Ask, Batch, Change, End, EntryId, EntryState};
use crate::inbox::entry::Entry;
use crate::inbox::sink::Accepted;

pub(super) type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

pub(super) enum Command {
    Accept {
        entry: Box<Entry>,
        retain: Duration,
        /// Freed when the command is dropped.
        _seat: Seat,
        reply: Reply<Accepted>,
    },
    Lease {
        ask: Ask,
        reply: Reply<Batch>,
    },
    Renew {
        id: EntryId,
        token: ClaimToken,
        lease: Duration,
        reply: Reply<Ownership>,
    },
    Settle {
        id: EntryId,
        token: ClaimToken,
        end: End,
        /// `None` if no caller waits.
        reply: Option<Reply<Ownership>>,
    },
    Operate {
        ids: Vec<EntryId>,
        /// The state in which the entries were found; it may have changed since.
        state: EntryState,
        change: Arc<Change>,
        reply: Reply<u64>,
    },
}

/// The result of a command, after its commit.
pub(super) enum Answer {
    Accepted(Accepted),
    Batch(Batch),
    Ownership(Ownership),
    Count(u64),
}

impl Command {
    pub(super) fn is_accept(&self) -> bool {
        matches!(self, Self::Accept { .. })
    }

    /// Returns the number of bytes of the body in this command.
    pub(super) fn body_bytes(&self) -> usize {
        match self {
            Self::Accept { entry, .. } => entry.body.len(),
            _ => 0,
        }
    }

    /// Whether the caller no longer waits and the command can be dropped: a delivery that the sender delivers again, a lease
    /// without a holder, a renewal. A settlement is always carried out, also without a caller.
    pub(super) fn is_given_up(&self) -> bool {
        match self {
            Self::Accept { reply, .. } => reply.is_closed(),
            Self::Lease { reply, .. } => reply.is_closed(),
            Self::Renew { reply, .. } => reply.is_closed(),
            Self::Settle { .. } | Self::Operate { .. } => false,
        }
    }

    pub(super) fn refuse(self, error: StoreError) {
        // A caller that no longer waits needs no answer.
        match self {
            Self::Accept { reply, .. } => drop(reply.send(Err(error))),
            Self::Lease { reply, .. } => drop(reply.send(Err(error))),
            Self::Renew { reply, .. } => drop(reply.send(Err(error))),
            Self::Settle { reply, .. } => drop(reply.map(|reply| reply.send(Err(error)))),
            Self::Operate { reply, .. } => drop(reply.send(Err(error))),
        }
    }

    /// Sends the answer. If the caller of a lease no longer waits, its batch is returned: otherwise the entries would wait until
    /// their leases end.
    pub(super) fn answer(self, answer: Answer) -> Option<Batch> {
        match (self, answer) {
            (Self::Accept { reply, .. }, Answer::Accepted(accepted)) => {
                drop(reply.send(Ok(accepted)));
            }
            (Self::Lease { reply, .. }, Answer::Batch(batch)) => {
                return reply.send(Ok(batch)).err().and_then(Result::ok);
            }
            (Self::Renew { reply, .. }, Answer::Ownership(ownership)) => {
                drop(reply.send(Ok(ownership)));
            }
            (Self::Settle { reply, .. }, Answer::Ownership(ownership)) => {
                drop(reply.map(|reply| reply.send(Ok(ownership))));
            }
            (Self::Operate { reply, .. }, Answer::Count(count)) => drop(reply.send(Ok(count))),
            // Not reachable: the function that carries out a command makes the answer of its type.
            (command, _) => command.refuse(StoreError::saying(
                StoreErrorKind::Unavailable,
                "the answer is another command's",
            )),
        }
        None
    }
}

/// The data that the threads share with their callers.
#[derive(Debug, Default)]
pub(super) struct EngineState {
    /// A dispatcher begins to listen before it calls `lease`, so it misses no notification.
    pub(super) changed: Notify,
    /// The number of deliveries that wait to be stored.
    pub(super) waiting: Arc<AtomicUsize>,
    pub(super) scopes: ScopesInUse,
}

/// One of the places for deliveries that wait.
pub(super) struct Seat(Arc<AtomicUsize>);

impl Seat {
    /// Returns `None` if all places are taken.
    pub(super) fn take(taken: &Arc<AtomicUsize>, most: usize) -> Option<Self> {
        let seat = Self(Arc::clone(taken));
        (taken.fetch_add(1, Ordering::Relaxed) < most).then_some(seat)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
