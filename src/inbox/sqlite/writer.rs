//! The one thread that writes: calls that wait share a commit, and are answered after it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use rusqlite::{Connection, Result, Statement};

use super::accept::Accepting;
use super::command::{Answer, Command, EngineState, Task};
use super::fault::{failed, lacks_room};
use super::lease::Leasing;
use super::open::{copy_log, max_page_count, page_bytes};
use super::open_files::OpenFiles;
use super::options::InboxOptions;
use super::reserve::{GROUP_BYTES, LOG_BYTES, Reserve};
use super::settle::{Operating, Settling};
use super::units::reading;
use super::upkeep::Upkeep;
use crate::caught::caught;
use crate::clock::{Clock, SystemClock};
use crate::dedupe::{StoreError, StoreErrorKind};
use crate::inbox::engine::End;

/// How often an idle writer checks whether another process has written, and whether ids must be forgotten.
const LOOK: Duration = Duration::from_millis(200);

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
    /// The largest number of the file's own pages.
    max_pages: Option<i64>,
    /// The log is copied when it has this number of pages.
    most_log_pages: i64,
    forget_at_once: usize,
    files: OpenFiles,
    reserve: Reserve,
    shared: Arc<EngineState>,
    /// Commands for the beginning of the next group.
    carried: VecDeque<Command>,
}

impl<'c> Writer<'c> {
    pub(super) fn prepare(
        connection: &'c Connection,
        options: &InboxOptions,
        files: OpenFiles,
        reserve: Reserve,
        shared: Arc<EngineState>,
    ) -> Result<Self> {
        let mut data_version = connection.prepare("PRAGMA data_version")?;
        Ok(Self {
            accepting: Accepting::prepare(connection)?,
            leasing: Leasing::prepare(connection)?,
            settling: Settling::prepare(connection)?,
            operating: Operating::prepare(connection)?,
            upkeep: Upkeep::prepare(connection)?,
            begin: connection.prepare("BEGIN IMMEDIATE")?,
            commit: connection.prepare("COMMIT")?,
            seen_version: data_version.query_row([], |row| row.get(0))?,
            data_version,
            log_pages: connection.prepare("PRAGMA wal_checkpoint(NOOP)")?,
            connection,
            clock: Arc::clone(&options.clock),
            max_group: options.max_group,
            max_pages: options
                .max_pages
                .map(|pages| max_page_count(connection, pages))
                .transpose()?,
            most_log_pages: LOG_BYTES / page_bytes(connection)?,
            forget_at_once: options.forget_at_once,
            files,
            reserve,
            shared,
            carried: VecDeque::new(),
        })
    }

    /// Runs until all senders are dropped, and every command is answered.
    pub(super) fn run(&mut self, commands: &Receiver<Command>) {
        // The clock is the user's own code. If it panics, the callers of the group get no answer, and the next group is served.
        while caught(|| self.round(commands)).unwrap_or(true) {
            self.leave_none_open();
        }
        self.reserve.refill();
    }

    /// Serves one group, and returns whether there can be another one.
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

    /// The free space is kept for the workers: a delivery that is not known is refused. A delivery that is known needs no space,
    /// and is answered as a duplicate.
    fn refuse_new(&mut self, group: Vec<Command>) -> Vec<Command> {
        let now = self.now();
        let (refused, rest) = group.into_iter().partition(|command| match &command.task {
            Task::Accept { entry, .. } => !self.accepting.is_known(entry, now).unwrap_or(true),
            _ => false,
        });
        let full = StoreError::saying(
            StoreErrorKind::Full,
            "the disk is full: make room; the rest of its space is reserved for entries that were accepted before",
        );
        let refused: Vec<Command> = refused;
        for command in refused {
            command.refuse(full.clone());
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
        // No write can succeed now, for any command of the group.
        let nothing_can = fault.kind() == StoreErrorKind::TimedOut || !self.files.stands();
        // Settlements free space, and must not fail together with deliveries that found no space.
        let again = !accepts.is_empty() && !nothing_can && !others.is_empty();
        for command in accepts {
            command.refuse(fault.clone());
        }
        let mut committed = if again {
            self.commit(&others, false)
        } else {
            Err(fault)
        };
        let lacks_room = committed.as_ref().is_err_and(lacks_room);
        if lacks_room && !others.is_empty() && self.take_reserve() {
            committed = self.commit(&others, false);
        }
        match committed {
            Ok(answers) => self.answer(others, answers),
            Err(fault) => {
                for command in others {
                    command.refuse(fault.clone());
                }
            }
        }
        if !nothing_can {
            self.tidy();
        }
    }

    /// Frees the reserve, and uses the space at once to copy the log: after that the log needs no more. Returns whether there was
    /// a reserve.
    fn take_reserve(&mut self) -> bool {
        let had_any = self.reserve.release();
        if had_any {
            // An error here occurs again, and is reported, at the next write.
            let _ = copy_log(self.connection);
        }
        had_any
    }

    /// Carries out all commands in one transaction, together with the writer's own upkeep.
    fn commit(
        &mut self,
        group: &[Command],
        upkeep: bool,
    ) -> std::result::Result<Vec<Answer>, StoreError> {
        if let Some(pages) = self.max_pages {
            // The limit is for deliveries alone: leases and settlements free space in the end, and need a little first.
            let is_for_accepts = group.iter().any(Command::is_accept);
            let pages = if is_for_accepts {
                pages
            } else {
                i64::from(u32::MAX)
            };
            self.connection
                .execute_batch(&format!("PRAGMA max_page_count = {pages}"))
                .map_err(failed)?;
        }
        let (now, done) = self.transaction(|writer| {
            // Other processes may have kept the file locked until now, and may have written later times than the time before the
            // wait.
            let now = writer.now();
            if upkeep {
                writer.upkeep.correct_times(now)?;
                writer.upkeep.forget(now, writer.forget_at_once)?;
            }
            let done = group
                .iter()
                .map(|command| writer.carry_out(&command.task, now))
                .collect::<Result<Vec<_>>>();
            Ok((now, done?))
        })?;
        if upkeep {
            self.upkeep.seen(now);
        }
        Ok(done)
    }

    fn carry_out(&mut self, task: &Task, now: i64) -> Result<Answer> {
        Ok(match task {
            Task::Accept { entry, retain, .. } => {
                Answer::Accepted(self.accepting.accept(entry, *retain, now)?)
            }
            Task::Lease(request) => Answer::Batch(self.leasing.lease(request, now)?),
            Task::Renew { id, token, lease } => {
                Answer::Ownership(self.settling.renew(*id, *token, *lease, now)?)
            }
            Task::Settle { id, token, end } => {
                Answer::Ownership(self.settling.settle(*id, *token, end, now)?)
            }
            Task::Operate { ids, state, change } => {
                Answer::Count(self.operating.operate(ids, *state, change, now)?)
            }
        })
    }

    fn transaction<T>(
        &mut self,
        write: impl FnOnce(&mut Self) -> Result<T>,
    ) -> std::result::Result<T, StoreError> {
        self.begin.execute([]).map_err(failed)?;
        let written = write(self).and_then(|written| {
            self.commit.execute([])?;
            Ok(written)
        });
        self.leave_none_open();
        let written = written.map_err(failed)?;
        if !self.files.stands() {
            return Err(StoreError::saying(
                StoreErrorKind::Unavailable,
                "the inbox's file, or the log beside it, was moved or deleted while it was open: put it back, or restart",
            ));
        }
        Ok(written)
    }

    /// Rolls back a transaction that is still open. Some failures end the transaction themselves; others, and a panic, leave it
    /// open.
    fn leave_none_open(&self) {
        if !self.connection.is_autocommit() {
            // The first failure is the one that is reported.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
    }

    fn answer(&mut self, group: Vec<Command>, answers: Vec<Answer>) {
        let due = group.iter().zip(&answers);
        let due = due.map(|(command, answer)| command.made_due(answer)).sum();
        for (command, answer) in group.into_iter().zip(answers) {
            let Some(batch) = command.answer(answer) else {
                continue;
            };
            for job in batch.jobs {
                let (id, token, end) = (job.id, job.token, End::Return);
                let task = Task::Settle { id, token, end };
                self.carried.push_back(Command { task, reply: None });
            }
        }
        self.shared.changed.wake(due);
    }

    /// Runs when no command has arrived for a while.
    fn look(&mut self) {
        self.look_for_others();
        let now = self.now();
        // An error here occurs again, and is reported, at the next call.
        if self.upkeep.is_due(now).unwrap_or(false) {
            self.tidy();
        }
        self.shorten_log();
        self.reserve.refill_in_time(SystemClock.monotonic());
    }

    fn tidy(&mut self) {
        if self.commit(&[], true).is_ok() {
            self.shared.changed.wake_all();
        }
    }

    /// Notifies the workers if another process has written since the last check, so that its new entries are found soon.
    fn look_for_others(&mut self) {
        if let Ok(version) = self.data_version.query_row([], |row| row.get(0))
            && version != self.seen_version
        {
            self.seen_version = version;
            self.shared.changed.wake_all();
        }
    }

    /// Copies the log into the file, so that the log does not grow: after all callers are answered, and not before.
    fn shorten_log(&mut self) {
        let pages = self.log_pages.query_row([], |row| {
            let (log, copied): (i64, i64) = (row.get(1)?, row.get(2)?);
            Ok(log.saturating_sub(copied))
        });
        if pages.is_ok_and(|pages| pages >= self.most_log_pages) {
            // If a reader prevents it, the next call does it. If the disk is full, the log would grow without end.
            if copy_log(self.connection).is_err_and(|error| lacks_room(&failed(error))) {
                self.take_reserve();
            }
        }
    }

    fn now(&self) -> i64 {
        reading(self.clock.unix_millis())
    }
}
