//! LISTEN and NOTIFY, and work that goes on without them.

use tokio_postgres::Client;

use super::*;
use crate::support::{client_at, migrated, needed, unflushed, until, value};

/// Workers that would find nothing by themselves while a test runs.
fn patient(inbox: &Inbox) -> RunningWorkers {
    work(inbox, Duration::from_secs(600))
}

fn work(inbox: &Inbox, poll: Duration) -> RunningWorkers {
    super::work(inbox, |workers| workers.poll_interval(poll)).0
}

async fn listening(client: &Client) -> Vec<i32> {
    let asked = "SELECT pid FROM pg_stat_activity WHERE query ILIKE 'listen %'";
    let rows = client.query(asked, &[]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

async fn until_listening(client: &Client) -> i32 {
    let mut process = 0;
    until("one listens", async || match listening(client).await[..] {
        [one] => {
            process = one;
            true
        }
        _ => false,
    })
    .await;
    process
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_entry_of_another_process_wakes_the_workers() {
    let (server, client) = needed!(unflushed().await);
    // Two inboxes that share nothing but the table.
    let (mine, other) = (inbox(&server.config()), inbox(&server.config()));
    let _workers = patient(&mine);
    until_listening(&client).await;
    for number in 1..=5 {
        accept(&other, &format!("evt_{number}")).await.unwrap();
        until_done(&other, number).await;
    }
    let listening = listening(&client).await.len();
    assert_eq!(listening, 1, "who only accepts does not listen");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_continues_while_the_listening_connection_is_replaced() {
    let (server, client) = needed!(unflushed().await);
    let (mine, other) = (inbox(&server.config()), inbox(&server.config()));
    let workers = work(&mine, Duration::from_millis(200));
    let first = until_listening(&client).await;
    let kill = format!("SELECT pg_terminate_backend({first})");
    assert!(value::<bool>(&client, &kill).await);
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
    let server = needed!(migrated(&["fsync=off"]).await);
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
