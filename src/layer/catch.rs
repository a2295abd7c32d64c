//! Panics, kept where they happen.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

/// The future panicked. What it said has gone to the panic hook already.
#[derive(Debug)]
pub(super) struct Panicked;

/// Runs `call`, and keeps its panic in.
pub(super) fn caught<T>(call: impl FnOnce() -> T) -> Result<T, Panicked> {
    // Unwind safety: what was shared with the call is dropped with it or locked against poisoning.
    catch_unwind(AssertUnwindSafe(call)).map_err(discard)
}

/// A payload can panic in its own destructor.
fn discard(payload: Box<dyn Any + Send>) -> Panicked {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(payload)));
    Panicked
}

pin_project_lite::pin_project! {
    /// Polls a future and keeps its panic in.
    pub(super) struct CatchUnwind<F> {
        #[pin]
        future: F,
    }
}

impl<F> CatchUnwind<F> {
    pub(super) fn new(future: F) -> Self {
        Self { future }
    }
}

impl<F: Future> Future for CatchUnwind<F> {
    type Output = Result<F::Output, Panicked>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let future = self.project().future;
        match caught(|| future.poll(context)) {
            Ok(poll) => poll.map(Ok),
            Err(panicked) => Poll::Ready(Err(panicked)),
        }
    }
}
