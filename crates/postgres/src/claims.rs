//! The store of claims that processes share.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use hookgate::{
    DedupeStore,
    dedupe::{
        ClaimToken, Claimed, EventKey, LongestLease, Ownership, ScopesInUse, StoreError,
        StoreErrorKind, StoreFuture,
    },
};
use tokio::time::timeout;
use tokio_postgres::GenericClient;
use tokio_postgres::types::{ToSql, Type};

use super::failure::store_error;
use super::pool::Postgres;
use super::query::micros;
use super::task::Task;

/// Known records are read first, so that a duplicate writes nothing and waits for no flush. Of
/// concurrent claims that all find no record, the index accepts one; the others insert no row, and
/// are tried again: then the record can be read.
const CLAIM: &str = "WITH known AS MATERIALIZED (
  SELECT done, token, until - clock_timestamp() AS remaining FROM hookgate_claims
  WHERE key = $1 AND until > clock_timestamp() AND (done OR token <> $2)
), claimed AS (
  INSERT INTO hookgate_claims AS held (key, token, done, until)
  SELECT $1, $2, false, clock_timestamp() + $3 * interval '1 microsecond' WHERE NOT EXISTS (SELECT FROM known)
  ON CONFLICT (key) DO UPDATE SET token = excluded.token, done = false, until = excluded.until
  WHERE held.until <= clock_timestamp() OR (held.token = excluded.token AND NOT held.done)
  RETURNING token
)
SELECT NULL::boolean AS done, token, 0::bigint AS remaining FROM claimed
UNION ALL SELECT done, token, ceil(extract(epoch FROM remaining) * 1000000)::bigint FROM known";

const RENEW: &str =
    "UPDATE hookgate_claims SET until = clock_timestamp() + $3 * interval '1 microsecond'
WHERE key = $1 AND token = $2 AND NOT done AND until > clock_timestamp() RETURNING true";

/// A repeated commit finds its own done record, for at most one lease, `$4`, and leaves the end of
/// its retention unchanged.
const COMMIT: &str = "UPDATE hookgate_claims SET done = true,
  until = CASE WHEN done THEN until ELSE clock_timestamp() + $3 * interval '1 microsecond' END
WHERE key = $1 AND token = $2 AND until > clock_timestamp()
  AND (NOT done OR until + ($4 - $3) * interval '1 microsecond' > clock_timestamp()) RETURNING true";

const RELEASE: &str = "DELETE FROM hookgate_claims
WHERE key = $1 AND token = $2 AND NOT done AND until > clock_timestamp() RETURNING true";

/// The greatest number of tries of a claim that meets concurrent claims; each time another claim
/// was faster.
const ASKED: u32 = 8;
/// The number of claims and readings after which ended records are deleted.
const SWEPT_EVERY: u32 = 256;
/// The number of rows that a statement deletes, and the number of statements in a sweep: together
/// more than the claims between two sweeps, so that deletion keeps up.
const CHUNK: i64 = 512;
const CHUNKS: u32 = 8;

/// Claims in a table of PostgreSQL, which any number of processes share.
///
/// ```no_run
/// use hookgate::{Receiver, Secret};
/// use hookgate_postgres::{Postgres, PostgresStore, Tls, migrate};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let (config, tls) = Tls::for_url(&std::env::var("DATABASE_URL")?)?;
/// let (client, connection) = config.connect(tls.clone()).await?;
/// tokio::spawn(connection);
/// migrate(&client).await?; // or by your own tool, from `MIGRATIONS`
///
/// let receiver = Receiver::builder()
///     .secret(Secret::from_env("WEBHOOK_SECRET")?)
///     .store(PostgresStore::new(&Postgres::new(config, tls), "orders"))
///     .build()?;
/// # Ok(())
/// # }
/// ```
///
/// Each call is one statement in one round trip and its own transaction, as
/// [durable](super#durability) as the server makes it; a duplicate only reads. A call ends within
/// 900 ms, also where the server does not answer; the call may then have taken effect, as
/// documented in [`DedupeStore`]. A commit can be repeated with the same retention for one lease:
/// the longest that the store and its clones were given.
///
/// Receivers with other secrets that claim under one name each need a
/// [scope](hookgate::ReceiverBuilder::scope). Within one process, and on one [`Postgres`], the
/// receiver's `build` checks it.
///
/// It is an `OrderStore` too (feature `order`): the last handled event of each row is kept in the
/// table `hookgate_order`.
///
/// Ended records are deleted in chunks, by a separate task after every 256th claim or reading of a
/// row's record, where a connection is free.
///
/// # Security
/// A role that may write these tables decides which events are handled: see its
/// [rights](super#schema-and-rights).
#[derive(Clone)]
pub struct PostgresStore {
    pub(super) postgres: Postgres,
    /// The name of the program.
    pub(super) name: Arc<str>,
    longest_lease: Arc<LongestLease>,
    scopes: ScopesInUse,
    sweeping: Arc<Sweeping>,
}

/// When to delete ended records.
#[derive(Default)]
struct Sweeping {
    /// The number of claims and readings.
    calls: AtomicU32,
    task: Task,
}

impl PostgresStore {
    /// Returns a store of claims in this database, whose tables [`migrate`](super::migrate) has
    /// made, under the [name](super#names) of the program.
    ///
    /// Replicas of a program use one name, and share their claims. A program of another name in the
    /// same tables handles the same id separately. Do not change the name: under another one every
    /// event is new.
    #[must_use]
    pub fn new(postgres: &Postgres, name: &str) -> Self {
        Self {
            postgres: postgres.clone(),
            name: name.into(),
            longest_lease: Arc::default(),
            scopes: ScopesInUse::default(),
            sweeping: Arc::default(),
        }
    }

    async fn ask(
        &self,
        statement: &str,
        key: &EventKey,
        token: ClaimToken,
        times: impl IntoIterator<Item = Duration>,
    ) -> Result<Ownership, StoreError> {
        let key = key.named(&self.name);
        let (key, token) = (key.as_bytes().as_slice(), token.as_bytes().as_slice());
        let times: Vec<i64> = times.into_iter().map(micros).collect();
        let mut values: Vec<&(dyn ToSql + Sync)> = vec![&key, &token];
        values.extend(times.iter().map(|time| time as &(dyn ToSql + Sync)));
        let types = &[Type::BYTEA, Type::BYTEA, Type::INT8, Type::INT8][..values.len()];
        let rows = self
            .postgres
            .query_for_lease(statement, types, &values)
            .await?;
        Ok(Ownership::from_held(!rows.is_empty()))
    }

    async fn claim_once(
        &self,
        key: &EventKey,
        token: ClaimToken,
        lease: Duration,
    ) -> Result<Option<Claimed>, StoreError> {
        let key = key.named(&self.name);
        let rows = self
            .postgres
            .query(
                CLAIM,
                &[Type::BYTEA, Type::BYTEA, Type::INT8],
                &[
                    &key.as_bytes().as_slice(),
                    &token.as_bytes().as_slice(),
                    &micros(lease),
                ],
            )
            .await?;
        let Some(row) = rows.first() else {
            return Ok(None);
        };
        let (done, by): (Option<bool>, &[u8]) = (
            row.try_get(0).map_err(store_error)?,
            row.try_get(1).map_err(store_error)?,
        );
        let remaining: i64 = row.try_get(2).map_err(store_error)?;
        Ok(Some(match done {
            None => Claimed::Fresh,
            Some(false) => Claimed::Running {
                retry_after: Duration::from_micros(remaining.max(0).unsigned_abs()),
            },
            Some(true) => {
                let by = by.try_into().map_err(|error| {
                    // Another program has written there.
                    StoreError::new(StoreErrorKind::Unavailable).caused_by(error)
                })?;
                let body_mark = ClaimToken::from_bytes(by).body_mark();
                Claimed::Done { body_mark }
            }
        }))
    }

    /// Begins a sweep where one is due and a connection is free. No call waits for it.
    pub(super) fn sweep_now_and_then(&self) {
        let calls = self.sweeping.calls.fetch_add(1, Ordering::Relaxed);
        if !calls.is_multiple_of(SWEPT_EVERY) || self.postgres.is_busy() {
            return;
        }
        self.sweeping.task.run(|| {
            let postgres = self.postgres.clone();
            async move {
                for statement in FORGET {
                    sweep(&postgres, statement).await;
                }
            }
        });
    }
}

/// Deletes ended records, as long as no other task needs the connection. Where it fails, the next
/// sweep continues.
async fn sweep(postgres: &Postgres, statement: &str) {
    for _ in 0..CHUNKS {
        if postgres.is_busy() {
            return;
        }
        let forgotten = match postgres.query(statement, &[Type::INT8], &[&CHUNK]).await {
            Ok(rows) => rows.first().map_or(0, |row| row.try_get(0).unwrap_or(0)),
            Err(_) => return,
        };
        if forgotten < CHUNK {
            return;
        }
    }
}

impl DedupeStore for PostgresStore {
    fn claim<'a>(
        &'a self,
        key: &'a EventKey,
        token: ClaimToken,
        lease: Duration,
    ) -> StoreFuture<'a, Claimed> {
        self.longest_lease.note(lease);
        StoreFuture::boxed(async move {
            self.sweep_now_and_then();
            let asked = async {
                for _ in 0..ASKED {
                    if let Some(claimed) = self.claim_once(key, token, lease).await? {
                        return Ok(claimed);
                    }
                }
                Err(StoreError::new(StoreErrorKind::Unavailable)
                    .caused_by("other claims came and went between this one's statements"))
            };
            // Each statement has its own limit; this is the limit of all of them.
            let in_time = timeout(self.postgres.call_timeout, asked).await;
            in_time.unwrap_or_else(|_| Err(StoreError::new(StoreErrorKind::TimedOut)))
        })
    }

    fn renew<'a>(
        &'a self,
        key: &'a EventKey,
        token: ClaimToken,
        lease: Duration,
    ) -> StoreFuture<'a, Ownership> {
        self.longest_lease.note(lease);
        StoreFuture::boxed(self.ask(RENEW, key, token, [lease]))
    }

    fn commit<'a>(
        &'a self,
        key: &'a EventKey,
        token: ClaimToken,
        retain: Duration,
    ) -> StoreFuture<'a, Ownership> {
        let times = [retain, self.longest_lease.get()];
        StoreFuture::boxed(self.ask(COMMIT, key, token, times))
    }

    fn release<'a>(&'a self, key: &'a EventKey, token: ClaimToken) -> StoreFuture<'a, Ownership> {
        StoreFuture::boxed(self.ask(RELEASE, key, token, []))
    }

    fn scopes_in_use(&self) -> Option<&ScopesInUse> {
        Some(&self.scopes)
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PostgresStore")
            .field(&self.postgres)
            .finish()
    }
}

/// Rows that are locked are in use.
macro_rules! forget {
    ($table:literal) => {
        concat!(
            "WITH forgotten AS (
  DELETE FROM ",
            $table,
            " WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM ",
            $table,
            " WHERE until <= now() ORDER BY until LIMIT $1 FOR UPDATE SKIP LOCKED))
  RETURNING 1
) SELECT count(*) FROM forgotten"
        )
    };
}

/// Three statements, which delete claims whose lease or retention has ended, and events and records
/// of rows whose retention has. Each deletes at most `$1` (`bigint`), skips rows that are locked,
/// and returns the number deleted (`bigint`).
///
/// For a schedule of your own; a [`PostgresStore`] on the same database runs them automatically.
pub const FORGET: [&str; 3] = [
    forget!("hookgate_claims"),
    forget!("hookgate_effects"),
    forget!("hookgate_order"),
];

/// Deletes events and records of rows whose retention has ended, and claims whose lease or
/// retention has: of each at most `most`, and returns the number deleted in all. Call it again
/// while it returns at least `most`.
///
/// A [`PostgresStore`] deletes them automatically. Without one, call it regularly: every minute
/// from a task, or run the statements of [`FORGET`] by `pg_cron`. It skips locked rows, and a row
/// that it deletes can't be claimed in the meantime. If it is never called, the only harm is the
/// disk space used.
///
/// # Errors
/// Those of [`migrate`](super::migrate). Rows that were deleted before the error stay deleted.
pub async fn forget(client: &impl GenericClient, most: u32) -> Result<u64, StoreError> {
    let mut forgotten = 0;
    for statement in FORGET {
        let row = client
            .query_typed_one(statement, &[(&i64::from(most), Type::INT8)])
            .await
            .map_err(store_error)?;
        let rows: i64 = row.try_get(0).map_err(store_error)?;
        forgotten += rows.unsigned_abs();
    }
    Ok(forgotten)
}
