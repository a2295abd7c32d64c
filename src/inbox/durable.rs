//! An inbox whose entries survive the end of the process.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::engine::Engine;
use super::entry::Entry;
use super::sink::{Accepted, Sink};
use super::sqlite::{InboxOptions, SqliteEngine};
use crate::dedupe::{ScopesInUse, StoreError, StoreFuture};
use crate::walk::Delivery;

/// Stores accepted deliveries until they are handled. Clones share one inbox.
///
/// ```
/// use hookgate::{Inbox, Receiver, Secret};
///
/// # let folder = std::env::temp_dir().join(format!("hookgate-doc-inbox-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// # let path = folder.join("inbox.db");
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let inbox = Inbox::open(&path)?;
/// let secret = Secret::new("whsec_made_up_for_this_example")?;
/// let acceptor = Receiver::builder().secret(secret).accept_into(inbox.clone())?;
/// assert_eq!(inbox.stats().await?.queued, 0);
/// drop(acceptor); // and every service and app that it was given to: `close` waits for them
/// inbox.close().await;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # In a file
/// [`open`](Self::open) keeps the inbox in an SQLite file; SQLite is compiled in. An accepted delivery has been flushed to the
/// disk. It survives a `kill -9`, and it survives a power cut if the disk keeps the data that it reports as flushed. One thread
/// writes. Calls that wait while the disk is flushed share the next flush; no thread of the runtime waits.
///
/// - **One machine.** Any number of processes on one machine may open the file: receivers, workers, `hookgate inbox`. A file
///   system of a network, or of the host of a virtual machine, is refused where it can be detected. It is never safe: SQLite's
///   locks and shared memory do not work there. For several machines, use PostgreSQL. A file system in memory (`tmpfs`, such as
///   `/dev/shm`) is refused too, except below the folder for temporary files, for tests.
/// - **The file is full, locked, broken or moved away**: the delivery is answered 503, and the sender delivers it again. Later
///   deliveries are accepted again, without a restart, as soon as this is possible. On a full disk, workers still handle the
///   accepted entries: 16 MiB beside the file are reserved for this, which is enough for bodies of up to 8 MiB.
/// - **Size.** About 350 bytes, plus the body, for an event that waits or is a dead letter, and up to 500 more if the body has 500 to
///   1,000 bytes; about 250 for an id that is remembered. 48 hours of 10 events a second are 1.7 million ids, or 430 MB. Freed space in the file is used again; only
///   SQLite's `VACUUM` shrinks the file. Beside the file are `-wal`, about 4 MB and after a burst up to 64 MB, and `-shm`. Both
///   belong to the inbox and must not be deleted or left behind. `-reserve`, 16 MiB, holds no data; deliveries are accepted only
///   while it has its full size. If `-wal` was deleted, no delivery is acknowledged until a restart. The restart saves the
///   deliveries that were acknowledged, unless the process is ended by `kill -9`.
/// - **Writes.** An event of 0.5 KB writes about 35 KB to the disk: three commits, and in them 19 pages of 1 KiB. A file that an
///   older version has made has pages of 4 KiB, and writes 90 KB. To change them, stop all programs that open it, and run in
///   SQLite's shell: `PRAGMA journal_mode = DELETE; PRAGMA page_size = 1024; VACUUM;`.
/// - **Backup** with SQLite itself, while the inbox is in use: `VACUUM INTO 'backup.db'`, or `.backup` in its shell. Never use
///   `cp`: it can copy an inconsistent state. After a backup is restored, entries that were handled since the backup are in the
///   inbox again.
/// - **SQLite's shell**, and every other program that opens the file, must be version 3.51.3 or newer. Older versions can damage
///   a file that two connections write. Debian 12 has 3.40.1. `hookgate inbox` brings its own.
///
/// # Time
/// Leases, back-offs and retention use the machine's wall clock, since processes share it. If the clock is **set back**, the wait
/// or the lease of an entry lasts its whole original time, counted from then on, and no longer; ids are remembered longer by the
/// jump. Where very many entries wait in a file, those that are due last are corrected some seconds later. If the clock is **set
/// forward**, retries come earlier by the jump, and ids are forgotten earlier by the jump. A
/// retention of 48 hours allows a jump of 21 hours before a redelivery could be accepted as a new event. After such a jump,
/// leases seem to have ended: workers do not take entries that run in their own process, but workers of another process do, so
/// that a handler may run twice at the same time. No accepted delivery is lost by a change of the clock.
///
/// # Security
/// The file holds bodies, with data of your users, until entries are done; bodies of dead letters stay until they are purged. The
/// file is created readable for its owner alone (0600), and its folder should be so too. It is not encrypted. The body of an
/// entry that is done is deleted at once, and its bytes are overwritten where they were on a page of the table. Traces of a large
/// body may stay in the file, and in `-wal`, until that space is used again, or until [`erase`](Self::erase) is called.
#[derive(Clone)]
pub struct Inbox {
    pub(crate) engine: Arc<dyn Engine>,
}

impl Inbox {
    /// Opens the inbox in this file, and creates the file if it does not exist. [`InboxOptions`] has the settings.
    ///
    /// # Errors
    /// The inbox could not keep accepted deliveries in this file, or the file is not this crate's: see
    /// [`StoreErrorKind`](crate::StoreErrorKind).
    ///
    /// ```
    /// use hookgate::{Inbox, StoreErrorKind};
    ///
    /// let error = Inbox::open("no/such/folder/inbox.db").unwrap_err();
    /// assert_eq!(error.kind(), StoreErrorKind::Missing);
    /// assert_eq!(
    ///     error.to_string(),
    ///     "no/such/folder/inbox.db: there is no such folder: make it first, writable for this program alone"
    /// );
    /// ```
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        InboxOptions::default().open(path)
    }

    /// Waits until every call is answered and the file is closed. Dropping the last clone closes the file too, in the background.
    ///
    /// It also waits until every other clone is dropped, for as long as that takes. Workers hold one until their
    /// [`shutdown`](super::RunningWorkers::shutdown) returns. An [`Acceptor`](super::Acceptor) holds one even when it is drained:
    /// drop it first, and the app or service that it is part of. So the order is: the server ends, the acceptor is dropped with its
    /// app, the workers are shut down, `close`. Beside a server that goes on it would not end: bound the wait with
    /// `tokio::time::timeout(limit, inbox.close())`. After that, too, what was accepted is on the disk, the acceptor goes on, and the
    /// file is closed when the last clone is dropped.
    pub async fn close(self) {
        let end = self.engine.end();
        drop(self);
        end.await;
    }
}

/// Opening with settings.
impl InboxOptions {
    /// Opens the inbox in this file, and creates the file if it does not exist, readable and writable for its owner alone.
    ///
    /// Blocks the thread until the file is open: some milliseconds, or up to the [`busy_timeout`](Self::busy_timeout) for each lock.
    ///
    /// # Errors
    /// The inbox could not keep accepted deliveries in this file, or the file is not this crate's: see
    /// [`StoreErrorKind`](crate::StoreErrorKind).
    pub fn open(self, path: impl AsRef<Path>) -> Result<Inbox, StoreError> {
        let path = path.as_ref();
        let opened = SqliteEngine::open(path, &self).map_err(|error| error.about(path));
        Ok(Inbox {
            engine: Arc::new(opened?),
        })
    }
}

impl Sink for Inbox {
    fn accept<'a>(&'a self, delivery: &'a Delivery, retain: Duration) -> StoreFuture<'a, Accepted> {
        self.engine.accept(Entry::of(delivery), retain)
    }

    fn scopes_in_use(&self) -> Option<&ScopesInUse> {
        Some(self.engine.scopes_in_use())
    }
}

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Inbox").field(&self.engine).finish()
    }
}
