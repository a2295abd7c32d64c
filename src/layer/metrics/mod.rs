//! Metrics (feature `metrics`): through the facade crate, to the recorder that the program has installed.
//!
//! Names and units follow Prometheus: `hookgate_` in front, base units, `_total` at the end of a counter. `docs/operations.md`
//! lists them. Data that a sender writes never becomes a label: no id, and only the known event types. A recorder that panics
//! does no harm.

#[cfg(feature = "metrics")]
mod count;
#[cfg(feature = "metrics")]
mod gauges;
#[cfg(feature = "inbox")]
pub(crate) mod inbox;
#[cfg(feature = "metrics")]
mod labels;
#[cfg(feature = "metrics")]
mod names;

#[cfg(feature = "metrics")]
pub use names::DURATION_BUCKETS;
#[cfg(feature = "metrics")]
pub(super) use {
    count::{Meter, failed, settled},
    labels::Metrics,
};

#[cfg(not(feature = "metrics"))]
pub(super) use off::{Meter, Metrics, failed, settled};

#[cfg(not(feature = "metrics"))]
mod off {
    use tokio::time::Instant;

    use crate::delivery::Delivery;
    use crate::layer::hooks::{Answer, Settled};
    use crate::receiver::Receiver;

    #[derive(Default)]
    pub(crate) struct Metrics {}

    pub(crate) struct Meter;

    #[allow(clippy::unused_self)] // takes the place of the type that counts
    impl Meter {
        pub(crate) fn begin(_: &Receiver, _: Instant) -> Self {
            Self
        }

        pub(crate) fn recognised(&self, _: &Delivery) {}

        pub(crate) fn answered(&self, _: &Answer) {}

        pub(crate) fn passed_on(&self) {}
    }

    pub(crate) fn settled(_: &Receiver, _: &Settled) {}

    pub(crate) fn failed(_: &Receiver, _: bool) {}
}
