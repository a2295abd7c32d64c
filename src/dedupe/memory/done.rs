//! The done records of one shard whose retentions are equally long, in 15 bytes each and a place in the index.

use std::collections::VecDeque;

use super::fifo::Fifo;
use super::index::{Index, Place, TAG_BITS};
use super::steps::{Limits, Steps};
use crate::dedupe::expiry::Nanos;
use crate::dedupe::hash::KeyState;
use crate::dedupe::key::{ClaimToken, EventKey};

/// Done records in the order of their commits, which is the order in which they end.
pub(super) struct DoneRecords {
    pub(super) retention: Nanos,
    records: Fifo<Record, 128>,
    index: Index,
    steps: Steps,
    /// The tokens of the last commits, with the ends of their leases. In one buffer, which can be given back: pieces between those of
    /// the records would stay with the process.
    tokens: VecDeque<(ClaimToken, Nanos)>,
}

/// A part of an event's key, and the mark of its body. Bytes, so that an array of records has no gaps.
#[derive(Clone, Copy, Default)]
struct Record {
    key: [u8; KEY_BYTES],
    body_mark: [u8; 4],
}

/// The number of shards: so many that threads rarely wait for each other.
pub(super) const SHARDS: u8 = 64;
/// The bytes of the key that a record holds. The shard and the tag in the index are bits of a hash of the whole key, so a record is
/// identified by 88 + 6 + 7 bits. At 10,000 events a second, kept for 48 h, two are taken for one 10,000 × 31,536,000 × 1.7 × 10⁹ /
/// 2¹⁰¹ = 2 × 10⁻¹⁰ times a year.
const KEY_BYTES: usize = 11;
const _: () = assert!(KEY_BYTES * 8 + (SHARDS.ilog2() + TAG_BITS) as usize >= 96);

/// Expiry is late by at most a 240th of the retention. All steps together fill a buffer of 256.
const STEPS: Limits = Limits {
    exact: 8,
    parts: 240,
    records: u64::MAX,
};

/// An event, as the records and the index know it.
#[derive(Clone, Copy)]
pub(super) struct Identity {
    key: [u8; KEY_BYTES],
    place: Place,
}

/// A done record that was found.
#[derive(Clone, Copy)]
pub(super) struct Found {
    /// The number of commits since, with its own.
    commits: u64,
    pub(super) body_mark: u32,
}

impl Identity {
    /// Returns the identity of this event. `hash` is the hash of its whole key.
    pub(super) fn new(event: &EventKey, hash: u64, state: &KeyState) -> Self {
        let mut key = [0; KEY_BYTES];
        key.copy_from_slice(&event.as_bytes()[..KEY_BYTES]);
        let [.., tag] = hash.to_le_bytes();
        Self {
            key,
            place: Place {
                home: home(&key, state),
                tag: u32::from(tag) >> (8 - TAG_BITS),
            },
        }
    }
}

/// Hashes the part of a key that a record holds.
fn home(key: &[u8; KEY_BYTES], state: &KeyState) -> u64 {
    let mut bytes = [0; 16];
    bytes[..KEY_BYTES].copy_from_slice(key);
    state.hash(u128::from_le_bytes(bytes))
}

impl DoneRecords {
    /// `records` is the number of records that are expected in this shard when the store is full.
    pub(super) fn new(retention: Nanos, records: usize) -> Self {
        Self {
            retention,
            records: Fifo::default(),
            index: Index::new(records),
            steps: Steps::new(retention, STEPS),
            tokens: VecDeque::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Returns the record of this event, unless its retention has ended.
    pub(super) fn find(&mut self, event: &Identity, now: Nanos) -> Option<Found> {
        // Two: a claim comes before each commit, so that a backlog shrinks.
        for _ in 0..2 {
            if self.tokens.front().is_some_and(|(_, until)| *until <= now) {
                self.tokens.pop_front();
            }
        }
        if self.tokens.capacity() / 4 > self.tokens.len().max(16) {
            self.tokens.shrink_to(2 * self.tokens.len());
        }
        // An event that was claimed again after its retention has two records, until the first one is removed.
        let live = self
            .steps
            .first_live(self.retention, now, self.records.end());
        let records = &self.records;
        self.index.find(event.place, records.first(), |number| {
            let record = records
                .get(number)
                .filter(|record| record.key == event.key)?;
            let body_mark = u32::from_le_bytes(record.body_mark);
            let commits = records.end() - number;
            (number >= live).then_some(Found { commits, body_mark })
        })
    }

    /// Returns whether this token committed the record, and at most one lease ago.
    pub(super) fn is_by(&self, found: Found, token: ClaimToken, now: Nanos) -> bool {
        let at = (self.tokens.len() as u64).checked_sub(found.commits);
        let by = at.and_then(|at| self.tokens.get(usize::try_from(at).ok()?));
        by.is_some_and(|(by, until)| *by == token && now < *until)
    }

    /// Adds a record, and the token of its commit for one lease.
    pub(super) fn push(
        &mut self,
        event: &Identity,
        token: ClaimToken,
        now: Nanos,
        lease: Nanos,
        state: &KeyState,
    ) {
        let number = self.records.end();
        self.records.push(Record {
            key: event.key,
            body_mark: token.body_mark().to_le_bytes(),
        });
        let (records, first) = (&self.records, self.records.first());
        self.index.insert(event.place, number, first, |number| {
            records
                .get(number)
                .map_or(0, |record| home(&record.key, state))
        });
        self.steps.push(number, now);
        self.tokens.push_back((token, now.saturating_add(lease)));
    }

    /// Removes the record that was committed first.
    pub(super) fn pop(&mut self, state: &KeyState) {
        let number = self.records.first();
        let Some(record) = self.records.pop() else {
            return;
        };
        self.index.remove(home(&record.key, state), number);
        if self.tokens.len() as u64 > self.records.end() - self.records.first() {
            self.tokens.pop_front();
        }
    }
}
