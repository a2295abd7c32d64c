//! Leases: what is due goes to one process each, and nobody waits for another.

use std::sync::LazyLock;
use std::time::Duration;

use ::tokio_postgres::Row;
use ::tokio_postgres::types::Type;

use super::row::{column, entry, listed, tries};
use super::schema::{ENTRY, LISTED, RUNNING};
use super::{at_most, seconds};
use crate::dedupe::ClaimToken;
use crate::error::StoreError;
use crate::inbox::engine::{Ask, Batch, EntryId, Job};
use crate::postgres::Postgres;

/// Longer than the server's own limit of 5 s for a statement, so that it is the server that gives up, and undoes it: a lease whose answer
/// nobody waits for would be nobody's, and a try used up. Workers can wait; what they hold is renewed beside it.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// The entries that are due, locked, the longest due first. What others are leasing in this moment is passed over.
///
/// By the time at which the statement began: `clock_timestamp()` itself could not be looked up in an index.
pub(super) fn due(besides: &str) -> String {
    format!(
        "SELECT i.id, i.due_at, i.row_key, i.state = 1 AND i.tries >= $3 AS is_last FROM hookgate_inbox i
  WHERE i.namespace = $4 AND i.state < 2 AND i.due_at <= statement_timestamp() AND i.id <> ALL ($2) {besides}
  ORDER BY i.due_at, i.id LIMIT $1 FOR UPDATE OF i SKIP LOCKED"
    )
}

/// What a lease does with the entries of `due`: an entry whose last try's lease has ended becomes a dead letter.
///
/// Parameters 5 and 6 are the token and the lease.
pub(super) const TAKEN: &str =
"UPDATE hookgate_inbox i SET
  state = CASE WHEN due.is_last THEN 3 ELSE 1 END,
  tries = CASE WHEN due.is_last THEN i.tries ELSE i.tries + 1 END,
  token = CASE WHEN due.is_last THEN NULL ELSE $5 END,
  due_at = CASE WHEN due.is_last THEN i.due_at ELSE clock_timestamp() + $6 * interval '1 second' END,
  last_error = CASE WHEN due.is_last
    THEN concat_ws(' Before: ', 'The lease of the last try ended without a result.', left(i.last_error, 4000))
    ELSE i.last_error END
FROM due WHERE i.id = due.id RETURNING i.*, due.due_at AS was_due";

/// What is read of those that were taken.
pub(super) fn columns() -> String {
    format!(
        "taken.was_due, {LISTED}, {ENTRY}, extract(epoch FROM clock_timestamp() - accepted_at)::float8 AS waited"
    )
}

/// Until the next one is due of those that nobody can take now.
pub(super) const NEXT: &str = "SELECT extract(epoch FROM min(due_at) - clock_timestamp())::float8 AS next_in FROM hookgate_inbox
  WHERE namespace = $4 AND state < 2 AND due_at > statement_timestamp() AND id <> ALL ($2)";

/// Of what the statements of a lease are asked with.
pub(super) const TYPES: [Type; 6] = [
    Type::INT8,
    Type::INT8_ARRAY,
    Type::INT4,
    Type::TEXT,
    Type::BYTEA,
    Type::FLOAT8,
];

pub(super) static LEASE: LazyLock<String> = LazyLock::new(|| {
    format!(
        "WITH due AS MATERIALIZED ({}), taken AS ({TAKEN}), next AS ({NEXT})
SELECT next.next_in, {} FROM next LEFT JOIN taken ON true ORDER BY was_due, id",
        due(""),
        columns()
    )
});

/// One statement, and so one round trip.
pub(super) async fn lease(postgres: &Postgres, name: &str, ask: &Ask) -> Result<Batch, StoreError> {
    let asked = Asked::new(ask);
    let rows = postgres
        .query_within(
            PATIENCE,
            &LEASE,
            &TYPES,
            &[
                &asked.most,
                &asked.except,
                &asked.max_tries,
                &name,
                &asked.token.as_bytes().as_slice(),
                &asked.lease,
            ],
        )
        .await?;
    let mut batch = Batch::default();
    if let Some(row) = rows.first() {
        batch.next_in = time(column(row, "next_in")?);
    }
    batch.take(&rows, asked.token)?;
    let looked_at = batch.jobs.len() + batch.buried.len();
    batch.tell_of_more(looked_at, ask.most);
    Ok(batch)
}

/// An [`Ask`] as parameters.
pub(super) struct Asked {
    pub(super) most: i64,
    pub(super) except: Vec<i64>,
    pub(super) max_tries: i32,
    /// One for the whole batch: with the entry's number it is one lease's.
    pub(super) token: ClaimToken,
    pub(super) lease: f64,
}

impl Asked {
    pub(super) fn new(ask: &Ask) -> Self {
        Self {
            most: at_most(ask.most),
            except: ask.except.iter().map(|id| id.0).collect(),
            max_tries: i32::try_from(ask.max_tries).unwrap_or(i32::MAX),
            token: ClaimToken::new(&[]),
            lease: seconds(ask.lease),
        }
    }
}

/// Seconds, where there are any.
pub(super) fn time(seconds: Option<f64>) -> Option<Duration> {
    let seconds = seconds?;
    Some(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}

impl Batch {
    /// What became of each row of [`columns`]. Without an entry it has but nulls.
    pub(super) fn take(&mut self, rows: &[Row], token: ClaimToken) -> Result<(), StoreError> {
        for row in rows {
            let Some(id) = column::<Option<i64>>(row, "id")? else {
                continue;
            };
            // One that can't be read must not take the others along, which are leased by now. It is a dead letter after so many leases.
            if column::<i16>(row, "state")? == RUNNING {
                let Ok(entry) = entry(row) else {
                    continue;
                };
                self.jobs.push(Job {
                    id: EntryId(id),
                    token,
                    tries: tries(row)?,
                    waited: time(column(row, "waited")?).unwrap_or_default(),
                    entry,
                });
            } else {
                self.buried.extend(listed(row));
            }
        }
        Ok(())
    }

    /// Where a full batch was looked at, and not all of it leased, there may be more behind it that is due.
    pub(super) fn tell_of_more(&mut self, looked_at: usize, most: usize) {
        /// Others are leasing what was looked at: they need a moment.
        const MOMENT: Duration = Duration::from_millis(10);
        if looked_at >= most && self.jobs.len() < most {
            let is_progress = !self.jobs.is_empty() || !self.buried.is_empty();
            let soon = if is_progress { Duration::ZERO } else { MOMENT };
            self.next_in = Some(self.next_in.map_or(soon, |next| next.min(soon)));
        }
    }
}
