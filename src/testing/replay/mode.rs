//! With which signature, and at which time.

use crate::clock::UnixSeconds;

/// With which signatures the deliveries go out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signing {
    /// With the recorded ones; redacted deliveries are signed again, where that is allowed.
    Recorded {
        /// Whether it is.
        redacted_too: bool,
    },
    /// Signed for the moment at which they go out.
    Afresh,
    /// With the recorded ones, at another time.
    Raw,
}

/// At the recorded time with the recorded signature: the receiver's clock stands at each delivery's `received_at`.
#[derive(Clone, Copy, Debug, Default)]
pub struct AsRecorded {
    pub(super) redacted_too: bool,
}

/// Signed again, for the moment at which each delivery goes out.
#[derive(Clone, Copy, Debug)]
pub struct Resigned;

/// As recorded, but at another time: what somebody would send who has copied the log.
#[derive(Clone, Copy, Debug)]
pub struct Raw {
    pub(super) at: Option<UnixSeconds>,
}

/// A way to replay: [`AsRecorded`], [`Resigned`] or [`Raw`].
pub trait Mode: sealed::Mode {}

/// A way to replay that needs no hold of the receiver's clock, and so can go over a wire: [`Resigned`] or [`Raw`].
pub trait Portable: Mode {}

impl<M: sealed::Mode> Mode for M {}
impl Portable for Resigned {}
impl Portable for Raw {}

pub(super) mod sealed {
    use super::{AsRecorded, Raw, Resigned, Signing};
    use crate::clock::{Clock, SystemClock, UnixSeconds};

    pub trait Mode: Send + Sync + 'static {
        fn signing(&self) -> Signing;

        /// What the receiver's clock says at the beginning, of a log whose first delivery came then.
        fn begins_at(&self, first: UnixSeconds) -> UnixSeconds {
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

        fn begins_at(&self, _: UnixSeconds) -> UnixSeconds {
            self.at.unwrap_or_else(|| SystemClock.now())
        }
    }
}
