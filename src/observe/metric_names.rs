//! The names, units and help texts of the metrics, each in one place.

use metrics::Unit;

/// Upper bounds for the histograms of durations, in seconds: fine steps where a receiver should be,
/// and some around the 5 s after which the sender gives up.
///
/// The crate records every duration unchanged. An exporter's own settings decide whether it uses
/// buckets, and which: [operations](crate::guide::operations#switch-it-on) shows it for Prometheus.
///
/// ```
/// assert!(hookgate::layer::DURATION_BUCKETS.is_sorted());
/// assert_eq!(hookgate::layer::DURATION_BUCKETS.last(), Some(&5.0)); // as long as the sender waits
/// ```
pub const DURATION_BUCKETS: [f64; 14] = [
    0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 4.5, 5.0,
];

/// Upper bounds for the histogram of the ages of stale refusals, `hookgate_stale_age_seconds`. Each
/// wait of the sender's schedule ends a little below one of them: 6, 36 and 156 minutes, and 26 h
/// 36 min. Many ages in one of those buckets are the sign that retries carry their first timestamp.
///
/// ```
/// assert!(hookgate::layer::STALE_AGE_BUCKETS.is_sorted());
/// ```
pub const STALE_AGE_BUCKETS: [f64; 9] = [
    350.0, 420.0, 2_150.0, 2_250.0, 9_350.0, 9_450.0, 95_700.0, 95_900.0, 604_800.0,
];

#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

/// The metrics of one table, as they are described to a recorder.
pub(crate) type Table = &'static [(Kind, &'static str, Unit, &'static str)];

macro_rules! metrics {
    ($table:ident: $($ident:ident: $kind:ident, $name:literal, $unit:ident, $help:literal;)*) => {
        $(pub(crate) const $ident: &str = $name;)*
        pub(crate) const $table: Table = &[$((Kind::$kind, $ident, Unit::$unit, $help),)*];
    };
}

metrics! {
    RECEIVER:
    DELIVERIES: Counter, "hookgate_deliveries_total", Count,
        "Requests to the guarded service, by outcome and reason.";
    ATTEMPTS: Counter, "hookgate_attempts_total", Count,
        "Authentic deliveries, by the probable number of the attempt and the outcome.";
    RUNS: Counter, "hookgate_runs_total", Count,
        "Ended runs of the handler, by outcome and reason, and whether the request had been answered before.";
    LAST_ATTEMPTS_FAILED: Counter, "hookgate_last_attempts_failed_total", Count,
        "Deliveries that were not handled and may have been the sender's last attempt for their event.";
    STALE_AGE: Histogram, "hookgate_stale_age_seconds", Seconds,
        "Age of each delivery that was refused as stale, by its timestamp, which is not verified then.";
    ANSWER: Histogram, "hookgate_answer_duration_seconds", Seconds,
        "Time from the request to its answer.";
    HANDLER: Histogram, "hookgate_handler_duration_seconds", Seconds,
        "Time from the claim to the end of the handler.";
    READY: Gauge, "hookgate_ready", Count,
        "1 where the receiver would take the next authentic delivery, else 0.";
    UNREADY: Gauge, "hookgate_unready", Count,
        "1 for each reason that keeps the receiver from being ready, else 0.";
    STARTED: Gauge, "hookgate_started_timestamp_seconds", Seconds,
        "When the receiver was built, in Unix time.";
    LAST_AUTHENTIC: Gauge, "hookgate_last_authentic_timestamp_seconds", Seconds,
        "When the last authentic delivery came, with any outcome, in Unix time. Absent until there was one.";
    LAST_ACCEPTED: Gauge, "hookgate_last_accepted_timestamp_seconds", Seconds,
        "When an event was last handled, dead-lettered or found done, in Unix time. Absent until there was one.";
    ATTEMPT_TIMEOUT: Gauge, "hookgate_attempt_timeout_seconds", Seconds,
        "How long the sender waits for an answer.";
    RUNS_ACTIVE: Gauge, "hookgate_active_runs", Count,
        "Runs under way: permits in use.";
    RUNS_LIMIT: Gauge, "hookgate_active_runs_limit", Count,
        "The most runs that may be under way: permits in all.";
    WAITING: Gauge, "hookgate_waiting_copies", Count,
        "Copies that wait for another copy's run.";
    WAITING_LIMIT: Gauge, "hookgate_waiting_copies_limit", Count,
        "The most copies that may wait.";
    BODY_BYTES: Gauge, "hookgate_body_bytes", Bytes,
        "Bytes that bodies hold while they arrive.";
    BODY_BYTES_LIMIT: Gauge, "hookgate_body_bytes_limit", Bytes,
        "The most bytes that bodies may hold while they arrive.";
    LOOKUPS_ACTIVE: Gauge, "hookgate_lookups_active", Count,
        "Look-ups of secrets under way.";
    LOOKUPS_WAITING: Gauge, "hookgate_lookups_waiting", Count,
        "Ids whose look-up waits for one of the 16 places.";
    LOOKUPS_CACHED: Gauge, "hookgate_lookups_cached", Count,
        "Subscription ids that were found in the last hour, or are remembered as unknown.";
    LOOKUPS_EVICTIONS: Counter, "hookgate_lookups_evictions_total", Count,
        "Secrets that were forgotten before their time to make room for others.";
    RETENTION: Gauge, "hookgate_retention_seconds", Seconds,
        "How long a handled event is to be remembered.";
    RETENTION_NEEDED: Gauge, "hookgate_retention_needed_seconds", Seconds,
        "How long a handled event must be remembered to outlast the sender's retries.";
    STORE_RECORDS: Gauge, "hookgate_store_records", Count,
        "Handled events that the store remembers.";
    STORE_RECORDS_LIMIT: Gauge, "hookgate_store_records_limit", Count,
        "The most handled events that the store remembers.";
    STORE_CLAIMS: Gauge, "hookgate_store_claims", Count,
        "Running claims that the store holds.";
    STORE_EVICTIONS: Counter, "hookgate_store_evictions_total", Count,
        "Handled events that a full store forgot before their retention ended.";
    STORE_LAST_EVICTION_AGE: Gauge, "hookgate_store_last_eviction_age_seconds", Seconds,
        "How long the event forgotten last was remembered. Absent until there was one.";
    STORE_YOUNGEST_EVICTION_AGE: Gauge, "hookgate_store_youngest_eviction_age_seconds", Seconds,
        "The shortest time that a forgotten event was remembered. Absent until there was one.";
}
