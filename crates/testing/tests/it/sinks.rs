//! The conformance suite of sinks: a queue behind claims passes it, also with publishers that fail,
//! and each of its rules finds a sink that is broken on purpose.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hookgate::{
    Delivery, MemoryStore,
    dedupe::{EventKey, StoreError, StoreErrorKind, StoreFuture},
    receiver::StoredDelivery,
    sink::{Accepted, PublishError, QueueSink, Sink},
};
use hookgate_testing::{Report, SinkConformance, SinkRule, SinkUnderTest};
use tokio::time::sleep;

use crate::stalls::{ATTEMPTS, Stalls};

/// The messages that are durable: attributes and body.
type Messages = Arc<Mutex<Vec<(Vec<(&'static str, String)>, Vec<u8>)>>>;

fn put(messages: &Messages, delivery: &Delivery) {
    let message = (delivery.to_stored().attributes(), delivery.body().to_vec());
    messages.lock().unwrap().push(message);
}

fn unavailable() -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable)
}

/// Real time: a busy machine may stop a thread for two of these units, and the lease is renewed in
/// time. Where it stops one for longer, the result does not count.
const UNIT: Duration = Duration::from_millis(40);

struct Subject<O> {
    open: O,
    messages: Mutex<Messages>,
}

impl<O, S> SinkUnderTest for Subject<O>
where
    O: Fn(Messages) -> S + Send + Sync + 'static,
    S: Sink,
{
    async fn open(&self) -> Arc<dyn Sink> {
        let messages = Messages::default();
        *self.messages.lock().unwrap() = Arc::clone(&messages);
        Arc::new((self.open)(messages))
    }

    async fn stored(&self) -> Vec<StoredDelivery> {
        let messages = Arc::clone(&*self.messages.lock().unwrap());
        let messages = messages.lock().unwrap().clone();
        let stored = messages.into_iter().map(|(attributes, body)| {
            StoredDelivery::from_attributes(body, |name| {
                let same = attributes.iter().find(|(known, _)| *known == name);
                same.map(|(_, value)| value.clone())
            })
        });
        stored.collect()
    }

    async fn advance(&self, time: Duration) {
        sleep(time).await;
    }

    fn unit(&self) -> Duration {
        UNIT
    }
}

async fn report<S: Sink>(open: impl Fn(Messages) -> S + Send + Sync + 'static) -> Report<SinkRule> {
    let messages = Mutex::default();
    SinkConformance::new(Subject { open, messages }).run().await
}

/// A queue behind a `MemoryStore`, whose publisher does this at its n-th call.
fn queue<F>(
    publish: impl Fn(Messages, Delivery, usize) -> F + Clone + Send + Sync + 'static,
) -> impl Fn(Messages) -> QueueSink<MemoryStore, Publish<F>> + Clone + Send + Sync + 'static
where
    F: Future<Output = Result<(), PublishError>> + Send + 'static,
{
    move |messages| {
        let (publish, calls) = (publish.clone(), AtomicUsize::new(0));
        let publish: Publish<F> = Box::new(move |delivery| {
            let call = calls.fetch_add(1, Ordering::SeqCst);
            publish(Arc::clone(&messages), delivery, call)
        });
        QueueSink::new(MemoryStore::default(), publish).lease(UNIT * 4)
    }
}

type Publish<F> = Box<dyn Fn(Delivery) -> F + Send + Sync>;

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_behind_claims_keeps_every_rule() {
    let queue = queue(async |messages, delivery, _| {
        put(&messages, &delivery);
        Ok(())
    });
    keeps_every_rule(queue).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_does_with_publishers_that_fail() {
    let kinds = queue(
        async |messages: Messages, delivery: Delivery, call| match call % 6 {
            0 => Err(PublishError::Failed(unavailable())),
            1 => Err(PublishError::Unknown(unavailable())),
            // The confirmation is lost.
            2 => {
                put(&messages, &delivery);
                Err(PublishError::Unknown(unavailable()))
            }
            3 => panic!("made-up panic"),
            // Longer than the lease.
            4 => {
                sleep(UNIT * 10).await;
                put(&messages, &delivery);
                Ok(())
            }
            _ => {
                put(&messages, &delivery);
                Ok(())
            }
        },
    );
    keeps_every_rule(kinds).await;
}

async fn breaks<S: Sink>(
    rule: SinkRule,
    open: impl Fn(Messages) -> S + Clone + Send + Sync + 'static,
) {
    let is_found = |report: &Report<SinkRule>| report.broken().any(|broken| broken == rule);
    let report = report_without_stalls(open, is_found).await;
    assert!(is_found(&report), "{report}");
}

async fn keeps_every_rule<S: Sink>(open: impl Fn(Messages) -> S + Clone + Send + Sync + 'static) {
    let is_kept = |report: &Report<SinkRule>| report.broken().next().is_none();
    report_without_stalls(open, is_kept).await.assert_kept();
}

/// The first report that is as expected, or of a time in which the machine did not stall.
async fn report_without_stalls<S: Sink>(
    open: impl Fn(Messages) -> S + Clone + Send + Sync + 'static,
    is_expected: impl Fn(&Report<SinkRule>) -> bool,
) -> Report<SinkRule> {
    for attempt in 1.. {
        let stalls = Stalls::watch();
        let report = report(open.clone()).await;
        let longest = stalls.longest();
        if is_expected(&report) || longest < UNIT / 2 || attempt == ATTEMPTS {
            return report;
        }
        println!("attempt {attempt} met a stall of {longest:?}:\n{report}");
    }
    unreachable!("the last attempt returns")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_publisher_that_does_not_wait_is_found() {
    let too_early = queue(async |messages: Messages, delivery: Delivery, _| {
        tokio::spawn(async move {
            sleep(UNIT).await;
            put(&messages, &delivery);
        });
        Ok(())
    });
    breaks(SinkRule::Durable, too_early).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_publisher_that_hides_a_failure_is_found() {
    let hides = queue(async |messages: Messages, delivery: Delivery, call| {
        if call % 2 == 0 {
            put(&messages, &delivery);
        }
        Ok(())
    });
    breaks(SinkRule::Durable, hides).await;
}

/// A sink without claims, by the key under which it remembers a delivery, and the message that it
/// stores.
#[derive(Debug)]
struct Plain {
    messages: Messages,
    keys: Mutex<Vec<EventKey>>,
    key: fn(&Delivery) -> Option<EventKey>,
    body: fn(&[u8]) -> Vec<u8>,
}

impl Sink for Plain {
    fn accept<'a>(&'a self, delivery: &'a Delivery, _: Duration) -> StoreFuture<'a, Accepted> {
        let mut keys = self.keys.lock().unwrap();
        if let Some(key) = (self.key)(delivery) {
            if keys.contains(&key) {
                return StoreFuture::ready(Ok(Accepted::Duplicate { same_body: true }));
            }
            keys.push(key);
        }
        let message = (
            delivery.to_stored().attributes(),
            (self.body)(delivery.body()),
        );
        self.messages.lock().unwrap().push(message);
        StoreFuture::ready(Ok(Accepted::New))
    }
}

fn plain(
    key: fn(&Delivery) -> Option<EventKey>,
    body: fn(&[u8]) -> Vec<u8>,
) -> impl Fn(Messages) -> Plain + Clone {
    move |messages| Plain {
        messages,
        keys: Mutex::default(),
        key,
        body,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_ids_without_scope_and_a_body_written_again_are_found() {
    let without_scope = |delivery: &Delivery| Some(EventKey::new("", delivery.event_id()));
    let written_again = |body: &[u8]| {
        let parsed: serde_json::Value = serde_json::from_slice(body).unwrap();
        parsed.to_string().into()
    };
    breaks(SinkRule::OneNew, plain(|_| None, <[u8]>::to_vec)).await;
    breaks(SinkRule::ScopesApart, plain(without_scope, <[u8]>::to_vec)).await;
    breaks(
        SinkRule::Authentic,
        plain(|delivery| Some(*delivery.key()), written_again),
    )
    .await;
}

/// SQS, for example, recognises a copy for five minutes.
#[derive(Debug)]
struct Forgetful(QueueSink<MemoryStore, Publish<std::future::Ready<Result<(), PublishError>>>>);

impl Sink for Forgetful {
    fn accept<'a>(&'a self, delivery: &'a Delivery, retain: Duration) -> StoreFuture<'a, Accepted> {
        self.0.accept(delivery, retain / 4)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_that_forgets_too_early_is_found() {
    let forgetful = |messages: Messages| {
        let publish: Publish<_> = Box::new(move |delivery| {
            put(&messages, &delivery);
            std::future::ready(Ok(()))
        });
        Forgetful(QueueSink::new(MemoryStore::default(), publish))
    };
    breaks(SinkRule::Remembered, forgetful).await;
}
