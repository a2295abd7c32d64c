//! Gives each delivery to the recorder, if one is set.

use std::sync::Arc;

use http::request::Parts;

use super::reports::Answer;
use super::step::{Observed, Observer, Step};
use crate::caught::caught;
use crate::readable::Chain;
use crate::record::{LoggedAnswer, LoggedDelivery, Record, header_as_logged, target_as_logged};

/// The recorder that was set.
#[derive(Default)]
pub(super) struct Recording(pub(super) Option<Arc<dyn Record>>);

impl Observer<Step<'_>> for Recording {
    #[inline]
    fn observe(&self, step: Step<'_>) {
        let Some(recorder) = &self.0 else { return };
        match step {
            Step::Begun(request, parts) => *request.of.entry() = Some(begin(request, parts)),
            Step::AgeChecked(request, now) => edit(request, |entry| entry.received_at = now),
            // Recorded before the signature is compared: a body that does not verify is the one that an operator will look at.
            Step::BodyRead(request, body) => edit(request, |entry| entry.body = Some(body())),
            Step::BodyBrokeOff(request, at) => {
                edit(request, |entry| entry.cut_off_at = Some(at as u64));
            }
            Step::Answered(request, answer) => record(&**recorder, request, |entry| {
                entry.answer = Some(logged(request, answer));
            }),
            Step::HungUp(request) => record(&**recorder, request, |entry| {
                entry.hung_up_after = Some(request.of.started.elapsed());
            }),
            Step::Recognised(..) | Step::Settled(_) | Step::Failed(_) => {}
        }
    }
}

fn edit(request: Observed<'_>, edit: impl FnOnce(&mut LoggedDelivery)) {
    if let Some(entry) = request.of.entry().as_mut() {
        edit(entry);
    }
}

fn begin(request: Observed<'_>, parts: &Parts) -> Box<LoggedDelivery> {
    let headers = parts.headers.iter();
    let headers = headers.map(|(name, value)| header_as_logged(name, value));
    // If the age is checked, it is checked by another reading of the clock, which then replaces this one.
    let now = request.auth.clock.now();
    let mut entry = LoggedDelivery::new::<String, _>(now, headers, "");
    entry.body = None;
    parts.method.as_str().clone_into(&mut entry.method);
    if let Some(target) = parts.uri.path_and_query() {
        entry.target = target_as_logged(target.as_str());
    }
    Box::new(entry)
}

/// Completes the entry and gives it to the recorder, once.
fn record(
    recorder: &dyn Record,
    request: Observed<'_>,
    complete: impl FnOnce(&mut LoggedDelivery),
) {
    let entry = request.of.entry().take();
    if let Some(mut entry) = entry {
        let _ = caught(|| {
            complete(&mut entry);
            recorder.record(*entry);
        });
    }
}

fn logged(request: Observed<'_>, answer: &Answer) -> LoggedAnswer {
    let verified = answer.authentic();
    let attempt = verified.and_then(|verified| request.auth.attempt(verified));
    let mut logged = LoggedAnswer::new(answer.status, answer.outcome.name());
    // If the reason panics while it is written, only the reason is lost.
    let reason = answer.reason.as_ref();
    logged.reason = reason.and_then(|reason| caught(|| Chain(reason).to_string()).ok());
    logged.elapsed = answer.elapsed;
    logged.key = verified.map(|verified| verified.key_name().to_owned());
    logged.scope = verified.map(|verified| verified.scope().to_owned());
    logged.attempt = attempt.map(|attempt| attempt.number);
    let claimed = answer.claimed_subscription();
    logged.claimed_subscription = claimed.map(|id| id.as_str().to_owned());
    logged
}
