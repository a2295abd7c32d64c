//! The one thread that writes a file: calls that wait share a commit, and are answered after it.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use hookgate::{
    clock::{Clock, SystemClock},
    dedupe::StoreError,
    internal::catch_panic,
};
use rusqlite::Connection;

use super::calls::{Call, Calls, FileStore, Tables};
use super::commits::Commits;
use super::fault::{Fault, lacks_room};
use super::open::Opened;
use super::reserve::GROUP_BYTES;
use super::thread::start;
use super::units::reading;

/// A smaller jump back of the clock is ignored: it makes nothing last longer than this, in
/// milliseconds.
const SET_BACK: i64 = 1_000;

/// The settings of the thread.
pub(crate) struct Limits {
    /// The wall clock.
    pub(crate) clock: Arc<dyn Clock>,
    /// The largest number of calls that share a commit.
    pub(crate) max_group: usize,
    /// The largest number of calls that begin an event and wait.
    pub(crate) max_waiting: usize,
    /// The largest number of the file's pages. Calls that begin no event may add some more.
    pub(crate) max_pages: Option<i64>,
}

impl<S: FileStore> Calls<S> {
    /// Starts the thread with its connection. When it ends, it calls `end`, closes the connection,
    /// and drops the rest of `owned`.
    pub(crate) fn start<K: Send + 'static>(
        store: S,
        owned: (Connection, K),
        opened: Opened,
        limits: Limits,
        end: impl FnOnce() + Send + 'static,
    ) -> Result<Self, StoreError> {
        let (sender, calls) = channel();
        let max_waiting = limits.max_waiting;
        start(S::THREAD, owned, move |(connection, _), ready| {
            let mut writer = Writer::<S> {
                file: Commits::prepare(connection, opened, limits.max_pages)?,
                tables: store.prepare(connection)?,
                clock: limits.clock,
                latest: i64::MAX,
                max_group: limits.max_group,
            };
            ready();
            writer.run(&calls);
            end();
            Ok(())
        })?;
        Ok(Self::new(sender, max_waiting))
    }
}

struct Writer<'c, S: FileStore> {
    file: Commits<'c>,
    tables: S::Tables<'c>,
    clock: Arc<dyn Clock>,
    /// The latest time that the clock has shown. The first time seen counts as set back, so that
    /// times of an earlier process are corrected as well.
    latest: i64,
    max_group: usize,
}

impl<S: FileStore> Writer<'_, S> {
    /// Runs until all senders are dropped, and every call is answered.
    fn run(&mut self, calls: &Receiver<Call<S>>) {
        // After a panic the callers of the group get no answer, and the next group is served.
        while catch_panic(|| self.round(calls)).unwrap_or(true) {
            self.file.leave_none_open();
        }
        self.file.close();
    }

    /// Serves one group, and returns whether there can be another one.
    fn round(&mut self, calls: &Receiver<Call<S>>) -> bool {
        let wait = match self.tables.goes_on() {
            true => Duration::ZERO,
            false => S::LOOK,
        };
        let first = match calls.recv_timeout(wait) {
            Ok(call) => call,
            Err(RecvTimeoutError::Timeout) => {
                self.look();
                return true;
            }
            Err(RecvTimeoutError::Disconnected) => return false,
        };
        let (mut bytes, mut group) = (first.body_bytes(), vec![first]);
        while group.len() < self.max_group
            && bytes < GROUP_BYTES
            && let Ok(call) = calls.try_recv()
        {
            bytes = bytes.saturating_add(call.body_bytes());
            group.push(call);
        }
        self.tables.look();
        group.retain(|call| !call.is_given_up());
        if group.iter().any(Call::begins) && !self.file.reserve.ensure_whole() && self.file.stands()
        {
            group = self.answer_new(group);
        }
        if !group.is_empty() {
            self.serve(group);
        }
        self.file.shorten_log();
        true
    }

    /// The free space is kept for events that have begun: of the calls that begin one, those about
    /// a known event are answered, as they need no space, and the others are refused.
    fn answer_new(&mut self, group: Vec<Call<S>>) -> Vec<Call<S>> {
        let now = self.now();
        let (new, rest): (Vec<_>, Vec<_>) = group.into_iter().partition(Call::begins);
        for mut call in new {
            let answer = call.work.carry_out(&mut self.tables, now, false);
            call.answer(answer.map_err(StoreError::from));
        }
        rest
    }

    fn serve(&mut self, mut group: Vec<Call<S>>) {
        let fault = match self.commit(&mut group, true) {
            Ok(()) => return answer(group, &Ok(())),
            Err(fault) => fault,
        };
        // No write can succeed now, for any call of the group.
        let is_stuck = self.file.is_stuck(&fault);
        let (new, mut others): (Vec<_>, Vec<_>) = group.into_iter().partition(Call::begins);
        // The end of an event frees space, and must not fail together with a new one that found no
        // space.
        let again = !is_stuck && !new.is_empty() && !others.is_empty();
        let mut committed = Err(fault);
        answer(new, &committed);
        if again {
            committed = self.commit(&mut others, false);
        }
        if committed.as_ref().is_err_and(lacks_room)
            && !others.is_empty()
            && self.file.take_reserve()
        {
            committed = self.commit(&mut others, false);
        }
        answer(others, &committed);
        if !is_stuck {
            self.tidy();
        }
    }

    /// Carries out all calls in one transaction, and tidies the tables in it.
    fn commit(&mut self, group: &mut [Call<S>], tidies: bool) -> Result<(), StoreError> {
        self.file.begin(group)?;
        // Other processes may have kept the file locked until now, and may have written later times
        // than the time before the wait.
        let now = self.now();
        let is_set_back = self.is_set_back(now);
        let written = self.write(group, tidies.then_some(is_set_back), now);
        self.file.end(written)?;
        // A correction is durable only after the commit.
        if tidies {
            self.latest = if is_set_back {
                now
            } else {
                self.latest.max(now)
            };
        }
        self.tables.committed(tidies);
        Ok(())
    }

    fn write(
        &mut self,
        group: &mut [Call<S>],
        tidies: Option<bool>,
        now: i64,
    ) -> Result<(), Fault> {
        if let Some(is_set_back) = tidies {
            self.tables.tidy(now, is_set_back)?;
        }
        let mut calls = group.iter_mut();
        calls.try_for_each(|call| call.work.carry_out(&mut self.tables, now, true))
    }

    /// Runs when no call has arrived for a while.
    fn look(&mut self) {
        self.tables.look();
        let now = self.now();
        if self.is_set_back(now) || self.tables.is_due(now).unwrap_or(false) {
            self.tidy();
        }
        self.file.shorten_log();
        self.file.reserve.refill_in_time(SystemClock.monotonic());
    }

    /// Tidies the tables. An error occurs again, and is reported, at the next call.
    fn tidy(&mut self) {
        let _ = self.commit(&mut [], true);
    }

    fn is_set_back(&self, now: i64) -> bool {
        now.saturating_add(SET_BACK) < self.latest
    }

    fn now(&self) -> i64 {
        reading(self.clock.unix_millis())
    }
}

fn answer<S: FileStore>(group: Vec<Call<S>>, committed: &Result<(), StoreError>) {
    for call in group {
        call.answer(committed.clone());
    }
}
