//! A provider that a test writes as a script, and that counts the queries.

use std::error::Error;
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hookgate::{
    KeyRing, Secret,
    dedupe::StoreFuture,
    lookup::{SecretProvider, SubscriptionId},
};
use tokio::time::sleep;

/// An error of any kind.
pub type ProviderError = Box<dyn Error + Send + Sync>;
pub type Found = Result<Option<KeyRing>, ProviderError>;

#[derive(Clone)]
pub struct Provider(Arc<Inner>);

struct Inner {
    script: Box<
        dyn Fn(SubscriptionId, usize) -> StoreFuture<'static, Option<KeyRing>, ProviderError>
            + Send
            + Sync,
    >,
    asked: Mutex<Vec<String>>,
    running: AtomicUsize,
    most: AtomicUsize,
}

/// Counts a look-up while it is under way.
struct Running(Arc<Inner>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Provider {
    /// The script gets the id and the number of the look-up, from 1.
    pub fn new<A>(script: impl Fn(SubscriptionId, usize) -> A + Send + Sync + 'static) -> Self
    where
        A: Future<Output = Found> + Send + 'static,
    {
        Self(Arc::new(Inner {
            script: Box::new(move |id, number| StoreFuture::boxed(script(id, number))),
            asked: Mutex::default(),
            running: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
        }))
    }

    /// Every id has the harness's secret.
    pub fn all() -> Self {
        Self::new(async |_, _| found())
    }

    /// As [`all`](Self::all), after this many milliseconds.
    pub fn after(millis: u64) -> Self {
        Self::new(move |_, _| async move {
            sleep(Duration::from_millis(millis)).await;
            found()
        })
    }

    pub fn asked(&self) -> Vec<String> {
        self.0.asked.lock().unwrap().clone()
    }

    pub fn count(&self) -> usize {
        self.0.asked.lock().unwrap().len()
    }

    /// Look-ups that run now.
    pub fn running(&self) -> usize {
        self.0.running.load(Ordering::SeqCst)
    }

    /// The most look-ups that ran at a time, since this was asked last.
    pub fn most(&self) -> usize {
        self.0.most.swap(0, Ordering::SeqCst)
    }
}

impl SecretProvider for Provider {
    fn look_up<'a>(
        &'a self,
        subscription: &'a SubscriptionId,
    ) -> StoreFuture<'a, Option<KeyRing>, ProviderError> {
        let mut asked = self.0.asked.lock().unwrap();
        asked.push(subscription.to_string());
        let number = asked.len();
        drop(asked);
        let now = self.0.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.0.most.fetch_max(now, Ordering::SeqCst);
        let running = Running(Arc::clone(&self.0));
        let answer = (self.0.script)(subscription.clone(), number);
        StoreFuture::boxed(async move {
            let _running = running;
            answer.await
        })
    }
}

/// The ring that the harness signs for.
pub fn found() -> Found {
    ring_of(crate::harness::SECRET)
}

pub fn ring_of(secret: &str) -> Found {
    Ok(Some(KeyRing::new(Secret::new(secret).unwrap())))
}
