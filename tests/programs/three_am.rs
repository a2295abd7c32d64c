//! 3 a.m.: every delivery is refused since the last deploy. The receiver has log lines, metrics and
//! a delivery log. The operator reads them, asks for an explanation, puts the right secret in place
//! without a restart, and the sender's retry is handled.

use std::error::Error;
use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::{Router, http::StatusCode, routing::post};
use hookgate::{Event, MemoryStore, Receiver, Secret, layer::DURATION_BUCKETS};
use hookgate_record::Recorder;
use hookgate_testing::explain::CauseKind;
use hookgate_testing::{DeliveryLog, EventFactory, Explainer, Signer};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder};
use tower::ServiceExt;

/// As the service shows it, and as the deploy has set it: its tool splits each line at `=`.
const SHOWN: &str = "whsec_made_up_for_3_in_the_morning0u0=";
const CONFIGURED: &str = "whsec_made_up_for_3_in_the_morning0u0";

async fn on_event(_: Event) -> StatusCode {
    StatusCode::NO_CONTENT
}

#[tokio::main]
pub async fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("three-am-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;

    // The program as it is in production.
    let lines = Arc::new(File::create(folder.join("lines.log"))?);
    tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(lines)
        .init();
    let prometheus = PrometheusBuilder::new()
        .set_buckets_for_metric(
            Matcher::Suffix("_duration_seconds".into()),
            &DURATION_BUCKETS,
        )?
        .install_recorder()?;
    // Without a redaction: a body without its names can't be explained. So the log needs
    // protection, as the data itself.
    let recorder = Recorder::to(folder.join("deliveries.jsonl")).open()?;
    let receiver = Receiver::builder()
        .secret(Secret::new(CONFIGURED)?)
        .store(MemoryStore::default())
        .metrics_name("orders")
        .observer(recorder.clone())
        .build()?;
    let app = Router::new().route("/webhooks", post(on_event).layer(receiver.layer()));

    // The service delivers an event, and again after a minute.
    let service = Signer::new(Secret::new(SHOWN)?).subscription("wh_1");
    let event = EventFactory::new().row_created();
    let deliver = async || {
        app.clone()
            .oneshot(service.request("/webhooks", &event).map(Body::from))
            .await
    };
    for _ in 0..2 {
        assert_eq!(deliver().await?.status(), 401);
    }

    // The alert is on this metric. It says which check fails.
    receiver.record_metrics();
    let metrics = prometheus.render();
    let refused = metrics
        .lines()
        .filter(|line| line.contains(r#"receiver="orders""#))
        .find(|line| line.contains(r#"reason="signature_mismatch""#));
    assert!(
        refused.is_some_and(
            |line| line.starts_with("hookgate_deliveries_total{") && line.ends_with(" 2")
        ),
        "{metrics}"
    );

    // The log says it for each delivery, and which subscription it claims to be.
    let lines = std::fs::read_to_string(folder.join("lines.log"))?;
    let line = lines
        .lines()
        .find(|line| line.contains("delivery not handled") && line.contains("wh_1"))
        .unwrap_or_default();
    for part in [
        "WARN",
        "not_authentic",
        "the signature is not that of these bytes",
        "wh_1",
    ] {
        assert!(line.contains(part), "{lines}");
    }

    // The explanation says which mistake it is. `hookgate explain --log deliveries.jsonl` prints
    // the same.
    assert!(recorder.flush(Duration::from_secs(5)));
    let log = DeliveryLog::open(folder.join("deliveries.jsonl"))?;
    let explanation = Explainer::new()
        .secret("WEBHOOK_SECRET", CONFIGURED)
        .explain(&log.deliveries()[0]);
    let causes: Vec<_> = explanation
        .causes()
        .iter()
        .map(|cause| cause.kind())
        .collect();
    assert_eq!(causes, [CauseKind::SecretPaddingLost], "{explanation}");

    // The right secret, without a restart. Nothing was lost: the sender tries for a day.
    receiver.keys().replace(Secret::new(SHOWN)?)?;
    assert_eq!(deliver().await?.status(), 204);
    receiver.drain(Duration::from_secs(5)).await;
    Ok(std::fs::remove_dir_all(folder)?)
}
