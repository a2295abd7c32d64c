//! The ledger: the writes that were made through a client, so that their events are recognised.

mod entry;
mod event;
mod memory;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod sql;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hookgate::{
    Event,
    clock::{Clock, SystemClock},
    dedupe::{StoreError, StoreErrorKind},
};

use self::entry::{Bounds, Store};
use self::event::Seen;
use self::memory::Memory;
use crate::reconcile::RowHash;
#[cfg(feature = "postgres")]
use crate::sql::postgres::PostgresPool;
#[cfg(feature = "sqlite")]
use crate::sql::sqlite::SqliteFile;

pub use self::entry::Echo;
pub(crate) use self::entry::{Entry, Kept, Place};

/// 27 h of the Standard tier's 60 requests a minute.
const CAPACITY: u64 = 100_000;
/// How long an event waits for the answer of a write that may be its cause, and how often it looks.
const ANSWER: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(50);
/// Each time another event took an entry first.
const TRIES: u32 = 100;

/// The writes of rows that a program made. It recognises their events. Clones share it.
///
/// [`Client::writer`](crate::Client::writer) records each write **before** it is sent: hashes of
/// the row and the values, and the time. [`echo`](Self::echo) says whether an event carries exactly
/// one of these writes. The handler decides what it does with such an event.
///
/// A write is remembered for 27 h, because the service's last attempt comes 26 h 36 min after a
/// change. If there are more than 100,000 writes in that time, the oldest are forgotten. The ledger
/// holds no value and no id of a row, only hashes.
///
/// ```
/// use hookgate::{Event, Properties};
/// use hookgate_client::{Client, Ledger};
///
/// async fn handle(event: Event, client: Client, ledger: Ledger) -> Result<(), Box<dyn std::error::Error>> {
///     if let Some(echo) = ledger.echo(&event).await? {
///         println!("{} is a change that {} made", event.id, echo.writer);
///         return Ok(());
///     }
///     let client = client.writer("sync", &ledger);
///     client.rows::<Properties>("dm_orders").update("row_1", &serde_json::json!({ "Status": "seen" })).await?;
///     Ok(())
/// }
/// ```
#[derive(Clone)]
pub struct Ledger {
    store: Arc<dyn Store>,
    capacity: u64,
    clock: Arc<dyn Clock>,
}

/// A client's ledger, and the name that its writes have there.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) name: String,
    pub(crate) ledger: Ledger,
}

impl Writer {
    pub(crate) fn new(name: &str, ledger: &Ledger) -> Self {
        Self {
            name: entry::name(name),
            ledger: ledger.clone(),
        }
    }
}

impl Ledger {
    /// Keeps the writes of this process, until it ends.
    #[must_use]
    pub fn in_memory() -> Self {
        Self::on(Memory::default())
    }

    /// Keeps the writes in a file of SQLite. The processes of one machine can share the file. It
    /// may also hold your own tables, a mirror or a [`SqliteStore`](hookgate_sqlite::SqliteStore).
    /// The table is `hookgate_ledger`.
    ///
    /// # Errors
    /// The file can't be opened or written, or is not a database.
    #[cfg(feature = "sqlite")]
    pub fn open_sqlite(path: impl AsRef<std::path::Path>) -> Result<Self, StoreError> {
        let file = SqliteFile::open(path.as_ref(), sql::SQLITE_SCHEMA)?;
        Ok(Self::on(sql::Sql(file)))
    }

    /// Keeps the writes in a table of PostgreSQL, which replicas share. It opens at most four
    /// connections, the first at the first call. [`migrate`](Self::migrate) creates the table.
    ///
    /// # Errors
    /// The URL can't be used: see [`Tls::for_url`](hookgate_postgres::Tls::for_url).
    ///
    /// # Security
    /// As for [`PostgresMirror::open`](crate::reconcile::PostgresMirror::open).
    #[cfg(feature = "postgres")]
    pub fn open_postgres(url: &str) -> Result<Self, StoreError> {
        Ok(Self::on(sql::Sql(PostgresPool::open(url)?)))
    }

    /// The same, with the connections of your own pool. The role needs `SELECT`, `INSERT`, `UPDATE`
    /// and `DELETE` on the table. The connection's `search_path` finds the table.
    #[cfg(feature = "postgres")]
    #[must_use]
    pub fn with_pool(pool: deadpool_postgres::Pool) -> Self {
        Self::on(sql::Sql(PostgresPool(pool)))
    }

    /// The SQL of the table of PostgreSQL, for your own migration tool. It may be run again.
    #[cfg(feature = "postgres")]
    pub const POSTGRES_SCHEMA: &str = sql::POSTGRES_SCHEMA;

    /// Creates the table of PostgreSQL, unless it exists. In memory and on SQLite it does nothing.
    ///
    /// # Errors
    /// The database can't be reached, or the role may not create a table.
    #[cfg(feature = "postgres")]
    pub async fn migrate(&self) -> Result<(), StoreError> {
        self.store.migrate().await
    }

    /// Sets the number of writes to keep, in place of 100,000. In memory a write takes some hundred
    /// bytes.
    #[must_use]
    pub fn with_capacity(mut self, writes: u64) -> Self {
        self.capacity = writes.max(1);
        self
    }

    /// Uses this clock in place of the system's: for tests, with the emulator's clock. It may
    /// differ from the service's by 5 minutes: if it differs more, a write of unknown outcome has
    /// no echo, and an event that comes before the answer has none.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    fn on(store: impl Store) -> Self {
        Self {
            store: Arc::new(store),
            capacity: CAPACITY,
            clock: Arc::new(SystemClock),
        }
    }

    /// Returns the write that the event carries: it has the same row and the same values. `None`
    /// for each other event.
    ///
    /// One write has one event. If that event comes again, it is an echo again; another event with
    /// the same values needs another write. The event's values are compared with the written values
    /// and with those of the service's answer. So `12.50`, a text that the service trims, and
    /// properties that it adds to a new row are recognised. An update with a property that was not
    /// written is not an echo.
    ///
    /// If a write that may be the cause is not answered yet, this call waits for its answer, up to
    /// a second.
    ///
    /// The event must have all signed properties: if your handler uses its own row type, read the
    /// delivery a second time with `delivery.event::<Properties>()`. It needs a tokio runtime.
    ///
    /// # Errors
    /// The ledger could not be read or written. Answer 5xx, so that the event comes again, or
    /// handle it as another program's change.
    pub async fn echo(&self, event: &Event) -> Result<Option<Echo>, StoreError> {
        let Some(seen) = Seen::of(event) else {
            return Ok(None);
        };
        let mut waits = ANSWER.as_millis() / LOOK.as_millis();
        let mut newest = None;
        for _ in 0..TRIES {
            let now = self.now();
            let mut kept = self.store.find(&seen.places).await?;
            // A write that began after the event had come is not its cause.
            let newest = *newest.get_or_insert(kept.last().map_or(0, |kept| kept.number));
            kept.retain(|kept| kept.number <= newest && !kept.entry.is_over(now));
            if let Some(known) = kept.iter().find(|kept| kept.entry.taken == Some(seen.id)) {
                return Ok(Some(known.entry.echo()));
            }
            kept.retain(|kept| kept.entry.taken.is_none() && kept.entry.may_be_at(seen.at));
            let is_open = |kept: &Kept| kept.entry.is_open(now);
            let fitting = kept.iter().filter(|kept| seen.carries(&kept.entry));
            // Equal writes have their own events, although these come in any order.
            let found = fitting.min_by_key(|kept| kept.entry.distance(seen.at));
            let mut others = kept.iter().filter(|kept| seen.may_carry(&kept.entry));
            if waits > 0 && found.is_none_or(is_open) && others.any(is_open) {
                waits -= 1;
                tokio::time::sleep(LOOK).await;
                continue;
            }
            let Some(found) = found else {
                return Ok(None);
            };
            let taken = Some(seen.id);
            let entry = Entry {
                taken,
                ..found.entry.clone()
            };
            if self.swap(found, Some(entry)).await? {
                return Ok(Some(found.entry.echo()));
            }
        }
        Err(StoreError::new(StoreErrorKind::Conflict))
    }

    /// Adds an entry for each of these values.
    pub(crate) async fn open(
        &self,
        entry: Entry,
        written: &[RowHash],
    ) -> Result<Vec<Kept>, StoreError> {
        let bounds = Bounds {
            oldest: entry::oldest(entry.written_at),
            capacity: self.capacity,
        };
        let numbers = self.store.add(&entry, written, bounds).await?;
        let kept = numbers.into_iter().zip(written).map(|(number, written)| {
            let written = written.clone();
            let entry = Entry {
                written,
                ..entry.clone()
            };
            Kept {
                number,
                revision: 1,
                entry,
            }
        });
        Ok(kept.collect())
    }

    /// Changes an entry, or removes it, although an event may take it at the same time.
    pub(crate) async fn close(
        &self,
        mut kept: Kept,
        change: impl Fn(Entry) -> Option<Entry>,
    ) -> Result<(), StoreError> {
        while !self.swap(&kept, change(kept.entry.clone())).await? {
            let now = self.store.find(&[kept.entry.place]).await?;
            match now.into_iter().find(|now| now.number == kept.number) {
                Some(now) => kept = now,
                // Forgotten meanwhile, as one of too many.
                None => break,
            }
        }
        Ok(())
    }

    async fn swap(&self, kept: &Kept, entry: Option<Entry>) -> Result<bool, StoreError> {
        self.store.swap(kept.number, kept.revision, entry).await
    }

    /// In microseconds since 1970.
    pub(crate) fn now(&self) -> i64 {
        i64::try_from(self.clock.unix_millis())
            .unwrap_or(i64::MAX)
            .saturating_mul(1_000)
    }
}

/// Shows no row.
impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ledger").finish_non_exhaustive()
    }
}
