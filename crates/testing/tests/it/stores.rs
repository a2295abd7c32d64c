//! The conformance suite: the stores in memory pass it, and each of its rules finds a store that is
//! broken on purpose.

mod broken;
mod conformance;

use hookgate::clock::{ManualClock, UnixSeconds};

fn clock() -> ManualClock {
    ManualClock::at(UnixSeconds::new(1_763_690_000))
}
