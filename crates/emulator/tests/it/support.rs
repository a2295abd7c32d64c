//! An emulator and a plain client.

use std::sync::mpsc;
use std::time::Duration;

use bytes::Bytes;
use hookgate_emulator::{Emulator, Seed};
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

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

    #[track_caller]
    pub(crate) fn number(&self, header: &str) -> i64 {
        let value = self
            .headers
            .get(header)
            .unwrap_or_else(|| panic!("no {header}"));
        value.to_str().unwrap().parse().unwrap()
    }
}

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

    /// A request of the API with the key `tk_test_admin`.
    pub(crate) async fn api(&self, method: &str, path: &str, body: Option<Value>) -> Answer {
        self.api_as("tk_test_admin", method, path, body).await
    }

    pub(crate) async fn api_as(
        &self,
        key: &str,
        method: &str,
        path: &str,
        body: Option<Value>,
    ) -> Answer {
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.emulator.base_url()))
            .header("authorization", format!("Bearer {key}"))
            .header("content-type", "application/json");
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        self.send(request.body(body).unwrap()).await
    }

    /// A request of the control API.
    pub(crate) async fn control(&self, method: &str, path: &str, body: Option<Value>) -> Answer {
        let url = format!("{}/_emulator/{path}", self.emulator.url());
        let request = Request::builder().method(method).uri(url);
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        self.send(request.body(body).unwrap()).await
    }

    /// The endpoints of the control API: method and path.
    pub(crate) async fn controls(&self) -> Vec<String> {
        let controls = self.control("GET", "controls", None).await.data();
        let part = |control: &Value, name: &str| control[name].as_str().unwrap().to_owned();
        let controls = controls.as_array().unwrap().iter();
        controls
            .map(|control| format!("{} {}", part(control, "method"), part(control, "path")))
            .collect()
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.api("GET", path, None).await
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

/// Runs work of a current-thread runtime while tokio's time stands still: no time limit is met because the machine is busy. Work that
/// waits for a timer fails.
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
