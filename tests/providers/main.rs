//! A program on rustls, beside this library with the feature `ring`, `aws-lc-rs`, both or neither.
//! A process has one default provider, so each test is a process of its own.

#![allow(clippy::unwrap_used, clippy::expect_used)] // a failed expectation must stop the test

use std::future::Future;
use std::process::Command;

use hookgate_client::{ApiKey, Client};
use hookgate_postgres::Tls;
use hookgate_redis::RedisStore;
use rustls::crypto::CryptoProvider;

#[cfg(any(feature = "aws-lc-rs", feature = "ring"))]
mod server;

const AUTHORITY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tls/authority.pem");

/// Runs a test in a process of its own, in which the made-up authority is that of the system.
fn alone<F: Future>(test: &str, run: impl FnOnce() -> F) {
    const ALONE: &str = "HOOKGATE_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(run());
        return;
    }
    let ran = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(ALONE, "1")
        .env("SSL_CERT_FILE", AUTHORITY)
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&ran.stdout);
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{output}{errors}");
    assert!(output.contains("1 passed"), "{output}");
}

fn client(port: u16) -> Result<Client, hookgate_client::Error> {
    let key = ApiKey::new("tk_test_made_up_key_of_a_test").unwrap();
    Client::new(&format!("https://localhost:{port}/api/v1"), key)
}

#[cfg(not(any(feature = "aws-lc-rs", feature = "ring")))]
mod without_a_provider {
    use std::sync::Arc;

    use hookgate::dedupe::StoreErrorKind;
    use hookgate_client::ErrorKind;
    use rustls::crypto::{GetRandomFailed, KeyProvider, SecureRandom, WebPkiSupportedAlgorithms};
    use rustls::pki_types::PrivateKeyDer;
    use rustls::sign::SigningKey;

    use super::*;

    // fault T1: TLS to a store or to the service brings a provider of crypto with it: a program on another has two, and its own `ClientConfig::builder()` panics
    #[test]
    fn a_program_without_a_provider_is_told_what_to_enable() {
        let test = "without_a_provider::a_program_without_a_provider_is_told_what_to_enable";
        alone(test, || async {
            let redis = RedisStore::open("rediss://localhost").unwrap_err();
            let postgres = Tls::for_url("postgres://db.example?sslmode=verify-full").unwrap_err();
            for error in [redis, postgres] {
                assert_eq!(error.kind(), StoreErrorKind::Setting, "{error:?}");
                assert!(error.to_string().contains("ring or aws-lc-rs"), "{error:?}");
            }
            let error = client(1).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Config, "{error:?}");
            assert!(error.to_string().contains("ring or aws-lc-rs"), "{error:?}");
        });
    }

    #[test]
    fn a_connection_without_tls_needs_no_provider() {
        let test = "without_a_provider::a_connection_without_tls_needs_no_provider";
        alone(test, || async {
            RedisStore::open("redis://localhost").unwrap();
            Tls::for_url("postgres://app@localhost").unwrap();
            let (config, tls) = Tls::for_url("postgres://127.0.0.1:1?sslmode=disable").unwrap();
            let error = config.connect(tls).await.err().unwrap();
            assert!(format!("{error:?}").contains("refused"), "{error:?}");
        });
    }

    fn useless() -> CryptoProvider {
        #[derive(Debug)]
        struct Nothing;
        impl SecureRandom for Nothing {
            fn fill(&self, _: &mut [u8]) -> Result<(), GetRandomFailed> {
                Err(GetRandomFailed)
            }
        }
        impl KeyProvider for Nothing {
            fn load_private_key(
                &self,
                _: PrivateKeyDer<'static>,
            ) -> Result<Arc<dyn SigningKey>, rustls::Error> {
                Err(rustls::Error::General("made up".into()))
            }
        }
        CryptoProvider {
            cipher_suites: Vec::new(),
            kx_groups: Vec::new(),
            signature_verification_algorithms: WebPkiSupportedAlgorithms {
                all: &[],
                mapping: &[],
            },
            secure_random: &Nothing,
            key_provider: &Nothing,
        }
    }

    /// It is one without any cipher suite, so that it can be told from every other.
    // fault T3: TLS takes another provider of crypto than the one that the program has installed
    #[test]
    fn a_provider_of_the_programs_own_is_used() {
        let test = "without_a_provider::a_provider_of_the_programs_own_is_used";
        alone(test, || async {
            useless().install_default().unwrap();
            let own = "provider of crypto offers no version of TLS";
            let error = Tls::for_url("postgres://db.example?sslmode=verify-full").unwrap_err();
            assert!(error.to_string().contains(own), "{error:?}");
            let store = RedisStore::open("rediss://127.0.0.1:1").unwrap();
            let error = store.check().await.unwrap_err();
            assert!(error.to_string().contains(own), "{error:?}");
            client(1).unwrap_err();
        });
    }
}

#[cfg(any(feature = "aws-lc-rs", feature = "ring"))]
mod with_a_provider {
    use super::*;
    use crate::server::{Server, builtin, chacha};

    /// Connects with each of the three, and returns the names of the cipher suites that the servers
    /// have agreed to.
    fn agreed() -> Vec<String> {
        let server = Server::start(false);
        let store = RedisStore::open(&format!("rediss://localhost:{}", server.port)).unwrap();
        let redis = server.agreed(async move { store.check().await });
        let server = Server::start(true);
        let url = format!(
            "postgres://app@localhost:{}?sslmode=verify-full",
            server.port
        );
        let (config, tls) = Tls::for_url(&url).unwrap();
        let postgres = server.agreed(async move { config.connect(tls).await.err() });
        let server = Server::start(false);
        let client = client(server.port).unwrap();
        let client = server.agreed(async move { client.page("pg_1").await });
        vec![redis, postgres, client]
    }

    // fault T2: a connection installs a provider as the process's default, and the program's own `install_default().unwrap()` panics later
    #[test]
    fn no_provider_is_installed_by_a_connection_and_the_program_can_still_choose() {
        let test = "with_a_provider::no_provider_is_installed_by_a_connection_and_the_program_can_still_choose";
        alone(test, || async {
            assert_eq!(agreed(), ["TLS13_AES_256_GCM_SHA384"; 3]);
            assert!(CryptoProvider::get_default().is_none());
            builtin().install_default().unwrap();
        });
    }

    // fault T3: TLS takes another provider of crypto than the one that the program has installed
    #[test]
    fn the_provider_that_the_program_has_installed_is_used() {
        let test = "with_a_provider::the_provider_that_the_program_has_installed_is_used";
        alone(test, || async {
            chacha().install_default().unwrap();
            assert_eq!(agreed(), ["TLS13_CHACHA20_POLY1305_SHA256"; 3]);
        });
    }

    /// The crate redis makes the TLS of such a client: it would panic beside two providers, and
    /// install the only one.
    // fault T2: a connection installs a provider as the process's default, and the program's own `install_default().unwrap()` panics later
    #[test]
    fn a_client_with_certificates_of_its_own_asks_the_program_for_a_provider() {
        let test = "with_a_provider::a_client_with_certificates_of_its_own_asks_the_program_for_a_provider";
        alone(test, || async {
            let server = Server::start(false);
            let certificates = redis::TlsCertificates {
                client_tls: None,
                root_cert: Some(std::fs::read(AUTHORITY).unwrap()),
            };
            let url = format!("rediss://localhost:{}", server.port);
            let client = redis::Client::build_with_tls(&*url, certificates).unwrap();
            let store = RedisStore::on(hookgate_redis::Connection::new(client));
            let error = store.check().await.unwrap_err();
            assert!(error.to_string().contains("install one"), "{error:?}");
            assert!(CryptoProvider::get_default().is_none());
            chacha().install_default().unwrap();
            let suite = server.agreed(async move { store.check().await });
            assert_eq!(suite, "TLS13_CHACHA20_POLY1305_SHA256");
        });
    }
}
