//! The tables of an inbox.

use crate::fault::Fault;
use rusqlite::Connection;

use crate::header;

/// `state` is the number of an `EntryState`. `until` depends on it: when the entry is due, when its
/// lease ends, when its id is forgotten. `since` is the time when `until` was set: if the clock
/// shows an earlier time, it has been set back. `first_leased_at` is the time when the entry was
/// first leased: from then on its effect may have happened.
///
/// Bodies have a table of their own, so that a lease or a failed run does not write the body again,
/// and an entry that is done frees its body's pages. A number of an entry is never used again
/// (`AUTOINCREMENT`): an operator's command changes the entry that the operator saw, or none.
///
/// Triggers keep the counts, so that they stay right whichever program writes. Counting a million
/// rows each time that the metrics are read would take too long.
///
/// `scopes` has the scopes of all entries that were accepted. The key of an entry is made of its
/// scope and its event's id, so that an event is found by its keys: an index of ids would be one
/// more page to write for each event.
const TABLES: &str = "
CREATE TABLE entries (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  key BLOB NOT NULL UNIQUE,
  digest INTEGER NOT NULL,
  state INTEGER NOT NULL DEFAULT 0,
  until INTEGER,
  since INTEGER NOT NULL,
  tries INTEGER NOT NULL DEFAULT 0,
  token BLOB,
  row BLOB,
  accepted_at INTEGER NOT NULL,
  forget_at INTEGER NOT NULL,
  received_at INTEGER NOT NULL,
  body_bytes INTEGER NOT NULL,
  event_id TEXT NOT NULL,
  event_type TEXT NOT NULL,
  timestamp TEXT NOT NULL,
  scope TEXT NOT NULL,
  key_name TEXT NOT NULL,
  subscription TEXT,
  workspace TEXT,
  last_error TEXT,
  first_leased_at INTEGER
) STRICT;
CREATE TABLE bodies (id INTEGER PRIMARY KEY, body BLOB NOT NULL, traceparent TEXT) STRICT;
CREATE INDEX entries_by_time ON entries (state, until);
CREATE INDEX entries_not_over ON entries (id) WHERE state < 2;
CREATE INDEX entries_queued_by_row ON entries (row, until) WHERE state = 0;
CREATE TABLE counts (what INTEGER PRIMARY KEY, n INTEGER NOT NULL) STRICT;
INSERT INTO counts VALUES (0, 0), (1, 0), (2, 0), (4, 0), (6, 0);
CREATE TRIGGER entries_come AFTER INSERT ON entries BEGIN
  UPDATE counts SET n = n + 1 WHERE what = new.state * 2 + (new.state = 0 AND new.tries > 0);
END;
CREATE TRIGGER entries_change AFTER UPDATE OF state, tries ON entries BEGIN
  UPDATE counts SET n = n - 1 WHERE what = old.state * 2 + (old.state = 0 AND old.tries > 0);
  UPDATE counts SET n = n + 1 WHERE what = new.state * 2 + (new.state = 0 AND new.tries > 0);
END;
CREATE TRIGGER entries_go AFTER DELETE ON entries BEGIN
  UPDATE counts SET n = n - 1 WHERE what = old.state * 2 + (old.state = 0 AND old.tries > 0);
  DELETE FROM bodies WHERE id = old.id;
END;
CREATE TABLE scopes (scope TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
CREATE TRIGGER entries_scope AFTER INSERT ON entries WHEN NOT EXISTS (SELECT 1 FROM scopes WHERE scope = new.scope) BEGIN
  INSERT INTO scopes VALUES (new.scope);
END;
";

/// Whether the file has an inbox. One with a store of claims alone has none.
pub(super) fn exists(connection: &Connection) -> rusqlite::Result<bool> {
    let find = "SELECT count(*) > 0 FROM sqlite_schema WHERE name = 'entries'";
    connection.query_row(find, [], |row| row.get(0))
}

/// Creates the tables, unless another process has done so in the meantime.
pub(super) fn create(connection: &Connection) -> Result<(), Fault> {
    header::create(connection, || {
        if !exists(connection)? {
            connection.execute_batch(TABLES)?;
        }
        Ok(())
    })
}
