//! Leases without two entries of one row, across all processes.
//!
//! `SKIP LOCKED` prevents that an entry is leased twice. It does not prevent that two processes lease two entries of one row at
//! the same moment, as neither sees the other's changes yet. So a row is locked first, until the end of the transaction, and
//! examined **afterwards**: by a second statement, whose snapshot was taken under the lock and so shows the changes of every
//! earlier holder. No process waits for a lock: a row that another process is leasing is skipped.

use std::sync::LazyLock;

use ::tokio_postgres::Error;
use ::tokio_postgres::types::Type;
use tokio::time::timeout;

use super::lease::{Asked, DEAD_FOR, NEXT, PATIENCE, TAKEN, TYPES, columns, due, time};
use super::row::column;
use crate::dedupe::{StoreError, StoreErrorKind};
use crate::inbox::engine::{Ask, Batch};
use crate::postgres::{Postgres, at_once};

/// True if the row of an entry `i` runs: under a lease that holds, or in this process, whatever state the table has for it.
const ROW_RUNS: &str = "(EXISTS (SELECT FROM hookgate_inbox r
    WHERE r.namespace = $4 AND r.row_key = i.row_key AND r.state = 1 AND r.id <> i.id AND r.due_at > statement_timestamp())
  OR i.row_key = ANY (ARRAY (SELECT r.row_key FROM hookgate_inbox r WHERE r.id = ANY ($2) AND r.row_key IS NOT NULL)))";

/// The entries that may be leased, one of each row, whose rows no other process is leasing at this moment. An entry that becomes
/// a dead letter needs no lock.
pub(super) static CANDIDATES: LazyLock<String> = LazyLock::new(|| {
    let due = due(&format!(
        "AND (i.row_key IS NULL OR {} IS NOT NULL OR NOT {ROW_RUNS})",
        *DEAD_FOR
    ));
    format!(
        "WITH due AS MATERIALIZED ({due}),
firsts AS MATERIALIZED (
  SELECT DISTINCT ON (CASE WHEN dead_for IS NOT NULL OR row_key IS NULL THEN id END, CASE WHEN dead_for IS NULL THEN row_key END) *
  FROM due ORDER BY CASE WHEN dead_for IS NOT NULL OR row_key IS NULL THEN id END, CASE WHEN dead_for IS NULL THEN row_key END, due_at, id
),
next AS ({NEXT})
SELECT next.next_in, firsts.id, (SELECT count(*) FROM due) AS looked_at
FROM next LEFT JOIN firsts ON dead_for IS NOT NULL OR row_key IS NULL
  OR pg_try_advisory_xact_lock({LOCKS}, ('x' || encode(substring(row_key FROM 1 FOR 4), 'hex'))::bit(32)::integer)"
    )
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
        *TAKEN,
        columns(),
        dead_for = *DEAD_FOR
    )
});

pub(super) async fn lease(postgres: &Postgres, name: &str, ask: &Ask) -> Result<Batch, StoreError> {
    match timeout(PATIENCE, leased(postgres, name, ask)).await {
        Ok(leased) => leased,
        Err(_) => {
            postgres.drop_silent(PATIENCE);
            Err(StoreError::new(StoreErrorKind::TimedOut))
        }
    }
}

async fn leased(postgres: &Postgres, name: &str, ask: &Ask) -> Result<Batch, StoreError> {
    let asked = Asked::new(ask);
    // If the client is dropped before `keep`, its connection is closed, and the server rolls back.
    let client = postgres.client_within(PATIENCE).await?;
    let mut types = TYPES;
    types[0] = Type::INT8_ARRAY;
    let first = client.ready(&CANDIDATES, &TYPES[..5]).await?;
    let second = client.ready(&LEASE, &types).await?;
    // The two calls of each pair are sent at once and answered together: two round trips in total.
    let token = asked.token.as_bytes().as_slice();
    let parameters = asked.parameters(&asked.most, &name, &token);
    let (begun, found) = at_once(
        // Each statement must see all earlier commits, whatever isolation level is the role's default.
        client.begin(),
        client.run(&first, &parameters[..5]),
    )
    .await;
    let found = both(begun, found)?;
    let mut batch = Batch::default();
    let (mut ids, mut looked_at) = (Vec::<i64>::new(), 0);
    for row in &found {
        batch.next_in = time(column(row, "next_in")?);
        looked_at = usize::try_from(column::<i64>(row, "looked_at")?).unwrap_or_default();
        ids.extend(column::<Option<i64>>(row, "id")?);
    }
    if ids.is_empty() {
        client.batch_execute("COMMIT").await?;
    } else {
        let parameters = asked.parameters(&ids, &name, &token);
        let (taken, committed) = at_once(
            client.run(&second, &parameters),
            client.batch_execute("COMMIT"),
        )
        .await;
        batch.take(&both(committed, taken)?, asked.token)?;
    }
    client.keep();
    batch.tell_of_more(looked_at, ask.most);
    Ok(batch)
}

/// Returns the second's answer, if the first succeeded too.
fn both<T>(first: Result<(), Error>, second: Result<T, Error>) -> Result<T, StoreError> {
    // The second's error says more: a commit after a failure is a rollback, and reports no error.
    let second = second?;
    first?;
    Ok(second)
}
