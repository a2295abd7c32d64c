//! Failures between the layer and PostgreSQL: answered 503 within the budget, no event forgotten, and well again without a
//! restart.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use hookgate::{
    DedupeStore, Delivery, Receiver, Secret,
    dedupe::{ClaimToken, Claimed, EventKey, Ownership, StoreErrorKind},
};
use hookgate_postgres::PostgresStore;
use hookgate_testing::Signer;
use tower::ServiceExt;

use super::{database, patient};
use crate::support::{Fault, PostgresServer, Proxy, client_at, migrated};

/// The sender gets no answer after this.
const SENDER_WAITS: Duration = Duration::from_secs(5);
/// A busy machine may be late in one of them; a call without a limit is late in each.
const ROUNDS: u32 = 10;
const PATIENCE: Duration = Duration::from_secs(60);

/// A receiver with an axum handler that counts its runs.
struct Service {
    app: Router,
    signer: Signer,
    runs: Arc<AtomicU32>,
}

async fn count(State(runs): State<Arc<AtomicU32>>, _: Delivery) -> StatusCode {
    runs.fetch_add(1, Ordering::Relaxed);
    StatusCode::NO_CONTENT
}

impl Service {
    fn on(store: PostgresStore) -> Self {
        let secret = Secret::new("whsec_made_up_for_these_faults").unwrap();
        let receiver = Receiver::builder()
            .secret(secret.clone())
            .store(store)
            .build()
            .unwrap();
        let runs = Arc::default();
        let app = Router::new()
            .route("/", post(count).layer(receiver.layer()))
            .with_state(Arc::clone(&runs));
        Self {
            app,
            signer: Signer::new(secret),
            runs,
        }
    }

    async fn deliver(&self, id: &str) -> u16 {
        let body = format!(r#"{{"id":"{id}","type":"page.created"}}"#);
        let request = self.signer.request("/", body).map(Body::from);
        let answer = self.app.clone().oneshot(request).await.unwrap();
        answer.status().as_u16()
    }

    /// Each is answered 503 and not handled. Returns how long the slowest took.
    async fn refused<const N: usize>(&self, ids: [&str; N], what: &str) -> Duration {
        let runs = self.runs.load(Ordering::Relaxed);
        let mut slowest = Duration::ZERO;
        for id in ids {
            let asked = Instant::now();
            assert_eq!(self.deliver(id).await, 503, "{what}");
            slowest = slowest.max(asked.elapsed());
        }
        assert_eq!(self.runs.load(Ordering::Relaxed), runs, "{what}");
        slowest
    }

    /// As the service does, only sooner.
    async fn deliver_until_done(&self, id: &str) -> u16 {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.deliver(id).await {
                503 => assert!(Instant::now() < until, "{id} is never done"),
                status => return status,
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_is_503_and_nothing_is_forgotten() {
    let Some(mut server) = migrated(&[]).await else {
        return;
    };
    let proxy = Proxy::before(server.server.address);
    let config = PostgresServer::config_at(proxy.address);
    // Two connections, so that each fault meets one that has lain idle.
    let service = Service::on(PostgresStore::new(
        &database(&config).with_connections(2),
        "test",
    ));
    let mut handled = Vec::new();

    let faults = [
        Fault::Refuse,
        Fault::HalfOpen,
        Fault::DropReplies,
        Fault::Delay(Duration::from_secs(4)),
    ];
    for fault in faults {
        let mut fastest = Duration::MAX;
        for round in 0..ROUNDS {
            let before = format!("before {fault:?}, {round}");
            assert_eq!(service.deliver_until_done(&before).await, 204);
            handled.push(before.clone());
            proxy.set(fault);
            let fresh = format!("during {fault:?}, {round}");
            let refused = service.refused([&*before, &fresh], &before).await;
            fastest = fastest.min(refused);
            proxy.set(Fault::None);
            // Without any restart, the first delivery succeeds already.
            assert_eq!(service.deliver_until_done(&before).await, 200, "{fault:?}");
            let after = format!("after {fault:?}, {round}");
            assert_eq!(service.deliver_until_done(&after).await, 204, "{fault:?}");
            handled.push(after);
            if fastest < SENDER_WAITS {
                break;
            }
        }
        assert!(fastest < SENDER_WAITS, "{fault:?}: {fastest:?}");
    }

    for how in ["stopped", "crashed"] {
        let mut fastest = Duration::MAX;
        for round in 0..ROUNDS {
            if how == "stopped" {
                server.server.signal("STOP");
                // Its processes for the connections that stand are not stopped with it; new ones are taken by the system, and wait.
                proxy.set(Fault::Refuse);
                proxy.set(Fault::None);
            } else {
                server.crash();
            }
            let id = format!("while it is {how}, {round}");
            fastest = fastest.min(service.refused([&*id, &handled[0]], how).await);
            if how == "stopped" {
                server.server.signal("CONT");
            } else {
                server.restart();
            }
            let after = format!("after it was {how}, {round}");
            assert_eq!(service.deliver_until_done(&after).await, 204, "{how}");
            handled.push(after);
            if fastest < SENDER_WAITS {
                break;
            }
        }
        assert!(fastest < SENDER_WAITS, "{how}: {fastest:?}");
    }

    let runs = service.runs.load(Ordering::Relaxed);
    for id in &handled {
        assert_eq!(service.deliver_until_done(id).await, 200, "{id}");
    }
    assert_eq!(service.runs.load(Ordering::Relaxed), runs);
}

/// The claim has reached the server and its answer has not come back: the same call again answers that it is the caller's, and so
/// does the commit. A connection that breaks under a statement causes no error, where it had been idle.
// fault C4: a call whose reply was lost is not asked again, or a repeated commit is lost
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_reply_does_not_lose_the_claim() {
    let Some(server) = migrated(&["fsync=off"]).await else {
        return;
    };
    let proxy = Proxy::before(server.server.address);
    let config = PostgresServer::config_at(proxy.address);
    let store = PostgresStore::new(&patient(&config).with_connections(1), "test");
    let (lease, token) = (Duration::from_secs(60), ClaimToken::new(b"{}"));
    let (key, other) = (EventKey::new("s", "1"), EventKey::new("s", "2"));
    assert_eq!(
        store.claim(&other, token, lease).await.unwrap(),
        Claimed::Fresh
    );
    proxy.set(Fault::CloseOnReply);
    assert_eq!(
        store.claim(&key, token, lease).await.unwrap(),
        Claimed::Fresh
    );
    // Prepared on this connection, so that the reply that is lost is the statement's own.
    for _ in 0..2 {
        proxy.set(Fault::CloseOnReply);
        assert_eq!(
            store.commit(&key, token, lease).await.unwrap(),
            Ownership::Held
        );
    }
    let found = store.claim(&key, ClaimToken::new(b"{}"), lease);
    assert_eq!(
        found.await.unwrap(),
        Claimed::Done {
            body_mark: token.body_mark()
        }
    );
}

/// A call that waits for a lock, or for another call's connection, fails in time.
// fault C5: a call has no limit of time, or each of its statements has its own
#[tokio::test(flavor = "multi_thread")]
async fn waits_end_in_time() {
    let Some(server) = migrated(&["fsync=off"]).await else {
        return;
    };
    let store = PostgresStore::new(&database(&server.config()).with_connections(1), "test");
    let (key, token) = (EventKey::new("s", "1"), ClaimToken::new(b"{}"));
    let lease = Duration::from_secs(60);
    store.claim(&key, token, lease).await.unwrap();
    let mut other = client_at(&server.config()).await;
    let blocking = other.transaction().await.unwrap();
    blocking
        .batch_execute("LOCK TABLE hookgate_claims IN ACCESS EXCLUSIVE MODE")
        .await
        .unwrap();
    let mut fastest = Duration::MAX;
    for _ in 0..ROUNDS {
        // One holds the connection, and the others wait for it.
        let waiting = (0..4).map(|_| {
            let store = store.clone();
            tokio::spawn(async move {
                let asked = Instant::now();
                let renewed = store.renew(&key, token, lease).await;
                (renewed, asked.elapsed())
            })
        });
        let mut slowest = Duration::ZERO;
        for waited in waiting.collect::<Vec<_>>() {
            let (renewed, elapsed) = waited.await.unwrap();
            assert_eq!(renewed.unwrap_err().kind(), StoreErrorKind::TimedOut);
            slowest = slowest.max(elapsed);
        }
        fastest = fastest.min(slowest);
        if fastest < SENDER_WAITS {
            break;
        }
    }
    assert!(fastest < SENDER_WAITS, "{fastest:?}");
    blocking.rollback().await.unwrap();
    let until = Instant::now() + PATIENCE;
    while store.renew(&key, token, lease).await.is_err() {
        assert!(Instant::now() < until);
    }
}

/// No answer comes, and no error either: each kind of call gives up by itself.
// fault C5: a call has no limit of time, or each of its statements has its own
#[tokio::test(flavor = "multi_thread")]
async fn each_call_ends_in_time_where_nothing_is_answered() {
    let Some(server) = migrated(&["fsync=off"]).await else {
        return;
    };
    let proxy = Proxy::before(server.server.address);
    let config = PostgresServer::config_at(proxy.address);
    let store = PostgresStore::new(&database(&config).with_connections(1), "test");
    let (key, token) = (EventKey::new("s", "1"), ClaimToken::new(b"{}"));
    let lease = Duration::from_secs(60);
    macro_rules! silent {
        ($call:expr) => {
            let mut fastest = Duration::MAX;
            for _ in 0..ROUNDS {
                // It is open, and has run this statement before.
                while $call.await.is_err() {}
                proxy.set(Fault::DropReplies);
                let asked = Instant::now();
                let answered = tokio::time::timeout(PATIENCE, $call).await;
                let error = answered.expect("it waits on").unwrap_err();
                fastest = fastest.min(asked.elapsed());
                assert_eq!(error.kind(), StoreErrorKind::TimedOut, "{error:?}");
                proxy.set(Fault::None);
                if fastest < SENDER_WAITS {
                    break;
                }
            }
            assert!(fastest < SENDER_WAITS, "{fastest:?}");
        };
    }
    silent!(store.claim(&key, token, lease));
    silent!(store.renew(&key, token, lease));
    silent!(store.commit(&key, token, lease));
    silent!(store.release(&key, token));
}

/// The server's error becomes a kind; and after an error that a server takes no writes, the store asks another server the next
/// time.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_server_says_becomes_a_kind() {
    let Some(server) = migrated(&["fsync=off"]).await else {
        return;
    };
    let client = client_at(&server.config()).await;
    // Long enough for a busy machine. Whatever else takes the connection's time, such as a sweep, ends with it too.
    let own = "options='-c statement_timeout=3s -c lock_timeout=0' application_name=store";
    let config = format!("{} {own}", server.config());
    let store = PostgresStore::new(&patient(&config).with_connections(1), "test");
    let lease = Duration::from_secs(60);
    let claim = async |id: &str| {
        let key = EventKey::new("s", id);
        let claimed = store.claim(&key, ClaimToken::new(b"{}"), lease).await;
        claimed.map_err(|error| error.kind())
    };
    let backend = async || -> i32 {
        let pids = "SELECT pid FROM pg_stat_activity WHERE application_name = 'store' ORDER BY backend_start DESC LIMIT 1";
        client.query_one(pids, &[]).await.unwrap().get(0)
    };
    assert_eq!(claim("1").await, Ok(Claimed::Fresh));
    let first = backend().await;

    client
        .batch_execute("BEGIN; LOCK TABLE hookgate_claims")
        .await
        .unwrap();
    assert_eq!(claim("2").await, Err(StoreErrorKind::TimedOut));
    client.batch_execute("ROLLBACK").await.unwrap();
    let full = "CREATE FUNCTION no_space() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no space' USING ERRCODE = '53100'; END $$;
        CREATE TRIGGER no_space BEFORE INSERT ON hookgate_claims EXECUTE FUNCTION no_space()";
    client.batch_execute(full).await.unwrap();
    assert_eq!(claim("2").await, Err(StoreErrorKind::Full));
    client
        .batch_execute("DROP TRIGGER no_space ON hookgate_claims")
        .await
        .unwrap();
    assert_eq!(claim("2").await, Ok(Claimed::Fresh));
    assert_eq!(backend().await, first, "an answer leaves the connection");

    // A server that has become a standby.
    let read_only = "ALTER ROLE hookgate SET default_transaction_read_only = on";
    client.batch_execute(read_only).await.unwrap();
    let end = format!("SELECT pg_terminate_backend({first})");
    client.batch_execute(&end).await.unwrap();
    assert_eq!(claim("3").await, Err(StoreErrorKind::Unavailable));
    client
        .batch_execute("ALTER ROLE hookgate RESET default_transaction_read_only")
        .await
        .unwrap();
    assert_eq!(claim("3").await, Ok(Claimed::Fresh));

    // An operator has ended the idle connections: the next call finds out, and asks on a new one.
    let end = format!("SELECT pg_terminate_backend({})", backend().await);
    client.batch_execute(&end).await.unwrap();
    assert_eq!(claim("4").await, Ok(Claimed::Fresh));
}

/// After a future is dropped in the middle, as that of a cancelled request is, no other call waits for its query.
// fault C9: a dropped call's connection goes back to the pool
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_dropped_takes_its_connection_along() {
    let Some(server) = migrated(&["fsync=off"]).await else {
        return;
    };
    let endless = "options='-c lock_timeout=0 -c statement_timeout=0'";
    let config = format!("{} {endless}", server.config());
    let store = PostgresStore::new(&patient(&config).with_connections(1), "test");
    let (lease, token) = (Duration::from_secs(60), ClaimToken::new(b"{}"));
    let held = EventKey::new("s", "held");
    store.claim(&held, token, lease).await.unwrap();
    let mut other = client_at(&server.config()).await;
    let holding = other.transaction().await.unwrap();
    holding
        .query("SELECT FROM hookgate_claims FOR UPDATE", &[])
        .await
        .unwrap();
    for number in 0..5 {
        let dropped = store.renew(&held, token, lease);
        let dropped = tokio::time::timeout(Duration::from_millis(500), dropped);
        assert!(dropped.await.is_err(), "it waits for the row");
        let key = EventKey::new("s", &number.to_string());
        assert_eq!(
            store.claim(&key, token, lease).await.unwrap(),
            Claimed::Fresh
        );
    }
    holding.rollback().await.unwrap();
    // The server has noticed as well.
    let client = client_at(&server.config()).await;
    let count = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
    let until = Instant::now() + PATIENCE;
    while client.query_one(count, &[]).await.unwrap().get::<_, i64>(0) > 2 {
        assert!(Instant::now() < until, "connections stay behind");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The store deletes ended records by itself, while claims go on.
// fault C13: deletion takes what still counts
#[tokio::test(flavor = "multi_thread")]
async fn the_store_forgets_what_has_ended() {
    let Some(server) = migrated(&["fsync=off"]).await else {
        return;
    };
    let client = client_at(&server.config()).await;
    let fill = "INSERT INTO hookgate_claims SELECT decode(md5(n::text), 'hex'), decode(md5(n::text), 'hex'), true, now() - interval '1 s' FROM generate_series(1, 5000) n;
        INSERT INTO hookgate_effects SELECT decode(md5(n::text), 'hex'), n, now() - interval '1 s' FROM generate_series(1, 5000) n";
    client.batch_execute(fill).await.unwrap();
    let store = PostgresStore::new(&patient(&server.config()), "test");
    let left = "SELECT (SELECT count(*) FROM hookgate_claims WHERE until < now()) + (SELECT count(*) FROM hookgate_effects)";
    let until = Instant::now() + PATIENCE;
    let mut claims = 0_i64;
    loop {
        for _ in 0..100 {
            let key = EventKey::new("s", &claims.to_string());
            let claimed = store.claim(&key, ClaimToken::new(b"{}"), Duration::from_secs(900));
            assert_eq!(claimed.await.unwrap(), Claimed::Fresh);
            claims += 1;
        }
        if client.query_one(left, &[]).await.unwrap().get::<_, i64>(0) == 0 {
            break;
        }
        assert!(Instant::now() < until);
    }
    let kept = "SELECT count(*) FROM hookgate_claims";
    assert_eq!(
        client.query_one(kept, &[]).await.unwrap().get::<_, i64>(0),
        claims
    );
}
