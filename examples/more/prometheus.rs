//! A receiver with monitoring: metrics for Prometheus, a readiness probe, and a second port for
//! both.
//!
//! ```sh
//! WEBHOOK_SECRET=whsec_$(openssl rand -hex 16) cargo run -p hookgate-more --example prometheus
//! ```
//!
//! `/metrics` and `/ready` are on a separate port, since only operators should read them and
//! senders can reach the first port. `ADDR` and `OPERATIONS_ADDR` set the addresses,
//! `STORE_CAPACITY` how many handled events are remembered. docs/operations.md says which metrics
//! to watch, and dashboards/ has the dashboard and the alerts for them. docs/try-it.md shows how to
//! deliver.

#![allow(clippy::print_stdout)] // an example prints for its user

use std::env;
use std::error::Error;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use hookgate::{
    Event, EventData, MemoryStore, Receiver, Secret, dedupe::Capacity, layer::DURATION_BUCKETS,
    layer::STALE_AGE_BUCKETS,
};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use serde::Deserialize;
use tokio::net::TcpListener;
use tokio::time::sleep;

#[derive(Deserialize)]
struct Order {
    #[serde(rename = "Customer")]
    customer: String,
}

async fn on_event(event: Event<Order>) -> StatusCode {
    match event.data {
        EventData::RowCreated(row) => println!("{} by {}", event.id, row.properties.customer),
        _ => println!("{}", event.id),
    }
    StatusCode::NO_CONTENT
}

#[derive(Clone)]
struct Operations {
    receiver: Receiver,
    prometheus: PrometheusHandle,
}

/// Returns the text that Prometheus scrapes.
async fn metrics(State(operations): State<Operations>) -> impl IntoResponse {
    operations.receiver.record_metrics(); // gauges are read now
    operations.prometheus.run_upkeep(); // the exporter publishes the help texts
    let text = operations.prometheus.render();
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text)
}

/// Answers a readiness probe: 200, or 503 with the reasons.
async fn ready(State(operations): State<Operations>) -> (StatusCode, String) {
    let health = operations.receiver.health();
    let status = if health.is_ready() {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (status, health.to_string())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // Buckets for our durations; for all other histograms the exporter makes summaries, which can't
    // be added up over replicas.
    let durations = Matcher::Suffix("_duration_seconds".into());
    let stale_ages = Matcher::Full("hookgate_stale_age_seconds".into());
    let prometheus = PrometheusBuilder::new()
        .set_buckets_for_metric(durations, &DURATION_BUCKETS)?
        .set_buckets_for_metric(stale_ages, &STALE_AGE_BUCKETS)?
        .install_recorder()?;

    let capacity =
        env::var("STORE_CAPACITY").map_or(Ok(Capacity::DEFAULT_RECORDS), |n| n.parse())?;
    let receiver = Receiver::builder()
        .secret(Secret::from_env("WEBHOOK_SECRET")?)
        .store(MemoryStore::new(capacity))
        .metrics_name("orders")
        .build()?;
    let app = Router::new().route("/webhooks", post(on_event).layer(receiver.layer()));
    let operations = Router::new()
        .route("/metrics", get(metrics))
        .route("/ready", get(ready))
        .with_state(Operations {
            receiver: receiver.clone(),
            prometheus: prometheus.clone(),
        });

    // The exporter collects durations until it is read, so read it regularly, even if no server
    // scrapes.
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_secs(5)).await;
            prometheus.run_upkeep();
        }
    });
    let listener = listen("OPERATIONS_ADDR", "127.0.0.1:9187").await?;
    println!("metrics on http://{}/metrics", listener.local_addr()?);
    tokio::spawn(async { axum::serve(listener, operations).await });

    let listener = listen("ADDR", "127.0.0.1:8787").await?;
    println!("listening on http://{}/webhooks", listener.local_addr()?);
    let server = axum::serve(listener, app).with_graceful_shutdown(stop_signal());
    tokio::select! {
        served = server.into_future() => served?,
        // Every delivery is answered within 4.5 s. A client that does not end its request can't
        // hold up the end of the program.
        () = async { stop_signal().await; sleep(Duration::from_secs(5)).await } => {}
    }
    // From here on `/ready` answers 503, until the last run has ended.
    let drained = receiver.drain(Duration::from_secs(10)).await;
    println!("stopped, {drained} runs aborted");
    Ok(())
}

/// Ends at Ctrl-C, or at SIGTERM, as orchestrators send it.
async fn stop_signal() {
    #[cfg(unix)]
    let terminate = async {
        use tokio::signal::unix::{SignalKind, signal};
        match signal(SignalKind::terminate()) {
            Ok(mut signals) => signals.recv().await,
            Err(_) => std::future::pending().await,
        }
    };
    #[cfg(not(unix))]
    let terminate = std::future::pending::<Option<()>>();
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate => {}
    }
}

async fn listen(variable: &str, default: &str) -> Result<TcpListener, Box<dyn Error>> {
    let address = env::var(variable).unwrap_or_else(|_| default.into());
    let listener = TcpListener::bind(&address).await;
    Ok(listener.map_err(|error| format!("can't listen on {address}: {error}"))?)
}
