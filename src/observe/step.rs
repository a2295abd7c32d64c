//! The steps of a delivery, and the interface of those that are told of them.

use bytes::Bytes;

use super::observation::Observation;
use super::reports::{Answer, Failed, Settled};
use crate::clock::UnixSeconds;
use crate::walk::{Authenticator, Delivery};

/// Is told of each step, in the order in which the steps are taken.
pub(crate) trait Observer<Step> {
    /// Does not panic: it catches the panics of a hook, an observer of the program or an error's text, so they harm neither the
    /// delivery nor the other observers. Inlined, so that a step that it does not need costs nothing.
    fn observe(&self, step: Step);
}

/// A step of a delivery.
#[derive(Clone, Copy)]
#[allow(dead_code)] // the features decide which observers there are, and so which parts are read
pub(crate) enum Step<'a> {
    /// The age of the delivery is compared with this time.
    AgeChecked(Observed<'a>, UnixSeconds),
    /// The body was read to its end. It is not known yet whether it is authentic. The function returns it.
    BodyRead(Observed<'a>, &'a dyn Fn() -> Bytes),
    /// The body was not read to its end, but only this number of bytes.
    BodyBrokeOff(Observed<'a>, usize),
    /// The delivery is authentic, and its event is known.
    Recognised(Observed<'a>, &'a Delivery),
    /// The answer is known, and sent next.
    Answered(Observed<'a>, &'a Answer),
    /// There is no answer: the sender hung up, or the server was stopped.
    HungUp(Observed<'a>),
    /// A run has ended. Told inside its span.
    Settled(&'a Settled),
    /// An authentic delivery was not handled.
    Failed(&'a Failed),
}

/// A request under way, and the receiver that it came to.
#[derive(Clone, Copy)]
#[allow(dead_code)] // as above
pub(crate) struct Observed<'a> {
    pub(crate) auth: &'a Authenticator,
    pub(crate) of: &'a Observation,
}
