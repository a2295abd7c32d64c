//! A pool that the inbox shares with its handlers.

use std::collections::HashMap;

use deadpool_postgres::{Manager, Pool};

use super::*;
use crate::support::{migrated, needed, unflushed, until, value};

const EVENTS: usize = 50;
const LEASE: Duration = Duration::from_secs(3);
/// With 25 handlers on 4 connections the last one waits for longer than a lease.
const HELD: Duration = Duration::from_millis(700);

type Runs = Arc<Mutex<HashMap<String, u32>>>;

fn pool(config: &str) -> Pool {
    let manager = Manager::new(Config::from_str(config).unwrap(), NoTls);
    Pool::builder(manager).max_size(4).build().unwrap()
}

/// Workers whose handlers hold connections of the pool that their inbox is on.
fn work(inbox: &Inbox, pool: Pool, runs: &Runs) -> RunningWorkers {
    let runs = Arc::clone(runs);
    let handler = async move |event: Delivery| {
        let id = event.event_id().to_owned();
        *runs.lock().unwrap().entry(id).or_default() += 1;
        let _held = pool.get().await.unwrap();
        tokio::time::sleep(HELD).await;
        StatusCode::OK
    };
    Workers::new(inbox)
        .concurrency(EVENTS / 2)
        .lease(LEASE)
        .poll_interval(Duration::from_millis(100))
        .start_handler(handler)
        .unwrap()
}

/// Two processes, each with its own pool, so that a lease that one of them loses is taken by the
/// other.
// fault F15: handlers that hold all connections of a shared pool keep leases from being renewed: events run twice
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn handlers_that_hold_every_connection_of_a_shared_pool_cost_no_lease() {
    let server = needed!(migrated(&["fsync=off"]).await);
    let filling = inbox(&server.config());
    for number in 0..EVENTS {
        accept(&filling, &format!("evt_{number}")).await.unwrap();
    }
    let runs = Runs::default();
    let workers = [(); 2].map(|()| {
        let pool = pool(&server.config());
        let inbox = Postgres::with_pool(pool.clone()).inbox("test").unwrap();
        work(&inbox, pool, &runs)
    });
    until_done(&filling, EVENTS as u64).await;
    for workers in workers {
        workers.shutdown(PATIENCE).await;
    }
    let runs = runs.lock().unwrap();
    let again: Vec<_> = runs.iter().filter(|(_, runs)| **runs > 1).collect();
    assert!(again.is_empty(), "{again:?} ran more than once");
    assert_eq!(runs.len(), EVENTS);
}

/// The handlers hold every connection until the lease was renewed on others, although those that
/// were kept for it were ended before.
// fault F15: handlers that hold all connections of a shared pool keep leases from being renewed: events run twice
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_connection_that_is_kept_for_renewals_is_replaced_when_it_breaks() {
    const DUE: &str = "SELECT due_at::text FROM hookgate_inbox";
    let (server, client) = needed!(unflushed().await);
    let pool = pool(&server.config());
    let mine = Postgres::with_pool(pool.clone()).inbox("test").unwrap();
    accept(&mine, "evt_1").await.unwrap();
    let [begun, go_on] = [(); 2].map(|()| Arc::new(tokio::sync::Notify::new()));
    let (told, awaited) = (Arc::clone(&begun), Arc::clone(&go_on));
    let workers = Workers::new(&mine)
        .concurrency(1)
        .lease(LEASE)
        .start_handler(async move |_: Delivery| {
            told.notify_one();
            awaited.notified().await;
            StatusCode::OK
        })
        .unwrap();
    begun.notified().await;
    let ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
    client.batch_execute(ended).await.unwrap();
    // Three are taken by others for good, and the fourth for a moment.
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(pool.get().await.unwrap());
    }
    drop(pool.get().await.unwrap());
    for round in 0..2 {
        let due: String = value(&client, DUE).await;
        until("it is renewed", async || {
            value::<String>(&client, DUE).await != due
        })
        .await;
        if round == 0 {
            // From now on nothing is left for anyone else.
            held.push(pool.get().await.unwrap());
        }
    }
    go_on.notify_one();
    until_done(&inbox(&server.config()), 1).await;
    assert_eq!(held.len(), 4);
    drop(held);
    workers.shutdown(PATIENCE).await;
}
