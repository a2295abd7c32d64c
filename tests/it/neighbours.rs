//! Foreign layers and bodies, around the layer and behind it.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::DefaultBodyLimit;
use axum::routing::{MethodRouter, post};
use axum::{Json, Router};
use bytes::{Buf, Bytes};
use hookgate::layer::VerifiedBody;
use hookgate::{Delivery, Event, EventRouter, Outcome, Receiver, sink::Accepted};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use tokio::time::sleep;
use tower::{ServiceBuilder, ServiceExt, service_fn};
use tower_http::cors::CorsLayer;
use tower_http::timeout::TimeoutLayer;

use crate::faulty::FixedSink;
use crate::harness::{self, Harness, OK, in_turn, pass};
use crate::support::{NOW, Received, Sent, ask, manual, receiver, secret};

const MIB: usize = 1 << 20;

/// A signed event of exactly this many bytes.
fn event_of(bytes: usize) -> Sent {
    const HEAD: &str = r#"{"id":"evt_1","type":"page.created","createdAt":"2026-11-21T09:30:00Z","workspaceId":"ws_1","data":{"text":""#;
    const TAIL: &str = r#""}}"#;
    let text = "x".repeat(bytes - HEAD.len() - TAIL.len());
    Sent::at(NOW, format!("{HEAD}{text}{TAIL}"))
}

/// One receiver for each route, so that no event is a duplicate.
fn large() -> Receiver {
    let builder = receiver().clock(manual()).max_body(8 * MIB);
    builder.build().unwrap()
}

fn status(whole: bool) -> StatusCode {
    if whole { OK } else { StatusCode::IM_A_TEAPOT }
}

async fn bytes(delivery: Delivery, body: Bytes) -> StatusCode {
    status(body == *delivery.body())
}

async fn text(delivery: Delivery, body: String) -> StatusCode {
    status(body.as_bytes() == *delivery.body())
}

#[derive(serde::Deserialize)]
struct IdentifiedBody {
    id: String,
}

async fn json(delivery: Delivery, Json(body): Json<IdentifiedBody>) -> StatusCode {
    status(body.id == delivery.event_id())
}

async fn typed(event: Event, body: Bytes) -> StatusCode {
    status(!event.id.as_str().is_empty() && !body.is_empty())
}

// fault F10d: axum's own limit of bodies refuses, at each retry, what `max_body` allows
#[tokio::test]
async fn a_body_up_to_the_receivers_own_limit_reaches_every_extractor() {
    let arms = EventRouter::new().on("page.created", bytes);
    let handlers: [(&str, MethodRouter); 5] = [
        ("Bytes", post(bytes)),
        ("String", post(text)),
        ("Json", post(json)),
        ("Event", post(typed)),
        ("EventRouter", arms.build().unwrap()),
    ];
    for (name, handler) in handlers {
        for size in [3 * MIB, 8 * MIB] {
            let sent = event_of(size);
            let on_the_route = handler.clone().layer(large().layer());
            let on_the_route: Router = Router::new().route("/hook", on_the_route);
            let around = Router::new()
                .route("/hook", handler.clone())
                .layer(large().layer());
            for (app, place) in [
                (on_the_route, "on the route"),
                (around, "around the router"),
            ] {
                let got = ask(&app, &sent).await;
                assert_eq!(got.status, 204, "{name} {place}, {size} bytes");
            }
        }
    }
    // One byte more is refused by the receiver.
    let app = Router::new().route("/hook", post(bytes).layer(large().layer()));
    assert_eq!(ask(&app, &event_of(8 * MIB + 1)).await.status, 413);
}

// fault F10d: axum's own limit of bodies refuses, at each retry, what `max_body` allows
#[tokio::test]
async fn a_body_limit_outside_the_layer_is_replaced_and_one_inside_stays() {
    let small = || DefaultBodyLimit::max(2_048);
    let sent = event_of(2_049);
    let outside = Router::new()
        .route("/hook", post(bytes).layer(large().layer()))
        .layer(small());
    assert_eq!(ask(&outside, &sent).await.status, 204);
    let limited: MethodRouter = post(bytes).layer(small());
    let inside = Router::new().route("/hook", limited.layer(large().layer()));
    assert_eq!(ask(&inside, &sent).await.status, 413);
    // Nor does it give way where nothing is guarded.
    let other = Router::new()
        .route("/other", post(async |_: Bytes| OK))
        .route("/hook", post(bytes).layer(large().layer()))
        .layer(small());
    let request = Request::post("/other").body(axum::body::Body::from(vec![0; 2_049]));
    let answer = other.oneshot(request.unwrap()).await.unwrap();
    assert_eq!(Received::of(answer).await.status, 413);
}

#[cfg(all(feature = "inbox", feature = "testing"))]
// fault F10d: axum's own limit of bodies refuses, at each retry, what `max_body` allows
#[tokio::test]
async fn a_large_body_reaches_the_handler_of_an_inboxs_workers() {
    use hookgate::sink::Sink;

    const RETAIN: Duration = Duration::from_secs(48 * 3_600);
    let folder = crate::support::Folder::new("large");
    let inbox = hookgate_sqlite::open_inbox(folder.file("inbox.db")).unwrap();
    let body = String::from_utf8(event_of(3 * MIB).body).unwrap();
    let delivery = hookgate_testing::delivery(&body).unwrap();
    inbox.accept(&delivery, RETAIN).await.unwrap();
    let (told, mut outcomes) = tokio::sync::mpsc::unbounded_channel();
    let running = hookgate_inbox::Workers::new(&inbox)
        .on_settled(move |tried| told.send(tried.outcome).unwrap())
        .start(post(bytes))
        .unwrap();
    assert_eq!(outcomes.recv().await, Some(Outcome::Handled));
    running.shutdown(RETAIN).await;
    inbox.close().await;
}

/// The answers of the outer layers, and the requests that pass through them, for a handler that
/// takes 3 s of the time-out's 2 s the first time.
async fn goes_through_time_out_and_cors<S, B>(harness: &Harness, service: S)
where
    S: tower::Service<Request<axum::body::Body>, Response = Response<B>, Error = Infallible>
        + Clone,
    B: Body<Error: std::fmt::Debug>,
{
    let sent = harness::Sent::event("evt_1");
    let ask = async |request| Received::of(service.clone().oneshot(request).await.unwrap()).await;
    let preflight = Request::options("/webhooks")
        .header("origin", "https://example.com")
        .header("access-control-request-method", "POST");
    let preflight = ask(preflight.body(axum::body::Body::empty()).unwrap()).await;
    assert_eq!((preflight.status, preflight.body.len()), (200, 0));
    assert!(
        preflight
            .headers
            .contains_key("access-control-allow-origin")
    );
    // The time-out answers, and the run continues.
    let late = ask(sent.request(&harness.clock)).await;
    assert_eq!((late.status, late.body.len()), (504, 0));
    pass(2_000).await;
    assert_eq!(harness.told.settled(), [Outcome::Handled]);
    let copy = ask(sent.request(&harness.clock)).await;
    assert!(copy.is_replay(), "{copy:?}");
    let other = ask(harness::Sent::event("evt_2").request(&harness.clock)).await;
    assert_eq!((other.status, &*other.body), (200, &b"thanks"[..]));
    assert!(other.headers.contains_key("access-control-allow-origin"));
}

async fn handles(delivery: Delivery) -> &'static str {
    if delivery.event_id() == "evt_1" {
        sleep(Duration::from_secs(3)).await;
    }
    "thanks"
}

// fault F4: a time-out or CORS layer outside does not compile; a response body whose data are no `Bytes` is not taken
#[tokio::test(start_paused = true)]
async fn layers_outside_that_answer_with_a_body_of_their_own_fit() {
    let idle = || Harness::of(in_turn(&[418]));
    let time_out =
        || TimeoutLayer::with_status_code(StatusCode::GATEWAY_TIMEOUT, Duration::from_secs(2));
    // Over plain tower: the body has no default of its own.
    let harness = idle();
    let service = ServiceBuilder::new()
        .layer(time_out())
        .layer(CorsLayer::permissive())
        .layer(harness.receiver.layer())
        .service(service_fn(async |request: Request<VerifiedBody>| {
            let delivery = request.extensions().get::<Delivery>().unwrap().clone();
            let pieces = Pieces::of(handles(delivery).await.as_bytes());
            Ok::<_, Infallible>(Response::new(Full::new(pieces)))
        }));
    goes_through_time_out_and_cors(&harness, service).await;
    // Over axum.
    let harness = idle();
    let layers = ServiceBuilder::new()
        .layer(time_out())
        .layer(CorsLayer::permissive())
        .layer(harness.receiver.layer());
    let app = Router::new()
        .route("/webhooks", post(handles))
        .layer(layers);
    goes_through_time_out_and_cors(&harness, app).await;
}

/// A frame's data in two pieces, which are no `Bytes`.
#[derive(Clone, Debug)]
struct Pieces([Vec<u8>; 2], usize);

impl Pieces {
    fn of(bytes: &[u8]) -> Self {
        let (first, second) = bytes.split_at(bytes.len() / 2);
        Self([first.to_vec(), second.to_vec()], 0)
    }
}

impl Buf for Pieces {
    fn remaining(&self) -> usize {
        self.0[0].len() + self.0[1].len() - self.1
    }

    fn chunk(&self) -> &[u8] {
        let first = &self.0[0];
        first
            .get(self.1..)
            .filter(|rest| !rest.is_empty())
            .unwrap_or_else(|| &self.0[1][self.1 - first.len()..])
    }

    fn advance(&mut self, count: usize) {
        assert!(count <= self.remaining());
        self.1 += count;
    }
}

// fault F4: a time-out or CORS layer outside does not compile; a response body whose data are no `Bytes` is not taken
#[tokio::test]
async fn bodies_whose_data_are_no_bytes_go_in_and_out() {
    let sent = event_of(2_000);
    let request = || sent.request_with(Full::new(Pieces::of(&sent.body)));
    // Through the layer, with trailers behind it.
    let handler = service_fn(async |request: Request<VerifiedBody>| {
        let signed = request.extensions().get::<Delivery>().unwrap().clone();
        let whole = request.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(whole, signed.body());
        let trailers = HeaderMap::from_iter([("x-done".parse().unwrap(), HeaderValue::from(1))]);
        let trailers = std::future::ready(Some(Ok(trailers)));
        let body = Full::new(Pieces::of(&whole)).with_trailers(trailers);
        Ok::<_, Infallible>(Response::new(body))
    });
    let service = ServiceBuilder::new()
        .layer(large().layer())
        .service(handler);
    let answer = service.oneshot(request()).await.unwrap();
    assert_eq!(answer.body().size_hint().exact(), Some(2_000));
    assert!(!answer.body().is_end_stream());
    // A body that axum takes.
    let body = axum::body::Body::new(answer.into_body());
    let whole = body.collect().await.unwrap();
    assert_eq!(whole.trailers().unwrap()["x-done"], "1");
    assert_eq!(whole.to_bytes(), sent.body);
    // As one call, and into a sink.
    let answer = large().handle(request(), async |delivery: Delivery| {
        (StatusCode::OK, delivery.body().clone())
    });
    assert_eq!(answer.await.into_body(), sent.body);
    let builder = Receiver::builder().secret(secret()).clock(manual());
    let acceptor = builder.accept_into(FixedSink(Ok(Accepted::New))).unwrap();
    assert_eq!(acceptor.handle(request()).await.status(), 200);
    assert_eq!(acceptor.oneshot(request()).await.unwrap().status(), 200);
}

// fault F4: a time-out or CORS layer outside does not compile; a response body whose data are no `Bytes` is not taken
#[tokio::test]
async fn bytes_of_an_answer_are_handed_on_uncopied() {
    let bytes = Bytes::from(vec![b'x'; 5_000]);
    let answered = bytes.clone();
    let service = ServiceBuilder::new()
        .layer(large().layer())
        .service(service_fn(move |_: Request<VerifiedBody>| {
            let response = Response::new(Full::new(answered.clone()));
            async { Ok::<_, Infallible>(response) }
        }));
    let sent = event_of(2_000);
    let answer = service.oneshot(sent.request()).await.unwrap();
    let frame = answer.into_body().frame().await.unwrap().unwrap();
    let data = frame.into_data().unwrap();
    assert_eq!((data.as_ptr(), data.len()), (bytes.as_ptr(), bytes.len()));
}
