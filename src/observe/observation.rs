//! One request, as its observers know it.

use std::mem;

use bytes::Bytes;
use tokio::time::Instant;

use super::observer::ObservedRequest;
use super::reports::Answer;
use super::span::Span;
use crate::caught::caught;
use crate::clock::UnixSeconds;
use crate::pipeline::Authenticator;
#[cfg(feature = "metrics")]
use crate::pipeline::Delivery;

/// One request from its head to its answer, or to the end of its connection.
pub(crate) struct Observation {
    pub(crate) started: Instant,
    pub(crate) span: Span,
    is_end_told: bool,
    #[cfg(feature = "metrics")]
    pub(super) recognised: Option<Delivery>,
    /// The values of the program's observers.
    observed: Vec<Box<dyn ObservedRequest>>,
}

impl Observation {
    pub(super) fn of(span: Span, observed: Vec<Box<dyn ObservedRequest>>) -> Self {
        Self {
            started: Instant::now(),
            span,
            is_end_told: false,
            #[cfg(feature = "metrics")]
            recognised: None,
            observed,
        }
    }

    pub(crate) fn is_end_told(&self) -> bool {
        self.is_end_told
    }

    /// The end of this request is told now, or by another observation of it.
    pub(crate) fn end_is_told(&mut self) {
        self.is_end_told = true;
    }

    /// The age of the delivery is compared with this time.
    pub(crate) fn age_checked(&mut self, now: UnixSeconds) {
        self.each(|it| it.age_checked(now));
    }

    /// The body was read to its end. Told before the signature is compared: a body that does not verify is the one that an operator
    /// will look at.
    pub(crate) fn body_read(&mut self, body: impl FnOnce() -> Bytes) {
        if !self.observed.is_empty() {
            let body = body();
            self.each(|it| it.body_read(&body));
        }
    }

    /// The body was not read to its end, but only this number of bytes.
    pub(crate) fn body_broke_off(&mut self, bytes: usize) {
        self.each(|it| it.body_broke_off(bytes));
    }

    pub(super) fn answered(&mut self, auth: &Authenticator, answer: &Answer) {
        if !self.observed.is_empty() {
            let attempt = answer.authentic().and_then(|it| auth.attempt(it));
            self.end(|it| it.answered(answer, attempt));
        }
    }

    pub(super) fn hung_up(&mut self) {
        let after = self.started.elapsed();
        self.end(|it| it.hung_up(after));
    }

    fn each(&mut self, tell: impl Fn(&mut dyn ObservedRequest)) {
        for value in &mut self.observed {
            let _ = caught(|| tell(&mut **value));
        }
    }

    /// Tells the last step.
    fn end(&mut self, tell: impl Fn(Box<dyn ObservedRequest>)) {
        for value in mem::take(&mut self.observed) {
            let _ = caught(|| tell(value));
        }
    }
}

/// Under two layers of one receiver, the inner one ends without a last step.
impl Drop for Observation {
    fn drop(&mut self) {
        self.end(drop);
    }
}
