//! Tells the observers that the program has set.

use http::request::Parts;

use super::observation::Following;
use super::observer::{ObservedRequest, RequestObserver};
use super::step::{Observer, Step};
use crate::caught::caught;
use crate::clock::Clock;

/// The observers that were set, in this order.
#[derive(Default)]
pub(super) struct Told(Vec<Box<dyn RequestObserver>>);

impl Told {
    pub(super) fn add(&mut self, observer: impl RequestObserver) {
        self.0.push(Box::new(observer));
    }

    pub(super) fn are_set(&self) -> bool {
        !self.0.is_empty()
    }

    #[inline]
    pub(super) fn begin(&self, head: &Parts, clock: &dyn Clock) -> Following {
        let begun = self.0.iter().map(|each| caught(|| each.begin(head, clock)));
        Following::of(begun.filter_map(|begun| begun.ok().flatten()).collect())
    }
}

impl Observer<Step<'_>> for Told {
    #[inline]
    fn observe(&self, step: Step<'_>) {
        match step {
            Step::AgeChecked(request, now) => {
                request.of.following.each(|it| it.age_checked(now));
            }
            // Told before the signature is compared: a body that does not verify is the one that an operator will look at.
            Step::BodyRead(request, body) if !request.of.following.is_empty() => {
                let body = body();
                request.of.following.each(|it| it.body_read(&body));
            }
            Step::BodyBrokeOff(request, at) => {
                request.of.following.each(|it| it.body_broke_off(at));
            }
            Step::Answered(request, answer) if !request.of.following.is_empty() => {
                let verified = answer.authentic();
                let attempt = verified.and_then(|verified| request.auth.attempt(verified));
                let end = |it: Box<dyn ObservedRequest>| it.answered(answer, attempt);
                request.of.following.end(end);
            }
            Step::HungUp(request) if !request.of.following.is_empty() => {
                let after = request.of.started.elapsed();
                request.of.following.end(|it| it.hung_up(after));
            }
            _ => {}
        }
    }
}
