//! The cost of recording for a delivery:
//! `cargo bench -p hookgate-benches --features testing --bench record`.
//!
//! A `row.created` of 1 KiB with a fresh id goes through a guarded axum route by `oneshot`, with a
//! typed event and `MemoryStore`: without a recorder, with a closure that drops its input, and with
//! a recorder that writes a file. They take turns in one run, and the result is the ratio. The file
//! is written while the next deliveries run; where there are too few cores for both, the writing is
//! measured too.

#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used)] // A bench prints, and panics on an unexpected result.

use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::routing::post;
use hookgate::{Event, EventData, MemoryStore, Receiver, ReceiverBuilder, Secret};
use hookgate_record::{LoggedDelivery, Recorder, Redaction, record_with};
use hookgate_testing::Signer;
use http::{Request, StatusCode};
use tower::Service;

mod support;

#[path = "support/delivery.rs"]
mod delivery;

use delivery::Order;
use support::{Arguments, Case};

const BODY_BYTES: usize = 1_024;
/// The number of deliveries in a round.
const DELIVERIES: usize = 200;
const ROUNDS: usize = 61;

struct Walk {
    name: &'static str,
    app: Router,
    recorder: Option<Recorder>,
}

fn main() {
    let arguments = Arguments::read();
    let folder = std::env::temp_dir().join(format!("hookgate-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let recorder = |name: &str| Recorder::to(folder.join(name)).queue(10_000, 1 << 30);
    let plain = recorder("plain").open().unwrap();
    let redacting = recorder("redacted")
        .redact(Redaction::people())
        .open()
        .unwrap();
    let mut walks = [
        Walk::new("not recorded", None, |builder| builder),
        Walk::new("to a closure", None, |builder| {
            builder.observer(record_with(|_: LoggedDelivery| ()))
        }),
        Walk::new("to a file", Some(plain.clone()), |builder| {
            builder.observer(plain)
        }),
        Walk::new("to a file, redacted", Some(redacting.clone()), |builder| {
            builder.observer(redacting)
        }),
    ];
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    let secret = secret();
    let mut case = Case::new("a guarded route");
    let mut number = 0;
    for round in 0..=ROUNDS {
        for walk in &mut walks {
            let requests: Vec<Request<Body>> = (0..DELIVERIES)
                .map(|_| {
                    number += 1;
                    let body = delivery::body(&format!("evt_{number:09}"), BODY_BYTES);
                    Signer::new(secret.clone())
                        .request("/", body)
                        .map(Body::from)
                })
                .collect();
            let start = Instant::now();
            runtime.block_on(async {
                for request in requests {
                    let answer = walk.app.call(request).await.unwrap();
                    assert_eq!(answer.status(), StatusCode::NO_CONTENT);
                }
            });
            let nanos = start.elapsed().as_secs_f64() * 1e9 / DELIVERIES as f64;
            if round > 0 {
                case.add(walk.name, nanos);
            }
            // The file is finished here, so that another contestant's turn does not include the
            // writing.
            if let Some(recorder) = &walk.recorder {
                assert!(recorder.flush(Duration::from_secs(60)));
                assert_eq!(recorder.dropped(), 0);
            }
        }
    }
    std::fs::remove_dir_all(folder).unwrap();
    println!("CPU: {}", support::cpu());
    println!("a guarded route by oneshot, not recorded = 1");
    for walk in &walks {
        println!(
            "  {:<20} {:.2}",
            walk.name,
            case.ratio(walk.name, walks[0].name)
        );
    }
    arguments.record("record", "ns", &[case]);
}

impl Walk {
    fn new(
        name: &'static str,
        recorder: Option<Recorder>,
        record: impl FnOnce(ReceiverBuilder) -> ReceiverBuilder,
    ) -> Self {
        let builder = Receiver::builder()
            .secret(secret())
            .store(MemoryStore::default());
        let receiver = record(builder).build().unwrap();
        let app = Router::new()
            .route("/", post(typed).layer(receiver.layer()))
            .with_state(());
        Self {
            name,
            app,
            recorder,
        }
    }
}

async fn typed(event: Event<Order>) -> StatusCode {
    match event.data {
        EventData::RowCreated(row) if row.properties.weigh() > 0 => StatusCode::NO_CONTENT,
        _ => StatusCode::BAD_REQUEST,
    }
}

fn secret() -> Secret {
    Secret::new("whsec_made_up_for_the_record_bench").unwrap()
}
