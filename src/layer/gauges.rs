//! The receiver's gauges (feature `metrics`), read when they are asked for.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::receiver_inner::ReceiverInner;
use crate::clock::UnixSeconds;
use crate::dedupe::StoreStats;
#[cfg(feature = "lookup")]
use crate::lookup::LookupStats;
use crate::observe::metric_names as names;
use crate::observe::metrics::Meter;
use crate::pipeline::Health;

/// Sets the gauges. `retention` is absent if events are not remembered; `observe` asks the store
/// for its numbers.
pub(crate) fn record<N>(
    inner: &ReceiverInner<N>,
    retention: Option<Duration>,
    observe: impl FnOnce() -> Option<StoreStats>,
) {
    let metrics = &inner.settings.observers.metrics;
    metrics.with(|to| {
        if !metrics.described.swap(true, Ordering::Relaxed) {
            to.describe(names::RECEIVER);
        }
        // Registered at the start: Prometheus sees no increase when a counter appears with its
        // first value, and this one must not be missed.
        to.count(names::LAST_ATTEMPTS_FAILED, 0, []);
        health(to, &inner.auth.gate.health());
        let (waiting, places) = inner.settings.waiting.taken();
        to.set(names::WAITING, number(waiting), []);
        to.set(names::WAITING_LIMIT, number(places), []);
        let (held, most) = inner.settings.bodies.held();
        to.set(names::BODY_BYTES, number(held), []);
        to.set(names::BODY_BYTES_LIMIT, number(most), []);
        limits(to, inner, retention);
        if let Some(stats) = observe() {
            store(to, &stats);
        }
        #[cfg(feature = "lookup")]
        if let Some(stats) = inner.auth.keys().lookup_stats() {
            lookups(to, &stats);
        }
    });
}

fn health(to: Meter<'_>, health: &Health) {
    to.set(names::READY, flag(health.is_ready()), []);
    for (reason, holds) in health.all_reasons() {
        let labels = [("reason", reason.into())];
        to.set(names::UNREADY, flag(holds), labels);
    }
    to.set(names::RUNS_ACTIVE, number(health.runs), []);
    to.set(names::RUNS_LIMIT, number(health.max_runs), []);
    moment(to, names::STARTED, Some(health.started));
    moment(to, names::LAST_AUTHENTIC, health.last_authentic);
    moment(to, names::LAST_ACCEPTED, health.last_accepted);
}

fn limits<N>(to: Meter<'_>, inner: &ReceiverInner<N>, retention: Option<Duration>) {
    let schedule = &inner.auth.schedule;
    age(to, names::ATTEMPT_TIMEOUT, Some(schedule.attempt_timeout()));
    if retention.is_some() {
        let needed = schedule.minimum_retention(&inner.auth.verifier.window());
        age(to, names::RETENTION, retention);
        age(to, names::RETENTION_NEEDED, Some(needed));
    }
}

fn store(to: Meter<'_>, stats: &StoreStats) {
    to.set(names::STORE_RECORDS, number(stats.done), []);
    to.set(names::STORE_CLAIMS, number(stats.running), []);
    if let Some(capacity) = stats.capacity {
        to.set(names::STORE_RECORDS_LIMIT, number(capacity), []);
    }
    to.total(names::STORE_EVICTIONS, stats.evicted);
    age(to, names::STORE_LAST_EVICTION_AGE, stats.last_evicted);
    age(
        to,
        names::STORE_YOUNGEST_EVICTION_AGE,
        stats.youngest_evicted,
    );
}

#[cfg(feature = "lookup")]
fn lookups(to: Meter<'_>, stats: &LookupStats) {
    to.set(names::LOOKUPS_ACTIVE, number(stats.running), []);
    to.set(names::LOOKUPS_WAITING, number(stats.waiting), []);
    for (found, count) in [("found", stats.found), ("unknown", stats.unknown)] {
        let labels = [("answer", found.into())];
        to.set(names::LOOKUPS_CACHED, number(count), labels);
    }
    to.total(names::LOOKUPS_EVICTIONS, stats.evicted);
}

#[allow(clippy::cast_precision_loss)] // exact for the next hundred million years
fn moment(to: Meter<'_>, name: &'static str, moment: Option<UnixSeconds>) {
    if let Some(moment) = moment {
        to.set(name, moment.as_i64() as f64, []);
    }
}

fn age(to: Meter<'_>, name: &'static str, age: Option<Duration>) {
    if let Some(age) = age {
        to.set(name, age.as_secs_f64(), []);
    }
}

fn flag(holds: bool) -> f64 {
    if holds { 1.0 } else { 0.0 }
}

#[allow(clippy::cast_precision_loss)] // exact far beyond what memory holds
fn number(count: usize) -> f64 {
    count as f64
}
