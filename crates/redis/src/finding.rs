//! The effect of a server's settings on the records that it keeps.

use std::fmt;

use hookgate::dedupe::{StoreError, StoreErrorKind};

/// The result of a check of the server's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Findings {
    /// The number of servers that were checked: in a cluster, every primary.
    pub servers: usize,
    /// The risks, the most serious first. Empty where the check found none.
    pub found: Vec<Finding>,
}

impl Findings {
    /// Refuses a server that [may forget](Risk::forgets) ids while it runs, or all of them when it
    /// ends. A possible loss of the last moments before a crash, which `appendfsync` and
    /// replication allow, is reported and not refused.
    ///
    /// # Errors
    /// [`NotDurable`](StoreErrorKind::NotDurable), with the text of the findings.
    pub fn strict(self) -> Result<Self, StoreError> {
        let forgets = self.found.iter().filter(|finding| finding.risk.forgets());
        let words: Vec<_> = forgets.map(ToString::to_string).collect();
        if words.is_empty() {
            return Ok(self);
        }
        let refuses = |finding: &Finding| finding.risk.refuses();
        let message = if self.found.iter().any(refuses) {
            "this Redis refuses claims, so that deliveries would be answered 503"
        } else {
            "this Redis may forget ids, so that events would run twice"
        };
        Err(StoreError::saying(StoreErrorKind::NotDurable, message).caused_by(words.join("; ")))
    }
}

/// One finding, and the server that it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The server's address, where there is more than one server.
    pub server: Option<String>,
    /// The risk.
    pub risk: Risk,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(server) = &self.server {
            write!(f, "{server}: ")?;
        }
        self.risk.fmt(f)
    }
}

/// A risk to ids, from a server's settings. The most serious first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[non_exhaustive]
pub enum Risk {
    /// It is a replica: it refuses every claim.
    #[error("this is a replica, which takes no claims: connect to the primary")]
    Replica,
    /// It is one node of a cluster, used as a single server: it refuses the events that other nodes
    /// keep.
    #[error(
        "this is one of a cluster's {primaries} primaries, which refuses the events of the others: connect with redis' ClusterClient"
    )]
    OneNode {
        /// The number of primaries that have a share.
        primaries: u64,
    },
    /// It refuses the claim that the check made, or a command of its renewal, commit or release:
    /// because of the user's rights or key pattern, or because a command was renamed.
    #[error(
        "a claim made to try it was refused, as each delivery's would be ({reason}): allow this user the commands and keys that the page of hookgate-redis names"
    )]
    Refused {
        /// The server's words.
        reason: String,
    },
    /// When its memory is full, it forgets ids instead of refusing new ones. Every key here has an
    /// expiry, so `volatile-…` forgets them too.
    #[error(
        "ids are forgotten when memory is full (maxmemory-policy is {policy}): set maxmemory-policy to noeviction"
    )]
    Evicts {
        /// The setting `maxmemory-policy`.
        policy: String,
    },
    /// No append-only file: when its process ends, it forgets all writes since its last snapshot,
    /// or everything.
    #[error("ids are forgotten when the server ends: set appendonly to yes")]
    NoAppendOnlyFile,
    /// The setting could not be read, so it is unknown.
    #[error("{what} can't be read: allow this user to read it, or check the setting yourself")]
    Unread {
        /// `INFO`, `appendfsync`, …
        what: &'static str,
    },
    /// When its machine goes down, it forgets the writes that the system had not flushed yet: often
    /// half a minute.
    #[error(
        "up to half a minute of ids is forgotten when the machine goes down (appendfsync is no): set it to everysec or always"
    )]
    FlushedBySystem,
    /// When its machine goes down, it forgets a second or two; when its process is killed while its
    /// disk is busy, the same amount.
    #[error(
        "a second or two of ids may be forgotten when the server or its machine goes down (appendfsync is everysec): set it to always where that matters"
    )]
    FlushedEverySecond,
    /// Replicas follow with a delay: when one takes over, it may not know the newest ids.
    #[error(
        "the newest ids may be forgotten when one of the {replicas} replicas takes over: they follow with a delay"
    )]
    Replicated {
        /// The number of connected replicas.
        replicas: u64,
    },
    /// No limit of memory: it grows until the system kills it.
    #[error("memory has no limit, so that the system may end the server: set maxmemory")]
    NoMemoryLimit,
}

impl Risk {
    /// Returns whether the server may forget more than the last moments before it or its machine
    /// goes down, or whether claims can't work at all. [`strict`](Findings::strict) refuses such a
    /// server. A setting that can't be read counts as well, except `appendfsync`.
    #[must_use]
    pub fn forgets(&self) -> bool {
        match self {
            Self::Evicts { .. } | Self::NoAppendOnlyFile => true,
            // Any value of this setting affects only the last moments.
            Self::Unread { what } => *what != "appendfsync",
            _ => self.refuses(),
        }
    }

    /// Returns whether claims can't work at all.
    pub(crate) fn refuses(&self) -> bool {
        matches!(
            self,
            Self::Replica | Self::OneNode { .. } | Self::Refused { .. }
        )
    }
}
