//! The cost of the feature `metrics` with a recorder installed: deliveries through the layer, in
//! process, with the Prometheus exporter as the recorder and without a recorder.
//!
//! ```text
//! cargo bench -p hookgate-benches --features metrics --bench metrics
//! ```
//!
//! Every delivery is 1 KiB, signed beforehand, with a fresh id that is claimed and committed in a
//! `MemoryStore`; the handler answers 204 at once. A round sends the same number through each in
//! turn; the printed figure is the time a delivery, as a multiple of the one without a recorder in
//! the same round.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)] // A bench panics on an unexpected result.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hookgate::{
    MemoryStore, Receiver, Secret,
    clock::{Clock, SystemClock},
    layer::{DURATION_BUCKETS, VerifiedBody},
    verify::{Signature, Timestamp},
};
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder};
use tower::{Service, ServiceBuilder, ServiceExt, service_fn};

const SECRET: &str = "whsec_made_up_for_the_metrics_bench";
const BODY_BYTES: usize = 1_024;
const DELIVERIES: usize = 5_000;
const ROUNDS: usize = 31;

fn main() {
    let recorder = PrometheusBuilder::new()
        .set_buckets_for_metric(
            Matcher::Suffix("_duration_seconds".into()),
            &DURATION_BUCKETS,
        )
        .unwrap()
        .build_recorder();
    let (mut ratios, mut alone) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        // The order changes from round to round.
        let recorded = || metrics::with_local_recorder(&recorder, || measure(round * 2));
        let unrecorded = || measure(round * 2 + 1);
        let (with, without) = if round % 2 == 0 {
            let with = recorded();
            (with, unrecorded())
        } else {
            let without = unrecorded();
            (recorded(), without)
        };
        recorder.handle().run_upkeep();
        ratios.push(with.as_secs_f64() / without.as_secs_f64());
        alone.push(without);
    }
    ratios.sort_by(f64::total_cmp);
    alone.sort();
    println!(
        "{ROUNDS} rounds of {DELIVERIES} deliveries of {BODY_BYTES} bytes, time a delivery, without a recorder = 1"
    );
    println!(
        "with the Prometheus exporter: median {:.2}, least {:.2}",
        ratios[ROUNDS / 2],
        ratios[0]
    );
}

/// Returns the time that all deliveries of a round take.
fn measure(round: usize) -> Duration {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    let receiver = Receiver::builder()
        .secret(Secret::new(SECRET).unwrap())
        .store(MemoryStore::default())
        .build()
        .unwrap();
    let handler = service_fn(async |_: Request<VerifiedBody>| {
        let mut response = Response::new(());
        *response.status_mut() = StatusCode::NO_CONTENT;
        Ok::<_, Infallible>(response)
    });
    let mut guarded = ServiceBuilder::new()
        .layer(receiver.layer())
        .service(handler);
    let requests: Vec<_> = (0..DELIVERIES)
        .map(|number| request(round, number))
        .collect();
    runtime.block_on(async {
        let began = Instant::now();
        for request in requests {
            let ready = ServiceExt::<Request<Full<Bytes>>>::ready(&mut guarded);
            let response = ready.await.unwrap().call(request).await.unwrap();
            assert_eq!(response.status(), StatusCode::NO_CONTENT);
        }
        began.elapsed()
    })
}

fn request(round: usize, number: usize) -> Request<Full<Bytes>> {
    let head = format!(
        r#"{{"id":"evt_{round:04}_{number:08}","type":"row.created","createdAt":"2026-11-21T09:30:00.000Z","workspaceId":"ws_1","data":{{"note":""#
    );
    let note = "x".repeat(BODY_BYTES - head.len() - 3);
    let body = format!("{head}{note}\"}}}}");
    let timestamp = Timestamp::at(SystemClock.now()).unwrap();
    let secret = Secret::new(SECRET).unwrap();
    let signature = Signature::sign(&secret, &timestamp, body.as_bytes()).to_header_value();
    Request::post("/webhooks")
        .header("content-type", "application/json")
        .header("x-service-timestamp", timestamp.as_str())
        .header("x-service-signature", signature)
        .body(Full::new(body.into()))
        .unwrap()
}
