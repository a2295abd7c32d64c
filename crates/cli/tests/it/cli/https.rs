//! Real https: a server with a certificate of a made-up authority, which the command is set to
//! trust.

use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

pub(crate) const AUTHORITY: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/tls/authority.pem");

/// Answers every request over TLS with this head, until it is dropped with its runtime. Returns its
/// port.
pub(crate) async fn serve(head: &'static str) -> u16 {
    let certificate = include_bytes!("../../../../../tests/tls/server.pem");
    let key = include_bytes!("../../../../../tests/tls/server.key");
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(certificate).unwrap()],
            PrivateKeyDer::from_pem_slice(key).unwrap(),
        )
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                // A client that does not trust the certificate closes the connection here.
                let Ok(mut stream) = acceptor.accept(stream).await else {
                    return;
                };
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") {
                    if !matches!(stream.read_buf(&mut request).await, Ok(read) if read > 0) {
                        return;
                    }
                }
                let _ = stream.write_all(head.as_bytes()).await;
                let _ = stream.shutdown().await;
            });
        }
    });
    port
}
