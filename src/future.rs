//! The future of a call of code from outside this crate.

use std::fmt;
use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::task::{Context, Poll};

/// The future of a call of a store, a sink or a provider: a [`StoreFuture`](crate::dedupe::StoreFuture) or a
/// [`LookupFuture`](crate::lookup::LookupFuture).
///
/// An implementation that answers at once uses [`ready`](Self::ready) and allocates nothing; one that waits uses
/// [`boxed`](Self::boxed).
///
/// ```
/// use hookgate::{
///     block_on,
///     lookup::{LookupError, LookupErrorKind, LookupFuture},
/// };
///
/// let at_once = LookupFuture::ready(Ok(None));
/// assert!(block_on(at_once).unwrap().is_none());
/// let later = LookupFuture::boxed(async { Err(LookupError::unavailable("connection refused")) });
/// assert_eq!(block_on(later).unwrap_err().kind(), LookupErrorKind::Unavailable);
/// ```
pub struct CallFuture<'a, A>(Inner<'a, A>);

enum Inner<'a, A> {
    Ready(Ready<A>),
    Boxed(Pin<Box<dyn Future<Output = A> + Send + 'a>>),
}

impl<'a, A> CallFuture<'a, A> {
    /// Returns an answer that is ready at once.
    #[must_use]
    pub fn ready(answer: A) -> Self {
        Self(Inner::Ready(ready(answer)))
    }

    /// Returns an answer that has to be waited for.
    #[must_use]
    pub fn boxed(future: impl Future<Output = A> + Send + 'a) -> Self {
        Self(Inner::Boxed(Box::pin(future)))
    }
}

impl<A> Future for CallFuture<'_, A> {
    type Output = A;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<A> {
        match &mut self.0 {
            Inner::Ready(answer) => Pin::new(answer).poll(context),
            Inner::Boxed(future) => future.as_mut().poll(context),
        }
    }
}

impl<A> fmt::Debug for CallFuture<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CallFuture")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_future_shows_no_answer() {
        let (ready, boxed) = (CallFuture::ready(1), CallFuture::boxed(async { 1 }));
        for future in [ready, boxed] {
            assert_eq!(format!("{future:?}"), "CallFuture");
            assert_eq!(crate::block_on(future), 1);
        }
    }
}
