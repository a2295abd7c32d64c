//! An inbox whose handler claims in its own transaction: one effect, however long an entry waits
//! after its handler has committed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use hookgate::dedupe::ClaimedIn;
use hookgate::{
    Delivery,
    clock::{ManualClock, UnixSeconds},
    sink::{Accepted, Sink},
};
use hookgate_inbox::{Backoff, EntryState, Inbox, Page, RunningWorkers, Selection, Workers};
use hookgate_postgres::{Postgres, claim_in, forget, migrate};
use hookgate_sqlite::InboxOptions;
use hookgate_testing::delivery;
use tokio::runtime::Runtime;
use tokio::sync::Notify;
use tokio_postgres::{Config, NoTls};

use crate::support::{Folder, PostgresServer, Skew, client_at, says, until, value};

const PATIENCE: Duration = Duration::from_secs(60);
const HOUR: u64 = 3_600;
/// Of the inbox, of the claims and of the workers.
const RETAIN: Duration = Duration::from_secs(48 * HOUR);

/// A server and an inbox whose clocks are set together.
struct Shop {
    server: PostgresServer,
    skew: Skew,
    clock: ManualClock,
    start: i64,
    folder: Folder,
}

impl Shop {
    async fn start() -> Option<Self> {
        let folder = Folder::new();
        let skew = Skew::within(folder.path())?;
        let server = PostgresServer::start_in(&["fsync=off"], skew.environment(&[]))?;
        let client = client_at(&server.config()).await;
        migrate(&client).await.unwrap();
        let orders = "CREATE TABLE orders (event_id text NOT NULL)";
        client.batch_execute(orders).await.unwrap();
        let start = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs() as i64;
        Some(Self {
            server,
            skew,
            clock: ManualClock::at(UnixSeconds::new(start)),
            start,
            folder,
        })
    }

    fn on_sqlite(&self) -> Inbox {
        let options = InboxOptions::default().clock(self.clock.clone());
        options.open(self.folder.path().join("inbox.db")).unwrap()
    }

    fn on_postgres(&self) -> Inbox {
        let config = self.server.config().parse::<Config>().unwrap();
        let postgres = Postgres::new(config, NoTls).with_timeout(Duration::from_secs(30));
        postgres.inbox("orders").unwrap()
    }

    /// Sets the time to so many seconds after the start, by both clocks; records whose retention
    /// has ended are deleted.
    async fn set(&self, seconds: u64) {
        self.skew.set(seconds as i64);
        self.clock
            .set_wall(UnixSeconds::new(self.start + seconds as i64));
        let client = client_at(&self.server.config()).await;
        let time = "SELECT extract(epoch FROM clock_timestamp())::bigint";
        let end = self.start + seconds as i64;
        until("its clock follows", async || {
            value::<i64>(&client, time).await >= end
        })
        .await;
        while forget(&client, 1_000).await.unwrap() == 1_000 {}
    }

    /// Workers in a process of their own, as far as their end goes: with the runtime they are gone
    /// without a report. Where `stops`, each handler commits, says so, and comes to no end.
    fn work(
        &self,
        inbox: &Inbox,
        max_tries: u32,
        stops: Option<Arc<Notify>>,
    ) -> (Runtime, RunningWorkers) {
        let runtime = Runtime::new().unwrap();
        let config = self.server.config();
        let handler = async move |delivery: Delivery| {
            let mut client = client_at(&config).await;
            let transaction = client.transaction().await.unwrap();
            let claimed = claim_in(&transaction, "orders", &delivery, RETAIN).await;
            match claimed.unwrap() {
                ClaimedIn::Fresh => {}
                ClaimedIn::Running => return StatusCode::SERVICE_UNAVAILABLE,
                _ => return StatusCode::OK,
            }
            let order = "INSERT INTO orders VALUES ($1)";
            let written = transaction.execute(order, &[&delivery.event_id()]).await;
            written.unwrap();
            transaction.commit().await.unwrap();
            if let Some(stops) = stops {
                stops.notify_one();
                std::future::pending::<()>().await;
            }
            if delivery.event_id().contains("dead") {
                StatusCode::INTERNAL_SERVER_ERROR // its commit's answer was lost, as far as it knows
            } else {
                StatusCode::OK
            }
        };
        let workers = {
            let _within = runtime.enter();
            Workers::new(inbox)
                .max_tries(max_tries)
                .claim_retention(RETAIN)
                .poll_interval(Duration::from_millis(50))
                .backoff(Backoff::exponential(
                    Duration::from_secs(1),
                    Duration::from_secs(1),
                ))
                .start_handler(handler)
                .unwrap()
        };
        (runtime, workers)
    }

    async fn orders(&self, event: &str) -> i64 {
        let client = client_at(&self.server.config()).await;
        let count = "SELECT count(*) FROM orders WHERE event_id = $1";
        client.query_one(count, &[&event]).await.unwrap().get(0)
    }

    async fn until_orders(&self, event: &str, orders: i64) {
        let are = async || self.orders(event).await == orders;
        until(format!("{event} is run"), are).await;
    }
}

fn event(id: &str) -> Delivery {
    let body = format!(
        r#"{{"id":"{id}","type":"page.created","createdAt":"2026-11-21T09:30:00Z","workspaceId":"ws_1","data":{{}}}}"#
    );
    delivery(body).unwrap()
}

async fn accept(inbox: &Inbox, id: &str) -> Accepted {
    inbox.accept(&event(id), RETAIN).await.unwrap()
}

async fn state(inbox: &Inbox, id: &str) -> (EntryState, String) {
    let which = Selection::all().event_id(id);
    let mut listed = inbox.list(which, Page::first(2)).await.unwrap();
    // Done so late, its id is forgotten at once.
    assert!(!listed.is_empty(), "{id} was run");
    let listed = listed.remove(0);
    (listed.state, listed.last_error.unwrap_or_default())
}

async fn until_state(inbox: &Inbox, id: &str, awaited: EntryState) -> String {
    let began = Instant::now();
    loop {
        let (state, error) = state(inbox, id).await;
        if state == awaited {
            return error;
        }
        assert!(began.elapsed() < PATIENCE, "{id} is {state:?}: {error}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Ends the process of workers. A thread of it that a busy machine lets run on could lease the next
/// entry, and never run it.
fn gone(process: Runtime) {
    tokio::task::block_in_place(|| process.shutdown_timeout(PATIENCE));
}

async fn one_effect_however_long(shop: &Shop, inbox: Inbox) {
    // Its handler commits, and its process dies before it says so.
    assert_eq!(accept(&inbox, "evt_died").await, Accepted::New);
    let committed = Arc::new(Notify::new());
    let (process, workers) = shop.work(&inbox, 30, Some(Arc::clone(&committed)));
    let told = tokio::time::timeout(PATIENCE, committed.notified()).await;
    told.unwrap();
    drop(workers);
    gone(process);
    assert_eq!(shop.orders("evt_died").await, 1);

    // Another one has committed as well, but fails, and is a dead letter; a third is done.
    let (process, workers) = shop.work(&inbox, 1, None);
    for id in ["evt_dead", "evt_done"] {
        assert_eq!(accept(&inbox, id).await, Accepted::New);
    }
    until_state(&inbox, "evt_dead", EntryState::Dead).await;
    until_state(&inbox, "evt_done", EntryState::Done).await;
    workers.shutdown(PATIENCE).await;
    gone(process);

    // Accepted, while nothing works it off.
    assert_eq!(accept(&inbox, "evt_new").await, Accepted::New);
    // As late as the sender comes again: known to the inbox, and to the claims.
    shop.set(26 * HOUR + 46 * 60 + 30).await;
    let again = accept(&inbox, "evt_done").await;
    assert_eq!(again, Accepted::Duplicate { same_body: true });
    let mut client = client_at(&shop.server.config()).await;
    let transaction = client.transaction().await.unwrap();
    let known = claim_in(&transaction, "orders", &event("evt_done"), RETAIN).await;
    assert_eq!(known.unwrap(), ClaimedIn::Duplicate { same_body: true });
    drop(transaction);

    // Days later the claims are forgotten, and workers start again.
    shop.set(72 * HOUR).await;
    let retried = inbox.retry(Selection::all().event_id("evt_dead")).await;
    assert_eq!(retried.unwrap(), 1);
    let (process, workers) = shop.work(&inbox, 30, None);
    // An entry that never ran is run, however old it is. Done so late, its id is forgotten at once:
    // the sender has long given up.
    shop.until_orders("evt_new", 1).await;
    for id in ["evt_died", "evt_dead"] {
        let error = until_state(&inbox, id, EntryState::Dead).await;
        assert_eq!(shop.orders(id).await, 1, "{id} has a second effect");
        says(&error, "--even-if-older-than-claims");
    }
    // Only an explicit command of the operator makes a second effect possible.
    let which = Selection::all().event_id("evt_died");
    let retried = inbox.retry_even_if_older_than_claims(which).await;
    assert_eq!(retried.unwrap(), 1);
    shop.until_orders("evt_died", 2).await;
    drop(workers);
    process.shutdown_background();
}

// fault F13: a handler commits and its process dies; days later the claim is forgotten, and the entry has a second effect
#[tokio::test(flavor = "multi_thread")]
async fn an_entry_on_sqlite_has_one_effect_however_long_it_waits() {
    if let Some(shop) = Shop::start().await {
        let inbox = shop.on_sqlite();
        one_effect_however_long(&shop, inbox).await;
    }
}

// fault F13: a handler commits and its process dies; days later the claim is forgotten, and the entry has a second effect
#[tokio::test(flavor = "multi_thread")]
async fn an_entry_on_postgres_has_one_effect_however_long_it_waits() {
    if let Some(shop) = Shop::start().await {
        let inbox = shop.on_postgres();
        one_effect_however_long(&shop, inbox).await;
    }
}
