//! TLS to the server, by rustls.

use std::fmt;

#[cfg(not(feature = "postgres-tls"))]
use ::tokio_postgres::NoTls as Maker;
use ::tokio_postgres::Socket;
use ::tokio_postgres::config::{Config, SslMode};
use ::tokio_postgres::tls::MakeTlsConnect;
#[cfg(feature = "postgres-tls")]
use tokio_postgres_rustls::MakeRustlsConnect as Maker;

use super::url::{self, Authority, refused};
use crate::dedupe::StoreError;

/// The TLS of connections to PostgreSQL, for [`Postgres::new`](super::Postgres::new), for your own pool and for a client of the
/// crate `tokio-postgres`.
///
/// ```no_run
/// use deadpool_postgres::{Manager, Pool};
/// use hookgate::postgres::{Postgres, Tls, migrate};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let (config, tls) = Tls::for_url(&std::env::var("DATABASE_URL")?)?;
/// let (client, connection) = config.connect(tls.clone()).await?;
/// tokio::spawn(connection);
/// migrate(&client).await?;
///
/// let postgres = Postgres::new(config.clone(), tls.clone()); // for claims and inboxes: the same as `Postgres::open`
/// let pool = Pool::builder(Manager::new(config, tls)).build()?; // for your own transactions
/// # Ok(())
/// # }
/// ```
///
/// # Security
/// Every certificate is verified, with its host name: no setting accepts one that is not.
#[derive(Clone)]
pub struct Tls(Maker);

impl Tls {
    /// Returns the configuration and the TLS that a URL asks for, `postgres://user@host/database?sslmode=verify-full`.
    ///
    /// | `sslmode` | here |
    /// |---|---|
    /// | `verify-full`, `verify-ca`, `require` | TLS, and **all three verify the certificate and its host name** |
    /// | `prefer`, `allow`, or none | with feature `postgres-tls`: TLS where the server offers it, with a verified certificate, and no TLS to this machine (`localhost`, `127.0.0.1`, `::1`); without the feature: no TLS |
    /// | `disable` | no TLS |
    ///
    /// `sslrootcert=FILE` names the certificates of the authorities to trust, in PEM, such as your provider's; without it, or with
    /// `sslrootcert=system`, those that the system trusts are. `sslrootcert` without `sslmode` means `verify-full`. A unix socket
    /// needs no TLS and never has it, as in other clients. Words of the form `host=… sslmode=…` work as well, where none is
    /// quoted.
    ///
    /// # Errors
    /// [`Setting`](crate::StoreErrorKind::Setting): it is no URL of a PostgreSQL; it asks for TLS, and the feature `postgres-tls` is not
    /// enabled; or there are no certificates to trust. The error shows nothing of the URL, which may hold a password.
    ///
    /// # Security
    /// Use `sslmode=verify-full` for a server that is not on this machine: with `prefer`, another device on the network can
    /// pretend that the server has no TLS. Other clients accept any certificate for `require`, and any host name for `verify-ca`.
    pub fn for_url(url: &str) -> Result<(Config, Self), StoreError> {
        let (config, authority) = url::read(url)?;
        let maker = match config.get_ssl_mode() {
            SslMode::Disable => maker(Authority::None)?,
            // The server may offer none. Where it does, and the system trusts nothing, its certificate is refused then.
            SslMode::Prefer if authority == Authority::System => {
                maker(authority).or_else(|_| maker(Authority::None))?
            }
            _ => maker(authority)?,
        };
        Ok((config, Self(maker)))
    }

    /// Trusts the authorities that the system trusts. The environment variables `SSL_CERT_FILE` and `SSL_CERT_DIR` name others.
    ///
    /// # Errors
    /// [`Setting`](crate::StoreErrorKind::Setting): none was found.
    ///
    /// # Security
    /// A [`Config`] without `sslmode=require` also accepts a server that offers no TLS.
    #[cfg(feature = "postgres-tls")]
    #[cfg_attr(docsrs, doc(cfg(feature = "postgres-tls")))]
    pub fn system() -> Result<Self, StoreError> {
        maker(Authority::System).map(Self)
    }

    /// Trusts these authorities alone, whose certificates are in PEM: one or more.
    ///
    /// # Errors
    /// [`Setting`](crate::StoreErrorKind::Setting): this holds no certificate in PEM.
    ///
    /// # Security
    /// As [`system`](Self::system).
    #[cfg(feature = "postgres-tls")]
    #[cfg_attr(docsrs, doc(cfg(feature = "postgres-tls")))]
    pub fn with_ca(pem: &[u8]) -> Result<Self, StoreError> {
        maker(Authority::Pem(pem.to_vec())).map(Self)
    }
}

#[cfg(feature = "postgres-tls")]
fn maker(authority: Authority) -> Result<Maker, StoreError> {
    use rustls::crypto::{CryptoProvider, ring};
    use rustls::pki_types::{CertificateDer, pem::PemObject};
    use rustls::{ClientConfig, RootCertStore};

    const NO_SYSTEM: &str = "the system has no certificates to trust: install them, such as the package ca-certificates, or name a file by sslrootcert";
    const NO_PEM: &str = "the certificates of the authority can't be read: they are in PEM, and begin with -----BEGIN CERTIFICATE-----";
    let mut roots = RootCertStore::empty();
    let where_empty = match authority {
        Authority::None => None,
        Authority::System => {
            // Where some can't be read, those that can are trusted.
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            Some(NO_SYSTEM)
        }
        Authority::Pem(pem) => {
            for certificate in CertificateDer::pem_slice_iter(&pem) {
                let certificate = certificate.map_err(|error| refused(NO_PEM).caused_by(error))?;
                let added = roots.add(certificate);
                added.map_err(|error| refused(NO_PEM).caused_by(error))?;
            }
            Some(NO_PEM)
        }
    };
    if let Some(advice) = where_empty.filter(|_| roots.is_empty()) {
        return Err(refused(advice));
    }
    // The program may have chosen another provider of crypto.
    let provider = CryptoProvider::get_default().cloned();
    let provider = provider.unwrap_or_else(|| std::sync::Arc::new(ring::default_provider()));
    let config =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| {
        refused("the program's provider of crypto offers no version of TLS that is safe")
            .caused_by(error)
    })?;
    Ok(Maker::new(
        config.with_root_certificates(roots).with_no_client_auth(),
    ))
}

#[cfg(not(feature = "postgres-tls"))]
fn maker(authority: Authority) -> Result<Maker, StoreError> {
    match authority {
        Authority::None => Ok(Maker),
        _ => Err(refused(
            "the URL asks for TLS, and this program is built without it: enable the feature postgres-tls of hookgate",
        )),
    }
}

impl MakeTlsConnect<Socket> for Tls {
    type Stream = <Maker as MakeTlsConnect<Socket>>::Stream;
    type TlsConnect = <Maker as MakeTlsConnect<Socket>>::TlsConnect;
    type Error = <Maker as MakeTlsConnect<Socket>>::Error;

    fn make_tls_connect(&mut self, host: &str) -> Result<Self::TlsConnect, Self::Error> {
        MakeTlsConnect::<Socket>::make_tls_connect(&mut self.0, host)
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}
