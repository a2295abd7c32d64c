//! The one thread that writes: calls that wait share a commit, and are answered after it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use rusqlite::{Result, Statement};

use super::accept::Accepting;
use super::command::{Answer, Command, EngineState, Task};
use super::lease::Leasing;
use super::open::max_page_count;
use super::options::InboxOptions;
use super::settle::{Operating, Settling};
use super::upkeep::Upkeep;
use crate::caught::caught;
use crate::clock::{Clock, SystemClock};
use crate::dedupe::{StoreError, StoreErrorKind};
use crate::inbox::engine::End;
use crate::sqlite::commits::Commits;
use crate::sqlite::fault::{failed, lacks_room};
use crate::sqlite::reserve::GROUP_BYTES;
use crate::sqlite::units::reading;

/// How often an idle writer checks whether another process has written, and whether ids must be forgotten.
const LOOK: Duration = Duration::from_millis(200);

pub(super) struct Writer<'c> {
    file: Commits<'c>,
    accepting: Accepting<'c>,
    leasing: Leasing<'c>,
    settling: Settling<'c>,
    operating: Operating<'c>,
    upkeep: Upkeep<'c>,
    data_version: Statement<'c>,
    seen_version: i64,
    options: InboxOptions,
    /// The largest number of the file's own pages.
    max_pages: Option<i64>,
    shared: Arc<EngineState>,
    /// Commands for the beginning of the next group.
    carried: VecDeque<Command>,
}

impl<'c> Writer<'c> {
    pub(super) fn prepare(
        file: Commits<'c>,
        options: InboxOptions,
        shared: Arc<EngineState>,
    ) -> Result<Self> {
        let connection = file.connection;
        let max_pages = options.max_pages;
        let max_pages = max_pages.map(|pages| max_page_count(connection, pages));
        let mut data_version = connection.prepare("PRAGMA data_version")?;
        Ok(Self {
            accepting: Accepting::prepare(connection)?,
            leasing: Leasing::prepare(connection)?,
            settling: Settling::prepare(connection)?,
            operating: Operating::prepare(connection)?,
            upkeep: Upkeep::prepare(connection)?,
            seen_version: data_version.query_row([], |row| row.get(0))?,
            data_version,
            file,
            options,
            max_pages: max_pages.transpose()?,
            shared,
            carried: VecDeque::new(),
        })
    }

    /// Runs until all senders are dropped, and every command is answered.
    pub(super) fn run(&mut self, commands: &Receiver<Command>) {
        // The clock is the user's own code. If it panics, the callers of the group get no answer, and the next group is served.
        while caught(|| self.round(commands)).unwrap_or(true) {
            self.file.leave_none_open();
        }
        self.file.reserve.refill();
    }

    /// Serves one group, and returns whether there can be another one.
    fn round(&mut self, commands: &Receiver<Command>) -> bool {
        let mut group = Vec::from(std::mem::take(&mut self.carried));
        if group.is_empty() {
            let wait = if self.upkeep.goes_on() {
                Duration::ZERO
            } else {
                LOOK
            };
            match commands.recv_timeout(wait) {
                Ok(command) => group.push(command),
                Err(RecvTimeoutError::Timeout) => {
                    self.look();
                    return true;
                }
                Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
        let mut bytes: usize = group.iter().map(Command::body_bytes).sum();
        while group.len() < self.options.max_group
            && bytes < GROUP_BYTES
            && let Ok(command) = commands.try_recv()
        {
            bytes = bytes.saturating_add(command.body_bytes());
            group.push(command);
        }
        self.look_for_others();
        group.retain(|command| !command.is_given_up());
        if group.iter().any(Command::is_accept) && !self.file.reserve.is_whole() {
            group = self.refuse_new(group);
        }
        self.serve(group);
        self.file.shorten_log();
        true
    }

    /// The free space is kept for the workers: a delivery that is not known is refused. A delivery that is known needs no space,
    /// and is answered as a duplicate.
    fn refuse_new(&mut self, group: Vec<Command>) -> Vec<Command> {
        let now = self.now();
        let is_new = |command: &Command| match &command.task {
            Task::Accept { entry, .. } => !self.accepting.is_known(entry, now).unwrap_or(true),
            _ => false,
        };
        let (new, rest) = group.into_iter().partition(is_new);
        let full = StoreError::saying(
            StoreErrorKind::Full,
            "the disk is full: make room; the rest of its space is reserved for entries that were accepted before",
        );
        refuse_all(new, &full);
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
        let nothing_can = self.file.is_stuck(&fault);
        // Settlements free space, and must not fail together with deliveries that found no space.
        let again = !accepts.is_empty() && !nothing_can && !others.is_empty();
        refuse_all(accepts, &fault);
        let mut committed = if again {
            self.commit(&others, false)
        } else {
            Err(fault)
        };
        let lacks_room = committed.as_ref().is_err_and(lacks_room);
        if lacks_room && !others.is_empty() && self.file.take_reserve() {
            committed = self.commit(&others, false);
        }
        match committed {
            Ok(answers) => self.answer(others, answers),
            Err(fault) => refuse_all(others, &fault),
        }
        if !nothing_can {
            self.tidy();
        }
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
            self.file
                .connection
                .execute_batch(&format!("PRAGMA max_page_count = {pages}"))
                .map_err(failed)?;
        }
        self.file.begin()?;
        // Other processes may have kept the file locked until now, and may have written later times than the time before the wait.
        let now = self.now();
        let written = self.carry_out(group, upkeep, now);
        let answers = self.file.end(written)?;
        if upkeep && self.upkeep.seen(now) {
            self.shared.changed.wake_all();
        }
        Ok(answers)
    }

    fn carry_out(&mut self, group: &[Command], upkeep: bool, now: i64) -> Result<Vec<Answer>> {
        if upkeep {
            self.upkeep.correct_times(now)?;
            self.upkeep.forget(now, self.options.forget_at_once)?;
        }
        let carry_out = |command: &Command| {
            Ok(match &command.task {
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
        };
        group.iter().map(carry_out).collect()
    }

    fn answer(&mut self, group: Vec<Command>, answers: Vec<Answer>) {
        let mut due = 0;
        for (command, answer) in group.into_iter().zip(answers) {
            due += command.made_due(&answer);
            let returned = command.answer(answer).unwrap_or_default();
            for job in returned.jobs {
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
        self.file.shorten_log();
        self.file.reserve.refill_in_time(SystemClock.monotonic());
    }

    /// Commits the upkeep alone.
    fn tidy(&mut self) {
        if self.commit(&[], true).is_ok() && !self.upkeep.has_unread() {
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

    fn now(&self) -> i64 {
        reading(self.options.clock.unix_millis())
    }
}

fn refuse_all(commands: Vec<Command>, fault: &StoreError) {
    for command in commands {
        command.refuse(fault.clone());
    }
}
