//! The two clocks that a plan can put out of step.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hookgate::clock::{Clock, Monotonic, UnixSeconds};

use super::world::World;

/// The receiver's clock: its wall can be wrong.
#[derive(Debug)]
pub(super) struct Wall(pub(super) Arc<World>);

impl Clock for Wall {
    fn now(&self) -> UnixSeconds {
        UnixSeconds::new(self.0.true_time() + self.0.skew.load(Ordering::SeqCst))
    }

    fn monotonic(&self) -> Monotonic {
        Monotonic::new(self.0.elapsed())
    }
}

/// The store's clock: it can jump ahead.
#[derive(Debug)]
pub(super) struct StoreClock(pub(super) Arc<World>);

impl Clock for StoreClock {
    fn now(&self) -> UnixSeconds {
        UnixSeconds::new(self.0.true_time())
    }

    fn monotonic(&self) -> Monotonic {
        Monotonic::new(self.0.store_time())
    }
}
