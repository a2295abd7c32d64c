//! Two programs in one schema, each under its name.

use std::sync::{Arc, Mutex};

use axum::http::StatusCode;
use hookgate::{
    DedupeStore,
    dedupe::{ClaimToken, ClaimValues, Claimed, ClaimedIn, EventKey, StoreErrorKind},
};
use hookgate_inbox::{RunningWorkers, Workers};
use hookgate_postgres::{PostgresStore, claim_values_in};

use super::*;
use crate::support::{client_at, migrated};

fn named(config: &str, name: &str) -> Inbox {
    patient(config).inbox(name).unwrap()
}

type Handled = Arc<Mutex<Vec<String>>>;

fn work(inbox: &Inbox, is_serial: bool) -> (RunningWorkers, Handled) {
    let handled = Handled::default();
    let seen = Arc::clone(&handled);
    let mut workers = Workers::new(inbox).poll_interval(Duration::from_millis(100));
    if is_serial {
        workers = workers.serial_by_row();
    }
    let handler = async move |event: Delivery| {
        seen.lock().unwrap().push(event.event_id().to_owned());
        StatusCode::OK
    };
    (workers.start_handler(handler).unwrap(), handled)
}

// fault F17: two programs in one schema silence each other's events and run each other's entries
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_of_two_names_on_one_table_see_nothing_of_each_other() {
    let Some(server) = migrated(&["fsync=off"]).await else {
        return;
    };
    let [orders, members] = ["orders", "members"].map(|name| named(&server.config(), name));
    for is_serial in [false, true] {
        let id = |of: &str| format!("evt_{of}_{is_serial}");
        let (workers, handled) = work(&members, is_serial);
        accept(&orders, &id("orders")).await.unwrap();
        // The same id comes to both, and is new to both.
        assert_eq!(accept(&orders, &id("both")).await.unwrap(), Accepted::New);
        assert_eq!(accept(&members, &id("both")).await.unwrap(), Accepted::New);
        accept(&members, &id("members")).await.unwrap();
        let began = Instant::now();
        while handled.lock().unwrap().len() < 2 {
            assert!(began.elapsed() < PATIENCE);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // Due entries were looked for once more before the workers ended.
        tokio::time::sleep(Duration::from_millis(300)).await;
        workers.shutdown(PATIENCE).await;
        let mut handled = handled.lock().unwrap().clone();
        handled.sort();
        assert_eq!(handled, [id("both"), id("members")], "serial: {is_serial}");
    }
    let [of_orders, of_members] = [
        orders.stats().await.unwrap(),
        members.stats().await.unwrap(),
    ];
    assert_eq!((of_orders.queued, of_orders.done), (4, 0));
    assert_eq!((of_members.queued, of_members.done), (0, 4));

    // An operator of the one reaches none of the other's entries, by state, by event or by number.
    assert_eq!(members.purge(Selection::all()).await.unwrap(), 4);
    assert_eq!(members.retry(Selection::all()).await.unwrap(), 0);
    assert_eq!(
        members.dead_letter(Selection::all(), "no").await.unwrap(),
        0
    );
    let listed = orders.list(Selection::all(), Page::first(9)).await.unwrap();
    assert_eq!(listed.len(), 4);
    assert!(members.show(listed[0].id).await.unwrap().is_none());
    assert!(orders.show(listed[0].id).await.unwrap().is_some());
}

// fault F17: two programs in one schema silence each other's events and run each other's entries
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_under_one_name_hides_no_id_of_another_name() {
    let Some(server) = migrated(&["fsync=off"]).await else {
        return;
    };
    let postgres = Postgres::new(Config::from_str(&server.config()).unwrap(), NoTls)
        .with_timeout(Duration::from_secs(30));
    let key = EventKey::new("default", "evt_1");
    let lease = Duration::from_secs(60);
    let mut client = client_at(&server.config()).await;
    for name in ["orders", "members", "default"] {
        let store = PostgresStore::new(&postgres, name);
        let token = ClaimToken::new(b"{}");
        let claimed = store.claim(&key, token, lease).await.unwrap();
        assert_eq!(claimed, Claimed::Fresh, "{name}");
        store.commit(&key, token, RETAIN).await.unwrap();
        // A replica has the same name, and shares.
        let replica = PostgresStore::new(&postgres, name);
        let found = replica.claim(&key, ClaimToken::new(b"{}"), lease).await;
        assert_eq!(
            found.unwrap(),
            Claimed::Done {
                body_mark: token.body_mark()
            },
            "{name}"
        );

        let values = ClaimValues::new(name, key, b"{}", RETAIN);
        for expected in [ClaimedIn::Fresh, ClaimedIn::Duplicate { same_body: true }] {
            let transaction = client.transaction().await.unwrap();
            let claimed = claim_values_in(&transaction, &values).await.unwrap();
            assert_eq!(claimed, expected, "{name}");
            transaction.commit().await.unwrap();
        }
    }
}

// fault F17: two programs in one schema silence each other's events and run each other's entries
#[tokio::test]
async fn what_is_not_a_name_of_an_inbox_is_refused_at_the_start() {
    let postgres = Postgres::new(Config::from_str("host=127.0.0.1").unwrap(), NoTls);
    let long = "x".repeat(64);
    for name in ["", " ", "a b", "a\0", "\u{fc}", &long] {
        let error = postgres.inbox(name).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Setting, "{name:?}");
        assert!(error.to_string().contains("1 to 63"), "{error}");
    }
    postgres.inbox(&long[..63]).unwrap();
}
