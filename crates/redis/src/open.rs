//! A store by the URL of its server.

use hookgate::dedupe::{StoreError, StoreErrorKind};
use redis::Client;

use crate::check;
use crate::connection::Connection;
use crate::store::RedisStore;

impl RedisStore {
    /// Connects, and [checks](Self::check) the server's settings. The findings are logged by
    /// `tracing`; without that feature, or without a subscriber, those that may
    /// [forget](crate::Risk::forgets) ids are lines on stderr. To see them yourself, or to refuse
    /// to start, use [`open`](Self::open) and call [`check`](Self::check).
    ///
    /// `rediss://…` is TLS: [setup](crate#tls).
    ///
    /// # Errors
    /// - [`Setting`](StoreErrorKind::Setting): it is not a URL of a Redis, or needs a feature of
    ///   the crate `redis` that is not enabled; or it names a database that the server does not
    ///   have; or it asks for TLS and the program has no provider of crypto.
    /// - [`Unavailable`](StoreErrorKind::Unavailable): it can't be reached, or refuses the login.
    /// - [`TooOld`](StoreErrorKind::TooOld): it is older than Redis 7.0.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        let store = Self::open(url)?;
        check::report(&store.check().await?);
        Ok(store)
    }

    /// Connects with the first call, and checks no settings: for programs that start whether Redis
    /// is up or not. Until it is up, deliveries are answered 503.
    ///
    /// # Errors
    /// [`Setting`](StoreErrorKind::Setting): it is not a URL of a Redis, or needs a feature of the
    /// crate `redis` that is not enabled; or it asks for TLS and the program has no provider of
    /// crypto.
    pub fn open(url: &str) -> Result<Self, StoreError> {
        if has_bare_password(url) {
            let message = "this can't be used as a Redis URL: write special characters of its user or password as %XX, such as %23 for #";
            return Err(StoreError::saying(StoreErrorKind::Setting, message));
        }
        // The error of redis may repeat a part of the URL.
        let client = Client::open(url).map_err(|_| {
            let asks_for_tls = url.starts_with("rediss:") || url.starts_with("valkeys:");
            let message = if asks_for_tls && cfg!(not(feature = "tls")) {
                "the URL asks for TLS, and this program is built without it: enable the feature tls of hookgate-redis"
            } else {
                "this can't be used as a Redis URL: write redis://host:port, rediss://host:port for TLS, or unix:///path"
            };
            StoreError::saying(StoreErrorKind::Setting, message)
        })?;
        let connection = Connection::new(client);
        #[cfg(feature = "tls")]
        if connection.is_tls() {
            crate::tls::provider()?;
        }
        Ok(Self::on(connection))
    }

    /// Trusts only these authorities, given as certificates in PEM. Use it where the system does
    /// not trust the authority that signed the server's certificate. The URL must be `rediss://`.
    /// Call it before the first use; earlier clones do not change.
    ///
    /// ```no_run
    /// use hookgate_redis::RedisStore;
    ///
    /// # fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let ca = std::fs::read("provider-ca.pem")?;
    /// let store = RedisStore::open("rediss://redis.internal:6380")?.with_ca(&ca)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Setting`](StoreErrorKind::Setting): this holds no certificate in PEM, or the URL is not
    /// `rediss://`.
    #[cfg(feature = "tls")]
    #[cfg_attr(docsrs, doc(cfg(feature = "tls")))]
    pub fn with_ca(mut self, pem: &[u8]) -> Result<Self, StoreError> {
        if !self.connection.is_tls() {
            let message =
                "the URL asks for no TLS, so that no authority is of use: write rediss://";
            return Err(StoreError::saying(StoreErrorKind::Setting, message));
        }
        let authorities = crate::tls::authorities(pem)?;
        self.connection = self.connection.with_authorities(authorities);
        Ok(self)
    }
}

/// Returns whether a user or a password has a `#`, `/` or `?` that is not written as `%XX`. It ends
/// the part of the URL that names the server, so that a piece of the password would be taken for
/// the host.
fn has_bare_password(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once("://") else {
        return false;
    };
    let server_ends = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    !scheme.contains("unix") && rest[server_ends..].contains('@')
}
