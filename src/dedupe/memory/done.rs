//! The done records of one shard whose retentions are equally long, in 15 bytes each and a place in the index.

use super::fifo::Fifo;
use super::index::{Index, Place, TAG_BITS};
use super::steps::Steps;
use crate::dedupe::expiry::Nanos;
use crate::dedupe::hash::KeyState;
use crate::dedupe::key::{ClaimToken, EventKey};

/// Done records in the order of their commits, which is the order in which they end.
pub(super) struct DoneRecords {
    records: Fifo<Record, 128>,
    index: Index,
    /// The halves of the last tokens that are unique to a claim, by the numbers of the records, and the ends of their leases.
    tokens: Fifo<[u8; 8], 128>,
    leases: Steps,
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
/// The most tokens that are kept as long as the last one of them, where there are many.
const IN_STEP: u64 = 64;

/// An event, as the shards, the records and the index know it.
#[derive(Clone, Copy)]
pub(super) struct Identity {
    pub(super) shard: u8,
    key: [u8; KEY_BYTES],
    place: Place,
}

/// A done record that was found.
#[derive(Clone, Copy)]
pub(super) struct Found {
    number: u64,
    pub(super) body_mark: u32,
}

impl Identity {
    pub(super) fn new(event: &EventKey, state: &KeyState) -> Self {
        let mut key = [0; KEY_BYTES];
        key.copy_from_slice(&event.as_bytes()[..KEY_BYTES]);
        let hash = state.hash(u128::from_le_bytes(*event.as_bytes()));
        let [.., shard, _, tag] = hash.to_le_bytes();
        Self {
            shard: shard % SHARDS,
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
    pub(super) fn new(records: usize) -> Self {
        Self {
            records: Fifo::default(),
            index: Index::new(records),
            tokens: Fifo::default(),
            leases: Steps::new(Nanos::MAX, IN_STEP),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    pub(super) fn find(&self, event: &Identity) -> Option<Found> {
        let first = self.records.first();
        self.index.find(event.place, first, |number| {
            let record = self.records.get(number)?;
            let body_mark = u32::from_le_bytes(record.body_mark);
            (record.key == event.key).then_some(Found { number, body_mark })
        })
    }

    /// Returns whether this token committed the record, and at most one lease ago.
    pub(super) fn is_by(&self, found: Found, token: ClaimToken, now: Nanos) -> bool {
        self.tokens.get(found.number) == Some(unique(token))
            && found.body_mark == token.body_mark()
            && self
                .leases
                .time_of(found.number)
                .is_some_and(|end| now < end)
    }

    /// Adds a record, and the token of its commit until this end.
    pub(super) fn push(
        &mut self,
        event: &Identity,
        token: ClaimToken,
        now: Nanos,
        end: Nanos,
        state: &KeyState,
    ) {
        let number = self.records.end();
        self.records.push(Record {
            key: event.key,
            body_mark: token.body_mark().to_le_bytes(),
        });
        let (records, first) = (&self.records, self.records.first());
        self.index.insert(event.place, number, first, |number| {
            let record = records.get(number).unwrap_or_default();
            home(&record.key, state)
        });
        self.tokens.push(unique(token));
        self.leases.push(number, end);
        self.forget_tokens(now);
    }

    /// Removes the record that was committed first.
    pub(super) fn pop(&mut self, state: &KeyState) {
        let number = self.records.first();
        if let Some(record) = self.records.pop() {
            self.index.remove(home(&record.key, state), number);
            self.drop_tokens_before(number + 1);
        }
    }

    /// Drops the tokens of some leases that have ended.
    fn forget_tokens(&mut self, now: Nanos) {
        // Two steps: a commit adds at most one, so that a backlog shrinks.
        for _ in 0..2 {
            if self.leases.first().is_some_and(|(end, _)| end <= now) {
                self.leases.pop();
                let next = self.leases.first();
                self.drop_tokens_before(next.map_or(self.tokens.end(), |(_, number)| number));
            }
        }
    }

    fn drop_tokens_before(&mut self, number: u64) {
        while self.tokens.first() < number {
            self.tokens.pop();
        }
        self.leases.drop_before(number);
    }
}

fn unique(token: ClaimToken) -> [u8; 8] {
    let mut half = [0; 8];
    half.copy_from_slice(&token.as_bytes()[..8]);
    half
}
