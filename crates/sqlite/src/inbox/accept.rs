//! Stores a delivery as an entry, unless its key is known.

use std::time::Duration;

use crate::fault::Fault;
use hookgate::{
    dedupe::{StoreError, StoreErrorKind},
    sink::Accepted,
};
use hookgate_inbox::engine::Entry;
use rusqlite::{OptionalExtension, params};

use crate::statements::statements;
use crate::units::millis;

statements! {
    Accepting {
        insert: "INSERT INTO entries (key, digest, until, since, row, accepted_at, forget_at, received_at,
             body_bytes, event_id, event_type, timestamp, scope, key_name, subscription, workspace)
           VALUES (?1, ?2, ?3, ?3, ?4, ?3, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
           ON CONFLICT (key) DO NOTHING",
        insert_body: "INSERT INTO bodies (id, body, traceparent) VALUES (last_insert_rowid(), ?1, ?2)",
        known: "SELECT id, digest, state = 2 AND until <= ?2 FROM entries WHERE key = ?1",
        forget: "DELETE FROM entries WHERE id = ?1",
    }
}

impl Accepting<'_> {
    /// Stores the entry. Without room for new entries this is an error, unless its key is known.
    pub(super) fn accept(
        &mut self,
        entry: &Entry,
        retain: Duration,
        now: i64,
        room: bool,
    ) -> Result<Accepted, Fault> {
        if room && self.insert(entry, retain, now)? {
            return Ok(Accepted::New);
        }
        let find = params![entry.key.as_bytes(), now];
        let found = self
            .known
            .query_row(find, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
        let found: Option<(i64, i64, bool)> = found.optional()?;
        if let Some((_, digest, false)) = found {
            let same_body = digest.cast_unsigned() == entry.digest;
            return Ok(Accepted::Duplicate { same_body });
        }
        if !room {
            let advice = "the disk is full: make room; the rest of its space is reserved for entries that were accepted before";
            return Err(StoreError::saying(StoreErrorKind::Full, advice).into());
        }
        // Its retention is over, and the upkeep has not deleted it yet.
        if let Some((id, ..)) = found {
            self.forget.execute([id])?;
        }
        self.insert(entry, retain, now)?;
        Ok(Accepted::New)
    }

    fn insert(&mut self, entry: &Entry, retain: Duration, now: i64) -> rusqlite::Result<bool> {
        let inserted = self.insert.execute(params![
            entry.key.as_bytes(),
            entry.digest.cast_signed(),
            now,
            entry.row.as_ref().map(|row| row.as_bytes()),
            now.saturating_add(millis(retain)),
            entry.received_at.as_i64(),
            i64::try_from(entry.body.len()).unwrap_or(i64::MAX),
            entry.event_id,
            entry.event_type,
            entry.timestamp,
            entry.scope,
            entry.key_name,
            entry.subscription_id,
            entry.pinned_workspace,
        ])?;
        if inserted == 0 {
            return Ok(false);
        }
        self.insert_body
            .execute(params![&entry.body[..], entry.traceparent])?;
        Ok(true)
    }
}
