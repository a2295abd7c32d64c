//! Claims inside a transaction, at each isolation level.

use std::time::Duration;

use hookgate::dedupe::{ClaimValues, ClaimedIn, EventKey, StoreErrorKind};
use hookgate_postgres::{claim_values_in, forget, store_error};
use tokio_postgres::{Client, IsolationLevel, Transaction};

use crate::support::{PostgresServer, client_at, migrated};

const BODY: &[u8] = br#"{"id":"evt_1"}"#;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const LEVELS: [IsolationLevel; 3] = [
    IsolationLevel::ReadCommitted,
    IsolationLevel::RepeatableRead,
    IsolationLevel::Serializable,
];
const SAME: ClaimedIn = ClaimedIn::Duplicate { same_body: true };

fn event(id: &str) -> ClaimValues {
    ClaimValues::new("test", EventKey::new("default", id), BODY, DAY)
}

async fn begin(client: &mut Client, level: IsolationLevel) -> Transaction<'_> {
    let transaction = client.build_transaction().isolation_level(level);
    transaction.start().await.unwrap()
}

async fn claim(transaction: &Transaction<'_>, id: &str) -> ClaimedIn {
    claim_values_in(transaction, &event(id)).await.unwrap()
}

/// The number of rows that a claim has left behind.
async fn remembered(client: &Client) -> i64 {
    let count = "SELECT count(*) FROM hookgate_effects";
    client.query_one(count, &[]).await.unwrap().get(0)
}

/// A server, and two clients that have transactions there.
async fn two_clients() -> Option<(PostgresServer, Client, Client)> {
    let server = migrated(&["fsync=off"]).await?;
    let config = server.config();
    let (first, second) = (client_at(&config).await, client_at(&config).await);
    Some((server, first, second))
}

// fault C3: a claim in a transaction takes no advisory lock, or waits for one
#[tokio::test]
async fn a_claim_goes_with_its_transaction() {
    let Some((_server, mut first, mut second)) = two_clients().await else {
        return;
    };
    for (number, level) in LEVELS.into_iter().enumerate() {
        let id = &format!("evt_{number}");
        // Held while it is open: answered at once, and without harm to the one that asks.
        let open = begin(&mut first, level).await;
        assert_eq!(claim(&open, id).await, ClaimedIn::Fresh);
        assert_eq!(claim(&open, id).await, SAME);
        let other = begin(&mut second, level).await;
        let asked = tokio::time::timeout(Duration::from_secs(60), claim(&other, id));
        assert_eq!(asked.await.unwrap(), ClaimedIn::Running);
        let unharmed = claim(&other, "evt_another").await;
        assert_eq!(unharmed, ClaimedIn::Fresh);
        other.rollback().await.unwrap();

        // Rolled back: nothing is left, and the next one has it.
        open.rollback().await.unwrap();
        assert_eq!(remembered(&second).await, number as i64);
        let next = begin(&mut second, level).await;
        assert_eq!(claim(&next, id).await, ClaimedIn::Fresh);
        next.commit().await.unwrap();

        // Committed: a duplicate from now on, whatever the body; of another scope it is another event.
        let copy = begin(&mut first, level).await;
        assert_eq!(claim(&copy, id).await, SAME);
        let changed = ClaimValues::new("test", EventKey::new("default", id), b"{}", DAY);
        assert_eq!(
            claim_values_in(&copy, &changed).await.unwrap(),
            ClaimedIn::Duplicate { same_body: false }
        );
        let elsewhere = ClaimValues::new("test", EventKey::new("elsewhere", id), BODY, DAY);
        assert_eq!(
            claim_values_in(&copy, &elsewhere).await.unwrap(),
            ClaimedIn::Fresh
        );
        copy.rollback().await.unwrap();
    }
}

/// The other transaction commits after this one has begun, and before it claims.
#[tokio::test]
async fn a_commit_in_between_is_a_duplicate_or_a_conflict() {
    let Some((_server, mut first, mut second)) = two_clients().await else {
        return;
    };
    for (number, level) in LEVELS.into_iter().enumerate() {
        let id = &format!("evt_{number}");
        let late = begin(&mut second, level).await;
        // Takes its snapshot.
        late.query_one("SELECT count(*) FROM hookgate_claims", &[])
            .await
            .unwrap();
        let open = begin(&mut first, level).await;
        assert_eq!(claim(&open, id).await, ClaimedIn::Fresh);
        open.commit().await.unwrap();

        let claimed = claim_values_in(&late, &event(id)).await;
        if matches!(level, IsolationLevel::ReadCommitted) {
            assert_eq!(claimed.unwrap(), SAME);
            late.rollback().await.unwrap();
            continue;
        }
        assert_eq!(claimed.unwrap_err().kind(), StoreErrorKind::Conflict);
        let after = claim_values_in(&late, &event(id)).await;
        assert_eq!(after.unwrap_err().kind(), StoreErrorKind::Aborted);
        late.rollback().await.unwrap();
        let again = begin(&mut second, level).await;
        assert_eq!(claim(&again, id).await, SAME);
    }
}

/// One client's statement begins while the other's transaction is open, and goes on when that has committed: its own snapshot
/// does not show the record.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_while_the_statement_runs_is_not_fresh_a_second_time() {
    let Some(server) = migrated(&["fsync=off"]).await else {
        return;
    };
    let mut racers = Vec::new();
    for _ in 0..16 {
        racers.push(client_at(&server.config()).await);
    }
    for level in LEVELS {
        for round in 0..40 {
            let id = format!("evt_{level:?}_{round}");
            let mut tasks = Vec::new();
            for mut client in racers.drain(..) {
                let id = id.clone();
                tasks.push(tokio::spawn(async move {
                    // As a sender does: until it is known how the other transaction ended.
                    let fresh = loop {
                        let transaction = begin(&mut client, level).await;
                        match claim_values_in(&transaction, &event(&id)).await {
                            Ok(ClaimedIn::Fresh) => match transaction.commit().await {
                                Ok(()) => break true,
                                Err(error) => {
                                    let kind = store_error(error).kind();
                                    assert_eq!(kind, StoreErrorKind::Conflict);
                                }
                            },
                            Ok(ClaimedIn::Running) => transaction.rollback().await.unwrap(),
                            Ok(duplicate) => {
                                assert_eq!(duplicate, SAME);
                                break false;
                            }
                            Err(error) => {
                                assert!(!matches!(level, IsolationLevel::ReadCommitted));
                                assert_eq!(error.kind(), StoreErrorKind::Conflict);
                                transaction.rollback().await.unwrap();
                            }
                        }
                    };
                    (fresh, client)
                }));
            }
            let mut fresh = 0;
            for task in tasks {
                let (won, client) = task.await.unwrap();
                fresh += u32::from(won);
                racers.push(client);
            }
            assert_eq!(fresh, 1, "{id}");
        }
    }
}

/// Another event may have the same number of 64 bits, or a lock of the user's own: it is held for once, without waiting, and all else continues.
// fault C3: a claim in a transaction takes no advisory lock, or waits for one
#[tokio::test]
async fn a_lock_of_the_same_number_is_held_for_once() {
    let Some((_server, mut client, mut other)) = two_clients().await else {
        return;
    };
    let values = event("evt_1");
    let number = i64::from_be_bytes(values.key()[..8].try_into().unwrap());
    for level in LEVELS {
        let locking = begin(&mut other, level).await;
        let lock = "SELECT pg_advisory_xact_lock($1)";
        locking.execute(lock, &[&number]).await.unwrap();
        let transaction = begin(&mut client, level).await;
        let asked = tokio::time::timeout(Duration::from_secs(60), claim(&transaction, "evt_1"));
        assert_eq!(asked.await.unwrap(), ClaimedIn::Running);
        assert_eq!(claim(&transaction, "evt_2").await, ClaimedIn::Fresh);
        locking.rollback().await.unwrap();
        assert_eq!(claim(&transaction, "evt_1").await, ClaimedIn::Fresh);
        transaction.rollback().await.unwrap();
    }
    // A done event is found without any lock.
    let transaction = begin(&mut client, LEVELS[0]).await;
    assert_eq!(claim(&transaction, "evt_1").await, ClaimedIn::Fresh);
    transaction.commit().await.unwrap();
    let lock = "SELECT pg_advisory_lock($1)";
    other.execute(lock, &[&number]).await.unwrap();
    let transaction = begin(&mut client, LEVELS[0]).await;
    assert_eq!(claim(&transaction, "evt_1").await, SAME);
}

/// A transaction that has been open for a while remembers for as long as any other.
// fault C15: what a transaction that has long been open has claimed is remembered for less
#[tokio::test]
async fn retention_runs_from_the_claim_and_not_from_the_transactions_begin() {
    let Some(server) = migrated(&["fsync=off"]).await else {
        return;
    };
    let mut client = client_at(&server.config()).await;
    let transaction = begin(&mut client, LEVELS[0]).await;
    transaction
        .batch_execute("SELECT pg_sleep(0.2)")
        .await
        .unwrap();
    for (id, retain) in [
        ("none", Duration::ZERO),
        ("an hour", Duration::from_secs(3_600)),
        ("most", Duration::MAX),
    ] {
        let values = ClaimValues::new("test", EventKey::new("default", id), BODY, retain);
        let claimed = claim_values_in(&transaction, &values).await.unwrap();
        assert_eq!(claimed, ClaimedIn::Fresh, "{id}");
    }
    let later = "SELECT count(*) FROM hookgate_effects WHERE until >= now() + interval '200 ms'";
    let rows = transaction.query_one(later, &[]).await.unwrap();
    assert_eq!(rows.get::<_, i64>(0), 3);
    let late =
        "SELECT count(*) FROM hookgate_effects WHERE until >= now() + interval '1 hour 200 ms'";
    let rows = transaction.query_one(late, &[]).await.unwrap();
    assert_eq!(rows.get::<_, i64>(0), 2);
    // Without any retention it is remembered until it is deleted: it decides nothing.
    assert_eq!(claim(&transaction, "none").await, SAME);
}

#[tokio::test]
async fn a_savepoint_takes_its_claim_along() {
    let Some((_server, mut client, mut other)) = two_clients().await else {
        return;
    };
    for level in LEVELS {
        let mut outer = begin(&mut client, level).await;
        let inner = outer.transaction().await.unwrap();
        assert_eq!(claim(&inner, "evt_1").await, ClaimedIn::Fresh);
        inner.rollback().await.unwrap();
        // Free for others while the outer one continues, and for itself.
        let elsewhere = begin(&mut other, level).await;
        assert_eq!(claim(&elsewhere, "evt_1").await, ClaimedIn::Fresh);
        elsewhere.rollback().await.unwrap();
        let inner = outer.transaction().await.unwrap();
        assert_eq!(claim(&inner, "evt_1").await, ClaimedIn::Fresh);
        inner.commit().await.unwrap();
        assert_eq!(claim(&outer, "evt_1").await, SAME);
        outer.rollback().await.unwrap();
        assert_eq!(remembered(&client).await, 0);
    }
}

/// Where the client is gone in the middle, its transaction is rolled back, and nothing is held.
#[tokio::test]
async fn a_client_that_is_gone_leaves_nothing() {
    let Some(server) = migrated(&["fsync=off"]).await else {
        return;
    };
    let mut other = client_at(&server.config()).await;
    {
        let (mut client, connection) =
            tokio_postgres::connect(&server.config(), tokio_postgres::NoTls)
                .await
                .unwrap();
        let driven = tokio::spawn(connection);
        let transaction = begin(&mut client, IsolationLevel::ReadCommitted).await;
        assert_eq!(claim(&transaction, "evt_1").await, ClaimedIn::Fresh);
        driven.abort();
    }
    let until = std::time::Instant::now() + Duration::from_secs(60);
    loop {
        let transaction = begin(&mut other, IsolationLevel::ReadCommitted).await;
        match claim(&transaction, "evt_1").await {
            ClaimedIn::Fresh => return,
            found => assert_eq!(found, ClaimedIn::Running),
        }
        assert!(std::time::Instant::now() < until);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Claims go on while several calls delete ended records at a time; remembered events are not touched.
// fault C13: deletion takes what still counts
#[tokio::test(flavor = "multi_thread")]
async fn what_has_ended_is_deleted_in_chunks() {
    let Some(server) = migrated(&["fsync=off"]).await else {
        return;
    };
    let mut client = client_at(&server.config()).await;
    let fill = "INSERT INTO hookgate_effects SELECT decode(md5(n::text), 'hex'), n, now() + CASE WHEN n <= 3000 THEN '-1 s' ELSE '1 h' END::interval FROM generate_series(1, 4000) n;
        INSERT INTO hookgate_claims SELECT decode(md5(n::text), 'hex'), decode(md5(n::text), 'hex'), n % 2 = 0, now() - interval '1 s' FROM generate_series(1, 500) n";
    client.batch_execute(fill).await.unwrap();
    let mut forgetting = Vec::new();
    for _ in 0..3 {
        let client = client_at(&server.config()).await;
        forgetting.push(tokio::spawn(async move {
            let mut forgotten = 0;
            loop {
                match forget(&client, 100).await.unwrap() {
                    0 => return forgotten,
                    some => {
                        assert!(some <= 200);
                        forgotten += some;
                    }
                }
            }
        }));
    }
    for number in 0..50 {
        let transaction = begin(&mut client, IsolationLevel::ReadCommitted).await;
        let id = format!("evt_{number}");
        assert_eq!(claim(&transaction, &id).await, ClaimedIn::Fresh);
        transaction.commit().await.unwrap();
    }
    let mut forgotten = 0;
    for task in forgetting {
        forgotten += task.await.unwrap();
    }
    // Where all three meet, one call may skip the rows that the others hold and find none; no call waits.
    while let Ok(some @ 1..) = forget(&client, 1_000).await {
        forgotten += some;
    }
    assert_eq!(forgotten, 3_500);
    assert_eq!(remembered(&client).await, 1_050);
}
