//! The client, its settings, and the requests that need no row.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri};
use http_body::Body as HttpBody;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::Instant;
use tower_service::Service;

use crate::call::{Call, OnWait, Repeats, Wait, Way};
use crate::error::{BoxError, Error, ErrorKind, Scope};
use crate::json;
use crate::key::ApiKey;
use crate::model::DataModel;
use crate::names::{Names, Remembered};
use crate::objects::Objects;
use crate::options::Options;
use crate::rate::{Bucket, Rate};
use crate::rows::Rows;
use crate::transport::{Body, Transport};

/// The time for which the names of a data model's properties are remembered.
const MODEL_TTL: Duration = Duration::from_secs(300);
/// Below the idle timeouts of common servers and proxies.
#[cfg(feature = "hyper")]
pub(crate) const IDLE: Duration = Duration::from_secs(15);

/// A client of one workspace. Clones are cheap, and share connections, rate and remembered data models.
///
/// See [the crate](crate) for an example.
#[derive(Clone, Debug)]
pub struct Client {
    shared: Arc<Shared>,
    options: Options,
}

#[derive(Debug)]
struct Shared {
    /// Without a slash at its end.
    base: String,
    key: ApiKey,
    transport: Transport,
    bucket: Bucket,
    names: Remembered,
    on_wait: Option<OnWait>,
}

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
    /// Makes a client of the service at this address, the specification's `{base_url}`, such as `https://service.example/api/v1`.
    ///
    /// # Errors
    /// As [`ClientBuilder::build`].
    #[cfg(feature = "hyper")]
    pub fn new(base_url: &str, key: ApiKey) -> Result<Self, Error> {
        Self::builder(base_url, key).build()
    }

    /// Returns the settings, to be changed before the client is made.
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

    /// Returns a client with other options for the requests that are made with it. It shares all else with this one.
    ///
    /// ```no_run
    /// # async fn doc(client: hookgate_client::Client) -> Result<(), hookgate_client::Error> {
    /// use std::time::Duration;
    /// use hookgate_client::Options;
    ///
    /// let quick = Options::default().total_timeout(Duration::from_secs(2)).retries(0);
    /// let page = client.with(quick).page("page_1").await?;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn with(&self, options: Options) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            options,
        }
    }

    /// Returns what is left of the request rate.
    #[must_use]
    pub fn rate(&self) -> Rate {
        self.shared.bucket.rate()
    }

    /// Returns the rows of a data model, to be read and written as `R`, by the properties' names.
    #[must_use]
    pub fn rows<R>(&self, data_model: &str) -> Rows<R> {
        Rows::new(self.clone(), data_model)
    }

    /// Returns the data models, to be searched and listed.
    pub fn data_models(&self) -> DataModels {
        DataModels {
            client: self.clone(),
            search: None,
            details: false,
            row_counts: false,
        }
    }

    /// Gets a data model with its properties.
    ///
    /// # Errors
    /// See [`ErrorKind`].
    pub async fn data_model(&self, id: &str) -> Result<DataModel, Error> {
        let path = format!("/datamodels/{}", segment(id)?);
        self.get(&path).await
    }

    /// Creates a data model. The specification shows no payload: both sides are JSON as it is.
    ///
    /// # Errors
    /// See [`ErrorKind`].
    pub async fn create_data_model(
        &self,
        model: &(impl Serialize + ?Sized),
    ) -> Result<Value, Error> {
        self.write(Method::POST, "/datamodels", model, Scope::Admin)
            .await
    }

    /// Changes a data model. The specification shows no payload.
    ///
    /// # Errors
    /// See [`ErrorKind`].
    pub async fn update_data_model(
        &self,
        id: &str,
        changes: &(impl Serialize + ?Sized),
    ) -> Result<Value, Error> {
        let path = format!("/datamodels/{}", segment(id)?);
        self.write(Method::PATCH, &path, changes, Scope::Admin)
            .await
    }

    /// Adds and removes properties of a data model. The specification shows no payload.
    ///
    /// # Errors
    /// See [`ErrorKind`].
    pub async fn change_properties(
        &self,
        id: &str,
        changes: &(impl Serialize + ?Sized),
    ) -> Result<Value, Error> {
        let path = format!("/datamodels/{}/properties", segment(id)?);
        let changed = self
            .write(Method::PATCH, &path, changes, Scope::Admin)
            .await;
        self.shared.names.forget(id);
        changed
    }

    /// Deletes a data model with its rows.
    ///
    /// # Errors
    /// See [`ErrorKind`].
    pub async fn delete_data_model(&self, id: &str) -> Result<(), Error> {
        let path = format!("/datamodels/{}", segment(id)?);
        let deleted = self.delete(&path, Scope::Admin).await;
        self.shared.names.forget(id);
        deleted
    }

    /// Returns the blocks.
    #[must_use]
    pub fn blocks(&self) -> Objects {
        Objects::new(self.clone(), "/blocks")
    }

    /// Returns the workflows.
    #[must_use]
    pub fn workflows(&self) -> Objects {
        Objects::new(self.clone(), "/workflows")
    }

    /// Returns the stat definitions.
    #[must_use]
    pub fn stats(&self) -> Objects {
        Objects::new(self.clone(), "/stats")
    }

    /// Gets a page. The specification shows no payload.
    ///
    /// # Errors
    /// See [`ErrorKind`].
    pub async fn page(&self, id: &str) -> Result<Value, Error> {
        let path = format!("/pages/{}", segment(id)?);
        self.get(&path).await
    }

    /// Runs a workflow. The specification shows no payload.
    ///
    /// # Errors
    /// See [`ErrorKind`].
    pub async fn run_workflow(
        &self,
        id: &str,
        input: &(impl Serialize + ?Sized),
    ) -> Result<Value, Error> {
        let path = format!("/workflows/{}/run", segment(id)?);
        self.write(Method::POST, &path, input, Scope::Write).await
    }

    /// Runs a stat. The specification shows no payload.
    ///
    /// # Errors
    /// See [`ErrorKind`].
    pub async fn run_stat(
        &self,
        id: &str,
        input: &(impl Serialize + ?Sized),
    ) -> Result<Value, Error> {
        let path = format!("/stats/{}/run", segment(id)?);
        self.write(Method::POST, &path, input, Scope::Write).await
    }

    /// Gets the `data` of an object.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        self.whole(path).await.map(|Data { data }| data)
    }

    /// Gets a whole answer, with its `meta`.
    pub(crate) async fn whole<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        let answer = self
            .send(Method::GET, path, Bytes::new(), Repeats::Read, Scope::Read)
            .await?;
        read(answer).map_err(|error| error.of_request(&format!("GET {path}")))
    }

    /// Sends a JSON body, and reads the `data` of the answer.
    pub(crate) async fn write<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &(impl Serialize + ?Sized),
        scope: Scope,
    ) -> Result<T, Error> {
        let body = serde_json::to_vec(body).map_err(|error| {
            Error::new(
                ErrorKind::Row,
                format!("no JSON can be written of it: {error}"),
            )
        })?;
        let Data { data } = self.write_whole(method, path, body.into(), scope).await?;
        Ok(data)
    }

    /// Sends a body, and reads the whole answer.
    pub(crate) async fn write_whole<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
        scope: Scope,
    ) -> Result<T, Error> {
        let name = format!("{method} {path}");
        let answer = self.send(method, path, body, Repeats::Write, scope).await?;
        // The service has answered that the change is made; what else it says can't be read.
        read(answer).map_err(|error| error.of_request(&name))
    }

    pub(crate) async fn delete(&self, path: &str, scope: Scope) -> Result<(), Error> {
        self.send(Method::DELETE, path, Bytes::new(), Repeats::Delete, scope)
            .await
            .map(drop)
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
        repeats: Repeats,
        scope: Scope,
    ) -> Result<Option<Response<Bytes>>, Error> {
        let shared = &*self.shared;
        let name = format!("{method} {path}");
        let uri = format!("{}{path}", shared.base).parse();
        let uri = uri.map_err(|_| config("the request's address is too long").of_request(&name))?;
        let json = HeaderValue::from_static("application/json");
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, shared.key.header());
        headers.insert(ACCEPT, json.clone());
        if !body.is_empty() {
            headers.insert(CONTENT_TYPE, json);
        }
        let call = Call {
            method,
            uri,
            name: &name,
            headers,
            body,
            repeats,
            scope: Some(scope),
        };
        let way = Way {
            transport: &shared.transport,
            bucket: Some(&shared.bucket),
            options: &self.options,
            on_wait: shared.on_wait.as_ref(),
        };
        call.send(way).await
    }

    /// Returns the names of a data model's properties. `behind`: only those that were asked for later than this.
    pub(crate) async fn names(
        &self,
        model: &str,
        behind: Option<Instant>,
    ) -> Result<Arc<Names>, Error> {
        let look_up = async |since| Ok(Names::of(&self.data_model(model).await?, since));
        self.shared.names.get(model, behind, look_up).await
    }
}

#[derive(Deserialize)]
struct Data<T> {
    data: T,
}

fn read<T: DeserializeOwned>(answer: Option<Response<Bytes>>) -> Result<T, Error> {
    let answer = answer.ok_or_else(|| Error::new(ErrorKind::Answer, "there is no answer"))?;
    json::read(answer.body())
}

/// The data models, from [`Client::data_models`].
#[derive(Clone, Debug)]
#[must_use]
pub struct DataModels {
    client: Client,
    search: Option<String>,
    details: bool,
    row_counts: bool,
}

impl DataModels {
    /// Only those whose title or id matches this text.
    pub fn search(mut self, text: &str) -> Self {
        self.search = Some(text.to_owned());
        self
    }

    /// With their properties.
    pub fn details(mut self) -> Self {
        self.details = true;
        self
    }

    /// With their row counts, in [`DataModel::extra`]: the specification does not show the field's name.
    pub fn row_counts(mut self) -> Self {
        self.row_counts = true;
        self
    }

    /// Lists them. The list has no pages: where the service has more than it sends by default, it is asked for all in one.
    ///
    /// # Errors
    /// See [`ErrorKind`]; `Answer` where the service does not send all of them.
    pub async fn list(&self) -> Result<Vec<DataModel>, Error> {
        #[derive(Deserialize)]
        struct Models {
            data: Vec<DataModel>,
            meta: Total,
        }
        #[derive(Deserialize)]
        struct Total {
            total: usize,
        }
        let mut models: Models = self.client.whole(&self.path(None)).await?;
        if models.data.len() < models.meta.total {
            let path = self.path(Some(models.meta.total));
            models = self.client.whole(&path).await?;
        }
        let Models { data, meta } = models;
        if data.len() < meta.total {
            let message = format!(
                "the service lists {} of its {} data models; search for some of them",
                data.len(),
                meta.total
            );
            return Err(Error::new(ErrorKind::Answer, message).of_request("GET /datamodels"));
        }
        Ok(data)
    }

    fn path(&self, limit: Option<usize>) -> String {
        let mut query = Query::new("/datamodels");
        if let Some(search) = &self.search {
            query.add("search", search);
        }
        if self.details {
            query.add("includeDetails", "true");
        }
        if self.row_counts {
            query.add("includeRowCounts", "true");
        }
        if let Some(limit) = limit {
            query.add("limit", &limit.to_string());
        }
        query.0
    }
}

impl ClientBuilder {
    /// Sets the options of all requests; [`Client::with`] takes others.
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Remembers the names of a data model's properties for this time, in place of 5 minutes. A name that is not known is asked for at
    /// once.
    pub fn model_ttl(mut self, time: Duration) -> Self {
        self.model_ttl = time;
        self
    }

    /// Drops connections that were idle for this time, in place of 15 s. It has to be below the server's own limit.
    #[cfg(feature = "hyper")]
    pub fn idle_timeout(mut self, time: Duration) -> Self {
        self.idle = time;
        self
    }

    /// Calls this function at each wait, for the rate or before a repeat.
    pub fn on_wait(mut self, on_wait: impl Fn(&Wait<'_>) + Send + Sync + 'static) -> Self {
        self.on_wait = Some(OnWait(Arc::new(on_wait)));
        self
    }

    /// Sends the key over plain http to other machines, too.
    ///
    /// # Security
    /// Everybody on the way can read the key, and all rows. It is for a network that nobody else can listen to.
    pub fn allow_plain_http(mut self) -> Self {
        self.plain_http = true;
        self
    }

    /// Sends requests through this service, in place of hyper's client. It must not follow redirects to other hosts with the header
    /// `Authorization`, and repeat nothing.
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
    /// The address is none of http or https, has a user name or a query, or is one of plain http on another machine; the system's
    /// certificates can't be read; there is no transport.
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
        })
    }
}

pub(crate) fn config(message: &str) -> Error {
    Error::new(ErrorKind::Config, message)
}

/// Reads an address of http or https, and repeats nothing of it in its errors: a password may stand in it.
pub(crate) fn address(text: &str) -> Result<Uri, Error> {
    let uri: Uri = text
        .parse()
        .map_err(|_| config("the address is not well-formed"))?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err(config(
            "the address does not begin with http:// or https://",
        ));
    }
    match uri.authority() {
        Some(authority) if authority.as_str().contains('@') => {
            Err(config("the address has a user name or a password"))
        }
        Some(authority) if !authority.host().is_empty() => Ok(uri),
        _ => Err(config("the address names no host")),
    }
}

pub(crate) fn is_loopback(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let ip = host.parse::<std::net::IpAddr>();
    host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback())
}

/// A path with a query.
#[derive(Debug)]
pub(crate) struct Query(pub(crate) String);

impl Query {
    pub(crate) fn new(path: &str) -> Self {
        Self(path.to_owned())
    }

    pub(crate) fn add(&mut self, name: &str, value: &str) {
        let mark = if self.0.contains('?') { '&' } else { '?' };
        self.0.push(mark);
        encode(&mut self.0, name);
        self.0.push('=');
        encode(&mut self.0, value);
    }
}

/// Writes an id as one segment of a path.
///
/// # Errors
/// An empty id, and dots that a server may resolve: the request would be one for another object.
pub(crate) fn segment(id: &str) -> Result<String, Error> {
    if ["", ".", ".."].contains(&id) {
        return Err(config(&format!("{id:?} is no id")));
    }
    let mut segment = String::new();
    encode(&mut segment, id);
    Ok(segment)
}

fn encode(into: &mut String, text: &str) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            into.push(char::from(byte));
        } else {
            // A text can always be written.
            let _ = write!(into, "%{byte:02X}");
        }
    }
}
