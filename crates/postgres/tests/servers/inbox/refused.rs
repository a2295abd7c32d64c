//! Errors that PostgreSQL repeats at every try: a text outside of its encoding, and a value that
//! breaks a constraint of its tables.

use hookgate::{DeadLetter, DedupeStore, dedupe::StoreErrorKind};
use hookgate_inbox::{AttemptReport, DeadEntry, Disposition};
use hookgate_postgres::{MIGRATIONS, migrate};

use super::super::{key, store, token};
use super::*;
use crate::support::{PostgresServer, client_at, migrated, needed, says, unflushed, until};

/// A new database in this encoding, by its configuration.
async fn database(server: &PostgresServer, encoding: &str) -> String {
    let name = encoding.to_lowercase();
    let create = format!(
        "CREATE DATABASE {name} ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
    );
    let client = client_at(&server.config()).await;
    client.batch_execute(&create).await.unwrap();
    let config = server.config();
    config.replace("dbname=postgres", &format!("dbname={name}"))
}

/// The tables as they were made before the encoding was looked at.
async fn with_tables(config: &str) {
    let client = client_at(config).await;
    for step in MIGRATIONS.iter().filter(|step| step.name != "encoding-1") {
        client.batch_execute(step.sql).await.unwrap();
    }
}

// fault F16: a settlement that the database refuses for good holds its worker for ten minutes; a database whose encoding has no room for an id refuses it until the sender gives up
#[tokio::test]
async fn a_database_in_another_encoding_is_refused_at_the_start() {
    let server = needed!(PostgresServer::start(&["fsync=off"]));
    for encoding in ["LATIN1", "SQL_ASCII"] {
        let config = database(&server, encoding).await;
        let client = client_at(&config).await;
        // Also where the tables are there already.
        for _ in 0..2 {
            let error = migrate(&client).await.unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Setting, "{error:?}");
            let text = format!("{error:?}");
            for part in ["ENCODING 'UTF8' TEMPLATE template0", encoding] {
                says(&text, part);
            }
            with_tables(&config).await;
        }
        // And where all steps are recorded, as after a dump of a database in UTF8 was restored into
        // this one.
        let recorded = "CREATE TABLE hookgate_migrations (name text PRIMARY KEY)";
        client.batch_execute(recorded).await.unwrap();
        for step in MIGRATIONS {
            let record = "INSERT INTO hookgate_migrations (name) VALUES ($1)";
            client.execute(record, &[&step.name]).await.unwrap();
        }
        let error = migrate(&client).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Setting, "{error:?}");
        says(format!("{error:?}"), encoding);
        // A migration tool of the user gets the error as well.
        let first = client.batch_execute(MIGRATIONS[0].sql).await.unwrap_err();
        says(format!("{first:?}"), "UTF8");
    }
}

// fault F16: a settlement that the database refuses for good holds its worker for ten minutes; a database whose encoding has no room for an id refuses it until the sender gives up
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_encoding_has_no_room_for_is_refused_at_once_and_holds_no_worker() {
    let server = needed!(PostgresServer::start(&["fsync=off"]));
    let config = database(&server, "LATIN1").await;
    with_tables(&config).await;
    let inbox = inbox(&config);
    // An id: refused at once, and for good.
    let error = accept(&inbox, "evt_\u{20ac}").await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Refused, "{error:?}");

    // A reason: the entry is a dead letter all the same, and its worker continues.
    for id in ["evt_1", "evt_2"] {
        accept(&inbox, id).await.unwrap();
    }
    let dead = Arc::new(Mutex::new(Vec::<DeadEntry>::new()));
    let told = Arc::clone(&dead);
    let workers = Workers::new(&inbox)
        .concurrency(1)
        .on_dead_letter(move |entry| told.lock().unwrap().push(entry.clone()))
        .start_handler(async |_: Delivery| DeadLetter::new("1 \u{20ac} \0 short"))
        .unwrap();
    until("the worker goes on", async || {
        dead.lock().unwrap().len() >= 2
    })
    .await;
    workers.shutdown(PATIENCE).await;
    let which = Selection::all().state(EntryState::Dead);
    for entry in inbox.list(which, Page::first(9)).await.unwrap() {
        let kept = entry.last_error.unwrap();
        assert_eq!(kept, "dead_lettered: 1 ?   short");
    }
}

// fault F16: a settlement that the database refuses for good holds its worker for ten minutes; a database whose encoding has no room for an id refuses it until the sender gives up
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_settlement_that_the_server_refuses_for_good_is_given_up_at_once() {
    let (server, client) = needed!(unflushed().await);
    let inbox = inbox(&server.config());
    for id in ["evt_1", "evt_2"] {
        accept(&inbox, id).await.unwrap();
    }
    let none = "ALTER TABLE hookgate_inbox ADD CONSTRAINT none_done CHECK (state <> 2)";
    client.batch_execute(none).await.unwrap();
    let tried = Arc::new(Mutex::new(Vec::<AttemptReport>::new()));
    let told = Arc::clone(&tried);
    let workers = Workers::new(&inbox)
        .concurrency(1)
        .lease(Duration::from_secs(600))
        .on_settled(move |ended| told.lock().unwrap().push(ended.clone()))
        .start_handler(async |_: Delivery| StatusCode::OK)
        .unwrap();
    until("the worker goes on", async || {
        tried.lock().unwrap().len() >= 2
    })
    .await;
    workers.shutdown(PATIENCE).await;
    let tried = tried.lock().unwrap();
    let fates: Vec<_> = tried.iter().map(|ended| ended.disposition).collect();
    assert_eq!(fates, [Disposition::Unrecorded; 2]);
}

/// By the class of the server's error: a fault of the call is refused for good, and every other
/// kind is temporary.
// fault F16: a settlement that the database refuses for good holds its worker for ten minutes; a database whose encoding has no room for an id refuses it until the sender gives up
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_of_the_server_are_permanent_or_transient_by_their_class() {
    let (server, client) = needed!(unflushed().await);
    let store = store(&server.config());
    let inbox = inbox(&server.config());
    for (code, kind) in [
        ("22021", StoreErrorKind::Refused),
        ("23514", StoreErrorKind::Refused),
        ("54000", StoreErrorKind::Refused),
        // The tables do not fit until an operator mends them.
        ("42804", StoreErrorKind::Unavailable),
        ("42P10", StoreErrorKind::Unavailable),
        ("42883", StoreErrorKind::Unavailable),
        ("42501", StoreErrorKind::Denied),
        ("42P01", StoreErrorKind::Missing),
        ("42703", StoreErrorKind::Missing),
        ("08006", StoreErrorKind::Unavailable),
        ("40001", StoreErrorKind::Conflict),
        ("53300", StoreErrorKind::Unavailable),
        ("53100", StoreErrorKind::Full),
        ("57014", StoreErrorKind::TimedOut),
        ("57P03", StoreErrorKind::Unavailable),
        ("58030", StoreErrorKind::Unavailable),
    ] {
        let injected = format!(
            "CREATE OR REPLACE FUNCTION injected() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN RAISE 'made up' USING ERRCODE = '{code}'; END $$;
             CREATE OR REPLACE TRIGGER injected BEFORE INSERT ON hookgate_claims EXECUTE FUNCTION injected();
             CREATE OR REPLACE TRIGGER injected BEFORE INSERT ON hookgate_inbox EXECUTE FUNCTION injected()"
        );
        client.batch_execute(&injected).await.unwrap();
        let claimed = store.claim(&key("1"), token(), RETAIN).await;
        assert_eq!(claimed.unwrap_err().kind(), kind, "{code}");
        let accepted = accept(&inbox, "evt_1").await;
        assert_eq!(accepted.unwrap_err().kind(), kind, "{code}");
    }
}

/// No text from a sender or a handler holds U+0000, and a body may hold its escape.
// fault F16: a settlement that the database refuses for good holds its worker for ten minutes; a database whose encoding has no room for an id refuses it until the sender gives up
#[tokio::test]
async fn a_property_with_a_nul_is_stored_and_comes_back() {
    let server = needed!(migrated(&["fsync=off"]).await);
    let inbox = inbox(&server.config());
    let body = r#"{"id":"evt_1","type":"page.created","createdAt":"2026-11-21T09:30:00Z","workspaceId":"ws_1","data":{"title":"a\u0000b"}}"#;
    let event = delivery(body).unwrap();
    assert_eq!(inbox.accept(&event, RETAIN).await.unwrap(), Accepted::New);
    let listed = inbox.list(Selection::all(), Page::first(1)).await.unwrap();
    let dead = inbox.dead_letter(Selection::all(), "a\0b").await;
    assert_eq!(dead.unwrap(), 1);
    let entry = inbox.show(listed[0].id).await.unwrap().unwrap();
    assert_eq!(entry.body.unwrap(), body.as_bytes());
    assert_eq!(entry.listed.last_error.as_deref(), Some("a b"));
}
