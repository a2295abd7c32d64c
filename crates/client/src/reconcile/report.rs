//! The end of a pass: its report, or the reason why it could not go on.

use std::error::Error;
use std::fmt;

use hookgate::dedupe::StoreError;

use super::finding::Finding;
use super::steps::Pass;

/// The end of a call of [`Reconcile::pass_until`](super::Reconcile::pass_until).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// The pass, or its progress if it was stopped.
    pub pass: Pass,
    /// Findings that were handled here; in a filling pass, the rows that were copied.
    pub handled: u64,
    /// Findings that another replica handles or has handled, or whose row had an event meanwhile.
    pub elsewhere: u64,
    /// Findings whose handler failed. The next pass finds them again.
    pub failed: u64,
    /// The last handler's error.
    pub last_error: Option<String>,
    /// The offset at which the pass was stopped, for
    /// [`Reconcile::resume_at`](super::Reconcile::resume_at). `None` if it was not stopped.
    pub stopped_at: Option<u64>,
}

/// The reason why a pass failed. The next call begins another pass. Handled findings stay handled.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReconcileError<E> {
    /// The service's rows could not be read.
    Source(E),
    /// The service has no such data model, perhaps because it was deleted. Its rows stay in the
    /// mirror, and none is found as deleted.
    NoModel(E),
    /// The mirror or the store of claims failed.
    Store(StoreError),
    /// The mirror has less than 1 % of the service's rows, and the service has more than
    /// [`Settings::guard_rows`](super::Settings::guard_rows). Fill the mirror first, see
    /// [`Settings::is_filling`](super::Settings::is_filling). If the creations of all these rows
    /// were really missed, set `guard_rows` to their number.
    EmptyMirror,
}

#[derive(Clone, Copy)]
pub(super) enum Outcome {
    Handled,
    Elsewhere,
    Failed,
}

impl Report {
    pub(super) fn count(&mut self, finding: &Finding, outcome: Outcome) {
        let (count, name) = match outcome {
            Outcome::Handled => (&mut self.handled, "handled"),
            Outcome::Elsewhere => (&mut self.elsewhere, "elsewhere"),
            Outcome::Failed => (&mut self.failed, "failed"),
        };
        *count += 1;
        #[cfg(feature = "metrics")]
        super::metrics::finding(
            finding.reconciled.datamodel_id().as_str(),
            finding.reconciled.kind(),
            name,
        );
        #[cfg(not(feature = "metrics"))]
        let _ = (finding, name);
    }
}

impl<E> From<StoreError> for ReconcileError<E> {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl<E: fmt::Display> fmt::Display for ReconcileError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source(error) => write!(f, "the service's rows could not be read: {error}"),
            Self::NoModel(error) => write!(
                f,
                "there is no such data model, so none of its rows is found as deleted: {error}"
            ),
            Self::Store(error) => write!(f, "the mirror or the store of claims failed: {error}"),
            Self::EmptyMirror => f.write_str(
                "the mirror has no row of this data model, or hardly one, and the service has many: fill it first",
            ),
        }
    }
}

impl<E: Error + 'static> Error for ReconcileError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Source(error) | Self::NoModel(error) => Some(error),
            Self::Store(error) => Some(error),
            Self::EmptyMirror => None,
        }
    }
}
