//! Connections that other code has set up in another way, or has changed.

use std::str::FromStr;
use std::time::Duration;

use deadpool_postgres::{Manager, Pool};
use hookgate::{
    DedupeStore,
    dedupe::Claimed::{self, Fresh},
    dedupe::{ClaimToken, EventKey, Ownership::Held, StoreError, StoreErrorKind},
    sink::Sink,
};
use hookgate_postgres::{Postgres, PostgresStore, forget};
use hookgate_testing::delivery;
use tokio_postgres::{Config, NoTls};

use super::{database, key, patient, store, token};
use crate::support::{client_at, migrated, needed, unflushed, until, value};

const LEASE: Duration = Duration::from_secs(600);

fn own_pool(config: &str, most: usize) -> Pool {
    let manager = Manager::new(Config::from_str(config).unwrap(), NoTls);
    Pool::builder(manager).max_size(most).build().unwrap()
}

async fn claim(store: &PostgresStore, id: &str) -> Result<Claimed, StoreError> {
    store.claim(&key(id), token(), LEASE).await
}

fn on_own_pool(config: &str) -> PostgresStore {
    let theirs = Postgres::with_pool(own_pool(config, 8));
    PostgresStore::new(&theirs.with_timeout(Duration::from_secs(30)), "test")
}

/// Returns the token where it was fresh; then the claim is renewed and committed.
pub(super) async fn claim_and_commit(store: &PostgresStore, key: &EventKey) -> Option<ClaimToken> {
    let token = token();
    if store.claim(key, token, LEASE).await.unwrap() != Fresh {
        return None;
    }
    assert_eq!(store.renew(key, token, LEASE).await.unwrap(), Held);
    assert_eq!(store.commit(key, token, LEASE).await.unwrap(), Held);
    Some(token)
}

/// Copies of one event and of others, at once: one of each is fresh, and no caller gets a conflict.
async fn race(store: &PostgresStore, round: &str) {
    let racers = (0..64).map(|number| {
        let (store, key) = (store.clone(), key(&format!("{round} {}", number % 4)));
        tokio::spawn(async move { claim_and_commit(&store, &key).await })
    });
    let racers: Vec<_> = racers.collect();
    let mut fresh = 0;
    for racer in racers {
        fresh += u32::from(racer.await.unwrap().is_some());
    }
    assert_eq!(fresh, 4, "{round}");
}

// fault C11: at a stricter default isolation, claims that meet are errors
#[tokio::test(flavor = "multi_thread")]
async fn a_stricter_default_isolation_is_not_an_error() {
    let (server, owner) = needed!(unflushed().await);
    for level in ["repeatable read", "serializable"] {
        let set = format!("ALTER ROLE hookgate SET default_transaction_isolation = '{level}'");
        owner.batch_execute(&set).await.unwrap();
        let (ours, theirs) = (store(&server.config()), on_own_pool(&server.config()));
        for round in 0..10 {
            race(&ours, &format!("ours, {level}, {round}")).await;
            race(&theirs, &format!("theirs, {level}, {round}")).await;
        }
    }
}

/// At `SERIALIZABLE` most statements that run at the same time are refused, and their repetition
/// costs most of the throughput.
// fault P3: with a default isolation of SERIALIZABLE most work is repeated
#[tokio::test(flavor = "multi_thread")]
async fn statements_choose_the_level_that_is_enough() {
    let (server, owner) = needed!(unflushed().await);
    owner
        .batch_execute(
            "ALTER ROLE hookgate SET default_transaction_isolation = 'serializable';
             CREATE TABLE noted (level text);
             CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
               INSERT INTO noted VALUES (current_setting('transaction_isolation')); RETURN NEW; END $$;
             CREATE TRIGGER note BEFORE INSERT ON hookgate_claims FOR EACH ROW EXECUTE FUNCTION note();
             CREATE TRIGGER note BEFORE INSERT ON hookgate_inbox FOR EACH ROW EXECUTE FUNCTION note()",
        )
        .await
        .unwrap();
    let levels = async || {
        let noted =
            "WITH noted AS (DELETE FROM noted RETURNING level) SELECT DISTINCT level FROM noted";
        let rows = owner.query(noted, &[]).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect::<Vec<String>>()
    };
    let ours = patient(&server.config());
    race(&PostgresStore::new(&ours, "test"), "ours").await;
    let inbox = ours.inbox("test").unwrap();
    let event = delivery(r#"{"id":"evt_1","type":"page.created","data":{}}"#).unwrap();
    inbox.accept(&event, LEASE).await.unwrap();
    assert_eq!(levels().await, ["read committed"]);

    // No setting is made on connections of the user: there the level is chosen once a statement was
    // refused for it.
    let theirs = on_own_pool(&server.config());
    let mut round = 0;
    until("statements leave the stricter level", async || {
        levels().await;
        race(&theirs, &format!("theirs, {round}")).await;
        round += 1;
        levels().await == ["read committed"]
    })
    .await;
    let level = "SHOW default_transaction_isolation";
    let client = own_pool(&server.config(), 1).get().await.unwrap();
    assert_eq!(value::<String>(&client, level).await, "serializable");
}

/// A pool is shared with code that deallocates prepared statements.
// fault C10: a prepared statement that somebody has deallocated fails every call that comes after
#[tokio::test(flavor = "multi_thread")]
async fn statements_that_were_deallocated_are_prepared_again() {
    let server = needed!(migrated(&["fsync=off"]).await);
    let pool = own_pool(&server.config(), 1);
    let theirs = Postgres::with_pool(pool.clone()).with_timeout(LEASE);
    let store = PostgresStore::new(&theirs, "test");
    assert_eq!(claim(&store, "before").await.unwrap(), Fresh);
    // The first two connections are kept apart for renewals. The one after them stays in the pool.
    for _ in 0..2 {
        let found = claim(&store, "before").await.unwrap();
        assert!(matches!(found, Claimed::Running { .. }));
    }
    for statement in ["DEALLOCATE ALL", "DISCARD ALL"] {
        let client = pool.get().await.unwrap();
        client.batch_execute(statement).await.unwrap();
        drop(client);
        for _ in 0..2 {
            let found = claim(&store, "before").await.unwrap();
            assert!(matches!(found, Claimed::Running { .. }), "{statement}");
        }
    }
}

/// After a failover each connection to the old server is left at once, and not one a call.
// fault C12: after a failover, each connection to the old server costs a call
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_takes_no_writes_is_left_with_every_connection() {
    let (server, client) = needed!(unflushed().await);
    let store = PostgresStore::new(&patient(&server.config()).with_connections(4), "test");
    let (key, token) = (key("held"), token());
    store.claim(&key, token, LEASE).await.unwrap();
    // As many calls at once as there are connections, so that each is made.
    let hold = "BEGIN; SELECT FROM hookgate_claims FOR UPDATE";
    client.batch_execute(hold).await.unwrap();
    let waiting = (0..4).map(|_| {
        let store = store.clone();
        tokio::spawn(async move { store.renew(&key, token, LEASE).await })
    });
    let waiting: Vec<_> = waiting.collect();
    // Asked outside of the transaction, in which every look would see the same. The two of this
    // test are counted too.
    let outside = client_at(&server.config()).await;
    let all = "SELECT count(*) >= 6 FROM pg_stat_activity WHERE backend_type = 'client backend'";
    until("all are made", async || value(&outside, all).await).await;
    client.batch_execute("ROLLBACK").await.unwrap();
    for renewed in waiting {
        let _ = renewed.await.unwrap();
    }

    // Open connections are read-only from now on, as on a server that was demoted; new ones are
    // not.
    let trigger = "CREATE FUNCTION demoted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
          IF (SELECT backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()) < TG_ARGV[0]::timestamptz
          THEN RAISE 'demoted' USING ERRCODE = '25006'; END IF; RETURN NEW; END $$;
        DO $$ BEGIN EXECUTE format('CREATE TRIGGER demoted BEFORE INSERT ON hookgate_claims FOR EACH ROW EXECUTE FUNCTION demoted(%L)', clock_timestamp()); END $$";
    client.batch_execute(trigger).await.unwrap();
    let refused = claim(&store, "1").await.unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::Unavailable);
    for id in ["2", "3", "4", "5"] {
        assert_eq!(claim(&store, id).await.unwrap(), Fresh, "{id}");
    }
}

/// An answer without a result is asked for again, within the time of one call.
// fault C5: a call has no limit of time, or each of its statements has its own
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_repeats_its_statement_ends_in_time() {
    let (server, client) = needed!(unflushed().await);
    // Each statement takes a while and neither finds a record nor makes one.
    // A sequence counts them, also where their transactions are rolled back.
    let nothing = "CREATE SEQUENCE statements;
        CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
          PERFORM nextval('statements'); PERFORM pg_sleep(0.7); RETURN NULL; END $$;
        CREATE TRIGGER nothing BEFORE INSERT ON hookgate_claims FOR EACH ROW EXECUTE FUNCTION nothing()";
    client.batch_execute(nothing).await.unwrap();
    let store = PostgresStore::new(&database(&server.config()), "test");
    let error = claim(&store, "1").await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::TimedOut);
    // Eight times 0.7 s would be more than the sender waits. On a busy machine fewer begin in the
    // time of a call.
    let begun: i64 = value(&client, "SELECT last_value FROM statements").await;
    assert!(begun < 4, "{begun} statements");
}

/// Ended records are claimed again and deleted by other calls at the same moment.
#[tokio::test(flavor = "multi_thread")]
async fn deletion_and_claims_of_what_has_ended_do_not_disturb_each_other() {
    const EVENTS: usize = 40;
    let (server, client) = needed!(unflushed().await);
    let store = store(&server.config());
    for round in 0..10 {
        let keys = (0..EVENTS).map(|number| key(&format!("{round} {number}")));
        let keys: Vec<_> = keys.collect();
        for key in &keys {
            let (key, token) = (key.as_bytes().as_slice(), [0_u8; 16].as_slice());
            let ended = "INSERT INTO hookgate_claims VALUES ($1, $2, true, now() - interval '1 s')";
            client.execute(ended, &[&key, &token]).await.unwrap();
        }
        let config = server.config();
        let forgetting = (0..2).map(|_| {
            let config = config.clone();
            tokio::spawn(async move {
                let client = client_at(&config).await;
                for _ in 0..EVENTS {
                    forget(&client, 2).await.unwrap();
                }
            })
        });
        let forgetting: Vec<_> = forgetting.collect();
        let claiming = keys.iter().flat_map(|key| [*key, *key]).map(|key| {
            let store = store.clone();
            tokio::spawn(async move { claim_and_commit(&store, &key).await })
        });
        let claiming: Vec<_> = claiming.collect();
        let mut fresh = 0;
        for claimed in claiming {
            fresh += usize::from(claimed.await.unwrap().is_some());
        }
        for forgot in forgetting {
            forgot.await.unwrap();
        }
        assert_eq!(fresh, EVENTS, "{round}");
        for key in &keys {
            let found = store.claim(key, token(), LEASE).await.unwrap();
            assert!(matches!(found, Claimed::Done { .. }));
        }
    }
}
