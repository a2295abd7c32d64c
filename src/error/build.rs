//! Why a receiver could not be built.

use std::fmt;
use std::time::Duration;

use super::KeysError;

/// Why the settings of a receiver were refused. The message says what to change.
#[derive(Clone, thiserror::Error)]
#[error("{}", .kind.message())]
pub struct BuildError {
    kind: BuildErrorKind,
    #[source]
    source: Option<KeysError>,
}

/// What was wrong with the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildErrorKind {
    /// No secret was given.
    NoSecret,
    /// The subscriptions, or the name of a scope, were refused; the source says why.
    Keys,
    /// Another receiver, with other keys, remembers in this store under the same scope, which neither of them has named: each could
    /// make events of the other look handled. See [`scope`](crate::ReceiverBuilder::scope).
    ScopeTaken,
    /// A scope was named for keys that have theirs: a ring that names it itself, those of a map or a provider, or keys that are
    /// shared.
    ScopeBesideKeys,
    /// Neither a store was given nor deduplication switched off.
    NoStore,
    /// A store was given and deduplication switched off as well.
    StoreWithoutDeduplication,
    /// A store was given, or deduplication switched off, beside the sink of `accept_into`, which is the memory itself.
    StoreBesideSink,
    /// Handled events would be forgotten while the sender still retries them or a copy can be replayed.
    RetentionTooShort {
        /// What the retry schedule and the window ask for.
        needed: Duration,
        /// What was set.
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
    /// The budget of all bodies that arrive has no room for one of the largest size that is accepted.
    BodyBudgetTooSmall {
        /// What one body of `max_body` bytes needs.
        needed: usize,
        /// What was set, or the default.
        given: usize,
    },
    /// A limit is zero: nothing could ever be handled.
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

    /// What was wrong.
    #[must_use]
    pub fn kind(&self) -> BuildErrorKind {
        self.kind
    }
}

impl fmt::Debug for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        super::write_readably(f, "BuildError", &self.kind, self)
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
