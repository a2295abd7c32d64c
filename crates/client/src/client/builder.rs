//! The making of a client.

use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use http_body::Body as HttpBody;
use tower_service::Service;

use super::{Client, Shared};
use crate::address::{address, config, is_loopback};
use crate::call::{OnWait, Wait};
use crate::error::{BoxError, Error};
use crate::key::ApiKey;
use crate::names::Remembered;
use crate::options::Options;
use crate::rate::Bucket;
use crate::transport::{Body, Transport};

/// The time for which the names of a data model's properties are remembered.
const MODEL_TTL: Duration = Duration::from_secs(300);
/// Below the idle timeouts of common servers and proxies.
#[cfg(feature = "hyper")]
pub(crate) const IDLE: Duration = Duration::from_secs(15);

/// The settings of a client, from [`Client::builder`].
#[derive(Debug)]
#[must_use]
pub struct ClientBuilder {
    base: String,
    key: ApiKey,
    transport: Option<Transport>,
    options: Options,
    model_ttl: Duration,
    #[cfg(feature = "hyper")]
    idle: Duration,
    plain_http: bool,
    on_wait: Option<OnWait>,
}

impl Client {
    /// Makes a client of the service at this address, the specification's `{base_url}`, such as
    /// `https://service.example/api/v1`.
    ///
    /// # Errors
    /// As [`ClientBuilder::build`].
    #[cfg(feature = "hyper")]
    pub fn new(base_url: &str, key: ApiKey) -> Result<Self, Error> {
        Self::builder(base_url, key).build()
    }

    /// Returns a builder, to change settings before the client is made.
    pub fn builder(base_url: &str, key: ApiKey) -> ClientBuilder {
        ClientBuilder {
            base: base_url.to_owned(),
            key,
            transport: None,
            options: Options::default(),
            model_ttl: MODEL_TTL,
            #[cfg(feature = "hyper")]
            idle: IDLE,
            plain_http: false,
            on_wait: None,
        }
    }
}

impl ClientBuilder {
    /// Sets the options of all requests; [`Client::with`] sets others for some.
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Remembers the names of a data model's properties for this time, in place of 5 minutes. For
    /// an unknown name they are read again at once.
    pub fn model_ttl(mut self, time: Duration) -> Self {
        self.model_ttl = time;
        self
    }

    /// Closes connections that were idle for this time, in place of 15 s. It must be below the
    /// server's own limit.
    #[cfg(feature = "hyper")]
    pub fn idle_timeout(mut self, time: Duration) -> Self {
        self.idle = time;
        self
    }

    /// Calls this function before each wait, for the rate or before a repeat.
    pub fn on_wait(mut self, on_wait: impl Fn(&Wait<'_>) + Send + Sync + 'static) -> Self {
        self.on_wait = Some(OnWait(Arc::new(on_wait)));
        self
    }

    /// Permits plain http to other machines.
    ///
    /// # Security
    /// Each machine on the way can read the key and all rows. Use it only on a network that no
    /// other party can listen to.
    pub fn allow_plain_http(mut self) -> Self {
        self.plain_http = true;
        self
    }

    /// Sends requests through this service, in place of hyper's client. It must not repeat
    /// requests, and must not send the header `Authorization` to another host when it follows a
    /// redirect.
    pub fn with_service<S, B>(mut self, service: S) -> Self
    where
        S: Service<Request<Body>, Response = Response<B>> + Clone + Send + Sync + 'static,
        S::Error: Into<BoxError>,
        S::Future: Send,
        B: HttpBody + Send + 'static,
        B::Data: Send,
        B::Error: Into<BoxError>,
    {
        self.transport = Some(Transport::new(service));
        self
    }

    /// Makes the client. Nothing is sent yet.
    ///
    /// # Errors
    /// The address is not http or https, has a user name, a query, a fragment or a port that no
    /// machine has, or is plain http on another machine; the system's certificates can't be read;
    /// or there is no transport.
    pub fn build(self) -> Result<Client, Error> {
        let uri = address(&self.base)?;
        let is_secure = uri.scheme_str() == Some("https");
        if !is_secure && !self.plain_http && !is_loopback(&uri) {
            return Err(config(
                "the key would be sent to another machine over plain http: use https, or allow_plain_http",
            ));
        }
        if uri.query().is_some() {
            return Err(config("the base address has a query"));
        }
        let transport = match self.transport {
            Some(transport) => transport,
            #[cfg(feature = "hyper")]
            None => crate::hyper::transport(is_secure, self.idle)?,
            #[cfg(not(feature = "hyper"))]
            None => {
                return Err(config(
                    "no transport: use with_service, or a feature that has one",
                ));
            }
        };
        Ok(Client {
            shared: Arc::new(Shared {
                base: self.base.trim_end_matches('/').to_owned(),
                key: self.key,
                transport,
                bucket: Bucket::new(),
                names: Remembered::new(self.model_ttl),
                on_wait: self.on_wait,
            }),
            options: self.options,
            #[cfg(feature = "reconcile")]
            writer: None,
        })
    }
}
