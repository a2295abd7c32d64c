//! The run: claim, handler and commit, which no end of the request cuts off.

use std::convert::Infallible;
use std::future::{Future, pending};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use http::{Extensions, Request, Response};
use tokio::task::unconstrained;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};
use tower_service::Service;

use super::body::{VerifiedBody, request};
use super::judge::{ask_dead_letter_hook, judge};
use super::marks::DeadLetter;
use super::receiver_inner::{HandlerWrapper, ReceiverInner};
use super::reply::{LATE_STORE_CALL, Reply, RunEnd};
use super::waiting_copies::TooManyWait;
use crate::catch_panic::catch_panic_in;
use crate::dedupe::{Ownership, StoreError};
use crate::observe::Settled;
use crate::outcome::{Outcome, Refusal, RefusalDetail, RefusalKind, Unrecorded};
use crate::pipeline::{Admission, Claim, Claims, Delivery, ForHealth, Settlement};

/// The waits of a copy between its checks whether another copy is done: 25 ms, doubled each time.
const FIRST_WAIT: Duration = Duration::from_millis(25);
const LONGEST_WAIT: Duration = Duration::from_millis(400);

/// The pauses between the calls of a commit that has failed: 100 ms, doubled each time.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The parts of a run.
pub(super) struct RunParts<S> {
    pub(super) receiver: Arc<ReceiverInner<Claims>>,
    pub(super) delivery: Delivery,
    pub(super) service: S,
    pub(super) head: Parts,
}

/// Claims the event, calls the handler, and commits or releases. Reports the end to the operator.
pub(super) async fn run<S, R>(parts: RunParts<S>, mut reply: Reply<R, S::Error>)
where
    S: Service<Request<VerifiedBody>, Response = Response<R>> + Send,
    S::Future: Send,
    S::Error: Send,
    R: Send,
{
    let RunParts {
        receiver,
        delivery,
        mut service,
        head,
    } = parts;
    let Some((claim, asked_at)) = claim_or_wait(&receiver, &delivery, &mut reply).await else {
        return;
    };
    let started = Instant::now();
    let handled = async {
        let wrapper = receiver.settings.handler_wrapper.as_ref();
        let wrapper = wrapper.map(|wrapper| (wrapper, head.extensions.clone()));
        let request = request(head, &delivery);
        let call = pin!(async move {
            let called = pin!(async move { service.call(request).await });
            judge(catch_panic_in(called).await)
        });
        let judged = match wrapper {
            Some((wrapper, at)) => call_wrapped(&**wrapper, &delivery, &at, call).await,
            None => call.await,
        };
        match judged {
            Ok(end) => end,
            Err(letter) => ask_dead_letter_hook(&receiver.settings, &delivery, letter).await,
        }
    };
    let settings = &receiver.settings;
    let (abort_runs, limit) = (&settings.abort_runs, started + settings.run_limit);
    // The handler is dropped before its claim is settled: everything that it holds is free then.
    let (end, lease_ends) = {
        let end = pin!(async {
            tokio::select! {
                biased;
                end = handled => end,
                failure = reply.answer_when_due_until_abort(abort_runs, limit) => {
                    RunEnd::own(Outcome::Failed(failure))
                }
            }
        });
        let lease = receiver.backend.lease;
        under_lease(end, lease, asked_at, || claim.renew()).await
    };
    let elapsed = started.elapsed();
    let reason = end.reason.clone();
    let (outcome, unsent) = settle_and_answer(&receiver, &claim, lease_ends, end, &mut reply).await;
    receiver.report_run(&Settled {
        outcome,
        delivery,
        reason,
        elapsed,
        late: !reply.is_awaited(),
    });
    // Before an answer that is still to be sent: when the sender has it, the permit is free.
    drop(claim);
    if let Some(end) = unsent {
        reply.send(end);
    }
}

/// Lets a replay delay the handler, or answer in its place.
async fn call_wrapped<R: Send, E: Send>(
    wrapper: &HandlerWrapper,
    delivery: &Delivery,
    extensions: &Extensions,
    call: impl Future<Output = Result<RunEnd<R, E>, DeadLetter>> + Send,
) -> Result<RunEnd<R, E>, DeadLetter> {
    let mut judged = None;
    let call = Box::pin(async {
        let end = judged.insert(call.await).as_ref();
        end.map_or(Outcome::DeadLettered, |end| end.outcome)
    });
    let answered = catch_panic_in(wrapper(delivery, extensions, call).as_mut()).await;
    match answered {
        Ok(outcome) => judged.unwrap_or_else(|| Ok(RunEnd::own(outcome))),
        Err(panicked) => judge(Err(panicked)),
    }
}

/// Claims the event, and waits for another copy's run if there is one. Returns the claim and the
/// time of the call, from which its lease counts; `None` if the request has another answer.
async fn claim_or_wait<R, E>(
    receiver: &ReceiverInner<Claims>,
    delivery: &Delivery,
    reply: &mut Reply<R, E>,
) -> Option<(Claim, Instant)> {
    let mut wait = FIRST_WAIT;
    // Of a copy that waits: its place, and the rest of the lease of the run that it waits for.
    let mut place = None;
    let mut lease_left = None;
    loop {
        let asked_at = Instant::now();
        let latest = reply.due_for_store_call();
        let is_in_time = || Instant::now() <= latest;
        let mut call = pin!(receiver.backend.admit(&receiver.auth, delivery, is_in_time));
        let admitted = match reply.while_awaited(latest, call.as_mut()).await {
            Some(admitted) => admitted,
            None => {
                place = None;
                if reply.is_awaited() {
                    refuse(receiver, delivery, reply, too_slow(receiver, lease_left));
                }
                let late = timeout_at(asked_at + LATE_STORE_CALL, call).await;
                late.unwrap_or_else(|_| Err(Refusal::new(RefusalKind::StoreTooSlow)))
            }
        };
        let other_lease_left = match admitted {
            Ok(Admission::Fresh(claim)) if reply.is_awaited() => {
                return Some((claim, asked_at));
            }
            Ok(Admission::Fresh(claim)) => {
                // No request waits for this copy, and the sender will send another.
                let late = Refusal::new(RefusalKind::StoreTooSlow);
                refuse(receiver, delivery, reply, late);
                let release = claim.settle(Settlement::Release, ForHealth::Ignored);
                let _ = timeout(LATE_STORE_CALL, release).await;
                return None;
            }
            Ok(Admission::Replayed { same_body }) => {
                reply.send(RunEnd::own(Outcome::Replayed { same_body }));
                return None;
            }
            Ok(Admission::Running { retry_after }) => retry_after,
            Err(refusal) => {
                refuse(receiver, delivery, reply, refusal);
                return None;
            }
        };
        lease_left = Some(other_lease_left);
        let running =
            || Refusal::new(RefusalKind::StillRunning).retry_after_lease(other_lease_left);
        if place.is_none() {
            match receiver.settings.waiting.enter(*delivery.key()) {
                Ok(entered) => place = Some(entered),
                Err(TooManyWait) => {
                    let refusal = running().caused_by(RefusalDetail::TooManyWait);
                    refuse(receiver, delivery, reply, refusal);
                    return None;
                }
            }
        }
        let pause = sleep(wait.min(other_lease_left.max(Duration::from_millis(1))));
        if reply.while_awaited(reply.due(), pause).await.is_none() {
            refuse(receiver, delivery, reply, running());
            return None;
        }
        wait = (wait * 2).min(LONGEST_WAIT);
    }
}

/// Returns the refusal of a copy that has waited too long for the store: for the answer to its
/// claim, or to the question whether the run that it waits for has ended.
fn too_slow(receiver: &ReceiverInner<Claims>, lease_left: Option<Duration>) -> Refusal {
    match lease_left {
        Some(left) => Refusal::new(RefusalKind::StillRunning).retry_after_lease(left),
        None => {
            receiver.auth.gate.health_signs.store_failed();
            Refusal::new(RefusalKind::StoreTooSlow)
        }
    }
}

/// Refuses the delivery, and reports it, unless its request has an answer already. The run reports
/// it and not the request, which may be gone: it may have been the last attempt.
fn refuse<N, R, E>(
    receiver: &ReceiverInner<N>,
    delivery: &Delivery,
    reply: &mut Reply<R, E>,
    refusal: Refusal,
) {
    if !reply.is_sent() {
        let (outcome, reason) = (Outcome::Refused(refusal.kind()), Arc::new(refusal.clone()));
        receiver.report_failure(delivery.verified(), Some(delivery), outcome, Some(reason));
        reply.send(RunEnd::refused(refusal));
    }
}

/// Commits or releases the claim. Returns the outcome of the run, and its end, unless that was
/// sent: if the store is slow or a commit fails, the request is answered first.
async fn settle_and_answer<R, E>(
    receiver: &ReceiverInner<Claims>,
    claim: &Claim,
    lease_ends: Instant,
    end: RunEnd<R, E>,
    reply: &mut Reply<R, E>,
) -> (Outcome, Option<RunEnd<R, E>>) {
    let outcome = end.outcome;
    let mut call = pin!(settle_once(receiver, claim, outcome));
    let latest = reply.due_for_store_call();
    let settled = reply.while_awaited(latest, call.as_mut()).await;
    if let Some(outcome) = settled
        && !outcome.is_commit_failed()
    {
        return (outcome, Some(RunEnd { outcome, ..end }));
    }
    let too_slow = match how_to_settle(outcome) {
        Settlement::Commit => Outcome::HandledUnrecorded(Unrecorded::TooSlow),
        Settlement::Release => outcome,
    };
    reply.send(RunEnd {
        outcome: settled.unwrap_or(too_slow),
        ..end
    });
    let settled = match settled {
        Some(settled) => settled,
        None => call.await,
    };
    let outcome = commit_again(receiver, claim, lease_ends, outcome, settled).await;
    (outcome, None)
}

fn how_to_settle(outcome: Outcome) -> Settlement {
    match outcome {
        Outcome::Handled
        | Outcome::Unhandled
        | Outcome::DeadLettered
        | Outcome::Replayed { .. } => Settlement::Commit,
        _ => Settlement::Release,
    }
}

/// Commits or releases the claim of a run with this outcome. Returns the outcome with what is known
/// of its record. A release that fails costs time, not the event: the lease ends by itself.
pub(crate) async fn settle_once(
    receiver: &ReceiverInner<Claims>,
    claim: &Claim,
    outcome: Outcome,
) -> Outcome {
    let how = how_to_settle(outcome);
    let call = claim.settle(how, ForHealth::Counts);
    match (how, timeout(LATE_STORE_CALL, call).await) {
        (Settlement::Release, _) => outcome,
        (Settlement::Commit, Ok(answer)) => outcome.recorded(&answer),
        (Settlement::Commit, Err(_)) => {
            receiver.auth.gate.health_signs.store_failed();
            Outcome::HandledUnrecorded(Unrecorded::TooSlow)
        }
    }
}

/// Repeats a commit that has failed, until the lease ends or the receiver is drained. `outcome` is
/// that of the handler, `settled` what the first commit has made of it.
pub(crate) async fn commit_again(
    receiver: &ReceiverInner<Claims>,
    claim: &Claim,
    lease_ends: Instant,
    outcome: Outcome,
    mut settled: Outcome,
) -> Outcome {
    let mut pause = FIRST_PAUSE;
    while settled.is_commit_failed() && Instant::now() + pause < lease_ends {
        tokio::select! {
            () = receiver.settings.abort_runs.cancelled() => break,
            () = sleep(pause) => settled = settle_once(receiver, claim, outcome).await,
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
    settled
}

/// Awaits a future, and renews a lease meanwhile. The lease began at `asked_at`, when the claim was
/// called. Returns when the lease ends, by the last renewal.
pub(crate) async fn under_lease<T, F>(
    future: impl Future<Output = T>,
    lease: Duration,
    asked_at: Instant,
    renew: impl Fn() -> F,
) -> (T, Instant)
where
    F: Future<Output = Result<Ownership, StoreError>>,
{
    let mut lease_ends = asked_at + lease;
    let output = tokio::select! {
        biased;
        output = future => output,
        never = keep_lease(lease, asked_at, &mut lease_ends, renew) => match never {},
    };
    (output, lease_ends)
}

/// Renews a lease after each third of its length, as long as the claim is held, and notes its end.
async fn keep_lease<F>(
    lease: Duration,
    asked_at: Instant,
    lease_ends: &mut Instant,
    renew: impl Fn() -> F,
) -> Infallible
where
    F: Future<Output = Result<Ownership, StoreError>>,
{
    // A handler that uses up the task's budget of polls must not stop the timers.
    unconstrained(async {
        let every = (lease / 3).max(Duration::from_millis(1));
        let mut next = asked_at + every;
        loop {
            // There is no burst of renewals for time that has already passed.
            next = next.max(Instant::now());
            sleep_until(next).await;
            let called = Instant::now();
            // A call that hangs must not delay the next one. One that fails decides nothing.
            match timeout(every, renew()).await {
                Ok(Ok(Ownership::Held)) => *lease_ends = called + lease,
                // The effects under way cannot be stopped; the commit will report the loss.
                Ok(Ok(Ownership::Lost)) => return pending().await,
                Ok(Err(_)) | Err(_) => {}
            }
            next += every;
        }
    })
    .await
}
