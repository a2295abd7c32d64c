//! The memory that unfinished bodies hold: never more than the budget, whichever senders they come
//! from. A body in pieces that finds it full is refused, one in a single piece is not, and each
//! body's deadline frees its own.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body as AxumBody;
use bytes::Bytes;
use hookgate::{ConfigErrorKind, Receiver};
use http_body::{Body, Frame};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusRecorder};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, yield_now};
use tower::ServiceExt;

use crate::http2::{ask_h2, connect, head};
use crate::support::*;

const MIB: usize = 1 << 20;

/// The bytes that bodies hold, as the receiver reports them.
fn held(receiver: &Receiver) -> usize {
    let recorder: PrometheusRecorder = PrometheusBuilder::new().build_recorder();
    metrics::with_local_recorder(&recorder, || receiver.record_metrics());
    let text = recorder.handle().render();
    let line = text
        .lines()
        .find(|line| line.starts_with("hookgate_body_bytes{"))
        .unwrap();
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

/// A body that is handed over piece by piece.
struct ChannelBody(mpsc::UnboundedReceiver<Bytes>);

impl Body for ChannelBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.0.poll_recv(context);
        piece.map(|piece| piece.map(|bytes| Ok(Frame::data(bytes))))
    }
}

/// A delivery whose body is under way.
struct Sending {
    pieces: Option<mpsc::UnboundedSender<Bytes>>,
    body: Bytes,
    sent: usize,
    answer: JoinHandle<Received>,
}

impl Sending {
    fn begin(app: &Router, id: &str, length: usize) -> Self {
        let mut body = event(id);
        body.push_str(&" ".repeat(length.saturating_sub(body.len())));
        let sent = Sent::at(NOW, body);
        let (pieces, fed) = mpsc::unbounded_channel();
        let request = sent.request_with(AxumBody::new(ChannelBody(fed)));
        let app = app.clone();
        Self {
            pieces: Some(pieces),
            body: sent.body.into(),
            sent: 0,
            answer: tokio::spawn(
                async move { Received::of(app.oneshot(request).await.unwrap()).await },
            ),
        }
    }

    /// Sends so many more bytes. The test's runtime has one thread, so they are read before this is
    /// over.
    async fn send(&mut self, bytes: usize) {
        let end = (self.sent + bytes).min(self.body.len());
        let piece = self.body.slice(self.sent..end);
        let _ = self.pieces.as_ref().unwrap().send(piece);
        self.sent = end;
        settle().await;
    }

    async fn finish(mut self) -> Received {
        self.send(usize::MAX / 2).await;
        self.pieces = None;
        self.answer.await.unwrap()
    }
}

/// Lets all tasks run that can.
async fn settle() {
    for _ in 0..20 {
        yield_now().await;
    }
}

fn with_budget(bytes: usize) -> (Receiver, Router) {
    let receiver = receiver().clock(manual()).body_budget(bytes);
    let receiver = receiver.build().unwrap();
    let app = app(&receiver, &Probe::new());
    (receiver, app)
}

// fault F12: unauthenticated bodies under way have no common bound
#[tokio::test(start_paused = true)]
async fn two_hundred_unfinished_mebibytes_hold_no_more_than_the_budget() {
    let (receiver, app) = with_budget(8 * MIB);
    let mut sending: Vec<_> = (0..200)
        .map(|number| Sending::begin(&app, &format!("evt_{number}"), MIB))
        .collect();
    let mut most = 0;
    for round in 0..15 {
        for (number, body) in sending.iter_mut().enumerate() {
            body.send(64 << 10).await;
            most = most.max(held(&receiver));
            assert!(held(&receiver) <= 8 * MIB, "{} bytes", held(&receiver));
            if number % 50 == 0 {
                let small = Sent::at(NOW, event(&format!("evt_small_{round}_{number}")));
                assert_eq!(ask(&app, &small).await.status, 204);
            }
        }
    }
    assert!(most > 7 * MIB, "only {most} bytes were used");
    let mut ended = 0;
    for body in sending {
        let answer = body.finish().await;
        if answer.status == 503 {
            assert!(answer.headers.contains_key("retry-after"));
            ended += 1;
        } else {
            assert_eq!(answer.status, 204);
        }
    }
    assert!((190..200).contains(&ended), "{ended}");
    assert_eq!(held(&receiver), 0);
}

// fault F12: unauthenticated bodies under way have no common bound
#[tokio::test]
async fn two_hundred_streams_of_one_connection_hold_no_more_than_the_budget() {
    let receiver = receiver()
        .body_budget(2 * MIB)
        .body_deadline(Duration::from_millis(4_400));
    let receiver = receiver.build().unwrap();
    let server = Server::start(app(&receiver, &Probe::new())).await;
    let mut client = connect(&server).await;
    let unfinished = Bytes::from(vec![b'x'; MIB - 1]);
    let mut streams = Vec::new();
    // As many as the server takes at a time, but for one.
    for number in 1..200 {
        let sent = Sent::new(event(&format!("evt_{number}")));
        client = client.ready().await.unwrap();
        let (answer, mut body) = client.send_request(head(&sent, &server), false).unwrap();
        body.send_data(unfinished.clone(), false).unwrap();
        streams.push((answer, body));
        assert!(held(&receiver) <= 2 * MIB);
    }
    let small = Sent::new(event("evt_small"));
    assert_eq!(ask_h2(&mut client, &small, &server).await.status, 204);
    let mut ended = 0;
    for (answer, _body) in streams {
        let status = answer.await.unwrap().status().as_u16();
        assert!(held(&receiver) <= 2 * MIB);
        assert!([408, 503].contains(&status), "{status}");
        ended += usize::from(status == 503);
    }
    assert!(ended > 0);
    eventually("all is given back", || held(&receiver) == 0).await;
}

// fault F12: unauthenticated bodies under way have no common bound
#[tokio::test(start_paused = true)]
async fn a_body_that_finds_the_budget_full_is_refused_and_no_other_is() {
    let (receiver, app) = with_budget(2 * MIB);
    let mut first = Sending::begin(&app, "evt_1", MIB);
    first.send(700_000).await;
    let mut second = Sending::begin(&app, "evt_2", 400_000);
    second.send(300_000).await;
    assert_eq!(held(&receiver), MIB + (512 << 10));
    let mut third = Sending::begin(&app, "evt_3", MIB);
    third.send(500_000).await;
    assert_eq!(held(&receiver), 2 * MIB);
    // Its buffer would have to grow.
    third.send(100_000).await;
    assert_eq!(held(&receiver), MIB + (512 << 10));
    let refused = third.finish().await;
    assert_eq!(refused.status, 503);
    assert!(refused.headers.contains_key("retry-after"));
    for body in [first, second] {
        assert_eq!(body.finish().await.status, 204);
    }
    assert_eq!(held(&receiver), 0);
}

/// The sentence of SECURITY.md on clients that hold bodies back.
// fault F12: unauthenticated bodies under way have no common bound
#[tokio::test(start_paused = true)]
async fn held_back_bodies_stop_deliveries_in_pieces_for_one_deadline() {
    let (receiver, app) = with_budget(64 * MIB); // the default
    let deadline = Duration::from_secs(2); // the default
    let hold_back = async |number: usize| {
        let mut body = Sending::begin(&app, &format!("evt_held_{number}"), MIB);
        body.send(33 << 10).await;
        body
    };
    let in_pieces = async |id: &str| {
        let mut body = Sending::begin(&app, id, 900_000);
        body.send(450_000).await;
        body.finish().await.status
    };
    // Two waves: the second takes the place of the first when the deadline has freed it.
    for wave in 0..2 {
        let mut attack = Vec::new();
        for number in 0..1_100 {
            attack.push(hold_back(wave * 1_100 + number).await);
        }
        assert_eq!(held(&receiver), 64 * MIB);
        for number in 0..12 {
            let id = format!("evt_{wave}_{number}");
            assert_eq!(in_pieces(&id).await, 503);
            let whole = ask(&app, &Sent::at(NOW, event(&id))).await;
            assert_eq!(whole.status, 204, "a delivery in one piece passes");
        }
        tokio::time::sleep(deadline).await;
        settle().await;
        assert_eq!(held(&receiver), 0);
    }
    for number in 0..12 {
        assert_eq!(in_pieces(&format!("evt_after_{number}")).await, 204);
    }
    // 64 bodies of nearly 1 MiB do the same.
    let mut attack = Vec::new();
    for number in 0..64 {
        let mut body = Sending::begin(&app, &format!("evt_large_{number}"), MIB);
        body.send(MIB - 1).await;
        attack.push(body);
    }
    assert_eq!(held(&receiver), 64 * MIB);
    assert_eq!(in_pieces("evt_beside").await, 503);
    tokio::time::sleep(deadline).await;
    settle().await;
    assert_eq!(in_pieces("evt_last").await, 204);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_becomes_too_large_is_413_and_ends_no_other_body() {
    let (receiver, app) = with_budget(2 * MIB);
    let mut first = Sending::begin(&app, "evt_1", MIB);
    first.send(600_000).await;
    let mut second = Sending::begin(&app, "evt_2", 2 * MIB);
    second.send(300_000).await;
    assert_eq!(held(&receiver), MIB + (512 << 10));
    second.send(MIB).await;
    assert_eq!(held(&receiver), MIB);
    assert_eq!(second.finish().await.status, 413);
    assert_eq!(first.finish().await.status, 204);
}

// fault F11: 413 goes before the sender has written its body, which meets a reset
#[tokio::test]
async fn a_sender_whose_body_found_no_room_writes_the_rest_and_reads_503() {
    let receiver = receiver().body_budget(MIB).build().unwrap();
    let server = Server::start(app(&receiver, &Probe::new())).await;
    let large = Sent::new(vec![b'x'; MIB]).bytes();
    let mut first = server.connect().await;
    first.send_all(&large[..600_000]).await;
    eventually("the first is held", || held(&receiver) == MIB).await;
    let mut other = server.connect().await;
    other.send_all(&large).await;
    assert_eq!(other.answer().await.expect("an answer").status, 503);
    other.send_all(&Sent::new(event("evt_1")).bytes()).await;
    let next = other.answer().await.expect("the connection goes on");
    assert_eq!(next.status, 204);
}

// fault F12: unauthenticated bodies under way have no common bound
#[tokio::test(start_paused = true)]
async fn the_memory_of_a_body_is_freed_however_it_ends() {
    let (receiver, app) = with_budget(2 * MIB);
    for (finishes, drops) in [(true, false), (false, true), (false, false)] {
        let mut body = Sending::begin(&app, &format!("evt_{finishes}_{drops}"), 5_000);
        body.send(1_000).await;
        assert_eq!(held(&receiver), 1_024);
        body.send(1_000).await;
        assert_eq!(held(&receiver), 2_048, "the memory, not the length");
        if finishes {
            assert_eq!(body.finish().await.status, 204);
        } else if drops {
            body.answer.abort();
            settle().await;
        } else {
            assert_eq!(body.answer.await.unwrap().status, 408);
        }
        assert_eq!(held(&receiver), 0);
    }
    // A body in one piece holds no memory while it waits for its end.
    let mut tiny = Sending::begin(&app, "evt_tiny", 300);
    settle().await;
    assert_eq!(held(&receiver), 0);
    tiny.send(1).await;
    assert_eq!(held(&receiver), 1_024, "one byte, in a buffer of its own");
    assert_eq!(tiny.finish().await.status, 204);
    assert_eq!(held(&receiver), 0);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_for_want_of_budget_has_a_name_of_its_own() {
    let outcomes = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let told = std::sync::Arc::clone(&outcomes);
    let receiver = receiver()
        .clock(manual())
        .max_body(100)
        .body_budget(100)
        .on_answer(move |answer| told.lock().unwrap().push(answer.outcome.name()))
        .build()
        .unwrap();
    let app = app(&receiver, &Probe::new());
    let mut first = Sending::begin(&app, "evt_1", 90);
    first.send(50).await;
    let mut second = Sending::begin(&app, "evt_2", 90);
    second.send(50).await;
    assert_eq!(second.finish().await.status, 503);
    assert_eq!(*outcomes.lock().unwrap(), ["body_budget_spent"]);
    assert!(
        receiver.health().is_ready(),
        "a sender makes nothing unready"
    );
}

#[test]
fn a_budget_without_room_for_one_body_is_refused() {
    let built = |max_body: usize, budget: usize| {
        let builder = receiver().max_body(max_body).body_budget(budget);
        builder.build().map(drop).map_err(|error| {
            let ConfigErrorKind::BodyBudgetTooSmall { needed, given } = error.kind() else {
                panic!("{error}");
            };
            assert_eq!(given, budget);
            assert!(
                error
                    .to_string()
                    .contains(&format!(".body_budget({needed})"))
            );
            needed
        })
    };
    for max_body in [1, MIB, 1 << 40] {
        assert_eq!(built(max_body, max_body), Ok(()));
        assert_eq!(built(max_body, max_body - 1), Err(max_body));
    }
    assert_eq!(built(usize::MAX, usize::MAX), Ok(()));
    assert!(receiver().max_body(64 * MIB).build().is_ok());
    assert!(receiver().max_body(64 * MIB + 1).build().is_err());
}
