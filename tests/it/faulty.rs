//! A store and a sink that answer as a test sets them: late, with an error, with a panic, or never.

use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hookgate::{
    Delivery, MemoryStore,
    clock::Clock,
    dedupe::{StoreError, StoreErrorKind, StoreFuture},
    sink::{Accepted, Sink},
};
use tokio::time::sleep;

use crate::harness::{Handling, Harness};
use crate::store_proxy::{Call, StoreProxy, store_proxy};

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    None,
    /// Fails this many times without effect.
    Fails(usize),
    /// Takes effect, and loses its reply this many times.
    LosesReply(usize),
    /// Takes effect, and answers after this many milliseconds.
    Slow(u64),
    SlowlyFails(u64),
    /// Refuses for good, as a database does with a text that its encoding has no room for.
    Refuses,
    Hangs,
    /// In the call itself, or when its future is polled.
    Panics {
        at_once: bool,
    },
}

pub const DOWN: Fault = Fault::Fails(usize::MAX);

/// A `MemoryStore` whose calls have faults, each kind its own.
#[derive(Clone, Debug)]
pub struct FaultyStore(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    kept: MemoryStore,
    faults: Mutex<[Fault; 4]>,
    calls: [AtomicUsize; 4],
}

impl FaultyStore {
    pub fn new(clock: &(impl Clock + Clone)) -> Self {
        Self(Arc::new(Inner {
            kept: MemoryStore::default().with_clock(clock.clone()),
            faults: Mutex::new([Fault::None; 4]),
            calls: Default::default(),
        }))
    }

    pub fn set(&self, call: Call, fault: Fault) {
        self.0.faults.lock().unwrap()[call as usize] = fault;
    }

    pub fn set_all(&self, fault: Fault) {
        *self.0.faults.lock().unwrap() = [fault; 4];
    }

    pub fn calls(&self, call: Call) -> usize {
        self.0.calls[call as usize].load(Ordering::SeqCst)
    }
}

impl StoreProxy for FaultyStore {
    fn pass<'a, T: Send + Unpin + 'static>(
        &'a self,
        call: Call,
        call_inner: impl FnOnce(&'a MemoryStore) -> StoreFuture<'a, T> + Send + 'a,
    ) -> StoreFuture<'a, T> {
        let Inner {
            kept,
            faults,
            calls,
        } = &*self.0;
        calls[call as usize].fetch_add(1, Ordering::SeqCst);
        let set = move |fault| faults.lock().unwrap()[call as usize] = fault;
        let failure = |kind| Err(StoreError::new(kind));
        let now = faults.lock().unwrap()[call as usize];
        assert!(
            now != Fault::Panics { at_once: true },
            "made-up panic of a store's call"
        );
        StoreFuture::boxed(async move {
            match now {
                Fault::None | Fault::Fails(0) | Fault::LosesReply(0) => call_inner(kept).await,
                Fault::Fails(times) => {
                    set(Fault::Fails(times - 1));
                    failure(StoreErrorKind::Unavailable)
                }
                Fault::LosesReply(times) => {
                    set(Fault::LosesReply(times - 1));
                    call_inner(kept).await?;
                    failure(StoreErrorKind::Unavailable)
                }
                Fault::Slow(millis) => {
                    let answer = call_inner(kept).await;
                    sleep(Duration::from_millis(millis)).await;
                    answer
                }
                Fault::SlowlyFails(millis) => {
                    sleep(Duration::from_millis(millis)).await;
                    failure(StoreErrorKind::Unavailable)
                }
                Fault::Refuses => failure(StoreErrorKind::Refused),
                Fault::Hangs => pending().await,
                Fault::Panics { .. } => panic!("made-up panic of a store's future"),
            }
        })
    }
}

store_proxy!(FaultyStore);

/// A harness before such a store, whose faults are still to be set.
pub fn with_faulty_store<F: Handling>(
    script: impl Fn(Delivery, usize) -> F + Clone + Send + Sync + 'static,
) -> (Harness, FaultyStore) {
    let mut store = None;
    let harness = Harness::new(
        |builder, clock| builder.store(store.insert(FaultyStore::new(clock)).clone()),
        script,
    );
    (harness, store.unwrap())
}

/// A sink that gives each delivery the same answer.
#[derive(Debug)]
pub struct FixedSink(pub Result<Accepted, StoreErrorKind>);

impl Sink for FixedSink {
    fn accept<'a>(&'a self, _: &'a Delivery, _: Duration) -> StoreFuture<'a, Accepted> {
        StoreFuture::ready(self.0.map_err(StoreError::new))
    }
}
