//! Changes entries that are stored: renewals and settlements, which need the lease's token, and an operator's changes.

use std::time::Duration;

use rusqlite::{OptionalExtension, Result, params};

use crate::dedupe::{ClaimToken, Ownership};
use crate::inbox::engine::{Change, End, EntryId, EntryState};
use crate::sqlite::statements::statements;
use crate::sqlite::units::millis;

statements! {
    Settling {
        held: "SELECT state = 1 FROM entries WHERE id = ?1 AND token = ?2",
        renew: "UPDATE entries SET until = ?3 + ?4, since = ?3 WHERE id = ?1 AND token = ?2 AND state = 1",
        done: "UPDATE entries SET state = 2, until = forget_at, since = ?2, last_error = NULL WHERE id = ?1",
        forget_body: "DELETE FROM bodies WHERE id = ?1",
        retry: "UPDATE entries SET state = 0, until = ?2 + ?3, since = ?2, last_error = ?4 WHERE id = ?1",
        dead: "UPDATE entries SET state = 3, until = NULL, since = ?2, last_error = ?3 WHERE id = ?1",
        give_back: "UPDATE entries SET state = 0, until = ?2, since = ?2, tries = max(tries - 1, 0) WHERE id = ?1",
    }
}

statements! {
    /// Each statement checks the state again: it may have changed since the entry was read.
    Operating {
        retry: "UPDATE entries SET state = 0, until = iif(state = 0, min(until, ?2), ?2), since = ?2, tries = 0, token = NULL,
             first_leased_at = iif(?4, NULL, coalesce(first_leased_at, iif(tries > 0, accepted_at, NULL)))
           WHERE id = ?1 AND state = ?3",
        dead_letter: "UPDATE entries SET state = 3, until = NULL, since = ?2, token = NULL, last_error = ?4
           WHERE id = ?1 AND state = ?3",
        purge: "DELETE FROM entries WHERE id = ?1 AND state = ?2",
        erase: "UPDATE entries SET state = 2, until = forget_at, since = ?2, token = NULL, row = NULL, last_error = NULL
           WHERE id = ?1 AND state = ?3",
        erase_last_error: "UPDATE entries SET last_error = NULL WHERE id = ?1 AND state = ?2",
        erase_body: "DELETE FROM bodies WHERE id = ?1",
    }
}

impl Settling<'_> {
    /// Renews a lease. A lease that has ended is renewed too, unless another worker has taken its entry.
    pub(super) fn renew(
        &mut self,
        id: EntryId,
        token: ClaimToken,
        lease: Duration,
        now: i64,
    ) -> Result<Ownership> {
        let renewed = self
            .renew
            .execute(params![id.0, token.as_bytes(), now, millis(lease)])?;
        Ok(Ownership::held(renewed != 0))
    }

    pub(super) fn settle(
        &mut self,
        id: EntryId,
        token: ClaimToken,
        end: &End,
        now: i64,
    ) -> Result<Ownership> {
        let held = self
            .held
            .query_row(params![id.0, token.as_bytes()], |row| row.get(0));
        match held.optional()? {
            None => return Ok(Ownership::Lost),
            // The token stays until the next lease: this call repeats a settlement whose reply was lost.
            Some(false) => return Ok(Ownership::Held),
            Some(true) => {}
        }
        match end {
            End::Done => {
                self.done.execute(params![id.0, now])?;
                self.forget_body.execute([id.0])?;
            }
            End::Retry { after, error } => {
                self.retry
                    .execute(params![id.0, now, millis(*after), error])?;
            }
            End::Dead { error } => {
                self.dead.execute(params![id.0, now, error])?;
            }
            End::Return => {
                self.give_back.execute(params![id.0, now])?;
            }
        }
        Ok(Ownership::Held)
    }
}

impl Operating<'_> {
    /// Carries out an operator's change on entries that the reader has selected.
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
                Change::EraseLastError => self.erase_last_error.execute(params![id.0, state]),
                Change::Erase { .. } => {
                    let erased = self.erase.execute(params![id.0, now, state]);
                    if matches!(erased, Ok(1..)) {
                        self.erase_body.execute([id.0])?;
                    }
                    erased
                }
            }? as u64;
        }
        Ok(count)
    }
}
