//! An engine in memory, on tokio's time, which tests can pause: a plain reference of an [`Engine`],
//! with faults that a test can order.

#![allow(clippy::unwrap_used)] // Tests may panic on unexpected results.

mod row;

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hookgate::{
    clock::{Clock, ManualClock},
    dedupe::{ClaimToken, Ownership, ScopesInUse, StoreError, StoreErrorKind, StoreFuture},
    sink::Accepted,
};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use crate::engine::{
    Batch, CLOCK_JUMPED, CLOCK_LEAP, Change, End, Engine, InboxStats, Job, LeaseRequest, Listed,
    NEVER_SETTLED, TOO_OLD,
};
use crate::entry::{Entry, EntryId, EntryState};
use crate::selection::{Page, Selection};
use row::{Row, after, bounded, forget};

/// The result of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The call works.
    None,
    /// The call fails, and nothing was changed.
    Fails,
    /// The call is refused permanently.
    Refuses,
    /// The call fails, although all its changes were made.
    LosesReply,
    /// The call works after this time.
    Slow(Duration),
    /// The call panics.
    Panics,
}

/// A rule that a broken engine does not keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Broken {
    RunsWhatWasFirstLeasedFarAhead,
    KeepsTheRowOfWhatIsErased,
    WakesNobodyWhoForgetsAnAge,
}

type Faults = dyn Fn(&'static str) -> Fault + Send + Sync;

pub(crate) struct MemoryEngine {
    started: Instant,
    /// In place of tokio's time.
    clock: Option<ManualClock>,
    /// The rule that it breaks.
    broken: Option<Broken>,
    rows: Mutex<BTreeMap<EntryId, Row>>,
    changed: Notify,
    scopes: ScopesInUse,
    faults: Mutex<Arc<Faults>>,
    /// Each call with its time since the start.
    pub(crate) calls: Mutex<Vec<(&'static str, Duration)>>,
}

impl MemoryEngine {
    pub(crate) fn new() -> Arc<Self> {
        Self::with(None, None)
    }

    fn with(clock: Option<ManualClock>, broken: Option<Broken>) -> Arc<Self> {
        Arc::new(Self {
            started: Instant::now(),
            clock,
            broken,
            rows: Mutex::default(),
            changed: Notify::default(),
            scopes: ScopesInUse::default(),
            faults: Mutex::new(Arc::new(|_| Fault::None)),
            calls: Mutex::default(),
        })
    }

    /// From now on `faults` determines the result of each call, by its name.
    pub(crate) fn with_faults(
        &self,
        faults: impl Fn(&'static str) -> Fault + Send + Sync + 'static,
    ) {
        *self.faults.lock().unwrap() = Arc::new(faults);
    }

    fn now(&self) -> Duration {
        let Some(clock) = &self.clock else {
            return self.started.elapsed();
        };
        Duration::from_secs(clock.now().as_i64().unsigned_abs())
    }

    fn breaks(&self, rule: Broken) -> bool {
        self.broken == Some(rule)
    }

    fn call<'a, T: Send + Unpin + 'a>(
        &'a self,
        name: &'static str,
        act: impl FnOnce(&mut BTreeMap<EntryId, Row>, Duration) -> T + Send + 'a,
    ) -> StoreFuture<'a, T> {
        self.calls.lock().unwrap().push((name, self.now()));
        let faults = Arc::clone(&self.faults.lock().unwrap());
        let fault = faults(name);
        assert_ne!(fault, Fault::Panics, "made-up panic in the store");
        StoreFuture::boxed(async move {
            if let Fault::Slow(time) = fault {
                sleep(time).await;
            }
            let down = Err(StoreError::new(StoreErrorKind::Unavailable));
            if fault == Fault::Fails {
                return down;
            }
            if fault == Fault::Refuses {
                return Err(StoreError::new(StoreErrorKind::Refused));
            }
            let done = act(&mut self.rows.lock().unwrap(), self.now());
            if fault == Fault::LosesReply {
                down
            } else {
                Ok(done)
            }
        })
    }
}

impl Engine for MemoryEngine {
    fn scopes_in_use(&self) -> &ScopesInUse {
        &self.scopes
    }

    fn accept(&self, entry: Entry, retain: Duration) -> StoreFuture<'_, Accepted> {
        self.call("accept", move |rows, now| {
            forget(rows, now);
            if let Some(row) = rows.values().find(|row| row.entry.key == entry.key) {
                let same_body = row.entry.digest == entry.digest;
                return Accepted::Duplicate { same_body };
            }
            let id = rows.keys().next_back().map_or(1, |id| id.get() + 1);
            let row = Row {
                entry,
                state: EntryState::Queued,
                tries: 0,
                retain,
                accepted: now,
                first_leased: None,
                until: now,
                token: None,
                settled: None,
                error: None,
            };
            rows.insert(EntryId::new(id), row);
            self.changed.notify_one();
            Accepted::New
        })
    }

    fn lease(&self, request: LeaseRequest) -> StoreFuture<'_, Batch> {
        self.call("lease", move |rows, now| {
            let mut batch = Batch::default();
            forget(rows, now);
            let excepted: HashSet<_> = request.except.iter().copied().collect();
            let mut order: Vec<_> = rows.iter().map(|(id, row)| (row.until, *id)).collect();
            order.sort();
            let mut busy: HashSet<_> = rows
                .iter()
                .filter(|(id, row)| {
                    (row.state == EntryState::Running && row.until > now) || excepted.contains(id)
                })
                .filter_map(|(_, row)| Some(*row.entry.row?.as_bytes()))
                .collect();
            for (_, id) in order {
                let row = rows.get_mut(&id).unwrap();
                if excepted.contains(&id) || !row.is_due(now) {
                    continue;
                }
                if row.state == EntryState::Running && row.tries >= request.max_tries {
                    row.dead_letter(NEVER_SETTLED);
                    batch.dead_lettered.push(row.listed(id));
                    continue;
                }
                let of_row = row.entry.row.map(|row| *row.as_bytes());
                if batch.jobs.len() >= request.most
                    || (request.serial_by_row && of_row.is_some_and(|row| !busy.insert(row)))
                {
                    continue;
                }
                let first = *row.first_leased.get_or_insert(now);
                let breaks = self.breaks(Broken::RunsWhatWasFirstLeasedFarAhead);
                let is_too_old =
                    |within| first + within < now || first > now + CLOCK_LEAP && !breaks;
                if request.run_within.is_some_and(is_too_old) {
                    row.dead_letter(if first > now { CLOCK_JUMPED } else { TOO_OLD });
                    batch.dead_lettered.push(row.listed(id));
                    continue;
                }
                row.state = EntryState::Running;
                row.tries += 1;
                row.until = after(now, request.lease);
                row.settled = None;
                let token = ClaimToken::new(&row.entry.body);
                row.token = Some(token);
                batch.jobs.push(Job {
                    id,
                    token,
                    tries: row.tries,
                    waited: now.saturating_sub(row.accepted),
                    entry: row.entry.clone(),
                });
            }
            let waiting = rows.iter().filter(|(id, row)| {
                matches!(row.state, EntryState::Queued | EntryState::Running)
                    && !excepted.contains(id)
                    && row.until > now
            });
            batch.next_in = waiting.map(|(_, row)| row.until - now).min();
            batch
        })
    }

    fn renew(&self, id: EntryId, token: ClaimToken, lease: Duration) -> StoreFuture<'_, Ownership> {
        self.call("renew", move |rows, now| match rows.get_mut(&id) {
            Some(row) if row.token == Some(token) => {
                row.until = after(now, lease);
                Ownership::Held
            }
            _ => Ownership::Lost,
        })
    }

    fn settle(&self, id: EntryId, token: ClaimToken, end: End) -> StoreFuture<'_, Ownership> {
        self.call("settle", move |rows, now| {
            let Some(row) = rows.get_mut(&id) else {
                return Ownership::Lost;
            };
            if row.settled == Some(token) {
                return Ownership::Held;
            }
            if row.token != Some(token) {
                return Ownership::Lost;
            }
            match end {
                End::Done => {
                    row.state = EntryState::Done;
                    row.until = after(row.accepted, row.retain).max(now);
                    row.entry.body = bytes::Bytes::new();
                    row.entry.traceparent = None;
                    row.error = None;
                }
                End::Retry { after: time, error } => {
                    row.state = EntryState::Queued;
                    row.until = after(now, time);
                    row.error = Some(bounded(&error));
                }
                End::Dead { error } => row.dead_letter(&error),
                End::Return => {
                    row.state = EntryState::Queued;
                    row.until = now;
                    row.tries -= 1;
                    self.changed.notify_one();
                }
            }
            row.token = None;
            row.settled = Some(token);
            Ownership::Held
        })
    }

    fn changed(&self) -> &Notify {
        &self.changed
    }

    fn list(&self, which: Selection, page: Page) -> StoreFuture<'_, Vec<Listed>> {
        self.call("list", move |rows, now| {
            rows.iter()
                .filter(|(id, row)| row.is(**id, &which, now))
                .filter(|(id, _)| **id > page.after)
                .take(page.most)
                .map(|(id, row)| row.listed(*id))
                .collect()
        })
    }

    fn show(&self, id: EntryId) -> StoreFuture<'_, Option<(Listed, Entry)>> {
        self.call("show", move |rows, _| {
            let row = rows.get(&id)?;
            Some((row.listed(id), row.entry.clone()))
        })
    }

    fn operate(&self, which: Selection, change: Change) -> StoreFuture<'_, u64> {
        self.call("operate", move |rows, now| {
            let may = |id: &EntryId, row: &Row| {
                change.states().contains(&row.state) && row.is(*id, &which, now)
            };
            let chosen = rows.iter().filter(|(id, row)| may(id, row));
            let chosen: Vec<_> = chosen.map(|(id, _)| *id).collect();
            for id in &chosen {
                let row = rows.get_mut(id).unwrap();
                match &change {
                    Change::Retry { forgets_age } => {
                        row.state = EntryState::Queued;
                        row.until = now;
                        row.tries = 0;
                        row.first_leased = row.first_leased.filter(|_| !forgets_age);
                    }
                    Change::DeadLetter { reason } => row.dead_letter(reason),
                    Change::Purge => drop(rows.remove(id)),
                    Change::Erase { .. } => {
                        row.erase(now, self.breaks(Broken::KeepsTheRowOfWhatIsErased));
                    }
                    Change::EraseLastError => row.error = None,
                }
            }
            let forgets_age = matches!(change, Change::Retry { forgets_age: true });
            if !(forgets_age && self.breaks(Broken::WakesNobodyWhoForgetsAnAge)) {
                self.changed.notify_one();
            }
            chosen.len() as u64
        })
    }

    fn stats(&self) -> StoreFuture<'_, InboxStats> {
        self.call("stats", |rows, now| {
            let count = |state| rows.values().filter(|row| row.state == state).count() as u64;
            let open = |row: &&Row| matches!(row.state, EntryState::Queued | EntryState::Running);
            InboxStats {
                queued: count(EntryState::Queued),
                retrying: rows
                    .values()
                    .filter(|row| row.state == EntryState::Queued && row.tries > 0)
                    .count() as u64,
                running: count(EntryState::Running),
                dead: count(EntryState::Dead),
                done: count(EntryState::Done),
                oldest: rows
                    .values()
                    .filter(open)
                    .map(|row| now.saturating_sub(row.accepted))
                    .max(),
            }
        })
    }
}

impl fmt::Debug for MemoryEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemoryEngine")
    }
}

#[cfg(test)]
mod tests {
    use hookgate::clock::UnixSeconds;

    use super::*;
    use crate::contract::{Subject, Time, run_all};

    /// The engine that the workers' tests use behaves as the real engines do, on either clock.
    #[tokio::test(start_paused = true)]
    async fn it_passes_what_every_engine_must() {
        run_all(|_| async { Subject::new(MemoryEngine::new(), Time::Real) }).await;
        run_all(|_| async { on_a_manual_clock(None) }).await;
    }

    fn on_a_manual_clock(broken: Option<Broken>) -> Subject {
        let clock = ManualClock::at(UnixSeconds::new(1_700_000_000));
        let engine = MemoryEngine::with(Some(clock.clone()), broken);
        Subject::new(engine, Time::Manual(clock))
    }

    #[tokio::test(start_paused = true)]
    async fn a_broken_engine_fails_in_the_test_of_its_rule() {
        for (broken, test) in [
            (
                Broken::RunsWhatWasFirstLeasedFarAhead,
                "an_entry_whose_first_lease_lies_far_ahead_is_not_run",
            ),
            (
                Broken::KeepsTheRowOfWhatIsErased,
                "a_run_whose_entry_is_erased_has_lost_its_lease",
            ),
            (
                Broken::WakesNobodyWhoForgetsAnAge,
                "a_worker_that_waits_is_woken",
            ),
        ] {
            let run = run_all(move |_| async move { on_a_manual_clock(Some(broken)) });
            let panic = tokio::spawn(run).await.unwrap_err().into_panic();
            let message = panic.downcast_ref::<String>().unwrap();
            assert!(message.ends_with(&format!("[{test:?}]")), "{message}");
        }
    }
}
