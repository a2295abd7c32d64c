//! The order of all commits, in a byte each.

use super::fifo::Fifo;
use super::steps::{Limits, Steps};
use crate::dedupe::capacity::StoreStats;
use crate::dedupe::expiry::Nanos;

/// The shards of the done records, in the order of their commits: a queue for each length of retention, since each is in the order
/// of the ends, too.
pub(super) struct Order {
    queues: Vec<Queue>,
    /// The age of an evicted record is exact to a 4,000th of the capacity, and of the retention.
    steps: Limits,
    len: usize,
    /// Only the fields about evictions are used.
    pub(super) evictions: StoreStats,
}

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
            queues: Vec::new(),
            steps,
            len: 0,
            evictions: StoreStats::default(),
        }
    }

    /// Returns the number of records.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn push(&mut self, retention: Nanos, shard: u8, now: Nanos) {
        let at = self
            .queues
            .iter()
            .position(|queue| queue.retention == retention);
        let at = at.unwrap_or_else(|| {
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
            self.len += 1;
        }
    }

    /// Returns whether the retention of a record has ended.
    pub(super) fn has_ended(&mut self, now: Nanos) -> bool {
        self.queues.iter_mut().any(|queue| queue.has_ended(now))
    }

    /// Takes out a record whose retention has ended.
    pub(super) fn pop_ended(&mut self, now: Nanos) -> Option<First> {
        let at = self
            .queues
            .iter_mut()
            .position(|queue| queue.has_ended(now))?;
        self.pop(at)
    }

    /// Takes out a record whose retention has ended. If there is none, the record that was committed first is evicted, and counted.
    pub(super) fn evict(&mut self, now: Nanos) -> Option<First> {
        if let Some(ended) = self.pop_ended(now) {
            return Some(ended);
        }
        let times = self
            .queues
            .iter_mut()
            .map(|queue| queue.time_of_first().unwrap_or(Nanos::MAX));
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
            self.queues.swap_remove(at);
        }
        Some(First { retention, shard })
    }
}

impl Queue {
    fn time_of_first(&mut self) -> Option<Nanos> {
        if self.shards.is_empty() {
            return None;
        }
        self.steps.time_of_first(self.shards.first())
    }

    fn has_ended(&mut self, now: Nanos) -> bool {
        let retention = self.retention;
        let first = self.time_of_first();
        first.is_some_and(|committed| committed.saturating_add(retention) <= now)
    }
}
