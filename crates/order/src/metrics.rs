//! Metrics of a guard (feature `metrics`): through the facade crate, to the recorder that the
//! program has installed.

#![expect(
    clippy::disallowed_methods,
    reason = "the metrics of a guard leave through this file"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use metrics::{Counter, SharedString, Unit, counter, describe_counter};

use super::judge::{GapReason, Ordered};

const EVENTS: &str = "hookgate_order_total";
const GAPS: &str = "hookgate_order_gaps_total";

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

    /// Registers those that must not be missed, once: Prometheus sees no increase when a counter
    /// appears with its first value.
    pub(super) fn begin(&self) {
        if self.has_begun.swap(true, Ordering::Relaxed) {
            return;
        }
        let help =
            "Handled events about a row, by their place among the handled events of that row.";
        describe_counter!(EVENTS, Unit::Count, help);
        let help =
            "Handled updates that show that an event of their row was missed, by the reason.";
        describe_counter!(GAPS, Unit::Count, help);
        for order in ["stale", "overlapped"] {
            self.events(order).increment(0);
        }
        for reason in [GapReason::BeforeDiffers, GapReason::NotCreated] {
            self.gaps(reason).increment(0);
        }
    }

    pub(super) fn count(&self, ordered: &Ordered) {
        let order = match ordered.has_overlapped {
            true => "overlapped",
            false => ordered.order.name(),
        };
        self.events(order).increment(1);
        if let Some(reason) = ordered.gap {
            self.gaps(reason).increment(1);
        }
    }

    fn events(&self, order: &'static str) -> Counter {
        counter!(EVENTS, "guard" => self.name.clone(), "order" => order)
    }

    fn gaps(&self, reason: GapReason) -> Counter {
        counter!(GAPS, "guard" => self.name.clone(), "reason" => reason.name())
    }
}
