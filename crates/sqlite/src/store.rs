//! The store of claims in a file.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hookgate::{
    DedupeStore,
    clock::{Clock, SystemClock},
    dedupe::{ClaimToken, Claimed, EventKey, Ownership, ScopesInUse, StoreError, StoreFuture},
};
use rusqlite::{Connection, params};

use super::calls::{Calls, FileStore, Kind};
use super::claims::{ClaimsTables, make_tables};
use super::fault::Fault;
use super::header;
use super::open::{connect, durably, flush_what_is_there, open};
use super::units::millis;
use super::writer::Limits;

/// How long a write waits for another process that holds the file's lock.
const BUSY_TIMEOUT: Duration = Duration::from_millis(500);
/// The largest number of claims that wait for the writer. [`FileStore::CROWDED`] names it.
const MAX_WAITING: usize = 1_024;
/// The largest number of calls that share a commit.
const MAX_GROUP: usize = 256;

/// Claims in a file of SQLite, which a restart does not forget. For one process, or a few on one
/// machine. See the [crate](crate#the-file) for the file, its size, its limits and its clock.
///
/// ```
/// use hookgate::{Receiver, Secret};
/// use hookgate_sqlite::SqliteStore;
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
/// Clones share one file and one thread that writes, and no thread of the runtime waits. A claim
/// and its commit are flushed before they are answered. It is an `OrderStore` too (feature
/// `order`): the last handled event of each row is kept in the same file.
///
/// Two receivers with different secrets on one store each need a
/// [scope](hookgate::ReceiverBuilder::scope); `build` checks it for clones of one store, and not
/// where the file is opened twice.
///
/// # Security
/// A program that may write the file decides which events are handled: see [the
/// crate](crate#security).
#[derive(Clone)]
pub struct SqliteStore {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    path: PathBuf,
    pub(super) calls: Calls<ClaimsFile>,
    scopes: ScopesInUse,
}

pub(super) struct ClaimsFile;

impl FileStore for ClaimsFile {
    type Tables<'c> = ClaimsTables<'c>;

    const THREAD: &'static str = "claims-writer";
    const LOOK: Duration = Duration::from_secs(1);
    const CROWDED: &'static str = "1,024 claims wait for the file already";

    fn prepare(self, connection: &Connection) -> rusqlite::Result<ClaimsTables<'_>> {
        ClaimsTables::prepare(connection)
    }
}

impl SqliteStore {
    /// Opens the store in this file, and creates the file if it does not exist, readable and
    /// writable for its owner alone.
    ///
    /// Blocks the thread until the file is open: some milliseconds, or up to 500 ms for each lock.
    ///
    /// # Errors
    /// The store could not keep claims in this file, or the file is not this crate's: see
    /// [`StoreErrorKind`](hookgate::dedupe::StoreErrorKind).
    ///
    /// ```
    /// use hookgate::dedupe::StoreErrorKind;
    /// use hookgate_sqlite::SqliteStore;
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
        let (connection, opened) = open(path, true, open_file)?;
        let limits = Limits {
            clock,
            max_group: MAX_GROUP,
            max_waiting: MAX_WAITING,
            max_pages: None,
        };
        let inner = Inner {
            path: path.to_owned(),
            calls: Calls::start(ClaimsFile, (connection, ()), opened, limits, || ())?,
            scopes: ScopesInUse::default(),
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Executes a statement on the record that a token holds, and returns whether it does.
    fn own(
        &self,
        kind: Kind,
        mut execute: impl FnMut(&mut ClaimsTables<'_>, i64) -> rusqlite::Result<usize> + Send + 'static,
    ) -> StoreFuture<'_, Ownership> {
        StoreFuture::boxed(self.inner.calls.ask(kind, move |on, now| {
            Ok(Ownership::from_held(execute(on, now)? > 0))
        }))
    }
}

fn open_file(file: &Path) -> Result<Connection, Fault> {
    let writer = connect(file, BUSY_TIMEOUT)?;
    header::check(&writer, true)?;
    durably(&writer)?;
    make_tables(&writer)?;
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
        let key = *key.as_bytes();
        StoreFuture::boxed(self.inner.calls.begin(0, move |on, now, room| {
            on.claim(key, token, lease, now, room)
        }))
    }

    fn renew<'a>(
        &'a self,
        key: &'a EventKey,
        token: ClaimToken,
        lease: Duration,
    ) -> StoreFuture<'a, Ownership> {
        let (key, token) = (*key.as_bytes(), *token.as_bytes());
        self.own(Kind::Optional, move |on, now| {
            let values = params![key, token, now, millis(lease)];
            on.renew.execute(values)
        })
    }

    fn commit<'a>(
        &'a self,
        key: &'a EventKey,
        token: ClaimToken,
        retain: Duration,
    ) -> StoreFuture<'a, Ownership> {
        let (key, token) = (*key.as_bytes(), *token.as_bytes());
        self.own(Kind::Certain, move |on, now| {
            let values = params![key, token, now, millis(retain)];
            on.commit.execute(values)
        })
    }

    fn release<'a>(&'a self, key: &'a EventKey, token: ClaimToken) -> StoreFuture<'a, Ownership> {
        let (key, token) = (*key.as_bytes(), *token.as_bytes());
        self.own(Kind::Certain, move |on, now| {
            on.release.execute(params![key, token, now])
        })
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
