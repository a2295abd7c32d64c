//! Errors of building a receiver.

use std::fmt;
use std::time::Duration;

use crate::verify::KeysError;

/// The reason why the settings of a receiver were refused. The message says which setting to change.
#[derive(Clone, thiserror::Error)]
#[error("{}", .kind.message())]
pub struct BuildError {
    kind: BuildErrorKind,
    #[source]
    source: Option<KeysError>,
}

/// The error in the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildErrorKind {
    /// No secret was given.
    NoSecret,
    /// The subscriptions, or the name of a scope, were refused; the source has the reason.
    Keys,
    /// Another receiver with other keys uses this store under the same scope, and neither of them has named its scope. Each
    /// could make events of the other look handled. See [`scope`](crate::ReceiverBuilder::scope).
    ScopeTaken,
    /// A scope was set for keys that have their own: a ring that names its scope itself, the rings of a map or a provider, or
    /// shared keys.
    ScopeBesideKeys,
    /// No store was given, and deduplication was not switched off.
    NoStore,
    /// A store was given and deduplication switched off as well.
    StoreWithoutDeduplication,
    /// A store was given, or deduplication switched off, together with the sink of `accept_into`, which does the
    /// deduplication itself.
    StoreBesideSink,
    /// The retention is too short: handled events would be forgotten while the sender still retries them or a copy can be
    /// replayed.
    RetentionTooShort {
        /// The retention that the retry schedule and the window need.
        needed: Duration,
        /// The retention that was set.
        given: Duration,
    },
    /// A duration is too short or too long.
    OutOfRange {
        /// The builder's method.
        setting: &'static str,
        /// It must be longer than this.
        least: Duration,
        /// The longest that is accepted.
        most: Duration,
    },
    /// The budget for all request bodies has no room for one body of the largest accepted size.
    BodyBudgetTooSmall {
        /// The bytes that one body of `max_body` bytes needs.
        needed: usize,
        /// The budget that was set, or the default.
        given: usize,
    },
    /// A limit is zero: no delivery could ever be handled.
    Zero {
        /// The builder's method.
        setting: &'static str,
    },
}

impl BuildError {
    pub(crate) fn new(kind: BuildErrorKind) -> Self {
        Self { kind, source: None }
    }

    pub(crate) fn caused_by(mut self, source: KeysError) -> Self {
        self.source = Some(source);
        self
    }

    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> BuildErrorKind {
        self.kind
    }
}

impl fmt::Debug for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::readable::write_readably(f, "BuildError", &self.kind, self)
    }
}

impl BuildErrorKind {
    fn message(&self) -> String {
        match self {
            Self::NoSecret => {
                "no secret: call .secret(…), .secrets(ring), .subscriptions(map) or .provider(lookup)"
                    .into()
            }
            Self::Keys => "the keys can't be used as they were given".into(),
            Self::ScopeTaken => {
                "another receiver with other keys remembers in this store under the scope `default` too, so each could make the other's events look handled: name the scope of this one, such as .scope(\"ledger\"); during a rotation give both receivers a key in common".into()
            }
            Self::ScopeBesideKeys => {
                ".scope(…) is for the ring of .secret(…) or .secrets(ring) that names no scope itself: elsewhere each ring names its own, by KeyRing::with_scope".into()
            }
            Self::NoStore => {
                "no store: call .store(MemoryStore::default()), or .without_deduplication() if the handler deduplicates itself".into()
            }
            Self::StoreWithoutDeduplication => {
                "a store that would not be asked: leave out .store(…), or .without_deduplication()".into()
            }
            Self::StoreBesideSink => {
                "a store beside a sink: with .accept_into(sink) the sink remembers what came, so leave out .store(…) and .without_deduplication()".into()
            }
            Self::RetentionTooShort { needed, given } => format!(
                "a retention of {} s is too short: {} s cover the sender's retries and the window",
                given.as_secs(),
                needed.as_secs()
            ),
            Self::OutOfRange {
                setting,
                least,
                most,
            } => format!(
                "{setting} must be longer than {} ms and at most {} ms",
                least.as_millis(),
                most.as_millis()
            ),
            Self::BodyBudgetTooSmall { needed, given } => format!(
                "a body_budget of {given} bytes has no room for one body of max_body bytes: call .body_budget({needed}) or more, or lower .max_body(…)"
            ),
            Self::Zero { setting } => format!("{setting} must be at least 1"),
        }
    }
}

/// The longest deadline or lease.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 3_600);

/// Checks that a duration is longer than `least` and not longer than `most`.
pub(crate) fn in_range(
    setting: &'static str,
    value: Duration,
    least: Duration,
    most: Duration,
) -> Result<(), BuildError> {
    // This is longer than any useful value, and small enough that adding it to a reading of a clock does not overflow.
    let most = most.min(LONGEST);
    if value <= least || value > most {
        return Err(BuildError::new(BuildErrorKind::OutOfRange {
            setting,
            least,
            most,
        }));
    }
    Ok(())
}
