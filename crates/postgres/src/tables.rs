//! The tables, as the steps that make them.

/// A step of the schema. A tool of your own can run the steps in their order, each once, as
/// [`migrate`](super::migrate) does. A step that is run again leaves the tables as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Migration {
    /// The name under which it is recorded in the table `hookgate_migrations`.
    pub name: &'static str,
    /// One or more statements. They name no schema: the tables are made in the first of the
    /// `search_path`.
    pub sql: &'static str,
}

/// All steps, in their order. With feature `inbox` also those of its table.
pub const MIGRATIONS: &[Migration] = &[
    // Makes nothing, and fails where a text that is not ASCII could not be stored. Such a database
    // accepts most events, and refuses the rest for as long as their sender tries. `SQL_ASCII`
    // would accept them, but checks nothing, so that an entry that another program has written
    // there could be unreadable.
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
    // The table of events whose effects are in this database. Its only state is whether a row
    // exists: it is committed with the effects or not at all.
    Migration {
        name: "effects-1",
        sql: "CREATE TABLE IF NOT EXISTS hookgate_effects (
  key bytea PRIMARY KEY,
  body bigint NOT NULL,
  until timestamptz NOT NULL
);
CREATE INDEX IF NOT EXISTS hookgate_effects_until ON hookgate_effects (until)",
    },
    // The inbox's table with its indexes. The first column of nearly each index is the name of the
    // inbox, as most calls are for one name.
    //
    // `state`: 0 queued, 1 running, 2 done, 3 dead. `due_at` is the time when a queued entry is
    // due, or when the lease of a running entry ends. `forget_at` is the time when the id of an
    // entry that is done is forgotten. `token` is the claim token of the last lease.
    // `first_leased_at` is the time when the entry was first leased: from then on its effect may
    // have happened. `traceparent` is kept as long as the body.
    //
    // One index of queued entries is by row, so that a lease with `serial_by_row` finds the next
    // row behind any number of entries of one row. Entries that have run have a token, and wait for
    // the end of their back-off: they have an index by time, so that any number of them is left out
    // of the one by row.
    #[cfg(feature = "inbox")]
    Migration {
        name: "inbox-1",
        sql: "CREATE TABLE IF NOT EXISTS hookgate_inbox (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  accepted_at timestamptz NOT NULL,
  due_at timestamptz NOT NULL,
  forget_at timestamptz NOT NULL,
  first_leased_at timestamptz,
  digest bigint NOT NULL,
  received_at bigint NOT NULL,
  tries integer NOT NULL DEFAULT 0,
  state smallint NOT NULL DEFAULT 0 CHECK (state BETWEEN 0 AND 3),
  key bytea NOT NULL,
  row_key bytea,
  token bytea,
  namespace text NOT NULL DEFAULT 'default',
  event_id text NOT NULL,
  event_type text NOT NULL,
  signed_at text NOT NULL,
  scope text NOT NULL,
  key_name text NOT NULL,
  subscription text,
  workspace text,
  last_error text,
  traceparent text,
  body bytea NOT NULL
) WITH (
  fillfactor = 80,
  autovacuum_vacuum_scale_factor = 0.01,
  autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_insert_scale_factor = 0.05,
  autovacuum_analyze_scale_factor = 0.02,
  autovacuum_vacuum_cost_delay = 0
);
CREATE UNIQUE INDEX IF NOT EXISTS hookgate_inbox_key_by_name ON hookgate_inbox (namespace, key);
CREATE INDEX IF NOT EXISTS hookgate_inbox_pending_by_name ON hookgate_inbox (namespace, due_at, id)
  INCLUDE (state, tries, accepted_at) WHERE state < 2;
CREATE INDEX IF NOT EXISTS hookgate_inbox_fresh_by_row ON hookgate_inbox (namespace, row_key, due_at, id) WHERE state = 0 AND token IS NULL;
CREATE INDEX IF NOT EXISTS hookgate_inbox_retried_by_name ON hookgate_inbox (namespace, due_at, id) WHERE state = 0 AND token IS NOT NULL;
CREATE INDEX IF NOT EXISTS hookgate_inbox_running_by_name ON hookgate_inbox (namespace, row_key, due_at, id) WHERE state = 1;
CREATE INDEX IF NOT EXISTS hookgate_inbox_done_by_name ON hookgate_inbox (namespace, forget_at) WHERE state = 2;
CREATE INDEX IF NOT EXISTS hookgate_inbox_dead_by_name ON hookgate_inbox (namespace, id) WHERE state = 3;
CREATE INDEX IF NOT EXISTS hookgate_inbox_event ON hookgate_inbox USING hash (event_id)",
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
