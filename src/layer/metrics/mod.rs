//! Metrics (feature `metrics`): through the facade crate, to the recorder that the program has installed.
//!
//! Names and units follow Prometheus: `hookgate_` in front, base units, `_total` at the end of a counter. `docs/operations.md`
//! lists them. Data that a sender writes never becomes a label: no id, and only the known event types. A recorder that panics
//! does no harm.

#[cfg(feature = "metrics")]
mod count;
#[cfg(feature = "metrics")]
mod gauges;
#[cfg(feature = "metrics")]
mod labels;
#[cfg(feature = "metrics")]
pub(crate) mod names;

#[cfg(feature = "metrics")]
pub use names::DURATION_BUCKETS;
#[cfg(all(feature = "inbox", feature = "metrics"))]
pub(crate) use {
    count::{Labels, METADATA},
    labels::{OTHER, OutcomeLabels},
};
#[cfg(feature = "metrics")]
pub(crate) use {
    count::{Meter, failed, settled},
    gauges::record,
    labels::{Metrics, NamedKeys},
};

#[cfg(not(feature = "metrics"))]
pub(crate) use off::{Meter, failed, settled};

#[cfg(not(feature = "metrics"))]
mod off {
    use tokio::time::Instant;

    use crate::layer::guard::Guard;
    use crate::layer::hooks::{Answer, Settled};
    use crate::walk::Delivery;

    #[derive(Default)]
    pub(crate) struct Meter {}

    #[allow(clippy::unused_self)] // takes the place of the type that counts
    impl Meter {
        pub(crate) fn recognised(&self, _: &Delivery) {}

        pub(crate) fn answered(&self, _: &Guard, _: &Answer) {}

        pub(crate) fn passed_on(&self) {}

        pub(crate) fn end(&self, _: &Guard, _: Instant) {}
    }

    pub(crate) fn settled(_: &Guard, _: &Settled) {}

    pub(crate) fn failed(_: &Guard, _: bool) {}
}
