//! The outcome of a delivery and the status that answers it: the outcomes table as code.
//!
//! ```
//! use hookgate::outcome::{Failure, RefusalKind};
//! use hookgate::Outcome;
//!
//! /// For an alert: outcomes that an operator must look at.
//! fn is_urgent(outcome: Outcome) -> bool {
//!     match outcome {
//!         Outcome::Failed(failure) => failure != Failure::Drained,
//!         Outcome::Refused(kind) => kind.status() == 503,
//!         Outcome::HandledUnrecorded(_) => true,
//!         _ => false,
//!     }
//! }
//!
//! assert!(is_urgent(Outcome::Failed(Failure::Panicked)));
//! assert!(is_urgent(Outcome::Refused(RefusalKind::StoreFull)));
//! assert!(!is_urgent(Outcome::Refused(RefusalKind::NotAuthentic)));
//! ```
//!
//! After every answer except 2xx the sender retries, a few times over a day, and then discards the
//! event. So the receiver answers 2xx only if the outcome is known, and another status only if a
//! retry can help or an operator must act.

pub(crate) mod refusal;
pub(crate) mod table;

pub use crate::readable::one_line;
pub use refusal::RefusalKind;
pub(crate) use refusal::{DEFAULT_RETRY, Refusal, RefusalDetail};
pub(crate) use table::Outcome;
#[cfg(feature = "axum")]
pub(crate) use table::TYPE_MISMATCH;
pub use table::{Failure, Unrecorded};
