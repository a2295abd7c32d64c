//! TLS to the server, by rustls.

use std::error::Error;
use std::fmt;
use std::future::ready;
use std::pin::Pin;

use hookgate::dedupe::StoreError;
#[cfg(not(feature = "tls"))]
use tokio_postgres::NoTls as Maker;
use tokio_postgres::Socket;
use tokio_postgres::config::{Config, SslMode};
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
#[cfg(feature = "tls")]
use tokio_postgres_rustls::MakeRustlsConnect as Maker;

use super::url::{self, Authority, refused};

/// The TLS of connections to PostgreSQL, for [`Postgres::new`](super::Postgres::new), for your own
/// pool and for a client of the crate `tokio-postgres`.
///
/// ```no_run
/// use deadpool_postgres::{Manager, Pool};
/// use hookgate_postgres::{Postgres, Tls, migrate};
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
pub struct Tls(Option<Maker>);

impl Tls {
    /// Returns the configuration and the TLS that a URL asks for,
    /// `postgres://user@host/database?sslmode=verify-full`.
    ///
    /// | `sslmode` | here |
    /// |---|---|
    /// | `verify-full`, `verify-ca`, `require` | TLS, and **all three verify the certificate and its host name** |
    /// | `prefer`, `allow`, or none | no TLS to this machine (`localhost`, `127.0.0.1`, `::1`). To another: with feature `tls`, TLS where the server offers it, with a verified certificate; refused without the feature |
    /// | `disable` | no TLS |
    ///
    /// `sslrootcert=FILE` names the certificates of the authorities to trust, in PEM, such as your
    /// provider's; without it, or with `sslrootcert=system`, those that the system trusts are.
    /// `sslrootcert` without `sslmode` means `verify-full`. A unix socket needs no TLS and never
    /// has it, as in other clients. Words of the form `host=… sslmode=…` work as well, where none
    /// is quoted.
    ///
    /// # Errors
    /// [`Setting`](hookgate::dedupe::StoreErrorKind::Setting): it is not a URL of a PostgreSQL; it
    /// asks for TLS, or does not say whether to another machine, and the feature `tls` is not
    /// enabled or the program has no provider of crypto; or there are no certificates to trust. The
    /// error shows nothing of the URL, which may hold a password.
    ///
    /// # Security
    /// Use `sslmode=verify-full` for a server that is not on this machine: with `prefer`, another
    /// device on the network can pretend that the server has no TLS. Other clients accept any
    /// certificate for `require`, and any host name for `verify-ca`.
    pub fn for_url(url: &str) -> Result<(Config, Self), StoreError> {
        let (config, authority) = url::read(url)?;
        let maker = match config.get_ssl_mode() {
            SslMode::Disable => None,
            // The server may offer none. Where it does, and the system trusts nothing, its
            // certificate is refused then.
            SslMode::Prefer => Some(maker(authority, true)?),
            _ => Some(maker(authority, false)?),
        };
        Ok((config, Self(maker)))
    }

    /// Trusts the authorities that the system trusts. The environment variables `SSL_CERT_FILE` and
    /// `SSL_CERT_DIR` name others.
    ///
    /// # Errors
    /// [`Setting`](hookgate::dedupe::StoreErrorKind::Setting): none was found, or the program has
    /// no provider of crypto.
    ///
    /// # Security
    /// A [`Config`] without `sslmode=require` also accepts a server that offers no TLS.
    #[cfg(feature = "tls")]
    #[cfg_attr(docsrs, doc(cfg(feature = "tls")))]
    pub fn system() -> Result<Self, StoreError> {
        maker(Authority::System, false).map(Some).map(Self)
    }

    /// Trusts these authorities alone, whose certificates are in PEM: one or more.
    ///
    /// # Errors
    /// [`Setting`](hookgate::dedupe::StoreErrorKind::Setting): this holds no certificate in PEM, or
    /// the program has no provider of crypto.
    ///
    /// # Security
    /// As [`system`](Self::system).
    #[cfg(feature = "tls")]
    #[cfg_attr(docsrs, doc(cfg(feature = "tls")))]
    pub fn with_ca(pem: &[u8]) -> Result<Self, StoreError> {
        maker(Authority::Pem(pem.to_vec()), false)
            .map(Some)
            .map(Self)
    }
}

#[cfg(feature = "tls")]
fn maker(authority: Authority, may_trust_none: bool) -> Result<Maker, StoreError> {
    use crate::handshake as tls;

    const NO_SYSTEM: &str = "the system has no certificates to trust: install them, such as the package ca-certificates, or name a file by sslrootcert";
    let authorities = match authority {
        Authority::System => tls::system_authorities(),
        Authority::Pem(pem) => tls::authorities(&pem)?,
    };
    if authorities.is_empty() && !may_trust_none {
        return Err(refused(NO_SYSTEM));
    }
    tls::config(authorities).map(Maker::new)
}

#[cfg(not(feature = "tls"))]
fn maker(_: Authority, _: bool) -> Result<Maker, StoreError> {
    Err(refused(
        "the URL asks for TLS, and this program is built without it: enable the feature tls of hookgate-postgres",
    ))
}

type Boxed = Box<dyn Error + Send + Sync>;
type Connect = <Maker as MakeTlsConnect<Socket>>::TlsConnect;

impl MakeTlsConnect<Socket> for Tls {
    type Stream = <Maker as MakeTlsConnect<Socket>>::Stream;
    type TlsConnect = ConnectTls;
    type Error = Boxed;

    fn make_tls_connect(&mut self, host: &str) -> Result<ConnectTls, Boxed> {
        let maker = self.0.as_mut();
        let connect = maker.map(|maker| MakeTlsConnect::<Socket>::make_tls_connect(maker, host));
        Ok(ConnectTls(connect.transpose()?))
    }
}

/// The TLS of one connection. None where the URL asks for no TLS, which needs no provider of
/// crypto.
pub struct ConnectTls(Option<Connect>);

impl TlsConnect<Socket> for ConnectTls {
    type Stream = <Connect as TlsConnect<Socket>>::Stream;
    type Error = Boxed;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Stream, Boxed>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        match self.0 {
            Some(connect) => {
                Box::pin(async move { connect.connect(socket).await.map_err(Boxed::from) })
            }
            None => Box::pin(ready(Err("the URL asks for no TLS".into()))),
        }
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

impl fmt::Debug for ConnectTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectTls").finish_non_exhaustive()
    }
}
