//! The cost of a replay in process, compared with verification alone of the same bytes.
//!
//! ```text
//! cargo bench -p hookgate-benches --features testing --bench replay
//! ```
//!
//! A log of `row.created` of 1 KiB each, with fresh ids, signed beforehand. One contestant verifies
//! each delivery, reading of headers included, and does no more. The other replays the log at its
//! recorded time against an axum route with a `MemoryStore`: every delivery is verified twice, once
//! when the log is read and once by the receiver, sent in a separate task, claimed, handled by a
//! handler that answers 204 at once, committed, and reported. Rounds in turn; the figure is the
//! median of the rounds' ratios. More than [`MAX`] fails.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)] // A bench panics on an unexpected result.

#[path = "support/delivery.rs"]
#[allow(dead_code)] // its typed row is for the other benches
mod delivery;
#[path = "support/mod.rs"]
mod support;

use std::hint::black_box;
use std::time::Instant;

use axum::Router;
use axum::routing::post;
use hookgate::{Delivery, MemoryStore, Receiver, Secret, Verifier, clock::UnixSeconds};
use hookgate_record::LoggedDelivery;
use hookgate_testing::replay::ReplayError;
use hookgate_testing::{DeliveryLog, Replay, Signer};
use http::StatusCode;

const SECRET: &str = "whsec_made_up_for_the_replay_bench";
const BODY_BYTES: usize = 1_024;
const DELIVERIES: i64 = 4_000;
const ROUNDS: usize = 31;
/// The greatest time of a replay, as a multiple of the time of verification alone.
const MAX: f64 = 25.0;

/// A contestant: takes a log, returns nanoseconds a delivery.
type Contestant = fn(&DeliveryLog) -> f64;

fn main() {
    let arguments = support::Arguments::read();
    let quick = arguments.has("--quick");
    let (deliveries, rounds) = if quick {
        (500, 5)
    } else {
        (DELIVERIES, ROUNDS)
    };
    let log = log(deliveries);
    let mut case = support::Case::new("1 KiB");
    verify(&log);
    replay(&log);
    for round in 0..rounds {
        // The order changes from round to round.
        let order: [(&str, Contestant); 2] = match round % 2 {
            0 => [("bare verification", verify), ("replay in process", replay)],
            _ => [("replay in process", replay), ("bare verification", verify)],
        };
        for (name, contestant) in order {
            case.add(name, contestant(&log));
        }
    }
    let ratio = case.ratio("replay in process", "bare verification");
    println!(
        "{rounds} rounds of {deliveries} deliveries of {BODY_BYTES} bytes, time a delivery, bare verification = 1"
    );
    println!("replay in process: median {ratio:.1}, at most {MAX} are allowed");
    arguments.record("replay", "nanoseconds a delivery", &[case]);
    assert!(ratio <= MAX, "{ratio:.1} times the bare verification");
}

/// Returns a log of twenty deliveries a second.
fn log(deliveries: i64) -> DeliveryLog {
    let secret = Secret::new(SECRET).unwrap();
    let logged = |number: i64| {
        let at = UnixSeconds::new(1_763_690_000 + number / 20);
        let body = delivery::body(&format!("evt_{number:08}"), BODY_BYTES);
        let headers = Signer::new(secret.clone()).at(at).headers(&body);
        let mut logged = LoggedDelivery::new(at, headers, body);
        logged.target = "/webhooks".into();
        logged
    };
    (0..deliveries).map(logged).collect()
}

fn verify(log: &DeliveryLog) -> f64 {
    let verifier = Verifier::new(Secret::new(SECRET).unwrap());
    let began = Instant::now();
    for logged in log.deliveries() {
        let body: &[u8] = logged.body.as_ref().unwrap();
        let head = logged.head().unwrap();
        black_box(verifier.verify(&head, body, logged.received_at).unwrap());
    }
    each(began, log)
}

fn replay(log: &DeliveryLog) -> f64 {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let secret = Secret::new(SECRET).unwrap();
    let log_of_it = log.clone();
    let began = Instant::now();
    let report = runtime.block_on(Replay::of(log_of_it).secret(secret).against(|harness| {
        let handler = async |_: Delivery| StatusCode::NO_CONTENT;
        let store = MemoryStore::default().with_clock(harness.clock());
        let guard = harness.layer(Receiver::builder().store(store))?;
        Ok::<_, ReplayError>(Router::new().route("/webhooks", post(handler).layer(guard)))
    }));
    let report = report.unwrap();
    let nanos = each(began, log);
    assert!(report.each_event_committed_once(), "{report}");
    assert_eq!(report.events().len(), log.deliveries().len());
    nanos
}

#[allow(clippy::cast_precision_loss)] // some thousands
fn each(began: Instant, log: &DeliveryLog) -> f64 {
    began.elapsed().as_secs_f64() * 1e9 / log.deliveries().len() as f64
}
