//! Renewals and settlements. A caller without the lease's token changes nothing.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Result, Statement, params};

use super::units::millis;
use crate::dedupe::{ClaimToken, Ownership};
use crate::inbox::engine::{End, EntryId};

pub(super) struct Settling<'c> {
    held: Statement<'c>,
    renew: Statement<'c>,
    done: Statement<'c>,
    forget_body: Statement<'c>,
    retry: Statement<'c>,
    dead: Statement<'c>,
    give_back: Statement<'c>,
}

impl<'c> Settling<'c> {
    pub(super) fn prepare(connection: &'c Connection) -> Result<Self> {
        Ok(Self {
            held: connection.prepare("SELECT state = 1 FROM entries WHERE id = ?1 AND token = ?2")?,
            renew: connection.prepare(
                "UPDATE entries SET until = ?3 + ?4, since = ?3 WHERE id = ?1 AND token = ?2 AND state = 1",
            )?,
            done: connection.prepare(
                "UPDATE entries SET state = 2, until = forget_at, since = ?2, last_error = NULL WHERE id = ?1",
            )?,
            forget_body: connection.prepare("DELETE FROM bodies WHERE id = ?1")?,
            retry: connection.prepare(
                "UPDATE entries SET state = 0, until = ?2 + ?3, since = ?2, last_error = ?4 WHERE id = ?1",
            )?,
            dead: connection.prepare(
                "UPDATE entries SET state = 3, until = NULL, since = ?2, last_error = ?3 WHERE id = ?1",
            )?,
            give_back: connection.prepare(
                "UPDATE entries SET state = 0, until = ?2, since = ?2, tries = max(tries - 1, 0) WHERE id = ?1",
            )?,
        })
    }

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
