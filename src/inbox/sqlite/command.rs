//! What the writer's thread is asked, and the way back.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::oneshot;

use super::fault::Fault;
use crate::dedupe::{ClaimToken, Ownership};
use crate::error::{StoreError, StoreErrorKind};
use crate::inbox::engine::{Age, Ask, BURIED, Batch, End, EntryId, EntryState, PURGED, RETRIED};
use crate::inbox::entry::Entry;
use crate::inbox::sink::Accepted;

pub(super) type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

pub(super) enum Command {
    Accept {
        entry: Box<Entry>,
        retain: Duration,
        /// Given back when the command is over.
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
        /// Absent where nobody waits.
        reply: Option<Reply<Ownership>>,
    },
    Operate {
        ids: Vec<EntryId>,
        /// Where they stand, unless that has changed meanwhile.
        state: EntryState,
        deed: Arc<Deed>,
        reply: Reply<u64>,
    },
}

/// What an operator does to entries.
pub(super) enum Deed {
    Retry { age: Age },
    Bury { reason: String },
    Purge,
}

impl Deed {
    /// Where entries stand that it can be done to.
    pub(super) fn states(&self) -> &'static [EntryState] {
        match self {
            Self::Retry { .. } => RETRIED,
            Self::Bury { .. } => BURIED,
            Self::Purge => PURGED,
        }
    }
}

/// What became of a command, once it is committed.
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

    /// Bytes of the body that it brings.
    pub(super) fn body_bytes(&self) -> usize {
        match self {
            Self::Accept { entry, .. } => entry.body.len(),
            _ => 0,
        }
    }

    /// Whether nobody waits for what would only be in the way then: a delivery whose sender comes again, a lease that nobody holds.
    /// What is settled is settled, whoever has gone.
    pub(super) fn is_given_up(&self) -> bool {
        match self {
            Self::Accept { reply, .. } => reply.is_closed(),
            Self::Lease { reply, .. } => reply.is_closed(),
            Self::Renew { reply, .. } => reply.is_closed(),
            Self::Settle { .. } | Self::Operate { .. } => false,
        }
    }

    pub(super) fn refuse(self, fault: &Fault) {
        let error = StoreError::from(fault.clone());
        // Who has gone needs no answer.
        match self {
            Self::Accept { reply, .. } => drop(reply.send(Err(error))),
            Self::Lease { reply, .. } => drop(reply.send(Err(error))),
            Self::Renew { reply, .. } => drop(reply.send(Err(error))),
            Self::Settle { reply, .. } => drop(reply.map(|reply| reply.send(Err(error)))),
            Self::Operate { reply, .. } => drop(reply.send(Err(error))),
        }
    }

    /// Answers it. A batch that nobody takes is given back: its entries would else wait for their lease to end.
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
            // Each command is carried out by the function that makes its answer.
            (command, _) => command.refuse(&Fault::said(
                StoreErrorKind::Unavailable,
                "the answer is another command's",
            )),
        }
        None
    }
}

/// One of the places of deliveries that wait.
pub(super) struct Seat(Arc<AtomicUsize>);

impl Seat {
    /// None where all are taken.
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
