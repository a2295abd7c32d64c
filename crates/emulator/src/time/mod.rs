//! The emulator's time: a base clock, and an offset that `clock/advance` adds to.

mod clock;
mod sum;

pub use clock::EmulatorClock;
pub(crate) use clock::{Moment, SigningTime, iso_millis};
pub(crate) use sum::duration;
