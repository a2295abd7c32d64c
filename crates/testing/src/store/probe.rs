//! A store whose answers are compared with the expected ones. The rules use it.

use std::fmt::Debug;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hookgate::{
    DedupeStore,
    dedupe::{Capacity, ClaimToken, Claimed, EventKey, Ownership, StoreFuture},
};

/// Whether a rule is kept, and if not, how it is broken.
pub(super) type Kept = Result<(), String>;

pub(super) struct Probe {
    pub(super) store: Arc<dyn DedupeStore>,
    unit: Duration,
}

/// The answer to a claim, as far as a rule can predict it.
#[derive(Debug, PartialEq)]
pub(super) enum Answer {
    Fresh,
    Running,
    Done { body_mark: u32 },
}

impl Probe {
    pub(super) fn new(store: Arc<dyn DedupeStore>, unit: Duration) -> Self {
        Self { store, unit }
    }

    pub(super) fn units(&self, units: u32) -> Duration {
        self.unit.saturating_mul(units)
    }

    /// A duration for rules in which no time passes.
    pub(super) fn long(&self) -> Duration {
        self.units(1000)
    }

    pub(super) fn event(&self, name: &str) -> OneEvent<'_> {
        self.event_of(key(name))
    }

    pub(super) fn event_of(&self, key: EventKey) -> OneEvent<'_> {
        OneEvent { probe: self, key }
    }
}

/// The calls about one event.
pub(super) struct OneEvent<'a> {
    probe: &'a Probe,
    pub(super) key: EventKey,
}

impl OneEvent<'_> {
    pub(super) async fn claim(
        &self,
        token: ClaimToken,
        lease: Duration,
        expected: Answer,
        when: &str,
    ) -> Kept {
        let answer =
            match answered("claim", self.probe.store.claim(&self.key, token, lease)).await? {
                Claimed::Fresh => Answer::Fresh,
                Claimed::Running { .. } => Answer::Running,
                Claimed::Done { body_mark } => Answer::Done { body_mark },
            };
        same("claim", answer, expected, when)
    }

    /// Claims a fresh event.
    pub(super) async fn begin(&self, token: ClaimToken, lease: Duration) -> Kept {
        self.claim(token, lease, Answer::Fresh, "of a fresh event")
            .await
    }

    /// Commits a running claim.
    pub(super) async fn end(&self, token: ClaimToken, retain: Duration) -> Kept {
        self.commit(token, retain, Ownership::Held, "of a running claim")
            .await
    }

    /// Claims the event for another delivery of it, with a claim token of its own and a long lease.
    pub(super) async fn copy_claims(&self, expected: Answer, when: &str) -> Kept {
        self.claim(token(), self.probe.long(), expected, when).await
    }

    pub(super) async fn renew(
        &self,
        token: ClaimToken,
        lease: Duration,
        expected: Ownership,
        when: &str,
    ) -> Kept {
        let answer = answered("renew", self.probe.store.renew(&self.key, token, lease)).await?;
        same("renew", answer, expected, when)
    }

    pub(super) async fn commit(
        &self,
        token: ClaimToken,
        retain: Duration,
        expected: Ownership,
        when: &str,
    ) -> Kept {
        let answer = answered("commit", self.probe.store.commit(&self.key, token, retain)).await?;
        same("commit", answer, expected, when)
    }

    pub(super) async fn release(&self, token: ClaimToken, expected: Ownership, when: &str) -> Kept {
        let answer = answered("release", self.probe.store.release(&self.key, token)).await?;
        same("release", answer, expected, when)
    }

    /// Claims a fresh event and commits it.
    pub(super) async fn finish(&self, retain: Duration) -> Result<ClaimToken, String> {
        let token = token();
        self.begin(token, self.probe.long()).await?;
        self.end(token, retain).await?;
        Ok(token)
    }
}

pub(super) async fn advance<H: StoreUnderTest>(harness: &H, probe: &Probe, units: u32) {
    harness.advance(probe.units(units)).await;
}

/// A token for a body of its own, so that the mark in a done record tells which token committed it.
pub(super) fn token() -> ClaimToken {
    static BODIES: AtomicU64 = AtomicU64::new(0);
    ClaimToken::new(&BODIES.fetch_add(1, Ordering::Relaxed).to_le_bytes())
}

/// The answer to a claim of an event that this token committed.
pub(super) fn done_by(token: ClaimToken) -> Answer {
    Answer::Done {
        body_mark: token.body_mark(),
    }
}

pub(super) fn key(name: &str) -> EventKey {
    EventKey::new("default", name)
}

pub(super) async fn answered<T: Unpin>(
    call: &str,
    future: StoreFuture<'_, T>,
) -> Result<T, String> {
    future
        .await
        .map_err(|error| format!("{call} failed: {error}"))
}

fn same<T: Debug + PartialEq>(call: &str, answer: T, expected: T, when: &str) -> Kept {
    if answer == expected {
        Ok(())
    } else {
        Err(format!(
            "{call} {when} answered {answer:?}, expected {expected:?}"
        ))
    }
}

/// Tells the suite how to open a store and how to let its time pass.
///
/// See [`StoreConformance`](crate::StoreConformance) for an example.
pub trait StoreUnderTest: Send + Sync + 'static {
    /// Opens an empty store of this capacity. With `None`, the store must hold at least some
    /// thousand records. Returns `None` for a capacity that the store can't have; the rules about
    /// it are then reported as [`Finding::NotChecked`](crate::store::Finding::NotChecked).
    fn open(
        &self,
        capacity: Option<Capacity>,
    ) -> impl Future<Output = Option<Arc<dyn DedupeStore>>> + Send;

    /// Lets `time` pass for the stores: moves a [`ManualClock`](hookgate::clock::ManualClock), or
    /// sleeps.
    fn advance(&self, time: Duration) -> impl Future<Output = ()> + Send;

    /// The unit of leases and retentions in the suite. Each lasts a few units, and the suite checks
    /// it one unit before its end and one unit after. For a clock that is moved by hand any unit is
    /// right. Otherwise it must be well above the duration of a call.
    fn unit(&self) -> Duration {
        Duration::from_secs(1)
    }

    /// The number of events for which the 64 racers compete. The default suits a store in memory.
    /// Use fewer where a call is a round trip.
    fn races(&self) -> usize {
        1024
    }
}
