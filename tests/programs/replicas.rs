//! Ten replicas that share their claims, on Redis and on PostgreSQL: an event that comes to all of
//! them at once runs on one.

use std::convert::Infallible;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::Request;
use axum::{Router, extract::State, http::StatusCode, routing::post};
use hookgate::{DedupeStore, Event, Receiver, Secret};
use hookgate_postgres::{Postgres, PostgresStore, Tls, migrate};
use hookgate_redis::RedisStore;
use hookgate_testing::{EventFactory, Signer};
use tokio::task::JoinSet;
use tower::ServiceExt;

const SECRET: &str = "whsec_made_up_for_ten_replicas";

/// On a managed server, with the features `tls` and `ring` of hookgate-redis, the URL is
/// `rediss://…`: the same line connects with TLS.
async fn on_redis(url: &str) -> Result<RedisStore, Box<dyn Error>> {
    let store = RedisStore::connect(url).await?.with_prefix("orders:");
    for finding in store.check().await?.found {
        eprintln!("redis: {finding}"); // a setting by which the server may forget ids
    }
    Ok(store)
}

/// On a managed server, with the features `postgres-tls` and `ring`, the URL ends in
/// `?sslmode=verify-full`: the same line connects with TLS.
async fn on_postgres(url: &str) -> Result<PostgresStore, Box<dyn Error>> {
    let (config, tls) = Tls::for_url(url)?;
    let (client, connection) = config.connect(tls.clone()).await?;
    tokio::spawn(connection);
    migrate(&client).await?;
    Ok(PostgresStore::new(&Postgres::new(config, tls), "orders"))
}

async fn on_event(State(runs): State<Arc<AtomicUsize>>, _: Event) -> StatusCode {
    runs.fetch_add(1, Ordering::Relaxed);
    StatusCode::NO_CONTENT
}

/// One replica.
fn replica(store: impl DedupeStore, runs: &Arc<AtomicUsize>) -> Result<Router, Box<dyn Error>> {
    let receiver = Receiver::builder()
        .secret(Secret::new(SECRET)?)
        .store(store)
        .build()?;
    let route = post(on_event).layer(receiver.layer());
    Ok(Router::new()
        .route("/webhooks", route)
        .with_state(runs.clone()))
}

/// Delivers as the service does: where the answer is 503, again a little later.
async fn deliver(replica: Router, request: Request<Bytes>) -> Result<StatusCode, Infallible> {
    loop {
        let answer = replica.clone().oneshot(request.clone().map(Body::from));
        match answer.await?.status() {
            StatusCode::SERVICE_UNAVAILABLE => tokio::time::sleep(Duration::from_millis(50)).await,
            status => return Ok(status),
        }
    }
}

/// Delivers an event to all replicas at once, two times to each.
async fn deliver_to_all(replicas: &[Router], runs: &AtomicUsize) -> Result<(), Box<dyn Error>> {
    let signer = Signer::new(Secret::new(SECRET)?);
    let request = signer.request("/webhooks", EventFactory::new().row_created());
    let mut copies = JoinSet::new();
    for replica in replicas.iter().chain(replicas).cloned() {
        copies.spawn(deliver(replica, request.clone()));
    }
    let mut answers = Vec::new();
    for answer in copies.join_all().await {
        answers.push(answer?.as_u16());
    }
    answers.sort_unstable();
    // One replica ran it. At all others it is a duplicate.
    assert_eq!(runs.swap(0, Ordering::Relaxed), 1);
    assert_eq!(
        answers,
        [vec![200; 2 * replicas.len() - 1], vec![204]].concat()
    );
    Ok(())
}

pub async fn run(redis: &str, postgres: &str) -> Result<(), Box<dyn Error>> {
    let runs = Arc::default();
    let (mut by_redis, mut by_postgres) = (Vec::new(), Vec::new());
    for _ in 0..10 {
        // Each has a connection of its own, as a process of its own has.
        by_redis.push(replica(on_redis(redis).await?, &runs)?);
        by_postgres.push(replica(on_postgres(postgres).await?, &runs)?);
    }
    deliver_to_all(&by_redis, &runs).await?;
    deliver_to_all(&by_postgres, &runs).await
}

#[tokio::main]
pub async fn main() -> Result<(), Box<dyn Error>> {
    run(
        &std::env::var("REDIS_URL")?,
        &std::env::var("DATABASE_URL")?,
    )
    .await
}
