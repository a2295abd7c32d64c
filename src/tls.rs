//! TLS to the stores: the certificates that are trusted, and errors about certificates in plain words.

use std::borrow::Cow;
use std::error::Error;
use std::io;
use std::sync::Arc;
#[cfg(feature = "redis-tls")]
use std::time::Duration;

use rustls::CertificateError as Fault;

const NO_TLS: &str = "the server's answer is no TLS: use its port for TLS, or a URL without TLS";
const REFUSED: &str = "the server and this program agree on no TLS connection: it may ask for a certificate of the client, or for another version of TLS";

/// The source of an error, as the crate redis keeps it.
type Shared = Arc<dyn Error + Send + Sync>;

/// The server has taken the connection, and is silent in the handshake.
#[cfg(feature = "redis-tls")]
#[derive(Debug, thiserror::Error)]
#[error("the server did not answer the TLS handshake within {} ms; it may not speak TLS", .limit.as_millis())]
pub(crate) struct Unanswered {
    pub(crate) limit: Duration,
    pub(crate) source: redis::RedisError,
}

/// Returns the reason in plain words, where the error or one of its causes is that the server's certificate was refused, that the
/// server refused the handshake or did not answer it, or that it speaks no TLS.
pub(crate) fn refused_handshake(error: &(dyn Error + 'static)) -> Option<Cow<'static, str>> {
    let mut next = Some(error);
    while let Some(error) = next {
        #[cfg(feature = "redis-tls")]
        if let Some(unanswered) = error.downcast_ref::<Unanswered>() {
            return Some(unanswered.to_string().into());
        }
        if let Some(rustls::Error::InvalidCertificate(fault)) = error.downcast_ref() {
            return Some(advice(fault).into());
        }
        match error.downcast_ref() {
            Some(rustls::Error::InvalidMessage(_)) => return Some(NO_TLS.into()),
            Some(rustls::Error::AlertReceived(_) | rustls::Error::PeerIncompatible(_)) => {
                return Some(REFUSED.into());
            }
            _ => {}
        }
        next = match error.downcast_ref::<io::Error>().map(io::Error::get_ref) {
            // Its `source` is that of the error inside, and leaves the inner error itself out.
            Some(inner) => inner.map(|inner| inner as _),
            None => match error.downcast_ref::<Shared>() {
                Some(shared) => Some(&**shared as _),
                None => error.source(),
            },
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

    #[test]
    fn a_certificate_fault_is_found_below_the_errors_of_the_drivers() {
        let io = |fault| {
            let refused = rustls::Error::InvalidCertificate(fault);
            io::Error::new(io::ErrorKind::InvalidData, refused)
        };
        let shared: Shared = Arc::new(io(Fault::UnknownIssuer));
        let advice = refused_handshake(&shared).unwrap();
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
        assert_eq!(refused_handshake(&plain).as_deref(), Some(NO_TLS));
        let alert = rustls::AlertDescription::HandshakeFailure;
        let alert = wrapped(rustls::Error::AlertReceived(alert));
        assert_eq!(refused_handshake(&alert).as_deref(), Some(REFUSED));
        let other = io::Error::from(io::ErrorKind::ConnectionRefused);
        assert_eq!(refused_handshake(&other), None);
        let other = io::Error::other(rustls::Error::DecryptError);
        assert_eq!(refused_handshake(&other), None);
    }
}
