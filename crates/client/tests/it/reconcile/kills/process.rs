//! One process: the program of the page, with stores that count its steps and end it at one of
//! them.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::State;
use hookgate::{
    DedupeStore, Event, Receiver, Secret,
    dedupe::{
        ClaimToken, Claimed, EventKey, Ownership, ScopesInUse, StoreError, StoreErrorKind,
        StoreFuture,
    },
    event::{DataModelId, RowId},
};
use hookgate_client::reconcile::{Mirror, Mirrored, Reconcile, RowState, Settings};
use hookgate_order::{LastHandled, Order, OrderGuard, OrderStore};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use super::super::service::{Chance, MODEL};
use super::example::{App, on_event};
use super::sender::{SECRET, Source};
use super::{Durable, MINUTE, World};

/// Counts the steps of a process, which ends with the last one: nothing that it does later has an
/// effect.
pub struct Life {
    left: AtomicUsize,
    is_over: AtomicBool,
    killed: Arc<Notify>,
    chance: Mutex<Chance>,
}

impl Life {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    /// A step takes some time, so that others come between two of them.
    pub async fn step(&self) {
        let wait = {
            let mut chance = self.chance.lock().unwrap();
            if chance.one_in(30) {
                2_000
            } else {
                chance.below(40)
            }
        };
        if wait > 0 {
            sleep(Duration::from_millis(wait as u64)).await;
        }
        if self.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.is_over.store(true, Ordering::SeqCst);
            self.killed.notify_one();
        }
        if self.is_over() {
            std::future::pending::<()>().await;
        }
    }

    /// A call of a store: a kill comes before or after its effect. It fails now and then.
    fn call<'a, T: Send + 'a>(
        &'a self,
        fails: bool,
        call: impl FnOnce() -> StoreFuture<'a, T> + Send + 'a,
    ) -> StoreFuture<'a, T> {
        StoreFuture::boxed(async move {
            self.step().await;
            let down = || Err(StoreError::new(StoreErrorKind::Unavailable));
            let fault = match fails {
                true => self.chance.lock().unwrap().below(100),
                false => 100,
            };
            if fault == 0 {
                return down();
            }
            let answer = call().await;
            self.step().await;
            // The reply is lost.
            if fault == 1 { down() } else { answer }
        })
    }
}

struct Killable<S> {
    store: S,
    life: Arc<Life>,
}

impl<S> fmt::Debug for Killable<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Killable")
    }
}

impl<S: DedupeStore> DedupeStore for Killable<S> {
    fn claim<'a>(
        &'a self,
        key: &'a EventKey,
        token: ClaimToken,
        lease: Duration,
    ) -> StoreFuture<'a, Claimed> {
        self.life
            .call(false, move || self.store.claim(key, token, lease))
    }

    fn renew<'a>(
        &'a self,
        key: &'a EventKey,
        token: ClaimToken,
        lease: Duration,
    ) -> StoreFuture<'a, Ownership> {
        self.life
            .call(false, move || self.store.renew(key, token, lease))
    }

    fn commit<'a>(
        &'a self,
        key: &'a EventKey,
        token: ClaimToken,
        retain: Duration,
    ) -> StoreFuture<'a, Ownership> {
        self.life
            .call(false, move || self.store.commit(key, token, retain))
    }

    fn release<'a>(&'a self, key: &'a EventKey, token: ClaimToken) -> StoreFuture<'a, Ownership> {
        self.life
            .call(false, move || self.store.release(key, token))
    }

    fn scopes_in_use(&self) -> Option<&ScopesInUse> {
        self.store.scopes_in_use()
    }
}

impl<S: OrderStore> OrderStore for Killable<S> {
    fn last<'a>(&'a self, row: &'a [u8; 16]) -> StoreFuture<'a, Option<(u64, LastHandled)>> {
        self.life.call(true, move || self.store.last(row))
    }

    fn swap<'a>(
        &'a self,
        row: &'a [u8; 16],
        revision: u64,
        last: LastHandled,
        retain: Duration,
    ) -> StoreFuture<'a, bool> {
        self.life
            .call(true, move || self.store.swap(row, revision, last, retain))
    }
}

impl<M: Mirror> Mirror for Killable<M> {
    fn get<'a>(
        &'a self,
        model: &'a DataModelId,
        rows: &'a [RowId],
    ) -> StoreFuture<'a, Vec<(RowId, Mirrored)>> {
        self.life.call(true, move || self.store.get(model, rows))
    }

    fn list<'a>(
        &'a self,
        model: &'a DataModelId,
        after: Option<&'a RowId>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<(RowId, Mirrored)>> {
        self.life
            .call(true, move || self.store.list(model, after, limit))
    }

    fn swap<'a>(
        &'a self,
        model: &'a DataModelId,
        row: &'a RowId,
        revision: u64,
        state: RowState,
    ) -> StoreFuture<'a, bool> {
        self.life
            .call(true, move || self.store.swap(model, row, revision, state))
    }

    fn forget<'a>(&'a self, model: &'a DataModelId, age: Duration) -> StoreFuture<'a, u64> {
        self.life.call(true, move || self.store.forget(model, age))
    }
}

pub struct Process {
    life: Arc<Life>,
    receiver: Receiver,
    guard: OrderGuard,
    app: App,
}

impl Durable {
    fn app(&self, life: &Arc<Life>) -> App {
        App {
            mirror: Arc::new(Killable {
                store: Arc::clone(&self.mirror),
                life: Arc::clone(life),
            }),
            table: Arc::clone(&self.table),
        }
    }
}

impl World {
    /// Of a process that is never killed.
    pub fn durable_app(&self) -> App {
        App {
            mirror: Arc::clone(&self.durable.mirror) as Arc<dyn Mirror>,
            table: Arc::clone(&self.durable.table),
        }
    }
}

impl Process {
    /// Starts a process that ends after so many steps.
    pub fn start(world: &Arc<World>, steps: usize, seed: u64) -> Self {
        let life = Arc::new(Life {
            left: AtomicUsize::new(steps),
            is_over: AtomicBool::new(false),
            killed: Arc::default(),
            chance: Mutex::new(Chance::new(seed)),
        });
        let durable = &world.durable;
        let claims = || Killable {
            store: Arc::clone(&durable.claims),
            life: Arc::clone(&life),
        };
        let order = Killable {
            store: durable.order.clone(),
            life: Arc::clone(&life),
        };
        let receiver = Receiver::builder()
            .secret(Secret::new(SECRET).unwrap())
            .store(claims())
            .clock(durable.clock)
            .build()
            .unwrap();
        let app = durable.app(&life);
        let mut settings = Settings::default();
        settings.guard_percent = 100;
        let source = Source::new(world);
        let mut reconcile = Reconcile::new(source, Arc::clone(&app.mirror), MODEL, settings)
            .claims(claims(), "shop");
        let (repairing, service, its_life) =
            (app.clone(), Arc::clone(&world.service), Arc::clone(&life));
        let until = world.until;
        tokio::spawn(async move {
            loop {
                let pause = if Instant::now() < until { 7 } else { 60 };
                sleep(pause * MINUTE).await;
                let repair = async |finding| {
                    its_life.step().await;
                    service.lock().unwrap().repairs += 1;
                    let repaired = repairing.repair(finding).await;
                    its_life.step().await;
                    repaired
                };
                // A pass that fails is followed by the next one.
                let _ = reconcile.pass(repair).await;
            }
        });
        Self {
            life,
            receiver,
            guard: OrderGuard::new(order),
            app,
        }
    }

    pub fn killed(&self) -> Arc<Notify> {
        Arc::clone(&self.life.killed)
    }

    /// It is killed no more.
    pub fn spare(&self) {
        self.life.left.store(usize::MAX, Ordering::SeqCst);
    }

    /// The handler of one delivery.
    pub fn handler(
        &self,
    ) -> (
        Receiver,
        impl FnOnce(hookgate::Delivery) -> Handling + use<>,
    ) {
        let app = self.app.clone();
        let handler = move |event: Event, order: Order| on_event(State(app), event, order);
        (self.receiver.clone(), self.guard.ordered(handler))
    }
}

type Handling = Pin<Box<dyn Future<Output = http::Response<bytes::Bytes>> + Send>>;
