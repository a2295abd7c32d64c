//! The client, and the requests that need no row.

mod builder;
mod data_models;

use std::sync::Arc;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Response};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::Instant;

use crate::address::{config, segment};
use crate::call::{Before, Call, OnWait, Repeats, Way};
use crate::error::{Error, ErrorKind, Scope};
use crate::json;
use crate::key::{ApiKey, json_without_secrets};
#[cfg(feature = "reconcile")]
use crate::ledger::{Ledger, Writer};
use crate::names::{Names, Remembered};
use crate::options::Options;
use crate::rate::{Bucket, Rate};
use crate::transport::Transport;

pub use builder::ClientBuilder;
#[cfg(feature = "hyper")]
pub(crate) use builder::IDLE;
pub use data_models::DataModels;

/// A client of one workspace. Clones are cheap, and share connections, rate and remembered data
/// models.
///
/// See [the crate](crate) for an example.
#[derive(Clone, Debug)]
pub struct Client {
    shared: Arc<Shared>,
    options: Options,
    #[cfg(feature = "reconcile")]
    pub(crate) writer: Option<Arc<Writer>>,
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

impl Client {
    /// Returns a client with other options for its requests. It shares all else with this one.
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
            options,
            ..self.clone()
        }
    }

    /// Returns a client that records its writes of rows in this ledger before it sends them. Their
    /// events are [echoes](Ledger::echo), with this name as [`Echo::writer`](crate::Echo::writer).
    /// It shares all else with this one.
    ///
    /// The ledger keeps 64 characters of the name. A write that can't be recorded is not sent:
    /// [`ErrorKind::Ledger`].
    #[cfg(feature = "reconcile")]
    #[must_use]
    pub fn writer(&self, name: &str, ledger: &Ledger) -> Self {
        Self {
            writer: Some(Arc::new(Writer::new(name, ledger))),
            ..self.clone()
        }
    }

    /// Returns the requests that are left of the rate.
    #[must_use]
    pub fn rate(&self) -> Rate {
        self.shared.bucket.rate()
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
            .send(
                Method::GET,
                path,
                Bytes::new(),
                Repeats::Read,
                Scope::Read,
                None,
            )
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
        let whole = self.write_whole(method, path, body.into(), scope, None);
        whole.await.map(|Data { data }| data)
    }

    /// Sends a body, and reads the whole answer.
    pub(crate) async fn write_whole<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
        scope: Scope,
        before: Option<Before<'_>>,
    ) -> Result<T, Error> {
        let name = format!("{method} {path}");
        let answer = self.send(method, path, body, Repeats::Write, scope, before);
        let answer = answer.await?;
        // 2xx may come from a proxy, which has not passed the request on.
        read(answer).map_err(|error| error.of_request(&name).maybe_made())
    }

    pub(crate) async fn delete(
        &self,
        path: &str,
        scope: Scope,
        before: Option<Before<'_>>,
    ) -> Result<(), Error> {
        let (method, body) = (Method::DELETE, Bytes::new());
        let answer = self.send(method, path, body, Repeats::Delete, scope, before);
        let answer = answer.await?;
        // 204 has no body, and the answer to an earlier attempt is lost.
        if answer
            .as_ref()
            .is_none_or(|answer| answer.body().is_empty())
        {
            return Ok(());
        }
        let read = read(answer).map(|Data::<IgnoredAny> { .. }| ());
        read.map_err(|error| error.of_request(&format!("DELETE {path}")).maybe_made())
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
        repeats: Repeats,
        scope: Scope,
        before: Option<Before<'_>>,
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
        call.send(way, before).await
    }

    #[cfg(feature = "reconcile")]
    pub(crate) fn options(&self) -> Options {
        self.options
    }

    /// Returns a value of the service without the key, since some servers repeat it.
    pub(crate) fn without_key(&self, json: Value) -> Value {
        let headers = HeaderMap::from_iter([(AUTHORIZATION, self.shared.key.header())]);
        json_without_secrets(&headers, json)
    }

    /// Returns the names of a data model's properties. `behind`: only those that were asked for
    /// later than this.
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
pub(crate) struct Data<T> {
    pub(crate) data: T,
}

fn read<T: DeserializeOwned>(answer: Option<Response<Bytes>>) -> Result<T, Error> {
    let answer = answer.ok_or_else(|| Error::new(ErrorKind::Answer, "there is no answer"))?;
    json::read(answer.headers(), answer.body())
        .map_err(|error| error.answered_with(answer.status()))
}
