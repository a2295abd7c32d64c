//! Leases one entry, unless it is too old to be run.

use rusqlite::{Connection, Result, Statement, params};

use super::row::{self, ENTRY};
use super::units::{duration, millis, narrow};
use crate::dedupe::ClaimToken;
use crate::inbox::engine::{Ask, CLOCK_LEAP, EntryId, Job};

pub(super) struct Taking<'c> {
    lease: Statement<'c>,
    entry: Statement<'c>,
}

/// The time when an entry was first leased; `?3` is the time of this lease. A process of an older version counts runs and does
/// not write this time: for those entries the acceptance is the earliest possible time.
const FIRST: &str = "coalesce(first_leased_at, iif(tries > 0, accepted_at, ?3))";

impl<'c> Taking<'c> {
    pub(super) fn prepare(connection: &'c Connection) -> Result<Self> {
        Ok(Self {
            lease: connection.prepare(&format!(
                "UPDATE entries SET state = 1, token = ?2, tries = tries + 1, until = ?3 + ?4, since = ?3, first_leased_at = {FIRST}
                 WHERE id = ?1 AND {FIRST} BETWEEN ?5 AND ?6"
            ))?,
            entry: connection.prepare(&format!(
                "SELECT tries, accepted_at, {ENTRY} FROM entries LEFT JOIN bodies USING (id) WHERE id = ?1"
            ))?,
        })
    }

    /// Leases the entry. Returns `None` if the entry's first lease began too long ago, or lies too far in the future: nothing is
    /// changed then.
    pub(super) fn take(&mut self, id: i64, ask: &Ask, now: i64) -> Result<Option<Job>> {
        let token = ClaimToken::new(b"");
        let (from, to) = ask.run_within.map_or((i64::MIN, i64::MAX), |within| {
            (
                now.saturating_sub(millis(within)),
                now.saturating_add(millis(CLOCK_LEAP)),
            )
        });
        let lease = millis(ask.lease);
        let leased = self
            .lease
            .execute(params![id, token.as_bytes(), now, lease, from, to])?;
        if leased == 0 {
            return Ok(None);
        }
        self.entry.query_row([id], |row| {
            let (tries, accepted_at): (i64, i64) = (row.get(0)?, row.get(1)?);
            Ok(Some(Job {
                id: EntryId(id),
                token,
                tries: narrow(tries),
                waited: duration(now.saturating_sub(accepted_at)),
                entry: row::entry(row, 2)?,
            }))
        })
    }
}
