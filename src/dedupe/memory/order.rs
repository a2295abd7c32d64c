//! The order of all commits, in a byte each.

use std::collections::BTreeMap;

use super::fifo::Fifo;
use super::steps::Steps;
use crate::dedupe::capacity::StoreStats;
use crate::dedupe::expiry::Nanos;

/// The shards of the done records, in the order of their commits: a queue for each length of retention, since each is in the order
/// of the ends, too. In cache lines of its own, like a shard.
#[repr(align(128))]
pub(super) struct Order {
    len: usize,
    /// By the retention. None is empty.
    queues: BTreeMap<Nanos, Queue>,
    /// The most records of a step.
    in_step: u64,
    /// Only the fields about evictions are used.
    pub(super) evictions: StoreStats,
}

/// The time of a record is exact to a part of the capacity, and of the retention.
const PARTS: usize = 4_000;

struct Queue {
    shards: Fifo<u8, 4_096>,
    steps: Steps,
}

/// The record that was committed first, of those of one retention in one shard.
pub(super) struct First {
    pub(super) retention: Nanos,
    pub(super) shard: u8,
}

impl Order {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            len: 0,
            queues: BTreeMap::new(),
            in_step: (capacity / PARTS).max(1) as u64,
            evictions: StoreStats::default(),
        }
    }

    /// Returns the number of records.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn push(&mut self, retention: Nanos, shard: u8, now: Nanos) {
        let queue = self.queues.entry(retention).or_insert_with(|| Queue {
            shards: Fifo::default(),
            steps: Steps::new(retention / PARTS as u64, self.in_step),
        });
        queue.steps.push(queue.shards.end(), now);
        queue.shards.push(shard);
        self.len += 1;
    }

    /// Returns the end of the retention that ends first.
    pub(super) fn next_end(&self) -> Nanos {
        self.ends().min().map_or(Nanos::MAX, |(end, _)| end)
    }

    /// Takes out a record whose retention has ended.
    pub(super) fn pop_ended(&mut self, now: Nanos) -> Option<First> {
        let (end, retention) = self.ends().min()?;
        (end <= now).then(|| self.pop(retention))?
    }

    /// Takes out a record whose retention has ended. If there is none, the record that was committed first is evicted, and counted.
    pub(super) fn evict(&mut self, now: Nanos) -> Option<First> {
        if let Some(ended) = self.pop_ended(now) {
            return Some(ended);
        }
        let times = self.queues.iter();
        let times = times.map(|(retention, queue)| (queue.time_of_first(), *retention));
        let (committed, retention) = times.min()?;
        let end = committed.saturating_add(retention);
        self.evictions.count_eviction(committed, end, now);
        self.pop(retention)
    }

    /// Returns the end of the first record of each queue, with the retention.
    fn ends(&self) -> impl Iterator<Item = (Nanos, Nanos)> {
        let queues = self.queues.iter();
        queues.map(|(retention, queue)| {
            let end = queue.time_of_first().saturating_add(*retention);
            (end, *retention)
        })
    }

    fn pop(&mut self, retention: Nanos) -> Option<First> {
        let queue = self.queues.get_mut(&retention)?;
        let shard = queue.shards.pop()?;
        queue.steps.drop_before(queue.shards.first());
        self.len -= 1;
        if queue.shards.is_empty() {
            self.queues.remove(&retention);
        }
        Some(First { retention, shard })
    }
}

impl Queue {
    fn time_of_first(&self) -> Nanos {
        self.steps.first().map_or(Nanos::MAX, |(time, _)| time)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::hash::{BuildHasher, RandomState};

    use super::*;

    const RETENTIONS: [Nanos; 2] = [4_000_000, 1_000_000];
    /// Ten records in a step.
    const CAPACITY: usize = 40_000;

    /// The commits that have not left, by their retentions.
    #[derive(Default)]
    struct Model([VecDeque<(u8, Nanos)>; 2]);

    impl Model {
        fn pop(&mut self, first: &First) -> Nanos {
            let at = RETENTIONS.iter().position(|one| *one == first.retention);
            let (shard, time) = self.0[at.unwrap()].pop_front().unwrap();
            assert_eq!(shard, first.shard);
            time
        }

        fn firsts(&self) -> impl Iterator<Item = (Nanos, Nanos)> {
            let queues = RETENTIONS.into_iter().zip(&self.0);
            queues.filter_map(|(retention, queue)| Some((retention, queue.front()?.1)))
        }

        fn len(&self) -> usize {
            self.0.iter().map(VecDeque::len).sum()
        }
    }

    /// With one retention and with two, while more come than leave, and then while fewer come.
    #[test]
    fn records_leave_in_the_order_of_their_commits() {
        let random = RandomState::new();
        for lengths in [1, 2] {
            let (mut order, mut model) = (Order::new(CAPACITY), Model::default());
            let mut now = 0;
            for number in 0..200_000_u64 {
                let [commits, evicts, shard, length, waits, ..] =
                    random.hash_one(number).to_le_bytes();
                now += [0, 0, 1, 20, 300, 3_000][usize::from(waits) % 6];
                if commits < if number % 60_000 < 40_000 { 200 } else { 60 } {
                    let length = usize::from(length) % lengths;
                    order.push(RETENTIONS[length], shard, now);
                    model.0[length].push_back((shard, now));
                } else if evicts < 128 {
                    if let Some(first) = order.evict(now) {
                        let time = model.pop(&first);
                        let ended = time + first.retention <= now;
                        let mut others = model.firsts();
                        assert!(
                            ended || others.all(|(width, other)| time <= other + width / 4_000)
                        );
                    }
                } else if let Some(first) = order.pop_ended(now) {
                    assert!(model.pop(&first) + first.retention <= now);
                } else {
                    let late = |(length, time)| time + length + length / 4_000 <= now;
                    assert!(!model.firsts().any(late));
                }
                assert_eq!(order.len(), model.len());
            }
            while let Some(first) = order.evict(now) {
                model.pop(&first);
            }
            assert_eq!((order.len(), model.len()), (0, 0));
            assert!(order.queues.is_empty() && order.evictions.evicted > 1_000);
        }
    }

    /// As exact as where each record has its own time, to a 4,000th.
    #[test]
    fn the_age_of_an_evicted_record_is_exact() {
        let mut order = Order::new(CAPACITY);
        let time = |number: u64| number * 7;
        for number in 0..400_000 {
            order.push(Nanos::MAX, 1, time(number));
            if number >= 40_000 {
                order.evict(time(number)).unwrap();
                let age = order.evictions.last_evicted.unwrap().as_nanos();
                assert!((39_990 * 7..=40_000 * 7).contains(&age), "{age}");
            }
        }
        assert_eq!(order.evictions.evicted, 360_000);
    }
}
