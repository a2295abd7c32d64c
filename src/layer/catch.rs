//! Catches panics of futures.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

pub(super) use crate::caught::{Panicked, caught};

pin_project_lite::pin_project! {
    /// Polls a future and catches its panic.
    pub(crate) struct CatchUnwind<F> {
        #[pin]
        future: F,
    }
}

impl<F> CatchUnwind<F> {
    pub(crate) fn new(future: F) -> Self {
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
