//! What can be set where an inbox is opened.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::SqliteEngine;
use crate::clock::{Clock, SystemClock};
use crate::error::{InboxError, InboxErrorKind};
use crate::inbox::Inbox;

/// How an inbox's file is opened.
///
/// ```
/// use std::time::Duration;
/// use hookgate::InboxOptions;
///
/// # let folder = std::env::temp_dir().join(format!("hookgate-doc-options-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// # let path = folder.join("inbox.db");
/// let inbox = InboxOptions::default()
///     .patience(Duration::from_millis(300))
///     .max_waiting(4_096)
///     .open(&path)?;
/// # drop(inbox);
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
#[must_use]
pub struct InboxOptions {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) create: bool,
    pub(super) patience: Duration,
    pub(super) max_group: usize,
    pub(super) max_waiting: usize,
    pub(super) max_pages: Option<u32>,
    pub(super) forget_at_once: usize,
}

impl Default for InboxOptions {
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemClock),
            create: true,
            patience: Duration::from_millis(500),
            max_group: 256,
            max_waiting: 1_024,
            max_pages: None,
            forget_at_once: 512,
        }
    }
}

impl InboxOptions {
    /// Whose wall clock leases, back-offs and retention go by, in milliseconds: [`SystemClock`] unless told otherwise. Processes that
    /// share a file must share the time.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Opens an inbox that is there, and makes none, not in an empty file either: for tools that look into one.
    pub fn existing(mut self) -> Self {
        self.create = false;
        self
    }

    /// How long a write waits for another process that holds the file's lock: 500 ms unless told otherwise, at least 1 ms and at
    /// most a minute. Then everything that waited for it is answered [`TimedOut`](crate::StoreErrorKind::TimedOut).
    ///
    /// An acceptor gives its sink 4.5 s at most, so more than that serves tools only. Where two processes write at full load, SQLite's lock is not
    /// fair: of 106,000 deliveries to two of them, each with 16 under way at any time, 128 waited for longer than 500 ms (one run, two shared
    /// cores), and are delivered again.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// How many calls share a commit at most: 256 unless told otherwise. Those that come while the disk is flushed share the next
    /// flush; nobody waits for company. With 1, each has a commit of its own.
    pub fn max_group(mut self, calls: usize) -> Self {
        self.max_group = calls;
        self
    }

    /// How many deliveries wait to be stored at most: 1,024 unless told otherwise. One more is answered
    /// [`Unavailable`](crate::StoreErrorKind::Unavailable) at once. What workers ask does not count: they are few, and what they
    /// settle makes room.
    pub fn max_waiting(mut self, deliveries: usize) -> Self {
        self.max_waiting = deliveries;
        self
    }

    /// How many pages of 4,096 bytes the file may have: as many as the disk holds, unless told otherwise. Beyond that a delivery is
    /// answered [`Full`](crate::StoreErrorKind::Full), until entries that are done or purged have given pages back. What was accepted is
    /// worked off all the same, and may take the file beyond, by less than 1 KB an entry: its lease and its last error.
    ///
    /// Not counted are the files beside it: `-wal` of some 4 MB, more while somebody reads for long, and `-reserve` of 16 MiB.
    pub fn max_pages(mut self, pages: u32) -> Self {
        self.max_pages = Some(pages);
        self
    }

    /// How many ids whose retention is over are forgotten with one commit at most: 512 unless told otherwise. Less makes commits
    /// shorter; less than [`max_group`](Self::max_group) may forget more slowly than deliveries come.
    pub fn forget_at_once(mut self, ids: usize) -> Self {
        self.forget_at_once = ids;
        self
    }

    /// Opens the inbox in this file, and makes the file where there is none, readable and writable for its owner alone.
    ///
    /// Blocks for as long as opening takes: some milliseconds, or up to the [`patience`](Self::patience) for each lock.
    ///
    /// # Errors
    /// What is accepted could not be kept there, or the file is not this crate's: see [`InboxErrorKind`].
    pub fn open(self, path: impl AsRef<Path>) -> Result<Inbox, InboxError> {
        let path = path.as_ref();
        self.check(path)?;
        Ok(Inbox {
            engine: Arc::new(SqliteEngine::open(path, &self)?),
        })
    }

    fn check(&self, path: &Path) -> Result<(), InboxError> {
        let refused = |advice| Err(InboxError::new(InboxErrorKind::Setting, path, advice));
        let patience = Duration::from_millis(1)..=Duration::from_secs(60);
        if !patience.contains(&self.patience) {
            return refused("patience must be at least 1 ms and at most a minute");
        }
        if self.max_group == 0 {
            return refused("max_group must be at least 1");
        }
        if self.max_waiting == 0 {
            return refused("max_waiting must be at least 1");
        }
        if self.forget_at_once == 0 {
            return refused("forget_at_once must be at least 1");
        }
        if self.max_pages == Some(0) {
            return refused("max_pages must be at least 1");
        }
        Ok(())
    }
}

impl fmt::Debug for InboxOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InboxOptions")
            .field("create", &self.create)
            .field("patience", &self.patience)
            .field("max_group", &self.max_group)
            .field("max_waiting", &self.max_waiting)
            .field("max_pages", &self.max_pages)
            .field("forget_at_once", &self.forget_at_once)
            .finish_non_exhaustive()
    }
}
