//! The fault layer, between the gate and the handler: counts runs, and makes some of them fail.

use std::fmt;
use std::future::{Future, pending};
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use hookgate::{DeadLetter, Delivery};
use http::{Request, Response, StatusCode};
use tokio::time::sleep;
use tower_layer::Layer;
use tower_service::Service;

use super::entry::EventIdentity;
use super::observations::{AttemptNumber, Run};
use super::plan::{Behaviour, RunPlan};
use super::process::Process;
use super::report::RunEnd;

/// Applies the plan's faults, directly before the handler. Made by [`Harness::layer`](super::Harness::layer), with the
/// receiver before it, and by [`Harness::faults`](super::Harness::faults).
///
/// In the handler's place it answers with an empty body, so the response body needs a `Default`, which axum's body has.
#[derive(Clone)]
pub struct FaultLayer(pub(super) Arc<Process>);

/// A handler with the plan's faults before it; made by [`FaultLayer`].
#[derive(Clone)]
pub struct FaultService<S> {
    process: Arc<Process>,
    inner: S,
}

impl<S> Layer<S> for FaultLayer {
    type Service = FaultService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        self.0.has_fault_layer.store(true, Ordering::SeqCst);
        FaultService {
            process: Arc::clone(&self.0),
            inner,
        }
    }
}

impl<S, B, R> Service<Request<B>> for FaultService<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    B: Send + 'static,
    R: Default,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<R>, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // The ready service moves into the future: see the receiver's own layer.
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let observed = ObservedRun::begin(&request, &self.process);
        let end_signal = self.process.end_signal.clone();
        let run = async move {
            let Some((mut observed, run_plan)) = observed else {
                return inner.call(request).await;
            };
            if !run_plan.delay.is_zero() {
                sleep(run_plan.delay).await;
            }
            match run_plan.behaviour {
                Behaviour::CallsHandler => {}
                Behaviour::Fails => {
                    let mut response = Response::new(R::default());
                    *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
                    observed.end(RunEnd::MadeToFail);
                    return Ok(response);
                }
                Behaviour::Panics => {
                    observed.end(RunEnd::MadeToPanic);
                    // Panics, but without the output of the panic hook.
                    resume_unwind(Box::new("a panic that the replay's plan asks for"));
                }
            }
            let answered = inner.call(request).await;
            observed.end(match &answered {
                Ok(response) if response.extensions().get::<DeadLetter>().is_some() => {
                    RunEnd::DeadLettered
                }
                Ok(response) if response.status().is_success() => RunEnd::Succeeded,
                Ok(response) => RunEnd::Failed(response.status().as_u16()),
                Err(_) => RunEnd::Failed(500),
            });
            answered
        };
        Box::pin(async move {
            if let Some(answered) = end_signal.until_end(run).await {
                return answered;
            }
            // The process has ended, and the handler with it, even if the handler would have finished at this very moment.
            pending().await
        })
    }
}

/// A run that has begun. Its end is always recorded.
struct ObservedRun {
    process: Arc<Process>,
    run: Option<Run>,
}

impl ObservedRun {
    fn begin<B>(request: &Request<B>, process: &Arc<Process>) -> Option<(Self, RunPlan)> {
        let delivery = request.extensions().get::<Delivery>()?;
        let attempt = request.extensions().get::<AttemptNumber>().copied();
        let event = EventIdentity::of(delivery.verified())?;
        let (run, run_plan) = process
            .observations
            .begin_run(event, attempt, process.number);
        let observed = Self {
            process: Arc::clone(process),
            run: Some(run),
        };
        Some((observed, run_plan))
    }

    fn end(&mut self, end: RunEnd) {
        if let Some(run) = self.run.take() {
            self.process.observations.end_run(run, end);
        }
    }
}

impl Drop for ObservedRun {
    fn drop(&mut self) {
        self.end(if std::thread::panicking() {
            RunEnd::Panicked
        } else {
            RunEnd::CutOff
        });
    }
}

impl fmt::Debug for FaultLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FaultLayer")
    }
}

impl<S: fmt::Debug> fmt::Debug for FaultService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultService")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}
