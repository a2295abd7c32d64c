//! The table, and the parts that statements on it share.

use crate::postgres::Migration;

/// The inbox's table with its indexes. Each statement may run again and then changes nothing.
///
/// `state`: 0 queued, 1 running, 2 done, 3 dead. `due_at` is the time when a queued entry is due, or when the lease of a running
/// entry ends. `forget_at` is the time when the id of an entry that is done is forgotten. `token` is the claim token of the last
/// lease.
const TABLE: Migration = Migration {
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
};

/// Adds the name of the program that an entry belongs to. Each index begins with the name for calls of one name.
const NAMES: Migration = Migration {
    name: "inbox-names-1",
    sql: "ALTER TABLE hookgate_inbox ADD COLUMN IF NOT EXISTS namespace text NOT NULL DEFAULT 'default';
CREATE UNIQUE INDEX IF NOT EXISTS hookgate_inbox_key_by_name ON hookgate_inbox (namespace, key);
CREATE INDEX IF NOT EXISTS hookgate_inbox_pending_by_name ON hookgate_inbox (namespace, due_at, id)
  INCLUDE (state, tries, accepted_at) WHERE state < 2;
CREATE INDEX IF NOT EXISTS hookgate_inbox_done_by_name ON hookgate_inbox (namespace, forget_at) WHERE state = 2;
CREATE INDEX IF NOT EXISTS hookgate_inbox_dead_by_name ON hookgate_inbox (namespace, id) WHERE state = 3;
ALTER TABLE hookgate_inbox DROP CONSTRAINT IF EXISTS hookgate_inbox_key;
DROP INDEX IF EXISTS hookgate_inbox_pending, hookgate_inbox_done, hookgate_inbox_dead",
};

/// Adds the time when an entry was first leased: from then on its effect may have happened. Null for an entry that was never
/// leased, and for one that a process of an older version has leased.
const FIRST_LEASE: Migration = Migration {
    name: "inbox-first-lease-1",
    sql: "ALTER TABLE hookgate_inbox ADD COLUMN IF NOT EXISTS first_leased_at timestamptz",
};

pub(crate) const MIGRATIONS: [Migration; 3] = [TABLE, NAMES, FIRST_LEASE];

pub(super) const QUEUED: i16 = 0;
pub(super) const RUNNING: i16 = 1;
pub(super) const DONE: i16 = 2;
pub(super) const DEAD: i16 = 3;

/// The columns that are read to list an entry.
pub(super) const LISTED: &str = "id, event_id, event_type, scope, state, tries, last_error,
  octet_length(body)::bigint AS body_bytes,
  (extract(epoch FROM accepted_at) * 1000)::bigint AS accepted_ms,
  (extract(epoch FROM CASE state WHEN 2 THEN forget_at ELSE due_at END) * 1000)::bigint AS until_ms";

/// The further columns that are read to handle an entry.
pub(super) const ENTRY: &str =
    "key, row_key, digest, received_at, signed_at, key_name, subscription, workspace, body";

/// A part of a statement whose transaction is flushed before it is answered, even if the server or the role has switched that
/// off. Stricter settings stay, and `local` stays too.
macro_rules! durable {
    () => {
        "durable AS MATERIALIZED (
  SELECT CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', true)
    ELSE current_setting('synchronous_commit') END AS setting
)"
    };
}
pub(super) use durable;
