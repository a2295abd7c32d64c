//! The table of claims, and its statements.

use rusqlite::{OptionalExtension, Result, params};

use super::statements::statements;
use super::units::{duration, millis};
use crate::dedupe::{ClaimToken, Claimed, EventKey, Ownership};
use std::time::Duration;

/// `since` of a running claim is the time when `until` was set: if the clock shows an earlier time, it has been set back. `since` of
/// a done record is the end of one lease after the commit: until then a repeated commit is `Held`.
pub(super) const TABLE: &str = "
CREATE TABLE IF NOT EXISTS hookgate_claims (
  key BLOB PRIMARY KEY,
  token BLOB NOT NULL CHECK (length(token) = 16),
  done INTEGER NOT NULL CHECK (done IN (0, 1)),
  until INTEGER NOT NULL,
  since INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS hookgate_claims_by_time ON hookgate_claims (done, until);
";
/// A smaller jump back of the clock is ignored: it makes no lease last longer than this, in milliseconds.
const SET_BACK: i64 = 1_000;
/// The number of ended records that one commit deletes. It is more than the number of calls that share a commit, so that deletion
/// keeps up.
pub(super) const CHUNK: i64 = 512;

statements! {
    Claims {
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
        has_ended: "SELECT EXISTS (SELECT 1 FROM hookgate_claims WHERE done IN (0, 1) AND until <= ?1)",
        delete_ended: "DELETE FROM hookgate_claims WHERE key IN
          (SELECT key FROM hookgate_claims WHERE done IN (0, 1) AND until <= ?1 LIMIT ?2)",
        // A lease whose `since` lies in the future lasts its whole original time, counted from now on.
        correct_leases: "UPDATE hookgate_claims SET until = ?1 + (until - since), since = ?1
          WHERE done = 0 AND until > ?1 AND since > ?1",
    }
    /// The latest time that the clock has shown. The first time seen counts as set back, so that leases of an earlier process are
    /// corrected as well.
    latest: i64 = i64::MAX
}

impl Claims<'_> {
    /// Returns the claim of another holder, or the done record. `None`: the event is free, or this token holds it.
    pub(super) fn held(
        &mut self,
        key: &EventKey,
        token: ClaimToken,
        now: i64,
    ) -> Result<Option<Claimed>> {
        let find = self
            .find
            .query_row(params![key.as_bytes(), now], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get::<_, i64>(2)?))
            })
            .optional()?;
        let Some((by, done, until)) = find else {
            return Ok(None);
        };
        let by = ClaimToken::from_bytes(by);
        Ok(match done {
            true => Some(Claimed::Done {
                body_mark: by.body_mark(),
            }),
            false if by == token => None,
            false => Some(Claimed::Running {
                retry_after: duration(until.saturating_sub(now)),
            }),
        })
    }

    pub(super) fn claim(
        &mut self,
        key: &EventKey,
        token: ClaimToken,
        lease: Duration,
        now: i64,
    ) -> Result<Claimed> {
        if let Some(held) = self.held(key, token, now)? {
            return Ok(held);
        }
        self.take.execute(params![
            key.as_bytes(),
            token.as_bytes(),
            now,
            millis(lease)
        ])?;
        Ok(Claimed::Fresh)
    }

    pub(super) fn renew(
        &mut self,
        key: &EventKey,
        token: ClaimToken,
        lease: Duration,
        now: i64,
    ) -> Result<Ownership> {
        let values = params![key.as_bytes(), token.as_bytes(), now, millis(lease)];
        Ok(Ownership::held(self.renew.execute(values)? > 0))
    }

    pub(super) fn commit(
        &mut self,
        key: &EventKey,
        token: ClaimToken,
        retain: Duration,
        now: i64,
    ) -> Result<Ownership> {
        let values = params![key.as_bytes(), token.as_bytes(), now, millis(retain)];
        Ok(Ownership::held(self.commit.execute(values)? > 0))
    }

    pub(super) fn release(
        &mut self,
        key: &EventKey,
        token: ClaimToken,
        now: i64,
    ) -> Result<Ownership> {
        let values = params![key.as_bytes(), token.as_bytes(), now];
        Ok(Ownership::held(self.release.execute(values)? > 0))
    }

    /// Whether there is a record to delete or a lease to correct.
    pub(super) fn is_due(&mut self, now: i64) -> Result<bool> {
        Ok(self.is_set_back(now) || self.has_ended.query_row([now], |row| row.get(0))?)
    }

    /// Deletes ended records, one chunk, and corrects leases that were written by a clock that was ahead.
    pub(super) fn tidy(&mut self, now: i64) -> Result<()> {
        if self.is_set_back(now) {
            self.correct_leases.execute([now])?;
        }
        self.delete_ended.execute([now, CHUNK])?;
        Ok(())
    }

    /// Notes the time after the commit, as the correction is durable only then.
    pub(super) fn seen(&mut self, now: i64) {
        self.latest = if self.is_set_back(now) {
            now
        } else {
            self.latest.max(now)
        };
    }

    fn is_set_back(&self, now: i64) -> bool {
        now.saturating_add(SET_BACK) < self.latest
    }
}
