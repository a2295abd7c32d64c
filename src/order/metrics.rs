//! Metrics of a guard (feature `metrics`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use metrics::SharedString;

use super::judge::GapReason;
use super::report::Ordered;
use crate::observe::metrics::{Meter, names};

/// The metrics of the guard with this name.
#[derive(Clone)]
pub(super) struct OrderMetrics {
    name: SharedString,
    has_begun: Arc<AtomicBool>,
}

impl OrderMetrics {
    pub(super) fn named(name: SharedString) -> Self {
        Self {
            name,
            has_begun: Arc::default(),
        }
    }

    /// Registers those that must not be missed, once: Prometheus sees no increase when a counter appears with its first value.
    pub(super) fn begin(&self) {
        if self.has_begun.swap(true, Ordering::Relaxed) {
            return;
        }
        self.with(|to| {
            to.describe(names::ORDER);
            for order in ["stale", "overlapped"] {
                to.count(names::ORDER_EVENTS, 0, [("order", order.into())]);
            }
            for reason in [GapReason::BeforeDiffers, GapReason::NotCreated] {
                let labels = [("reason", reason.name().into())];
                to.count(names::ORDER_GAPS, 0, labels);
            }
        });
    }

    pub(super) fn count(&self, ordered: &Ordered) {
        let order = match ordered.has_overlapped {
            true => "overlapped",
            false => ordered.order.name(),
        };
        self.with(|to| {
            to.count(names::ORDER_EVENTS, 1, [("order", order.into())]);
            if let Some(reason) = ordered.gap {
                let labels = [("reason", reason.name().into())];
                to.count(names::ORDER_GAPS, 1, labels);
            }
        });
    }

    fn with(&self, record: impl FnOnce(Meter<'_>)) {
        Meter::with(("guard", &self.name), record);
    }
}
