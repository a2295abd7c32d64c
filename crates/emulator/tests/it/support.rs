//! An emulator and a plain client.

use std::sync::mpsc;
use std::time::Duration;

use bytes::Bytes;
use hookgate::clock::{ManualClock, UnixSeconds};
use hookgate_emulator::{Emulator, Seed};
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};

use crate::deliveries::SECRET;

/// An emulator with a client of its own.
pub(crate) struct Service {
    pub(crate) emulator: Emulator,
    client: Client<HttpConnector, Full<Bytes>>,
}

/// An answer that was read whole.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {:?}", self.body))
    }

    /// The `data` of an answer that is 2xx.
    #[track_caller]
    pub(crate) fn data(&self) -> Value {
        assert!(self.status.is_success(), "{} {:?}", self.status, self.body);
        self.json()["data"].take()
    }

    /// Asserts an error of the specification's table, and returns its message.
    #[track_caller]
    pub(crate) fn refused(&self, status: u16, code: &str) -> String {
        let json = self.json();
        assert_eq!(
            (self.status.as_u16(), &json["error"]["code"]),
            (status, &code.into()),
            "{json}"
        );
        let fields = json["error"].as_object().unwrap().keys();
        let fields: Vec<_> = fields.map(String::as_str).collect();
        assert_eq!(
            (json.as_object().unwrap().len(), fields),
            (1, vec!["code", "message"]),
            "{json}"
        );
        json["error"]["message"].as_str().unwrap().to_owned()
    }

    /// Returns the message.
    #[track_caller]
    pub(crate) fn invalid(&self) -> String {
        self.refused(400, "VALIDATION_ERROR")
    }

    #[track_caller]
    pub(crate) fn not_found(&self) -> String {
        self.refused(404, "NOT_FOUND")
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub(crate) fn number(&self, header: &str) -> i64 {
        let value = self
            .headers
            .get(header)
            .unwrap_or_else(|| panic!("no {header}"));
        value.to_str().unwrap().parse().unwrap()
    }
}

/// The names of the fields, with a blank between them.
pub(crate) fn fields(object: &Value) -> String {
    let fields: Vec<_> = object.as_object().unwrap().keys().cloned().collect();
    fields.join(" ")
}

pub(crate) fn count(array: &Value) -> usize {
    array.as_array().unwrap().len()
}

/// This member of each item.
pub(crate) fn each(array: &Value, name: &str) -> Vec<Value> {
    let items = array.as_array().unwrap().iter();
    items.map(|item| item[name].clone()).collect()
}

/// The header with the key of all scopes.
pub(crate) const KEY: (&str, &str) = ("authorization", "Bearer tk_test_admin");

/// The time of an emulator whose clock the test moves.
pub(crate) const BY_HAND: i64 = 1_795_253_400;

impl Service {
    pub(crate) async fn orders() -> Self {
        Self::of(Emulator::start(Seed::orders()).await.unwrap())
    }

    pub(crate) async fn seeded(seed: &str) -> Self {
        Self::of(Emulator::start(Seed::parse(seed).unwrap()).await.unwrap())
    }

    pub(crate) fn of(emulator: Emulator) -> Self {
        let client = Client::builder(TokioExecutor::new()).build_http();
        Self { emulator, client }
    }

    /// With this seed, at a fixed time, which the test alone moves.
    pub(crate) async fn by_hand(seed: Seed) -> Self {
        let clock = ManualClock::at(UnixSeconds::new(BY_HAND));
        Self::of(Emulator::builder(seed).clock(clock).start().await.unwrap())
    }

    /// A request of the API with the key `tk_test_admin` where the path begins with a slash, else
    /// of the control API.
    pub(crate) async fn ask(
        &self,
        method: &str,
        path: &str,
        body: impl Into<Option<Value>>,
    ) -> Answer {
        if path.starts_with('/') {
            return self
                .api_as("tk_test_admin", method, path, body.into())
                .await;
        }
        let body = body.into().map_or(String::new(), |body| body.to_string());
        let path = format!("/_emulator/{path}");
        self.raw(method, &path, &[], body).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: impl Into<Option<Value>>) -> Answer {
        self.ask("POST", path, body).await
    }

    pub(crate) async fn patch(&self, path: &str, body: Value) -> Answer {
        self.ask("PATCH", path, body).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Answer {
        self.ask("PUT", path, body).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.ask("DELETE", path, None).await
    }

    pub(crate) async fn api_as(
        &self,
        key: &str,
        method: &str,
        path: &str,
        body: Option<Value>,
    ) -> Answer {
        let key = format!("Bearer {key}");
        let headers = [
            ("authorization", &*key),
            ("content-type", "application/json"),
        ];
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        self.raw(method, &format!("/api/v1{path}"), &headers, body)
            .await
    }

    /// A request to this path of the emulator, or to a whole URL.
    pub(crate) async fn raw(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<String>,
    ) -> Answer {
        let url = match path.starts_with('/') {
            true => format!("{}{path}", self.emulator.url()),
            false => path.to_owned(),
        };
        let mut request = Request::builder().method(method).uri(url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request.body(body.into()).unwrap()).await
    }

    pub(crate) async fn switch(&self, name: &str, value: impl Into<Value>) {
        let switch = json!({ name: value.into() });
        self.patch("switches", switch).await.data();
    }

    pub(crate) async fn advance(&self, by: impl Into<Value>) -> Answer {
        self.post("clock/advance", json!({ "by": by.into() })).await
    }

    /// A subscription at which nothing listens.
    pub(crate) fn subscribe_nobody(&self) -> String {
        let id = self.emulator.subscribe("http://127.0.0.1:9/", SECRET);
        id.unwrap()
    }

    /// Deletes the first order, as a person does.
    pub(crate) fn delete_order(&self) {
        let rows = self.emulator.rows("dm_orders");
        rows.delete("row_order_1").unwrap();
    }

    /// The endpoints of the control API: method and path.
    pub(crate) async fn controls(&self) -> Vec<String> {
        let controls = self.get("controls").await.data();
        let part = |control: &Value, name: &str| control[name].as_str().unwrap().to_owned();
        let controls = controls.as_array().unwrap().iter();
        controls
            .map(|control| format!("{} {}", part(control, "method"), part(control, "path")))
            .collect()
    }

    pub(crate) async fn send(&self, request: Request<String>) -> Answer {
        self.try_send(request).await.expect("an answer")
    }

    pub(crate) async fn try_send(&self, request: Request<String>) -> Result<Answer, String> {
        let request = request.map(|body| Full::new(Bytes::from(body)));
        let answered = async {
            let answer = self
                .client
                .request(request)
                .await
                .map_err(|error| format!("{error:?}"))?;
            let (head, body) = answer.into_parts();
            let body = body
                .collect()
                .await
                .map_err(|error| error.to_string())?
                .to_bytes();
            Ok(Answer {
                status: head.status,
                headers: head.headers,
                body,
            })
        };
        let answered = tokio::time::timeout(Duration::from_secs(30), answered).await;
        answered.map_err(|_| "no answer within 30 s".to_owned())?
    }
}

/// The time after which a wait for a timer is given up in [`in_still_time`].
const PATIENCE: Duration = Duration::from_secs(600);

/// The processor time of this thread: other work of the machine is left out.
#[cfg(unix)]
pub(crate) fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap()
}

#[cfg(not(unix))]
pub(crate) fn cpu_time() -> Duration {
    std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap()
}

/// Runs work of a current-thread runtime while tokio's time stands still: no time limit is met
/// because the machine is busy. Work that waits for a timer fails.
pub(crate) async fn in_still_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::pause();
    let began = tokio::time::Instant::now();
    let (end, ended) = mpsc::channel::<()>();
    // Paused time does not go on while a blocking task runs.
    let still = tokio::task::spawn_blocking(move || ended.recv_timeout(PATIENCE));
    let done = work.await;
    drop(end);
    let _ = still.await.unwrap();
    assert_eq!(began.elapsed(), Duration::ZERO, "it waited for a timer");
    tokio::time::resume();
    done
}
