//! Metrics that are read when they are asked for.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::count::{To, tell};
use super::names;
use crate::clock::UnixSeconds;
use crate::dedupe::StoreStats;
use crate::layer::guard::Guard;
use crate::lookup::LookupStats;
use crate::walk::{Health, Unready};

/// Sets the gauges. `retention` is absent if events are not remembered; `observe` asks the store for its numbers.
pub(crate) fn record(
    guard: &Guard,
    retention: Option<Duration>,
    observe: impl FnOnce() -> Option<StoreStats>,
) {
    tell(guard, |to| {
        if !guard
            .settings
            .metrics
            .described
            .swap(true, Ordering::Relaxed)
        {
            names::describe(to.recorder(), names::RECEIVER);
        }
        // Registered at the start: Prometheus sees no increase when a counter appears with its first value, and these two
        // must not be missed.
        to.count(names::LAST_ATTEMPTS_FAILED, 0, []);
        to.count(names::STALE_BUT_AUTHENTIC, 0, []);
        to.health(&guard.auth.gate.health());
        let (waiting, places) = guard.settings.waiting.taken();
        to.set(names::WAITING, number(waiting), []);
        to.set(names::WAITING_LIMIT, number(places), []);
        let (held, most) = guard.settings.bodies.held();
        to.set(names::BODY_BYTES, number(held), []);
        to.set(names::BODY_BYTES_LIMIT, number(most), []);
        to.limits(guard, retention);
        if let Some(stats) = observe() {
            to.store(&stats);
        }
        if let Some(stats) = guard.auth.keys().lookup_stats() {
            to.lookups(&stats);
        }
    });
}

impl To<'_> {
    fn health(&self, health: &Health) {
        self.set(names::READY, flag(health.is_ready()), []);
        for reason in Unready::ALL {
            let holds = health.reasons().any(|other| other == reason);
            self.set(
                names::UNREADY,
                flag(holds),
                [("reason", reason.name().into())],
            );
        }
        self.set(names::RUNS_ACTIVE, number(health.runs), []);
        self.set(names::RUNS_LIMIT, number(health.max_runs), []);
        self.moment(names::STARTED, Some(health.started));
        self.moment(names::LAST_AUTHENTIC, health.last_authentic);
        self.moment(names::LAST_ACCEPTED, health.last_accepted);
    }

    fn limits(&self, guard: &Guard, retention: Option<Duration>) {
        let schedule = &guard.auth.schedule;
        self.set(
            names::ATTEMPT_TIMEOUT,
            schedule.attempt_timeout().as_secs_f64(),
            [],
        );
        if let Some(retention) = retention {
            let needed = schedule.minimum_retention(&guard.auth.verifier.window());
            self.set(names::RETENTION, retention.as_secs_f64(), []);
            self.set(names::RETENTION_NEEDED, needed.as_secs_f64(), []);
        }
    }

    fn store(&self, stats: &StoreStats) {
        self.set(names::STORE_RECORDS, number(stats.done), []);
        self.set(names::STORE_CLAIMS, number(stats.running), []);
        if let Some(capacity) = stats.capacity {
            self.set(names::STORE_RECORDS_LIMIT, number(capacity), []);
        }
        self.total(names::STORE_EVICTIONS, stats.evicted);
        self.age(names::STORE_LAST_EVICTION_AGE, stats.last_evicted);
        self.age(names::STORE_YOUNGEST_EVICTION_AGE, stats.youngest_evicted);
    }

    fn lookups(&self, stats: &LookupStats) {
        self.set(names::LOOKUPS_ACTIVE, number(stats.running), []);
        self.set(names::LOOKUPS_WAITING, number(stats.waiting), []);
        for (found, count) in [("found", stats.found), ("unknown", stats.unknown)] {
            let labels = [("answer", found.into())];
            self.set(names::LOOKUPS_CACHED, number(count), labels);
        }
        self.total(names::LOOKUPS_EVICTIONS, stats.evicted);
    }

    #[allow(clippy::cast_precision_loss)] // exact for the next hundred million years
    fn moment(&self, name: &'static str, moment: Option<UnixSeconds>) {
        if let Some(moment) = moment {
            self.set(name, moment.as_i64() as f64, []);
        }
    }

    fn age(&self, name: &'static str, age: Option<Duration>) {
        if let Some(age) = age {
            self.set(name, age.as_secs_f64(), []);
        }
    }
}

fn flag(holds: bool) -> f64 {
    if holds { 1.0 } else { 0.0 }
}

#[allow(clippy::cast_precision_loss)] // exact far beyond what memory holds
fn number(count: usize) -> f64 {
    count as f64
}
