//! The one thread that writes claims: calls that wait share a commit, and are answered after it.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use tokio::sync::oneshot;

use super::claims::Claims;
use super::commits::Commits;
use super::fault::lacks_room;
use super::rows::{Known, Rows, Swap};
use super::slot::WaitingSlot;
use super::units::reading;
use crate::caught::caught;
use crate::clock::{Clock, SystemClock};
use crate::dedupe::{ClaimToken, Claimed, EventKey, Ownership, StoreError, StoreErrorKind};

/// How often an idle writer checks whether records must be deleted.
const LOOK: Duration = Duration::from_secs(1);
/// The largest number of calls that share a commit.
const GROUP: usize = 256;

/// A call of the store, and its caller.
pub(super) struct Call {
    pub(super) key: EventKey,
    pub(super) task: Task,
    pub(super) reply: oneshot::Sender<Result<Answer, StoreError>>,
    /// That of a call that begins an event. It is freed when the call is dropped.
    pub(super) _slot: Option<WaitingSlot>,
}

pub(super) enum Task {
    Claim(ClaimToken, Duration),
    Renew(ClaimToken, Duration),
    Commit(ClaimToken, Duration),
    Release(ClaimToken),
    Last,
    Swap(Swap),
}

pub(super) enum Answer {
    Claimed(Claimed),
    Ownership(Ownership),
    Last(Option<Known>),
    Swapped(bool),
}

impl Task {
    /// Whether an event begins with this call: the claim of its id, and the reading of its row's record.
    pub(super) fn begins(&self) -> bool {
        matches!(self, Self::Claim(..) | Self::Last)
    }
}

impl Call {
    fn begins(&self) -> bool {
        self.task.begins()
    }

    /// Whether the caller no longer waits and the call can be dropped: a claim that has no holder, a renewal, a reading. The others
    /// are carried out, also without a caller.
    fn is_given_up(&self) -> bool {
        self.reply.is_closed() && (self.begins() || matches!(self.task, Task::Renew(..)))
    }

    fn answer(self, answer: Result<Answer, StoreError>) {
        // A caller that no longer waits needs no answer.
        drop(self.reply.send(answer));
    }
}

pub(super) struct Writer<'c> {
    file: Commits<'c>,
    claims: Claims<'c>,
    rows: Rows<'c>,
    clock: Arc<dyn Clock>,
}

impl<'c> Writer<'c> {
    pub(super) fn prepare(file: Commits<'c>, clock: Arc<dyn Clock>) -> rusqlite::Result<Self> {
        Ok(Self {
            claims: Claims::prepare(file.connection)?,
            rows: Rows::prepare(file.connection)?,
            file,
            clock,
        })
    }

    /// Runs until all senders are dropped, and every call is answered.
    pub(super) fn run(&mut self, calls: &Receiver<Call>) {
        // The clock is the user's own code. If it panics, the callers of the group get no answer, and the next group is served.
        while caught(|| self.round(calls)).unwrap_or(true) {
            self.file.leave_none_open();
        }
        self.file.reserve.refill();
    }

    /// Serves one group, and returns whether there can be another one.
    fn round(&mut self, calls: &Receiver<Call>) -> bool {
        let mut group = match calls.recv_timeout(LOOK) {
            Ok(call) => vec![call],
            Err(RecvTimeoutError::Timeout) => {
                self.look();
                return true;
            }
            Err(RecvTimeoutError::Disconnected) => return false,
        };
        while group.len() < GROUP
            && let Ok(call) = calls.try_recv()
        {
            group.push(call);
        }
        group.retain(|call| !call.is_given_up());
        if group.iter().any(Call::begins) && !self.file.reserve.is_whole() {
            group = self.refuse_new(group);
        }
        if !group.is_empty() {
            self.serve(group);
        }
        self.file.shorten_log();
        true
    }

    /// The free space is kept for events that run: another event does not begin. A claim of an event that runs or is done needs no
    /// space.
    fn refuse_new(&mut self, group: Vec<Call>) -> Vec<Call> {
        let now = self.now();
        let (new, rest): (Vec<_>, Vec<_>) = group.into_iter().partition(Call::begins);
        for call in new {
            let held = match call.task {
                Task::Claim(token, _) => self.claims.held(&call.key, token, now),
                _ => Ok(None),
            };
            call.answer(match held {
                Ok(Some(held)) => Ok(Answer::Claimed(held)),
                Ok(None) => Err(StoreError::saying(
                    StoreErrorKind::Full,
                    "the disk is full: make room; the rest of its space is reserved for events that run",
                )),
                Err(error) => Err(super::fault::failed(error)),
            });
        }
        rest
    }

    fn serve(&mut self, group: Vec<Call>) {
        let fault = match self.commit(&group, true) {
            Ok(answers) => return answer_all(group, answers),
            Err(fault) => fault,
        };
        // Commits and releases must not fail together with claims that found no space.
        let (new, others): (Vec<_>, Vec<_>) = group.into_iter().partition(Call::begins);
        let again = !new.is_empty() && !others.is_empty() && !self.file.is_stuck(&fault);
        refuse_all(new, &fault);
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
            Ok(answers) => answer_all(others, answers),
            Err(fault) => refuse_all(others, &fault),
        }
    }

    /// Carries out all calls in one transaction, together with the deletion of ended records.
    fn commit(&mut self, group: &[Call], tidies: bool) -> Result<Vec<Answer>, StoreError> {
        self.file.begin()?;
        // Other processes may have kept the file locked until now.
        let now = self.now();
        let written = self.carry_out(group, tidies, now);
        let answers = self.file.end(written)?;
        if tidies {
            self.claims.seen(now);
        }
        Ok(answers)
    }

    fn carry_out(
        &mut self,
        group: &[Call],
        tidies: bool,
        now: i64,
    ) -> rusqlite::Result<Vec<Answer>> {
        if tidies {
            self.claims.tidy(now)?;
            self.rows.delete_ended(now)?;
        }
        let carry_out = |call: &Call| {
            let key = &call.key;
            Ok(match &call.task {
                Task::Claim(token, lease) => {
                    Answer::Claimed(self.claims.claim(key, *token, *lease, now)?)
                }
                Task::Renew(token, lease) => {
                    Answer::Ownership(self.claims.renew(key, *token, *lease, now)?)
                }
                Task::Commit(token, retain) => {
                    Answer::Ownership(self.claims.commit(key, *token, *retain, now)?)
                }
                Task::Release(token) => Answer::Ownership(self.claims.release(key, *token, now)?),
                Task::Last => Answer::Last(self.rows.last(key, now)?),
                Task::Swap(swap) => Answer::Swapped(self.rows.swap(key, swap, now)?),
            })
        };
        group.iter().map(carry_out).collect()
    }

    /// Runs when no call has arrived for a while.
    fn look(&mut self) {
        let now = self.now();
        // An error here occurs again, and is reported, at the next call.
        let is_due = self.claims.is_due(now).unwrap_or(false);
        if is_due || self.rows.has_ended(now).unwrap_or(false) {
            let _ = self.commit(&[], true);
        }
        self.file.shorten_log();
        self.file.reserve.refill_in_time(SystemClock.monotonic());
    }

    fn now(&self) -> i64 {
        reading(self.clock.unix_millis())
    }
}

fn refuse_all(group: Vec<Call>, fault: &StoreError) {
    for call in group {
        call.answer(Err(fault.clone()));
    }
}

fn answer_all(group: Vec<Call>, answers: Vec<Answer>) {
    for (call, answer) in group.into_iter().zip(answers) {
        call.answer(Ok(answer));
    }
}
