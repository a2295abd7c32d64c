//! An inbox that outlives its process.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::engine::Engine;
use super::entry::Entry;
use super::sink::{Accepted, Sink};
use super::sqlite::InboxOptions;
use crate::dedupe::{ScopesInUse, StoreFuture};
use crate::delivery::Delivery;
use crate::error::InboxError;

/// Deliveries that are accepted, and not all handled yet. Clones share it.
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
/// # drop(acceptor);
/// inbox.close().await;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # In a file
/// [`open`](Self::open) keeps it in a file of SQLite, which is compiled along. What is accepted has been flushed to the disk: it outlives
/// a `kill -9`, and a power cut where the disk keeps what it says it has flushed. One thread writes, and what waits while the disk is
/// flushed shares the next flush; no thread of the runtime waits.
///
/// - **One machine.** Any number of its processes may open the file: receivers, workers, `hookgate inbox`. A network's file system is
///   refused where it can be told, and never sound: SQLite's locks and shared memory don't hold there. For several machines there is
///   PostgreSQL.
/// - **Full, locked, broken, moved away**: the delivery is answered 503, and the sender comes again. What comes after is taken again, without
///   a restart, as soon as it can be. On a full disk what was accepted is worked off, with 16 MiB that are kept for it beside the file.
/// - **Size.** Some 350 bytes for an event that waits or is dead, and its body; some 250 for an id that is remembered: 48 hours of 10 events a second
///   are 1.7 million ids, or 430 MB. Room that was given back is used again, and the file shrinks only by SQLite's `VACUUM`. Beside it are
///   `-wal`, some 4 MB and after a burst up to 64 MB, and `-shm`; both belong to it, and must not be deleted or left behind. `-reserve`, 16 MiB, holds
///   nothing; deliveries are accepted only while it is whole. Where `-wal` was
///   deleted nothing more is acknowledged until a restart, which saves what was, unless it is a `kill -9`.
/// - **Backup** by SQLite itself, while it is in use: `VACUUM INTO 'backup.db'`, or `.backup` of its shell. Never by `cp`, which copies a
///   moment that never was. A backup that is put back holds what was handled since once more.
/// - **SQLite's shell**, and whatever else opens the file, must be of version 3.51.3 or newer: older ones can damage a file that two
///   connections write. Debian 12 has 3.40.1. `hookgate inbox` brings its own.
///
/// # Time
/// Leases, back-offs and retention go by the machine's wall clock, since processes share them. Where it is **set back**, what waits or runs
/// does so for as long as it was to from then on, no longer; ids are remembered longer by the jump. Where it is **set forward**,
/// retries come earlier by the jump, and ids are forgotten earlier by it: 48 hours of retention bear a jump of 21 hours before a
/// retry could be taken for a new event. Leases seem to have ended: workers leave alone what runs in their own process, but those of
/// another process take it over, so that a handler may run twice at a time. Nothing that was accepted is lost by any of it.
///
/// # Security
/// The file holds bodies with what your users wrote, also those of dead letters, until they are purged. It is made readable for its owner alone
/// (0600), and its folder should be too. It is not encrypted. The body of an entry that is done is deleted at once, and its bytes are
/// overwritten where they lay on a page of the table; traces of a large one may stay in the file, and in `-wal`, until they are used again.
#[derive(Clone)]
pub struct Inbox {
    pub(crate) engine: Arc<dyn Engine>,
}

impl Inbox {
    /// Opens the inbox in this file, and makes the file where there is none; [`InboxOptions`] has what can be set.
    ///
    /// # Errors
    /// What is accepted could not be kept there, or the file is not this crate's: see [`InboxErrorKind`](crate::InboxErrorKind).
    pub fn open(path: impl AsRef<Path>) -> Result<Self, InboxError> {
        InboxOptions::default().open(path)
    }

    /// Waits until all that was asked is answered and the file is closed. Dropping the last clone closes it too, in the background.
    ///
    /// Waits for other clones as well, such as those of workers and acceptors: shut them down before.
    pub async fn close(self) {
        let end = self.engine.end();
        drop(self);
        end.await;
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
