//! Stores that are broken on purpose, one for each way in which real ones have failed. They prove
//! that the suite can fail.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use hookgate::{
    DedupeStore,
    clock::{Clock, Monotonic},
    dedupe::{
        Capacity, ClaimToken, Claimed, EventKey, Ownership, StoreError, StoreErrorKind, StoreFuture,
    },
};
use hookgate_testing::{Finding, StoreConformance, StoreRule};

use super::conformance::InManualTime;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// The control: without a fault, this store keeps the contract.
    None,
    /// Looks, then inserts, as two steps.
    TwoSteps,
    /// Acknowledges a copy while the first is still running.
    DoneWhenSeen,
    /// A lease that ended still keeps successors out.
    LeaseNeverEnds,
    /// A late holder may still commit.
    LateCommitCounts,
    /// Any caller can release, the holder or not.
    UnfencedRelease,
    /// Releasing keeps the record until its lease ends.
    ReleaseWaits,
    /// Renewal says that it holds, and does not.
    IdleRenewal,
    /// A commit repeated after its reply was lost finds no running claim.
    RepeatedCommitLost,
    /// A commit can be repeated for as long as its record is kept.
    RepeatsForEver,
    /// A repeated commit begins the retention again.
    RepeatedCommitExtends,
    /// A claim repeated after its reply was lost finds its own record and waits for it.
    RepeatedClaimRuns,
    /// A duplicate's look-up extends the retention.
    DuplicateExtends,
    /// The retention is the rest of the lease.
    RetentionIsLease,
    /// One retention for all: the first.
    OneRetention,
    /// Reports the whole lease of a running claim, however much of it has passed.
    WholeLease,
    /// A full store forgets anything, running claims first.
    EvictsRunning,
    /// Was set to refuse when full, and does not.
    NeverRefuses,
    /// Counts done records only: too many claims are taken.
    RefusesTooLate,
    /// Counts records that have ended.
    RefusesForEver,
    /// Has one key for all: two events can't be distinguished.
    OneKey,
}

struct Broken {
    fault: Fault,
    capacity: Capacity,
    clock: Arc<dyn Clock>,
    records: Mutex<HashMap<EventKey, Record>>,
}

#[derive(Clone, Copy)]
struct Record {
    token: ClaimToken,
    end: Monotonic,
    /// The lease of a running record, the retention of a done one.
    lasts: Duration,
    done: bool,
    /// When a commit can no longer be repeated.
    repeatable: Monotonic,
}

impl fmt::Debug for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fault.fmt(f)
    }
}

impl Broken {
    fn key(&self, key: &EventKey) -> EventKey {
        match self.fault {
            Fault::OneKey => EventKey::new("", ""),
            _ => *key,
        }
    }

    fn find(&self, key: &EventKey) -> Option<Record> {
        let record = *self.records.lock().unwrap().get(key)?;
        let ended = record.end <= self.clock.monotonic();
        let kept = self.fault == Fault::LeaseNeverEnds && !record.done;
        (!ended || kept).then_some(record)
    }

    fn put(&self, key: &EventKey, token: ClaimToken, lasts: Duration, done: bool) {
        let now = self.clock.monotonic();
        let mut records = self.records.lock().unwrap();
        let running = records.get(key).filter(|record| !record.done);
        let record = Record {
            token,
            end: now.saturating_add(lasts),
            lasts,
            done,
            repeatable: now.saturating_add(running.map_or(Duration::ZERO, |record| record.lasts)),
        };
        records.insert(*key, record);
    }

    fn make_room(&self) {
        if self.capacity.refuses_when_full() {
            return;
        }
        let any = self.fault == Fault::EvictsRunning;
        let mut records = self.records.lock().unwrap();
        let countable = records.iter().filter(|(_, record)| any || record.done);
        if countable.clone().count() >= self.capacity.records() {
            let oldest = countable.min_by_key(|(_, record)| record.end);
            let oldest = *oldest.unwrap().0;
            records.remove(&oldest);
        }
    }

    fn refuses(&self) -> bool {
        let now = self.clock.monotonic();
        let records = self.records.lock().unwrap();
        let held = records
            .values()
            .filter(|record| record.done || self.fault != Fault::RefusesTooLate)
            .filter(|record| record.end > now || self.fault == Fault::RefusesForEver)
            .count();
        self.capacity.refuses_when_full()
            && self.fault != Fault::NeverRefuses
            && held >= self.capacity.records()
    }

    fn claim_now(&self, key: &EventKey, token: ClaimToken, lease: Duration) -> Option<Claimed> {
        let found = self.find(key);
        if self.fault == Fault::TwoSteps {
            thread::yield_now();
        }
        match found {
            Some(record) if record.done => {
                if self.fault == Fault::DuplicateExtends {
                    self.put(key, record.token, record.lasts, true);
                }
                return Some(crate::expect::done_by(record.token));
            }
            Some(record) if record.token != token || self.fault == Fault::RepeatedClaimRuns => {
                if self.fault == Fault::DoneWhenSeen {
                    return Some(crate::expect::done_by(record.token));
                }
                let left = record.end.saturating_since(self.clock.monotonic());
                let whole = self.fault == Fault::WholeLease;
                let retry_after = if whole { record.lasts } else { left };
                return Some(Claimed::Running { retry_after });
            }
            Some(_) => {}
            None if self.refuses() => return None,
            None => {}
        }
        if self.fault == Fault::EvictsRunning {
            self.make_room();
        }
        self.put(key, token, lease, false);
        Some(Claimed::Fresh)
    }

    fn commit_now(&self, key: &EventKey, token: ClaimToken, retain: Duration) -> Ownership {
        match self.find(key) {
            Some(record) if record.done && record.token == token => {
                let is_over = record.repeatable <= self.clock.monotonic();
                match self.fault {
                    Fault::RepeatedCommitLost => return Ownership::Lost,
                    _ if is_over && self.fault != Fault::RepeatsForEver => return Ownership::Lost,
                    Fault::RepeatedCommitExtends => self.put(key, token, retain, true),
                    _ => {}
                }
                return Ownership::Held;
            }
            Some(record) if !record.done && record.token == token => {
                let retain = match self.fault {
                    Fault::RetentionIsLease => record.lasts,
                    Fault::OneRetention => {
                        let records = self.records.lock().unwrap();
                        let done = records.values().find(|record| record.done);
                        done.map_or(retain, |done| done.lasts)
                    }
                    _ => retain,
                };
                self.make_room();
                self.put(key, token, retain, true);
            }
            None if self.fault == Fault::LateCommitCounts => self.put(key, token, retain, true),
            _ => return Ownership::Lost,
        }
        Ownership::Held
    }

    fn release_now(&self, key: &EventKey, token: ClaimToken) -> Ownership {
        match self.find(key) {
            Some(record)
                if self.fault == Fault::UnfencedRelease
                    || (!record.done && record.token == token) =>
            {
                if self.fault != Fault::ReleaseWaits {
                    self.records.lock().unwrap().remove(key);
                }
                Ownership::Held
            }
            _ => Ownership::Lost,
        }
    }

    fn renew_now(&self, key: &EventKey, token: ClaimToken, lease: Duration) -> Ownership {
        match self.find(key) {
            Some(record) if !record.done && record.token == token => {
                if self.fault != Fault::IdleRenewal {
                    self.put(key, token, lease, false);
                }
                Ownership::Held
            }
            _ => Ownership::Lost,
        }
    }
}

/// One call at a time, but for the fault that is about it.
static STEP: Mutex<()> = Mutex::new(());

impl AtOnce for Broken {
    fn claim(&self, key: &EventKey, token: ClaimToken, lease: Duration) -> Option<Claimed> {
        let _step = (self.fault != Fault::TwoSteps).then(|| STEP.lock());
        self.claim_now(&self.key(key), token, lease)
    }

    fn renew(&self, key: &EventKey, token: ClaimToken, lease: Duration) -> Ownership {
        let _step = STEP.lock();
        self.renew_now(&self.key(key), token, lease)
    }

    fn commit(&self, key: &EventKey, token: ClaimToken, retain: Duration) -> Ownership {
        let _step = STEP.lock();
        self.commit_now(&self.key(key), token, retain)
    }

    fn release(&self, key: &EventKey, token: ClaimToken) -> Ownership {
        let _step = STEP.lock();
        self.release_now(&self.key(key), token)
    }
}

/// The calls of a store that answers each at once; a claim without an answer is refused by a full
/// store.
trait AtOnce: fmt::Debug + Send + Sync + 'static {
    fn claim(&self, key: &EventKey, token: ClaimToken, lease: Duration) -> Option<Claimed>;
    fn renew(&self, key: &EventKey, token: ClaimToken, lease: Duration) -> Ownership;
    fn commit(&self, key: &EventKey, token: ClaimToken, retain: Duration) -> Ownership;
    fn release(&self, key: &EventKey, token: ClaimToken) -> Ownership;
}

#[derive(Debug)]
struct Answers<S>(S);

impl<S: AtOnce> DedupeStore for Answers<S> {
    fn claim<'a>(
        &'a self,
        key: &'a EventKey,
        token: ClaimToken,
        lease: Duration,
    ) -> StoreFuture<'a, Claimed> {
        let claimed = self.0.claim(key, token, lease);
        StoreFuture::ready(claimed.ok_or_else(|| StoreError::new(StoreErrorKind::Full)))
    }

    fn renew<'a>(
        &'a self,
        key: &'a EventKey,
        token: ClaimToken,
        lease: Duration,
    ) -> StoreFuture<'a, Ownership> {
        StoreFuture::ready(Ok(self.0.renew(key, token, lease)))
    }

    fn commit<'a>(
        &'a self,
        key: &'a EventKey,
        token: ClaimToken,
        retain: Duration,
    ) -> StoreFuture<'a, Ownership> {
        StoreFuture::ready(Ok(self.0.commit(key, token, retain)))
    }

    fn release<'a>(&'a self, key: &'a EventKey, token: ClaimToken) -> StoreFuture<'a, Ownership> {
        StoreFuture::ready(Ok(self.0.release(key, token)))
    }
}

/// The rules that a store with this fault is found to break.
async fn broken_by(fault: Fault) -> Vec<StoreRule> {
    let open = move |capacity, clock| -> Option<Arc<dyn DedupeStore>> {
        let records = Mutex::default();
        Some(Arc::new(Answers(Broken {
            fault,
            capacity,
            clock,
            records,
        })))
    };
    let suite = StoreConformance::new(InManualTime(open, super::clock()));
    suite.run().await.broken().collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn each_fault_breaks_the_rule_that_names_it() {
    assert_eq!(broken_by(Fault::None).await, []);
    for (fault, rule) in [
        (Fault::TwoSteps, StoreRule::OneWinner),
        (Fault::DoneWhenSeen, StoreRule::OneWinner),
        (Fault::DoneWhenSeen, StoreRule::Table),
        (Fault::LeaseNeverEnds, StoreRule::LeaseEnds),
        (Fault::LateCommitCounts, StoreRule::StaleToken),
        (Fault::UnfencedRelease, StoreRule::StaleToken),
        (Fault::UnfencedRelease, StoreRule::Table),
        (Fault::ReleaseWaits, StoreRule::ReleaseReopens),
        (Fault::IdleRenewal, StoreRule::RenewalHolds),
        (Fault::RepeatedCommitLost, StoreRule::RepeatedCalls),
        (Fault::RepeatsForEver, StoreRule::RepeatsEnd),
        (Fault::RepeatedCommitExtends, StoreRule::RepeatedCalls),
        (Fault::RepeatedClaimRuns, StoreRule::RepeatedCalls),
        (Fault::DuplicateExtends, StoreRule::DuplicatesExtendNothing),
        (Fault::RetentionIsLease, StoreRule::RetentionEnds),
        (Fault::OneRetention, StoreRule::RetentionIsEachRecords),
        (Fault::WholeLease, StoreRule::RetryAfter),
        (Fault::EvictsRunning, StoreRule::RunningNeverEvicted),
        (Fault::NeverRefuses, StoreRule::FullStoreRefuses),
        (Fault::RefusesTooLate, StoreRule::FullStoreRefuses),
        (Fault::RefusesForEver, StoreRule::FullStoreRefuses),
        (Fault::OneKey, StoreRule::ScopesApart),
    ] {
        let broken = broken_by(fault).await;
        assert!(broken.contains(&rule), "{fault:?} broke {broken:?}");
    }
}

mod caches {
    //! moka as it comes, and moka with the right policy but read in the plain way.

    use moka::policy::EvictionPolicy;
    use moka::sync::Cache;

    use super::*;

    #[derive(Debug)]
    struct Plain {
        running: Mutex<HashMap<EventKey, ClaimToken>>,
        done: Cache<EventKey, ClaimToken>,
    }

    impl AtOnce for Plain {
        fn claim(&self, key: &EventKey, token: ClaimToken, _: Duration) -> Option<Claimed> {
            let mut running = self.running.lock().unwrap();
            Some(if let Some(by) = self.done.get(key) {
                crate::expect::done_by(by)
            } else if *running.entry(*key).or_insert(token) == token {
                Claimed::Fresh
            } else {
                let retry_after = Duration::from_secs(1);
                Claimed::Running { retry_after }
            })
        }

        fn renew(&self, _: &EventKey, _: ClaimToken, _: Duration) -> Ownership {
            Ownership::Held
        }

        fn commit(&self, key: &EventKey, token: ClaimToken, _: Duration) -> Ownership {
            let mut running = self.running.lock().unwrap();
            self.done.insert(*key, token);
            running.remove(key);
            Ownership::Held
        }

        fn release(&self, _: &EventKey, _: ClaimToken) -> Ownership {
            Ownership::Lost
        }
    }

    async fn findings(policy: EvictionPolicy) -> [Finding; 2] {
        let open = move |capacity: Capacity, _| -> Option<Arc<dyn DedupeStore>> {
            let done = Cache::builder()
                .max_capacity(capacity.records() as u64)
                .eviction_policy(policy.clone())
                .build();
            let running = Mutex::default();
            Some(Arc::new(Answers(Plain { running, done })))
        };
        let suite = StoreConformance::new(InManualTime(open, crate::stores::clock()));
        [
            suite.check(StoreRule::NewestRemembered).await,
            suite.check(StoreRule::NewestRememberedAfterReads).await,
        ]
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn the_default_policy_of_moka_forgets_what_is_new() {
        let [_, after_reads] = findings(EvictionPolicy::tiny_lfu()).await;
        assert!(matches!(after_reads, Finding::Broken(_)), "{after_reads:?}");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn a_get_that_counts_as_a_use_forgets_what_is_new() {
        let [unread, after_reads] = findings(EvictionPolicy::lru()).await;
        assert_eq!(unread, Finding::Kept);
        assert!(matches!(after_reads, Finding::Broken(_)), "{after_reads:?}");
    }
}
