//! Leases: each entry that is due goes to one process, and no process waits for another.

use std::sync::LazyLock;
use std::time::Duration;

use hookgate::dedupe::{ClaimToken, StoreError};
use hookgate_inbox::engine::{
    Batch, CLOCK_JUMPED, CLOCK_LEAP, Job, LeaseRequest, NEVER_SETTLED, TOO_OLD,
};
use hookgate_inbox::{EntryId, EntryState};
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use super::row::{ENTRY, LISTED, at_most, column, entry, listed, seconds, time, tries};
use super::table::Table;

/// The time limit for a lease call. It is longer than the server's own limit of 5 s for a
/// statement, so that the server gives up first and rolls back: a lease whose answer no worker
/// receives would leave its entries without a worker, and use up one of their runs. Workers can
/// wait this long; their leases are renewed independently.
pub(super) const LEASE_TIMEOUT: Duration = Duration::from_secs(10);

/// The wait before the next lease call if another process is leasing the entries that were
/// selected: it needs a moment.
pub(super) const SOON: Duration = Duration::from_millis(10);

/// Selects the entries that are due, the longest due first.
///
/// Uses the time at which the statement began: `clock_timestamp()` itself could not be looked up in
/// an index.
pub(super) static DUE: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT i.id, i.due_at, i.row_key, {} AS dead_for FROM hookgate_inbox i
  WHERE i.namespace = $4 AND i.state < 2 AND i.due_at <= statement_timestamp() AND i.id <> ALL ($2)
  ORDER BY i.due_at, i.id",
        *DEAD_FOR
    )
});

/// The reason why an entry `i` becomes a dead letter in place of a lease, or null. Parameters 3 and
/// 5 are the most runs, and how long ago its first lease may have begun, or null.
pub(super) static DEAD_FOR: LazyLock<String> = LazyLock::new(|| {
    format!(
        "CASE WHEN i.state = 1 AND i.tries >= $3 THEN '{NEVER_SETTLED}'
  WHEN i.first_leased_at < statement_timestamp() - $5 * interval '1 second' THEN '{TOO_OLD}'
  WHEN $5 IS NOT NULL AND i.first_leased_at > statement_timestamp() + {} * interval '1 second' THEN '{CLOCK_JUMPED}' END",
        CLOCK_LEAP.as_secs()
    )
});

/// Leases the entries of `due`, or makes them dead letters.
///
/// Parameters 6 and 7 are the claim token and the lease.
pub(super) const TAKEN: &str =
    "UPDATE hookgate_inbox i SET
  state = CASE WHEN dead_for IS NULL THEN 1 ELSE 3 END,
  tries = CASE WHEN dead_for IS NULL THEN i.tries + 1 ELSE i.tries END,
  token = CASE WHEN dead_for IS NULL THEN $6 END,
  due_at = CASE WHEN dead_for IS NULL THEN clock_timestamp() + $7 * interval '1 second' ELSE i.due_at END,
  first_leased_at = coalesce(i.first_leased_at, CASE WHEN dead_for IS NULL THEN clock_timestamp() END),
  last_error = CASE WHEN dead_for IS NULL THEN i.last_error ELSE concat_ws('. Before: ', dead_for, left(i.last_error, 4000)) END
FROM due WHERE i.id = due.id RETURNING i.*, due.due_at AS was_due";

/// The columns that are read of the entries of `taken`.
pub(super) fn columns() -> String {
    format!(
        "taken.was_due, {LISTED}, {ENTRY}, extract(epoch FROM clock_timestamp() - accepted_at)::float8 AS waited"
    )
}

/// The time until the next entry is due, of those that cannot be leased now.
pub(super) const NEXT: &str = "SELECT extract(epoch FROM min(due_at) - clock_timestamp())::float8 AS next_in FROM hookgate_inbox
  WHERE namespace = $4 AND state < 2 AND due_at > statement_timestamp() AND id <> ALL ($2)";

/// The types of the parameters of a lease's statements.
pub(super) const TYPES: [Type; 7] = [
    Type::INT8,
    Type::INT8_ARRAY,
    Type::INT4,
    Type::TEXT,
    Type::FLOAT8,
    Type::BYTEA,
    Type::FLOAT8,
];

pub(super) static LEASE: LazyLock<String> = LazyLock::new(|| {
    format!(
        // Entries that another process is leasing at this moment are skipped.
        "WITH due AS MATERIALIZED ({} LIMIT $1 FOR UPDATE OF i SKIP LOCKED), taken AS ({}), next AS ({NEXT})
SELECT next.next_in, {} FROM next LEFT JOIN taken ON true ORDER BY was_due, id",
        *DUE,
        TAKEN,
        columns()
    )
});

/// Leases with one statement, and so with one round trip.
pub(super) async fn lease(table: &Table, request: &LeaseRequest) -> Result<Batch, StoreError> {
    let asked = LeaseParameters::new(request);
    let (name, token) = (&*table.name, asked.token.as_bytes().as_slice());
    let parameters = asked.parameters(&asked.most, &name, &token);
    let rows = table
        .postgres
        .query_within(LEASE_TIMEOUT, &LEASE, &TYPES, &parameters)
        .await?;
    let mut batch = Batch::default();
    if let Some(row) = rows.first() {
        batch.next_in = time(column(row, "next_in")?);
    }
    take(&mut batch, &rows, asked.token)?;
    let selected = batch.jobs.len() + batch.dead_lettered.len();
    if selected >= request.most && batch.jobs.len() < request.most {
        ask_again(&mut batch, SOON);
    }
    Ok(batch)
}

/// An [`LeaseRequest`] as parameters.
pub(super) struct LeaseParameters {
    pub(super) most: i64,
    pub(super) except: Vec<i64>,
    pub(super) max_tries: i32,
    pub(super) run_within: Option<f64>,
    /// One token for the whole batch: together with the entry's number it identifies one lease.
    pub(super) token: ClaimToken,
    pub(super) lease: f64,
}

impl LeaseParameters {
    pub(super) fn new(request: &LeaseRequest) -> Self {
        Self {
            most: at_most(request.most),
            except: request.except.iter().map(|id| id.get()).collect(),
            max_tries: i32::try_from(request.max_tries).unwrap_or(i32::MAX),
            run_within: request.run_within.map(seconds),
            token: ClaimToken::new(&[]),
            lease: seconds(request.lease),
        }
    }

    /// Returns the parameters of a lease's statements, of which the first differs.
    pub(super) fn parameters<'a>(
        &'a self,
        first: &'a (dyn ToSql + Sync),
        name: &'a &str,
        token: &'a &[u8],
    ) -> [&'a (dyn ToSql + Sync); 7] {
        [
            first,
            &self.except,
            &self.max_tries,
            name,
            &self.run_within,
            token,
            &self.lease,
        ]
    }
}

/// Adds each row of [`columns`] to the jobs or the dead letters of the batch. A row without an
/// entry has only nulls.
pub(super) fn take(batch: &mut Batch, rows: &[Row], token: ClaimToken) -> Result<(), StoreError> {
    for row in rows {
        let Some(id) = column::<Option<i64>>(row, "id")? else {
            continue;
        };
        // An entry that cannot be read must not fail the others, which are leased by now. It
        // becomes a dead letter after the most runs.
        if column::<i16>(row, "state")? == EntryState::Running as i16 {
            let Ok(entry) = entry(row) else {
                continue;
            };
            batch.jobs.push(Job {
                id: EntryId::new(id),
                token,
                tries: tries(row)?,
                waited: time(column(row, "waited")?).unwrap_or_default(),
                entry,
            });
        } else {
            batch.dead_lettered.extend(listed(row));
        }
    }
    Ok(())
}

/// More entries may be due: at once if this call has changed any entry, and otherwise after this
/// time.
pub(super) fn ask_again(batch: &mut Batch, after: Duration) {
    let is_progress = !batch.jobs.is_empty() || !batch.dead_lettered.is_empty();
    let after = if is_progress { Duration::ZERO } else { after };
    batch.next_in = Some(batch.next_in.map_or(after, |next| next.min(after)));
}
