//! How the tables are made, and the errors where they are missing.

use std::time::Duration;

use hookgate::{
    DedupeStore,
    dedupe::{ClaimValues, Claimed, StoreErrorKind},
};
use hookgate_postgres::{MIGRATIONS, Postgres, PostgresStore, claim_values_in, migrate};

use super::{claimed_in, key, store, token};
use crate::support::{PostgresServer, client_at, needed, says, unflushed, value};

const LEASE: Duration = Duration::from_secs(60);

// fault C17: processes that migrate at once meet, at a stricter default isolation
#[tokio::test(flavor = "multi_thread")]
async fn processes_that_migrate_at_once_do_not_meet() {
    let server = needed!(PostgresServer::start(&["fsync=off"]));
    let mut clients = Vec::new();
    for number in 0..12 {
        let client = client_at(&server.config()).await;
        if number % 2 == 0 {
            let stricter = "SET default_transaction_isolation = 'serializable'";
            client.batch_execute(stricter).await.unwrap();
        }
        clients.push(client);
    }
    let migrating = clients
        .into_iter()
        .map(|client| tokio::spawn(async move { migrate(&client).await }));
    let migrating: Vec<_> = migrating.collect();
    for one in migrating {
        one.await.unwrap().unwrap();
    }
    let client = client_at(&server.config()).await;
    let recorded = "SELECT count(*) FROM hookgate_migrations";
    let recorded: i64 = value(&client, recorded).await;
    assert_eq!(recorded, MIGRATIONS.len() as i64);
    // By a migration tool of the user, once more.
    for step in MIGRATIONS {
        client.batch_execute(step.sql).await.unwrap();
    }
}

/// Another process migrates for longer than any time-out of the connections.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_by_its_url_makes_its_tables_and_waits_for_others() {
    let server = needed!(PostgresServer::start(&["fsync=off"]));
    let url = format!("postgres://hookgate@{}/postgres", server.server.address);
    for number in 0..2 {
        let other = client_at(&server.config()).await;
        let lock = i64::from_be_bytes(*b"hookgate");
        let held = "SELECT pg_advisory_lock($1)";
        other.execute(held, &[&lock]).await.unwrap();
        let postgres = Postgres::open(&url).unwrap().with_connections(1);
        let mut postgres = postgres.with_timeout(Duration::from_secs(20));
        if number == 1 {
            postgres = postgres.behind_pooler();
            let forgotten = "DELETE FROM hookgate_migrations WHERE name = 'order-1'";
            other.execute(forgotten, &[]).await.unwrap();
        }
        let migrating = tokio::spawn({
            let postgres = postgres.clone();
            async move { postgres.migrate().await }
        });
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        assert!(!migrating.is_finished(), "it does not wait");
        drop(other);
        migrating.await.unwrap().unwrap();
        postgres.migrate().await.unwrap();
        // The connection is as it was before, and the tables are there.
        let store = PostgresStore::new(&postgres, "orders");
        let event = key(&number.to_string());
        store.claim(&event, token(), LEASE).await.unwrap();
    }
    let client = client_at(&server.config()).await;
    let steps: i64 = value(&client, "SELECT count(*) FROM hookgate_migrations").await;
    assert_eq!(steps, MIGRATIONS.len() as i64);
}

// fault Q31: an upgrade keeps a large table from being written while it builds its indexes again
#[tokio::test]
async fn a_step_that_is_recorded_is_not_run_again_with_a_later_one() {
    let (_server, client) = needed!(unflushed().await);
    // An index of the step `inbox-1`, and the table of a later step.
    let before = "DROP INDEX hookgate_inbox_event; DROP TABLE hookgate_order;
        DELETE FROM hookgate_migrations WHERE name = 'order-1'";
    client.batch_execute(before).await.unwrap();
    migrate(&client).await.unwrap();
    let made = "SELECT to_regclass('hookgate_inbox_event') IS NULL, to_regclass('hookgate_order') IS NOT NULL";
    let row = client.query_one(made, &[]).await.unwrap();
    assert!(row.get::<_, bool>(0), "the step `inbox-1` was run again");
    assert!(row.get::<_, bool>(1), "the later step was not run");
}

#[tokio::test]
async fn a_role_without_rights_needs_none_where_nothing_is_missing() {
    let (server, owner) = needed!(unflushed().await);
    let roles = "CREATE ROLE app LOGIN; CREATE ROLE stranger LOGIN;
        GRANT SELECT ON hookgate_migrations TO app;
        GRANT SELECT, INSERT, UPDATE, DELETE ON hookgate_claims, hookgate_effects TO app";
    owner.batch_execute(roles).await.unwrap();
    let config = |role| server.config().replace("user=hookgate", role);
    let mut app = client_at(&config("user=app")).await;
    migrate(&app).await.unwrap();
    let values = ClaimValues::new("test", key("1"), b"{}", LEASE);
    let _ = claimed_in(&mut app, &values).await;
    let store = store(&config("user=app"));
    store.claim(&key("2"), token(), LEASE).await.unwrap();

    let mut stranger = client_at(&config("user=stranger")).await;
    let denied = migrate(&stranger).await.unwrap_err();
    assert_eq!(denied.kind(), StoreErrorKind::Denied, "{denied:?}");
    let transaction = stranger.transaction().await.unwrap();
    let denied = claim_values_in(&transaction, &values).await.unwrap_err();
    assert_eq!(denied.kind(), StoreErrorKind::Denied);
    says(format!("{denied:?}"), "grant");
}

#[tokio::test]
async fn tables_that_are_missing_are_named_as_such() {
    let server = needed!(PostgresServer::start(&["fsync=off"]));
    let mut client = client_at(&server.config()).await;
    let values = ClaimValues::new("test", key("1"), b"{}", LEASE);
    let transaction = client.transaction().await.unwrap();
    let missing = claim_values_in(&transaction, &values).await.unwrap_err();
    assert_eq!(missing.kind(), StoreErrorKind::Missing);
    says(format!("{missing:?}"), "migrate");
    drop(transaction);

    let store = store(&server.config());
    let failed = store.claim(&key("2"), token(), LEASE).await;
    let failed = failed.unwrap_err();
    assert_eq!(failed.kind(), StoreErrorKind::Missing);
    says(&failed, "migrate");

    let nowhere = format!("{} options='-c search_path=nowhere'", server.config());
    let none = migrate(&client_at(&nowhere).await).await.unwrap_err();
    assert_eq!(none.kind(), StoreErrorKind::Missing, "{none:?}");
    says(&none, "no schema");
}

/// Two programs in one database, each in its own schema.
#[tokio::test]
async fn schemas_are_kept_apart() {
    let server = needed!(PostgresServer::start(&["fsync=off"]));
    let owner = client_at(&server.config()).await;
    let schemas = "CREATE SCHEMA one; CREATE SCHEMA two";
    owner.batch_execute(schemas).await.unwrap();
    for schema in ["one", "two"] {
        let config = format!("{} options='-c search_path={schema}'", server.config());
        migrate(&client_at(&config).await).await.unwrap();
        let claimed = store(&config).claim(&key("1"), token(), LEASE).await;
        assert_eq!(claimed.unwrap(), Claimed::Fresh, "{schema}");
    }
}
