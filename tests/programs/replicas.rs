//! Ten replicas that share their claims, on Redis and on PostgreSQL: an event that comes to all of them at once runs on one.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::Body;
use axum::{Router, extract::State, http::StatusCode, routing::post};
use hookgate::postgres::{Postgres, Tls, migrate};
use hookgate::{DedupeStore, Event, PostgresStore, Receiver, RedisStore, Secret};
use hookgate_testing::{EventFactory, Signer};
use tower::ServiceExt;

const SECRET: &str = "whsec_made_up_for_ten_replicas";

/// On a managed server, with feature `redis-tls`, the URL is `rediss://…`: the same line connects with TLS.
async fn on_redis(url: &str) -> Result<RedisStore, Box<dyn Error>> {
    let store = RedisStore::connect(url).await?.with_prefix("orders:");
    for finding in store.check().await?.iter() {
        eprintln!("redis: {finding}"); // a setting by which the server may forget ids
    }
    Ok(store)
}

/// On a managed server, with feature `postgres-tls`, the URL ends in `?sslmode=verify-full`: the same line connects with TLS.
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
    let receiver = Receiver::builder().secret(Secret::new(SECRET)?).store(store).build()?;
    let route = post(on_event).layer(receiver.layer());
    Ok(Router::new().route("/webhooks", route).with_state(runs.clone()))
}

/// Delivers one event to all replicas at once, and to all of them again.
async fn deliver_to_all(replicas: Vec<Router>, runs: &AtomicUsize) -> Result<(), Box<dyn Error>> {
    let event = EventFactory::new().row_created();
    let signer = Signer::new(Secret::new(SECRET)?);
    let mut copies = tokio::task::JoinSet::new();
    for replica in replicas.iter().chain(&replicas).cloned() {
        copies.spawn(replica.oneshot(signer.request("/webhooks", &event).map(Body::from)));
    }
    let mut answers: Vec<_> = copies.join_all().await.into_iter().map(|answer| answer.map(|answer| answer.status().as_u16())).collect::<Result<_, _>>()?;
    answers.sort();
    // One replica runs it. A copy waits for that and is a duplicate, or is answered 503 for the sender to try again.
    assert_eq!(runs.swap(0, Ordering::Relaxed), 1);
    assert!(answers.contains(&204) && answers.iter().all(|answer| [200, 204, 503].contains(answer)), "{answers:?}");
    // Some time later it is a duplicate everywhere.
    for replica in replicas {
        let again = replica.oneshot(signer.request("/webhooks", &event).map(Body::from)).await?;
        assert_eq!(again.status(), 200);
        assert_eq!(again.headers()["idempotent-replayed"], "true");
    }
    assert_eq!(runs.load(Ordering::Relaxed), 0);
    Ok(())
}

pub async fn run(redis: &str, postgres: &str) -> Result<(), Box<dyn Error>> {
    let runs = Arc::default();
    let mut replicas = Vec::new();
    for _ in 0..10 {
        replicas.push(replica(on_redis(redis).await?, &runs)?); // a connection of its own, as in a process of its own
    }
    deliver_to_all(replicas, &runs).await?;
    let mut replicas = Vec::new();
    for _ in 0..10 {
        replicas.push(replica(on_postgres(postgres).await?, &runs)?);
    }
    deliver_to_all(replicas, &runs).await
}

#[tokio::main]
pub async fn main() -> Result<(), Box<dyn Error>> {
    run(&std::env::var("REDIS_URL")?, &std::env::var("DATABASE_URL")?).await
}
