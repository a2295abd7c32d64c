//! Claims inside a transaction, at each isolation level.

use std::time::Duration;

use hookgate::dedupe::ClaimedIn::{self, Duplicate, Fresh, Running};
use hookgate::dedupe::{ClaimValues, EventKey, StoreErrorKind};
use hookgate_postgres::{claim_values_in, forget, store_error};
use tokio_postgres::{Client, IsolationLevel, Transaction};

use super::{LEVELS, begin};
use crate::support::{PostgresServer, client_at, migrated, needed, unflushed, until, value};

const BODY: &[u8] = br#"{"id":"evt_1"}"#;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const CONFLICT: StoreErrorKind = StoreErrorKind::Conflict;
const SAME: ClaimedIn = Duplicate { same_body: true };

fn event(id: &str) -> ClaimValues {
    ClaimValues::new("test", EventKey::new("default", id), BODY, DAY)
}

async fn claim(transaction: &Transaction<'_>, id: &str) -> ClaimedIn {
    claim_values_in(transaction, &event(id)).await.unwrap()
}

/// The number of rows that a claim has left behind.
async fn remembered(client: &Client) -> i64 {
    value(client, "SELECT count(*) FROM hookgate_effects").await
}

/// A server, and two clients that have transactions there.
async fn two_clients() -> Option<(PostgresServer, Client, Client)> {
    let (server, first) = unflushed().await?;
    let second = client_at(&server.config()).await;
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
        assert_eq!(claim(&open, id).await, Fresh);
        assert_eq!(claim(&open, id).await, SAME);
        let other = begin(&mut second, level).await;
        let asked = tokio::time::timeout(Duration::from_secs(60), claim(&other, id));
        assert_eq!(asked.await.unwrap(), Running);
        let unharmed = claim(&other, "evt_another").await;
        assert_eq!(unharmed, Fresh);
        other.rollback().await.unwrap();

        // Rolled back: nothing is left, and the next one has it.
        open.rollback().await.unwrap();
        assert_eq!(remembered(&second).await, number as i64);
        let next = begin(&mut second, level).await;
        assert_eq!(claim(&next, id).await, Fresh);
        next.commit().await.unwrap();

        // Committed: a duplicate from now on, whatever the body; of another scope it is another
        // event.
        let copy = begin(&mut first, level).await;
        assert_eq!(claim(&copy, id).await, SAME);
        let changed = ClaimValues::new("test", EventKey::new("default", id), b"{}", DAY);
        let other_body = claim_values_in(&copy, &changed).await.unwrap();
        assert_eq!(other_body, Duplicate { same_body: false });
        let elsewhere = ClaimValues::new("test", EventKey::new("elsewhere", id), BODY, DAY);
        let other_scope = claim_values_in(&copy, &elsewhere).await.unwrap();
        assert_eq!(other_scope, Fresh);
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
        late.batch_execute("SELECT FROM hookgate_claims")
            .await
            .unwrap();
        let open = begin(&mut first, level).await;
        assert_eq!(claim(&open, id).await, Fresh);
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

/// One client's statement begins while the other's transaction is open, and goes on when that has
/// committed: its own snapshot does not show the record.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_while_the_statement_runs_is_not_fresh_a_second_time() {
    let server = needed!(migrated(&["fsync=off"]).await);
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
                            Ok(Fresh) => match transaction.commit().await {
                                Ok(()) => break true,
                                Err(error) => assert_eq!(store_error(error).kind(), CONFLICT),
                            },
                            Ok(Running) => transaction.rollback().await.unwrap(),
                            Ok(duplicate) => {
                                assert_eq!(duplicate, SAME);
                                break false;
                            }
                            Err(error) => {
                                assert!(!matches!(level, IsolationLevel::ReadCommitted));
                                assert_eq!(error.kind(), CONFLICT);
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

/// Another event may have the same number of 64 bits, or a lock of the user's own: it is held for
/// once, without waiting, and all else continues.
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
        assert_eq!(asked.await.unwrap(), Running);
        assert_eq!(claim(&transaction, "evt_2").await, Fresh);
        locking.rollback().await.unwrap();
        assert_eq!(claim(&transaction, "evt_1").await, Fresh);
        transaction.rollback().await.unwrap();
    }
    // A done event is found without any lock.
    let transaction = begin(&mut client, LEVELS[0]).await;
    assert_eq!(claim(&transaction, "evt_1").await, Fresh);
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
    let (_server, mut client) = needed!(unflushed().await);
    let transaction = begin(&mut client, LEVELS[0]).await;
    let sleep = "SELECT pg_sleep(0.2)";
    transaction.batch_execute(sleep).await.unwrap();
    for (id, retain) in [
        ("none", Duration::ZERO),
        ("an hour", Duration::from_secs(3_600)),
        ("most", Duration::MAX),
    ] {
        let values = ClaimValues::new("test", EventKey::new("default", id), BODY, retain);
        let claimed = claim_values_in(&transaction, &values).await.unwrap();
        assert_eq!(claimed, Fresh, "{id}");
    }
    for (than, count) in [("200 ms", 3), ("1 hour 200 ms", 2)] {
        let later = "SELECT count(*) FROM hookgate_effects WHERE until >= now() + interval";
        let later: i64 = value(transaction.client(), &format!("{later} '{than}'")).await;
        assert_eq!(later, count, "{than}");
    }
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
        assert_eq!(claim(&inner, "evt_1").await, Fresh);
        inner.rollback().await.unwrap();
        // Free for others while the outer one continues, and for itself.
        let elsewhere = begin(&mut other, level).await;
        assert_eq!(claim(&elsewhere, "evt_1").await, Fresh);
        elsewhere.rollback().await.unwrap();
        let inner = outer.transaction().await.unwrap();
        assert_eq!(claim(&inner, "evt_1").await, Fresh);
        inner.commit().await.unwrap();
        assert_eq!(claim(&outer, "evt_1").await, SAME);
        outer.rollback().await.unwrap();
        assert_eq!(remembered(&client).await, 0);
    }
}

/// Where the client is gone in the middle, its transaction is rolled back, and nothing is held.
#[tokio::test]
async fn a_client_that_is_gone_leaves_nothing() {
    let (server, mut other) = needed!(unflushed().await);
    {
        let connected = tokio_postgres::connect(&server.config(), tokio_postgres::NoTls).await;
        let (mut client, connection) = connected.unwrap();
        let driven = tokio::spawn(connection);
        let transaction = begin(&mut client, LEVELS[0]).await;
        assert_eq!(claim(&transaction, "evt_1").await, Fresh);
        driven.abort();
    }
    until("it is free", async || {
        let transaction = begin(&mut other, LEVELS[0]).await;
        let found = claim(&transaction, "evt_1").await;
        assert!([Fresh, Running].contains(&found), "{found:?}");
        found == Fresh
    })
    .await;
}

/// Claims go on while several calls delete ended records at a time; remembered events are not
/// touched.
// fault C13: deletion takes what still counts
#[tokio::test(flavor = "multi_thread")]
async fn what_has_ended_is_deleted_in_chunks() {
    let (server, mut client) = needed!(unflushed().await);
    let fill = "INSERT INTO hookgate_effects SELECT decode(md5(n::text), 'hex'), n, now() + CASE WHEN n <= 3000 THEN '-1 s' ELSE '1 h' END::interval FROM generate_series(1, 4000) n;
        INSERT INTO hookgate_claims SELECT decode(md5(n::text), 'hex'), decode(md5(n::text), 'hex'), n % 2 = 0, now() - interval '1 s' FROM generate_series(1, 500) n";
    client.batch_execute(fill).await.unwrap();
    let mut forgetting = Vec::new();
    for _ in 0..3 {
        let client = client_at(&server.config()).await;
        forgetting.push(tokio::spawn(async move {
            let mut forgotten = 0;
            while let some @ 1.. = forget(&client, 100).await.unwrap() {
                assert!(some <= 200);
                forgotten += some;
            }
            forgotten
        }));
    }
    for number in 0..50 {
        let transaction = begin(&mut client, LEVELS[0]).await;
        let id = format!("evt_{number}");
        assert_eq!(claim(&transaction, &id).await, Fresh);
        transaction.commit().await.unwrap();
    }
    let mut forgotten = 0;
    for task in forgetting {
        forgotten += task.await.unwrap();
    }
    // Where all three meet, one call may skip the rows that the others hold and find none; no call
    // waits.
    while let Ok(some @ 1..) = forget(&client, 1_000).await {
        forgotten += some;
    }
    assert_eq!(forgotten, 3_500);
    assert_eq!(remembered(&client).await, 1_050);
}
