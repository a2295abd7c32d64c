//! Scopes: which receivers of one store share their memory, and which are refused because no
//! setting says whether they should.

use std::sync::Arc;
use std::time::Duration;

use hookgate::{
    ConfigErrorKind, DedupeStore, Delivery, KeyRing, MemoryStore, Receiver, ReceiverBuilder,
    Secret, block_on,
    dedupe::RetrySchedule,
    lookup::Keys,
    receiver::{Admission, Claim},
};

use crate::support::*;

const LEDGER: &str = "whsec_made_up_for_the_ledger";
const THIRD: &str = "whsec_made_up_for_a_third_route";

fn key(secret: &str) -> Secret {
    Secret::new(secret).unwrap()
}

fn with(secret: &str) -> ReceiverBuilder {
    Receiver::builder().secret(key(secret)).clock(manual())
}

/// A provider that knows no subscription.
#[cfg(feature = "lookup")]
async fn nothing(
    _: hookgate::lookup::SubscriptionId,
) -> Result<Option<Secret>, hookgate::ConfigError> {
    Ok(None)
}

fn kind(builder: ReceiverBuilder) -> Result<(), ConfigErrorKind> {
    builder.build().map(drop).map_err(|error| error.kind())
}

const TAKEN: Result<(), ConfigErrorKind> = Err(ConfigErrorKind::UnusableScope);

/// Two routes of one app, with the secrets of two subscriptions and one store.
async fn two_routes_on(store: impl DedupeStore + Clone) {
    let orders = with(SECRET).store(store.clone()).build().unwrap();
    // Without a name for its scope, the holder of either secret could use up the other's ids.
    let error = with(LEDGER).store(store.clone()).build().unwrap_err();
    assert_eq!(error.kind(), ConfigErrorKind::UnusableScope);
    assert!(error.to_string().contains(".scope("), "{error}");
    assert!(!format!("{error:?}").contains("whsec_"), "{error:?}");

    let ledger = with(LEDGER).scope("ledger").store(store).build().unwrap();
    let (first, second) = (Probe::new(), Probe::new());
    let [orders, ledger] = [app(&orders, &first), app(&ledger, &second)];
    let id = event("evt_1");
    let to_orders = Sent::at(NOW, id.clone());
    let to_ledger = Sent::signed(LEDGER, NOW, id);
    assert_eq!(ask(&orders, &to_orders).await.status, 204);
    assert_eq!(ask(&ledger, &to_ledger).await.status, 204, "not silenced");
    assert!(ask(&orders, &to_orders).await.is_replay());
    assert!(ask(&ledger, &to_ledger).await.is_replay());
    assert_eq!((first.started(), second.started()), (1, 1));
}

// fault F2: receivers with secrets of their own on one store silence each other's events
#[tokio::test]
async fn two_secrets_on_one_store_need_a_name_for_their_scope() {
    two_routes_on(MemoryStore::default()).await;
    two_routes_on(MemoryStore::default()).await;
    two_routes_on(Arc::new(MemoryStore::default())).await;
    let boxed: Arc<dyn DedupeStore> = Arc::new(MemoryStore::default());
    two_routes_on(boxed).await;
}

fn deliver(receiver: &Receiver, secret: &str, id: &str, webhook: Option<&str>) -> Delivery {
    let sent = Sent::signed(secret, NOW, event(id));
    let sent = match webhook {
        Some(webhook) => sent.with("X-Service-Webhook-Id", webhook),
        None => sent,
    };
    sent.delivered_to(receiver)
}

fn claim(receiver: &Receiver, secret: &str) -> Claim {
    let delivery = deliver(receiver, secret, "evt_1", None);
    match block_on(receiver.admit(&delivery)).unwrap() {
        Admission::Fresh(claim) => claim,
        other => panic!("{other:?}"),
    }
}

// fault F2: receivers with secrets of their own on one store silence each other's events
#[test]
fn a_scope_is_free_once_its_receiver_and_all_that_came_of_it_are_gone() {
    let store = MemoryStore::default();
    let ledger = || kind(with(LEDGER).store(store.clone()));
    let orders = with(SECRET).store(store.clone()).build().unwrap();
    let copy = orders.clone();
    drop(orders);
    assert_eq!(ledger(), TAKEN, "a clone lives");
    let layer = copy.layer();
    drop(copy);
    assert_eq!(ledger(), TAKEN, "a layer lives");
    drop(layer);
    assert_eq!(ledger(), Ok(()));

    let orders = with(SECRET).store(store.clone()).build().unwrap();
    let run = claim(&orders, SECRET);
    drop(orders);
    assert_eq!(ledger(), TAKEN, "a run lives");
    block_on(run.commit()).unwrap();
    assert_eq!(ledger(), Ok(()));

    // One that could not be built leaves nothing behind.
    let unbuilt = with(SECRET).store(store.clone()).max_runs(0);
    assert!(unbuilt.build().is_err());
    assert_eq!(ledger(), Ok(()));
}

// fault F2: receivers with secrets of their own on one store silence each other's events
#[test]
fn receivers_with_a_key_in_common_work_side_by_side() {
    let store = MemoryStore::default();
    let old = with(SECRET).store(store.clone()).build().unwrap();
    let again = with(SECRET).store(store.clone()).build().unwrap();
    let both = KeyRing::named("new", key(LEDGER)).unwrap();
    let both = both.with_key("old", key(SECRET)).unwrap();
    let rotating = Receiver::builder().key_ring(both).clock(manual());
    let rotating = rotating.store(store.clone());
    let rotating = rotating.build().unwrap();

    block_on(claim(&old, SECRET).commit()).unwrap();
    for (receiver, secret) in [(&again, SECRET), (&rotating, SECRET), (&rotating, LEDGER)] {
        let copy = deliver(receiver, secret, "evt_1", None);
        let found = block_on(receiver.admit(&copy)).unwrap();
        assert!(matches!(found, Admission::Replayed { same_body: true }));
    }
    // The end of the rotation, with the receiver of its beginning still there.
    let new = with(LEDGER).store(store.clone()).build().unwrap();
    assert_eq!(kind(with(THIRD).store(store.clone())), TAKEN);

    // Keys that two receivers share stay the same, whatever their replacement.
    drop((old, again, rotating, new));
    let keys = Keys::single(key(SECRET));
    let shared = || Receiver::builder().keys(keys.clone()).store(store.clone());
    let _first = shared().build().unwrap();
    keys.replace(key(LEDGER)).unwrap();
    assert_eq!(kind(shared()), Ok(()));
    assert_eq!(kind(with(SECRET).store(store)), TAKEN);
}

// fault F2: receivers with secrets of their own on one store silence each other's events
#[test]
fn a_scope_that_is_named_may_have_several_secrets() {
    let store = MemoryStore::default();
    let _orders = with(SECRET).store(store.clone()).build().unwrap();
    let on = |builder: ReceiverBuilder| kind(builder.store(store.clone()));
    assert_eq!(on(with(LEDGER).scope("default")), Ok(()));
    let ring = KeyRing::new(key(LEDGER)).with_scope("default").unwrap();
    assert_eq!(on(Receiver::builder().key_ring(ring)), Ok(()));
    // Those of a map are named by their subscriptions, those of a provider too.
    let map = [("wh_1", key(LEDGER)), ("wh_2", key(THIRD))];
    assert_eq!(on(Receiver::builder().subscriptions(map)), Ok(()));
    #[cfg(feature = "lookup")]
    assert_eq!(on(Receiver::builder().provider(nothing)), Ok(()));
    // Another store, another memory. Without one there is none to share.
    assert_eq!(kind(with(LEDGER).store(MemoryStore::default())), Ok(()));
    assert_eq!(kind(with(LEDGER).without_deduplication()), Ok(()));
    assert_eq!(on(with(LEDGER)), TAKEN);
}

#[test]
fn a_scope_is_named_once_and_for_one_ring() {
    let beside = Err(ConfigErrorKind::UnusableScope);
    let on = |builder: ReceiverBuilder| kind(builder.scope("ledger").store(MemoryStore::default()));
    let named = KeyRing::new(key(LEDGER)).with_scope("books").unwrap();
    assert_eq!(on(with(LEDGER)), Ok(()));
    assert_eq!(on(Receiver::builder().key_ring(named)), beside);
    let map = [("wh_1", key(LEDGER))];
    assert_eq!(on(Receiver::builder().subscriptions(map)), beside);
    let keys = Keys::single(key(LEDGER));
    assert_eq!(on(Receiver::builder().keys(keys)), beside);
    #[cfg(feature = "lookup")]
    assert_eq!(on(Receiver::builder().provider(nothing)), beside);
    assert_eq!(on(Receiver::builder()), Err(ConfigErrorKind::NoSecret));
    let blank = with(LEDGER).scope(" ").store(MemoryStore::default());
    assert_eq!(kind(blank), Err(ConfigErrorKind::UnusableName));
}

// fault F2: receivers with secrets of their own on one store silence each other's events
#[test]
fn moving_from_one_secret_to_subscriptions_keeps_what_was_remembered() {
    let store = MemoryStore::default();
    let before = with(SECRET).store(store.clone()).build().unwrap();
    block_on(claim(&before, SECRET).commit()).unwrap();

    let map = |first: KeyRing| {
        let rings = [("wh_1", first), ("wh_2", key(LEDGER).into())];
        let builder = Receiver::builder().subscriptions(rings).clock(manual());
        // Beside the old one, as in a deployment without a pause.
        builder.store(store.clone()).build().unwrap()
    };
    let kept = map(KeyRing::new(key(SECRET)).with_scope("default").unwrap());
    let copy = deliver(&kept, SECRET, "evt_1", Some("wh_1"));
    let found = block_on(kept.admit(&copy)).unwrap();
    assert!(matches!(found, Admission::Replayed { same_body: true }));
    let others = deliver(&kept, LEDGER, "evt_1", Some("wh_2"));
    let found = block_on(kept.admit(&others)).unwrap();
    assert!(matches!(found, Admission::Fresh(_)), "apart from the first");

    // Without the name it would have run once more.
    let forgets = map(key(SECRET).into());
    let copy = deliver(&forgets, SECRET, "evt_1", Some("wh_1"));
    let found = block_on(forgets.admit(&copy)).unwrap();
    assert!(matches!(found, Admission::Fresh(_)));
}

/// A store that keeps no list can't distinguish its receivers.
#[test]
fn a_store_without_a_list_compares_nothing() {
    #[derive(Debug, Clone)]
    struct Plain(MemoryStore);
    impl crate::store_proxy::StoreProxy for Plain {
        fn pass<'a, T: Send + Unpin + 'static>(
            &'a self,
            _: crate::store_proxy::Call,
            call_inner: impl FnOnce(&'a MemoryStore) -> hookgate::dedupe::StoreFuture<'a, T> + Send + 'a,
        ) -> hookgate::dedupe::StoreFuture<'a, T> {
            call_inner(&self.0)
        }
    }
    crate::store_proxy::store_proxy!(Plain);

    let store = Plain(MemoryStore::default());
    assert!(store.scopes_in_use().is_none());
    let _orders = with(SECRET).store(store.clone()).build().unwrap();
    assert_eq!(kind(with(LEDGER).store(store)), Ok(()));
}

#[cfg(feature = "sqlite")]
#[test]
fn receivers_on_sqlite_are_compared_by_store() {
    let folder = Folder::new("claims");
    let store = hookgate_sqlite::SqliteStore::open(folder.file("claims.db")).unwrap();
    let orders = with(SECRET).store(store.clone()).build().unwrap();
    assert_eq!(kind(with(LEDGER).store(store.clone())), TAKEN);
    drop((orders, store));
}

#[cfg(feature = "postgres")]
// fault F2: receivers with secrets of their own on one store silence each other's events
#[test]
fn receivers_on_postgres_are_compared_by_store() {
    use hookgate_postgres::{Postgres, PostgresStore};
    use tokio_postgres::{Config, NoTls};

    let postgres = Postgres::new(Config::new(), NoTls);
    let store = PostgresStore::new(&postgres, "orders");
    let _orders = with(SECRET).store(store.clone()).build().unwrap();
    assert_eq!(kind(with(LEDGER).store(store.clone())), TAKEN);
    let of_another_name = PostgresStore::new(&postgres, "ledger");
    assert_eq!(kind(with(LEDGER).store(of_another_name)), Ok(()));
    assert_eq!(kind(with(LEDGER).scope("ledger").store(store)), Ok(()));
}

/// Two secrets into one inbox.
#[cfg(feature = "inbox")]
fn two_secrets_into(inbox: &hookgate_inbox::Inbox) {
    let into = |builder: ReceiverBuilder| {
        let accepting = builder.accept_into(inbox.clone());
        accepting.map_err(|error| error.kind())
    };
    let orders = into(with(SECRET)).unwrap();
    assert_eq!(into(with(LEDGER)).map(drop), TAKEN);
    assert_eq!(into(with(SECRET)).map(drop), Ok(()));
    assert_eq!(into(with(LEDGER).scope("ledger")).map(drop), Ok(()));
    drop(orders);
    assert_eq!(into(with(LEDGER)).map(drop), Ok(()));
}

#[cfg(all(feature = "postgres", feature = "inbox"))]
// fault F2: receivers with secrets of their own on one store silence each other's events
#[test]
fn acceptors_on_postgres_are_compared_by_inbox() {
    use hookgate_postgres::{Postgres, PostgresStore};
    use tokio_postgres::{Config, NoTls};

    let postgres = Postgres::new(Config::new(), NoTls);
    let inbox = postgres.inbox("orders").unwrap();
    two_secrets_into(&inbox);
    // Claims are another memory than the inbox.
    let _orders = with(SECRET).accept_into(inbox).unwrap();
    let claims = PostgresStore::new(&postgres, "orders");
    assert_eq!(kind(with(LEDGER).store(claims)), Ok(()));
}

#[cfg(feature = "inbox")]
// fault F2: receivers with secrets of their own on one store silence each other's events
#[test]
fn two_secrets_on_one_inbox_need_a_name_for_their_scope() {
    let folder = Folder::new("scopes");
    let inbox = hookgate_sqlite::open_inbox(folder.file("inbox.db")).unwrap();
    two_secrets_into(&inbox);
    block_on(inbox.close());
}

// fault F10b: a store is given, and deduplication is off
#[test]
fn a_store_and_no_deduplication_are_an_error_in_either_order() {
    let store = MemoryStore::default;
    for builder in [
        with(SECRET).store(store()).without_deduplication(),
        with(SECRET).without_deduplication().store(store()),
    ] {
        let error = builder.build().unwrap_err();
        assert_eq!(error.kind(), ConfigErrorKind::StoreUnused);
        let said = error.to_string();
        assert!(said.contains(".store("), "{said}");
        assert!(said.contains(".without_deduplication()"), "{said}");
    }
}

// fault F10c: a short retry schedule does not fit the default lease
#[test]
fn the_default_lease_is_shorter_than_the_first_wait_of_any_schedule() {
    let lease_of = |builder: ReceiverBuilder| {
        let receiver = builder.clock(manual()).build().unwrap();
        let _first = claim(&receiver, SECRET);
        let copy = deliver(&receiver, SECRET, "evt_1", None);
        match block_on(receiver.admit(&copy)).unwrap() {
            Admission::Running { retry_after } => retry_after,
            other => panic!("{other:?}"),
        }
    };
    let seconds = Duration::from_secs;
    let on = |waits: &[u64]| {
        let waits: Vec<_> = waits.iter().copied().map(seconds).collect();
        let store = MemoryStore::default().with_clock(manual());
        let builder = with(SECRET).store(store);
        builder.schedule(RetrySchedule::new(waits))
    };
    for (waits, lease) in [(&[10, 60][..], 5), (&[60], 30), (&[3_600], 30), (&[], 30)] {
        assert_eq!(lease_of(on(waits)), seconds(lease), "{waits:?}");
    }
    // A lease that is set is checked, and stays as it is.
    assert_eq!(lease_of(on(&[10, 60]).lease(seconds(10))), seconds(10));
    let long = kind(on(&[10, 60]).lease(seconds(30)));
    assert!(
        matches!(long, Err(ConfigErrorKind::OutOfRange { setting: "lease", most, .. }) if most == seconds(10)),
        "{long:?}"
    );
}
