use std::{collections::HashMap, sync::Mutex, sync::PoisonError, time::Duration};

use hookgate::{
    DedupeStore,
    clock::{Clock, Monotonic},
    dedupe::{ClaimToken, Claimed, EventKey, Ownership},
};

/// One lock over all records, so that each call is one indivisible step. In a database a call is
/// one statement or transaction, in `StoreFuture::boxed(async move { … })`; its clock is the
/// database's, and a task deletes records that have ended.
#[derive(Debug)]
pub(crate) struct MapStore<C>(pub(crate) C, pub(crate) Mutex<HashMap<EventKey, Record>>);

type Answer<T> = hookgate::dedupe::StoreFuture<'static, T>;
type Found = Option<Record>;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    token: ClaimToken,
    lease: Duration,
    done_at: Option<Monotonic>,
    end: Monotonic,
}

impl<C: Clock> MapStore<C> {
    /// Reads the record, unless its lease or retention has ended, and writes it as the step leaves
    /// it.
    fn step<T, F: FnOnce(&mut Found, Monotonic) -> T>(&self, key: &EventKey, step: F) -> Answer<T> {
        let mut records = self.1.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.0.monotonic();
        let mut record = records.remove(key).filter(|record| record.end > now);
        let answer = step(&mut record, now);
        records.extend(record.map(|record| (*key, record)));
        Answer::ready(Ok(answer))
    }
}

impl<C: Clock> DedupeStore for MapStore<C> {
    fn claim(&self, key: &EventKey, token: ClaimToken, lease: Duration) -> Answer<Claimed> {
        self.step(key, |record, now| match *record {
            Some(found) if found.done_at.is_some() => Claimed::Done {
                body_mark: found.token.body_mark(),
            },
            Some(found) if found.token != token => Claimed::Running {
                retry_after: found.end.saturating_since(now),
            },
            _ => {
                *record = Some(Record {
                    token,
                    lease,
                    done_at: None,
                    end: now.saturating_add(lease),
                });
                Claimed::Fresh
            }
        })
    }

    fn renew(&self, key: &EventKey, token: ClaimToken, lease: Duration) -> Answer<Ownership> {
        self.step(key, |record, now| match record {
            Some(found) if found.token == token && found.done_at.is_none() => {
                (found.lease, found.end) = (lease, now.saturating_add(lease));
                Ownership::Held
            }
            _ => Ownership::Lost,
        })
    }

    fn commit(&self, key: &EventKey, token: ClaimToken, retain: Duration) -> Answer<Ownership> {
        self.step(key, |record, now| match record {
            Some(found) if found.token == token => match found.done_at {
                // Once more: within one lease.
                Some(at) if now.saturating_since(at) >= found.lease => Ownership::Lost,
                Some(_) => Ownership::Held,
                None => {
                    (found.done_at, found.end) = (Some(now), now.saturating_add(retain));
                    Ownership::Held
                }
            },
            _ => Ownership::Lost,
        })
    }

    fn release(&self, key: &EventKey, token: ClaimToken) -> Answer<Ownership> {
        self.step(key, |record, _| {
            let held = record.take_if(|found| found.token == token && found.done_at.is_none());
            held.map_or(Ownership::Lost, |_| Ownership::Held)
        })
    }
}
