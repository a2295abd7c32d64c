//! The calls of an operator.

use std::time::Duration;

use hookgate::dedupe::StoreError;
use hookgate_inbox::engine::{Change, Entry};
use hookgate_inbox::{EntryId, InboxStats, Listed, Page, Selection};
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use super::row::{ENTRY, LISTED, at_most, column, entry, listed, seconds, time, unsigned};
use super::table::Table;
use crate::Postgres;

/// The time limit of a call. An operator can wait longer than a sender.
const CALL_TIMEOUT: Duration = Duration::from_secs(4);
/// The number of entries that are changed at a time.
const CHUNK: usize = 1_000;

/// Returns the conditions of a `Selection`; their parameters are 1, 2 and 4, and always 3, 5 and 8.
/// Conditions that are not set are left out, so that an index is used.
fn conditions(which: &Selection) -> String {
    let mut text = String::from("namespace = $8 AND id > $5 AND id <= $3");
    if let Some(state) = which.state {
        text.push_str(&format!(" AND state = {}", state as i16));
    }
    if which.id.is_some() {
        text.push_str(" AND id = $1");
    }
    if which.event_id.is_some() {
        text.push_str(" AND event_id = $2");
    }
    if which.older_than.is_some() {
        text.push_str(" AND accepted_at <= clock_timestamp() - $4 * interval '1 second'");
    }
    text
}

/// The types of the parameters of [`run`].
pub(super) const TYPES: [Type; 8] = [
    Type::INT8,
    Type::TEXT,
    Type::INT8,
    Type::FLOAT8,
    Type::INT8,
    Type::INT8,
    Type::TEXT,
    Type::TEXT,
];

/// Runs a statement with the parameters of [`conditions`], the last selected entry, the entry after
/// which it begins, the number of entries, a text, and the inbox's name.
async fn run(
    table: &Table,
    statement: &str,
    which: &Selection,
    last: EntryId,
    page: Page,
    text: Option<&str>,
) -> Result<Vec<Row>, StoreError> {
    let parameters: [&(dyn ToSql + Sync); 8] = [
        &which.id.map(|id| id.get()),
        &which
            .event_id
            .as_deref()
            .map(|id| id.replace('\0', "\u{fffd}")),
        &last.get(),
        &which.older_than.map(seconds),
        &page.after.get(),
        &at_most(page.most),
        &text,
        &&*table.name,
    ];
    table
        .postgres
        .query_within(CALL_TIMEOUT, statement, &TYPES, &parameters)
        .await
}

/// No entry has a greater number.
const LAST: EntryId = EntryId::new(i64::MAX);

/// Finds the greatest number of the entries of an age, `$1` seconds or older, by halving the range
/// of numbers: they follow the order of acceptance. Entries below `low` are of that age, and those
/// from `high` on are younger.
pub(super) const LAST_OF_AGE: &str = "WITH RECURSIVE search AS (
  SELECT min(id) AS low, max(id) + 1 AS high, clock_timestamp() - $1 * interval '1 second' AS time FROM hookgate_inbox
  UNION ALL
  SELECT CASE WHEN is_old THEN found.id + 1 ELSE low END, CASE WHEN is_old THEN high ELSE low + (high - low) / 2 END, time
  FROM search LEFT JOIN LATERAL (
    SELECT i.id, i.id < high AND i.accepted_at <= time AS is_old FROM hookgate_inbox i
    WHERE i.id >= low + (high - low) / 2 ORDER BY i.id LIMIT 1
  ) found ON true
  WHERE low < high
)
SELECT low - 1 AS last FROM search WHERE low >= high";

/// Returns the greatest number of the selected entries as far as their age decides it. So no
/// younger entry is read, however many there are. If the clock was set back, an entry near that
/// time may be left out as if it was younger.
async fn last_of_age(table: &Table, which: &Selection) -> Result<EntryId, StoreError> {
    match which.older_than {
        Some(age) => last(table, LAST_OF_AGE, &[Type::FLOAT8], &[&seconds(age)]).await,
        None => Ok(LAST),
    }
}

/// The greatest number of all entries, or zero.
const NEWEST: &str = "SELECT coalesce(max(id), 0) AS last FROM hookgate_inbox";

/// Runs one of the two statements above.
async fn last(
    table: &Table,
    statement: &str,
    types: &[Type],
    values: &[&(dyn ToSql + Sync)],
) -> Result<EntryId, StoreError> {
    let postgres = &table.postgres;
    let rows = postgres
        .query_within(CALL_TIMEOUT, statement, types, values)
        .await?;
    let last = rows.first().map(|row| column(row, "last")).transpose()?;
    Ok(last.map_or(LAST, EntryId::new))
}

/// Reads these columns of the selected entries.
async fn read(
    table: &Table,
    columns: &str,
    which: &Selection,
    last: EntryId,
    page: Page,
) -> Result<Vec<Row>, StoreError> {
    let statement = page_of(columns, which);
    run(table, &statement, which, last, page, None).await
}

/// Selects a page of these entries.
pub(super) fn page_of(columns: &str, which: &Selection) -> String {
    format!(
        "SELECT {columns} FROM hookgate_inbox WHERE {} ORDER BY id LIMIT $6",
        conditions(which)
    )
}

pub(super) async fn list(
    table: &Table,
    which: Selection,
    page: Page,
) -> Result<Vec<Listed>, StoreError> {
    let last = last_of_age(table, &which).await?;
    let rows = read(table, LISTED, &which, last, page).await?;
    rows.iter().map(listed).collect()
}

pub(super) async fn show(
    table: &Table,
    id: EntryId,
) -> Result<Option<(Listed, Entry)>, StoreError> {
    let which = Selection::all().id(id);
    let columns = format!("{LISTED}, {ENTRY}");
    let rows = read(table, &columns, &which, LAST, Page::first(1)).await?;
    let shown = rows.first().map(|row| Ok((listed(row)?, entry(row)?)));
    shown.transpose()
}

/// Makes the chosen entries due; `first` becomes the time of their first lease.
pub(super) fn retry_as(first: &str) -> String {
    format!(
        "UPDATE hookgate_inbox i
SET state = 0, tries = 0, token = NULL, due_at = clock_timestamp(), first_leased_at = {first} FROM chosen WHERE i.id = chosen.id"
    )
}

const DEAD_LETTER: &str = "UPDATE hookgate_inbox i
SET state = 3, token = NULL, last_error = $7 FROM chosen WHERE i.id = chosen.id";

const ERASE: &str = "UPDATE hookgate_inbox i
SET state = 2, token = NULL, row_key = NULL, last_error = NULL, body = ''::bytea, traceparent = NULL FROM chosen WHERE i.id = chosen.id";

const ERASE_LAST_ERROR: &str =
    "UPDATE hookgate_inbox i SET last_error = NULL FROM chosen WHERE i.id = chosen.id";

const PURGE: &str = "DELETE FROM hookgate_inbox i USING chosen WHERE i.id = chosen.id";

/// Changes the selected entries, one state after another and one chunk at a time, in the order of
/// their numbers. Entries that are accepted after the call began are left out: otherwise the call
/// might never end. After an error, the chunks before it stay changed.
pub(super) async fn operate(
    table: &Table,
    which: Selection,
    change: Change,
) -> Result<u64, StoreError> {
    let (made, text) = match &change {
        Change::Retry { forgets_age: false } => (retry_as("i.first_leased_at"), None),
        Change::Retry { forgets_age: true } => (retry_as("NULL"), None),
        Change::DeadLetter { reason } => (DEAD_LETTER.to_owned(), Some(&**reason)),
        Change::Purge => (PURGE.to_owned(), None),
        Change::Erase { .. } => (ERASE.to_owned(), None),
        Change::EraseLastError => (ERASE_LAST_ERROR.to_owned(), None),
    };
    let newest = last(table, NEWEST, &[], &[]).await?;
    let last = newest.min(last_of_age(table, &which).await?);
    let mut all = 0;
    for (_, which) in which.in_each(change.states()) {
        let statement = chunk(&which, &made);
        let mut page = Page::first(CHUNK);
        loop {
            let rows = run(table, &statement, &which, last, page, text).await;
            let rows = rows.map_err(|error| error.after_changes(all))?;
            let Some(row) = rows.first() else {
                break;
            };
            let changed = unsigned(column(row, "changed")?);
            all += changed;
            if changed < CHUNK as u64 {
                break;
            }
            page = Page::after(EntryId::new(column(row, "last")?), CHUNK);
        }
    }
    Ok(all)
}

/// Changes the next chunk of the selected entries.
pub(super) fn chunk(which: &Selection, change: &str) -> String {
    format!(
        "WITH chosen AS MATERIALIZED (
  SELECT id FROM hookgate_inbox WHERE {} ORDER BY id LIMIT $6 FOR UPDATE
), changed AS ({change} RETURNING i.id)
SELECT count(*) AS changed, max(id) AS last FROM changed",
        conditions(which)
    )
}

/// Counts entries that are queued, running or dead in indexes. Entries that are done can be very
/// many, so only the first of them are counted. Above that number the server's estimate is used:
/// the table's rows times the estimated share of this name.
const STATS: &str = "WITH pending AS (
  SELECT count(*) FILTER (WHERE state = 0) AS queued,
    count(*) FILTER (WHERE state = 0 AND tries > 0) AS retrying,
    count(*) FILTER (WHERE state = 1) AS running,
    extract(epoch FROM clock_timestamp() - min(accepted_at))::float8 AS oldest
  FROM hookgate_inbox WHERE namespace = $2 AND state < 2
), dead AS (
  SELECT count(*) AS dead FROM hookgate_inbox WHERE namespace = $2 AND state = 3
), done AS (
  SELECT count(*) AS done FROM (SELECT FROM hookgate_inbox WHERE namespace = $2 AND state = 2 LIMIT $1) AS counted
), estimate AS (
  SELECT (c.reltuples * coalesce((
      SELECT coalesce(max(f.share) FILTER (WHERE f.name = $2), 0)
      FROM pg_stats s, unnest(s.most_common_vals::text::text[], s.most_common_freqs) AS f (name, share)
      WHERE s.schemaname = n.nspname AND s.tablename = c.relname AND s.attname = 'namespace' HAVING count(*) > 0
    ), 1))::bigint AS rows
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = 'hookgate_inbox'::regclass
)
SELECT queued, retrying, running, dead, oldest,
  CASE WHEN done < $1 THEN done ELSE greatest(done, rows - queued - running - dead) END AS done
FROM pending, dead, done, estimate";

pub(super) async fn stats(table: &Table) -> Result<InboxStats, StoreError> {
    const COUNTED: i64 = 10_000;
    let types = [Type::INT8, Type::TEXT];
    let rows = table
        .postgres
        .query_within(CALL_TIMEOUT, STATS, &types, &[&COUNTED, &&*table.name])
        .await?;
    let Some(row) = rows.first() else {
        return Ok(InboxStats::default());
    };
    let count = |name| column::<i64>(row, name).map(unsigned);
    Ok(InboxStats {
        queued: count("queued")?,
        retrying: count("retrying")?,
        running: count("running")?,
        dead: count("dead")?,
        done: count("done")?,
        oldest: time(column(row, "oldest")?),
    })
}

/// The names of the inboxes that have entries. Each is found in the index after the previous one.
const NAMES: &str = "WITH RECURSIVE names AS (
  (SELECT namespace FROM hookgate_inbox ORDER BY namespace LIMIT 1)
  UNION ALL
  SELECT (SELECT i.namespace FROM hookgate_inbox i WHERE i.namespace > names.namespace ORDER BY i.namespace LIMIT 1)
  FROM names WHERE names.namespace IS NOT NULL
)
SELECT namespace FROM names WHERE namespace IS NOT NULL";

pub(super) async fn names(postgres: &Postgres) -> Result<Vec<String>, StoreError> {
    let rows = postgres.query_within(CALL_TIMEOUT, NAMES, &[], &[]).await?;
    rows.iter().map(|row| column(row, "namespace")).collect()
}
