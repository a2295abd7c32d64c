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
use super::writer::{Call, Task, Writer};
use super::{claims, header};
use crate::clock::{Clock, SystemClock};
use crate::dedupe::{
    ClaimToken, Claimed, DedupeStore, EventKey, Ownership, ScopesInUse, StoreError, StoreErrorKind,
    StoreFuture,
};

/// How long a write waits for another process that holds the file's lock.
const BUSY_TIMEOUT: Duration = Duration::from_millis(500);
/// The largest number of claims that wait for the writer.
const MAX_WAITING: usize = 1_024;

/// Claims in a file of SQLite, which a restart does not forget. For one process, or a few on one machine.
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
/// SQLite is compiled in. Clones share one file and one thread that writes: calls that wait while the disk is flushed share the
/// next flush, and no thread of the runtime waits. A claim and its commit are flushed before they are answered, so a done event
/// survives a `kill -9`, and a power cut if the disk keeps the data that it reports as flushed. A duplicate writes nothing.
///
/// - **One machine.** Any number of its processes may open the file. Two that write at full load wait for each other, 500 ms at
///   most; then the call fails with [`TimedOut`](StoreErrorKind::TimedOut), and the delivery is answered 503. A network file system
///   is refused where it can be detected. For several machines, use Redis or PostgreSQL.
/// - **The file is full, locked, broken or moved away**: the delivery is answered 503, and the sender delivers it again; later ones
///   are accepted without a restart. On a full disk, events that run are still committed, from 16 MiB beside the file that are
///   reserved for this, and known events stay known.
/// - **The file** is its own, or that of an inbox (feature `inbox`), which may be opened before or after. The database of another program is refused. Beside it are `-wal`, `-shm` and `-reserve`, which belong
///   to it and must not be deleted or left behind. Back it up with SQLite's `VACUUM INTO`, never with `cp`.
/// - **Size**: about 110 bytes an id. At 10 events a second and 48 h of retention 190 MB. Ended records are deleted with later
///   commits, 512 at a time, and their space is used again.
/// - **At most 1,024 claims wait** for the writer; a further one is [`Unavailable`](StoreErrorKind::Unavailable) at once.
///
/// # Time
/// Leases and retention use the machine's wall clock, in milliseconds, since a restart and other processes read them. If it is
/// **set back**, a lease lasts its whole original time, counted from then on, and ids are remembered longer. If it is **set
/// forward**, leases end early, so that two runs may overlap, of which one commits; ids are forgotten earlier by the jump: a
/// retention of 48 hours allows a jump of 21 hours.
///
/// # Security
/// A program that may write the file decides which events are handled. It is created readable and writable for its owner alone
/// (0600), and its folder should be so too. It holds digests of ids, and no bodies. Two receivers with different secrets on one
/// store each need a [scope](crate::ReceiverBuilder::scope); `build` checks it for clones of one store, and not where the file is
/// opened twice.
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

    /// Sends a call to the writer and waits for its answer. If the caller stops waiting, the answer is dropped.
    async fn ask<T>(
        &self,
        key: &EventKey,
        token: ClaimToken,
        slot: Option<WaitingSlot>,
        task: impl FnOnce(oneshot::Sender<Result<T, StoreError>>) -> Task,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let call = Call {
            key: *key,
            token,
            task: task(reply),
            _slot: slot,
        };
        self.inner.calls.send(call).map_err(|_| ended())?;
        answer.await.unwrap_or_else(|_| Err(ended()))
    }
}

fn open_file(file: &Path) -> Result<Connection, StoreError> {
    let writer = connect(file, BUSY_TIMEOUT)?;
    header::check(&writer, true)?;
    durably(&writer)?;
    claims::create(&writer).map_err(failed)?;
    flush_what_is_there(&writer)?;
    Ok(writer)
}

impl DedupeStore for SqliteStore {
    fn claim<'a>(
        &'a self,
        key: &'a EventKey,
        token: ClaimToken,
        lease: Duration,
    ) -> StoreFuture<'a, Claimed> {
        StoreFuture::boxed(async move {
            let Some(slot) = WaitingSlot::take(&self.inner.waiting, MAX_WAITING) else {
                return Err(StoreError::saying(
                    StoreErrorKind::Unavailable,
                    "1,024 claims wait for the file already",
                ));
            };
            let task = move |reply| Task::Claim(lease, reply);
            self.ask(key, token, Some(slot), task).await
        })
    }

    fn renew<'a>(
        &'a self,
        key: &'a EventKey,
        token: ClaimToken,
        lease: Duration,
    ) -> StoreFuture<'a, Ownership> {
        StoreFuture::boxed(self.ask(key, token, None, move |reply| Task::Renew(lease, reply)))
    }

    fn commit<'a>(
        &'a self,
        key: &'a EventKey,
        token: ClaimToken,
        retain: Duration,
    ) -> StoreFuture<'a, Ownership> {
        StoreFuture::boxed(self.ask(key, token, None, move |reply| Task::Commit(retain, reply)))
    }

    fn release<'a>(&'a self, key: &'a EventKey, token: ClaimToken) -> StoreFuture<'a, Ownership> {
        StoreFuture::boxed(self.ask(key, token, None, Task::Release))
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
