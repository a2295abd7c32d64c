//! What a server's settings mean for what it remembers.

use std::fmt;

use crate::error::{RedisError, RedisErrorKind};

/// What a look at the server's settings found. Empty where nothing speaks against it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Findings {
    pub(super) servers: usize,
    pub(super) found: Vec<Finding>,
}

impl Findings {
    /// Each, the gravest first.
    pub fn iter(&self) -> impl Iterator<Item = &Finding> {
        self.found.iter()
    }

    /// How many servers were looked at: of a cluster, every primary.
    #[must_use]
    pub fn servers(&self) -> usize {
        self.servers
    }

    /// Refuses a server that [may forget](Risk::forgets) ids while it runs, or all of them when it ends. What `appendfsync` and
    /// replication leave open, the last moments before a crash, is told and not refused.
    ///
    /// # Errors
    /// [`Forgets`](RedisErrorKind::Forgets), with what was found in its words.
    pub fn strict(self) -> Result<Self, RedisError> {
        let forgets: Vec<_> = self
            .iter()
            .filter(|finding| finding.risk.forgets())
            .collect();
        if forgets.is_empty() {
            return Ok(self);
        }
        let words: Vec<_> = forgets.iter().map(ToString::to_string).collect();
        Err(RedisError::new(RedisErrorKind::Forgets).caused_by(words.join("; ")))
    }
}

/// One thing that was found, and on which server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub(super) server: Option<String>,
    pub(super) risk: Risk,
}

impl Finding {
    /// The server's address, where there is more than one.
    #[must_use]
    pub fn server(&self) -> Option<&str> {
        self.server.as_deref()
    }

    /// What it is.
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

/// What may become of ids, by a server's settings. The order is that of gravity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Risk {
    /// It is a replica: it refuses every claim.
    Replica,
    /// It is one node of a cluster, asked as if it were a server by itself: it refuses the events that other nodes keep.
    OneNode {
        /// How many primaries have a share.
        primaries: u64,
    },
    /// When its memory is full, it forgets ids instead of refusing new ones. Every key here has an end, so `volatile-…` forgets them too.
    Evicts {
        /// The setting `maxmemory-policy`.
        policy: String,
    },
    /// No append-only file: when its process ends, it forgets what came since its last snapshot, or everything.
    NoAppendOnlyFile,
    /// The setting was not to be read, so nothing is known of it.
    Unread {
        /// `INFO`, `appendfsync`, …
        what: &'static str,
    },
    /// When its machine goes down, it forgets what the system had not written yet: often half a minute.
    FlushedBySystem,
    /// When its machine goes down, it forgets a second or two; when its process is killed while its disk is busy, as much.
    FlushedEverySecond,
    /// Replicas follow with a delay: when one takes over, it may not know the newest ids.
    Replicated {
        /// How many are connected.
        replicas: u64,
    },
    /// No limit of memory: it grows until the system ends it.
    NoMemoryLimit,
}

impl Risk {
    /// Whether more may be forgotten than the last moments before the server or its machine went down, or claims can't work at
    /// all: what [`strict`](Findings::strict) refuses. Not known is as bad.
    #[must_use]
    pub fn forgets(&self) -> bool {
        match self {
            Self::Replica | Self::OneNode { .. } | Self::Evicts { .. } | Self::NoAppendOnlyFile => {
                true
            }
            // Whatever it is, it is about the last moments.
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
                "{what} can't be read, so nothing is known of it: allow it, or look yourself"
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
