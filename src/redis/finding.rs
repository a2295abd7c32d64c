//! The effect of a server's settings on the records that it keeps.

use std::fmt;

use crate::dedupe::{StoreError, StoreErrorKind};

/// The findings of a check of the server's settings. Empty where the check found no risk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Findings {
    pub(super) servers: usize,
    pub(super) found: Vec<Finding>,
}

impl Findings {
    /// Returns the findings, the most serious first.
    pub fn iter(&self) -> impl Iterator<Item = &Finding> {
        self.found.iter()
    }

    /// Returns the number of servers that were checked: in a cluster, every primary.
    #[must_use]
    pub fn servers(&self) -> usize {
        self.servers
    }

    /// Refuses a server that [may forget](Risk::forgets) ids while it runs, or all of them when it ends. A possible loss of the
    /// last moments before a crash, which `appendfsync` and replication allow, is reported and not refused.
    ///
    /// # Errors
    /// [`NotDurable`](StoreErrorKind::NotDurable), with the text of the findings.
    pub fn strict(self) -> Result<Self, StoreError> {
        let forgets = self.iter().filter(|finding| finding.risk.forgets());
        let words: Vec<_> = forgets.map(ToString::to_string).collect();
        if words.is_empty() {
            return Ok(self);
        }
        let message = "this Redis may forget ids, so that events would run twice";
        Err(StoreError::saying(StoreErrorKind::NotDurable, message).caused_by(words.join("; ")))
    }
}

/// One finding, and the server that it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub(super) server: Option<String>,
    pub(super) risk: Risk,
}

impl Finding {
    /// Returns the server's address, where there is more than one server.
    #[must_use]
    pub fn server(&self) -> Option<&str> {
        self.server.as_deref()
    }

    /// Returns the risk.
    #[must_use]
    pub fn risk(&self) -> &Risk {
        &self.risk
    }
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
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Risk {
    /// It is a replica: it refuses every claim.
    Replica,
    /// It is one node of a cluster, used as a single server: it refuses the events that other nodes keep.
    OneNode {
        /// The number of primaries that have a share.
        primaries: u64,
    },
    /// When its memory is full, it forgets ids instead of refusing new ones. Every key here has an expiry, so `volatile-…`
    /// forgets them too.
    Evicts {
        /// The setting `maxmemory-policy`.
        policy: String,
    },
    /// No append-only file: when its process ends, it forgets all writes since its last snapshot, or everything.
    NoAppendOnlyFile,
    /// The setting could not be read, so it is unknown.
    Unread {
        /// `INFO`, `appendfsync`, …
        what: &'static str,
    },
    /// When its machine goes down, it forgets the writes that the system had not flushed yet: often half a minute.
    FlushedBySystem,
    /// When its machine goes down, it forgets a second or two; when its process is killed while its disk is busy, the same
    /// amount.
    FlushedEverySecond,
    /// Replicas follow with a delay: when one takes over, it may not know the newest ids.
    Replicated {
        /// The number of connected replicas.
        replicas: u64,
    },
    /// No limit of memory: it grows until the system kills it.
    NoMemoryLimit,
}

impl Risk {
    /// Returns whether more may be forgotten than the last moments before the server or its machine went down, or claims can't
    /// work at all: [`strict`](Findings::strict) refuses these. An unknown setting counts as well.
    #[must_use]
    pub fn forgets(&self) -> bool {
        match self {
            Self::Replica | Self::OneNode { .. } | Self::Evicts { .. } | Self::NoAppendOnlyFile => {
                true
            }
            // Any value of this setting affects only the last moments.
            Self::Unread { what } => *what != "appendfsync",
            _ => false,
        }
    }
}

impl fmt::Display for Risk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Replica => f.write_str("this is a replica, which takes no claims: connect to the primary"),
            Self::OneNode { primaries } => write!(
                f,
                "this is one of a cluster's {primaries} primaries, which refuses the events of the others: connect with redis' ClusterClient"
            ),
            Self::Evicts { policy } => write!(
                f,
                "ids are forgotten when memory is full (maxmemory-policy is {policy}): set maxmemory-policy to noeviction"
            ),
            Self::NoAppendOnlyFile => {
                f.write_str("ids are forgotten when the server ends: set appendonly to yes")
            }
            Self::Unread { what } => write!(
                f,
                "{what} can't be read: allow this user to read it, or check the setting yourself"
            ),
            Self::FlushedBySystem => f.write_str(
                "up to half a minute of ids is forgotten when the machine goes down (appendfsync is no): set it to everysec or always",
            ),
            Self::FlushedEverySecond => f.write_str(
                "a second or two of ids may be forgotten when the server or its machine goes down (appendfsync is everysec): set it to always where that matters",
            ),
            Self::Replicated { replicas } => write!(
                f,
                "the newest ids may be forgotten when one of the {replicas} replicas takes over: they follow with a delay"
            ),
            Self::NoMemoryLimit => f.write_str(
                "memory has no limit, so that the system may end the server: set maxmemory",
            ),
        }
    }
}
