//! Shared code for the tests of requests: signed deliveries, a server on a free port, a client that
//! writes raw bytes, and probes that count.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::routing::post;
use bytes::Bytes;
use hookgate::{
    Delivery, MemoryStore, Receiver, ReceiverBuilder, Secret,
    clock::{Clock, ManualClock, SystemClock, UnixSeconds},
    dedupe::StoreFuture,
    receiver::RequestHead,
    verify::{Signature, Timestamp},
};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tower::ServiceExt;

use crate::store_proxy::{Call, StoreProxy, store_proxy};

pub(crate) const SECRET: &str = "whsec_made_up_for_the_wire_tests";
/// The time of a manual clock.
pub(crate) const NOW: i64 = 1_763_690_000;
/// A generous time limit, for a loaded machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn secret() -> Secret {
    Secret::new(SECRET).unwrap()
}

pub(crate) fn manual() -> ManualClock {
    ManualClock::at(UnixSeconds::new(NOW))
}

/// A receiver's settings with the secret and a store of its own.
pub(crate) fn receiver() -> ReceiverBuilder {
    Receiver::builder()
        .secret(secret())
        .store(MemoryStore::default())
}

/// A whole, well-formed event.
pub(crate) fn event(id: &str) -> String {
    format!(
        r#"{{"id":"{id}","type":"row.deleted","createdAt":"2026-11-21T09:30:00.000Z","workspaceId":"ws_1","data":{{"datamodelId":"dm_1","datamodelName":"Orders","rowId":"row_1","deletedBy":{{"id":"usr_1","name":"Ada"}}}}}}"#
    )
}

pub(crate) fn sign(secret: &str, timestamp: &str, body: &[u8]) -> String {
    let timestamp = Timestamp::parse(timestamp.as_bytes()).unwrap();
    Signature::sign(&Secret::new(secret).unwrap(), &timestamp, body).to_header_value()
}

/// A delivery as it goes out: a list of headers, doubled ones if need be, and a body.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    pub(crate) body: Vec<u8>,
}

impl Sent {
    /// Signed now, by the system's clock.
    pub(crate) fn new(body: impl Into<Vec<u8>>) -> Self {
        Self::at(SystemClock.now().as_i64(), body)
    }

    pub(crate) fn at(timestamp: i64, body: impl Into<Vec<u8>>) -> Self {
        Self::signed(SECRET, timestamp, body)
    }

    pub(crate) fn signed(secret: &str, timestamp: i64, body: impl Into<Vec<u8>>) -> Self {
        let (body, timestamp) = (body.into(), timestamp.to_string());
        let signature = sign(secret, &timestamp, &body);
        Self {
            method: "POST",
            path: "/hook",
            headers: Vec::new(),
            body,
        }
        .with("Content-Type", "application/json")
        .with("X-Service-Timestamp", &timestamp)
        .with("X-Service-Signature", &signature)
    }

    pub(crate) fn with(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.headers.push((name.into(), value.as_ref().to_vec()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers
            .retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self
    }

    pub(crate) fn but(self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.without(name).with(name, value)
    }

    pub(crate) fn to(mut self, path: &'static str) -> Self {
        self.path = path;
        self
    }

    pub(crate) fn by(mut self, method: &'static str) -> Self {
        self.method = method;
        self
    }

    pub(crate) fn header(&self, name: &str) -> String {
        let found = self
            .headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name));
        String::from_utf8(found.unwrap().1.clone()).unwrap()
    }

    /// For the steps without a layer.
    pub(crate) fn request_head(&self) -> RequestHead<'_> {
        RequestHead::new(
            "POST",
            self.headers.iter().map(|(name, value)| (name, value)),
        )
    }

    /// As the receiver's steps without a layer make it.
    pub(crate) fn delivered_to(&self, receiver: &Receiver) -> Delivery {
        let head = self.request_head();
        let mut received = receiver.check_head(&head).unwrap();
        received.push(self.body.clone().into()).unwrap();
        receiver.verify(received, &head).unwrap()
    }

    /// For a tower service, with any body.
    pub(crate) fn request_with<B>(&self, body: B) -> Request<B> {
        let mut request = Request::builder().method(self.method).uri(self.path);
        for (name, value) in &self.headers {
            request = request.header(name.as_str(), value.as_slice());
        }
        request.body(body).unwrap()
    }

    pub(crate) fn request(&self) -> Request<axum::body::Body> {
        self.request_with(self.body.clone().into())
    }

    /// The head as HTTP/1.1 writes it, without its last empty line.
    pub(crate) fn head(&self) -> Vec<u8> {
        let mut head = format!(
            "{} {} HTTP/1.1\r\nHost: localhost\r\n",
            self.method, self.path
        )
        .into_bytes();
        for (name, value) in &self.headers {
            head.extend_from_slice(name.as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(value);
            head.extend_from_slice(b"\r\n");
        }
        head
    }

    /// Head and body with their length.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let length = self.body.len().to_string();
        let mut bytes = self.clone().with("Content-Length", length).head();
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(&self.body);
        bytes
    }

    /// Head and body in chunks of this size.
    pub(crate) fn chunked(&self, size: usize) -> Vec<u8> {
        let mut bytes = self.clone().with("Transfer-Encoding", "chunked").head();
        bytes.extend_from_slice(b"\r\n");
        for chunk in self.body.chunks(size) {
            bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
            bytes.extend_from_slice(chunk);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"0\r\n\r\n");
        bytes
    }
}

/// An answer, whole.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Received {
    pub(crate) async fn of<B>(response: Response<B>) -> Self
    where
        B: Body<Error: std::fmt::Debug>,
    {
        let (parts, body) = response.into_parts();
        Self {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body: body.collect().await.unwrap().to_bytes(),
        }
    }

    pub(crate) fn is_replay(&self) -> bool {
        self.status == 200
            && self.body.is_empty()
            && self
                .headers
                .get("idempotent-replayed")
                .is_some_and(|value| value == "true")
    }
}

/// Sends to a router without a wire.
pub(crate) async fn ask(app: &Router, sent: &Sent) -> Received {
    ask_request(app, sent.request()).await
}

pub(crate) async fn ask_request(app: &Router, request: Request<axum::body::Body>) -> Received {
    Received::of(app.clone().oneshot(request).await.unwrap()).await
}

/// Counts runs, keeps the deliveries that they got, and holds them on demand.
#[derive(Clone)]
pub(crate) struct Probe(Arc<ProbeState>);

struct ProbeState {
    started: AtomicUsize,
    finished: AtomicUsize,
    held: AtomicBool,
    gate: Semaphore,
    seen: Mutex<Vec<Bytes>>,
}

impl Probe {
    pub(crate) fn new() -> Self {
        Self(Arc::new(ProbeState {
            started: AtomicUsize::new(0),
            finished: AtomicUsize::new(0),
            held: AtomicBool::new(false),
            gate: Semaphore::new(0),
            seen: Mutex::default(),
        }))
    }

    pub(crate) fn started(&self) -> usize {
        self.0.started.load(Ordering::SeqCst)
    }

    pub(crate) fn finished(&self) -> usize {
        self.0.finished.load(Ordering::SeqCst)
    }

    pub(crate) fn seen(&self) -> Vec<Bytes> {
        self.0.seen.lock().unwrap().clone()
    }

    /// Runs stop in the middle until they are let go.
    pub(crate) fn hold(self) -> Self {
        self.0.held.store(true, Ordering::SeqCst);
        self
    }

    pub(crate) fn let_go(&self) {
        self.0.held.store(false, Ordering::SeqCst);
        self.0.gate.add_permits(1_000);
    }

    pub(crate) async fn run(&self, body: Bytes) {
        self.0.seen.lock().unwrap().push(body);
        self.0.started.fetch_add(1, Ordering::SeqCst);
        if self.0.held.load(Ordering::SeqCst) {
            self.0.gate.acquire().await.unwrap().forget();
        }
        self.0.finished.fetch_add(1, Ordering::SeqCst);
    }
}

/// `POST /hook`, guarded, with a handler that runs the probe and answers 204.
pub(crate) fn app(receiver: &Receiver, probe: &Probe) -> Router {
    Router::new()
        .route("/hook", post(on_delivery).layer(receiver.layer()))
        .with_state(probe.clone())
}

pub(crate) async fn on_delivery(
    State(probe): State<Probe>,
    delivery: Delivery,
    body: Bytes,
) -> StatusCode {
    assert_eq!(
        *delivery.body(),
        body,
        "the body handed on is the one that was signed"
    );
    probe.run(body).await;
    StatusCode::NO_CONTENT
}

/// A route as [`app`] makes it, with its receiver and its probe.
pub(crate) struct Guarded {
    pub(crate) receiver: Receiver,
    pub(crate) probe: Probe,
    pub(crate) app: Router,
}

impl Guarded {
    pub(crate) fn by(settings: ReceiverBuilder) -> Self {
        let (receiver, probe) = (settings.build().unwrap(), Probe::new());
        let app = app(&receiver, &probe);
        Self {
            receiver,
            probe,
            app,
        }
    }

    pub(crate) async fn status(&self, sent: &Sent) -> u16 {
        ask(&self.app, sent).await.status
    }

    pub(crate) async fn replays(&self, sent: &Sent) -> bool {
        ask(&self.app, sent).await.is_replay()
    }
}

/// A folder of this test's own, gone when dropped.
pub(crate) struct Folder(pub(crate) std::path::PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let name = format!("hookgate-it-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    pub(crate) fn file(&self, name: &str) -> std::path::PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Waits until the condition holds.
pub(crate) async fn eventually(what: &str, so: impl Fn() -> bool) {
    let waiting = async {
        while !so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(
        timeout(PATIENCE, waiting).await.is_ok(),
        "never happened: {what}"
    );
}

/// A server on a free port of this machine, gone when dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    task: tokio::task::JoinHandle<()>,
}

impl Server {
    pub(crate) async fn start(app: Router) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { address, task }
    }

    pub(crate) async fn connect(&self) -> Wire {
        Wire::to(self.address).await
    }

    pub(crate) async fn status(&self, bytes: &[u8]) -> u16 {
        self.ask(bytes).await.status
    }

    /// One request on a connection of its own.
    pub(crate) async fn ask(&self, bytes: &[u8]) -> Received {
        let mut wire = self.connect().await;
        wire.send(bytes).await;
        wire.answer().await.expect("an answer")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A connection that writes any bytes, well-formed or not.
pub(crate) struct Wire {
    stream: TcpStream,
    unread: Vec<u8>,
}

impl Wire {
    pub(crate) async fn to(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream,
            unread: Vec::new(),
        }
    }

    /// The server may have answered and closed already, so a broken pipe is not a failure.
    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        let _ = timeout(PATIENCE, self.stream.write_all(bytes))
            .await
            .expect("room to write");
    }

    /// As `send`, where the server has no reason to close.
    pub(crate) async fn send_all(&mut self, bytes: &[u8]) {
        let sent = timeout(PATIENCE, self.stream.write_all(bytes)).await;
        sent.expect("room to write").expect("an open connection");
    }

    /// The next answer; `None` where the server closes without one.
    pub(crate) async fn answer(&mut self) -> Option<Received> {
        timeout(PATIENCE, self.read_answer())
            .await
            .expect("an answer or the end")
    }

    /// As `answer`, but gives up.
    pub(crate) async fn answer_within(&mut self, limit: Duration) -> Option<Received> {
        timeout(limit, self.read_answer()).await.ok().flatten()
    }

    async fn read_answer(&mut self) -> Option<Received> {
        let end = loop {
            if let Some(at) = self
                .unread
                .windows(4)
                .position(|window| window == b"\r\n\r\n")
            {
                break at + 4;
            }
            self.more().await?;
        };
        let head = String::from_utf8(self.unread.drain(..end).collect()).unwrap();
        let mut lines = head.trim_end().split("\r\n");
        let status = lines
            .next()
            .unwrap()
            .split(' ')
            .nth(1)
            .unwrap()
            .parse()
            .unwrap();
        let mut headers = HeaderMap::new();
        for line in lines {
            let (name, value) = line.split_once(": ").unwrap();
            let name: http::HeaderName = name.parse().unwrap();
            headers.append(name, value.parse().unwrap());
        }
        let length = headers
            .get("content-length")
            .map_or(0, |value| value.to_str().unwrap().parse().unwrap());
        while self.unread.len() < length {
            self.more().await?;
        }
        let body = self.unread.drain(..length).collect::<Vec<_>>().into();
        Some(Received {
            status,
            headers,
            body,
        })
    }

    async fn more(&mut self) -> Option<()> {
        match self.stream.read_buf(&mut self.unread).await {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(()),
        }
    }
}

/// A store that counts its calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct CountingStore(Arc<(MemoryStore, AtomicUsize)>);

impl CountingStore {
    pub(crate) fn calls(&self) -> usize {
        self.0.1.load(Ordering::SeqCst)
    }
}

impl StoreProxy for CountingStore {
    fn pass<'a, T: Send + Unpin + 'static>(
        &'a self,
        _: Call,
        call_inner: impl FnOnce(&'a MemoryStore) -> StoreFuture<'a, T> + Send + 'a,
    ) -> StoreFuture<'a, T> {
        self.0.1.fetch_add(1, Ordering::SeqCst);
        call_inner(&self.0.0)
    }
}

store_proxy!(CountingStore);

/// A service that nothing may reach.
#[derive(Clone, Debug)]
pub(crate) struct Never;

impl<R> tower::Service<R> for Never {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: R) -> Self::Future {
        panic!("ran");
    }
}

/// A body that counts how often it is polled, and gives its frames one a poll.
pub(crate) struct CountedBody {
    frames: std::vec::IntoIter<Result<Frame<Bytes>, &'static str>>,
    announced: u64,
    polls: Arc<AtomicUsize>,
}

impl CountedBody {
    pub(crate) fn new(frames: Vec<Result<Frame<Bytes>, &'static str>>) -> (Self, Arc<AtomicUsize>) {
        let polls = Arc::new(AtomicUsize::new(0));
        let body = Self {
            frames: frames.into_iter(),
            announced: 0,
            polls: Arc::clone(&polls),
        };
        (body, polls)
    }

    pub(crate) fn in_pieces(bytes: &[u8], size: usize) -> (Self, Arc<AtomicUsize>) {
        let frame = |piece| Ok(Frame::data(Bytes::copy_from_slice(piece)));
        Self::new(bytes.chunks(size).map(frame).collect())
    }

    pub(crate) fn announcing(mut self, bytes: u64) -> Self {
        self.announced = bytes;
        self
    }
}

impl Body for CountedBody {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
        self.polls.fetch_add(1, Ordering::SeqCst);
        Poll::Ready(self.frames.next())
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = SizeHint::new();
        hint.set_lower(self.announced);
        hint
    }
}
