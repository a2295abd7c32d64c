//! The stores that a suite opens.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use hookgate::{DedupeStore, dedupe::Capacity};

/// Tells the suite how to open a store and how to let its time pass.
///
/// See [`StoreConformance`](crate::StoreConformance) for an example.
pub trait StoreUnderTest: Send + Sync + 'static {
    /// Opens an empty store of this capacity. With `None`, the store must hold at least some thousand records. Returns `None`
    /// for a capacity that the store can't have; the rules about it are then reported as [`Finding::NotChecked`](crate::store::Finding::NotChecked).
    fn open(
        &self,
        capacity: Option<Capacity>,
    ) -> impl Future<Output = Option<Arc<dyn DedupeStore>>> + Send;

    /// Lets `time` pass for the stores: moves a [`ManualClock`](hookgate::clock::ManualClock), or sleeps.
    fn advance(&self, time: Duration) -> impl Future<Output = ()> + Send;

    /// The unit of leases and retentions in the suite. Each lasts a few units, and the suite checks it one unit before its end
    /// and one unit after. For a clock that is moved by hand any unit is right. Otherwise it must be well above the duration of
    /// a call.
    fn unit(&self) -> Duration {
        Duration::from_secs(1)
    }

    /// The number of events for which the 64 racers compete. The default suits a store in memory. Use fewer where a call is a
    /// round trip.
    fn races(&self) -> usize {
        1024
    }
}
