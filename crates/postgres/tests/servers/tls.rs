//! TLS, to a server that refuses connections without it, whose certificate a made-up authority has signed.

use std::error::Error as _;
use std::time::Duration;

use deadpool_postgres::{Manager, Pool};
use hookgate::{
    DedupeStore,
    dedupe::Claimed::{Done, Fresh},
    dedupe::{ClaimToken, ClaimValues, ClaimedIn, EventKey, Ownership, StoreError, StoreErrorKind},
    sink::{Accepted, Sink},
};
use hookgate_inbox::Workers;
use hookgate_postgres::{Postgres, PostgresStore, Tls, claim_values_in, migrate};
use hookgate_testing::delivery;
use tokio_postgres::Config;

use crate::support::{Certificates, PostgresServer};

const LONG: Duration = Duration::from_secs(600);

fn url(server: &PostgresServer, host: &str, user: &str, rest: &str) -> String {
    let port = server.server.address.port();
    format!("postgres://{user}@{host}:{port}/postgres?{rest}")
}

fn patient(url: &str) -> Postgres {
    let postgres = Postgres::open(url).unwrap();
    postgres.with_timeout(Duration::from_secs(30))
}

async fn claim(postgres: &Postgres, id: &str) -> Result<hookgate::dedupe::Claimed, StoreError> {
    let store = PostgresStore::new(postgres, "test");
    let token = ClaimToken::new(b"{}");
    store.claim(&EventKey::new("s", id), token, LONG).await
}

// fault P1: a server that is managed by a provider can't be used for want of TLS; a Redis whose certificate is refused is a time-out without a reason
#[tokio::test(flavor = "multi_thread")]
async fn claims_transactions_and_an_inbox_work_by_a_url_with_an_authority() {
    let certificates = Certificates::new();
    let Some(server) = certificates.postgres() else {
        return;
    };
    let ca = certificates.path("authority.pem");
    let url = url(
        &server,
        "localhost",
        "hookgate",
        &format!("sslmode=verify-full&sslrootcert={ca}"),
    );
    let (config, tls) = Tls::for_url(&url).unwrap();
    let (mut client, connection) = config.connect(tls.clone()).await.unwrap();
    tokio::spawn(connection);
    migrate(&client).await.unwrap();
    let encrypted = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE usename = 'hookgate' AND NOT ssl";
    let plain = client.query_one(encrypted, &[]).await.unwrap();
    assert_eq!(plain.get::<_, i64>(0), 0);

    let postgres = patient(&url);
    let store = PostgresStore::new(&postgres, "test");
    let (key, token) = (EventKey::new("s", "1"), ClaimToken::new(b"{}"));
    assert_eq!(store.claim(&key, token, LONG).await.unwrap(), Fresh);
    assert_eq!(
        store.commit(&key, token, LONG).await.unwrap(),
        Ownership::Held
    );
    let again = store.claim(&key, ClaimToken::new(b"{}"), LONG).await;
    assert_eq!(
        again.unwrap(),
        Done {
            body_mark: token.body_mark()
        }
    );

    let transaction = client.transaction().await.unwrap();
    let values = ClaimValues::new("test", key, b"{}", LONG);
    let claimed = claim_values_in(&transaction, &values).await.unwrap();
    assert_eq!(claimed, ClaimedIn::Fresh);
    transaction.commit().await.unwrap();
    let pool = Pool::builder(Manager::new(config, tls)).build().unwrap();
    let theirs = PostgresStore::new(&Postgres::with_pool(pool).with_timeout(LONG), "test");
    let again = theirs.claim(&key, ClaimToken::new(b"{}"), LONG).await;
    assert_eq!(
        again.unwrap(),
        Done {
            body_mark: token.body_mark()
        }
    );

    // The connection that listens is encrypted too: the poll interval alone would take longer.
    let inbox = postgres.inbox("test").unwrap();
    let (handled, mut seen) = tokio::sync::mpsc::unbounded_channel();
    let workers = Workers::new(&inbox).poll_interval(Duration::from_secs(60));
    let workers = workers.start_handler(move |event: hookgate::Delivery| {
        handled.send(event.event_id().to_owned()).unwrap();
        async { axum::http::StatusCode::NO_CONTENT }
    });
    let workers = workers.unwrap();
    let event = delivery(r#"{"id":"evt_1","type":"page.created","data":{}}"#).unwrap();
    assert_eq!(inbox.accept(&event, LONG).await.unwrap(), Accepted::New);
    let id = tokio::time::timeout(Duration::from_secs(60), seen.recv()).await;
    assert_eq!(id.unwrap().as_deref(), Some("evt_1"));
    workers.shutdown(Duration::from_secs(30)).await;
}

/// As providers give them out: bound to the connection, so that no other device between can use the login.
// fault P1: a server that is managed by a provider can't be used for want of TLS; a Redis whose certificate is refused is a time-out without a reason
#[tokio::test(flavor = "multi_thread")]
async fn a_login_is_bound_to_the_certificate() {
    let certificates = Certificates::new();
    let Some(server) = certificates.postgres() else {
        return;
    };
    let tls = Tls::with_ca(Certificates::AUTHORITY).unwrap();
    let mut config: Config = url(&server, "localhost", "hookgate", "sslmode=require")
        .parse()
        .unwrap();
    let (client, connection) = config.connect(tls.clone()).await.unwrap();
    tokio::spawn(connection);
    let role = "CREATE ROLE app LOGIN PASSWORD 'made up'";
    client.batch_execute(role).await.unwrap();
    migrate(&client).await.unwrap();
    client
        .batch_execute("GRANT ALL ON ALL TABLES IN SCHEMA public TO app")
        .await
        .unwrap();
    config.user("app").password("made up");
    config.channel_binding(tokio_postgres::config::ChannelBinding::Require);
    let postgres = Postgres::new(config, tls).with_timeout(Duration::from_secs(30));
    assert_eq!(claim(&postgres, "1").await.unwrap(), Fresh);
}

// fault P1: a server that is managed by a provider can't be used for want of TLS; a Redis whose certificate is refused is a time-out without a reason
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_certificate_is_reported_in_plain_words() {
    let certificates = Certificates::new();
    let Some(server) = certificates.postgres() else {
        return;
    };
    let by = |file: &str| format!("sslmode=require&sslrootcert={}", certificates.path(file));
    let unknown = "signed by no authority";
    for (host, rest, words) in [
        ("localhost", "sslmode=require".to_owned(), unknown),
        ("localhost", "sslmode=verify-full".to_owned(), unknown),
        ("localhost", by("other.pem"), unknown),
        (
            "other.example",
            format!("{}&hostaddr=127.0.0.1", by("authority.pem")),
            "another host name",
        ),
    ] {
        let postgres = patient(&url(&server, host, "hookgate", &rest));
        let inbox = postgres.inbox("test").unwrap();
        for error in [
            claim(&postgres, "1").await.unwrap_err(),
            inbox.stats().await.unwrap_err(),
        ] {
            assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error:?}");
            let text = error.to_string();
            assert!(
                text.contains("certificate") && text.contains(words),
                "{error:?}"
            );
            assert!(error.source().is_some(), "{error:?}");
        }
    }
    let plain = patient(&url(&server, "localhost", "hookgate", "sslmode=disable"));
    let error = claim(&plain, "1").await.unwrap_err();
    assert!(
        error.to_string().contains("sslmode=verify-full"),
        "{error:?}"
    );
    for refused in [Tls::with_ca(b""), Tls::with_ca(b"made up")] {
        assert_eq!(refused.unwrap_err().kind(), StoreErrorKind::Setting);
    }
}

/// A unix socket is on this machine, so that it needs no TLS, whatever the URL says.
#[tokio::test(flavor = "multi_thread")]
async fn a_unix_socket_is_an_address_too() {
    let certificates = Certificates::new();
    let sockets = certificates.sockets();
    let settings = format!("unix_socket_directories={sockets}");
    let Some(server) = PostgresServer::start(&["fsync=off", &settings]) else {
        return;
    };
    let host = sockets.replace('/', "%2F");
    let url = url(&server, &host, "hookgate", "sslmode=verify-full");
    let (config, tls) = Tls::for_url(&url).unwrap();
    let (client, connection) = config.connect(tls).await.unwrap();
    tokio::spawn(connection);
    migrate(&client).await.unwrap();
    assert_eq!(claim(&patient(&url), "1").await.unwrap(), Fresh);
}
