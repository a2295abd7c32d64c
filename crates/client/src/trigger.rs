//! Inbound triggers of workflows: calls of a generated URL.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body::Body as HttpBody;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tower_service::Service;
use zeroize::Zeroizing;

use crate::address::{Query, address, config, is_loopback};
use crate::call::{Call, Repeats, Way};
use crate::error::{BoxError, Error, ErrorKind};
use crate::json;
use crate::key::secret_header;
use crate::options::Options;
use crate::transport::{Body, Transport};

/// A workflow's inbound trigger, at its generated URL. It needs no API key, and does not count
/// against the rate.
///
/// ```no_run
/// # async fn doc() -> Result<(), hookgate_client::Error> {
/// use hookgate_client::Trigger;
///
/// let secret = std::env::var("TRIGGER_SECRET").unwrap_or_default();
/// let trigger = Trigger::new("https://service.example/webhooks/wf_1")?.header_auth("X-API-Key", &secret)?;
/// let answer = trigger.call().query("from", "till").json(&[1, 2])?.send().await?;
/// println!("{}", answer.status);
/// # Ok(()) }
/// ```
#[derive(Clone)]
#[must_use]
pub struct Trigger {
    transport: Transport,
    url: String,
    uri: Uri,
    method: Method,
    auth: Option<(HeaderName, HeaderValue)>,
    options: Options,
    plain_http: bool,
}

/// `Debug` shows only method and host: the path and the query may show who calls, and the URL must
/// stay secret.
impl fmt::Debug for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Trigger").field(&self.name()).finish()
    }
}

/// One call of a trigger, from [`Trigger::call`].
#[must_use = "nothing is sent before `send`"]
pub struct TriggerCall<'t> {
    trigger: &'t Trigger,
    query: Query,
    headers: HeaderMap,
    body: Bytes,
    repeats: u32,
}

/// `Debug` shows the same as the trigger's: the method and the host.
impl fmt::Debug for TriggerCall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TriggerCall")
            .field(&self.trigger.name())
            .finish()
    }
}

/// The answer of a trigger. In the immediate mode it comes before the workflow runs. In the mode
/// *after completion* it is the last node's result.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TriggerAnswer {
    /// The status, 2xx.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl TriggerAnswer {
    /// Reads the body as a type, for example the last node's result.
    ///
    /// # Errors
    /// `Answer`: it is not JSON, or does not fit the type. [`Error::is_outcome_unknown`] is true,
    /// since the workflow was called.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let read = json::read(&self.headers, &self.body);
        read.map_err(|error| error.answered_with(self.status).maybe_made())
    }
}

impl Trigger {
    /// Makes a trigger that is called by POST, without authentication.
    ///
    /// # Errors
    /// The URL is not http or https, or has a user name, a fragment or a port that no machine has;
    /// or the system's certificates can't be read.
    #[cfg(feature = "hyper")]
    pub fn new(url: &str) -> Result<Self, Error> {
        let is_secure = address(url)?.scheme_str() == Some("https");
        let transport = crate::hyper::transport(is_secure, crate::client::IDLE)?;
        Self::of(url, transport)
    }

    /// Makes a trigger that is called through this service, in place of hyper's client.
    ///
    /// # Errors
    /// The URL is not http or https, or has a user name, a fragment or a port that no machine has.
    pub fn with_service<S, B>(url: &str, service: S) -> Result<Self, Error>
    where
        S: Service<Request<Body>, Response = Response<B>> + Clone + Send + Sync + 'static,
        S::Error: Into<BoxError>,
        S::Future: Send,
        B: HttpBody + Send + 'static,
        B::Data: Send,
        B::Error: Into<BoxError>,
    {
        Self::of(url, Transport::new(service))
    }

    fn of(url: &str, transport: Transport) -> Result<Self, Error> {
        Ok(Self {
            transport,
            url: url.to_owned(),
            uri: address(url)?,
            method: Method::POST,
            auth: None,
            options: Options::default(),
            plain_http: false,
        })
    }

    /// Calls with this method, in place of POST. It must be the method of the trigger's
    /// configuration.
    pub fn method(mut self, method: Method) -> Self {
        self.method = method;
        self
    }

    /// Authenticates by user name and password.
    ///
    /// # Errors
    /// `Key`: the user name has a colon.
    pub fn basic_auth(mut self, user: &str, password: &str) -> Result<Self, Error> {
        if user.contains(':') {
            let message = "a user name of Basic authentication has no colon";
            return Err(Error::new(ErrorKind::Key, message));
        }
        let pair = Zeroizing::new([user, ":", password].concat());
        let encoded = Zeroizing::new(STANDARD.encode(pair.as_bytes()));
        self.auth = Some((AUTHORIZATION, secret_header(&["Basic ", &encoded])?));
        Ok(self)
    }

    /// Authenticates by a header that carries a secret.
    ///
    /// # Errors
    /// `Key`: the name is not valid for a header, or a header can't carry the secret.
    pub fn header_auth(mut self, name: &str, secret: &str) -> Result<Self, Error> {
        let name = HeaderName::try_from(name)
            .map_err(|_| Error::new(ErrorKind::Key, "this is not the name of a header"))?;
        self.auth = Some((name, secret_header(&[secret])?));
        Ok(self)
    }

    /// Sets time limits and the first wait before a repeat. [`Options::retries`] has no effect
    /// here: see [`TriggerCall::repeat`].
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Permits plain http to other machines.
    ///
    /// # Security
    /// Each machine on the way can read the secret, and call the trigger.
    pub fn allow_plain_http(mut self) -> Self {
        self.plain_http = true;
        self
    }

    /// The name of the trigger in errors: without its path and its query.
    fn name(&self) -> String {
        let host = self.uri.authority();
        let host = host.map_or("", |authority| authority.as_str());
        format!("{} trigger at {host}", self.method)
    }

    /// Begins a call.
    pub fn call(&self) -> TriggerCall<'_> {
        TriggerCall {
            trigger: self,
            query: Query::new(&self.url),
            headers: HeaderMap::new(),
            body: Bytes::new(),
            repeats: 0,
        }
    }
}

impl TriggerCall<'_> {
    /// Adds a query parameter: `{{trigger.query.<name>}}`.
    pub fn query(mut self, name: &str, value: &str) -> Self {
        self.query.add(name, value);
        self
    }

    /// Adds a header: `{{trigger.headers.<name>}}`, with the name in lower case.
    ///
    /// # Errors
    /// `Config`: a header can't have this name or this value.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, Error> {
        let name =
            HeaderName::try_from(name).map_err(|_| config("this is not the name of a header"))?;
        let value =
            HeaderValue::try_from(value).map_err(|_| config("a header can't carry this value"))?;
        self.headers.append(name, value);
        Ok(self)
    }

    /// Sets the body to JSON: `{{trigger.body}}`.
    ///
    /// # Errors
    /// `Config`: the value can't be written as JSON.
    pub fn json(mut self, body: &(impl Serialize + ?Sized)) -> Result<Self, Error> {
        let body = serde_json::to_vec(body)
            .map_err(|error| config(&format!("no JSON can be written of the body: {error}")))?;
        self.body = body.into();
        let json = HeaderValue::from_static("application/json");
        self.headers.insert(CONTENT_TYPE, json);
        Ok(self)
    }

    /// Sets the body to these bytes. Set a `Content-Type` with [`header`](Self::header).
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// Repeats the call at most this number of times: after 429, 5xx, a broken connection, or no
    /// answer in time. Without this it is sent once.
    ///
    /// The service does not deduplicate: a repeated call may run the workflow again.
    pub fn repeat(mut self, times: u32) -> Self {
        self.repeats = times;
        self
    }

    /// Sends the call.
    ///
    /// # Errors
    /// See [`ErrorKind`]. If [`Error::is_outcome_unknown`] is true, the workflow may run.
    pub async fn send(self) -> Result<TriggerAnswer, Error> {
        let trigger = self.trigger;
        let is_secure = trigger.uri.scheme_str() == Some("https");
        if trigger.auth.is_some() && !is_secure && !trigger.plain_http && !is_loopback(&trigger.uri)
        {
            return Err(config(
                "the secret would be sent to another machine over plain http: use https, or allow_plain_http",
            ));
        }
        let mut headers = self.headers;
        if let Some((name, value)) = &trigger.auth {
            headers.insert(name.clone(), value.clone());
        }
        let uri = address(&self.query.0)?;
        let repeats = match self.repeats {
            0 => Repeats::Never,
            _ => Repeats::Asked,
        };
        let options = trigger.options.retries(self.repeats);
        let name = trigger.name();
        let call = Call {
            method: trigger.method.clone(),
            uri,
            name: &name,
            headers,
            body: self.body,
            repeats,
            scope: None,
        };
        let way = Way {
            transport: &trigger.transport,
            bucket: None,
            options: &options,
            on_wait: None,
        };
        let answer = call.send(way, None).await?;
        let answer = answer.ok_or_else(|| Error::new(ErrorKind::Answer, "there is no answer"))?;
        let (head, body) = answer.into_parts();
        Ok(TriggerAnswer {
            status: head.status,
            headers: head.headers,
            body,
        })
    }
}
