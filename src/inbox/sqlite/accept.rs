//! Stores a delivery as an entry, unless its key is known.

use std::time::Duration;

use rusqlite::{OptionalExtension, Result, params};

use crate::inbox::entry::Entry;
use crate::inbox::sink::Accepted;
use crate::sqlite::statements::statements;
use crate::sqlite::units::millis;

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
    pub(super) fn accept(&mut self, entry: &Entry, retain: Duration, now: i64) -> Result<Accepted> {
        if self.insert(entry, retain, now)? {
            return Ok(Accepted::New);
        }
        if let Some((id, digest, is_over)) = self.find(entry, now)? {
            if !is_over {
                let same_body = digest.cast_unsigned() == entry.digest;
                return Ok(Accepted::Duplicate { same_body });
            }
            // Its retention is over, and the upkeep has not deleted it yet.
            self.forget.execute([id])?;
        }
        self.insert(entry, retain, now)?;
        Ok(Accepted::New)
    }

    /// Whether the entry is stored already, so that it needs no space.
    pub(super) fn is_known(&mut self, entry: &Entry, now: i64) -> Result<bool> {
        let found = self.find(entry, now)?;
        Ok(found.is_some_and(|(_, _, is_over)| !is_over))
    }

    /// Returns the number of the entry with this key, its digest, and whether its retention is over.
    fn find(&mut self, entry: &Entry, now: i64) -> Result<Option<(i64, i64, bool)>> {
        self.known
            .query_row(params![entry.key.as_bytes(), now], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })
            .optional()
    }

    fn insert(&mut self, entry: &Entry, retain: Duration, now: i64) -> Result<bool> {
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
            entry.subscription,
            entry.workspace,
        ])?;
        if inserted == 0 {
            return Ok(false);
        }
        self.insert_body
            .execute(params![&entry.body[..], entry.traceparent])?;
        Ok(true)
    }
}
