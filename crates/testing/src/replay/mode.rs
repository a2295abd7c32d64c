//! The signature and the time of a replay.

use hookgate::clock::UnixSeconds;

/// The signatures with which the deliveries are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signing {
    /// The recorded signatures. Redacted deliveries are signed again, where that is allowed.
    Recorded {
        /// Whether redacted deliveries may be signed again.
        redacted_too: bool,
    },
    /// Signed for the moment at which they are sent.
    Afresh,
    /// The recorded signatures, at another time.
    Raw,
}

/// Replays at the recorded time with the recorded signature: the receiver's clock shows each delivery's `received_at`.
#[derive(Clone, Copy, Debug, Default)]
pub struct AsRecorded {
    pub(super) redacted_too: bool,
}

/// Signs again, for the moment at which each delivery is sent.
#[derive(Clone, Copy, Debug)]
pub struct Resigned;

/// Replays as recorded, but at another time, as an attacker would do who has copied the log.
#[derive(Clone, Copy, Debug)]
pub struct Raw {
    pub(super) at: Option<UnixSeconds>,
}

/// A way to replay: [`AsRecorded`], [`Resigned`] or [`Raw`].
pub trait Mode: sealed::Mode {}

/// A way to replay that does not control the receiver's clock, and so can go over a network: [`Resigned`] or [`Raw`].
pub trait Portable: Mode {}

impl<M: sealed::Mode> Mode for M {}
impl Portable for Resigned {}
impl Portable for Raw {}

pub(super) mod sealed {
    use super::{AsRecorded, Raw, Resigned, Signing};
    use hookgate::clock::{Clock, SystemClock, UnixSeconds};

    pub trait Mode: Send + Sync + 'static {
        fn signing(&self) -> Signing;

        /// Returns the time of the receiver's clock at the beginning; `first` is the time of receipt of the log's first delivery.
        fn start_time(&self, first: UnixSeconds) -> UnixSeconds {
            first
        }
    }

    impl Mode for AsRecorded {
        fn signing(&self) -> Signing {
            Signing::Recorded {
                redacted_too: self.redacted_too,
            }
        }
    }

    impl Mode for Resigned {
        fn signing(&self) -> Signing {
            Signing::Afresh
        }
    }

    impl Mode for Raw {
        fn signing(&self) -> Signing {
            Signing::Raw
        }

        fn start_time(&self, _: UnixSeconds) -> UnixSeconds {
            self.at.unwrap_or_else(|| SystemClock.now())
        }
    }
}
