//! Claims the event of a delivery. A copy waits for the run of another copy.

use std::pin::pin;
use std::time::Duration;

use tokio::time::sleep;

use super::guard::Guard;
use super::run_state::{Ended, RunState};
use super::timer::in_time;
use crate::outcome::{Outcome, Refusal, RefusalKind};
use crate::pipeline::{Admission, Claim, Claims, Delivery};

/// The waits of a copy between its checks whether another copy is done: 25 ms, doubled each time.
const FIRST_WAIT: Duration = Duration::from_millis(25);
const LONGEST_WAIT: Duration = Duration::from_millis(400);

/// Claims the event, and waits for another copy's run if there is one.
pub(super) async fn claim<R, E>(
    guard: &Guard<Claims>,
    delivery: &Delivery,
    state: &RunState<R, E>,
    has_waited: &mut bool,
) -> Result<Claim, Ended<R, E>> {
    let mut wait = FIRST_WAIT;
    loop {
        let is_awaited = || !state.is_detached();
        let admitted = pin!(guard.next.admit(&guard.auth, delivery, is_awaited));
        let too_slow = || Err(Refusal::new(RefusalKind::StoreTooSlow));
        let admitted = in_time(admitted, || *has_waited = true).await;
        let admitted = admitted.unwrap_or_else(too_slow);
        let lease_left = match admitted.map_err(Ended::refused)? {
            Admission::Fresh(claim) => return Ok(claim),
            Admission::Replayed { same_body } => {
                return Err(Ended::own(Outcome::Replayed { same_body }));
            }
            Admission::Running { retry_after } => retry_after,
        };
        state
            .wait(&guard.settings.waiting, *delivery.key(), lease_left)
            .map_err(Ended::refused)?;
        *has_waited = true;
        // Boxed, as it is rare and must not enlarge the frame of the other runs.
        Box::pin(sleep(wait.min(lease_left.max(Duration::from_millis(1))))).await;
        wait = (wait * 2).min(LONGEST_WAIT);
        state.claims_again();
    }
}
