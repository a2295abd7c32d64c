//! The times of commits, one for many records that were committed shortly after each other.

use std::collections::VecDeque;

use crate::dedupe::expiry::Nanos;

/// The times of the records in a queue, by their numbers.
///
/// Each record in a step counts as committed at the time of the last one, so none ends too early. A step is no longer than a given
/// part of the retention, so none ends later than that. While there are few steps, each time has its own.
pub(super) struct Steps {
    steps: VecDeque<Step>,
    /// The time of the first record of the last step.
    began: Nanos,
    /// The longest step.
    width: Nanos,
    exact: usize,
}

struct Step {
    /// The number of its first record.
    first: u64,
    /// The time of its last record.
    last: Nanos,
}

impl Steps {
    /// Returns the steps for records of this retention: the times of this number are exact, and of a retention there are at most this
    /// number of parts more.
    pub(super) fn new(retention: Nanos, exact: usize, parts: Nanos) -> Self {
        Self {
            steps: VecDeque::new(),
            began: 0,
            width: retention / parts,
            exact,
        }
    }

    /// Notes the time of the next record. Times do not run backwards.
    pub(super) fn push(&mut self, number: u64, now: Nanos) {
        let is_exact = self.steps.len() < self.exact;
        match self.steps.back_mut() {
            Some(step) if step.last >= now => {}
            Some(step) if !is_exact && now - self.began < self.width => step.last = now,
            _ => {
                self.began = now;
                self.steps.push_back(Step {
                    first: number,
                    last: now,
                });
            }
        }
    }

    /// Returns the time of the record with this number. The records before it are gone.
    pub(super) fn time_of_first(&mut self, number: u64) -> Option<Nanos> {
        while self.steps.get(1).is_some_and(|next| next.first <= number) {
            self.steps.pop_front();
        }
        self.steps.front().map(|step| step.last)
    }

    /// Returns the number of the first record whose retention has not ended; `end`, if there is none.
    pub(super) fn first_live(&mut self, retention: Nanos, now: Nanos, end: u64) -> u64 {
        let has_ended = |step: &Step| step.last.saturating_add(retention) <= now;
        while self.steps.front().is_some_and(has_ended) {
            self.steps.pop_front();
        }
        self.steps.front().map_or(end, |step| step.first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RETENTION: Nanos = 1_000_000;
    const EXACT: usize = 64;
    const PARTS: Nanos = 250;

    /// A record every 10 ns, so that 400 of them share a step.
    #[test]
    fn no_record_ends_early_and_none_late_by_more_than_a_part() {
        let mut steps = Steps::new(RETENTION, EXACT, PARTS);
        let time = |number: u64| 77 + number * 10;
        for number in 0..150_000 {
            steps.push(number, time(number));
        }
        assert!(steps.steps.len() <= EXACT + 400, "{}", steps.steps.len());
        for now in (0..3_000_000).step_by(999) {
            let live = steps.first_live(RETENTION, now, 150_000);
            // All before it have ended, and the one at it has not, or ended at most a part ago.
            assert!(live == 0 || time(live - 1) + RETENTION <= now);
            assert!(live == 150_000 || now < time(live) + RETENTION + RETENTION / PARTS);
        }
    }

    #[test]
    fn few_times_are_exact() {
        let mut steps = Steps::new(RETENTION, EXACT, PARTS);
        for number in 0..60 {
            steps.push(2 * number, number);
            steps.push(2 * number + 1, number);
        }
        for number in 0..60 {
            assert_eq!(steps.time_of_first(2 * number + 1), Some(number));
        }
        assert_eq!(steps.first_live(RETENTION, 59 + RETENTION - 1, 120), 118);
        assert_eq!(steps.first_live(RETENTION, 59 + RETENTION, 120), 120);
    }
}
