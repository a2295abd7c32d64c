//! Catches panics of futures.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

pub(crate) use crate::caught::{Panicked, caught};

pin_project_lite::pin_project! {
    /// Polls a future and catches its panic.
    #[project = Projected]
    pub(crate) enum CatchUnwind<F> {
        Running { #[pin] future: F },
        /// The call that should return the future panicked, or the future has ended.
        Ended { panicked: Option<Panicked> },
    }
}

impl<F> CatchUnwind<F> {
    pub(crate) fn new(future: F) -> Self {
        Self::Running { future }
    }

    /// In place of a future that is not made yet, that panicked, or that is dropped.
    pub(crate) fn ended(panicked: Option<Panicked>) -> Self {
        Self::Ended { panicked }
    }

    /// Polls the future that this call returns, unless the call itself panics.
    pub(crate) fn begin(mut self: Pin<&mut Self>, call: impl FnOnce() -> F) {
        if let Err(panicked) = caught(|| self.set(Self::new(call()))) {
            self.set(Self::ended(Some(panicked)));
        }
    }
}

/// A future in memory of its own. A panic of its destructor is caught too, wherever it is dropped.
pub(crate) struct Kept<F>(Pin<Box<CatchUnwind<F>>>);

impl<F> Kept<F> {
    pub(crate) fn new(future: F) -> Self {
        Self(Box::pin(CatchUnwind::new(future)))
    }

    pub(crate) fn as_mut(&mut self) -> Pin<&mut CatchUnwind<F>> {
        self.0.as_mut()
    }
}

impl<F> Drop for Kept<F> {
    fn drop(&mut self) {
        let _ = caught(|| self.0.set(CatchUnwind::ended(None)));
    }
}

impl<F: Future> Future for CatchUnwind<F> {
    type Output = Result<F::Output, Panicked>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = match self.project() {
            Projected::Running { future } => caught(|| future.poll(context)),
            Projected::Ended { panicked } => Err(panicked.take().unwrap_or_default()),
        };
        match polled {
            Ok(poll) => poll.map(Ok),
            Err(panicked) => Poll::Ready(Err(panicked)),
        }
    }
}
