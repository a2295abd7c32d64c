//! The store of claims in a file.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::commits::Commits;
use super::fault::{ended, failed};
use super::open::{connect, durably, flush_what_is_there, open};
use super::slot::WaitingSlot;
use super::thread::start;
use super::writer::{Answer, Call, Task, Writer};
use super::{claims, header, rows};
use crate::clock::{Clock, SystemClock};
use crate::dedupe::{
    ClaimToken, Claimed, DedupeStore, EventKey, Ownership, ScopesInUse, StoreError, StoreErrorKind,
    StoreFuture,
};

/// How long a write waits for another process that holds the file's lock.
const BUSY_TIMEOUT: Duration = Duration::from_millis(500);
/// The largest number of claims that wait for the writer.
const MAX_WAITING: usize = 1_024;

/// Claims in a file of SQLite, which a restart does not forget. For one process, or a few on one machine. See the
/// [module](super#the-stores-file) for the file, its size, its limits and its clock.
///
/// ```
/// use hookgate::{Receiver, Secret, SqliteStore};
///
/// # let folder = std::env::temp_dir().join(format!("hookgate-doc-claims-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// # let path = folder.join("claims.db");
/// let receiver = Receiver::builder()
///     .secret(Secret::new("whsec_made_up_for_this_example")?)
///     .store(SqliteStore::open(&path)?)
///     .build()?;
/// assert!(path.exists());
/// # drop(receiver);
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Clones share one file and one thread that writes, and no thread of the runtime waits. A claim and its commit are flushed before
/// they are answered. It is an [`OrderStore`](crate::order::OrderStore) too: the last handled event of each row is kept in the same
/// file.
///
/// Two receivers with different secrets on one store each need a [scope](crate::ReceiverBuilder::scope); `build` checks it for
/// clones of one store, and not where the file is opened twice.
///
/// # Security
/// A program that may write the file decides which events are handled: see [the module](super#security).
#[derive(Clone)]
pub struct SqliteStore {
    inner: Arc<Inner>,
}

struct Inner {
    path: PathBuf,
    calls: Sender<Call>,
    waiting: Arc<AtomicUsize>,
    scopes: ScopesInUse,
}

impl SqliteStore {
    /// Opens the store in this file, and creates the file if it does not exist, readable and writable for its owner alone.
    ///
    /// Blocks the thread until the file is open: some milliseconds, or up to 500 ms for each lock.
    ///
    /// # Errors
    /// The store could not keep claims in this file, or the file is not this crate's: see [`StoreErrorKind`].
    ///
    /// ```
    /// use hookgate::{SqliteStore, StoreErrorKind};
    ///
    /// let error = SqliteStore::open("no/such/folder/claims.db").unwrap_err();
    /// assert_eq!(error.kind(), StoreErrorKind::Missing);
    /// ```
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::open_with_clock(path, SystemClock)
    }

    /// Opens the store with another wall clock, for tests.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    pub fn open_with_clock(path: impl AsRef<Path>, clock: impl Clock) -> Result<Self, StoreError> {
        let path = path.as_ref();
        Self::start(path, Arc::new(clock)).map_err(|error| error.about(path))
    }

    fn start(path: &Path, clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        let opened = open(path, true, open_file)?;
        let (files, reserve) = (opened.files, opened.reserve);
        let (calls, asked) = channel();
        start(
            "claims-writer",
            opened.connections,
            move |connection, ready| {
                let file = Commits::prepare(connection, files, reserve)?;
                let mut writer = Writer::prepare(file, clock)?;
                ready();
                writer.run(&asked);
                Ok(())
            },
        )?;
        let inner = Inner {
            path: path.to_owned(),
            calls,
            waiting: Arc::default(),
            scopes: ScopesInUse::default(),
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Sends a call to the writer and waits for its answer, of which `of` returns the value. If the caller stops waiting, the
    /// answer is dropped.
    pub(super) async fn ask<T>(
        &self,
        key: &EventKey,
        task: Task,
        of: fn(Answer) -> Option<T>,
    ) -> Result<T, StoreError> {
        let _slot = task.begins().then(|| self.slot()).transpose()?;
        let (reply, answer) = oneshot::channel();
        let call = Call {
            key: *key,
            task,
            reply,
            _slot,
        };
        self.inner.calls.send(call).map_err(|_| ended())?;
        // The function that carries out a call makes the answer of its type.
        of(answer.await.unwrap_or_else(|_| Err(ended()))?).ok_or_else(ended)
    }

    fn slot(&self) -> Result<WaitingSlot, StoreError> {
        WaitingSlot::take(&self.inner.waiting, MAX_WAITING).ok_or_else(|| {
            StoreError::saying(
                StoreErrorKind::Unavailable,
                "1,024 claims wait for the file already",
            )
        })
    }

    async fn own(&self, key: &EventKey, task: Task) -> Result<Ownership, StoreError> {
        let of = |answer| match answer {
            Answer::Ownership(ownership) => Some(ownership),
            _ => None,
        };
        self.ask(key, task, of).await
    }
}

fn open_file(file: &Path) -> Result<Connection, StoreError> {
    let writer = connect(file, BUSY_TIMEOUT)?;
    header::check(&writer, true)?;
    durably(&writer)?;
    make_tables(&writer).map_err(failed)?;
    flush_what_is_there(&writer)?;
    Ok(writer)
}

/// Makes the tables and indexes that are missing. A file of an older version has claims alone.
fn make_tables(connection: &Connection) -> rusqlite::Result<()> {
    let find = "SELECT count(*) = 4 FROM sqlite_schema WHERE name IN
        ('hookgate_claims', 'hookgate_claims_by_time', 'hookgate_order', 'hookgate_order_by_time')";
    if connection.query_row(find, [], |row| row.get(0))? {
        return Ok(());
    }
    header::create(connection, || {
        connection.execute_batch(claims::TABLE)?;
        connection.execute_batch(rows::TABLE)
    })
}

impl DedupeStore for SqliteStore {
    fn claim<'a>(
        &'a self,
        key: &'a EventKey,
        token: ClaimToken,
        lease: Duration,
    ) -> StoreFuture<'a, Claimed> {
        let of = |answer| match answer {
            Answer::Claimed(claimed) => Some(claimed),
            _ => None,
        };
        StoreFuture::boxed(self.ask(key, Task::Claim(token, lease), of))
    }

    fn renew<'a>(
        &'a self,
        key: &'a EventKey,
        token: ClaimToken,
        lease: Duration,
    ) -> StoreFuture<'a, Ownership> {
        StoreFuture::boxed(self.own(key, Task::Renew(token, lease)))
    }

    fn commit<'a>(
        &'a self,
        key: &'a EventKey,
        token: ClaimToken,
        retain: Duration,
    ) -> StoreFuture<'a, Ownership> {
        StoreFuture::boxed(self.own(key, Task::Commit(token, retain)))
    }

    fn release<'a>(&'a self, key: &'a EventKey, token: ClaimToken) -> StoreFuture<'a, Ownership> {
        StoreFuture::boxed(self.own(key, Task::Release(token)))
    }

    fn scopes_in_use(&self) -> Option<&ScopesInUse> {
        Some(&self.inner.scopes)
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SqliteStore")
            .field(&self.inner.path)
            .finish()
    }
}
