//! The times of commits, one for many records that were committed shortly after each other.

use std::collections::VecDeque;

use crate::dedupe::expiry::Nanos;

/// The times of the records in a queue, by their numbers.
///
/// Each record in a step counts as committed at the time of the last one, so none ends too early. A step is no longer than a given
/// part of the retention, so none ends later than that.
pub(super) struct Steps {
    steps: VecDeque<Step>,
    /// The time of the first record of the last step.
    began: Nanos,
    limits: Limits,
    /// The longest step.
    width: Nanos,
}

/// The limits of steps.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// While there are fewer steps than this, each time has its own.
    pub(super) exact: usize,
    /// No step is longer than a retention divided by this.
    pub(super) parts: Nanos,
    /// No step has more records than this.
    pub(super) records: u64,
}

struct Step {
    /// The number of its first record.
    first: u64,
    /// The time of its last record.
    last: Nanos,
}

impl Steps {
    pub(super) fn new(retention: Nanos, limits: Limits) -> Self {
        Self {
            steps: VecDeque::new(),
            began: 0,
            limits,
            width: retention / limits.parts,
        }
    }

    /// Notes the time of the next record. One that is before the last time counts as that: readings of two threads may come in
    /// either order.
    pub(super) fn push(&mut self, number: u64, now: Nanos) {
        let is_exact = self.steps.len() < self.limits.exact;
        let fits = |step: &Step| {
            number - step.first < self.limits.records && now - self.began < self.width
        };
        match self.steps.back_mut() {
            Some(step) if step.last >= now => {}
            Some(step) if !is_exact && fits(step) => step.last = now,
            _ => {
                self.began = now;
                self.steps.push_back(Step {
                    first: number,
                    last: now,
                });
            }
        }
    }

    /// Returns the last time, and the number of records, that the last step takes beside those that it has. `end` is the number of
    /// the next record.
    pub(super) fn room(&self, end: u64) -> (Nanos, u64) {
        let Some(step) = self.steps.back() else {
            return (0, 0);
        };
        let is_exact = self.steps.len() < self.limits.exact;
        let width = if is_exact { 0 } else { self.width };
        let until = self.began.saturating_add(width.saturating_sub(1));
        let records = step.first.saturating_add(self.limits.records);
        (until.max(step.last), records.saturating_sub(end))
    }

    /// Notes the time of the last one of some records, for which there was [room](Self::room).
    pub(super) fn extend(&mut self, last: Nanos) {
        if let Some(step) = self.steps.back_mut() {
            step.last = step.last.max(last);
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
    const PARTS: Nanos = 250;
    const LIMITS: Limits = Limits {
        exact: EXACT,
        parts: PARTS,
        records: 1_000,
    };
    const EXACT: usize = 64;

    /// A record every 10 ns, so that 400 of them share a step.
    #[test]
    fn no_record_ends_early_and_none_late_by_more_than_a_part() {
        let mut steps = Steps::new(RETENTION, LIMITS);
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
        let mut steps = Steps::new(RETENTION, LIMITS);
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

    #[test]
    fn a_step_has_no_more_than_its_records() {
        let mut steps = Steps::new(Nanos::MAX, LIMITS);
        for number in 0..100_000 {
            steps.push(number, number);
        }
        for number in (0..100_000).step_by(7) {
            let time = steps.time_of_first(number).unwrap();
            assert!(time >= number && time - number < 1_000);
        }
    }
}
