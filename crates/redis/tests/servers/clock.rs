//! A server whose clock is set by an hour: Redis counts leases and retentions by its wall clock.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use hookgate::{
    DedupeStore,
    dedupe::Claimed::{Fresh, Running},
    dedupe::Ownership::{Held, Lost},
    dedupe::{ClaimToken, EventKey},
};
use hookgate_redis::RedisStore;

use super::{Direct, key, patient, token, until};
use crate::support::{Folder, RedisServer, Skew, done_by, needed};

const HOUR: u64 = 3600;
const LEASE: Duration = Duration::from_secs(30);
/// The default retention of a receiver.
const RETAIN: Duration = Duration::from_secs(48 * HOUR);
/// How long the sender tries again: 26 h 36 min.
const SCHEDULE: Duration = Duration::from_secs(26 * HOUR + 36 * 60);

struct Skewed {
    server: RedisServer,
    store: RedisStore,
    skew: Skew,
    _folder: Folder,
}

impl Skewed {
    /// With an event that is done, and the token that has committed it.
    async fn start() -> Option<(Self, EventKey, ClaimToken)> {
        let folder = Folder::new();
        let skew = Skew::within(folder.path())?;
        // Redis' own allocator asks for the time before libfaketime can answer; with that of the C
        // library first, it does not.
        let environment = skew.environment(&[c_library()?]);
        let server = RedisServer::start_in(&[], environment)?;
        let store = patient(&server.url());
        let (done, by) = (key("done"), token());
        store.claim(&done, by, LEASE).await.unwrap();
        store.commit(&done, by, RETAIN).await.unwrap();
        let skewed = Self {
            server,
            store,
            skew,
            _folder: folder,
        };
        Some((skewed, done, by))
    }

    /// Sets its clock to that of this machine and so much, and waits until it shows.
    async fn set(&self, seconds: i64) {
        self.skew.set(seconds);
        let shown = async || {
            let (theirs, _): (i64, i64) = Direct::to(&self.server.url()).await.say("TIME").await;
            let ours = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs() as i64;
            (theirs - ours - seconds).abs()
        };
        until(|off| *off < 10, shown).await;
    }
}

/// That of this process, by its own account.
fn c_library() -> Option<PathBuf> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let path = |line: &str| {
        let path = &line[line.find('/')?..];
        path.ends_with("/libc.so.6").then(|| PathBuf::from(path))
    };
    maps.lines().find_map(path)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_hour_forward_ends_leases_early_and_forgets_nothing_that_is_still_sent() {
    let (skewed, done, by) = needed!(Skewed::start().await);
    let store = &skewed.store;
    let claim = async |event| store.claim(event, token(), LEASE).await.unwrap();
    let (running, holder, successor) = (key("running"), token(), token());
    store.claim(&running, holder, LEASE).await.unwrap();

    skewed.set(HOUR as i64).await;
    // A second run may begin while the first is under way; only one of them can commit.
    let second = store.claim(&running, successor, LEASE).await;
    assert_eq!(second.unwrap(), Fresh);
    assert_eq!(store.renew(&running, holder, LEASE).await.unwrap(), Lost);
    assert_eq!(store.commit(&running, holder, RETAIN).await.unwrap(), Lost);
    let committed = store.commit(&running, successor, RETAIN).await;
    assert_eq!(committed.unwrap(), Held);
    // A done event is remembered an hour less, which is far beyond the last retry.
    assert_eq!(claim(&done).await, done_by(by));
    skewed.set(HOUR as i64 + SCHEDULE.as_secs() as i64).await;
    assert_eq!(claim(&done).await, done_by(by));
    skewed.set(RETAIN.as_secs() as i64 + 60).await;
    assert_eq!(claim(&done).await, Fresh);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_hour_backward_keeps_leases_longer_until_they_are_renewed_or_released() {
    let (skewed, done, by) = needed!(Skewed::start().await);
    let store = &skewed.store;
    let claim = async |event| store.claim(event, token(), LEASE).await.unwrap();
    let (renewed, lost, holder) = (key("renewed"), key("lost"), token());
    store.claim(&renewed, holder, LEASE).await.unwrap();
    store.claim(&lost, holder, LEASE).await.unwrap();

    skewed.set(-(HOUR as i64)).await;
    let left = async |event| match claim(event).await {
        Running { retry_after } => retry_after,
        other => panic!("{other:?}"),
    };
    // Of a process that died, the event is held for the hour, then free: the sender tries for a
    // day.
    assert!(left(&lost).await > Duration::from_secs(HOUR - 60));
    // A living holder renews at a third of the lease, and nothing changes.
    assert_eq!(store.renew(&renewed, holder, LEASE).await.unwrap(), Held);
    assert!(left(&renewed).await <= LEASE);
    assert_eq!(store.commit(&renewed, holder, RETAIN).await.unwrap(), Held);
    assert_eq!(claim(&done).await, done_by(by));
    skewed.set(60).await;
    assert_eq!(claim(&lost).await, Fresh);
}
