//! The outcomes of a delivery.

use super::refusal::RefusalKind;
use crate::dedupe::Ownership;

/// The message to the sender for a delivery that does not fit.
pub(crate) const TYPE_MISMATCH: &str = "the delivery is not an event that is handled here";

/// The outcome of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// Answered without a run.
    Refused(RefusalKind),
    /// The event was done already: 200, no second run. Or the handler found by itself that the
    /// event was done, and answered `AlreadyHandled`.
    Replayed {
        /// Whether the body is the one that was handled. Another body under the same id is a fault
        /// of the sender. It is still a duplicate.
        same_body: bool,
    },
    /// The sink of an `Acceptor` stored it durably: 200. It is handled afterwards.
    Accepted,
    /// The handler answered 2xx and the claim was committed.
    Handled,
    /// There is no handler for such an event; for example, the event router has no arm for it. It
    /// was answered 2xx, and the claim was committed.
    Unhandled,
    /// The handler answered 2xx, but the claim was not committed: a retry may run again.
    HandledUnrecorded(Unrecorded),
    /// The handler can never succeed. The dead-letter hook took the delivery, and the claim was
    /// committed: 200.
    DeadLettered,
    /// The run failed and its claim was released: a retry runs again.
    Failed(Failure),
    /// The time for the answer ended before the run, or before the sink's answer: 503. The run
    /// continues and settles at its end.
    RunsOn,
}

/// The ways in which a run fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Failure {
    /// The handler answered with this status, which is not 2xx.
    Status(u16),
    /// The body is not a well-formed event, or its data does not fit the type that the handler asks
    /// for: 422.
    TypeMismatch,
    /// There is no handler for such an event, and it is refused: 422.
    Unhandled,
    /// The handler panicked: 500.
    Panicked,
    /// The inner service returned an error in place of an answer.
    ServiceError,
    /// The run exceeded its own limit and was aborted.
    RunLimit,
    /// The run was aborted because the receiver was drained.
    Drained,
    /// The handler answered `DeadLetter`, and the dead-letter hook failed: 500.
    DeadLetterFailed,
    /// The handler answered `DeadLetter`, and no dead-letter hook is set: 500.
    DeadLetterHookMissing,
}

/// The reasons why a success was not recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unrecorded {
    /// The claim was lost because its lease ended.
    Lost,
    /// The store failed.
    StoreFailed,
    /// The store had not answered when the answer was due.
    TooSlow,
}

impl Outcome {
    /// Returns a short name for logs and metrics, in snake case. Stable.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Refused(kind) => kind.name(),
            Self::Replayed { same_body: true } => "replayed",
            Self::Replayed { same_body: false } => "replayed_with_other_body",
            Self::Accepted => "accepted",
            Self::Handled => "handled",
            Self::Unhandled => "unhandled",
            Self::HandledUnrecorded(Unrecorded::Lost) => "handled_claim_lost",
            Self::HandledUnrecorded(Unrecorded::StoreFailed) => "handled_commit_failed",
            Self::HandledUnrecorded(Unrecorded::TooSlow) => "handled_commit_too_slow",
            Self::DeadLettered => "dead_lettered",
            Self::Failed(failure) => failure.name(),
            Self::RunsOn => "runs_on",
        }
    }

    /// Returns code and message of the service's error envelope, for an outcome that the receiver
    /// answers itself; `None` for a success. Both are the same for all deliveries that are not
    /// authentic.
    ///
    /// ```
    /// use hookgate::{Outcome, outcome::RefusalKind};
    ///
    /// let refused = Outcome::Refused(RefusalKind::NotAuthentic);
    /// assert_eq!(refused.error(), Some(("UNAUTHORIZED", "the delivery could not be authenticated")));
    /// assert_eq!(Outcome::Accepted.error(), None);
    /// ```
    #[must_use]
    pub fn error(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Refused(kind) => Some((kind.code(), kind.message())),
            // For the sender, a run that goes on and a run that was aborted have the same answer:
            // try again later.
            Self::RunsOn | Self::Failed(Failure::RunLimit | Failure::Drained) => {
                Self::Refused(RefusalKind::StillRunning).error()
            }
            Self::Failed(Failure::TypeMismatch | Failure::Unhandled) => {
                Some(("VALIDATION_ERROR", TYPE_MISMATCH))
            }
            Self::Failed(_) => Some(("INTERNAL_ERROR", "the delivery could not be handled")),
            Self::Replayed { .. }
            | Self::Accepted
            | Self::Handled
            | Self::Unhandled
            | Self::HandledUnrecorded(_)
            | Self::DeadLettered => None,
        }
    }

    /// Returns the outcome of a success, given the store's answer to its commit.
    pub(crate) fn recorded<E>(self, commit: &Result<Ownership, E>) -> Self {
        match commit {
            Ok(Ownership::Held) => self,
            Ok(Ownership::Lost) => Self::HandledUnrecorded(Unrecorded::Lost),
            Err(_) => Self::HandledUnrecorded(Unrecorded::StoreFailed),
        }
    }

    /// Returns whether the handler succeeded, and the store has failed to record it or has not
    /// answered. Such a commit can be repeated.
    pub(crate) fn is_commit_failed(self) -> bool {
        matches!(
            self,
            Self::HandledUnrecorded(Unrecorded::StoreFailed | Unrecorded::TooSlow)
        )
    }

    /// Returns the status of an answer that the receiver makes itself.
    pub(crate) fn own_status(self) -> u16 {
        match self {
            Self::Refused(kind) => kind.status(),
            Self::RunsOn | Self::Failed(Failure::RunLimit | Failure::Drained) => 503,
            Self::Failed(Failure::TypeMismatch | Failure::Unhandled) => 422,
            Self::Failed(_) => 500,
            Self::Replayed { .. }
            | Self::Accepted
            | Self::Handled
            | Self::Unhandled
            | Self::HandledUnrecorded(_)
            | Self::DeadLettered => 200,
        }
    }
}

impl Failure {
    /// Returns a short name for logs and metrics, in snake case. Stable.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Status(_) => "handler_status",
            Self::TypeMismatch => "type_mismatch",
            Self::Unhandled => "unhandled_refused",
            Self::Panicked => "panicked",
            Self::ServiceError => "service_error",
            Self::RunLimit => "run_limit",
            Self::Drained => "drained",
            Self::DeadLetterFailed => "dead_letter_failed",
            Self::DeadLetterHookMissing => "dead_letter_hook_missing",
        }
    }
}
