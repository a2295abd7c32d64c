//! The receiver behind a socket.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hookgate::{
    Delivery, MemoryStore, Outcome, Receiver,
    clock::{Clock, SystemClock},
    layer::{ObservedRequest, RequestObserver},
    lookup::Keys,
};
use hookgate_record::{LoggedAnswer, LoggedDelivery, Recorder, record_with};
use hookgate_testing::log::LoggedDeliveryExt;
use http::request::Parts;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::answers::Answers;
use super::answers::empty;
use super::filter::EventTypes;
use super::lines::DisplayQueue;
use crate::fault::{Class, Fault, note};
use crate::printable::{beginning, printable};

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
    /// Events of other types are recorded, and not shown.
    pub(crate) events: EventTypes,
    pub(crate) display: DisplayQueue,
    pub(crate) page: Option<DisplayQueue>,
    pub(crate) recorder: Option<Recorder>,
}

impl Reporter {
    fn report(&self, delivery: LoggedDelivery) {
        if let Some(recorder) = &self.recorder {
            recorder.record(delivery.clone());
        }
        self.show(delivery);
    }

    /// Shows what the handler answered after the sender had got its 503. The log has the answers
    /// that were sent, and not this one.
    fn show_late(
        &self,
        mut delivery: LoggedDelivery,
        response: &Response<Bytes>,
        elapsed: Duration,
    ) {
        let status = response.status();
        let outcome = match status.is_success() {
            true => "handled",
            false => "handler_status",
        };
        let mut answer = LoggedAnswer::new(status.as_u16(), outcome);
        answer.reason = Some("late: the sender had got 503 before".to_owned());
        if let Some(sent) = delivery.answer.take() {
            (answer.key, answer.scope, answer.attempt) = (sent.key, sent.scope, sent.attempt);
        }
        answer.elapsed = elapsed;
        answer.keep_response(response);
        delivery.answer = Some(answer);
        self.show(delivery);
    }

    fn show(&self, delivery: LoggedDelivery) {
        if !self.events.show(&delivery) {
            if self.events.leave_out() {
                let event_type = delivery.event_type().unwrap_or_default();
                note(&format!(
                    "{} is none of --events: answered 204, and neither passed on nor shown",
                    printable(&beginning(&event_type)),
                ));
            }
            return;
        }
        if let Some(page) = &self.page {
            page.push(delivery.clone());
        }
        self.display.push(delivery);
    }
}

/// The response of the handler, for the report of the same request.
#[derive(Clone)]
struct Responded {
    started: Instant,
    both: Arc<Mutex<Both>>,
}

#[derive(Default)]
struct Both {
    response: Option<Response<Bytes>>,
    /// The report, where the sender got its answer before.
    runs_on: Option<LoggedDelivery>,
}

impl Responded {
    fn new() -> Self {
        Self {
            started: Instant::now(),
            both: Arc::default(),
        }
    }

    fn both(&self) -> MutexGuard<'_, Both> {
        self.both.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows the late answer, once response and report are there.
    fn show_late(&self, reporter: &Reporter) {
        let mut both = self.both();
        let Some(response) = both.response.clone() else {
            return;
        };
        let late = both.runs_on.take();
        drop(both);
        if let Some(delivery) = late {
            reporter.show_late(delivery, &response, self.started.elapsed());
        }
    }
}

impl RequestObserver for Reporter {
    fn begin(&self, head: &Parts, clock: &dyn Clock) -> Option<Box<dyn ObservedRequest>> {
        let reporter = self.clone();
        let responded = head.extensions.get::<Responded>().cloned();
        let observer = record_with(move |mut delivery| {
            let Some(responded) = &responded else {
                return reporter.report(delivery);
            };
            let mut both = responded.both();
            if let Some(answer) = &mut delivery.answer {
                if answer.outcome == Outcome::RunsOn.name() {
                    both.runs_on = Some(delivery.clone());
                } else if let Some(response) = &both.response
                    && answer.status == response.status().as_u16()
                {
                    answer.keep_response(response);
                }
            }
            drop(both);
            reporter.report(delivery);
            responded.show_late(&reporter);
        });
        observer.begin(head, clock)
    }
}

impl Server {
    /// Takes deliveries from now on.
    pub(crate) fn start(
        listener: TcpListener,
        path: &str,
        keys: Keys,
        answers: Answers,
        reporter: Reporter,
    ) -> Result<Self, Fault> {
        let receiver = Receiver::builder()
            .keys(keys)
            .store(MemoryStore::default())
            .observer(reporter.clone())
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
        let ending = Arc::new(Notify::new());
        let serving = tokio::spawn(serve(listener, Arc::new(shared), Arc::clone(&ending)));
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

/// Takes connections until it is told to end, then lets their requests end.
async fn serve(listener: TcpListener, shared: Arc<Shared>, ending: Arc<Notify>) {
    /// Until a file handle may be free again.
    const PAUSE: Duration = Duration::from_secs(1);
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new());
    let connections = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = ending.notified() => break,
        };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let shared = Arc::clone(&shared);
        let service = service_fn(move |request| take(Arc::clone(&shared), request));
        let connection = http.serve_connection(TokioIo::new(stream), service);
        tokio::spawn(connections.watch(connection));
    }
    drop(listener);
    connections.shutdown().await;
}

async fn take(
    shared: Arc<Shared>,
    mut request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    if request.uri().path() != shared.path {
        return Ok(shared.stray(&request).map(Full::new));
    }
    let headers = request.headers().clone();
    let answers = Arc::clone(&shared.answers);
    let responded = Responded::new();
    request.extensions_mut().insert(responded.clone());
    let reporter = shared.reporter.clone();
    let handler = async move |delivery: Delivery| {
        let response = answers.answer(headers, delivery).await;
        responded.both().response = Some(response.clone());
        responded.show_late(&reporter);
        response
    };
    let response = shared.receiver.handle(request, handler).await;
    Ok(response.map(Full::new))
}

impl Shared {
    /// A delivery to another path is the first mistake that is made, so it is shown.
    fn stray(&self, request: &Request<Incoming>) -> Response<Bytes> {
        // The sender of a request to another path is unknown, so its headers may hold credentials
        // for other systems.
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
