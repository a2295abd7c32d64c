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

/// Polls a run that has this state until it has ended or its answer is due. If it is dropped before its end, it goes on in its own task.
pub(crate) fn attached<R, E>(
    state: Arc<RunState<R, E>>,
    run: impl Future<Output = Option<Ended<R, E>>> + Send + 'static,
    answer_due: Instant,
) -> impl Future<Output = Ended<R, E>>
where
    R: 'static,
    E: 'static,
{
    let mut timer = Timer::default();
    let mut attached = Attached {
        run: Some(Box::pin(run) as Run<R, E>),
        runtime: None,
        state,
    };
    poll_fn(move |context| {
        let Attached {
            run,
            runtime,
            state,
        } = &mut attached;
        // Taken out while it is polled: a run that has panicked must not be polled again, and not in its own task either.
        let Some(mut polled) = run.take() else {
            return Poll::Ready(state.take_end());
        };
        match caught(|| polled.as_mut().poll(context)) {
            Ok(Poll::Ready(Some(ended))) => Poll::Ready(ended),
            Ok(Poll::Ready(None)) | Err(_) => Poll::Ready(state.take_end()),
            Ok(Poll::Pending) => {
                *run = Some(polled);
                if runtime.is_none() {
                    *runtime = Handle::try_current().ok();
                }
                // If the answer is due, the run is dropped after this, and so detached if it must not end here.
                let due = timer.poll(state.due(answer_due), context);
                due.map(|()| state.answer())
            }
        }
    })
}

struct Attached<R: 'static, E: 'static> {
    run: Option<Run<R, E>>,
    /// Taken once the run waits, because the request's future may be dropped on a thread without a runtime.
    runtime: Option<Handle>,
    state: Arc<RunState<R, E>>,
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
