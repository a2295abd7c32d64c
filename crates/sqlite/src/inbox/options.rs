//! The options for opening an inbox.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hookgate::{
    clock::{Clock, SystemClock},
    dedupe::{StoreError, StoreErrorKind},
};
use hookgate_inbox::Inbox;

use super::SqliteEngine;

/// Opens the inbox in this file, and creates the file if it does not exist. [`InboxOptions`] has
/// the settings.
///
/// [The page about the inbox](crate#an-inbox-in-a-file) describes the file: what an accepted
/// delivery survives, full disks, sizes, backups, and changes of the clock.
///
/// # Errors
/// The inbox could not keep accepted deliveries in this file, or the file is not this crate's: see
/// [`StoreErrorKind`].
///
/// ```
/// use hookgate::dedupe::StoreErrorKind;
///
/// let error = hookgate_sqlite::open_inbox("no/such/folder/inbox.db").unwrap_err();
/// assert_eq!(error.kind(), StoreErrorKind::Missing);
/// assert_eq!(
///     error.to_string(),
///     "no/such/folder/inbox.db: there is no such folder: make it first, writable for this program alone"
/// );
/// ```
///
/// # Security
/// The file holds bodies, with data of your users, until entries are done; bodies of dead letters
/// stay until they are purged. The file is created readable for its owner alone (0600), and its
/// folder should be so too. It is not encrypted. The body of an entry that is done is deleted at
/// once, and its bytes are overwritten where they were on a page of the table. Traces of a large
/// body may stay in the file, and in `-wal`, until that space is used again, or until
/// [`erase`](Inbox::erase) is called.
pub fn open_inbox(path: impl AsRef<Path>) -> Result<Inbox, StoreError> {
    InboxOptions::default().open(path)
}

/// The options for opening the file of an inbox.
///
/// ```
/// use std::time::Duration;
/// use hookgate_sqlite::InboxOptions;
///
/// # let folder = std::env::temp_dir().join(format!("hookgate-doc-options-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// # let path = folder.join("inbox.db");
/// let inbox = InboxOptions::default()
///     .busy_timeout(Duration::from_millis(300))
///     .max_waiting(4_096)
///     .open(&path)?;
/// # drop(inbox);
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct InboxOptions {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) create: bool,
    pub(super) busy_timeout: Duration,
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
            busy_timeout: Duration::from_millis(500),
            max_group: 256,
            max_waiting: 1_024,
            max_pages: None,
            forget_at_once: 512,
        }
    }
}

impl InboxOptions {
    /// The wall clock for leases, back-offs and retention, in milliseconds. Default:
    /// [`SystemClock`]. Processes that share a file must use the same time.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Opens an existing inbox only, and creates none, also not in an empty file: for tools that
    /// inspect an inbox.
    pub fn existing(mut self) -> Self {
        self.create = false;
        self
    }

    /// How long a write waits for another process that holds the file's lock. Default: 500 ms; at
    /// least 1 ms and at most a minute. After that, each call that waited for the write is answered
    /// [`TimedOut`](hookgate::dedupe::StoreErrorKind::TimedOut).
    ///
    /// An acceptor gives its sink 4.5 s at most, so a longer time is useful for tools only. If two
    /// processes write at full load, SQLite's lock is not fair: of 106,000 deliveries to two of
    /// them, each with 16 in progress at any time, 128 waited for longer than 500 ms (one run, two
    /// shared cores), and are delivered again.
    pub fn busy_timeout(mut self, busy_timeout: Duration) -> Self {
        self.busy_timeout = busy_timeout;
        self
    }

    /// The largest number of calls that share a commit. Default: 256. Calls that arrive while the
    /// disk is flushed share the next flush; no call waits for others to arrive. With 1, each call
    /// has a commit of its own.
    pub fn max_group(mut self, calls: usize) -> Self {
        self.max_group = calls;
        self
    }

    /// The largest number of deliveries that wait to be stored. Default: 1,024. A further delivery
    /// is answered [`Unavailable`](hookgate::dedupe::StoreErrorKind::Unavailable) at once. Calls of
    /// workers do not count: they are few, and their settlements free space.
    pub fn max_waiting(mut self, deliveries: usize) -> Self {
        self.max_waiting = deliveries;
        self
    }

    /// The size of the file at most, in units of 4,096 bytes. Default: as much as the disk holds.
    /// At this limit a delivery is answered [`Full`](hookgate::dedupe::StoreErrorKind::Full), until
    /// entries that are done or purged have freed pages. Workers still handle the accepted entries.
    /// This may take the file over the limit, by less than 1 KB per entry: its lease and its last
    /// error.
    ///
    /// [The files beside it](crate#the-file) are not counted.
    pub fn max_pages(mut self, pages: u32) -> Self {
        self.max_pages = Some(pages);
        self
    }

    /// The largest number of ids that one commit forgets after their retention. Default: 512. A
    /// smaller number makes commits shorter; a number below [`max_group`](Self::max_group) may
    /// forget ids more slowly than deliveries arrive.
    pub fn forget_at_once(mut self, ids: usize) -> Self {
        self.forget_at_once = ids;
        self
    }

    /// Opens the inbox in this file, and creates the file if it does not exist, readable and
    /// writable for its owner alone.
    ///
    /// Blocks the thread until the file is open: some milliseconds, or up to the
    /// [`busy_timeout`](Self::busy_timeout) for each lock.
    ///
    /// # Errors
    /// The inbox could not keep accepted deliveries in this file, or the file is not this crate's:
    /// see [`StoreErrorKind`].
    pub fn open(self, path: impl AsRef<Path>) -> Result<Inbox, StoreError> {
        let path = path.as_ref();
        let opened = SqliteEngine::open(path, &self).map_err(|error| error.about(path));
        Ok(Inbox::on(Arc::new(opened?)))
    }

    pub(super) fn check(&self) -> Result<(), StoreError> {
        let limits = Duration::from_millis(1)..=Duration::from_secs(60);
        for (can_work, advice) in [
            (
                limits.contains(&self.busy_timeout),
                "busy_timeout must be at least 1 ms and at most a minute",
            ),
            (self.max_group > 0, "max_group must be at least 1"),
            (self.max_waiting > 0, "max_waiting must be at least 1"),
            (self.forget_at_once > 0, "forget_at_once must be at least 1"),
            (self.max_pages != Some(0), "max_pages must be at least 1"),
        ] {
            if !can_work {
                return Err(StoreError::saying(StoreErrorKind::Setting, advice));
            }
        }
        Ok(())
    }
}
