//! The tables, as the steps that make them.

/// A step of the schema. A tool of your own can run the steps in their order, each once, as [`migrate`](super::migrate) does. A
/// step that is run again leaves the tables as they are; but the first step of the inbox builds indexes that the next step
/// drops again, and both lock the table for that time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Migration {
    /// The name under which it is recorded in the table `hookgate_migrations`.
    pub name: &'static str,
    /// One or more statements. They name no schema: the tables are made in the first of the `search_path`.
    pub sql: &'static str,
}

/// All steps, in their order. With feature `inbox` also those of its table.
///
/// Before the step `inbox-names-1` runs on a table of an older version, stop all processes of that version: after it, each
/// delivery that they accept fails with SQLSTATE 42P10, and their workers run the entries of every name. Entries from before it
/// belong to the name `default`. Keep that name for the inbox, or let workers of that name handle the entries before you change
/// it. Entries of a name without workers stay, also those that are done. `hookgate inbox purge --name default --all` deletes the
/// dead ones, and with `--state done` those that are done; `hookgate inbox dead-letter` makes queued ones dead.
pub const MIGRATIONS: &[Migration] = &[
    // Makes nothing, and fails where a text that is not ASCII could not be stored. Such a database accepts most events, and refuses
    // the rest for as long as their sender tries. `SQL_ASCII` would accept them, but checks nothing, so that an entry that another
    // program has written there could be unreadable.
    Migration {
        name: "encoding-1",
        sql: "DO $$ BEGIN
  IF current_setting('server_encoding') <> 'UTF8' THEN
    RAISE EXCEPTION USING ERRCODE = 'character_not_in_repertoire',
      MESSAGE = 'the encoding of this database is ' || current_setting('server_encoding') || ', and hookgate needs UTF8',
      HINT = 'CREATE DATABASE name ENCODING ''UTF8'' TEMPLATE template0';
  END IF;
END $$",
    },
    // The table of claims. The index by time is for the deletion alone.
    Migration {
        name: "claims-1",
        sql: "CREATE TABLE IF NOT EXISTS hookgate_claims (
  key bytea PRIMARY KEY,
  token bytea NOT NULL,
  done boolean NOT NULL,
  until timestamptz NOT NULL
);
CREATE INDEX IF NOT EXISTS hookgate_claims_until ON hookgate_claims (until)",
    },
    // The table of events whose effects are in this database. Its only state is whether a row exists: it is committed with the
    // effects or not at all.
    Migration {
        name: "effects-1",
        sql: "CREATE TABLE IF NOT EXISTS hookgate_effects (
  key bytea PRIMARY KEY,
  body bigint NOT NULL,
  until timestamptz NOT NULL
);
CREATE INDEX IF NOT EXISTS hookgate_effects_until ON hookgate_effects (until)",
    },
    // The inbox's table with its indexes. Each statement may run again and then changes nothing.
    //
    // `state`: 0 queued, 1 running, 2 done, 3 dead. `due_at` is the time when a queued entry is due, or when the lease of a running
    // entry ends. `forget_at` is the time when the id of an entry that is done is forgotten. `token` is the claim token of the last
    // lease.
    #[cfg(feature = "inbox")]
    Migration {
        name: "inbox-1",
        sql: "CREATE TABLE IF NOT EXISTS hookgate_inbox (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  accepted_at timestamptz NOT NULL,
  due_at timestamptz NOT NULL,
  forget_at timestamptz NOT NULL,
  digest bigint NOT NULL,
  received_at bigint NOT NULL,
  tries integer NOT NULL DEFAULT 0,
  state smallint NOT NULL DEFAULT 0 CHECK (state BETWEEN 0 AND 3),
  key bytea NOT NULL CONSTRAINT hookgate_inbox_key UNIQUE,
  row_key bytea,
  token bytea,
  event_id text NOT NULL,
  event_type text NOT NULL,
  signed_at text NOT NULL,
  scope text NOT NULL,
  key_name text NOT NULL,
  subscription text,
  workspace text,
  last_error text,
  body bytea NOT NULL
) WITH (
  fillfactor = 80,
  autovacuum_vacuum_scale_factor = 0.01,
  autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_insert_scale_factor = 0.05,
  autovacuum_analyze_scale_factor = 0.02,
  autovacuum_vacuum_cost_delay = 0
);
CREATE INDEX IF NOT EXISTS hookgate_inbox_pending ON hookgate_inbox (due_at, id) INCLUDE (state, tries, accepted_at) WHERE state < 2;
CREATE INDEX IF NOT EXISTS hookgate_inbox_running ON hookgate_inbox (row_key) WHERE state = 1 AND row_key IS NOT NULL;
CREATE INDEX IF NOT EXISTS hookgate_inbox_done ON hookgate_inbox (forget_at) WHERE state = 2;
CREATE INDEX IF NOT EXISTS hookgate_inbox_dead ON hookgate_inbox (id) WHERE state = 3;
CREATE INDEX IF NOT EXISTS hookgate_inbox_event ON hookgate_inbox USING hash (event_id)",
    },
    // Adds the name of the program that an entry belongs to. Each index begins with the name for calls of one name.
    #[cfg(feature = "inbox")]
    Migration {
        name: "inbox-names-1",
        sql: "ALTER TABLE hookgate_inbox ADD COLUMN IF NOT EXISTS namespace text NOT NULL DEFAULT 'default';
CREATE UNIQUE INDEX IF NOT EXISTS hookgate_inbox_key_by_name ON hookgate_inbox (namespace, key);
CREATE INDEX IF NOT EXISTS hookgate_inbox_pending_by_name ON hookgate_inbox (namespace, due_at, id)
  INCLUDE (state, tries, accepted_at) WHERE state < 2;
CREATE INDEX IF NOT EXISTS hookgate_inbox_done_by_name ON hookgate_inbox (namespace, forget_at) WHERE state = 2;
CREATE INDEX IF NOT EXISTS hookgate_inbox_dead_by_name ON hookgate_inbox (namespace, id) WHERE state = 3;
ALTER TABLE hookgate_inbox DROP CONSTRAINT IF EXISTS hookgate_inbox_key;
DROP INDEX IF EXISTS hookgate_inbox_pending, hookgate_inbox_done, hookgate_inbox_dead",
    },
    // Adds the time when an entry was first leased: from then on its effect may have happened. Null for an entry that was never
    // leased, and for one that a process of an older version has leased.
    #[cfg(feature = "inbox")]
    Migration {
        name: "inbox-first-lease-1",
        sql: "ALTER TABLE hookgate_inbox ADD COLUMN IF NOT EXISTS first_leased_at timestamptz",
    },
    // Adds indexes for a lease with `serial_by_row`, and one of all running entries, which takes the place of that by row alone.
    // One is by row, so that the next row is found behind any number of entries of one row. Entries that have run have a token, and
    // wait for the end of their back-off: they have an index by time, so that any number of them is left out of the one by row.
    //
    // Building them takes up to 8 s for a million entries, during which no process can write to the table. To avoid that, an
    // operator builds them before, with `CREATE INDEX CONCURRENTLY`: `docs/operations.md` has the statements.
    #[cfg(feature = "inbox")]
    Migration {
        name: "inbox-backlog-2",
        sql: "CREATE INDEX IF NOT EXISTS hookgate_inbox_fresh_by_row ON hookgate_inbox (namespace, row_key, due_at, id) WHERE state = 0 AND token IS NULL;
CREATE INDEX IF NOT EXISTS hookgate_inbox_retried_by_name ON hookgate_inbox (namespace, due_at, id) WHERE state = 0 AND token IS NOT NULL;
CREATE INDEX IF NOT EXISTS hookgate_inbox_running_by_name ON hookgate_inbox (namespace, row_key, due_at, id) WHERE state = 1;
DROP INDEX IF EXISTS hookgate_inbox_running, hookgate_inbox_queued_by_row",
    },
    // Adds the trace of the request that brought an entry, for as long as its body is kept.
    #[cfg(feature = "inbox")]
    Migration {
        name: "inbox-trace-1",
        sql: "ALTER TABLE hookgate_inbox ADD COLUMN IF NOT EXISTS traceparent text",
    },
    // The table of the last handled event of each row.
    Migration {
        name: "order-1",
        sql: "CREATE TABLE IF NOT EXISTS hookgate_order (
  key bytea PRIMARY KEY,
  revision bigint NOT NULL,
  last bytea NOT NULL,
  until timestamptz NOT NULL
);
CREATE INDEX IF NOT EXISTS hookgate_order_until ON hookgate_order (until)",
    },
];
