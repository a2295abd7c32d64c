//! The sender hangs up, or the answer is due: the run goes on without its request.
//!
//! A run is polled inside its request's own task, which is cheaper than a separate task. When its answer is due, or the request's
//! future is dropped because the sender hung up, the run moves to its own task. Its end, for the request, is in a [`RunState`] that
//! both hold.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use tokio::runtime::Handle;
use tokio::time::Instant;

use super::run_state::{Ended, RunState};
use super::timer::Timer;
use crate::caught::caught;
use crate::observe::in_this_span;

/// A run's future. It returns its end, for the request; `None` if no request waits for it, or has taken it from the state.
type Run<R, E> = Pin<Box<dyn Future<Output = Option<Ended<R, E>>> + Send>>;

/// A run that is attached to its request. If it is dropped before its end, it goes on in its own task.
pub(crate) struct Attached<R: 'static, E: 'static> {
    run: Option<Run<R, E>>,
    /// Taken once the run waits, because the request's future may be dropped on a thread without a runtime.
    runtime: Option<Handle>,
    timer: Timer,
    state: Arc<RunState<R, E>>,
}

impl<R: 'static, E: 'static> Attached<R, E> {
    /// Attaches a run that has this state.
    pub(crate) fn to(
        state: Arc<RunState<R, E>>,
        run: impl Future<Output = Option<Ended<R, E>>> + Send + 'static,
    ) -> Self {
        Self {
            run: Some(Box::pin(run)),
            runtime: None,
            timer: Timer::default(),
            state,
        }
    }

    /// Polls the run until it has ended or its answer is due.
    pub(crate) fn until(
        mut self,
        answer_due: Instant,
    ) -> impl Future<Output = Ended<R, E>> + use<R, E> {
        poll_fn(move |context| {
            // Taken out while it is polled: a run that has panicked must not be polled again, and not in its own task either.
            let Some(mut run) = self.run.take() else {
                return Poll::Ready(self.state.take_end());
            };
            match caught(|| run.as_mut().poll(context)) {
                Ok(Poll::Ready(Some(ended))) => Poll::Ready(ended),
                Ok(Poll::Ready(None)) | Err(_) => Poll::Ready(self.state.take_end()),
                Ok(Poll::Pending) => {
                    self.run = Some(run);
                    if self.runtime.is_none() {
                        self.runtime = Handle::try_current().ok();
                    }
                    // If the answer is due, the run is dropped after this, and so detached if it must not end here.
                    let due = self.timer.poll(self.state.due(answer_due), context);
                    due.map(|()| self.state.answer())
                }
            }
        })
    }
}

impl<R: 'static, E: 'static> Drop for Attached<R, E> {
    fn drop(&mut self) {
        let Some(run) = self.run.take() else { return };
        let must_continue = self.state.detach();
        match self.runtime.take() {
            Some(runtime) if must_continue => {
                runtime.spawn(in_this_span(async move { drop(run.await) }));
            }
            // Without a runtime there is no task to run on; the lease ends the lost claim. A panic of the inner service while
            // it is dropped must not cost the request its answer.
            _ => {
                let _ = caught(|| drop(run));
            }
        }
    }
}
