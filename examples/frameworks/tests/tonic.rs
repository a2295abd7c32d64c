//! gRPC and webhooks at one port, over one connection.

use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use tonic::body::Body;
use tonic::transport::{Channel, Endpoint};
use tonic_health::ServingStatus;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tower::{Service, ServiceExt};

use crate::LedgerFile;
use crate::process::{Example, own_secret, row_created, signed};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grpc_and_webhooks_share_a_port_and_even_a_connection() {
    let ledger = LedgerFile::made("grpc");
    let path = ledger.path();
    let example = Example::start(
        "tonic",
        &[("WEBHOOK_SECRET", own_secret()), ("LEDGER", &path)],
    );
    let uri = format!("http://{}", example.address);
    let channel = Endpoint::from_shared(uri.clone())
        .unwrap()
        .connect()
        .await
        .unwrap();
    let mut health = HealthClient::new(channel.clone());
    let question = HealthCheckRequest {
        service: "webhooks".to_owned(),
    };
    let answer = health.check(question.clone()).await.unwrap().into_inner();
    assert_eq!(answer.status, i32::from(ServingStatus::Serving as u8));
    let unknown = HealthCheckRequest {
        service: "unknown".to_owned(),
    };
    let refused = health.check(unknown).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::NotFound);

    // The same connection, which is HTTP/2, carries deliveries; HTTP/1 shares their records.
    let body = row_created("evt_1", r#"{"Customer":"Ada"}"#);
    assert_eq!(
        deliver(&channel, &body, 0).await,
        (StatusCode::NO_CONTENT, false)
    );
    assert_eq!(deliver(&channel, &body, 0).await, (StatusCode::OK, true));
    assert!(example.deliver(own_secret(), &body).is_replay());
    let unauthorized = (StatusCode::UNAUTHORIZED, false);
    assert_eq!(deliver(&channel, &body, 301).await, unauthorized);
    let other = row_created("evt_2", r#"{"Customer":"Bo"}"#);
    assert_eq!(example.deliver(own_secret(), &other).status, 204);
    assert_eq!(deliver(&channel, &other, 0).await, (StatusCode::OK, true));
    assert_eq!(ledger.lines(), ["evt_1 Ada", "evt_2 Bo"]);
    assert!(health.check(question).await.is_ok());
}

/// Returns the status, and whether the answer was that of a replay.
async fn deliver(channel: &Channel, body: &str, age: i64) -> (StatusCode, bool) {
    let mut request = Request::builder().method(Method::POST).uri("/webhooks");
    for (name, value) in signed(own_secret(), body, age) {
        request = request.header(name, value);
    }
    let body = Full::from(body.to_owned()).map_err(|never| match never {});
    let request = request.body(Body::new(body)).unwrap();
    let mut channel = channel.clone();
    let response = channel.ready().await.unwrap().call(request).await.unwrap();
    assert_eq!(response.version(), http::Version::HTTP_2);
    let replayed = response.headers().contains_key("idempotent-replayed");
    (response.status(), replayed)
}
