//! The tables of an inbox, as the thread that writes keeps them.

use std::sync::Arc;
use std::time::Duration;

use hookgate::dedupe::{ClaimToken, Ownership};
use hookgate_inbox::EntryId;
use hookgate_inbox::engine::End;
use rusqlite::{Connection, Result, Statement};
use tokio::sync::Notify;

use super::accept::Accepting;
use super::lease::Leasing;
use super::settle::Settling;
use super::upkeep::Upkeep;
use crate::calls::{FileStore, Tables};

pub(super) struct InboxFile {
    /// The largest number of ids that one commit forgets.
    pub(super) forget_at_once: usize,
    pub(super) changed: Arc<Notify>,
}

pub(super) struct InboxTables<'c> {
    pub(super) accepting: Accepting<'c>,
    pub(super) leasing: Leasing<'c>,
    pub(super) settling: Settling<'c>,
    upkeep: Upkeep<'c>,
    data_version: Statement<'c>,
    seen_version: i64,
    file: InboxFile,
    /// Whether calls since the last commit may have made entries due.
    pub(super) is_due: bool,
}

impl FileStore for InboxFile {
    type Tables<'c> = InboxTables<'c>;

    const THREAD: &'static str = "inbox-writer";
    /// Another process may have written.
    const LOOK: Duration = Duration::from_millis(200);
    const CROWDED: &'static str = "as many deliveries wait to be stored as .max_waiting(…) allows";

    fn prepare(self, connection: &Connection) -> Result<InboxTables<'_>> {
        let mut data_version = connection.prepare("PRAGMA data_version")?;
        Ok(InboxTables {
            accepting: Accepting::prepare(connection)?,
            leasing: Leasing::prepare(connection)?,
            settling: Settling::prepare(connection)?,
            upkeep: Upkeep::prepare(connection)?,
            seen_version: data_version.query_row([], |row| row.get(0))?,
            data_version,
            file: self,
            is_due: false,
        })
    }
}

impl Tables for InboxTables<'_> {
    fn is_due(&mut self, now: i64) -> Result<bool> {
        self.upkeep.is_due(now)
    }

    fn tidy(&mut self, now: i64, is_set_back: bool) -> Result<()> {
        self.upkeep.correct_times(now, is_set_back)?;
        self.upkeep.forget(now, self.file.forget_at_once)?;
        Ok(())
    }

    fn goes_on(&mut self) -> bool {
        self.upkeep.goes_on()
    }

    /// Wakes a worker if another process has written since the last look, so that its new entries
    /// are found soon.
    fn look(&mut self) {
        if let Ok(version) = self.data_version.query_row([], |row| row.get(0))
            && version != self.seen_version
        {
            self.seen_version = version;
            self.file.changed.notify_one();
        }
    }

    fn committed(&mut self, has_tidied: bool) {
        if has_tidied && self.upkeep.committed() {
            self.file.changed.notify_one();
        }
        if std::mem::take(&mut self.is_due) {
            self.file.changed.notify_one();
        }
    }
}

impl InboxTables<'_> {
    pub(super) fn settle(
        &mut self,
        id: EntryId,
        token: ClaimToken,
        end: &End,
        now: i64,
    ) -> Result<Ownership> {
        let settled = self.settling.settle(id, token, end, now)?;
        // A settled entry is due again, or frees its row for the next entry.
        self.is_due |= settled == Ownership::Held;
        Ok(settled)
    }
}
