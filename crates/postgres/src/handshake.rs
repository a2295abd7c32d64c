//! TLS to PostgreSQL: its provider of crypto, the certificates that are trusted, and errors about
//! certificates in plain words.
//!
//! `crates/redis/src/tls.rs` holds the same code, and `crates/client/src/hyper.rs` the same
//! provider: change all together.

use std::error::Error;
use std::io;
use std::sync::Arc;

use hookgate::dedupe::{StoreError, StoreErrorKind};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, pem::PemObject};
use rustls::{CertificateError as Fault, ClientConfig, RootCertStore};

const NO_TLS: &str = "the server's answer is not TLS: use its port for TLS, or a URL without TLS";
const REFUSED: &str = "the server and this program agree on no TLS connection: it may ask for a certificate of the client, or for another version of TLS";
const NO_PEM: &str = "the certificates of the authority can't be read: they are in PEM, and begin with -----BEGIN CERTIFICATE-----";
const NO_PROVIDER: &str = "TLS needs a provider of crypto, and this program has none: enable the feature ring or aws-lc-rs of hookgate-postgres, or install rustls' default provider first";

/// Returns the provider that the program has installed, otherwise that of this crate's features.
/// None is installed here.
fn provider() -> Result<Arc<CryptoProvider>, StoreError> {
    if let Some(installed) = CryptoProvider::get_default() {
        return Ok(Arc::clone(installed));
    }
    #[cfg(feature = "ring")]
    let own = Some(rustls::crypto::ring::default_provider());
    #[cfg(all(feature = "aws-lc-rs", not(feature = "ring")))]
    let own = Some(rustls::crypto::aws_lc_rs::default_provider());
    #[cfg(not(any(feature = "aws-lc-rs", feature = "ring")))]
    let own = None;
    own.map(Arc::new).ok_or_else(|| setting(NO_PROVIDER))
}

/// Verifies certificates by these authorities.
pub(crate) fn config(authorities: RootCertStore) -> Result<ClientConfig, StoreError> {
    let config = ClientConfig::builder_with_provider(provider()?);
    let config = config.with_safe_default_protocol_versions();
    let config = config.map_err(|error| {
        setting("the program's provider of crypto offers no version of TLS that is safe")
            .caused_by(error)
    })?;
    let config = config.with_root_certificates(authorities);
    Ok(config.with_no_client_auth())
}

/// Returns the authorities that the system trusts. Where some can't be read, those that can are
/// trusted.
pub(crate) fn system_authorities() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

/// Reads one or more certificates in PEM.
pub(crate) fn authorities(pem: &[u8]) -> Result<RootCertStore, StoreError> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| setting(NO_PEM).caused_by(error))?;
        let added = roots.add(certificate);
        added.map_err(|error| setting(NO_PEM).caused_by(error))?;
    }
    if roots.is_empty() {
        return Err(setting(NO_PEM));
    }
    Ok(roots)
}

fn setting(message: &'static str) -> StoreError {
    StoreError::saying(StoreErrorKind::Setting, message)
}

/// Returns the reason in plain words, where the error or one of its causes is that the server's
/// certificate was refused, that the server refused the handshake, or that it speaks no TLS.
pub(crate) fn refused_handshake(error: &(dyn Error + 'static)) -> Option<&'static str> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(rustls::Error::InvalidCertificate(fault)) = error.downcast_ref() {
            return Some(advice(fault));
        }
        match error.downcast_ref() {
            Some(rustls::Error::InvalidMessage(_)) => return Some(NO_TLS),
            Some(rustls::Error::AlertReceived(_) | rustls::Error::PeerIncompatible(_)) => {
                return Some(REFUSED);
            }
            _ => {}
        }
        next = match error.downcast_ref::<io::Error>().map(io::Error::get_ref) {
            // Its `source` is that of the error inside, and leaves the inner error itself out.
            Some(inner) => inner.map(|inner| inner as _),
            None => error.source(),
        };
    }
    None
}

fn advice(fault: &Fault) -> &'static str {
    match fault {
        Fault::UnknownIssuer => {
            "the server's certificate is signed by no authority that this program trusts: give the certificate of the provider's authority"
        }
        Fault::NotValidForName | Fault::NotValidForNameContext { .. } => {
            "the server's certificate is for another host name: connect by a name that it is for"
        }
        Fault::Expired | Fault::ExpiredContext { .. } => {
            "the server's certificate has expired: renew it, or set the clock of this machine right"
        }
        Fault::NotValidYet | Fault::NotValidYetContext { .. } => {
            "the server's certificate is not valid yet: set the clock of this machine right"
        }
        _ => "the server's certificate is not valid",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // fault P8: TLS to a server that answers without it, refuses the handshake or is silent in it, ends as a time-out without a reason
    #[test]
    fn a_certificate_fault_is_found_below_the_errors_of_the_drivers() {
        let io = |fault| {
            let refused = rustls::Error::InvalidCertificate(fault);
            io::Error::new(io::ErrorKind::InvalidData, refused)
        };
        let advice = refused_handshake(&io(Fault::UnknownIssuer)).unwrap();
        assert!(advice.contains("certificate of the provider"), "{advice}");
        for (fault, words) in [
            (Fault::NotValidForName, "another host name"),
            (Fault::Expired, "has expired"),
            (Fault::NotValidYet, "not valid yet"),
            (Fault::Revoked, "is not valid"),
        ] {
            let advice = refused_handshake(&io(fault)).unwrap();
            assert!(
                advice.contains("certificate") && advice.contains(words),
                "{advice}"
            );
        }
        let wrapped = |error| io::Error::new(io::ErrorKind::InvalidData, error);
        let plain = wrapped(rustls::Error::InvalidMessage(
            rustls::InvalidMessage::InvalidContentType,
        ));
        assert_eq!(refused_handshake(&plain), Some(NO_TLS));
        let alert = rustls::AlertDescription::HandshakeFailure;
        let alert = wrapped(rustls::Error::AlertReceived(alert));
        assert_eq!(refused_handshake(&alert), Some(REFUSED));
        let other = io::Error::from(io::ErrorKind::ConnectionRefused);
        assert_eq!(refused_handshake(&other), None);
        let other = io::Error::other(rustls::Error::DecryptError);
        assert_eq!(refused_handshake(&other), None);
    }
}
