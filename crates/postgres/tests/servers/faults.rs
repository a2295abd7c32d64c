//! Failures between the layer and PostgreSQL: answered 503 within the budget, no event forgotten,
//! and well again without a restart.

use std::time::{Duration, Instant};

use hookgate::{
    DedupeStore,
    dedupe::{Claimed::Fresh, Ownership::Held, StoreErrorKind},
};
use hookgate_postgres::PostgresStore;

use super::{hasty, key, patient, store, token};
use crate::support::{
    App, Fault, PostgresServer, Proxy, client_at, done_by, migrated, needed, once_within,
    unflushed, until, value,
};

/// The sender gets no answer after this.
const SENDER_WAITS: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(60);
const LEASE: Duration = Duration::from_secs(60);

/// Each is answered 503 and not handled. Returns how long the slowest took.
async fn refused<const N: usize>(app: &App, ids: [&str; N], what: &str) -> Duration {
    let runs = app.runs();
    let mut slowest = Duration::ZERO;
    for id in ids {
        let asked = Instant::now();
        assert_eq!(app.deliver(id).await, 503, "{what}");
        slowest = slowest.max(asked.elapsed());
    }
    assert_eq!(app.runs(), runs, "{what}");
    slowest
}

/// As the service does, only sooner.
async fn deliver_until_done(app: &App, id: &str) -> u16 {
    let mut status = 0;
    until(format!("{id} is done"), async || {
        status = app.deliver(id).await;
        status != 503
    })
    .await;
    status
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_is_503_and_nothing_is_forgotten() {
    let mut server = needed!(migrated(&[]).await);
    let proxy = Proxy::before(server.server.address);
    // Two connections, so that each fault meets one that has lain idle.
    let app = App::on(hasty(&PostgresServer::config_at(proxy.address), 2));
    let mut handled = Vec::new();

    let faults = [
        Fault::Refuse,
        Fault::HalfOpen,
        Fault::DropReplies,
        Fault::Delay(Duration::from_secs(4)),
    ];
    for fault in faults {
        once_within(SENDER_WAITS, format!("{fault:?}"), async |round| {
            let [before, fresh, after] =
                ["before", "during", "after"].map(|when| format!("{when} {fault:?}, {round}"));
            assert_eq!(deliver_until_done(&app, &before).await, 204);
            proxy.set(fault);
            let took = refused(&app, [&*before, &fresh], &before).await;
            proxy.set(Fault::None);
            // Without any restart, the first delivery succeeds already.
            assert_eq!(deliver_until_done(&app, &before).await, 200, "{fault:?}");
            assert_eq!(deliver_until_done(&app, &after).await, 204, "{fault:?}");
            handled.extend([before, after]);
            took
        })
        .await;
    }

    for how in ["stopped", "crashed"] {
        once_within(SENDER_WAITS, how, async |round| {
            if how == "stopped" {
                server.server.signal("STOP");
                // Its processes for the connections that stand are not stopped with it; new ones
                // are taken by the system, and wait.
                proxy.set(Fault::Refuse);
                proxy.set(Fault::None);
            } else {
                server.crash();
            }
            let id = format!("while it is {how}, {round}");
            let took = refused(&app, [&*id, &handled[0]], how).await;
            match how {
                "stopped" => server.server.signal("CONT"),
                _ => server.restart(),
            }
            let after = format!("after it was {how}, {round}");
            assert_eq!(deliver_until_done(&app, &after).await, 204, "{how}");
            handled.push(after);
            took
        })
        .await;
    }

    let runs = app.runs();
    for id in &handled {
        assert_eq!(deliver_until_done(&app, id).await, 200, "{id}");
    }
    assert_eq!(app.runs(), runs);
}

/// The claim has reached the server and its answer has not come back: the same call again answers
/// that it is the caller's, and so does the commit. A connection that breaks under a statement
/// causes no error, where it had been idle.
// fault C4: a call whose reply was lost is not asked again, or a repeated commit is lost
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_reply_does_not_lose_the_claim() {
    let server = needed!(migrated(&["fsync=off"]).await);
    let proxy = Proxy::before(server.server.address);
    let config = PostgresServer::config_at(proxy.address);
    let store = PostgresStore::new(&patient(&config).with_connections(1), "test");
    let (token, key, other) = (token(), key("1"), key("2"));
    assert_eq!(store.claim(&other, token, LEASE).await.unwrap(), Fresh);
    proxy.set(Fault::CloseOnReply);
    assert_eq!(store.claim(&key, token, LEASE).await.unwrap(), Fresh);
    // Prepared on this connection, so that the reply that is lost is the statement's own.
    for _ in 0..2 {
        proxy.set(Fault::CloseOnReply);
        assert_eq!(store.commit(&key, token, LEASE).await.unwrap(), Held);
    }
    let found = store.claim(&key, self::token(), LEASE);
    assert_eq!(found.await.unwrap(), done_by(token));
}

/// A call that waits for a lock, or for another call's connection, fails in time.
// fault C5: a call has no limit of time, or each of its statements has its own
#[tokio::test(flavor = "multi_thread")]
async fn waits_end_in_time() {
    let server = needed!(migrated(&["fsync=off"]).await);
    let store = hasty(&server.config(), 1);
    let (key, token) = (key("1"), token());
    store.claim(&key, token, LEASE).await.unwrap();
    let mut other = client_at(&server.config()).await;
    let blocking = other.transaction().await.unwrap();
    let lock = "LOCK TABLE hookgate_claims IN ACCESS EXCLUSIVE MODE";
    blocking.batch_execute(lock).await.unwrap();
    once_within(SENDER_WAITS, "a wait", async |_| {
        // One holds the connection, and the others wait for it.
        let waiting = (0..4).map(|_| {
            let store = store.clone();
            tokio::spawn(async move {
                let asked = Instant::now();
                let renewed = store.renew(&key, token, LEASE).await;
                (renewed, asked.elapsed())
            })
        });
        let mut slowest = Duration::ZERO;
        for waited in waiting.collect::<Vec<_>>() {
            let (renewed, elapsed) = waited.await.unwrap();
            assert_eq!(renewed.unwrap_err().kind(), StoreErrorKind::TimedOut);
            slowest = slowest.max(elapsed);
        }
        slowest
    })
    .await;
    blocking.rollback().await.unwrap();
    until("it is renewed", async || {
        store.renew(&key, token, LEASE).await.is_ok()
    })
    .await;
}

/// No answer comes, and no error either: each kind of call gives up by itself.
// fault C5: a call has no limit of time, or each of its statements has its own
#[tokio::test(flavor = "multi_thread")]
async fn each_call_ends_in_time_where_nothing_is_answered() {
    let server = needed!(migrated(&["fsync=off"]).await);
    let proxy = Proxy::before(server.server.address);
    let store = hasty(&PostgresServer::config_at(proxy.address), 1);
    let (key, token) = (key("1"), token());
    macro_rules! silent {
        ($call:expr) => {
            once_within(SENDER_WAITS, stringify!($call), async |_| {
                // It is open, and has run this statement before.
                while $call.await.is_err() {}
                proxy.set(Fault::DropReplies);
                let asked = Instant::now();
                let answered = tokio::time::timeout(PATIENCE, $call).await;
                let error = answered.expect("it waits on").unwrap_err();
                let took = asked.elapsed();
                assert_eq!(error.kind(), StoreErrorKind::TimedOut, "{error:?}");
                proxy.set(Fault::None);
                took
            })
            .await;
        };
    }
    silent!(store.claim(&key, token, LEASE));
    silent!(store.renew(&key, token, LEASE));
    silent!(store.commit(&key, token, LEASE));
    silent!(store.release(&key, token));
}

/// The server's error becomes a kind; and after an error that a server takes no writes, the store
/// asks another server the next time.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_server_says_becomes_a_kind() {
    let (server, client) = needed!(unflushed().await);
    // Long enough for a busy machine. Whatever else takes the connection's time, such as a sweep,
    // ends with it too.
    let own = "options='-c statement_timeout=3s -c lock_timeout=0' application_name=store";
    let config = format!("{} {own}", server.config());
    let store = PostgresStore::new(&patient(&config).with_connections(1), "test");
    let claim = async |id: &str| {
        let claimed = store.claim(&key(id), token(), LEASE).await;
        claimed.map_err(|error| error.kind())
    };
    let backend = async || -> i32 {
        let pids = "SELECT pid FROM pg_stat_activity WHERE application_name = 'store' ORDER BY backend_start DESC LIMIT 1";
        value(&client, pids).await
    };
    assert_eq!(claim("1").await, Ok(Fresh));
    let first = backend().await;

    let execute = async |sql: &str| client.batch_execute(sql).await.unwrap();
    execute("BEGIN; LOCK TABLE hookgate_claims").await;
    assert_eq!(claim("2").await, Err(StoreErrorKind::TimedOut));
    execute("ROLLBACK").await;
    execute("CREATE FUNCTION no_space() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no space' USING ERRCODE = '53100'; END $$;
        CREATE TRIGGER no_space BEFORE INSERT ON hookgate_claims EXECUTE FUNCTION no_space()").await;
    assert_eq!(claim("2").await, Err(StoreErrorKind::Full));
    execute("DROP TRIGGER no_space ON hookgate_claims").await;
    assert_eq!(claim("2").await, Ok(Fresh));
    assert_eq!(backend().await, first, "an answer leaves the connection");

    // A server that has become a standby.
    execute("ALTER ROLE hookgate SET default_transaction_read_only = on").await;
    execute(&format!("SELECT pg_terminate_backend({first})")).await;
    assert_eq!(claim("3").await, Err(StoreErrorKind::Unavailable));
    execute("ALTER ROLE hookgate RESET default_transaction_read_only").await;
    assert_eq!(claim("3").await, Ok(Fresh));

    // An operator has ended the idle connections: the next call finds out, and asks on a new one.
    let second = backend().await;
    execute(&format!("SELECT pg_terminate_backend({second})")).await;
    assert_eq!(claim("4").await, Ok(Fresh));
}

/// After a future is dropped in the middle, as that of a cancelled request is, no other call waits
/// for its query.
// fault C9: a dropped call's connection goes back to the pool
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_dropped_takes_its_connection_along() {
    let server = needed!(migrated(&["fsync=off"]).await);
    let endless = "options='-c lock_timeout=0 -c statement_timeout=0'";
    let config = format!("{} {endless}", server.config());
    let store = PostgresStore::new(&patient(&config).with_connections(1), "test");
    let (held, token) = (key("held"), token());
    store.claim(&held, token, LEASE).await.unwrap();
    let mut other = client_at(&server.config()).await;
    let holding = other.transaction().await.unwrap();
    let hold = "SELECT FROM hookgate_claims FOR UPDATE";
    holding.batch_execute(hold).await.unwrap();
    for number in 0..5 {
        let dropped = store.renew(&held, token, LEASE);
        let dropped = tokio::time::timeout(Duration::from_millis(500), dropped);
        assert!(dropped.await.is_err(), "it waits for the row");
        let claimed = store.claim(&key(&number.to_string()), token, LEASE).await;
        assert_eq!(claimed.unwrap(), Fresh);
    }
    holding.rollback().await.unwrap();
    // The server has noticed as well.
    let client = client_at(&server.config()).await;
    let few = "SELECT count(*) <= 2 FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
    until("no connection stays behind", async || {
        value(&client, few).await
    })
    .await;
}

/// The store deletes ended records by itself, while claims go on.
// fault C13: deletion takes what still counts
#[tokio::test(flavor = "multi_thread")]
async fn the_store_forgets_what_has_ended() {
    let (server, client) = needed!(unflushed().await);
    let fill = "INSERT INTO hookgate_claims SELECT decode(md5(n::text), 'hex'), decode(md5(n::text), 'hex'), true, now() - interval '1 s' FROM generate_series(1, 5000) n;
        INSERT INTO hookgate_effects SELECT decode(md5(n::text), 'hex'), n, now() - interval '1 s' FROM generate_series(1, 5000) n";
    client.batch_execute(fill).await.unwrap();
    let store = store(&server.config());
    let left = "SELECT (SELECT count(*) FROM hookgate_claims WHERE until < now()) + (SELECT count(*) FROM hookgate_effects) = 0";
    let mut claims = 0_i64;
    until("all are deleted", async || {
        for _ in 0..100 {
            let key = key(&claims.to_string());
            let claimed = store.claim(&key, token(), Duration::from_secs(900)).await;
            assert_eq!(claimed.unwrap(), Fresh);
            claims += 1;
        }
        value(&client, left).await
    })
    .await;
    let kept: i64 = value(&client, "SELECT count(*) FROM hookgate_claims").await;
    assert_eq!(kept, claims);
}
