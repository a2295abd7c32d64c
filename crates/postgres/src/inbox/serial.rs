//! Leases without two entries of one row, across all processes.
//!
//! `SKIP LOCKED` prevents that an entry is leased twice. It does not prevent that two processes
//! lease two entries of one row at the same moment, as neither sees the other's changes yet. So a
//! row is locked first, until the end of the transaction, and examined **afterwards**: by a second
//! statement, whose snapshot was taken under the lock and so shows the changes of every earlier
//! holder. No process waits for a lock: a row that another process is leasing is skipped.
//!
//! The entries that are due are examined in the order of time, but no more than [`AHEAD`] of them:
//! all others may belong to one row that runs. If there are more, a second search goes from row to
//! row, which takes one look into an index for each, however many entries a row has. Its index has
//! no entry that waits for the end of its back-off, so it meets only rows that have an entry due,
//! also where a hundred thousand others have none: those without a token, which are due from the
//! moment when they are accepted or returned by an operator. An entry that has run keeps its token.
//! When it is due, and its row runs, the search takes the token away, so that the next one finds
//! the entry by its row.

use std::sync::{LazyLock, PoisonError};
use std::time::Duration;

use hookgate::dedupe::{StoreError, StoreErrorKind};
use hookgate_inbox::engine::{Batch, LeaseRequest};
use tokio::time::timeout;
use tokio_postgres::types::Type;
use tokio_postgres::{Error, Row};

use super::lease::{
    DEAD_FOR, DUE, LEASE_TIMEOUT, LeaseParameters, NEXT, SOON, TAKEN, TYPES, ask_again, columns,
    take,
};
use super::row::{at_most, column, time};
use super::table::Table;
use crate::failure::store_error;
use crate::session::at_once;

/// The number of entries that a lease call examines in the order of time.
pub(super) const AHEAD: i64 = 500;
/// The number of rows that a lease call examines after that.
const ROWS: i32 = 1_000;
/// The wait before the next lease call if none of the examined rows can be leased and others were
/// not examined.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// True if the row of an entry `i` runs: under a lease that holds, or in this process, whatever
/// state the table has for it.
const ROW_RUNS: &str = "(EXISTS (SELECT FROM hookgate_inbox r
    WHERE r.namespace = $4 AND r.row_key = i.row_key AND r.state = 1 AND r.id <> i.id AND r.due_at > statement_timestamp())
  OR i.row_key = ANY (ARRAY (SELECT r.row_key FROM hookgate_inbox r WHERE r.id = ANY ($2) AND r.row_key IS NOT NULL)))";

/// True if an entry needs no lock of a row. An entry that becomes a dead letter needs none.
const ALONE: &str = "(dead_for IS NOT NULL OR row_key IS NULL)";

/// Chooses among the entries of `ahead`: at most `$1`, one of each row, whose rows no other process
/// is leasing at this moment. The turn decides: of the first entries of all rows, one is locked
/// before the second entry of any row. `more` may use all parts.
fn choose(ahead: &str, more: &str) -> String {
    format!(
        "{ahead},
free AS MATERIALIZED (SELECT * FROM ahead i WHERE {ALONE} OR NOT {ROW_RUNS}),
due AS MATERIALIZED (
  SELECT free.* FROM (SELECT * FROM free ORDER BY turn, due_at, id) free CROSS JOIN LATERAL (
    SELECT FROM hookgate_inbox i WHERE i.id = free.id AND i.state < 2 AND i.due_at <= statement_timestamp() FOR UPDATE SKIP LOCKED
  ) locked LIMIT $1
),
firsts AS MATERIALIZED (
  SELECT DISTINCT ON (CASE WHEN {ALONE} THEN id END, CASE WHEN NOT {ALONE} THEN row_key END) *
  FROM due ORDER BY CASE WHEN {ALONE} THEN id END, CASE WHEN NOT {ALONE} THEN row_key END, due_at, id
),
{more}
SELECT found.*, firsts.id FROM found LEFT JOIN firsts ON {ALONE}
  OR pg_try_advisory_xact_lock({LOCKS}, ('x' || encode(substring(row_key FROM 1 FOR 4), 'hex'))::bit(32)::integer)"
    )
}

/// The candidates in the order of time.
pub(super) static CANDIDATES: LazyLock<String> = LazyLock::new(|| {
    let ahead = format!(
        "WITH examined AS MATERIALIZED ({} LIMIT {AHEAD}),
ahead AS (
  SELECT *, CASE WHEN {ALONE} THEN 1 ELSE row_number() OVER (PARTITION BY row_key, {ALONE} ORDER BY due_at, id) END AS turn FROM examined
)",
        *DUE
    );
    let examined = "SELECT (SELECT count(*) FROM examined) AS examined, (SELECT count(*) FROM firsts) AS candidates";
    choose(
        &ahead,
        &format!("found AS ({examined}, next_in FROM ({NEXT}) next)"),
    )
});

/// The candidates from row to row, after the row `$6`; with them entries without a row, those that
/// ran before and are due again, and those whose leases have ended. An entry of a row is due if the
/// first one is. `next_row` is the row after which the next search begins, or null if it stays.
///
/// `released` are entries that have lost their tokens, as if another worker had leased them: a
/// settlement that is repeated so late is `Lost`.
pub(super) static BY_ROWS: LazyLock<String> = LazyLock::new(|| {
    let columns = format!("i.id, i.due_at, i.row_key, {} AS dead_for", *DEAD_FOR);
    let first_after = |row: &str| {
        format!(
            "SELECT {columns} FROM hookgate_inbox i
    WHERE i.namespace = $4 AND i.state = 0 AND i.token IS NULL AND i.row_key > {row} ORDER BY i.row_key, i.due_at, i.id LIMIT 1"
        )
    };
    let due_in = |state: &str, order: &str, most: i64| {
        format!(
            "SELECT {columns} FROM hookgate_inbox i WHERE i.namespace = $4 AND {state} AND i.due_at <= statement_timestamp() AND i.id <> ALL ($2)
    ORDER BY {order} LIMIT {most}"
        )
    };
    // The first entries of all rows before the second of any.
    let by_turn = format!(
        "row_number() OVER (ORDER BY CASE WHEN {ALONE} THEN 1 ELSE nth END, due_at, id) AS turn, NULL"
    );
    let ahead = format!(
        "WITH RECURSIVE rows AS (
  SELECT first.*, 1 AS number FROM ({}) first
  UNION ALL
  SELECT next.*, rows.number + 1 FROM rows CROSS JOIN LATERAL ({}) next WHERE rows.number < {ROWS}
),
again AS MATERIALIZED ({}),
ahead AS (
  SELECT id, due_at, row_key, dead_for, number::bigint AS turn, number FROM rows WHERE due_at <= statement_timestamp()
  UNION ALL SELECT id, due_at, row_key, dead_for, {by_turn} FROM (
    SELECT *, row_number() OVER (PARTITION BY row_key, {ALONE} ORDER BY due_at, id) AS nth FROM again
  ) again
  UNION ALL SELECT *, row_number() OVER (ORDER BY due_at, id), NULL FROM ({}) other
  UNION ALL SELECT *, row_number() OVER (ORDER BY due_at, id), NULL FROM ({}) other
)",
        first_after("$6"),
        first_after("rows.row_key"),
        due_in(
            "i.state = 0 AND i.token IS NOT NULL",
            "i.due_at, i.id",
            ROWS.into()
        ),
        due_in(
            "i.state = 0 AND i.token IS NULL AND i.row_key IS NULL",
            "i.row_key, i.due_at, i.id",
            AHEAD
        ),
        due_in("i.state = 1", "i.due_at, i.id", AHEAD),
    );
    let last = "ORDER BY number DESC LIMIT 1";
    let more = format!(
        "released AS (
  UPDATE hookgate_inbox i SET token = NULL FROM (
    SELECT i.id FROM hookgate_inbox i WHERE i.id = ANY (ARRAY (SELECT id FROM again EXCEPT SELECT id FROM free))
      AND i.state = 0 AND i.token IS NOT NULL AND i.due_at <= statement_timestamp() FOR UPDATE SKIP LOCKED
  ) blocked WHERE i.id = blocked.id RETURNING 1
),
found AS (
  SELECT count(*) AS examined, (SELECT count(*) FROM firsts) AS candidates, (SELECT count(*) FROM released) AS released, CASE
    WHEN (SELECT count(*) FROM due) >= $1 THEN (SELECT row_key FROM due WHERE number IS NOT NULL {last})
    WHEN count(*) < {ROWS} THEN ''::bytea
    ELSE (SELECT row_key FROM rows {last}) END AS next_row FROM rows
)"
    );
    choose(&ahead, &more)
});

/// The first of the two numbers of a lock; it marks rows of the inbox. `hook` in ASCII.
const LOCKS: i32 = 0x686f_6f6b;

/// Leases those of the candidates whose rows are free, now that the rows are locked.
static LEASE: LazyLock<String> = LazyLock::new(|| {
    format!(
        "WITH due AS MATERIALIZED (
  SELECT i.id, i.due_at, {dead_for} AS dead_for FROM hookgate_inbox i
  WHERE i.id = ANY ($1) AND i.state < 2
    AND (i.row_key IS NULL OR {dead_for} IS NOT NULL OR NOT {ROW_RUNS})
), taken AS ({})
SELECT {} FROM taken ORDER BY was_due, id",
        TAKEN,
        columns(),
        dead_for = *DEAD_FOR
    )
});

pub(super) async fn lease(table: &Table, request: &LeaseRequest) -> Result<Batch, StoreError> {
    match timeout(LEASE_TIMEOUT, leased(table, request)).await {
        Ok(leased) => leased,
        Err(_) => {
            table.postgres.drop_silent(LEASE_TIMEOUT);
            Err(StoreError::new(StoreErrorKind::TimedOut))
        }
    }
}

async fn leased(table: &Table, request: &LeaseRequest) -> Result<Batch, StoreError> {
    let mut asked = LeaseParameters::new(request);
    // If the client is dropped before `keep`, its connection is closed, and the server rolls back.
    let client = table.postgres.client_within(LEASE_TIMEOUT).await?;
    let mut types = TYPES;
    types[0] = Type::INT8_ARRAY;
    let first = client
        .ready(&CANDIDATES, &TYPES[..5])
        .await
        .map_err(store_error)?;
    let second = client.ready(&LEASE, &types).await.map_err(store_error)?;
    // The two calls of each pair are sent at once and answered together: two round trips in total.
    let (name, token) = (&*table.name, asked.token);
    let token = token.as_bytes().as_slice();
    let (begun, found) = {
        let parameters = asked.parameters(&asked.most, &name, &token);
        at_once(
            // Each statement must see all earlier commits, whatever isolation level is the role's
            // default.
            client.begin(),
            client.run(&first, &parameters[..5]),
        )
        .await
    };
    let mut batch = Batch::default();
    let mut found = Found::read(&both(begun, found)?)?;
    batch.next_in = time(found.next_in);
    let mut again = None;
    if found.examined >= AHEAD && found.ids.len() < request.most {
        // The rows of these entries are taken: no other entry of them is a candidate.
        let except = asked.except.len();
        asked.except.extend(&found.ids);
        let wanted = at_most(request.most - found.ids.len());
        let after_row = || {
            table
                .after_row
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        let after = after_row().clone();
        let after = after.as_slice();
        let search = client
            .ready(&BY_ROWS, &TYPES[..6])
            .await
            .map_err(store_error)?;
        let parameters = asked.parameters(&wanted, &name, &after);
        let rows = client.run(&search, &parameters[..6]).await;
        let by_rows = Found::read(&rows.map_err(store_error)?)?;
        again = by_rows.again(wanted, after.is_empty());
        if let Some(next) = by_rows.next_row {
            *after_row() = next;
        }
        asked.except.truncate(except);
        found.candidates += by_rows.candidates;
        found.ids.extend(by_rows.ids);
    }
    if found.ids.is_empty() {
        client.batch_execute("COMMIT").await.map_err(store_error)?;
    } else {
        let parameters = asked.parameters(&found.ids, &name, &token);
        let (taken, committed) = at_once(
            client.run(&second, &parameters),
            client.batch_execute("COMMIT"),
        )
        .await;
        take(&mut batch, &both(committed, taken)?, asked.token)?;
    }
    client.keep();
    if batch.jobs.len() < request.most {
        if found.candidates > at_most(batch.jobs.len()) {
            again = Some(SOON);
        }
        if let Some(again) = again {
            ask_again(&mut batch, again);
        }
    }
    Ok(batch)
}

/// The answer of a search for candidates.
#[derive(Default)]
struct Found {
    ids: Vec<i64>,
    next_in: Option<f64>,
    /// The number of entries, or of rows, that were examined.
    examined: i64,
    /// The number of candidates, also of those whose rows another process is leasing.
    candidates: i64,
    /// The number of entries that the next search finds by their rows.
    released: Option<i64>,
    next_row: Option<Vec<u8>>,
}

impl Found {
    fn read(rows: &[Row]) -> Result<Self, StoreError> {
        let mut found = Self::default();
        for row in rows {
            found.examined = column(row, "examined")?;
            found.candidates = column(row, "candidates")?;
            // Each of the two searches has some of these columns.
            found.next_in = row.try_get("next_in").unwrap_or_default();
            found.released = row.try_get("released").unwrap_or_default();
            found.next_row = row.try_get("next_row").unwrap_or_default();
            found.ids.extend(column::<Option<i64>>(row, "id")?);
        }
        Ok(found)
    }

    /// Returns when to search again after a search from row to row, if rows were not examined.
    fn again(&self, wanted: i64, from_the_first: bool) -> Option<Duration> {
        let is_end = self.examined < i64::from(ROWS);
        match self.candidates < wanted {
            true if self.released > Some(0) => Some(SOON),
            true if is_end && from_the_first => None,
            true if is_end => Some(SOON),
            _ => Some(LOOK_AGAIN),
        }
    }
}

/// Returns the second's answer, if the first succeeded too.
fn both<T>(first: Result<(), Error>, second: Result<T, Error>) -> Result<T, StoreError> {
    // The second's error says more: a commit after a failure is a rollback, and reports no error.
    let second = second.map_err(store_error)?;
    first.map_err(store_error)?;
    Ok(second)
}
