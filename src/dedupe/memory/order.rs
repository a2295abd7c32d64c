//! The order of all commits, in a byte each.

use std::mem::offset_of;

use super::fifo::Fifo;
use super::steps::{Limits, Steps};
use crate::dedupe::capacity::StoreStats;
use crate::dedupe::expiry::Nanos;

/// The shards of the done records, in the order of their commits: a queue for each length of retention, since each is in the order
/// of the ends, too.
///
/// A commit uses the first three fields alone, unless it begins another batch, or evicts. With the lock they take one cache line: each
/// other line that a thread writes would have to come from one core to the other with each commit.
#[repr(C)] // keeps the fields in this order
pub(super) struct Order {
    len: usize,
    /// No retention ends before this.
    next_end: Nanos,
    batch: Batch,
    /// None is empty.
    queues: Vec<Queue>,
    /// The age of an evicted record is exact to a 4,000th of the capacity, and of the retention.
    steps: Limits,
    /// Only the fields about evictions are used.
    pub(super) evictions: StoreStats,
}

/// The last commits, after the last one in their queue and in the same step. They come into the queue together.
#[derive(Clone, Copy, Default)]
struct Batch {
    retention: Nanos,
    /// The last time that it takes.
    until: Nanos,
    /// The time of the last commit.
    last: Nanos,
    /// The number of commits that it takes.
    most: u8,
    len: u8,
    shards: [u8; IN_BATCH],
}

/// As many as fit into the cache line.
const IN_BATCH: usize = 14;
const _: () = assert!(size_of::<u64>() + offset_of!(Order, queues) <= 64);

struct Queue {
    retention: Nanos,
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
        let steps = Limits {
            exact: 64,
            parts: 4_000,
            records: (capacity / 4_000).max(1) as u64,
        };
        Self {
            len: 0,
            next_end: Nanos::MAX,
            batch: Batch::default(),
            queues: Vec::new(),
            steps,
            evictions: StoreStats::default(),
        }
    }

    /// Returns the number of records.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn push(&mut self, retention: Nanos, shard: u8, now: Nanos) {
        self.len += 1;
        if !self.batch.push(retention, shard, now) {
            self.begin_batch(retention, shard, now);
        }
    }

    /// Inserts a commit into its queue, and begins a batch after it.
    fn begin_batch(&mut self, retention: Nanos, shard: u8, now: Nanos) {
        self.end_batch();
        let at = self.of_retention(retention).unwrap_or_else(|| {
            self.queues.push(Queue {
                retention,
                shards: Fifo::default(),
                steps: Steps::new(retention, self.steps),
            });
            self.queues.len() - 1
        });
        if let Some(queue) = self.queues.get_mut(at) {
            queue.steps.push(queue.shards.end(), now);
            queue.shards.push(shard);
            self.next_end = self.next_end.min(now.saturating_add(retention));
            self.batch = queue.batch();
        }
    }

    /// Inserts the commits of the batch into their queue.
    fn end_batch(&mut self) {
        let batch = std::mem::take(&mut self.batch);
        let at = self.of_retention(batch.retention);
        if let Some(queue) = at.and_then(|at| self.queues.get_mut(at)) {
            queue.extend(&batch);
        }
    }

    fn of_retention(&self, retention: Nanos) -> Option<usize> {
        let mut queues = self.queues.iter();
        queues.position(|queue| queue.retention == retention)
    }

    /// Returns whether the retention of a record may have ended.
    pub(super) fn may_have_ended(&self, now: Nanos) -> bool {
        self.next_end <= now
    }

    /// Takes out a record whose retention has ended.
    pub(super) fn pop_ended(&mut self, now: Nanos) -> Option<First> {
        if !self.may_have_ended(now) {
            return None;
        }
        let ends = self.queues.iter_mut().map(Queue::first_end);
        let (at, end) = ends.enumerate().min_by_key(|(_, end)| *end)?;
        self.next_end = end;
        (end <= now).then(|| self.pop(at))?
    }

    /// Takes out a record whose retention has ended. If there is none, the record that was committed first is evicted, and counted.
    pub(super) fn evict(&mut self, now: Nanos) -> Option<First> {
        if let Some(ended) = self.pop_ended(now) {
            return Some(ended);
        }
        let times = self.queues.iter_mut().map(Queue::time_of_first);
        let (at, committed) = times.enumerate().min_by_key(|(_, time)| *time)?;
        let evicted = self.pop(at)?;
        let end = committed.saturating_add(evicted.retention);
        self.evictions.count_eviction(committed, end, now);
        Some(evicted)
    }

    fn pop(&mut self, at: usize) -> Option<First> {
        let queue = self.queues.get_mut(at)?;
        let (retention, shard) = (queue.retention, queue.shards.pop()?);
        self.len -= 1;
        if queue.shards.is_empty() {
            self.end_batch();
        }
        if self.queues.get(at)?.shards.is_empty() {
            self.queues.swap_remove(at);
        }
        Some(First { retention, shard })
    }
}

impl Batch {
    /// Adds a commit. Returns false where it does not belong to this batch.
    fn push(&mut self, retention: Nanos, shard: u8, now: Nanos) -> bool {
        let fits = self.len < self.most && self.retention == retention && now <= self.until;
        let slot = self.shards.get_mut(usize::from(self.len));
        slot.filter(|_| fits).is_some_and(|slot| {
            *slot = shard;
            self.len += 1;
            self.last = self.last.max(now);
            true
        })
    }
}

impl Queue {
    /// Returns an empty batch for commits that follow.
    fn batch(&self) -> Batch {
        let (until, records) = self.steps.room(self.shards.end());
        let most = records.min(IN_BATCH as u64);
        Batch {
            retention: self.retention,
            until,
            most: u8::try_from(most).unwrap_or(u8::MAX),
            ..Batch::default()
        }
    }

    fn extend(&mut self, batch: &Batch) {
        self.steps.extend(batch.last);
        let shards = batch.shards.iter().take(usize::from(batch.len));
        shards.for_each(|shard| self.shards.push(*shard));
    }

    fn time_of_first(&mut self) -> Nanos {
        self.steps
            .time_of_first(self.shards.first())
            .unwrap_or(Nanos::MAX)
    }

    fn first_end(&mut self) -> Nanos {
        self.time_of_first().saturating_add(self.retention)
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
