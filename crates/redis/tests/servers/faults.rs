//! Answers that are lost, servers that stop, pause and come back: the result of each call, and that
//! the store recovers by itself.

use std::time::{Duration, Instant};

use hookgate::{
    DedupeStore,
    dedupe::Claimed::Fresh,
    dedupe::Ownership::{Held, Lost},
    dedupe::{StoreError, StoreErrorKind},
};
use hookgate_redis::RedisStore;

use super::{Direct, LONG, connected, found, key, refusal, started, token, until};
use crate::support::{Fault, Proxy, RedisServer, done_by, needed, once_within};

/// A call takes 900 ms at most. The rest is for a busy machine.
const SOON: Duration = Duration::from_secs(3);

/// A store behind a proxy, with its scripts known.
async fn behind(proxy: &Proxy) -> RedisStore {
    let url = format!("redis://{}", proxy.address);
    let store = connected(&url).await;
    let (event, token) = (key("first"), token());
    store.claim(&event, token, LONG).await.unwrap();
    store.renew(&event, token, LONG).await.unwrap();
    store.claim(&event, token, LONG).await.unwrap();
    store.release(&event, token).await.unwrap();
    store.commit(&event, token, LONG).await.unwrap();
    store
}

/// A server, and such a store behind a proxy.
async fn behind_proxy(settings: &[&str]) -> Option<(RedisServer, Proxy, RedisStore)> {
    let server = RedisServer::start(settings)?;
    let proxy = Proxy::before(server.server.address);
    let store = behind(&proxy).await;
    Some((server, proxy, store))
}

/// Checks that the store works again, without help from outside.
async fn recovered<S: DedupeStore>(store: &S) {
    let (event, token) = (key("recovered"), token());
    let claimed = until(Result::is_ok, || store.claim(&event, token, LONG));
    claimed.await.unwrap();
    let released = until(Result::is_ok, || store.release(&event, token));
    released.await.unwrap();
}

// fault C4: a call whose reply was lost is not asked again, or a repeated commit is lost
#[tokio::test(flavor = "multi_thread")]
async fn each_call_whose_answer_was_lost_can_be_repeated() {
    let (_server, proxy, store) = needed!(behind_proxy(&[]).await);
    // Where it is closed, the error comes at once; where it stands, when the time for an answer is
    // over.
    for (fault, kind) in [
        (Fault::CloseOnReply, StoreErrorKind::Unavailable),
        (Fault::DropReplies, StoreErrorKind::TimedOut),
    ] {
        let (event, holder) = (key(&format!("{fault:?}")), token());
        macro_rules! lost_then {
            ($call:expr, $repeated:expr) => {
                proxy.set(fault);
                let error = $call.await.unwrap_err();
                assert_eq!(error.kind(), kind, "{error:?}");
                proxy.set(Fault::None);
                let repeated = until(Result::is_ok, || $call).await.unwrap();
                assert_eq!(repeated, $repeated);
            };
        }
        if fault == Fault::CloseOnReply {
            // Repeated by itself, on a new connection: the delivery need not come again.
            proxy.set(fault);
            assert_eq!(store.claim(&event, holder, LONG).await.unwrap(), Fresh);
        } else {
            lost_then!(store.claim(&event, holder, LONG), Fresh);
        }
        lost_then!(store.renew(&event, holder, LONG), Held);
        lost_then!(store.commit(&event, holder, LONG), Held);
        assert_eq!(found(&store, &event).await, done_by(holder));
        let (event, holder) = (key(&format!("{fault:?}, released")), token());
        assert_eq!(store.claim(&event, holder, LONG).await.unwrap(), Fresh);
        lost_then!(store.release(&event, holder), Lost);
        assert_eq!(found(&store, &event).await, Fresh);
    }
}

/// A cable that was pulled, a machine that is off: no packet reports that the connection is dead.
/// The operating system notices after a quarter of an hour, `ConnectionManager` when the system
/// does.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_broke_without_a_signal_is_replaced() {
    let (_server, proxy, store) = needed!(behind_proxy(&[]).await);
    once_within(SOON, "a dead connection", async |_| {
        proxy.kill_standing();
        let before = Instant::now();
        assert_eq!(refusal(&store).await, StoreErrorKind::TimedOut);
        let took = before.elapsed();
        recovered(&store).await;
        took
    })
    .await;
}

/// No call waits as long as the connection would: neither one with a limit of its own nor one that
/// is dropped with its request.
// fault C8: a connection that died in silence is kept, where its callers wait less than it would
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_broke_without_a_signal_is_replaced_while_no_call_waits() {
    let server = needed!(RedisServer::start(&[]));
    let [hasty, dropped] = [(); 2].map(|()| Proxy::before(server.server.address));
    let limited = async {
        let store = behind(&hasty).await;
        let store = store.with_call_limit(Duration::from_millis(300));
        hasty.kill_standing();
        assert_eq!(refusal(&store).await, StoreErrorKind::TimedOut);
        recovered(&store).await;
    };
    let dropped = async {
        let store = behind(&dropped).await.with_prefix("dropped:");
        dropped.kill_standing();
        let (event, token) = (key("dropped"), token());
        let claim = || {
            let dropped = store.claim(&event, token, LONG);
            tokio::time::timeout(Duration::from_millis(300), dropped)
        };
        let claimed = until(|waited| matches!(waited, Ok(Ok(_))), claim).await;
        claimed.unwrap().unwrap();
    };
    tokio::join!(limited, dropped);
}

/// Answers to calls that were dropped go to no other call.
#[tokio::test(flavor = "multi_thread")]
async fn the_answer_of_a_dropped_call_reaches_no_other_call() {
    let (_server, proxy, store) = needed!(behind_proxy(&[]).await);
    let taken = proxy.taken();
    let mut done = Vec::new();
    for number in 0..50 {
        let (event, holder) = (key(&format!("done-{number}")), token());
        store.claim(&event, holder, LONG).await.unwrap();
        store.commit(&event, holder, LONG).await.unwrap();
        done.push((event, holder));
    }
    proxy.set(Fault::Delay(Duration::from_millis(5)));
    for (number, (event, holder)) in done.iter().enumerate() {
        let (fresh, own) = (key(&format!("fresh-{number}")), token());
        // Sent, and not waited for, each for another time.
        for _ in 0..4 {
            let limit = Duration::from_micros(number as u64 * 300);
            let dropped = store.claim(event, own, LONG);
            let _ = tokio::time::timeout(limit, dropped).await;
            let dropped = store.commit(&fresh, own, LONG);
            let _ = tokio::time::timeout(limit, dropped).await;
        }
        assert_eq!(store.claim(&fresh, own, LONG).await.unwrap(), Fresh);
        let claimed = store.claim(event, own, LONG).await;
        assert_eq!(claimed.unwrap(), done_by(holder));
        assert_eq!(store.commit(&fresh, own, LONG).await.unwrap(), Held);
    }
    assert_eq!(proxy.taken(), taken, "on the same connection");
}

/// A reachable server that answers with an error: an error of the call, the connection stays, and
/// all is well when it can work again.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_answers_with_a_fault_is_unavailable_and_stays_connected() {
    let settings = ["--busy-reply-threshold", "1", "--save", "3600 1"];
    let (server, proxy, store) = needed!(behind_proxy(&settings).await);
    let mut direct = Direct::to(&server.url()).await;
    let (event, holder) = (key("event"), token());
    store.claim(&event, holder, LONG).await.unwrap();
    let taken = proxy.taken();
    let refused = async |code: &str| {
        let asks = [
            store.claim(&key("other"), token(), LONG).await.map(|_| ()),
            store.renew(&event, holder, LONG).await.map(|_| ()),
            store.commit(&event, holder, LONG).await.map(|_| ()),
            store.release(&event, holder).await.map(|_| ()),
        ];
        for asked in asks {
            let error = asked.unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{code}");
            let source = std::error::Error::source(&error).unwrap().to_string();
            assert!(source.contains(code), "{code}: {source}");
        }
    };

    direct.tell("CONFIG SET min-replicas-to-write 1").await;
    refused("NOREPLICAS").await;
    direct.tell("CONFIG SET min-replicas-to-write 0").await;

    // A snapshot can't be written, as on a full disk: then Redis takes no writes by default.
    std::fs::create_dir(server.folder().join("dump.rdb")).unwrap();
    let _: redis::Value = direct.say("BGSAVE").await;
    let has_failed = |info: &String| info.contains("rdb_last_bgsave_status:err");
    let ask = async || {
        Direct::to(&server.url())
            .await
            .say("INFO persistence")
            .await
    };
    until(has_failed, ask).await;
    refused("MISCONF").await;
    direct
        .tell("CONFIG SET stop-writes-on-bgsave-error no")
        .await;

    // The script of another client does not end.
    let url = server.url();
    let endless = tokio::spawn(async move {
        let mut other = Direct::to(&url).await;
        let mut script = redis::cmd("EVAL");
        script.arg("while true do end").arg(0);
        script.query_async::<()>(&mut other.0).await
    });
    let (one, asking) = (key("asking"), token());
    let is_busy = |asked: &Result<_, StoreError>| format!("{asked:?}").contains("BUSY");
    let asked = until(is_busy, || store.renew(&one, asking, LONG)).await;
    asked.unwrap_err();
    direct.tell("SCRIPT KILL").await;
    endless.await.unwrap().unwrap_err();

    assert_eq!(store.renew(&event, holder, LONG).await.unwrap(), Held);
    assert_eq!(store.commit(&event, holder, LONG).await.unwrap(), Held);
    assert!(proxy.taken() - taken <= 1, "{}", proxy.taken() - taken);
}

// fault C5: a call has no limit of time, or each of its statements has its own
#[tokio::test(flavor = "multi_thread")]
async fn a_server_out_of_reach_is_found_again() {
    let server = needed!(RedisServer::start(&[]));
    let fails = async |fault: Fault, expected: Option<StoreErrorKind>| {
        let proxy = Proxy::before(server.server.address);
        let store = behind(&proxy).await.with_prefix(&format!("{fault:?}:"));
        once_within(SOON, format!("{fault:?}"), async |_| {
            proxy.set(fault);
            let mut slowest = Duration::ZERO;
            for _ in 0..3 {
                let before = Instant::now();
                let kind = refusal(&store).await;
                assert!(
                    expected.is_none_or(|known| known == kind),
                    "{fault:?}: {kind:?}"
                );
                slowest = slowest.max(before.elapsed());
            }
            proxy.set(Fault::None);
            recovered(&store).await;
            slowest
        })
        .await;
    };
    let timed_out = Some(StoreErrorKind::TimedOut);
    let late = fails(Fault::Delay(Duration::from_secs(3)), timed_out);
    let half_open = fails(Fault::HalfOpen, timed_out);
    tokio::join!(fails(Fault::Refuse, None), half_open, late);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_was_down_or_paused_is_used_again() {
    let mut server = needed!(RedisServer::start(&[]));
    let paused = needed!(RedisServer::start(&[]));
    let goes_down = async {
        let store = connected(&server.url()).await;
        recovered(&store).await;
        server.server.kill();
        for _ in 0..3 {
            refusal(&store).await;
        }
        server.restart();
        recovered(&store).await;
    };
    let pauses = async {
        let store = connected(&paused.url()).await;
        recovered(&store).await;
        paused.server.signal("STOP");
        for _ in 0..3 {
            assert_eq!(refusal(&store).await, StoreErrorKind::TimedOut);
        }
        paused.server.signal("CONT");
        recovered(&store).await;
    };
    tokio::join!(goes_down, pauses);
}

/// As after a failover, where the name now resolves to another server: the connection to the old
/// one is given up.
// fault C12: after a failover, each connection to the old server costs a call
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_became_a_replica_is_left() {
    let (server, proxy, store) = needed!(behind_proxy(&[]).await);
    let mut direct = Direct::to(&server.url()).await;
    let before = proxy.taken();
    direct.tell("REPLICAOF 127.0.0.1 1").await;
    for _ in 0..50 {
        assert_eq!(refusal(&store).await, StoreErrorKind::Unavailable);
    }
    let is_left = |_: &_| proxy.taken() > before;
    until(is_left, || refusal(&store)).await;
    // Not one a call.
    assert!(proxy.taken() - before < 25, "{}", proxy.taken() - before);
    direct.tell("REPLICAOF NO ONE").await;
    recovered(&store).await;
}

/// The server takes connections before it has read its file, and answers every call with an error:
/// no event is claimed again meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_still_reads_its_file_refuses_and_then_knows_what_is_done() {
    let (mut server, store, mut direct) = needed!(started(&[]).await);
    let (event, holder) = (key("event"), token());
    store.claim(&event, holder, LONG).await.unwrap();
    store.commit(&event, holder, LONG).await.unwrap();
    for number in 0..2_000 {
        direct.tell(&format!("SET other-{number} value")).await;
    }
    direct.tell("SAVE").await;
    // Three milliseconds for each key, and a look at the connections now and then.
    let slow = "--key-load-delay 3000 --loading-process-events-interval-bytes 1024";
    server.restart_with(&slow.split(' ').collect::<Vec<_>>());
    let claimed = async || store.claim(&event, token(), LONG).await;
    let reads = |claimed: &Result<_, StoreError>| {
        let Err(error) = claimed else {
            panic!("it was to read for longer");
        };
        format!("{error:?}").contains("loading the dataset")
    };
    let refused = until(reads, claimed).await.unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::Unavailable);
    let known = until(Result::is_ok, claimed).await.unwrap();
    assert_eq!(known, done_by(holder));
}

/// An operator sets a password, or another one, before the clients have it, and takes it back.
#[tokio::test(flavor = "multi_thread")]
async fn a_login_that_the_server_refuses_is_an_error_until_it_takes_it_again() {
    for (password, refused) in [
        ("", ["NOAUTH", "uthentication"]),
        ("made-up-password", ["WRONGPASS", "AuthenticationFailed"]),
    ] {
        let server = needed!(RedisServer::start(&[]));
        let mut direct = Direct::to(&server.url()).await;
        direct
            .tell(&format!("CONFIG SET requirepass {password}"))
            .await;
        let login = if password.is_empty() {
            ""
        } else {
            ":made-up-password@"
        };
        let store = connected(&format!("redis://{login}{}", server.server.address)).await;
        recovered(&store).await;
        direct.tell("CONFIG SET requirepass another").await;
        let _: u64 = direct.say("CLIENT KILL TYPE normal SKIPME yes").await;
        // The first calls find the old connection closed; then the login is refused.
        let is_refused = |claimed: &Result<_, StoreError>| {
            let text = format!("{:?}", claimed.as_ref().unwrap_err());
            assert!(!text.contains("made-up-password"), "{text}");
            refused.iter().any(|words| text.contains(words))
        };
        let claim = async || store.claim(&key("event"), token(), LONG).await;
        let error = until(is_refused, claim).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{password:?}");
        direct
            .tell(&format!("CONFIG SET requirepass {password}"))
            .await;
        recovered(&store).await;
    }
}
