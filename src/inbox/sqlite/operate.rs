//! Carries out an operator's change on entries that the reader has selected.

use rusqlite::{Connection, Result, Statement, params};

use crate::inbox::engine::{Change, EntryId, EntryState};

pub(super) struct Operating<'c> {
    retry: Statement<'c>,
    dead_letter: Statement<'c>,
    purge: Statement<'c>,
}

impl<'c> Operating<'c> {
    /// Each statement checks the state again: it may have changed since the entry was read.
    pub(super) fn prepare(connection: &'c Connection) -> Result<Self> {
        Ok(Self {
            retry: connection.prepare(
                "UPDATE entries SET state = 0, until = iif(state = 0, min(until, ?2), ?2), since = ?2, tries = 0, token = NULL,
                   first_leased_at = iif(?4, NULL, coalesce(first_leased_at, iif(tries > 0, accepted_at, NULL)))
                 WHERE id = ?1 AND state = ?3",
            )?,
            dead_letter: connection.prepare(
                "UPDATE entries SET state = 3, until = NULL, since = ?2, token = NULL, last_error = ?4
                 WHERE id = ?1 AND state = ?3",
            )?,
            purge: connection.prepare(
                "DELETE FROM entries WHERE id = ?1 AND state = ?2",
            )?,
        })
    }

    pub(super) fn operate(
        &mut self,
        ids: &[EntryId],
        state: EntryState,
        change: &Change,
        now: i64,
    ) -> Result<u64> {
        let state = state as i64;
        let mut count = 0;
        for id in ids {
            count += match change {
                Change::Retry { forgets_age } => {
                    self.retry.execute(params![id.0, now, state, forgets_age])
                }
                Change::DeadLetter { reason } => {
                    self.dead_letter.execute(params![id.0, now, state, reason])
                }
                Change::Purge => self.purge.execute(params![id.0, state]),
            }? as u64;
        }
        Ok(count)
    }
}
