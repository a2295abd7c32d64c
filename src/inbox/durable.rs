//! An inbox whose entries survive the end of the process.

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
/// An SQLite file keeps the inbox: [`open`](Self::open). [The guide](crate::guide::inbox#in-a-file) describes the file: what an
/// accepted delivery survives, full disks, sizes, backups, and changes of the clock.
///
/// # Security
/// The file holds bodies, with data of your users, until entries are done; bodies of dead letters stay until they are purged. The
/// file is created readable for its owner alone (0600), and its folder should be so too. It is not encrypted. The body of an
/// entry that is done is deleted at once, and its bytes are overwritten where they were on a page of the table. Traces of a large
/// body may stay in the file, and in `-wal`, until that space is used again, or until [`erase`](Self::erase) is called.
#[derive(Clone, Debug)]
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
