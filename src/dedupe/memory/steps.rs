//! The times of the records in a queue, one for many that came shortly after each other.

use std::collections::VecDeque;

use crate::dedupe::expiry::Nanos;

/// The times of the records in a queue, by their numbers. Each record in a step has the latest time of the step.
pub(super) struct Steps {
    steps: VecDeque<Step>,
    /// The time of the first record of the last step.
    began: Nanos,
    /// The longest step.
    width: Nanos,
    /// The most records of a step.
    records: u64,
}

/// While there are fewer steps than this, each time has its own.
const EXACT: usize = 64;

struct Step {
    /// The number of its first record.
    first: u64,
    latest: Nanos,
}

impl Steps {
    pub(super) fn new(width: Nanos, records: u64) -> Self {
        Self {
            steps: VecDeque::new(),
            began: 0,
            width,
            records,
        }
    }

    /// Notes the time of the next record.
    pub(super) fn push(&mut self, number: u64, time: Nanos) {
        let has_room = self.steps.len() >= EXACT && time.saturating_sub(self.began) < self.width;
        match self.steps.back_mut() {
            Some(step) if step.latest == time => {}
            Some(step) if has_room && number - step.first < self.records => {
                step.latest = step.latest.max(time);
            }
            _ => {
                self.began = time;
                self.steps.push_back(Step {
                    first: number,
                    latest: time,
                });
            }
        }
    }

    /// Returns the time of the record with this number.
    pub(super) fn time_of(&self, number: u64) -> Option<Nanos> {
        let after = self.steps.partition_point(|step| step.first <= number);
        Some(self.steps.get(after.checked_sub(1)?)?.latest)
    }

    /// Returns the time of the first step, and the number of its first record. That record may have been dropped since.
    pub(super) fn first(&self) -> Option<(Nanos, u64)> {
        self.steps.front().map(|step| (step.latest, step.first))
    }

    /// Drops the steps in which all records have numbers below this.
    pub(super) fn drop_before(&mut self, number: u64) {
        while self.steps.get(1).is_some_and(|next| next.first <= number) {
            self.steps.pop_front();
        }
    }

    /// Drops the first step.
    pub(super) fn pop(&mut self) {
        self.steps.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDTH: Nanos = 4_000;

    /// A record every 10 ns, so that 400 of them share a step.
    #[test]
    fn no_time_is_early_and_none_late_by_more_than_a_step() {
        let mut steps = Steps::new(WIDTH, 1_000);
        let time = |number: u64| 77 + number * 10;
        for number in 0..150_000 {
            steps.push(number, time(number));
        }
        assert!(steps.steps.len() <= EXACT + 400, "{}", steps.steps.len());
        for number in 0..150_000 {
            let late = steps.time_of(number).unwrap() - time(number);
            assert!(late < WIDTH && (late == 0 || number + 1 >= EXACT as u64));
        }
        assert_eq!(steps.first(), Some((77, 0)));
        steps.drop_before(149_999);
        assert_eq!(steps.steps.len(), 1);
        assert_eq!(steps.time_of(149_999), Some(time(149_999)));
        steps.pop();
        assert_eq!((steps.first(), steps.time_of(149_999)), (None, None));
    }

    #[test]
    fn few_times_are_exact_in_any_order() {
        let mut steps = Steps::new(Nanos::MAX, 1_000);
        for number in 0..60 {
            steps.push(2 * number, number ^ 5);
            steps.push(2 * number + 1, number ^ 5);
        }
        for number in 0..120 {
            assert_eq!(steps.time_of(number), Some((number / 2) ^ 5));
        }
    }

    #[test]
    fn a_step_has_no_more_than_its_records() {
        let mut steps = Steps::new(Nanos::MAX, 1_000);
        for number in 0..100_000 {
            steps.push(number, number);
        }
        for number in (0..100_000).step_by(7) {
            let time = steps.time_of(number).unwrap();
            assert!(time >= number && time - number < 1_000);
        }
    }
}
