//! TLS, to a server that refuses connections without it, whose certificate a made-up authority has
//! signed.

use std::error::Error as _;
use std::time::Duration;

use deadpool_postgres::{Manager, Pool};
use hookgate::{
    DedupeStore,
    dedupe::Claimed::{self, Fresh},
    dedupe::{ClaimValues, ClaimedIn, Ownership::Held, StoreError, StoreErrorKind},
    sink::{Accepted, Sink},
};
use hookgate_inbox::Workers;
use hookgate_postgres::{Postgres, PostgresStore, Tls, migrate};
use hookgate_testing::delivery;
use tokio_postgres::Config;

use super::{claimed_in, key, token};
use crate::support::{Certificates, PostgresServer, done_by, needed, says, value};

const LONG: Duration = Duration::from_secs(600);

fn url(server: &PostgresServer, host: &str, rest: &str) -> String {
    let port = server.server.address.port();
    format!("postgres://hookgate@{host}:{port}/postgres?{rest}")
}

fn patient(url: &str) -> Postgres {
    let postgres = Postgres::open(url).unwrap();
    postgres.with_timeout(Duration::from_secs(30))
}

async fn claim(postgres: &Postgres, id: &str) -> Result<Claimed, StoreError> {
    let store = PostgresStore::new(postgres, "test");
    store.claim(&key(id), token(), LONG).await
}

// fault P1: a server that is managed by a provider can't be used for want of TLS; a Redis whose certificate is refused is a time-out without a reason
#[tokio::test(flavor = "multi_thread")]
async fn claims_transactions_and_an_inbox_work_by_a_url_with_an_authority() {
    let certificates = Certificates::new();
    let server = needed!(certificates.postgres());
    let ca = certificates.path("authority.pem");
    let url = url(
        &server,
        "localhost",
        &format!("sslmode=verify-full&sslrootcert={ca}"),
    );
    let (config, tls) = Tls::for_url(&url).unwrap();
    let (mut client, connection) = config.connect(tls.clone()).await.unwrap();
    tokio::spawn(connection);
    migrate(&client).await.unwrap();
    let encrypted = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE usename = 'hookgate' AND NOT ssl";
    assert_eq!(value::<i64>(&client, encrypted).await, 0);

    let postgres = patient(&url);
    let store = PostgresStore::new(&postgres, "test");
    let (key, token) = (key("1"), token());
    assert_eq!(store.claim(&key, token, LONG).await.unwrap(), Fresh);
    assert_eq!(store.commit(&key, token, LONG).await.unwrap(), Held);
    let again = store.claim(&key, super::token(), LONG).await;
    assert_eq!(again.unwrap(), done_by(token));

    let values = ClaimValues::new("test", key, b"{}", LONG);
    assert_eq!(claimed_in(&mut client, &values).await, ClaimedIn::Fresh);
    let pool = Pool::builder(Manager::new(config, tls)).build().unwrap();
    let theirs = PostgresStore::new(&Postgres::with_pool(pool).with_timeout(LONG), "test");
    let again = theirs.claim(&key, super::token(), LONG).await;
    assert_eq!(again.unwrap(), done_by(token));

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

/// As providers give them out: bound to the connection, so that no other device between can use the
/// login.
// fault P1: a server that is managed by a provider can't be used for want of TLS; a Redis whose certificate is refused is a time-out without a reason
#[tokio::test(flavor = "multi_thread")]
async fn a_login_is_bound_to_the_certificate() {
    let certificates = Certificates::new();
    let server = needed!(certificates.postgres());
    let tls = Tls::with_ca(Certificates::AUTHORITY).unwrap();
    let url = url(&server, "localhost", "sslmode=require");
    let mut config: Config = url.parse().unwrap();
    let (client, connection) = config.connect(tls.clone()).await.unwrap();
    tokio::spawn(connection);
    let role = "CREATE ROLE app LOGIN PASSWORD 'made up'";
    client.batch_execute(role).await.unwrap();
    migrate(&client).await.unwrap();
    let grant = "GRANT ALL ON ALL TABLES IN SCHEMA public TO app";
    client.batch_execute(grant).await.unwrap();
    config.user("app").password("made up");
    config.channel_binding(tokio_postgres::config::ChannelBinding::Require);
    let postgres = Postgres::new(config, tls).with_timeout(Duration::from_secs(30));
    assert_eq!(claim(&postgres, "1").await.unwrap(), Fresh);
}

// fault P1: a server that is managed by a provider can't be used for want of TLS; a Redis whose certificate is refused is a time-out without a reason
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_certificate_is_reported_in_plain_words() {
    let certificates = Certificates::new();
    let server = needed!(certificates.postgres());
    let by = |file: &str| format!("sslmode=require&sslrootcert={}", certificates.path(file));
    let unknown = "signed by no authority";
    let here = format!("{}&hostaddr=127.0.0.1", by("authority.pem"));
    for (host, rest, words) in [
        ("localhost", "sslmode=require".to_owned(), unknown),
        ("localhost", "sslmode=verify-full".to_owned(), unknown),
        ("localhost", by("other.pem"), unknown),
        ("other.example", here, "another host name"),
    ] {
        let postgres = patient(&url(&server, host, &rest));
        let inbox = postgres.inbox("test").unwrap();
        for error in [
            claim(&postgres, "1").await.unwrap_err(),
            inbox.stats().await.unwrap_err(),
        ] {
            assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error:?}");
            says(&error, "certificate");
            says(&error, words);
            assert!(error.source().is_some(), "{error:?}");
        }
    }
    let plain = patient(&url(&server, "localhost", "sslmode=disable"));
    let error = claim(&plain, "1").await.unwrap_err();
    says(&error, "sslmode=verify-full");
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
    let server = needed!(PostgresServer::start(&["fsync=off", &settings]));
    let host = sockets.replace('/', "%2F");
    let url = url(&server, &host, "sslmode=verify-full");
    let (config, tls) = Tls::for_url(&url).unwrap();
    let (client, connection) = config.connect(tls).await.unwrap();
    tokio::spawn(connection);
    migrate(&client).await.unwrap();
    assert_eq!(claim(&patient(&url), "1").await.unwrap(), Fresh);
}
