//! The data that observers keep of one request.

use std::mem;
#[cfg(feature = "metrics")]
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;

use super::observer::ObservedRequest;
use super::span::Span;
use crate::caught::caught;
#[cfg(feature = "metrics")]
use crate::walk::Delivery;

/// One request, as its observers know it: from its head to its answer, or to the end of its connection.
pub(crate) struct Observation {
    pub(crate) started: Instant,
    pub(crate) span: Span,
    is_end_told: AtomicBool,
    #[cfg(feature = "metrics")]
    pub(super) recognised: OnceLock<Delivery>,
    pub(super) following: Following,
}

impl Observation {
    pub(super) fn begin(method: &http::Method) -> Self {
        Self {
            started: Instant::now(),
            span: Span::of_request(method),
            is_end_told: AtomicBool::new(false),
            #[cfg(feature = "metrics")]
            recognised: OnceLock::new(),
            following: Following::default(),
        }
    }

    pub(crate) fn is_end_told(&self) -> bool {
        self.is_end_told.load(Ordering::Relaxed)
    }

    /// The end of this request is told now, or by another observation of it.
    pub(crate) fn end_is_told(&self) {
        self.is_end_told.store(true, Ordering::Relaxed);
    }
}

/// The values of the program's observers for one request. `None` where none of them observes it: that takes no memory but a word.
#[derive(Default)]
pub(super) struct Following(Option<Box<Mutex<Values>>>);

type Values = Vec<Box<dyn ObservedRequest>>;

impl Following {
    pub(super) fn of(begun: Values) -> Self {
        Self((!begun.is_empty()).then(|| Box::new(Mutex::new(begun))))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub(super) fn each(&self, tell: impl Fn(&mut dyn ObservedRequest)) {
        if let Some(values) = &self.0 {
            for value in &mut *values.lock().unwrap_or_else(PoisonError::into_inner) {
                let _ = caught(|| tell(&mut **value));
            }
        }
    }

    /// Tells the last step.
    pub(super) fn end(&self, tell: impl Fn(Box<dyn ObservedRequest>)) {
        if let Some(values) = &self.0 {
            let values = mem::take(&mut *values.lock().unwrap_or_else(PoisonError::into_inner));
            for value in values {
                let _ = caught(|| tell(value));
            }
        }
    }
}

/// Under two layers of one receiver, the inner one ends without a last step.
impl Drop for Following {
    fn drop(&mut self) {
        self.end(drop);
    }
}
