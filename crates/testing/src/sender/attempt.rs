//! One attempt: a request over a network that may fail, within the sender's timeout.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use tokio::time::{Instant, sleep, timeout};

use super::faults::Way;
use super::report::AttemptEnd;
use super::subscription::Subscription;

/// The end of an attempt.
pub(super) struct Ended {
    pub(super) end: AttemptEnd,
    pub(super) at: Instant,
    pub(super) replayed: bool,
    pub(super) copy: Option<AttemptEnd>,
}

/// Delivers once, or twice where the network duplicates the request. Hangs up when the timeout is over.
pub(super) async fn attempt(
    subscription: &Subscription,
    request: Request<Bytes>,
    way: Way,
    patience: Duration,
) -> Ended {
    let once = || deliver(subscription, request.clone(), patience);
    match way {
        Way::Sound => once().await,
        Way::Refused => failed("connection refused"),
        Way::AnswerLost => {
            let ended = once().await;
            match ended.end {
                AttemptEnd::Answered(_) => failed("the answer was lost"),
                _ => ended,
            }
        }
        Way::Duplicated { at_once: true } => {
            let (ended, copy) = both(once(), once()).await;
            with_copy(ended, copy)
        }
        Way::Duplicated { at_once: false } => {
            let ended = once().await;
            with_copy(ended, once().await)
        }
        Way::Slow { there, back } => {
            within(patience, async {
                sleep(there).await;
                let answer = carried(subscription, request).await;
                sleep(back).await;
                answer
            })
            .await
        }
    }
}

async fn deliver(
    subscription: &Subscription,
    request: Request<Bytes>,
    patience: Duration,
) -> Ended {
    within(patience, carried(subscription, request)).await
}

/// The sender hangs up by dropping the future of the request.
async fn within(
    patience: Duration,
    answer: impl Future<Output = Result<Response<Bytes>, String>>,
) -> Ended {
    match timeout(patience, answer).await {
        Ok(Ok(answer)) => Ended {
            end: AttemptEnd::Answered(answer.status().as_u16()),
            at: Instant::now(),
            replayed: answer.headers().contains_key("idempotent-replayed"),
            copy: None,
        },
        Ok(Err(reason)) => failed(&reason),
        Err(_) => ended(AttemptEnd::TimedOut),
    }
}

/// Sends the request. Where a receiver in this process panics, the attempt fails, as over a network, where the connection
/// would break off.
async fn carried(
    subscription: &Subscription,
    request: Request<Bytes>,
) -> Result<Response<Bytes>, String> {
    let mut carried = subscription.deliver(request);
    poll_fn(|context| {
        // Unwind safety: the future is dropped after a panic.
        match catch_unwind(AssertUnwindSafe(|| carried.as_mut().poll(context))) {
            Ok(poll) => poll.map_err(|error| reason(&*error)),
            Err(payload) => {
                // Leaked, as its destructor may panic too.
                std::mem::forget(payload);
                Poll::Ready(Err("the receiver panicked".to_owned()))
            }
        }
    })
    .await
}

fn reason(error: &(dyn std::error::Error + 'static)) -> String {
    let mut reason = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        reason = format!("{reason}: {error}");
        next = error.source();
    }
    reason
}

fn with_copy(mut ended: Ended, copy: Ended) -> Ended {
    ended.copy = Some(copy.end);
    ended
}

fn failed(reason: &str) -> Ended {
    ended(AttemptEnd::Failed(reason.to_owned()))
}

fn ended(end: AttemptEnd) -> Ended {
    Ended {
        end,
        at: Instant::now(),
        replayed: false,
        copy: None,
    }
}

/// Runs both futures until both are done.
async fn both<T>(one: impl Future<Output = T>, other: impl Future<Output = T>) -> (T, T) {
    let (mut one, mut other) = (pin!(one), pin!(other));
    let (mut first, mut second) = (None, None);
    poll_fn(|context| {
        if first.is_none()
            && let Poll::Ready(done) = one.as_mut().poll(context)
        {
            first = Some(done);
        }
        if second.is_none()
            && let Poll::Ready(done) = other.as_mut().poll(context)
        {
            second = Some(done);
        }
        match (first.take(), second.take()) {
            (Some(first), Some(second)) => Poll::Ready((first, second)),
            (one, other) => {
                (first, second) = (one, other);
                Poll::Pending
            }
        }
    })
    .await
}
