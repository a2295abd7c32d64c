//! TLS, by the crate redis' own features, to a server whose certificate a made-up authority has signed.

use std::path::Path;
use std::time::Duration;

use hookgate::Claimed::Fresh;
use hookgate::Ownership::Held;
use hookgate::redis::Connection;
use hookgate::{DedupeStore, RedisStore, StoreErrorKind};

use super::{LONG, key, token};
use crate::support::RedisServer;

#[tokio::test(flavor = "multi_thread")]
async fn a_made_up_authority_is_trusted_where_it_is_given_and_nowhere_else() {
    let certificates = Path::new(env!("CARGO_MANIFEST_DIR")).join("tls");
    let file = |name: &str| certificates.join(name).to_str().unwrap().to_owned();
    let settings = [
        "--port",
        "0",
        "--tls-port",
        "PORT",
        "--tls-cert-file",
        &file("server.pem"),
        "--tls-key-file",
        &file("server.key"),
        "--tls-ca-cert-file",
        &file("authority.pem"),
        "--tls-auth-clients",
        "no",
    ];
    let Some(server) = RedisServer::start(&settings) else {
        return;
    };
    let url = format!("rediss://localhost:{}", server.server.address.port());
    let trusted = ::redis::TlsCertificates {
        client_tls: None,
        root_cert: Some(std::fs::read(file("authority.pem")).unwrap()),
    };
    let client = ::redis::Client::build_with_tls(url.as_str(), trusted).unwrap();
    // A handshake takes a busy machine longer.
    let patient = Connection::new(client).with_connect_limit(Duration::from_secs(5));
    let store = RedisStore::on(patient).with_call_limit(Duration::from_secs(5));
    store.check().await.unwrap();
    let (event, holder) = (key("event"), token());
    assert_eq!(store.claim(&event, holder, LONG).await.unwrap(), Fresh);
    assert_eq!(store.commit(&event, holder, LONG).await.unwrap(), Held);

    // By the URL alone, only the authorities count that the system trusts.
    let error = RedisStore::connect(&url).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error:?}");
    // Without TLS nothing is answered.
    let error = RedisStore::connect(&server.url()).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error:?}");
}
