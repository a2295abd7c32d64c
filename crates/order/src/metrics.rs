//! Metrics of a guard (feature `metrics`): through the facade crate, to the recorder that the program has installed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hookgate::receiver::catch_panic;
use metrics::{Key, KeyName, Label, Level, Metadata, Recorder, SharedString, Unit};

use super::judge::GapReason;
use super::report::Ordered;

const EVENTS: &str = "hookgate_order_total";
const GAPS: &str = "hookgate_order_gaps_total";
const HELP: [(&str, &str); 2] = [
    (
        EVENTS,
        "Handled events about a row, by their place among the handled events of that row.",
    ),
    (
        GAPS,
        "Handled updates that show that an event of their row was missed, by the reason.",
    ),
];

static METADATA: Metadata<'static> = Metadata::new("hookgate", Level::INFO, Some(module_path!()));

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
        recorded(|to| {
            for (name, help) in HELP {
                let name = KeyName::from_const_str(name);
                to.describe_counter(name, Some(Unit::Count), help.into());
            }
            for order in ["stale", "overlapped"] {
                self.add(to, EVENTS, 0, ("order", order));
            }
            for reason in [GapReason::BeforeDiffers, GapReason::NotCreated] {
                self.add(to, GAPS, 0, ("reason", reason.name()));
            }
        });
    }

    pub(super) fn count(&self, ordered: &Ordered) {
        let order = match ordered.has_overlapped {
            true => "overlapped",
            false => ordered.order.name(),
        };
        recorded(|to| {
            self.add(to, EVENTS, 1, ("order", order));
            if let Some(reason) = ordered.gap {
                self.add(to, GAPS, 1, ("reason", reason.name()));
            }
        });
    }

    /// Adds to a counter. Zero registers the counter without counting.
    fn add(
        &self,
        to: &dyn Recorder,
        name: &'static str,
        more: u64,
        (label, value): (&'static str, &'static str),
    ) {
        let guard = Label::new("guard", self.name.clone());
        let labels = vec![guard, Label::from_static_parts(label, value)];
        let key = Key::from_parts(KeyName::from_const_str(name), labels);
        to.register_counter(&key, &METADATA).increment(more);
    }
}

/// A recorder that panics does no harm.
#[expect(
    clippy::disallowed_methods,
    reason = "the metrics of a guard leave through this function"
)]
fn recorded(record: impl FnOnce(&dyn Recorder)) {
    let _ = catch_panic(|| metrics::with_recorder(record));
}
