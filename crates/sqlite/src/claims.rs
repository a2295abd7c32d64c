//! The tables of claims and of rows, and their statements.

use std::time::Duration;

use hookgate::dedupe::{ClaimToken, Claimed, StoreError, StoreErrorKind};
use rusqlite::{Connection, OptionalExtension, params};

use super::calls::Tables;
use super::fault::Fault;
use super::header;
use super::statements::statements;
use super::units::{duration, millis};

/// `since` of a running claim is the time when `until` was set: if the clock shows an earlier time,
/// it has been set back. `since` of a done record is the end of one lease after the commit: until
/// then a repeated commit is `Held`.
const CLAIMS: &str = "
CREATE TABLE IF NOT EXISTS hookgate_claims (
  key BLOB PRIMARY KEY,
  token BLOB NOT NULL CHECK (length(token) = 16),
  done INTEGER NOT NULL CHECK (done IN (0, 1)),
  until INTEGER NOT NULL,
  since INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS hookgate_claims_by_time ON hookgate_claims (done, until);
";

/// The table of the last handled event of each row, in a store's file and in a file of the user.
macro_rules! rows {
    () => {
        "CREATE TABLE IF NOT EXISTS hookgate_order (
  key BLOB PRIMARY KEY,
  revision INTEGER NOT NULL,
  last BLOB NOT NULL,
  until INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS hookgate_order_by_time ON hookgate_order (until);"
    };
}

pub(super) use rows;

/// The number of ended records that one commit deletes. It is more than the number of calls that
/// share a commit, so that deletion keeps up.
const CHUNK: i64 = 512;

statements! {
    #[cfg_attr(not(feature = "order"), allow(dead_code))] // those of the rows
    ClaimsTables {
        find: "SELECT token, done, until FROM hookgate_claims WHERE key = ?1 AND until > ?2",
        take: "INSERT INTO hookgate_claims (key, token, done, until, since) VALUES (?1, ?2, 0, ?3 + ?4, ?3)
          ON CONFLICT (key) DO UPDATE SET token = excluded.token, done = 0, until = excluded.until, since = excluded.since",
        renew: "UPDATE hookgate_claims SET until = ?3 + ?4, since = ?3
          WHERE key = ?1 AND token = ?2 AND done = 0 AND until > ?3",
        // A repeated commit finds its own done record, and changes nothing.
        commit: "UPDATE hookgate_claims SET done = 1, until = CASE done WHEN 1 THEN until ELSE ?3 + ?4 END,
          since = CASE done WHEN 1 THEN since ELSE ?3 + (until - since) END
          WHERE key = ?1 AND token = ?2 AND until > ?3 AND (done = 0 OR since > ?3)",
        release: "DELETE FROM hookgate_claims WHERE key = ?1 AND token = ?2 AND done = 0 AND until > ?3",
        last: "SELECT revision, last FROM hookgate_order WHERE key = ?1 AND until > ?2",
        // The first revision is a time, so that the record that follows a deleted one has another.
        insert: "INSERT INTO hookgate_order AS known (key, revision, last, until) VALUES (?1, max(?3, 1), ?2, ?3 + ?4)
          ON CONFLICT (key) DO UPDATE SET revision = known.revision + 1, last = excluded.last, until = excluded.until
          WHERE known.until <= ?3",
        update: "UPDATE hookgate_order SET revision = revision + 1, last = ?2, until = ?3 + ?4
          WHERE key = ?1 AND until > ?3 AND revision = ?5",
        has_ended: "SELECT EXISTS (SELECT 1 FROM hookgate_claims WHERE done IN (0, 1) AND until <= ?1)
          OR EXISTS (SELECT 1 FROM hookgate_order WHERE until <= ?1)",
        delete_claims: "DELETE FROM hookgate_claims WHERE key IN
          (SELECT key FROM hookgate_claims WHERE done IN (0, 1) AND until <= ?1 LIMIT ?2)",
        delete_rows: "DELETE FROM hookgate_order WHERE rowid IN
          (SELECT rowid FROM hookgate_order WHERE until <= ?1 LIMIT ?2)",
        // A lease whose `since` lies in the future lasts its whole original time, counted from now
        // on.
        correct_leases: "UPDATE hookgate_claims SET until = ?1 + (until - since), since = ?1
          WHERE done = 0 AND until > ?1 AND since > ?1",
    }
}

/// Makes the tables, unless they are there.
pub(super) fn make_tables(connection: &Connection) -> Result<(), Fault> {
    let find = "SELECT count(*) > 0 FROM sqlite_schema WHERE name = 'hookgate_claims'";
    if connection.query_row(find, [], |row| row.get(0))? {
        return Ok(());
    }
    header::create(connection, || {
        connection.execute_batch(CLAIMS)?;
        connection.execute_batch(rows!())
    })
}

impl Tables for ClaimsTables<'_> {
    fn is_due(&mut self, now: i64) -> rusqlite::Result<bool> {
        self.has_ended.query_row([now], |row| row.get(0))
    }

    fn tidy(&mut self, now: i64, is_set_back: bool) -> rusqlite::Result<()> {
        if is_set_back {
            self.correct_leases.execute([now])?;
        }
        self.delete_claims.execute([now, CHUNK])?;
        self.delete_rows.execute([now, CHUNK])?;
        Ok(())
    }
}

impl ClaimsTables<'_> {
    /// Claims the event. Without room for new events only a claim that begins none succeeds.
    pub(super) fn claim(
        &mut self,
        key: [u8; 16],
        token: ClaimToken,
        lease: Duration,
        now: i64,
        room: bool,
    ) -> Result<Claimed, Fault> {
        let found = self
            .find
            .query_row(params![key, now], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })
            .optional()?;
        if let Some((by, done, until)) = found {
            let (by, until): (_, i64) = (ClaimToken::from_bytes(by), until);
            if done {
                let body_mark = by.body_mark();
                return Ok(Claimed::Done { body_mark });
            }
            if by != token {
                let retry_after = duration(until.saturating_sub(now));
                return Ok(Claimed::Running { retry_after });
            }
        }
        if !room {
            return Err(full().into());
        }
        self.take
            .execute(params![key, token.as_bytes(), now, millis(lease)])?;
        Ok(Claimed::Fresh)
    }
}

/// The free space is kept for the events that run.
pub(super) fn full() -> StoreError {
    StoreError::saying(
        StoreErrorKind::Full,
        "the disk is full: make room; the rest of its space is reserved for events that run",
    )
}
