//! The receiver behind a socket.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use bytes::Bytes;
use hookgate::{
    Delivery, KeyRing, MemoryStore, Receiver,
    clock::{Clock, SystemClock},
};
use hookgate_record::{LoggedAnswer, LoggedDelivery, Recorder, record_with};
use http::{Response, StatusCode};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::answers::{Answers, empty};
use super::display_queue::DisplayQueue;
use crate::fault::{Class, Fault};
use crate::printable::beginning;

pub(crate) struct Server {
    receiver: Receiver,
    ending: Arc<Notify>,
    serving: JoinHandle<()>,
}

struct Shared {
    receiver: Receiver,
    path: String,
    answers: Arc<Answers>,
    reporter: Reporter,
}

/// Reports to the display, to the page and to the recorder.
#[derive(Clone)]
pub(crate) struct Reporter {
    pub(crate) display: DisplayQueue,
    pub(crate) page: Option<DisplayQueue>,
    pub(crate) recorder: Option<Recorder>,
}

impl Reporter {
    fn report(&self, delivery: LoggedDelivery) {
        if let Some(recorder) = &self.recorder {
            recorder.record(delivery.clone());
        }
        if let Some(page) = &self.page {
            page.push(delivery.clone());
        }
        self.display.push(delivery);
    }
}

impl Server {
    /// Takes deliveries from now on.
    pub(crate) fn start(
        listener: TcpListener,
        path: &str,
        ring: KeyRing,
        answers: Answers,
        reporter: Reporter,
    ) -> Result<Self, Fault> {
        let recording = reporter.clone();
        let receiver = Receiver::builder()
            .secrets(ring)
            .store(MemoryStore::default())
            .observer(record_with(move |delivery| recording.report(delivery)))
            .build()
            .map_err(|error| {
                Fault::caused_by(
                    Class::Usage,
                    "no receiver can be built with these settings",
                    &error,
                )
            })?;
        let shared = Shared {
            receiver: receiver.clone(),
            path: path.to_owned(),
            answers: Arc::new(answers),
            reporter,
        };
        let app = Router::new().fallback(take).with_state(Arc::new(shared));
        let ending = Arc::new(Notify::new());
        let told_to_end = Arc::clone(&ending);
        let serving = tokio::spawn(async move {
            let end = async move { told_to_end.notified().await };
            // Serving ends only on request.
            let _ = axum::serve(listener, app).with_graceful_shutdown(end).await;
        });
        Ok(Self {
            receiver,
            ending,
            serving,
        })
    }

    /// Accepts no new connection, and lets running requests end, for at most `limit`.
    pub(crate) async fn stop(self, limit: Duration) {
        self.ending.notify_one();
        let _ = timeout(limit, self.serving).await;
        self.receiver.drain(limit).await;
    }
}

async fn take(State(shared): State<Arc<Shared>>, request: Request) -> Response<Body> {
    if request.uri().path() != shared.path {
        return shared.stray(&request).map(Body::from);
    }
    let headers = request.headers().clone();
    let answers = Arc::clone(&shared.answers);
    let handler = async move |delivery: Delivery| answers.answer(headers, delivery).await;
    shared
        .receiver
        .handle(request, handler)
        .await
        .map(Body::from)
}

impl Shared {
    /// A delivery to another path is the first mistake that is made, so it is shown.
    fn stray(&self, request: &Request) -> Response<Bytes> {
        // The sender of a request to another path is unknown, so its headers may hold credentials for other systems.
        let is_ours = |name: &str| {
            name.starts_with("x-service-") || ["content-type", "user-agent"].contains(&name)
        };
        let headers = request
            .headers()
            .iter()
            .filter(|(name, _)| is_ours(name.as_str()));
        let headers =
            headers.map(|(name, value)| (name.as_str(), Bytes::copy_from_slice(value.as_bytes())));
        let mut delivery = LoggedDelivery::new(SystemClock.now(), headers, "");
        delivery.body = None;
        request.method().as_str().clone_into(&mut delivery.method);
        let target = request.uri().path_and_query();
        target
            .map_or("", |target| target.as_str())
            .clone_into(&mut delivery.target);
        let mut answer = LoggedAnswer::new(404, "wrong_path");
        let reason = format!(
            "{} {}: deliveries are taken at {}",
            beginning(&delivery.method),
            beginning(&delivery.target),
            self.path
        );
        answer.reason = Some(reason);
        delivery.answer = Some(answer);
        self.reporter.report(delivery);
        empty(StatusCode::NOT_FOUND)
    }
}
