//! A run's answer to its request: sent at the end of the run, or earlier when the answer is due.

use std::convert::Infallible;
use std::future::{Future, pending};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Response;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::unconstrained;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::observe::{Reason, in_this_span};
use crate::outcome::{Failure, Outcome, Refusal};

/// The most time of a request that one call of the store gets.
pub(crate) const STORE_CALL: Duration = Duration::from_secs(1);

/// The time limit of a store call when no request waits for its answer any more.
pub(crate) const LATE_STORE_CALL: Duration = Duration::from_secs(30);

/// The end of a run, as its request gets it.
pub(crate) struct RunEnd<R, E> {
    pub(crate) answer: RunAnswer<R, E>,
    pub(crate) outcome: Outcome,
    pub(crate) reason: Option<Reason>,
}

pub(crate) enum RunAnswer<R, E> {
    /// The inner service's response.
    Response(Response<R>),
    /// The receiver's own response to this outcome. It stays the same where the commit then fails.
    Own(Outcome),
    /// No handler was called. The run has reported it.
    Refused(Refusal),
    /// The inner service failed.
    Error(E),
}

impl<R, E> RunEnd<R, E> {
    /// The receiver itself answers, as the outcome says.
    pub(crate) fn own(outcome: Outcome) -> Self {
        Self {
            answer: RunAnswer::Own(outcome),
            outcome,
            reason: None,
        }
    }

    pub(crate) fn refused(refusal: Refusal) -> Self {
        Self {
            outcome: Outcome::Refused(refusal.kind()),
            answer: RunAnswer::Refused(refusal),
            reason: None,
        }
    }
}

/// Awaits the answer of a run. `due` is the latest time for it: the run keeps it.
///
/// The request polls the run itself, which saves a task and two changes of thread. A run that goes
/// on after its answer moves to a task of its own, and so does one whose request is dropped,
/// because the sender hung up.
pub(crate) async fn answer_of<R, E, F>(
    due: Instant,
    run: impl FnOnce(Reply<R, E>) -> F,
) -> RunEnd<R, E>
where
    F: Future<Output = ()> + Send + 'static,
{
    let (sender, mut answer) = oneshot::channel();
    let reply = Reply {
        to_request: Some(sender),
        due,
    };
    let mut run = DetachOnDrop {
        run: Some(Box::pin(run(reply))),
        runtime: Handle::current(),
    };
    let answered = tokio::select! {
        biased;
        () = &mut run => answer.await,
        answered = &mut answer => answered,
    };
    // A run always sends an answer, so this value is never used.
    answered.unwrap_or_else(|_| RunEnd::own(Outcome::Failed(Failure::Panicked)))
}

/// A run that goes on in a task of its own if it is dropped before its end.
struct DetachOnDrop<F: Future<Output = ()> + Send + 'static> {
    /// Absent while it is polled, and after its end.
    run: Option<Pin<Box<F>>>,
    /// Where the task is spawned: a request may be dropped outside of the runtime.
    runtime: Handle,
}

impl<F: Future<Output = ()> + Send + 'static> Future for DetachOnDrop<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Some(mut run) = self.run.take() else {
            return Poll::Ready(());
        };
        let polled = run.as_mut().poll(context);
        if polled.is_pending() {
            self.run = Some(run);
        }
        polled
    }
}

impl<F: Future<Output = ()> + Send + 'static> Drop for DetachOnDrop<F> {
    fn drop(&mut self) {
        if let Some(run) = self.run.take() {
            self.runtime.spawn(in_this_span(run));
        }
    }
}

/// The run's side of its request, which gets one answer.
pub(crate) struct Reply<R, E> {
    /// Absent once the answer is sent. Closed if the sender has hung up before.
    to_request: Option<oneshot::Sender<RunEnd<R, E>>>,
    due: Instant,
}

impl<R, E> Reply<R, E> {
    /// Returns the latest time for the answer.
    pub(crate) fn due(&self) -> Instant {
        self.due
    }

    /// Returns the latest time for the answer if it depends on a call of the store that begins now.
    pub(crate) fn due_for_store_call(&self) -> Instant {
        self.due.min(Instant::now() + STORE_CALL)
    }

    /// Returns whether the request has its answer.
    pub(crate) fn is_sent(&self) -> bool {
        self.to_request.is_none()
    }

    /// Returns whether the request still waits: it has no answer, and its sender has not hung up.
    pub(crate) fn is_awaited(&self) -> bool {
        let sender = self.to_request.as_ref();
        sender.is_some_and(|sender| !sender.is_closed())
    }

    /// Sends the answer. A second one is dropped.
    pub(crate) fn send(&mut self, end: RunEnd<R, E>) {
        if let Some(sender) = self.to_request.take() {
            let _ = sender.send(end);
        }
    }

    /// Awaits a future while the request waits for it: `None` at `latest`, or if the sender hangs
    /// up.
    pub(crate) async fn while_awaited<F: Future>(
        &mut self,
        latest: Instant,
        future: F,
    ) -> Option<F::Output> {
        let Some(sender) = &mut self.to_request else {
            return None;
        };
        // A future that uses up the task's budget of polls must not stop the timer.
        let over = unconstrained(async {
            tokio::select! {
                () = sender.closed() => {}
                () = sleep_until(latest) => {}
            }
        });
        tokio::select! {
            biased;
            output = future => Some(output),
            () = over => None,
        }
    }

    /// Answers that the run goes on, once the answer is due. Returns when the run has to be
    /// aborted: at its limit, or when the receiver is drained.
    pub(crate) async fn answer_when_due_until_abort(
        &mut self,
        abort_runs: &CancellationToken,
        limit: Instant,
    ) -> Failure {
        let due = self.due;
        let answer = async {
            sleep_until(due).await;
            self.send(RunEnd::own(Outcome::RunsOn));
            pending::<Infallible>().await
        };
        unconstrained(async {
            tokio::select! {
                biased;
                () = abort_runs.cancelled() => Failure::Drained,
                () = sleep_until(limit) => Failure::RunLimit,
                never = answer => match never {},
            }
        })
        .await
    }
}
