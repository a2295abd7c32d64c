//! The same in the layer, where the states of a body that is waited for are on the heap.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hookgate::layer::VerifiedBody;
use hookgate::{Receiver, ReceiverBuilder, clock::ManualClock};
use http::{Request, Response, StatusCode};
use http_body::{Body, Frame};
use tokio::time::timeout;
use tower_layer::Layer;
use tower_service::Service;

use super::{BODY, FORGED, NOW, Run, forged, pairs, ring, signature};

const DEADLINE: Duration = Duration::from_millis(60);

#[test]
fn no_copy_of_key_material_stays_in_the_layer() {
    let mut run = Run::begin();
    let receiver = run.keys("layer", 2, || {
        receiver(Receiver::builder().keys(ring(2).into()))
    });
    every_way(&mut run, &receiver);
    run.drop("layer", receiver);
    run.ends();
}

fn receiver(builder: ReceiverBuilder) -> Receiver {
    let builder = builder.clock(ManualClock::at(NOW)).body_deadline(DEADLINE);
    builder.without_deduplication().build().unwrap()
}

fn every_way(run: &mut Run, receiver: &Receiver) {
    let app = receiver.layer().layer(Handler);
    let mut way = |name: &str, signature: String, body: Pieces, expected: Option<u16>| {
        run.step(name, || {
            let runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = { runtime }.enable_time().build().unwrap();
            let mut request = Request::post("/").header("x-service-webhook-id", "wh_1");
            for (name, value) in pairs(&signature) {
                request = request.header(name, value);
            }
            let request = request.body(body).unwrap();
            let answered = runtime.block_on(async {
                // `Handler` is always ready.
                let answer = app.clone().call(request);
                let patience = if expected.is_some() {
                    20 * DEADLINE
                } else {
                    DEADLINE / 3
                };
                timeout(patience, answer).await.ok()
            });
            let status = answered.map(|answer| answer.unwrap().status().as_u16());
            assert_eq!(status, expected, "{name}");
        });
    };
    for (size, waits) in [(300, false), (70, false), (70, true)] {
        let pieces = |body: &'static [u8]| Pieces::new(body.chunks(size), waits);
        way("accepted", signature(1), pieces(BODY), Some(204));
        way("refused", forged(), pieces(FORGED), Some(401));
    }
    for waits in [false, true] {
        let half = || Pieces::new(FORGED[..200].chunks(70), waits).and_nothing_more();
        way("too slow", forged(), half(), Some(408));
        way("hung up midway", forged(), half(), None);
    }
}

/// Answers each delivery 204.
#[derive(Clone)]
struct Handler;

impl Service<Request<VerifiedBody>> for Handler {
    type Response = Response<()>;
    type Error = Infallible;
    type Future = Ready<Result<Response<()>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<VerifiedBody>) -> Self::Future {
        let mut answer = Response::new(());
        *answer.status_mut() = StatusCode::NO_CONTENT;
        ready(Ok(answer))
    }
}

/// A body in pieces.
struct Pieces {
    left: std::vec::IntoIter<&'static [u8]>,
    /// Whether each piece is waited for, and whether this one was.
    waits: bool,
    has_waited: bool,
    is_whole: bool,
}

impl Pieces {
    fn new(pieces: impl Iterator<Item = &'static [u8]>, waits: bool) -> Self {
        Self {
            left: pieces.collect::<Vec<_>>().into_iter(),
            waits,
            has_waited: false,
            is_whole: true,
        }
    }

    fn and_nothing_more(self) -> Self {
        Self {
            is_whole: false,
            ..self
        }
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.waits && !std::mem::replace(&mut self.has_waited, true) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.has_waited = false;
        match self.left.next() {
            Some(piece) => Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(piece))))),
            None if self.is_whole => Poll::Ready(None),
            None => Poll::Pending,
        }
    }
}
