//! One attempt: a request over a network that may fail, within the sender's timeout.

use std::future::{Future, poll_fn};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use hookgate::internal::catch_panic;
use http::{Request, Response};
use tokio::time::{Instant, sleep, timeout};

use super::faults::{NetworkFault, Way};
use super::report::AttemptEnd;
use super::subscription::Subscription;
use crate::messages::chain;

/// One attempt that is over: see [`Subscription::attempt`].
#[derive(Debug)]
#[non_exhaustive]
pub struct Attempted {
    /// The end of the attempt.
    pub end: AttemptEnd,
    /// The receiver's answer, where one arrived.
    pub answer: Option<Response<Bytes>>,
    /// The duration of the attempt.
    pub elapsed: Duration,
    /// The end of the second copy, where the network made one.
    pub copy: Option<AttemptEnd>,
}

impl Subscription {
    /// Makes one attempt over a network that may have a fault, and hangs up when the timeout is
    /// over: what a [`Sender`](super::Sender) does with each attempt, for programs that keep the
    /// times themselves. It neither waits for a place nor retries.
    ///
    /// With [`NetworkFault::Duplicated`] both copies run in parallel. With [`NetworkFault::Slow`]
    /// the delivery arrives after three fifths of the timeout and its answer takes as long: the
    /// sender has hung up before.
    ///
    /// ```
    /// # use std::convert::Infallible;
    /// use std::time::Duration;
    /// use hookgate::{Secret, clock::UnixSeconds};
    /// use hookgate_testing::sender::{AttemptEnd, NetworkFault, Subscription};
    /// use hookgate_testing::{EventFactory, InProcess};
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?.block_on(async {
    /// # let app = tower::service_fn(|_: http::Request<http_body_util::Full<bytes::Bytes>>| async {
    /// #     Ok::<_, Infallible>(http::Response::new(String::new()))
    /// # });
    /// let secret = Secret::new("whsec_made_up_for_this_example")?;
    /// let orders = Subscription::new("wh_1", "/webhooks", secret, InProcess::new(app))?;
    /// let body = EventFactory::new().row_created().body();
    /// let request = orders.signed(UnixSeconds::new(1_763_690_000), "evt_1", "row.created", &body);
    ///
    /// let timeout = Duration::from_secs(5);
    /// assert!(orders.attempt(request.clone(), None, timeout).await.end.is_success());
    /// let slow = orders.attempt(request, Some(NetworkFault::Slow), timeout).await;
    /// assert_eq!(slow.end, AttemptEnd::TimedOut);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn attempt(
        &self,
        request: Request<Bytes>,
        fault: Option<NetworkFault>,
        timeout: Duration,
    ) -> Attempted {
        self.attempt_by(request, Way::with(fault, timeout), timeout)
            .await
    }

    /// Delivers once, or twice where the network duplicates the request. Hangs up when the timeout
    /// is over.
    pub(super) async fn attempt_by(
        &self,
        request: Request<Bytes>,
        way: Way,
        limit: Duration,
    ) -> Attempted {
        let once = || within(limit, carried(self, request.clone()));
        match way {
            Way::Sound => once().await,
            Way::Refused => failed("connection refused"),
            Way::AnswerLost => {
                let ended = once().await;
                match ended.end {
                    AttemptEnd::Answered(_) => Attempted {
                        elapsed: ended.elapsed,
                        ..failed("the answer was lost")
                    },
                    _ => ended,
                }
            }
            Way::Duplicated { at_once } => {
                let (ended, copy) = match at_once {
                    true => tokio::join!(once(), once()),
                    false => (once().await, once().await),
                };
                Attempted {
                    copy: Some(copy.end),
                    ..ended
                }
            }
            Way::Slow { there, back } => {
                within(limit, async {
                    sleep(there).await;
                    let answer = carried(self, request).await;
                    sleep(back).await;
                    answer
                })
                .await
            }
        }
    }
}

/// The sender hangs up by dropping the future of the request.
async fn within(
    limit: Duration,
    answer: impl Future<Output = Result<Response<Bytes>, String>>,
) -> Attempted {
    let started = Instant::now();
    let mut attempted = match timeout(limit, answer).await {
        Ok(Ok(answer)) => Attempted {
            end: AttemptEnd::Answered(answer.status().as_u16()),
            answer: Some(answer),
            elapsed: Duration::ZERO,
            copy: None,
        },
        Ok(Err(reason)) => failed(&reason),
        Err(_) => ended(AttemptEnd::TimedOut),
    };
    attempted.elapsed = started.elapsed();
    attempted
}

/// Sends the request. Where a receiver in this process panics, the attempt fails, as over a
/// network, where the connection would break off.
async fn carried(
    subscription: &Subscription,
    request: Request<Bytes>,
) -> Result<Response<Bytes>, String> {
    let mut carried = subscription.deliver(request);
    poll_fn(
        |context| match catch_panic(|| carried.as_mut().poll(context)) {
            Ok(poll) => poll.map_err(|error| chain(&*error)),
            Err(_) => Poll::Ready(Err("the receiver panicked".to_owned())),
        },
    )
    .await
}

fn failed(reason: &str) -> Attempted {
    ended(AttemptEnd::Failed(reason.to_owned()))
}

fn ended(end: AttemptEnd) -> Attempted {
    Attempted {
        end,
        answer: None,
        elapsed: Duration::ZERO,
        copy: None,
    }
}
