//! Decides which refusals of unauthenticated requests are logged at WARN. Any client can cause them, so they must not fill a
//! log.

use std::mem;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::clock::Monotonic;

/// The time from one line to the next.
const BETWEEN_LINES: Duration = Duration::from_secs(1);
/// A reason that was not logged for this long is logged at once, however many other lines there are.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);

/// The latest lines of one receiver.
#[derive(Default)]
pub(crate) struct Warnings(Mutex<Logged>);

#[derive(Default)]
struct Logged {
    last: Option<Monotonic>,
    /// At most one entry for each reason.
    by_reason: Vec<(&'static str, Monotonic)>,
    suppressed: u64,
}

impl Warnings {
    /// Returns whether a refusal with this reason is logged at WARN, and not at DEBUG: then, the number of refusals that were not at
    /// WARN since the last such line.
    pub(super) fn warned(&self, reason: &'static str, now: Monotonic) -> Option<u64> {
        let mut logged = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Logged {
            last,
            by_reason,
            suppressed,
        } = &mut *logged;
        let within = |since: Monotonic, time| now.saturating_since(since) < time;
        let known = by_reason.iter_mut().find(|(name, _)| *name == reason);
        let lately = known
            .as_ref()
            .is_some_and(|(_, at)| within(*at, FORGOTTEN_AFTER));
        if lately && last.is_some_and(|last| within(last, BETWEEN_LINES)) {
            *suppressed = suppressed.saturating_add(1);
            return None;
        }
        *last = Some(now);
        match known {
            Some((_, at)) => *at = now,
            None => by_reason.push((reason, now)),
        }
        Some(mem::take(suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Monotonic {
        Monotonic::new(Duration::from_millis(millis))
    }

    #[test]
    fn a_flood_of_all_reasons_is_a_line_a_second_and_each_reason_once_a_minute() {
        const REASONS: [&str; 5] = ["a", "b", "c", "d", "e"];
        let warnings = Warnings::default();
        let (mut lines, mut requests) = (0, 0);
        for millis in (0..600_000).step_by(10) {
            for reason in REASONS {
                requests += 1;
                if let Some(suppressed) = warnings.warned(reason, at(millis)) {
                    lines += 1;
                    requests -= 1 + suppressed;
                }
            }
        }
        // Ten minutes, at most one line a second and one more for each reason a minute.
        assert!((600..=600 + 10 * 5).contains(&lines), "{lines}");
        // All requests are logged or counted, except those since the last line.
        assert!(requests < 5 * 101, "{requests}");
    }

    #[test]
    fn a_reason_that_was_not_logged_for_a_minute_is_logged_at_once() {
        let warnings = Warnings::default();
        assert_eq!(warnings.warned("a", at(0)), Some(0));
        assert_eq!(warnings.warned("b", at(1)), Some(0));
        assert_eq!(warnings.warned("a", at(2)), None);
        for second in 1..60 {
            let suppressed = u64::from(second == 1);
            let warned = warnings.warned("a", at(second * 1_000 + 1));
            assert_eq!(warned, Some(suppressed));
        }
        assert_eq!(warnings.warned("b", at(60_000)), None);
        assert_eq!(warnings.warned("b", at(60_001)), Some(1));
        assert_eq!(warnings.warned("b", at(60_002)), None);
    }
}
