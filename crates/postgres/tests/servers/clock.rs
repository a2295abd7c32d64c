//! A server whose clock is set by an hour: leases and retentions go by it, and a claim in a
//! transaction does not.

use std::time::Duration;

use hookgate::{
    DedupeStore,
    dedupe::Claimed::{self, Fresh},
    dedupe::Ownership::{Held, Lost},
    dedupe::{ClaimValues, ClaimedIn},
};
use hookgate_postgres::migrate;

use super::{claimed_in, key, store, token};
use crate::support::{Folder, PostgresServer, Skew, client_at, done_by, needed, until, value};

const HOUR: i64 = 3600;
const LEASE: Duration = Duration::from_secs(30);
const RETAIN: Duration = Duration::from_secs(48 * 3600);

struct Skewed {
    server: PostgresServer,
    skew: Skew,
    _folder: Folder,
}

impl Skewed {
    fn start() -> Option<Self> {
        let folder = Folder::new();
        let skew = Skew::within(folder.path())?;
        let server = PostgresServer::start_in(&["fsync=off"], skew.environment(&[]))?;
        Some(Self {
            server,
            skew,
            _folder: folder,
        })
    }

    /// Sets its clock to that of this machine and so much, and waits until it shows.
    async fn set(&self, seconds: i64) {
        self.skew.set(seconds);
        let client = client_at(&self.server.config()).await;
        let time = "SELECT extract(epoch FROM clock_timestamp())::bigint";
        until("its clock follows", async || {
            let theirs: i64 = value(&client, time).await;
            let ours = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs() as i64;
            (theirs - ours - seconds).abs() < 10
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_hour_more_or_less_forgets_nothing_and_lets_one_run_commit() {
    let skewed = needed!(Skewed::start());
    let mut client = client_at(&skewed.server.config()).await;
    migrate(&client).await.unwrap();
    let store = store(&skewed.server.config());
    let (done, running) = (key("done"), key("running"));
    let [by, holder, successor, other] = [(); 4].map(|()| token());
    store.claim(&done, by, LEASE).await.unwrap();
    store.commit(&done, by, RETAIN).await.unwrap();
    store.claim(&running, holder, LEASE).await.unwrap();
    let in_transaction = ClaimValues::new("test", done, b"{}", RETAIN);
    assert_eq!(
        claimed_in(&mut client, &in_transaction).await,
        ClaimedIn::Fresh
    );

    skewed.set(HOUR).await;
    // The lease has ended early: a second run may begin, and the tokens let one of the two commit.
    let claimed = store.claim(&running, successor, LEASE).await.unwrap();
    assert_eq!(claimed, Fresh);
    assert_eq!(store.renew(&running, holder, LEASE).await.unwrap(), Lost);
    assert_eq!(store.commit(&running, holder, RETAIN).await.unwrap(), Lost);

    skewed.set(-HOUR).await;
    // The lease lasts longer than set: a copy gets "running", and the holder still commits.
    let found = store.claim(&running, other, LEASE).await.unwrap();
    let Claimed::Running { retry_after } = found else {
        panic!("{found:?}");
    };
    assert!(retry_after > Duration::from_secs(HOUR as u64));
    assert_eq!(
        store.commit(&running, successor, RETAIN).await.unwrap(),
        Held
    );
    for seconds in [-HOUR, 0, HOUR, 40 * HOUR] {
        skewed.set(seconds).await;
        let found = store.claim(&done, other, LEASE).await.unwrap();
        assert_eq!(found, done_by(by), "{seconds}");
        // However far the clock is off, a committed event is never fresh again before its record is
        // deleted.
        let found = claimed_in(&mut client, &in_transaction).await;
        assert_eq!(found, ClaimedIn::Duplicate { same_body: true });
    }
}
