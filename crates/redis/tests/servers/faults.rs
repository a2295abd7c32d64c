//! Answers that are lost, servers that stop, pause and come back: the result of each call, and that the store recovers by itself.

use std::time::{Duration, Instant};

use hookgate::{
    DedupeStore,
    dedupe::Claimed::{Done, Fresh},
    dedupe::Ownership::{Held, Lost},
    dedupe::StoreErrorKind,
};
use hookgate_redis::RedisStore;

use super::{Direct, LONG, connected, key, patient, token, until};
use crate::support::{Fault, Proxy, RedisServer};

/// A call takes 900 ms at most. The rest is for a busy machine, which may need more than that too:
/// then the next round counts. A call without a limit takes longer in each.
const SOON: Duration = Duration::from_secs(3);
const ROUNDS: u32 = 10;

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

/// Checks that the store works again, without help from outside.
async fn recovered<S: DedupeStore>(store: &S) {
    let (event, token) = (key("recovered"), token());
    until(Result::is_ok, || store.claim(&event, token, LONG))
        .await
        .unwrap();
    until(Result::is_ok, || store.release(&event, token))
        .await
        .unwrap();
}

// fault C4: a call whose reply was lost is not asked again, or a repeated commit is lost
#[tokio::test(flavor = "multi_thread")]
async fn each_call_whose_answer_was_lost_can_be_repeated() {
    let Some(server) = RedisServer::start(&[]) else {
        return;
    };
    let proxy = Proxy::before(server.server.address);
    let store = behind(&proxy).await;
    // Where it is closed, the error comes at once; where it stands, when the time for an answer is over.
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
        let claimed = store.claim(&event, token(), LONG).await.unwrap();
        assert_eq!(
            claimed,
            Done {
                body_mark: holder.body_mark()
            }
        );
        let (event, holder) = (key(&format!("{fault:?}, released")), token());
        assert_eq!(store.claim(&event, holder, LONG).await.unwrap(), Fresh);
        lost_then!(store.release(&event, holder), Lost);
        assert_eq!(store.claim(&event, token(), LONG).await.unwrap(), Fresh);
    }
}

/// A cable that was pulled, a machine that is off: no packet reports that the connection is dead. The operating system notices
/// after a quarter of an hour, `ConnectionManager` when the system does.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_broke_without_a_signal_is_replaced() {
    let Some(server) = RedisServer::start(&[]) else {
        return;
    };
    let proxy = Proxy::before(server.server.address);
    let store = behind(&proxy).await;
    let mut fastest = Duration::MAX;
    for _ in 0..ROUNDS {
        proxy.kill_standing();
        let before = Instant::now();
        let error = store.claim(&key("event"), token(), LONG).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::TimedOut);
        fastest = fastest.min(before.elapsed());
        recovered(&store).await;
        if fastest < SOON {
            break;
        }
    }
    assert!(fastest < SOON, "{fastest:?}");
}

/// No call waits as long as the connection would: neither one with a limit of its own nor one that is dropped with its request.
// fault C8: a connection that died in silence is kept, where its callers wait less than it would
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_broke_without_a_signal_is_replaced_while_no_call_waits() {
    let Some(server) = RedisServer::start(&[]) else {
        return;
    };
    let (hasty, dropped) = (
        Proxy::before(server.server.address),
        Proxy::before(server.server.address),
    );
    let limited = async {
        let store = behind(&hasty)
            .await
            .with_call_limit(Duration::from_millis(300));
        hasty.kill_standing();
        let error = store.claim(&key("event"), token(), LONG).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::TimedOut);
        recovered(&store).await;
    };
    let dropped = async {
        let store = behind(&dropped).await.with_prefix("dropped:");
        dropped.kill_standing();
        let (event, token) = (key("dropped"), token());
        until(
            |waited| matches!(waited, Ok(Ok(_))),
            || {
                let dropped = store.claim(&event, token, LONG);
                tokio::time::timeout(Duration::from_millis(300), dropped)
            },
        )
        .await
        .unwrap()
        .unwrap();
    };
    tokio::join!(limited, dropped);
}

/// Answers to calls that were dropped go to no other call.
#[tokio::test(flavor = "multi_thread")]
async fn the_answer_of_a_dropped_call_reaches_no_other_call() {
    let Some(server) = RedisServer::start(&[]) else {
        return;
    };
    let proxy = Proxy::before(server.server.address);
    let store = behind(&proxy).await;
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
        let claimed = store.claim(event, own, LONG).await.unwrap();
        assert_eq!(
            claimed,
            Done {
                body_mark: holder.body_mark()
            }
        );
        assert_eq!(store.commit(&fresh, own, LONG).await.unwrap(), Held);
    }
    assert_eq!(proxy.taken(), taken, "on the same connection");
}

/// A reachable server that answers with an error: an error of the call, the connection stays, and all is well when it can work
/// again.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_answers_with_a_fault_is_unavailable_and_stays_connected() {
    let settings = ["--busy-reply-threshold", "1", "--save", "3600 1"];
    let Some(server) = RedisServer::start(&settings) else {
        return;
    };
    let proxy = Proxy::before(server.server.address);
    let store = behind(&proxy).await;
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

    let _: () = direct.say("CONFIG SET min-replicas-to-write 1").await;
    refused("NOREPLICAS").await;
    let _: () = direct.say("CONFIG SET min-replicas-to-write 0").await;

    // A snapshot can't be written, as on a full disk: then Redis takes no writes by default.
    std::fs::create_dir(server.folder().join("dump.rdb")).unwrap();
    let _: redis::Value = direct.say("BGSAVE").await;
    until(
        |info: &String| info.contains("rdb_last_bgsave_status:err"),
        async || {
            Direct::to(&server.url())
                .await
                .say("INFO persistence")
                .await
        },
    )
    .await;
    refused("MISCONF").await;
    let _: () = direct
        .say("CONFIG SET stop-writes-on-bgsave-error no")
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
    until(
        |asked: &Result<_, hookgate::dedupe::StoreError>| {
            asked.as_ref().is_err_and(|error| {
                let source = std::error::Error::source(error).map(ToString::to_string);
                source.is_some_and(|source| source.contains("BUSY"))
            })
        },
        || store.renew(&one, asking, LONG),
    )
    .await
    .unwrap_err();
    let _: () = direct.say("SCRIPT KILL").await;
    endless.await.unwrap().unwrap_err();

    assert_eq!(store.renew(&event, holder, LONG).await.unwrap(), Held);
    assert_eq!(store.commit(&event, holder, LONG).await.unwrap(), Held);
    assert!(proxy.taken() - taken <= 1, "{}", proxy.taken() - taken);
}

// fault C5: a call has no limit of time, or each of its statements has its own
#[tokio::test(flavor = "multi_thread")]
async fn a_server_out_of_reach_is_found_again() {
    let Some(server) = RedisServer::start(&[]) else {
        return;
    };
    let fails = async |fault: Fault, expected: Option<StoreErrorKind>| {
        let proxy = Proxy::before(server.server.address);
        let store = behind(&proxy).await.with_prefix(&format!("{fault:?}:"));
        let mut fastest = Duration::MAX;
        for _ in 0..ROUNDS {
            proxy.set(fault);
            let mut slowest = Duration::ZERO;
            for _ in 0..3 {
                let before = Instant::now();
                let error = store.claim(&key("event"), token(), LONG).await.unwrap_err();
                assert!(
                    expected.is_none_or(|kind| kind == error.kind()),
                    "{fault:?}: {error:?}"
                );
                slowest = slowest.max(before.elapsed());
            }
            proxy.set(Fault::None);
            recovered(&store).await;
            fastest = fastest.min(slowest);
            if fastest < SOON {
                break;
            }
        }
        assert!(fastest < SOON, "{fault:?}: {fastest:?}");
    };
    let (late, timed_out) = (
        Fault::Delay(Duration::from_secs(3)),
        StoreErrorKind::TimedOut,
    );
    tokio::join!(
        fails(Fault::Refuse, None),
        fails(Fault::HalfOpen, Some(timed_out)),
        fails(late, Some(timed_out)),
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_was_down_or_paused_is_used_again() {
    let (Some(mut server), Some(paused)) = (RedisServer::start(&[]), RedisServer::start(&[]))
    else {
        return;
    };
    let goes_down = async {
        let store = connected(&server.url()).await;
        recovered(&store).await;
        server.server.kill();
        for _ in 0..3 {
            store.claim(&key("event"), token(), LONG).await.unwrap_err();
        }
        server.restart();
        recovered(&store).await;
    };
    let pauses = async {
        let store = connected(&paused.url()).await;
        recovered(&store).await;
        paused.server.signal("STOP");
        for _ in 0..3 {
            let error = store.claim(&key("event"), token(), LONG).await.unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::TimedOut);
        }
        paused.server.signal("CONT");
        recovered(&store).await;
    };
    tokio::join!(goes_down, pauses);
}

/// The login fails for a while, as where a password is changed on the server before it is on its clients' side again.
#[tokio::test(flavor = "multi_thread")]
async fn a_login_that_failed_is_tried_again() {
    let password = ["--requirepass", "made-up-password"];
    let Some(mut server) = RedisServer::start(&password) else {
        return;
    };
    let url = format!("redis://:made-up-password@{}", server.server.address);
    let store = connected(&url).await;
    recovered(&store).await;
    server.restart_with(&["--requirepass", "another"]);
    let (event, holder) = (key("event"), token());
    // The first calls find the old connection closed; then the login is refused.
    until(
        |answered: &Result<_, hookgate::dedupe::StoreError>| {
            let error = format!("{:?}", answered.as_ref().unwrap_err());
            assert!(!error.contains("made-up-password"));
            error.contains("AuthenticationFailed") || error.contains("WRONGPASS")
        },
        || store.claim(&event, holder, LONG),
    )
    .await
    .unwrap_err();
    server.restart_with(&password);
    recovered(&store).await;
}

/// As after a failover, where the name now resolves to another server: the connection to the old one is given up.
// fault C12: after a failover, each connection to the old server costs a call
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_became_a_replica_is_left() {
    let Some(server) = RedisServer::start(&[]) else {
        return;
    };
    let proxy = Proxy::before(server.server.address);
    let store = behind(&proxy).await;
    let mut direct = Direct::to(&server.url()).await;
    let before = proxy.taken();
    let _: () = direct.say("REPLICAOF 127.0.0.1 1").await;
    for _ in 0..50 {
        let error = store.claim(&key("event"), token(), LONG).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    }
    let (event, token) = (key("event"), token());
    until(
        |_: &Result<_, _>| proxy.taken() > before,
        || store.claim(&event, token, LONG),
    )
    .await
    .unwrap_err();
    // Not one a call.
    assert!(proxy.taken() - before < 25, "{}", proxy.taken() - before);
    let _: () = direct.say("REPLICAOF NO ONE").await;
    recovered(&store).await;
}

/// The server takes connections before it has read its file, and answers every call with an error: no event is claimed again
/// meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_still_reads_its_file_refuses_and_then_knows_what_is_done() {
    let Some(mut server) = RedisServer::start(&[]) else {
        return;
    };
    let store = patient(&server.url());
    let (event, holder) = (key("event"), token());
    store.claim(&event, holder, LONG).await.unwrap();
    store.commit(&event, holder, LONG).await.unwrap();
    let mut direct = Direct::to(&server.url()).await;
    for number in 0..2_000 {
        let _: () = direct.say(&format!("SET other-{number} value")).await;
    }
    let _: () = direct.say("SAVE").await;
    // Three milliseconds for each key, and a look at the connections now and then.
    server.restart_with(&[
        "--key-load-delay",
        "3000",
        "--loading-process-events-interval-bytes",
        "1024",
    ]);
    let claimed = async || store.claim(&event, token(), LONG).await;
    let reads = |claimed: &Result<_, hookgate::dedupe::StoreError>| {
        let Err(error) = claimed else {
            panic!("it was to read for longer");
        };
        format!("{error:?}").contains("loading the dataset")
    };
    let refused = until(reads, claimed).await.unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::Unavailable);
    let known = until(Result::is_ok, claimed).await.unwrap();
    assert_eq!(
        known,
        Done {
            body_mark: holder.body_mark()
        }
    );
}

/// An operator sets a password, and takes it back: calls fail meanwhile, and the store comes back by itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_login_that_the_server_begins_to_require_is_an_error_until_it_no_longer_does() {
    let Some(server) = RedisServer::start(&[]) else {
        return;
    };
    let store = connected(&server.url()).await;
    recovered(&store).await;
    let mut direct = Direct::to(&server.url()).await;
    let _: () = direct.say("CONFIG SET requirepass made_up").await;
    let _: u64 = direct.say("CLIENT KILL TYPE normal SKIPME yes").await;
    let refused = until(
        |claimed: &Result<_, hookgate::dedupe::StoreError>| {
            let text = format!("{claimed:?}");
            text.contains("NOAUTH") || text.contains("uthentication")
        },
        async || store.claim(&key("event"), token(), LONG).await,
    )
    .await;
    assert_eq!(refused.unwrap_err().kind(), StoreErrorKind::Unavailable);
    let _: () = direct.say("CONFIG SET requirepass ").await;
    recovered(&store).await;
}
