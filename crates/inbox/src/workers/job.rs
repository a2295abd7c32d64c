//! One run of an entry: its handler, under its lease, and its settlement.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hookgate::layer::VerifiedBody;
use hookgate::{
    Delivery, Outcome,
    dedupe::{ClaimToken, Ownership, StoreErrorKind},
    outcome::Failure,
    receiver::StoredDelivery,
    run::Run,
};
use http::{Request, Response};
use tokio::time::{Instant, timeout};
use tower_service::Service;

use super::hooks::{
    AttemptReport, DeadEntry, Disposition, LostLease, Reason, Span, Step, error_line,
};
use super::lease::Lease;
use super::state::{Phase, WorkersState, call_store};
use crate::EntryId;
use crate::engine::{End, Job, UNREADABLE, one_line, readable_id, readable_type};

type Boxed = Box<dyn std::error::Error + Send + Sync>;

/// The most time for one settlement call of the store.
const SETTLE_CALL: Duration = Duration::from_secs(10);
/// The least time for which a settlement is repeated while the store is down.
const REPEAT_FOR: Duration = Duration::from_secs(600);
/// The waits between settlement calls while the store is down: 50 ms, doubling.
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// A run from its lease to its settlement. Nothing in it panics. It ends only by its own end, its
/// limit, or a shutdown. Returns when the entry is due again, if it is.
pub(super) async fn work<S, R>(
    shared: Arc<WorkersState>,
    service: S,
    job: Job,
    asked: Instant,
) -> Option<Instant>
where
    S: Service<Request<VerifiedBody>, Response = Response<R>>,
{
    let Job {
        id,
        token,
        tries,
        waited,
        entry,
    } = job;
    let delivery = match entry.into_delivery() {
        Ok(delivery) => delivery,
        Err(entry) => {
            dead_letter(&shared, id, token, tries, &entry).await;
            return None;
        }
    };
    let lost = LostLease {
        id,
        delivery: delivery.clone(),
        tries,
    };
    let lease = Lease::keep(&shared, lost.clone(), token, asked);
    let span = Span::of(&delivery, tries);
    let limit = asked + shared.settings.run_limit;
    let (outcome, reason, elapsed) = span.around(run(&shared, service, &delivery, limit)).await;
    let (mut end, mut disposition) = settlement(&shared, outcome, reason.as_ref(), tries);
    let mut settled = None;
    if lease.begin_settlement() {
        settled = settle(&shared, id, token, &mut end).await;
    }
    drop(lease);
    if settled == Some(Ownership::Lost) {
        shared.tell(Step::LeaseLost(&lost));
    }
    if settled != Some(Ownership::Held) {
        disposition = Disposition::Unrecorded;
    }
    let report = AttemptReport {
        id,
        outcome,
        disposition,
        delivery,
        reason,
        tries,
        waited,
        elapsed,
    };
    shared.tell(Step::Ended(&span, &report));
    if disposition == Disposition::Dead {
        let (.., error) = end.stored();
        let entry = DeadEntry::of(&report, error);
        shared.tell(Step::DeadLettered(&entry));
    }
    match disposition {
        Disposition::Retry { after } => Some(Instant::now() + after),
        Disposition::Returned => Some(Instant::now()),
        _ => None,
    }
}

/// Calls the handler, and polls it until its end, the limit or the abort.
async fn run<S, R>(
    shared: &WorkersState,
    service: S,
    delivery: &Delivery,
    limit: Instant,
) -> (Outcome, Option<Reason>, Duration)
where
    S: Service<Request<VerifiedBody>, Response = Response<R>>,
{
    let _under_way = Arc::clone(&shared.active);
    let mut phase = shared.phase.subscribe();
    let ran = Run::new(delivery)
        .limit(limit.saturating_duration_since(Instant::now()))
        .abort_on(phase.wait_for(|phase| *phase == Phase::Abort))
        .service(service)
        .await;
    // The text of a dead letter is the handler's, of any length: it is told as it is stored.
    let told = |reason: Reason| Reason::from(Boxed::from(one_line(&reason.to_string())));
    let reason = match ran.outcome {
        Outcome::DeadLettered => ran.reason.map(told),
        _ => ran.reason,
    };
    (ran.outcome, reason, ran.elapsed)
}

/// Returns the settlement for the store, and the state of the entry after it.
fn settlement(
    shared: &WorkersState,
    outcome: Outcome,
    reason: Option<&Reason>,
    tries: u32,
) -> (End, Disposition) {
    let error = || error_line(outcome, reason);
    match outcome {
        Outcome::Failed(Failure::Drained) => (End::Return, Disposition::Returned),
        Outcome::Replayed { .. }
        | Outcome::Accepted
        | Outcome::Handled
        | Outcome::Unhandled
        | Outcome::HandledUnrecorded(_) => (End::Done, Disposition::Done),
        Outcome::DeadLettered => (End::Dead { error: error() }, Disposition::Dead),
        // It failed, or is an outcome that this version does not know: no event is lost for that.
        _ if tries < shared.settings.max_tries => {
            let after = shared.settings.backoff.draw(tries);
            let error = error();
            (End::Retry { after, error }, Disposition::Retry { after })
        }
        _ => (End::Dead { error: error() }, Disposition::Dead),
    }
}

/// Sends the settlement at once, and again while the store is down. The holder keeps a lease that
/// has ended until another worker takes the entry, so the settlement is repeated until the time
/// limit. If the store comes back after an hour, other workers have already taken the entry.
/// Returns `None` if the store never accepted the call.
///
/// If the store refuses the settlement, the text of its error may be the cause: it is sent once
/// more, at once, with a plainer text, and then not again. The entry is due again when its lease
/// ends.
async fn settle(
    shared: &WorkersState,
    id: EntryId,
    token: ClaimToken,
    end: &mut End,
) -> Option<Ownership> {
    let give_up = Instant::now() + REPEAT_FOR.max(shared.settings.lease);
    let mut phase = shared.phase.subscribe();
    let mut aborted = pin!(phase.wait_for(|phase| *phase == Phase::Abort));
    let (mut wait, mut last, mut is_retold) = (FIRST_WAIT, false, false);
    loop {
        let call = || shared.engine.settle(id, token, end.clone());
        match call_store(SETTLE_CALL, call).await {
            Ok(ownership) => return Some(ownership),
            Err(error) => {
                shared.tell(Step::StoreFailed("settle", &error));
                if error.kind() == StoreErrorKind::Refused {
                    if is_retold || !end.make_plain() {
                        return None;
                    }
                    is_retold = true;
                    continue;
                }
            }
        }
        if last || Instant::now() >= give_up {
            return None;
        }
        // The end of a shutdown stops the wait; then one more call follows.
        last = timeout(wait, &mut aborted).await.is_ok();
        wait = (wait * 2).min(LONGEST_WAIT);
    }
}

/// Makes a dead letter of an entry that cannot be read: no run could ever read it, so an operator
/// must look at it.
async fn dead_letter(
    shared: &WorkersState,
    id: EntryId,
    token: ClaimToken,
    tries: u32,
    entry: &StoredDelivery,
) {
    let error = UNREADABLE.to_owned();
    let mut end = End::Dead { error };
    if settle(shared, id, token, &mut end).await == Some(Ownership::Held) {
        let (.., error) = end.stored();
        let event_id = readable_id(&entry.event_id);
        let event_type = readable_type(&entry.event_type);
        let dead = DeadEntry {
            id,
            event_id,
            event_type,
            tries,
            error: error.unwrap_or_default().to_owned(),
            delivery: None,
        };
        shared.tell(Step::DeadLettered(&dead));
    }
}

/// Returns an entry that was leased and will not be run. It need not be leased again here: the
/// workers must stop.
pub(super) async fn give_back(shared: Arc<WorkersState>, job: Job) -> Option<Instant> {
    settle(&shared, job.id, job.token, &mut End::Return).await;
    None
}
