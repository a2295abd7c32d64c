//! The faults of a replay, chosen by a seed.

use std::fmt;
use std::time::Duration;

/// The faults of a replay: kinds of faults, and a seed that decides on which deliveries and events
/// they fall.
///
/// The same seed, kinds and log give the same replay. The choices of a seed for one kind do not
/// depend on the other kinds, so that you can make a failing plan smaller by removing kinds. Its
/// `Display` is the expression that makes it, and is in each report.
///
/// ```
/// use hookgate_testing::Faults;
///
/// let faults = Faults::seeded(7).duplicate().handler_fails(2).restarts(1);
/// assert_eq!(faults.to_string(), "Faults::seeded(7).duplicate().handler_fails(2).restarts(1)");
/// ```
///
/// Each kind falls on half of the deliveries, or of the events where it is a fault of the handler,
/// and on one at least. [`share`](Self::share) changes that.
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use]
pub struct Faults {
    pub(super) seed: u64,
    pub(super) share: Option<f64>,
    pub(super) duplicate: bool,
    pub(super) reorder: bool,
    pub(super) delay: bool,
    pub(super) hang_up: bool,
    pub(super) tampered: bool,
    pub(super) fails: u32,
    pub(super) panics: u32,
    pub(super) slow: Option<(u32, Duration)>,
    pub(super) restarts: u32,
}

impl Faults {
    /// No faults at all.
    pub fn none() -> Self {
        Self::default()
    }

    /// Sets the seed, which decides where the faults fall. The other methods add kinds.
    pub fn seeded(seed: u64) -> Self {
        Self {
            seed,
            ..Self::default()
        }
    }

    /// Sets the share of the deliveries or events on which each kind falls, from 0 to 1. Default:
    /// 0.5. The number is always at least one.
    pub fn share(mut self, share: f64) -> Self {
        self.share = Some(if share.is_finite() {
            share.clamp(0.0, 1.0)
        } else {
            1.0
        });
        self
    }

    /// Sends one to three copies of a delivery, all at once, or one after the other within two
    /// minutes.
    pub fn duplicate(mut self) -> Self {
        self.duplicate = true;
        self
    }

    /// Swaps deliveries with later ones, where neither becomes too old or too far ahead by it.
    pub fn reorder(mut self) -> Self {
        self.reorder = true;
        self
    }

    /// Delays deliveries beyond the window, by up to ten minutes: they must be answered 401. The
    /// sender tries them again.
    pub fn delay_past_window(mut self) -> Self {
        self.delay = true;
        self
    }

    /// The sender hangs up within 5 s while the handler is slow: the request's future is dropped,
    /// but the run must continue.
    pub fn sender_hangs_up(mut self) -> Self {
        self.hang_up = true;
        self
    }

    /// Sends a copy of a delivery that was changed after it was signed: another body, signature or
    /// timestamp. It must be answered 401, and begin no run.
    pub fn tampered(mut self) -> Self {
        self.tampered = true;
        self
    }

    /// The first `times` runs of an event are answered 500 in the handler's place.
    pub fn handler_fails(mut self, times: u32) -> Self {
        self.fails = times;
        self
    }

    /// The first `times` runs of an event panic in the handler's place.
    pub fn handler_panics(mut self, times: u32) -> Self {
        self.panics = times;
        self
    }

    /// Makes the first `times` runs of an event last `by` longer. From 4.5 s on, the receiver's
    /// default budget, they outlive their request.
    pub fn handler_is_slow(mut self, times: u32, by: Duration) -> Self {
        self.slow = (times > 0).then_some((times, by));
        self
    }

    /// Ends the process this many times, in the midst of a run or between deliveries. Another one
    /// begins with an app of its own. The runs of the old process have not ended, and records that
    /// only its memory held are lost.
    pub fn restarts(mut self, times: u32) -> Self {
        self.restarts = times;
        self
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::none() {
            return f.write_str("Faults::none()");
        }
        write!(f, "Faults::seeded({})", self.seed)?;
        if let Some(share) = self.share {
            write!(f, ".share({share:?})")?;
        }
        for (set, call) in [
            (self.duplicate, "duplicate"),
            (self.reorder, "reorder"),
            (self.delay, "delay_past_window"),
            (self.hang_up, "sender_hangs_up"),
            (self.tampered, "tampered"),
        ] {
            if set {
                write!(f, ".{call}()")?;
            }
        }
        for (times, call) in [
            (self.fails, "handler_fails"),
            (self.panics, "handler_panics"),
            (self.restarts, "restarts"),
        ] {
            if times > 0 {
                write!(f, ".{call}({times})")?;
            }
        }
        if let Some((times, by)) = self.slow {
            let by = by.as_millis();
            write!(f, ".handler_is_slow({times}, Duration::from_millis({by}))")?;
        }
        Ok(())
    }
}
