//! A server that takes part in the handshake of TLS, and in nothing else.

use std::future::Future;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustls::crypto::CryptoProvider;
#[cfg(all(feature = "aws-lc-rs", not(feature = "ring")))]
use rustls::crypto::aws_lc_rs as own;
#[cfg(feature = "ring")]
use rustls::crypto::ring as own;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection};

pub(crate) struct Server {
    pub(crate) port: u16,
    suites: Receiver<String>,
}

/// That of the feature.
pub(crate) fn builtin() -> CryptoProvider {
    own::default_provider()
}

/// The program's own: it has one cipher suite, by which it is known.
pub(crate) fn chacha() -> CryptoProvider {
    CryptoProvider {
        cipher_suites: vec![own::cipher_suite::TLS13_CHACHA20_POLY1305_SHA256],
        ..builtin()
    }
}

impl Server {
    /// PostgreSQL is asked for TLS before the handshake.
    pub(crate) fn start(is_postgres: bool) -> Self {
        let certificate = include_bytes!("../tls/server.pem");
        let key = include_bytes!("../tls/server.key");
        let config = ServerConfig::builder_with_provider(Arc::new(builtin()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![CertificateDer::from_pem_slice(certificate).unwrap()],
                PrivateKeyDer::from_pem_slice(key).unwrap(),
            );
        let config = Arc::new(config.unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, suites) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                if is_postgres {
                    stream.read_exact(&mut [0; 8]).unwrap();
                    stream.write_all(b"S").unwrap();
                }
                let mut tls = ServerConnection::new(Arc::clone(&config)).unwrap();
                if tls.complete_io(&mut stream).is_ok() {
                    let suite = tls.negotiated_cipher_suite().unwrap();
                    let _ = sender.send(format!("{:?}", suite.suite()));
                }
            }
        });
        Self { port, suites }
    }

    /// Makes the client's call, and returns the cipher suite of its connection.
    pub(crate) fn agreed<F>(&self, call: F) -> String
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let call = tokio::spawn(call);
        let suite = self.suites.recv_timeout(Duration::from_secs(60)).unwrap();
        call.abort();
        suite
    }
}
