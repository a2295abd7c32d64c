//! The tests that every [`Engine`] must pass (feature `contract`): those of `hookgate-sqlite` and
//! `hookgate-postgres` do, and yours must.
//!
//! ```
//! use std::sync::Arc;
//! use hookgate::clock::ManualClock;
//! use hookgate_inbox::contract::{Subject, Time, run_all};
//! use hookgate_inbox::engine::Engine;
//!
//! /// `new` makes a new and empty engine on this clock.
//! async fn my_engine_passes(new: impl Fn(ManualClock) -> Arc<dyn Engine> + Clone + Send + Sync + 'static) {
//!     run_all(move |_test| {
//!         let clock = ManualClock::at(hookgate::clock::UnixSeconds::new(1_700_000_000));
//!         let engine = new(clock.clone());
//!         async { Subject::new(engine, Time::Manual(clock)) }
//!     })
//!     .await;
//! }
//! ```
//!
//! In addition to the docs of the trait, these tests fix:
//! - A lease that has ended still belongs to its holder until the next lease: the holder can renew
//!   and settle it.
//! - A renewal after a settlement is `Lost`, as there is no lease any more. The same settlement
//!   again is `Held` and changes nothing, also if the entry is queued again, until its next lease.
//! - A repeated `Retry` settlement does not begin the wait again.
//! - `next_in` is never zero because of an entry that cannot be leased now: one of `except`, or one
//!   whose row runs elsewhere.
//! - An entry in `except` counts as running, and its row too, whatever state and lease the engine
//!   stores for it.
//! - `Selection` without a state means all the states that the call applies to; with a state that
//!   the call does not apply to, it selects no entry.
//! - An unlimited time does not overflow. An entry's age counts from its first lease on, however
//!   that lease ended.

#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::unwrap_used)] // Tests make times, and may panic.

mod accept;
mod age;
#[cfg(test)]
pub(crate) mod cases;
mod lease;
#[cfg(test)]
pub(crate) mod memory;
mod operator;
mod rows;
mod settle;
mod values;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hookgate::{
    clock::{Clock, ManualClock, UnixSeconds},
    dedupe::{EventKey, Ownership},
    internal::body_digest,
    sink::Accepted,
};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::engine::{
    Batch, CLOCK_JUMPED, CLOCK_LEAP, Change, End, Engine, Job, LeaseRequest, Listed, NEVER_SETTLED,
    TOO_OLD, one_line,
};
use super::entry::{Entry, EntryId, EntryState};
use super::inbox::Inbox;
use super::selection::{Page, Selection};
use super::workers::listen;
use values::*;

/// Longer than the duration of any of these tests.
const LONG: Duration = Duration::from_secs(3_600);
/// The number of tests that run at a time.
const AT_A_TIME: usize = 4;

/// The clock of the engine.
#[derive(Debug)]
pub enum Time {
    /// It stands still until the test moves it.
    Manual(ManualClock),
    /// It is the clock of a server.
    Real,
}

/// An engine under test: empty, and used by this test alone.
#[derive(Debug)]
pub struct Subject {
    engine: Arc<dyn Engine>,
    time: Time,
}

type Test = fn(Subject) -> Pin<Box<dyn Future<Output = ()> + Send>>;

/// Each test with its name.
fn all() -> Vec<(&'static str, Test)> {
    macro_rules! tests {
        ($($of:ident::$test:ident),* $(,)?) => {
            vec![$((stringify!($test), |subject| Box::pin($of::$test(subject)))),*]
        };
    }
    tests![
        accept::of_many_copies_one_is_new,
        accept::a_duplicate_tells_another_body,
        accept::an_id_is_known_while_its_entry_is_not_handled,
        accept::a_handled_entry_is_known_for_its_retention,
        accept::the_retention_ends,
        accept::entries_come_back_as_they_were,
        accept::a_trace_is_forgotten_with_its_body,
        accept::the_key_alone_names_an_event,
        accept::a_worker_that_waits_is_woken,
        lease::the_longest_due_comes_first,
        lease::two_lessors_never_get_the_same_entry,
        lease::no_more_than_asked_for,
        lease::tries_are_counted,
        lease::a_lease_holds_until_it_ends,
        lease::another_lessor_gets_the_entries_whose_lease_has_ended,
        lease::a_late_holder_without_successor_still_holds,
        lease::a_renewal_lengthens,
        lease::excepted_entries_are_left_alone,
        lease::an_excepted_entry_is_left_alone_where_it_waits,
        lease::the_time_of_the_next_one_is_told,
        lease::times_without_end_are_no_fault,
        age::an_entry_that_may_have_run_is_not_run_when_it_is_too_old,
        age::an_entry_that_was_never_leased_is_run_however_old_it_is,
        age::a_try_that_was_returned_may_have_run,
        age::an_operators_word_runs_an_entry_that_is_too_old,
        age::an_entry_whose_first_lease_lies_far_ahead_is_not_run,
        age::entries_that_are_too_old_keep_no_others_from_their_turn,
        settle::a_settlement_can_be_repeated,
        settle::a_settlement_needs_its_token,
        settle::a_failed_try_waits_and_keeps_its_error,
        settle::a_returned_try_does_not_count,
        settle::a_dead_letter_is_left_alone,
        settle::the_last_attempt_is_dead_lettered_when_its_lease_ends,
        settle::errors_are_kept_as_they_are_told,
        rows::one_of_a_row_at_a_time,
        rows::the_next_of_a_row_follows_a_settlement,
        rows::a_failed_entry_does_not_hold_its_row,
        rows::an_excepted_entry_holds_its_row,
        rows::a_lease_that_ended_frees_its_row,
        rows::ended_leases_of_a_row_that_runs_are_nobodys_hurry,
        rows::many_lessors_keep_rows_apart,
        operator::lists_are_in_order_and_in_pages,
        operator::lists_are_of_what_is_asked_for,
        operator::an_entry_is_shown_whole,
        operator::what_waits_or_is_dead_is_tried_again,
        operator::a_waiting_entry_can_be_dead_lettered,
        operator::what_is_over_is_purged,
        operator::what_is_erased_is_gone_and_still_known,
        operator::a_last_error_is_erased_alone,
        operator::a_run_whose_entry_is_erased_has_lost_its_lease,
        operator::numbers_are_counted,
    ]
}

/// Runs all tests, each on an engine of its own, and reports which tests failed. `open` makes a
/// new, empty engine; its argument is the test's name.
///
/// # Panics
/// A test failed: the message names it. Or there is no tokio runtime; use a multi-thread runtime,
/// which shows the most races.
pub async fn run_all<F, O>(open: F)
where
    F: Fn(&'static str) -> O + Send + Sync + 'static,
    O: Future<Output = Subject> + Send,
{
    let (open, places) = (Arc::new(open), Arc::new(Semaphore::new(AT_A_TIME)));
    let mut runs = JoinSet::new();
    for (name, test) in all() {
        let (open, places) = (Arc::clone(&open), Arc::clone(&places));
        runs.spawn(async move {
            let _place = places.acquire().await.unwrap();
            let run = tokio::spawn(async move { test(open(name).await).await });
            (name, run.await.is_ok())
        });
    }
    let mut failed = Vec::new();
    while let Some(run) = runs.join_next().await {
        let (name, passed) = run.unwrap();
        if !passed {
            failed.push(name);
        }
    }
    assert!(failed.is_empty(), "the engine does not pass: {failed:?}");
}

impl Subject {
    /// Takes an engine for one test.
    #[must_use]
    pub fn new(engine: Arc<dyn Engine>, time: Time) -> Self {
        Self { engine, time }
    }

    /// The unit of time in the tests: a lease of one unit has ended after [`pass`](Self::pass) of
    /// two, and a lease of a hundred has not.
    fn units(&self, count: u32) -> Duration {
        let unit = match self.time {
            Time::Manual(_) => Duration::from_secs(10),
            Time::Real => Duration::from_millis(300),
        };
        unit * count
    }

    /// Lets time pass.
    async fn pass(&self, units: u32) {
        let time = self.units(units);
        match &self.time {
            Time::Manual(clock) => clock.advance(time),
            Time::Real => tokio::time::sleep(time).await,
        }
    }

    async fn accept(&self, entry: &Entry) -> Accepted {
        self.engine.accept(entry.clone(), LONG).await.unwrap()
    }

    /// Accepts events of these names, and returns their entry numbers.
    async fn with(&self, names: &[&str]) -> Vec<EntryId> {
        let mut ids = Vec::new();
        for name in names {
            assert_eq!(self.accept(&entry(name)).await, Accepted::New, "{name}");
            ids.push(self.listed(name).await.id);
        }
        ids
    }

    /// Accepts events of these rows and names.
    async fn with_rows(&self, entries: &[(&str, &str)]) {
        for (row, name) in entries {
            assert_eq!(self.accept(&entry_of(row, name)).await, Accepted::New);
        }
    }

    async fn lease(&self, request: LeaseRequest) -> Batch {
        self.engine.lease(request).await.unwrap()
    }

    /// Leases one entry, for longer than the test runs.
    async fn one(&self) -> Job {
        let mut jobs = self.lease(request(1)).await.jobs;
        assert_eq!(jobs.len(), 1, "no entry is due");
        jobs.remove(0)
    }

    async fn settle(&self, job: &Job, end: End) -> Ownership {
        self.engine.settle(job.id, job.token, end).await.unwrap()
    }

    async fn renew(&self, job: &Job, lease: Duration) -> Ownership {
        self.engine.renew(job.id, job.token, lease).await.unwrap()
    }

    /// Makes entries due as an operator does, without a decision on their age.
    async fn due_again(&self, which: Selection) -> u64 {
        self.operate(which, Change::Retry { forgets_age: false })
            .await
    }

    async fn operate(&self, which: Selection, change: Change) -> u64 {
        self.engine.operate(which, change).await.unwrap()
    }

    async fn list(&self, which: Selection) -> Vec<Listed> {
        self.engine.list(which, Page::first(1_000)).await.unwrap()
    }

    /// Returns the one entry of this event.
    async fn listed(&self, event: &str) -> Listed {
        let mut found = self.list(of(event)).await;
        assert_eq!(found.len(), 1, "entries of {event}");
        found.remove(0)
    }

    async fn state(&self, event: &str) -> EntryState {
        self.listed(event).await.state
    }

    async fn names(&self, which: Selection) -> Vec<String> {
        let found = self.list(which).await;
        found
            .into_iter()
            .map(|listed| listed.event_id.as_str().to_owned())
            .collect()
    }
}
