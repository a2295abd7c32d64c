//! Changes entries that are stored: renewals and settlements, which need the lease's token, and an
//! operator's changes.

use std::time::Duration;

use hookgate::dedupe::{ClaimToken, Ownership};
use hookgate_inbox::engine::{Change, End};
use hookgate_inbox::{EntryId, EntryState};
use rusqlite::{Result, params};

use crate::statements::statements;
use crate::units::millis;

statements! {
    Settling {
        renew: "UPDATE entries SET until = ?3 + ?4, since = ?3 WHERE id = ?1 AND token = ?2 AND state = 1",
        settle: "UPDATE entries SET state = ?4, since = ?3, until = CASE ?4 WHEN 0 THEN ?3 + ?5 WHEN 2 THEN forget_at END,
             last_error = iif(?7, last_error, ?6), tries = iif(?7, max(tries - 1, 0), tries)
           WHERE id = ?1 AND token = ?2 AND state = 1",
        is_settled: "SELECT 1 FROM entries WHERE id = ?1 AND token = ?2",
        forget_body: "DELETE FROM bodies WHERE id = ?1",
        // The statements of an operator check the state again: it may have changed since the entry
        // was read.
        retry: "UPDATE entries SET state = 0, until = iif(state = 0, min(until, ?2), ?2), since = ?2, tries = 0, token = NULL,
             first_leased_at = iif(?4, NULL, first_leased_at)
           WHERE id = ?1 AND state = ?3",
        dead_letter: "UPDATE entries SET state = 3, until = NULL, since = ?2, token = NULL, last_error = ?4
           WHERE id = ?1 AND state = ?3",
        purge: "DELETE FROM entries WHERE id = ?1 AND state = ?2",
        erase: "UPDATE entries SET state = 2, until = forget_at, since = ?2, token = NULL, row = NULL, last_error = NULL
           WHERE id = ?1 AND state = ?3",
        erase_last_error: "UPDATE entries SET last_error = NULL WHERE id = ?1 AND state = ?2",
    }
}

impl Settling<'_> {
    /// Renews a lease. A lease that has ended is renewed too, unless another worker has taken its
    /// entry.
    pub(super) fn renew(
        &mut self,
        id: EntryId,
        token: ClaimToken,
        lease: Duration,
        now: i64,
    ) -> Result<Ownership> {
        let renewed =
            self.renew
                .execute(params![id.get(), token.as_bytes(), now, millis(lease)])?;
        Ok(Ownership::from_held(renewed != 0))
    }

    pub(super) fn settle(
        &mut self,
        id: EntryId,
        token: ClaimToken,
        end: &End,
        now: i64,
    ) -> Result<Ownership> {
        let token = token.as_bytes();
        let (state, after, error) = end.stored();
        let is_returned = matches!(end, End::Return);
        let settled = self.settle.execute(params![
            id.get(),
            token,
            now,
            state as i64,
            millis(after),
            error,
            is_returned
        ])?;
        if settled == 0 {
            // The token stays until the next lease: this call repeats a settlement whose reply was
            // lost.
            let is_settled = self.is_settled.exists(params![id.get(), token])?;
            return Ok(Ownership::from_held(is_settled));
        }
        if state == EntryState::Done {
            self.forget_body.execute([id.get()])?;
        }
        Ok(Ownership::Held)
    }

    /// Carries out an operator's change on entries that the reader has selected.
    pub(super) fn operate(
        &mut self,
        ids: &[EntryId],
        state: EntryState,
        change: &Change,
        now: i64,
    ) -> Result<usize> {
        let state = state as i64;
        let mut count = 0;
        for id in ids {
            count += match change {
                Change::Retry { forgets_age } => {
                    self.retry
                        .execute(params![id.get(), now, state, forgets_age])
                }
                Change::DeadLetter { reason } => {
                    self.dead_letter
                        .execute(params![id.get(), now, state, reason])
                }
                Change::Purge => self.purge.execute(params![id.get(), state]),
                Change::EraseLastError => self.erase_last_error.execute(params![id.get(), state]),
                Change::Erase { .. } => {
                    let erased = self.erase.execute(params![id.get(), now, state]);
                    if matches!(erased, Ok(1..)) {
                        self.forget_body.execute([id.get()])?;
                    }
                    erased
                }
            }?;
        }
        Ok(count)
    }
}
