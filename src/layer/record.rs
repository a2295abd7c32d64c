//! Gives each delivery to a recorder, if the feature `record` is on and a recorder is set.

#[cfg(feature = "record")]
pub(super) use crate::record::{Recording, Tape};

#[cfg(not(feature = "record"))]
pub(super) use off::{Recording, Tape};

#[cfg(not(feature = "record"))]
mod off {
    use http::request::Parts;
    use tokio::time::Instant;

    use crate::clock::UnixSeconds;
    use crate::layer::hooks::Answer;
    use crate::receiver::Receiver;
    use crate::verify::Intake;

    #[derive(Default)]
    pub(crate) struct Recording {}

    pub(crate) struct Tape;

    #[allow(clippy::unused_self)] // takes the place of the type that records
    impl Tape {
        pub(crate) fn begin(_: &Receiver, _: Instant) -> Self {
            Self
        }

        pub(crate) fn head(&self, _: &Receiver, _: &Parts) {}

        pub(crate) fn passed_on(&self) {}

        pub(crate) fn judged_at(&self, _: UnixSeconds) {}

        pub(crate) fn broke_off(&self, _: &Intake) {}

        pub(crate) fn whole(&self, _: &mut Intake) {}

        pub(crate) fn answered(&self, _: &Receiver, _: &Answer) {}
    }
}
