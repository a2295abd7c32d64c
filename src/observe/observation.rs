//! The data that observers keep of one request.

#[cfg(feature = "metrics")]
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
#[cfg(feature = "record")]
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use super::span::Span;
#[cfg(feature = "record")]
use crate::record::LoggedDelivery;
#[cfg(feature = "metrics")]
use crate::walk::Delivery;

/// One request, as its observers know it: from its head to its answer, or to the end of its connection.
pub(crate) struct Observation {
    pub(crate) started: Instant,
    pub(crate) span: Span,
    is_end_told: AtomicBool,
    #[cfg(feature = "metrics")]
    pub(super) recognised: OnceLock<Delivery>,
    #[cfg(feature = "record")]
    entry: Mutex<Option<Box<LoggedDelivery>>>,
}

impl Observation {
    pub(crate) fn begin(method: &http::Method) -> Self {
        Self {
            started: Instant::now(),
            span: Span::of_request(method),
            is_end_told: AtomicBool::new(false),
            #[cfg(feature = "metrics")]
            recognised: OnceLock::new(),
            #[cfg(feature = "record")]
            entry: Mutex::default(),
        }
    }

    /// The entry of the delivery log so far. Without a recorder it stays empty and costs nothing.
    #[cfg(feature = "record")]
    pub(super) fn entry(&self) -> MutexGuard<'_, Option<Box<LoggedDelivery>>> {
        self.entry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_end_told(&self) -> bool {
        self.is_end_told.load(Ordering::Relaxed)
    }

    /// The end of this request is told now, or by another observation of it.
    pub(crate) fn end_is_told(&self) {
        self.is_end_told.store(true, Ordering::Relaxed);
    }
}
