//! LISTEN and NOTIFY, and work that goes on without them.

use axum::http::StatusCode;
use hookgate_inbox::{RunningWorkers, Workers};

use tokio_postgres::Client;

use super::*;
use crate::support::{client_at, migrated};

/// Workers that would find nothing by themselves while a test runs.
fn patient(inbox: &Inbox) -> RunningWorkers {
    work(inbox, Duration::from_secs(600))
}

fn work(inbox: &Inbox, poll: Duration) -> RunningWorkers {
    Workers::new(inbox)
        .poll_interval(poll)
        .start_handler(async |_: Delivery| StatusCode::OK)
        .unwrap()
}

async fn listening(client: &Client) -> Vec<i32> {
    let asked = "SELECT pid FROM pg_stat_activity WHERE query ILIKE 'listen %'";
    let rows = client.query(asked, &[]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

async fn until_listening(client: &Client) -> i32 {
    let began = Instant::now();
    loop {
        if let [process] = listening(client).await[..] {
            return process;
        }
        assert!(began.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_entry_of_another_process_wakes_the_workers() {
    let Some(server) = migrated(&["fsync=off"]).await else {
        return;
    };
    let client = client_at(&server.config()).await;
    // Two inboxes that share nothing but the table.
    let (mine, other) = (inbox(&server.config()), inbox(&server.config()));
    let _workers = patient(&mine);
    until_listening(&client).await;
    for number in 1..=5 {
        accept(&other, &format!("evt_{number}")).await.unwrap();
        until_done(&other, number).await;
    }
    assert_eq!(
        listening(&client).await.len(),
        1,
        "who only accepts does not listen"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_continues_while_the_listening_connection_is_replaced() {
    let Some(server) = migrated(&["fsync=off"]).await else {
        return;
    };
    let client = client_at(&server.config()).await;
    let (mine, other) = (inbox(&server.config()), inbox(&server.config()));
    let workers = work(&mine, Duration::from_millis(200));
    let first = until_listening(&client).await;
    let killed = client
        .query_one("SELECT pg_terminate_backend($1)", &[&first])
        .await
        .unwrap();
    assert!(killed.get::<_, bool>(0));
    accept(&other, "evt_1").await.unwrap();
    until_done(&other, 1).await;
    let second = until_listening(&client).await;
    assert_ne!(first, second);
    workers.shutdown(PATIENCE).await;

    // And is heard again.
    let _workers = patient(&mine);
    accept(&other, "evt_2").await.unwrap();
    until_done(&other, 2).await;
}

/// A role without the right to connect once more, or a pooler that can't listen: polling alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pool_of_the_programs_own_is_asked_in_the_interval() {
    let Some(server) = migrated(&["fsync=off"]).await else {
        return;
    };
    let config = Config::from_str(&server.config()).unwrap();
    let manager = deadpool_postgres::Manager::new(config, NoTls);
    let pool = deadpool_postgres::Pool::builder(manager).build().unwrap();
    let mine = Postgres::with_pool(pool).inbox("test").unwrap();
    let _workers = work(&mine, Duration::from_millis(200));
    let other = inbox(&server.config());
    for number in 1..=3 {
        accept(&other, &format!("evt_{number}")).await.unwrap();
        until_done(&other, number).await;
    }
    let client = client_at(&server.config()).await;
    assert!(listening(&client).await.is_empty());
}
