//! Two programs in one schema, each under its name.

use hookgate::{
    DedupeStore,
    dedupe::{ClaimValues, Claimed, ClaimedIn, EventKey, StoreErrorKind},
};
use hookgate_postgres::PostgresStore;

use super::super::{claimed_in, token};
use super::*;
use crate::support::{done_by, migrated, needed, says, unflushed, until};

fn named(config: &str, name: &str) -> Inbox {
    patient(config).inbox(name).unwrap()
}

fn work(inbox: &Inbox, is_serial: bool) -> (RunningWorkers, Handled) {
    let poll = Duration::from_millis(100);
    super::work(inbox, |workers| {
        serial(workers.poll_interval(poll), is_serial)
    })
}

// fault F17: two programs in one schema silence each other's events and run each other's entries
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_of_two_names_on_one_table_see_nothing_of_each_other() {
    let server = needed!(migrated(&["fsync=off"]).await);
    let [orders, members] = ["orders", "members"].map(|name| named(&server.config(), name));
    for is_serial in [false, true] {
        let id = |of: &str| format!("evt_{of}_{is_serial}");
        let (workers, handled) = work(&members, is_serial);
        accept(&orders, &id("orders")).await.unwrap();
        // The same id comes to both, and is new to both.
        assert_eq!(accept(&orders, &id("both")).await.unwrap(), Accepted::New);
        assert_eq!(accept(&members, &id("both")).await.unwrap(), Accepted::New);
        accept(&members, &id("members")).await.unwrap();
        until("both are handled", async || {
            handled.lock().unwrap().len() >= 2
        })
        .await;
        // Due entries were looked for once more before the workers ended.
        tokio::time::sleep(Duration::from_millis(300)).await;
        workers.shutdown(PATIENCE).await;
        let mut handled = handled.lock().unwrap().clone();
        handled.sort();
        assert_eq!(handled, [id("both"), id("members")], "serial: {is_serial}");
    }
    for (inbox, expected) in [(&orders, (4, 0)), (&members, (0, 4))] {
        let stats = inbox.stats().await.unwrap();
        assert_eq!((stats.queued, stats.done), expected);
    }

    // An operator of the one reaches none of the other's entries, by state, by event or by number.
    assert_eq!(members.purge(Selection::all()).await.unwrap(), 4);
    assert_eq!(members.retry(Selection::all()).await.unwrap(), 0);
    let dead = members.dead_letter(Selection::all(), "no").await;
    assert_eq!(dead.unwrap(), 0);
    let listed = orders.list(Selection::all(), Page::first(9)).await.unwrap();
    assert_eq!(listed.len(), 4);
    assert!(members.show(listed[0].id).await.unwrap().is_none());
    assert!(orders.show(listed[0].id).await.unwrap().is_some());
}

// fault F17: two programs in one schema silence each other's events and run each other's entries
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_under_one_name_hides_no_id_of_another_name() {
    let (server, mut client) = needed!(unflushed().await);
    let postgres = patient(&server.config());
    let (key, lease) = (EventKey::new("default", "evt_1"), Duration::from_secs(60));
    for name in ["orders", "members", "default"] {
        let store = PostgresStore::new(&postgres, name);
        let token = token();
        let claimed = store.claim(&key, token, lease).await.unwrap();
        assert_eq!(claimed, Claimed::Fresh, "{name}");
        store.commit(&key, token, RETAIN).await.unwrap();
        // A replica has the same name, and shares.
        let replica = PostgresStore::new(&postgres, name);
        let found = replica.claim(&key, self::token(), lease).await;
        assert_eq!(found.unwrap(), done_by(token), "{name}");

        let values = ClaimValues::new(name, key, b"{}", RETAIN);
        for expected in [ClaimedIn::Fresh, ClaimedIn::Duplicate { same_body: true }] {
            let claimed = claimed_in(&mut client, &values).await;
            assert_eq!(claimed, expected, "{name}");
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
        says(&error, "1 to 63");
    }
    postgres.inbox(&long[..63]).unwrap();
}
