//! TLS, to a server that speaks nothing else, whose certificate a made-up authority has signed.

use std::error::Error as _;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hookgate::{
    DedupeStore,
    dedupe::Claimed::Fresh,
    dedupe::Ownership::Held,
    dedupe::{StoreError, StoreErrorKind},
};
use hookgate_redis::{Connection, RedisStore};

use super::{LONG, found, key, not_connected, patient, token, until};
use crate::support::{Certificates, Fault, Folder, Proxy, RedisServer, done_by, needed, says};

/// Claims and commits an event, as another program of the same service sees it afterwards.
async fn works(store: &RedisStore) {
    let (event, holder) = (key("event"), token());
    assert_eq!(store.claim(&event, holder, LONG).await.unwrap(), Fresh);
    assert_eq!(store.renew(&event, holder, LONG).await.unwrap(), Held);
    assert_eq!(store.commit(&event, holder, LONG).await.unwrap(), Held);
    assert_eq!(found(store, &event).await, done_by(holder));
}

// fault P1: a server that is managed by a provider can't be used for want of TLS; a Redis whose certificate is refused is a time-out without a reason
#[tokio::test(flavor = "multi_thread")]
async fn an_authority_of_ones_own_is_trusted_where_it_is_given() {
    let certificates = Certificates::new();
    let server = needed!(certificates.redis());
    let port = server.server.address.port();
    for host in ["localhost", "127.0.0.1"] {
        let url = format!("rediss://{host}:{port}/{}", u8::from(host == "localhost"));
        // A handshake takes a busy machine longer.
        let store = patient(&url).with_ca(Certificates::AUTHORITY).unwrap();
        store.check().await.unwrap();
        works(&store).await;
    }
    // By a client of the user, as for a certificate of the client. It takes the provider of crypto
    // that the program has installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let trusted = redis::TlsCertificates {
        client_tls: None,
        root_cert: Some(Certificates::AUTHORITY.to_vec()),
    };
    let url = format!("rediss://localhost:{port}/2");
    let client = redis::Client::build_with_tls(url.as_str(), trusted).unwrap();
    let connection = Connection::new(client).with_connect_limit(LONG);
    works(&RedisStore::on(connection.with_response_limit(LONG)).with_call_limit(LONG)).await;
    // Without TLS nothing is answered.
    let is_refused = |error: &StoreError| error.kind() == StoreErrorKind::Unavailable;
    let connect = async || RedisStore::connect(&server.url()).await.unwrap_err();
    until(is_refused, connect).await;
}

const SILENT: &str =
    "the server did not answer the TLS handshake within 500 ms; it may not speak TLS";

/// The text of an error with its sources, which has to name the certificate.
fn told(error: &StoreError, words: &str) {
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error:?}");
    let text = error.to_string();
    says(&text, "certificate");
    says(&text, words);
    assert!(error.source().is_some(), "{error:?}");
}

/// Each call says it within its own limit, also calls at once, and not the first alone.
// fault P1: a server that is managed by a provider can't be used for want of TLS; a Redis whose certificate is refused is a time-out without a reason
#[tokio::test(flavor = "multi_thread")]
async fn every_call_reports_a_refused_certificate() {
    let certificates = Certificates::new();
    let server = needed!(certificates.redis());
    let port = server.server.address.port();
    let open = |host| patient(&format!("rediss://{host}:{port}"));
    let unknown = "signed by no authority";
    let by_the_system = open("localhost");
    let of_another = open("localhost").with_ca(Certificates::OTHER).unwrap();
    let other_name = open("127.0.0.2").with_ca(Certificates::AUTHORITY).unwrap();
    for (store, words) in [
        (by_the_system, unknown),
        (of_another, unknown),
        (other_name, "another host name"),
    ] {
        told(&store.check().await.unwrap_err(), words);
        let begun = Instant::now();
        let calls = (0..8).map(|number| {
            let store = store.clone().with_call_limit(LONG);
            let event = key(&number.to_string());
            tokio::spawn(async move { store.claim(&event, token(), LONG).await })
        });
        let calls: Vec<_> = calls.collect();
        for call in calls {
            told(&call.await.unwrap().unwrap_err(), words);
        }
        // Redis' own tries alone would go on for longer than any call.
        assert!(begun.elapsed() < LONG / 10, "{words}");
        let later = store.claim(&key("later"), token(), LONG).await;
        told(&later.unwrap_err(), words);
    }
    let url = format!("rediss://localhost:{port}");
    told(&not_connected(&url).await, unknown);
}

/// The URL of TLS leads to a port without it, which answers in its own language; or which takes the
/// handshake for the beginning of a command and waits for its end, as a Redis without TLS does
/// where no byte of the handshake ends a line.
// fault P8: TLS to a server that answers without it, refuses the handshake or is silent in it, ends as a time-out without a reason
#[tokio::test(flavor = "multi_thread")]
async fn every_call_reports_a_server_that_does_not_speak_tls() {
    for (answer, kind, words) in [
        (
            Some(b"-ERR unknown command\r\n"),
            StoreErrorKind::Unavailable,
            "is not TLS",
        ),
        (None, StoreErrorKind::TimedOut, SILENT),
    ] {
        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("rediss://127.0.0.1:{}", server.local_addr().unwrap().port());
        std::thread::spawn(move || {
            let mut clients = Vec::new();
            for client in server.incoming() {
                let mut client = client.unwrap();
                if let Some(answer) = answer {
                    // What can't be written went to a client that has left.
                    let _ = client.read(&mut [0; 4_096]);
                    let _ = client.write_all(answer);
                    let _ = client.read(&mut [0; 4_096]);
                } else {
                    clients.push(client);
                }
            }
        });
        let store = match answer {
            Some(_) => patient(&url),
            None => RedisStore::open(&url)
                .unwrap()
                .with_call_limit(Duration::from_secs(20)),
        };
        for number in 0..2 {
            let claimed = store.claim(&key(&number.to_string()), token(), LONG).await;
            for error in [claimed.unwrap_err(), store.check().await.unwrap_err()] {
                assert_eq!(error.kind(), kind, "{error:?}");
                says(&error, words);
                assert!(error.source().is_some(), "{error:?}");
            }
        }
        let connect = async || RedisStore::connect(&url).await.unwrap_err();
        until(
            |error: &StoreError| error.to_string().contains(words),
            connect,
        )
        .await;
    }
}

/// The reason why an earlier connection failed says nothing about a later one, also where that
/// takes longer than the first look.
// fault F41: a call to a Redis that speaks TLS again is refused for the reason that an earlier connection failed
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_speaks_tls_again_is_not_refused_for_its_past() {
    let certificates = Certificates::new();
    let server = needed!(certificates.redis());
    let proxy = Proxy::before(server.server.address);
    proxy.set(Fault::Delay(Duration::from_millis(150)));
    let front = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("rediss://localhost:{}", front.local_addr().unwrap().port());
    let (is_sound, behind) = (Arc::new(AtomicBool::new(false)), proxy.address);
    let sound = Arc::clone(&is_sound);
    std::thread::spawn(move || {
        for client in front.incoming() {
            let mut client = client.unwrap();
            if !sound.load(Ordering::SeqCst) {
                // What can't be written went to a client that has left.
                let _ = client.write_all(b"-ERR unknown command\r\n");
                continue;
            }
            let server = TcpStream::connect(behind).unwrap();
            for (mut from, mut to) in [
                (client.try_clone().unwrap(), server.try_clone().unwrap()),
                (server, client),
            ] {
                std::thread::spawn(move || std::io::copy(&mut from, &mut to));
            }
        }
    });
    let client = redis::Client::open(url.as_str()).unwrap();
    let patience = Duration::from_secs(20);
    let connection = Connection::new(client).with_connect_limit(patience);
    let store = RedisStore::on(connection.with_response_limit(patience)).with_call_limit(patience);
    let store = store.with_ca(Certificates::AUTHORITY).unwrap();
    // Two, so that the second comes too soon for a new connection.
    for number in 0..2 {
        let event = key(&number.to_string());
        let error = store.claim(&event, token(), LONG).await.unwrap_err();
        says(&error, "is not TLS");
    }
    is_sound.store(true, Ordering::SeqCst);
    works(&store).await;
}

// fault P1: a server that is managed by a provider can't be used for want of TLS; a Redis whose certificate is refused is a time-out without a reason
#[test]
fn what_is_not_a_certificate_is_refused_where_it_is_given() {
    let secured = || RedisStore::open("rediss://localhost").unwrap();
    let plain = RedisStore::open("redis://localhost").unwrap();
    for refused in [
        secured().with_ca(b""),
        secured().with_ca(b"made up"),
        secured()
            .with_ca(b"-----BEGIN CERTIFICATE-----\nbWFkZSB1cA==\n-----END CERTIFICATE-----\n"),
        plain.with_ca(Certificates::AUTHORITY),
    ] {
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Setting, "{error:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unix_socket_is_an_address_too() {
    let folder = Folder::new();
    let socket = format!("{}/redis.sock", folder.path().display());
    let _server = needed!(RedisServer::start(&["--unixsocket", &socket]));
    works(&patient(&format!("unix://{socket}"))).await;
}
