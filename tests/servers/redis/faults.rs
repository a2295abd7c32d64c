//! Answers that are lost, servers that stop, pause and come back: what each call says, and that the store comes back by itself.

use std::time::{Duration, Instant};

use hookgate::Claimed::{Done, Fresh};
use hookgate::Ownership::{Held, Lost};
use hookgate::{DedupeStore, RedisStore, StoreErrorKind};

use super::{Direct, LONG, key, token, until};
use crate::support::{Fault, Proxy, RedisServer};

/// A store behind a proxy, with its scripts known.
async fn behind(proxy: &Proxy) -> RedisStore {
    let url = format!("redis://{}", proxy.address);
    let store = RedisStore::connect(&url).await.unwrap();
    let (event, token) = (key("first"), token());
    store.claim(&event, token, LONG).await.unwrap();
    store.renew(&event, token, LONG).await.unwrap();
    store.claim(&event, token, LONG).await.unwrap();
    store.release(&event, token).await.unwrap();
    store.commit(&event, token, LONG).await.unwrap();
    store
}

/// It answers again, with nobody's help.
async fn recovered<S: DedupeStore>(store: &S) {
    let (event, token) = (key("recovered"), token());
    until(Result::is_ok, || store.claim(&event, token, LONG))
        .await
        .unwrap();
    until(Result::is_ok, || store.release(&event, token))
        .await
        .unwrap();
}

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
        assert_eq!(claimed, Done { by: holder });
        let (event, holder) = (key(&format!("{fault:?}, released")), token());
        assert_eq!(store.claim(&event, holder, LONG).await.unwrap(), Fresh);
        lost_then!(store.release(&event, holder), Lost);
        assert_eq!(store.claim(&event, token(), LONG).await.unwrap(), Fresh);
    }
}

/// A cable that was pulled, a machine that went: nobody says that the connection is dead. The operating system notices after a quarter of
/// an hour, `ConnectionManager` when it does.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_died_in_silence_is_replaced() {
    let Some(server) = RedisServer::start(&[]) else {
        return;
    };
    let proxy = Proxy::before(server.server.address);
    let store = behind(&proxy).await;
    proxy.kill_standing();
    let before = Instant::now();
    let error = store.claim(&key("event"), token(), LONG).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::TimedOut);
    assert!(
        before.elapsed() < Duration::from_secs(3),
        "{:?}",
        before.elapsed()
    );
    recovered(&store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_out_of_reach_is_found_again() {
    let Some(server) = RedisServer::start(&[]) else {
        return;
    };
    let proxy = Proxy::before(server.server.address);
    let store = behind(&proxy).await;
    for (fault, expected) in [
        (Fault::Refuse, None),
        (Fault::HalfOpen, Some(StoreErrorKind::TimedOut)),
        (
            Fault::Delay(Duration::from_secs(3)),
            Some(StoreErrorKind::TimedOut),
        ),
    ] {
        proxy.set(fault);
        for _ in 0..3 {
            let before = Instant::now();
            let error = store.claim(&key("event"), token(), LONG).await.unwrap_err();
            assert!(
                expected.is_none_or(|kind| kind == error.kind()),
                "{fault:?}: {error:?}"
            );
            // 900 ms, and what a busy machine takes.
            assert!(before.elapsed() < Duration::from_secs(3), "{fault:?}");
        }
        proxy.set(Fault::None);
        recovered(&store).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_was_down_or_stood_still_is_found_again() {
    let Some(mut server) = RedisServer::start(&[]) else {
        return;
    };
    let store = RedisStore::connect(&server.url()).await.unwrap();
    recovered(&store).await;
    server.server.kill();
    for _ in 0..3 {
        store.claim(&key("event"), token(), LONG).await.unwrap_err();
    }
    server.restart();
    recovered(&store).await;

    server.server.signal("STOP");
    for _ in 0..3 {
        let error = store.claim(&key("event"), token(), LONG).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::TimedOut);
    }
    server.server.signal("CONT");
    recovered(&store).await;
}

/// The login fails for a while, as where a password is changed on the server before it is on its clients' side again.
#[tokio::test(flavor = "multi_thread")]
async fn a_login_that_failed_is_tried_again() {
    let password = ["--requirepass", "made-up-password"];
    let Some(mut server) = RedisServer::start(&password) else {
        return;
    };
    let url = format!("redis://:made-up-password@{}", server.server.address);
    let store = RedisStore::connect(&url).await.unwrap();
    recovered(&store).await;
    server.restart_with(&["--requirepass", "another"]);
    let (event, holder) = (key("event"), token());
    // The first calls find the old connection closed; then the login is refused.
    until(
        |answered: &Result<_, hookgate::StoreError>| {
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

/// As after a failover, where the name leads to another server by now: the connection to the old one is given up.
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
