//! Every position in which a guard can stand, and the requests that pass through it.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::extract::{Extension, MatchedPath, OriginalUri, Path, Request};
use axum::middleware::{Next, from_fn};
use axum::routing::{any, get, post};
use axum::{Json, Router};
use bytes::Bytes;
use hookgate::{Delivery, Event, Properties, Receiver, Verified, layer::Answer};
use http::{Response, StatusCode};
use http_body::Frame;
use http_body_util::BodyExt;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tower::{Layer, ServiceExt, service_fn};

use crate::support::*;

// fault R9: the layer's error type fits no router
#[tokio::test]
async fn a_guard_stands_wherever_axum_takes_a_layer() {
    let unguarded = || Router::new().route("/hook", post(on_delivery));
    let probe = Probe::new();
    let with_state = |router: Router<Probe>| router.with_state(probe.clone());
    let built = || receiver().build().unwrap();
    let nested = || Router::new().nest("/in", unguarded());
    let inside = || Router::new().nest("/in", unguarded().layer(built().layer()));
    let held = || Router::new().merge(unguarded()).layer(built().layer());
    for (place, app) in [
        ("a method router", app(&built(), &probe)),
        ("a router", with_state(unguarded().layer(built().layer()))),
        (
            "its routes",
            with_state(unguarded().route_layer(built().layer())),
        ),
        ("a router that holds it", with_state(held())),
        ("a nested one", with_state(inside())),
        (
            "around a nested one",
            with_state(nested().layer(built().layer())),
        ),
    ] {
        let path = if place.contains("nested") {
            "/in/hook"
        } else {
            "/hook"
        };
        let sent = Sent::new(event("evt_1")).to(path);
        let unsigned = sent.clone().without("X-Service-Signature");
        assert_eq!(ask(&app, &unsigned).await.status, 401, "{place}");
        let method = ask(&app, &sent.clone().by("GET")).await;
        assert_eq!(method.status, 405, "{place}");
        assert!(
            method.headers.get_all("allow").iter().eq(["POST"]),
            "{place}"
        );
        assert_eq!(ask(&app, &sent).await.status, 204, "{place}");
        assert!(ask(&app, &sent).await.is_replay(), "{place}");
    }
    assert_eq!(probe.started(), 6);
}

#[tokio::test]
async fn an_unknown_path_reveals_nothing_behind_a_guarded_router() {
    let built = receiver().build().unwrap();
    let probe = Probe::new();
    let route = || Router::new().route("/hook", post(on_delivery));
    let guarded = route().layer(built.layer()).with_state(probe.clone());
    let elsewhere = Sent::new(event("evt_1")).to("/elsewhere");
    let unsigned = elsewhere.clone().without("X-Service-Signature");
    assert_eq!(ask(&guarded, &unsigned).await.status, 401);
    assert_eq!(ask(&guarded, &elsewhere).await.status, 404);
    let again = ask(&guarded, &elsewhere.to("/hook")).await;
    assert_eq!(again.status, 204, "the 404 has released its event");
    // `route_layer` guards routes alone, so axum answers paths without a route.
    let routes = route().route_layer(built.layer()).with_state(probe.clone());
    assert_eq!(ask(&routes, &unsigned).await.status, 404);
    assert_eq!(probe.started(), 1);
}

// fault S15: handlers can't tell a verified request
#[tokio::test]
async fn what_outer_layers_put_in_reaches_the_handler() {
    async fn handler(
        Path(tenant): Path<String>,
        OriginalUri(uri): OriginalUri,
        matched: MatchedPath,
        Extension(from_outside): Extension<&'static str>,
        delivery: Delivery,
        verified: Verified,
    ) -> String {
        assert_eq!(delivery.body(), verified.body());
        let (matched, id) = (matched.as_str(), delivery.event_id());
        format!("{tenant} {uri} {matched} {from_outside} {id}")
    }
    let receiver = receiver().build().unwrap();
    let inner = Router::new().route("/{tenant}/hook", post(handler).layer(receiver.layer()));
    let app: Router = Router::new().nest("/in", inner).layer(Extension("outside"));
    let answer = ask(&app, &Sent::new(event("evt_1")).to("/in/acme/hook?a=b")).await;
    assert_eq!(
        answer.body,
        "acme /in/acme/hook?a=b /in/{tenant}/hook outside evt_1"
    );
}

#[tokio::test]
async fn the_answers_reason_is_there_for_outer_layers() {
    let receiver = receiver().build().unwrap();
    let app = app(&receiver, &Probe::new()).layer(from_fn(|request: Request, next: Next| async {
        let mut response = next.run(request).await;
        let answer: &Answer = response.extensions().get().unwrap();
        let name = answer.outcome.name().parse().unwrap();
        response.headers_mut().insert("x-outcome", name);
        response
    }));
    let sent = Sent::new(event("evt_1"));
    for (sent, name) in [
        (sent.clone().without("X-Service-Signature"), "not_authentic"),
        (sent.clone(), "handled"),
        (sent.clone(), "replayed"),
        (sent.by("GET"), "method_not_allowed"),
    ] {
        assert_eq!(ask(&app, &sent).await.headers["x-outcome"], name);
    }
}

// fault S8: one mismatch and the raw payload is gone
#[tokio::test]
async fn body_extractors_behind_the_event_get_the_exact_bytes() {
    let receiver = Receiver::builder().secret(secret());
    let receiver = receiver.without_deduplication().build().unwrap();
    let spaced = event("evt_1").replace("\":", "\" :\t");
    let length = spaced.len();
    let bytes = async move |event: Event<Properties>, body: Bytes| {
        assert_eq!((event.id.as_str(), body.len()), ("evt_1", length));
        body
    };
    let json = async |delivery: Delivery, Json(json): Json<serde_json::Value>| {
        assert_eq!(json["id"], delivery.event_id());
        delivery.body().clone()
    };
    let app: Router = Router::new()
        .route("/bytes", post(bytes))
        .route("/json", post(json))
        .route("/text", post(async |_: Verified, text: String| text))
        .layer(receiver.layer());
    for path in ["/bytes", "/json", "/text"] {
        let answer = ask(&app, &Sent::new(spaced.clone()).to(path)).await;
        let whole = Bytes::from(spaced.clone());
        assert_eq!((answer.status, answer.body), (200, whole), "{path}");
    }
}

// fault S7: no limit, text only, one body type
#[tokio::test]
async fn a_whole_mebibyte_comes_out_as_it_went_in() {
    let receiver = receiver().build().unwrap();
    let probe = Probe::new();
    let server = Server::start(app(&receiver, &probe)).await;
    let letter = |at: u32| u8::try_from(at.wrapping_mul(2_654_435_761) >> 28).unwrap();
    let noise: String = (0..1 << 20)
        .map(|at| char::from(b'a' + letter(at)))
        .collect();
    let head = r#"{"id":"evt_1","type":"page.created","data":""#;
    let body = format!("{head}{}\"}}", &noise[..(1 << 20) - head.len() - 2]);
    assert_eq!(body.len(), 1 << 20);
    let chunked = body.replacen("evt_1", "evt_2", 1);
    let whole = Sent::new(body.clone()).bytes();
    for bytes in [whole, Sent::new(chunked.clone()).chunked(4_093)] {
        assert_eq!(server.status(&bytes).await, 204);
    }
    assert!(probe.seen() == [body, chunked], "other bytes came out");
}

// fault R13: bodies must be text; an empty secret is accepted
// fault S7: no limit, text only, one body type
#[tokio::test]
async fn bytes_that_are_no_text_are_signed_and_kept_like_any_other() {
    let receiver = receiver().build().unwrap();
    let probe = Probe::new();
    let mut body = br#"{"id":"evt_1","type":"page.created","data":""#.to_vec();
    body.extend([0xff, 0xfe, 0x00, 0x80]);
    body.extend(b"\"}");
    // Id and type can be read; a handler that takes the bytes alone gets them.
    let answer = ask(&app(&receiver, &probe), &Sent::new(body.clone())).await;
    assert_eq!(answer.status, 204);
    assert_eq!(probe.seen(), [body]);
}

#[tokio::test]
async fn a_streamed_answer_passes_frame_by_frame() {
    let receiver = receiver().build().unwrap();
    let (send, receive) = tokio::sync::mpsc::unbounded_channel::<Bytes>();
    let receive = std::sync::Arc::new(std::sync::Mutex::new(Some(receive)));
    let handler = move || {
        let receive = receive.lock().unwrap().take().unwrap();
        async move { Response::new(Body::new(Channelled(receive))) }
    };
    let app: Router = Router::new().route("/hook", post(handler).layer(receiver.layer()));
    let answer = app.oneshot(Sent::new(event("evt_1")).request()).await;
    let answer = answer.unwrap();
    assert_eq!(answer.status(), 200);
    let mut body = answer.into_body();
    for chunk in ["one", "two"] {
        send.send(chunk.into()).unwrap();
        let frame = tokio::time::timeout(PATIENCE, body.frame()).await;
        let frame = frame.unwrap().unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), chunk);
    }
    drop(send);
    assert!(body.frame().await.is_none());
}

/// A body whose pieces come from a channel.
struct Channelled(tokio::sync::mpsc::UnboundedReceiver<Bytes>);

impl http_body::Body for Channelled {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0
            .poll_recv(context)
            .map(|chunk| chunk.map(|chunk| Ok(Frame::data(chunk))))
    }
}

// fault S1: an extractor that verifies nothing
// fault S15: handlers can't tell a verified request
#[tokio::test]
async fn an_extractor_without_its_layer_names_the_line_to_add() {
    let probe = Probe::new();
    let optional = async |delivery: Option<Delivery>| delivery.is_none().to_string();
    let app = Router::new()
        .route("/event", post(async |_: Event<Properties>| StatusCode::OK))
        .route("/delivery", post(async |_: Delivery| StatusCode::OK))
        .route("/verified", any(async |_: Verified| StatusCode::OK))
        .route("/hook", post(on_delivery))
        .route("/optional", get(optional))
        .with_state(probe.clone());
    let sent = Sent::new(event("evt_1"));
    for path in ["/event", "/delivery", "/verified", "/hook"] {
        let answer = ask(&app, &sent.clone().to(path)).await;
        assert_eq!(answer.status, 500, "{path}");
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(text.contains(".layer(receiver.layer())"), "{path}: {text}");
        let parsed: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(parsed["error"]["code"], "INTERNAL_ERROR");
    }
    let optional = ask(&app, &sent.by("GET").to("/optional")).await;
    assert_eq!(optional.body, "true");
    assert_eq!(probe.started(), 0);
}

// fault S7: no limit, text only, one body type
#[tokio::test]
async fn plain_hyper_needs_no_axum() {
    let receiver = receiver().build().unwrap();
    let guarded = receiver.layer().layer(service_fn(
        |request: http::Request<hookgate::layer::VerifiedBody>| async {
            let delivery = request.extensions().get::<Delivery>().unwrap().clone();
            let body = request.into_body().collect().await.unwrap().to_bytes();
            let text = format!("{} {}", delivery.event_id(), body.len());
            let answer = http_body_util::Full::new(Bytes::from(text));
            Ok::<_, Infallible>(Response::new(answer))
        },
    ));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let service = TowerToHyperService::new(guarded.clone());
            tokio::spawn(async move {
                let server = auto::Builder::new(TokioExecutor::new());
                let _ = server.serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
    let sent = Sent::new(event("evt_1"));
    let mut wire = Wire::to(address).await;
    wire.send(&sent.clone().without("X-Service-Timestamp").bytes())
        .await;
    assert_eq!(wire.answer().await.unwrap().status, 401);
    let mut wire = Wire::to(address).await;
    wire.send(&sent.chunked(30)).await;
    let answer = wire.answer().await.unwrap();
    assert_eq!(answer.body, format!("evt_1 {}", sent.body.len()));
    wire.send(&sent.bytes()).await;
    assert!(wire.answer().await.unwrap().is_replay());
    serving.abort();
}
