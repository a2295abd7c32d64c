//! The one thread that writes: what waits shares a commit, and is answered after it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use rusqlite::{Connection, Result, Statement};

use super::Shared;
use super::accept::Accepting;
use super::command::{Answer, Command};
use super::fault::Fault;
use super::lease::Leasing;
use super::open::{LOG_PAGES, copy_log};
use super::operate::Operating;
use super::options::InboxOptions;
use super::place::Place;
use super::reserve::Reserve;
use super::settle::Settling;
use super::units::reading;
use super::upkeep::Upkeep;
use crate::caught::caught;
use crate::clock::Clock;
use crate::dedupe::Ownership;
use crate::error::StoreErrorKind;
use crate::inbox::engine::End;
use crate::inbox::sink::Accepted;

/// How often an idle writer looks whether another process has written, and whether ids are to be forgotten.
const LOOK: Duration = Duration::from_millis(200);
/// No delivery joins a group of more bytes of bodies: what one commit adds to the log must find room in the reserve.
const GROUP_BYTES: usize = 1024 * 1024;

pub(super) struct Writer<'c> {
    connection: &'c Connection,
    accepting: Accepting<'c>,
    leasing: Leasing<'c>,
    settling: Settling<'c>,
    operating: Operating<'c>,
    upkeep: Upkeep<'c>,
    begin: Statement<'c>,
    commit: Statement<'c>,
    data_version: Statement<'c>,
    log_pages: Statement<'c>,
    seen_version: i64,
    clock: Arc<dyn Clock>,
    max_group: usize,
    max_pages: Option<u32>,
    place: Place,
    reserve: Reserve,
    shared: Arc<Shared>,
    /// Comes first with the next group.
    carried: VecDeque<Command>,
}

impl<'c> Writer<'c> {
    pub(super) fn prepare(
        connection: &'c Connection,
        options: &InboxOptions,
        place: Place,
        reserve: Reserve,
        shared: Arc<Shared>,
    ) -> Result<Self> {
        let mut data_version = connection.prepare("PRAGMA data_version")?;
        Ok(Self {
            accepting: Accepting::prepare(connection)?,
            leasing: Leasing::prepare(connection)?,
            settling: Settling::prepare(connection)?,
            operating: Operating::prepare(connection)?,
            upkeep: Upkeep::prepare(connection, options.forget_at_once)?,
            begin: connection.prepare("BEGIN IMMEDIATE")?,
            commit: connection.prepare("COMMIT")?,
            seen_version: data_version.query_row([], |row| row.get(0))?,
            data_version,
            log_pages: connection.prepare("PRAGMA wal_checkpoint(NOOP)")?,
            connection,
            clock: Arc::clone(&options.clock),
            max_group: options.max_group,
            max_pages: options.max_pages,
            place,
            reserve,
            shared,
            carried: VecDeque::new(),
        })
    }

    /// Until nobody can ask any more, and everything that was asked is answered.
    pub(super) fn run(&mut self, commands: &Receiver<Command>) {
        // The clock is the user's own code. Where it panics, those of the group hear that there is no answer, and the next are served.
        while caught(|| self.round(commands)).unwrap_or(true) {
            self.leave_none_open();
        }
    }

    /// Serves one group, and says whether there can be another one.
    fn round(&mut self, commands: &Receiver<Command>) -> bool {
        let mut group = Vec::from(std::mem::take(&mut self.carried));
        if group.is_empty() {
            match commands.recv_timeout(LOOK) {
                Ok(command) => group.push(command),
                Err(RecvTimeoutError::Timeout) => {
                    self.look();
                    return true;
                }
                Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
        let mut bytes: usize = group.iter().map(Command::body_bytes).sum();
        while group.len() < self.max_group
            && bytes < GROUP_BYTES
            && let Ok(command) = commands.try_recv()
        {
            bytes = bytes.saturating_add(command.body_bytes());
            group.push(command);
        }
        self.look_for_others();
        group.retain(|command| !command.is_given_up());
        if group.iter().any(Command::is_accept) && !self.reserve.is_whole() {
            group = self.refuse_new(group);
        }
        self.serve(group);
        self.shorten_log();
        true
    }

    /// What room there is, is for the work: a delivery is accepted only where it takes none, since it is known.
    fn refuse_new(&mut self, group: Vec<Command>) -> Vec<Command> {
        let now = self.now();
        let (refused, rest) = group.into_iter().partition(|command| match command {
            Command::Accept { entry, .. } => !self.accepting.is_known(entry, now).unwrap_or(true),
            _ => false,
        });
        let full = Fault::said(
            StoreErrorKind::Full,
            "the disk is full: what room is left is kept for entries that are accepted already",
        );
        let refused: Vec<Command> = refused;
        for command in refused {
            command.refuse(&full);
        }
        rest
    }

    fn serve(&mut self, group: Vec<Command>) {
        if group.is_empty() {
            return;
        }
        let fault = match self.commit(&group, true) {
            Ok(answers) => return self.answer(group, answers),
            Err(fault) => fault,
        };
        let (accepts, others): (Vec<_>, Vec<_>) = group.into_iter().partition(Command::is_accept);
        // Nothing can be written for now: so it is for all of them.
        let nothing_can = fault.kind() == StoreErrorKind::TimedOut || !self.place.stands();
        // What workers settle makes room, and must not fail with the deliveries that found none.
        let again = !accepts.is_empty() && !nothing_can && !others.is_empty();
        for command in accepts {
            command.refuse(&fault);
        }
        let mut tried = if again {
            self.commit(&others, false)
        } else {
            Err(fault)
        };
        let is_full = tried.as_ref().err().map(Fault::kind) == Some(StoreErrorKind::Full);
        if is_full && !others.is_empty() && self.take_reserve() {
            tried = self.commit(&others, false);
        }
        match tried {
            Ok(answers) => self.answer(others, answers),
            Err(fault) => {
                for command in others {
                    command.refuse(&fault);
                }
            }
        }
        if !nothing_can {
            self.tidy();
        }
    }

    /// Makes room for the work, and uses it at once to copy the log: then that takes no more. Says whether there was any.
    fn take_reserve(&mut self) -> bool {
        let had_any = self.reserve.release();
        if had_any {
            // What fails here fails again, and is told, when something is written.
            let _ = copy_log(self.connection);
        }
        had_any
    }

    /// All of them in one transaction, with what the writer does of its own accord.
    fn commit(
        &mut self,
        group: &[Command],
        upkeep: bool,
    ) -> std::result::Result<Vec<Answer>, Fault> {
        if let Some(pages) = self.max_pages {
            // For deliveries alone: what is leased and settled makes room in the end, and takes a little first.
            let is_for_accepts = group.iter().any(Command::is_accept);
            let pages = if is_for_accepts { pages } else { u32::MAX };
            self.connection
                .execute_batch(&format!("PRAGMA max_page_count = {pages}"))?;
        }
        let (now, done) = self.transaction(|writer| {
            // Others may have kept the file locked until now, and have written what was later than the time before.
            let now = writer.now();
            if upkeep {
                writer.upkeep.mend(now)?;
                writer.upkeep.forget(now)?;
            }
            let done = group
                .iter()
                .map(|command| writer.carry_out(command, now))
                .collect::<Result<Vec<_>>>();
            Ok((now, done?))
        })?;
        if upkeep {
            self.upkeep.seen(now);
        }
        Ok(done)
    }

    fn carry_out(&mut self, command: &Command, now: i64) -> Result<Answer> {
        Ok(match command {
            Command::Accept { entry, retain, .. } => {
                Answer::Accepted(self.accepting.accept(entry, *retain, now)?)
            }
            Command::Lease { ask, .. } => Answer::Batch(self.leasing.lease(ask, now)?),
            Command::Renew {
                id, token, lease, ..
            } => Answer::Ownership(self.settling.renew(*id, *token, *lease, now)?),
            Command::Settle { id, token, end, .. } => {
                Answer::Ownership(self.settling.settle(*id, *token, end, now)?)
            }
            Command::Operate {
                ids, state, deed, ..
            } => Answer::Count(self.operating.operate(ids, *state, deed, now)?),
        })
    }

    fn transaction<T>(
        &mut self,
        write: impl FnOnce(&mut Self) -> Result<T>,
    ) -> std::result::Result<T, Fault> {
        self.begin.execute([])?;
        let written = write(self).and_then(|written| {
            self.commit.execute([])?;
            Ok(written)
        });
        self.leave_none_open();
        let written = written?;
        if !self.place.stands() {
            return Err(Fault::said(
                StoreErrorKind::Unavailable,
                "the inbox's file, or the log beside it, was moved or deleted while it was open: put it back, or restart",
            ));
        }
        Ok(written)
    }

    /// Some failures end a transaction by themselves, and some leave it open, as a panic does.
    fn leave_none_open(&self) {
        if !self.connection.is_autocommit() {
            // What failed first is what is told.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
    }

    fn answer(&mut self, group: Vec<Command>, answers: Vec<Answer>) {
        let due = answers
            .iter()
            .zip(&group)
            .any(|(answer, command)| match answer {
                Answer::Accepted(accepted) => *accepted == Accepted::New,
                Answer::Count(count) => *count > 0,
                // A settled entry is due again, or lets the next one of its row run.
                Answer::Ownership(ownership) => {
                    *ownership == Ownership::Held && matches!(command, Command::Settle { .. })
                }
                Answer::Batch(_) => false,
            });
        for (command, answer) in group.into_iter().zip(answers) {
            let Some(batch) = command.answer(answer) else {
                continue;
            };
            for job in batch.jobs {
                self.carried.push_back(Command::Settle {
                    id: job.id,
                    token: job.token,
                    end: End::Return,
                    reply: None,
                });
            }
        }
        if due {
            self.shared.tell();
        }
    }

    /// Nobody has asked for anything for a while.
    fn look(&mut self) {
        self.look_for_others();
        let now = self.now();
        // What fails here fails again, and is told, when somebody asks.
        if self.upkeep.is_due(now).unwrap_or(false) {
            self.tidy();
        }
        self.shorten_log();
    }

    fn tidy(&mut self) {
        if self.commit(&[], true).is_ok() {
            self.shared.tell();
        }
    }

    /// Whether another process has written since, so that its entries are not found by chance only.
    fn look_for_others(&mut self) {
        if let Ok(version) = self.data_version.query_row([], |row| row.get(0))
            && version != self.seen_version
        {
            self.seen_version = version;
            self.shared.tell();
        }
    }

    /// Copies the log into the file, so that it does not grow: after everyone is answered, and not before.
    fn shorten_log(&mut self) {
        let pages = self.log_pages.query_row([], |row| {
            let (log, copied): (i64, i64) = (row.get(1)?, row.get(2)?);
            Ok(log.saturating_sub(copied))
        });
        if pages.is_ok_and(|pages| pages >= LOG_PAGES) {
            // Where a reader is in the way, the next time will do. Where there is no room, the log would grow and grow.
            let copied = copy_log(self.connection).map_err(Fault::from);
            if copied.is_err_and(|fault| fault.kind() == StoreErrorKind::Full) {
                self.take_reserve();
            }
        }
    }

    fn now(&self) -> i64 {
        reading(self.clock.unix_millis())
    }
}
