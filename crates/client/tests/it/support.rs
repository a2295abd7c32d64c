//! An emulator and a client of it.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::routing::MethodRouter;
use hookgate::clock::{Clock, Monotonic, UnixSeconds};
use hookgate::{MemoryStore, Receiver, Secret};
use hookgate_client::{ApiKey, Body, Client, ClientBuilder, Options, Trigger};
use hookgate_emulator::{Emulator, Seed};
use http::{Method, Request, Response};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::time::Instant;

/// Some properties of the sample's orders.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Order {
    #[serde(rename = "Customer")]
    pub customer: String,
    #[serde(rename = "Quantity")]
    pub quantity: Option<i64>,
    #[serde(rename = "Total")]
    pub total: Option<hookgate::event::Number>,
}

impl Order {
    pub fn of(customer: &str, quantity: i64) -> Self {
        Self {
            customer: customer.to_owned(),
            quantity: Some(quantity),
            total: None,
        }
    }
}

pub async fn orders() -> Emulator {
    Emulator::start(Seed::orders()).await.unwrap()
}

pub async fn seeded(seed: &Value) -> Emulator {
    let seed = Seed::parse(&seed.to_string()).unwrap();
    Emulator::start(seed).await.unwrap()
}

/// Nothing listens on this port.
pub const NOBODY: &str = "http://127.0.0.1:1/api/v1";

/// Waits for repeats take no time.
pub fn quick() -> Options {
    Options::default().backoff(Duration::from_millis(1))
}

pub fn builder(emulator: &Emulator, key: &str) -> ClientBuilder {
    Client::builder(&emulator.base_url(), ApiKey::new(key).unwrap()).options(quick())
}

pub fn client(emulator: &Emulator) -> Client {
    builder(emulator, "tk_test_admin").build().unwrap()
}

/// The requests that the emulator's API has answered: method and path with query.
pub async fn requests(emulator: &Emulator) -> Vec<String> {
    let answer = control(emulator, Method::GET, "requests", None).await;
    let requests = answer["data"].as_array().unwrap().iter();
    let text = |request: &Value, name: &str| request[name].as_str().unwrap().to_owned();
    requests
        .map(|request| format!("{} {}", text(request, "method"), text(request, "path")))
        .collect()
}

/// The number of requests that a fault has hit.
pub fn hits(emulator: &Emulator) -> u64 {
    let faults = emulator.faults();
    let hits = faults.iter().map(|fault| fault["hits"].as_u64().unwrap());
    hits.sum()
}

/// The requests of this method that the emulator's API has answered.
pub async fn count(emulator: &Emulator, method: &str) -> usize {
    let requests = requests(emulator).await.into_iter();
    requests
        .filter(|request| request.starts_with(method))
        .count()
}

/// Serves a receiver on the emulator's clock, which is subscribed there.
pub async fn serve(emulator: &Emulator, route: impl FnOnce(&Receiver) -> MethodRouter) {
    let secret = "whsec_made_up_for_this_test";
    let receiver = Receiver::builder()
        .secret(Secret::new(secret).unwrap())
        .store(MemoryStore::default().with_clock(emulator.clock()))
        .clock(emulator.clock())
        .build()
        .unwrap();
    let app: Router = Router::new().route("/", route(&receiver));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    emulator.subscribe(&url, secret).unwrap();
}

/// A service in memory, with the answers that a test gives it. It notes method and path of each
/// request.
#[derive(Clone, Default)]
pub struct Fake {
    answers: Arc<Mutex<VecDeque<Response<bytes::Bytes>>>>,
    pub seen: Arc<Mutex<Vec<String>>>,
}

impl Fake {
    pub fn answering<B: Into<bytes::Bytes>>(
        answers: impl IntoIterator<Item = Response<B>>,
    ) -> Self {
        let fake = Self::default();
        let answers = answers.into_iter().map(|answer| answer.map(Into::into));
        fake.answers.lock().unwrap().extend(answers);
        fake
    }

    pub fn client(&self) -> Client {
        self.builder().build().unwrap()
    }

    pub fn builder(&self) -> ClientBuilder {
        let key = ApiKey::new("tk_test_made_up").unwrap();
        Client::builder("https://service.example/api/v1", key).with_service(self.clone())
    }
}

/// The trigger of a workflow of this service.
pub fn hook(fake: Fake) -> Trigger {
    Trigger::with_service("https://service.example/webhooks/wf_1", fake).unwrap()
}

/// An answer with this header.
pub fn with_header(
    mut answer: Response<String>,
    name: &'static str,
    value: &str,
) -> Response<String> {
    answer.headers_mut().insert(name, value.parse().unwrap());
    answer
}

/// An answer with the headers of the rate.
pub fn answer(status: u16, rate: Option<(u32, u32, u64)>, body: &str) -> Response<String> {
    let mut answer = Response::builder().status(status);
    if let Some((limit, remaining, reset)) = rate {
        answer = answer
            .header("X-RateLimit-Limit", limit)
            .header("X-RateLimit-Remaining", remaining)
            .header("X-RateLimit-Reset", reset);
    }
    answer.body(body.to_owned()).unwrap()
}

/// The last answer is repeated for ever.
impl tower_service::Service<Request<Body>> for Fake {
    type Response = Response<Whole>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Whole>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let seen = format!("{} {}", request.method(), request.uri().path());
        self.seen.lock().unwrap().push(seen);
        let mut answers = self.answers.lock().unwrap();
        let answer = match answers.len() {
            1 => answers[0].clone(),
            _ => answers.pop_front().unwrap(),
        };
        ready(Ok(answer.map(|body| Whole(Some(body)))))
    }
}

/// A body in one piece.
pub struct Whole(pub Option<bytes::Bytes>);

impl http_body::Body for Whole {
    type Data = bytes::Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<bytes::Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|data| Ok(http_body::Frame::data(data))))
    }
}

const START: u64 = 1_795_253_400;

/// The time of tokio, which is paused: the sleeps of this test, of the client and of the emulator
/// pass it for all of them.
#[derive(Clone, Copy, Debug)]
pub struct TestClock(pub Instant);

impl TestClock {
    fn passed(self) -> Duration {
        self.0.elapsed()
    }
}

impl Clock for TestClock {
    fn now(&self) -> UnixSeconds {
        UnixSeconds::new((self.unix_millis() / 1_000) as i64)
    }

    fn monotonic(&self) -> Monotonic {
        Monotonic::new(self.passed())
    }

    fn unix_millis(&self) -> u64 {
        START * 1_000 + u64::try_from(self.passed().as_millis()).unwrap()
    }
}

/// A request of the emulator's control API.
pub async fn control(
    emulator: &Emulator,
    method: Method,
    path: &str,
    body: Option<Value>,
) -> Value {
    let url = format!("{}/_emulator/{path}", emulator.url());
    let trigger = Trigger::new(&url).unwrap().method(method);
    let mut call = trigger.call();
    if let Some(body) = body {
        call = call.json(&body).unwrap();
    }
    call.send().await.unwrap().json().unwrap()
}
