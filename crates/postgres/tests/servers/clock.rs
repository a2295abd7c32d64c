//! A server whose clock is set by an hour: leases and retentions go by it, and a claim in a transaction does not.

use std::time::{Duration, Instant};

use hookgate::{
    DedupeStore,
    dedupe::{ClaimToken, ClaimValues, Claimed, ClaimedIn, EventKey, Ownership},
};
use hookgate_postgres::{PostgresStore, claim_values_in, migrate};

use super::patient;
use crate::support::{Folder, PostgresServer, Skew, client_at};

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
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            let theirs: i64 = client.query_one(time, &[]).await.unwrap().get(0);
            let ours = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs() as i64;
            if (theirs - ours - seconds).abs() < 10 {
                return;
            }
            assert!(Instant::now() < until, "its clock does not follow");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_hour_more_or_less_forgets_nothing_and_lets_one_run_commit() {
    let Some(skewed) = Skewed::start() else {
        return;
    };
    let mut client = client_at(&skewed.server.config()).await;
    migrate(&client).await.unwrap();
    let store = PostgresStore::new(&patient(&skewed.server.config()), "test");
    let (done, running) = (EventKey::new("s", "done"), EventKey::new("s", "running"));
    let [by, holder, successor, other] = [(); 4].map(|()| ClaimToken::new(b"{}"));
    store.claim(&done, by, LEASE).await.unwrap();
    store.commit(&done, by, RETAIN).await.unwrap();
    store.claim(&running, holder, LEASE).await.unwrap();
    let in_transaction = ClaimValues::new("test", done, b"{}", RETAIN);
    let transaction = client.transaction().await.unwrap();
    let claimed = claim_values_in(&transaction, &in_transaction)
        .await
        .unwrap();
    assert_eq!(claimed, ClaimedIn::Fresh);
    transaction.commit().await.unwrap();

    skewed.set(HOUR).await;
    // The lease has ended early: a second run may begin, and the tokens let one of the two commit.
    let claimed = store.claim(&running, successor, LEASE).await.unwrap();
    assert_eq!(claimed, Claimed::Fresh);
    assert_eq!(
        store.renew(&running, holder, LEASE).await.unwrap(),
        Ownership::Lost
    );
    assert_eq!(
        store.commit(&running, holder, RETAIN).await.unwrap(),
        Ownership::Lost
    );

    skewed.set(-HOUR).await;
    // The lease lasts longer than set: a copy gets "running", and the holder still commits.
    let found = store.claim(&running, other, LEASE).await.unwrap();
    let Claimed::Running { retry_after } = found else {
        panic!("{found:?}");
    };
    assert!(retry_after > Duration::from_secs(HOUR as u64));
    assert_eq!(
        store.commit(&running, successor, RETAIN).await.unwrap(),
        Ownership::Held
    );
    for seconds in [-HOUR, 0, HOUR, 40 * HOUR] {
        skewed.set(seconds).await;
        let found = store.claim(&done, other, LEASE).await.unwrap();
        assert_eq!(
            found,
            Claimed::Done {
                body_mark: by.body_mark()
            },
            "{seconds}"
        );
        // However far the clock is off, a committed event is never fresh again before its record is deleted.
        let transaction = client.transaction().await.unwrap();
        let found = claim_values_in(&transaction, &in_transaction)
            .await
            .unwrap();
        assert_eq!(found, ClaimedIn::Duplicate { same_body: true });
    }
}
