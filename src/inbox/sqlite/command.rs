//! The commands for the writer's thread, their answers, and the data that the threads share with their callers.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::dedupe::{ClaimToken, Ownership, ScopesInUse, StoreError};
use crate::inbox::engine::{Batch, Change, End, LeaseRequest};
use crate::inbox::entry::{Entry, EntryId, EntryState};
use crate::inbox::signal::WorkSignal;
use crate::inbox::sink::Accepted;
use crate::sqlite::slot::WaitingSlot;

/// A command, and its caller.
pub(super) struct Command {
    pub(super) task: Task,
    /// `None` if no caller waits.
    pub(super) reply: Option<oneshot::Sender<Result<Answer, StoreError>>>,
}

pub(super) enum Task {
    Accept {
        entry: Box<Entry>,
        retain: Duration,
        /// Freed when the command is dropped.
        _slot: WaitingSlot,
    },
    Lease(LeaseRequest),
    Renew {
        id: EntryId,
        token: ClaimToken,
        lease: Duration,
    },
    Settle {
        id: EntryId,
        token: ClaimToken,
        end: End,
    },
    Operate {
        ids: Vec<EntryId>,
        /// The state in which the entries were found; it may have changed since.
        state: EntryState,
        change: Arc<Change>,
    },
}

/// Declares the results of commands, with a method for each that returns its value.
macro_rules! answers {
    ($($answer:ident($value:ty) $method:ident,)*) => {
        /// The result of a command, after its commit.
        pub(super) enum Answer {
            $($answer($value),)*
        }

        impl Answer {
            $(pub(super) fn $method(self) -> Option<$value> {
                match self {
                    Self::$answer(value) => Some(value),
                    _ => None,
                }
            })*
        }
    };
}

answers! {
    Accepted(Accepted) accepted,
    Batch(Batch) batch,
    Ownership(Ownership) ownership,
    Count(u64) count,
}

impl Command {
    pub(super) fn is_accept(&self) -> bool {
        matches!(self.task, Task::Accept { .. })
    }

    /// Returns the number of bytes of the body in this command.
    pub(super) fn body_bytes(&self) -> usize {
        match &self.task {
            Task::Accept { entry, .. } => entry.body.len(),
            _ => 0,
        }
    }

    /// Whether the caller no longer waits and the command can be dropped: a delivery that the sender delivers again, a lease
    /// without a holder, a renewal. A settlement is always carried out, also without a caller.
    pub(super) fn is_given_up(&self) -> bool {
        let is_optional = matches!(
            self.task,
            Task::Accept { .. } | Task::Lease(_) | Task::Renew { .. }
        );
        is_optional && self.reply.as_ref().is_none_or(oneshot::Sender::is_closed)
    }

    /// Returns the number of entries that this command may have made due.
    pub(super) fn made_due(&self, answer: &Answer) -> usize {
        match answer {
            Answer::Accepted(accepted) => usize::from(*accepted == Accepted::New),
            Answer::Count(count) => usize::try_from(*count).unwrap_or(usize::MAX),
            // A settled entry is due again, or frees its row for the next entry.
            Answer::Ownership(Ownership::Held) => {
                usize::from(matches!(self.task, Task::Settle { .. }))
            }
            Answer::Ownership(_) | Answer::Batch(_) => 0,
        }
    }

    pub(super) fn refuse(self, error: StoreError) {
        // A caller that no longer waits needs no answer.
        drop(self.reply.map(|reply| reply.send(Err(error))));
    }

    /// Sends the answer. If the caller of a lease no longer waits, its batch is returned: otherwise the entries would wait until
    /// their leases end.
    pub(super) fn answer(self, answer: Answer) -> Option<Batch> {
        match self.reply?.send(Ok(answer)) {
            Err(Ok(Answer::Batch(batch))) => Some(batch),
            _ => None,
        }
    }
}

/// The data that the threads share with their callers.
#[derive(Debug, Default)]
pub(super) struct EngineState {
    pub(super) changed: WorkSignal,
    /// The number of deliveries that wait to be stored.
    pub(super) waiting: Arc<AtomicUsize>,
    pub(super) scopes: ScopesInUse,
}
