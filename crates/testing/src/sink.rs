//! The conformance suite for sinks.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use hookgate::{
    Delivery, Receiver, Secret,
    dedupe::{StoreError, StoreErrorKind},
    internal::catch_store_panic,
    receiver::StoredDelivery,
    sink::{Accepted, Sink},
};
use tokio::task::JoinSet;

use crate::Signer;
use crate::event::delivery_by;
use crate::store::{Finding, Report, assert_multi_thread, rules};

/// Tells the suite how to open a sink, how to read the stored deliveries, and how to let its time
/// pass.
pub trait SinkUnderTest: Send + Sync + 'static {
    /// Opens an empty sink.
    fn open(&self) -> impl Future<Output = Arc<dyn Sink>> + Send;

    /// Returns each delivery that the last opened sink has made durable, one entry a message: what
    /// a consumer would get after a crash.
    fn stored(&self) -> impl Future<Output = Vec<StoredDelivery>> + Send;

    /// Lets `time` pass for the sink: moves a [`ManualClock`](hookgate::clock::ManualClock), or
    /// sleeps.
    fn advance(&self, time: Duration) -> impl Future<Output = ()> + Send;

    /// The wait before a delivery that was refused is sent again. A retention is some of these
    /// units. The default suits a clock that is moved by hand.
    fn unit(&self) -> Duration {
        Duration::from_secs(1)
    }
}

/// Checks a sink against the contract of [`Sink`], rule by rule.
///
/// A sink may refuse deliveries with errors, since an error means unknown: the suite sends them
/// again, as the sender does. So a harness can let its queue fail as often as a real one, and every
/// rule must still hold. A sink that answered no error may store each event once only.
///
/// The copies of [`SinkRule::OneNew`] must run at the same time, so the suite needs tokio's
/// **multi-thread** runtime. `tests/it/sinks.rs` of this package has a harness for a
/// [`QueueSink`](hookgate::sink::QueueSink) with publishers that fail, and with broken ones.
#[derive(Debug)]
pub struct SinkConformance<H> {
    harness: Arc<H>,
}

rules! {
    /// A rule of the contract that every sink keeps.
    SinkRule {
        /// A delivery is stored before it is answered, also if the answer is that it is a
        /// duplicate.
        Durable "what is answered is stored by then";
        /// Of several copies at the same time, one is new, also if their bodies differ.
        OneNew "of copies at the same time one is new";
        /// An id is remembered for the retention.
        Remembered "an id is remembered for the retention";
        /// The same id under two scopes is two events.
        ScopesApart "the same id under two scopes is two events";
        /// A stored delivery can be verified again, and its body has the same bytes.
        Authentic "a stored delivery can be verified again";
    }
}

const EVENTS: usize = 16;
const COPIES: usize = 16;
/// A sink that refuses a delivery this often has lost it.
const TRIES: usize = 200;

impl<H: SinkUnderTest> SinkConformance<H> {
    /// Makes a suite for the sinks that this harness opens.
    #[must_use]
    pub fn new(harness: H) -> Self {
        let harness = Arc::new(harness);
        Self { harness }
    }

    /// Checks every rule, one after the other. Each rule gets its own sink.
    ///
    /// # Panics
    /// Outside a multi-thread tokio runtime.
    pub async fn run(&self) -> Report<SinkRule> {
        assert_multi_thread();
        let mut findings = Vec::with_capacity(SinkRule::ALL.len());
        for rule in SinkRule::ALL {
            let sink = self.harness.open().await;
            let run = Run {
                harness: Arc::clone(&self.harness),
                sink,
            };
            let kept = match rule {
                SinkRule::Durable => run.durable().await,
                SinkRule::OneNew => run.one_new().await,
                SinkRule::Remembered => run.remembered().await,
                SinkRule::ScopesApart => run.scopes_apart().await,
                SinkRule::Authentic => run.authentic().await,
            };
            findings.push((*rule, kept.map_or_else(Finding::Broken, |()| Finding::Kept)));
        }
        Report { findings }
    }
}

struct Run<H> {
    harness: Arc<H>,
    sink: Arc<dyn Sink>,
}

/// The answer to a delivery, and how many times it was refused before.
struct Answer {
    accepted: Accepted,
    refused: usize,
}

type Kept = Result<(), String>;

impl<H: SinkUnderTest> Run<H> {
    /// Sends the delivery until it is accepted.
    async fn accept(&self, delivery: &Delivery, retain: Duration) -> Result<Answer, String> {
        let mut last = StoreError::new(StoreErrorKind::Unavailable);
        for refused in 0..TRIES {
            match catch_store_panic(|| self.sink.accept(delivery, retain)).await {
                Ok(accepted) => return Ok(Answer { accepted, refused }),
                Err(error) => last = error,
            }
            self.harness.advance(self.harness.unit()).await;
        }
        Err(format!(
            "{} was refused {TRIES} times: {last:?}",
            delivery.event_id()
        ))
    }

    /// Longer than all retries.
    fn long(&self) -> Duration {
        self.harness.unit() * 100_000
    }

    async fn count(&self, delivery: &Delivery) -> usize {
        let stored = self.harness.stored().await;
        let same = |one: &&StoredDelivery| one.body == delivery.body();
        stored.iter().filter(same).count()
    }

    async fn durable(&self) -> Kept {
        for event in 0..EVENTS {
            let delivery = delivery("default", &format!("evt_{event}"), "");
            for _ in 0..2 {
                self.accept(&delivery, self.long()).await?;
                if self.count(&delivery).await == 0 {
                    return Err(format!(
                        "{} was answered and is not stored",
                        delivery.event_id()
                    ));
                }
            }
        }
        Ok(())
    }

    async fn one_new(&self) -> Kept {
        let mut refused = 0;
        for event in 0..EVENTS {
            let id = format!("evt_{event}");
            let mut copies = JoinSet::new();
            for copy in 0..COPIES {
                let (harness, sink) = (Arc::clone(&self.harness), Arc::clone(&self.sink));
                let run = Run { harness, sink };
                let other = if copy % 4 == 3 { "other" } else { "" };
                let delivery = delivery("default", &id, other);
                copies.spawn(async move { run.accept(&delivery, run.long()).await });
            }
            let mut new = 0;
            for answer in copies.join_all().await {
                let answer = answer?;
                new += usize::from(answer.accepted == Accepted::New);
                refused += answer.refused;
            }
            if new > 1 || new == 0 && refused == 0 {
                return Err(format!("{new} of {COPIES} copies were new"));
            }
        }
        let stored = self.harness.stored().await.len();
        if stored < EVENTS || stored > EVENTS && refused == 0 {
            return Err(format!("{EVENTS} events are {stored} messages"));
        }
        Ok(())
    }

    async fn remembered(&self) -> Kept {
        let (unit, delivery) = (self.harness.unit(), delivery("default", "evt_1", ""));
        // Longer than a few retries.
        let retain = unit * 40;
        self.accept(&delivery, retain).await?;
        self.harness.advance(retain - unit * 10).await;
        match self.accept(&delivery, retain).await?.accepted {
            Accepted::New => Err("new again within its retention".into()),
            Accepted::Duplicate { .. } => Ok(()),
        }
    }

    async fn scopes_apart(&self) -> Kept {
        for scope in ["orders", "members"] {
            let delivery = delivery(scope, "evt_1", scope);
            self.accept(&delivery, self.long()).await?;
            if self.count(&delivery).await == 0 {
                return Err(format!("the event of {scope} is not stored"));
            }
        }
        Ok(())
    }

    async fn authentic(&self) -> Kept {
        let mut sent = Vec::new();
        for id in ["evt_1", "evt_\u{e9} \u{1f980}", "\\\"quoted\\\", x"] {
            let delivery = delivery("orders", id, " \u{2028} ");
            self.accept(&delivery, self.long()).await?;
            sent.push(delivery);
        }
        let receiver = receiver("orders");
        let mut ids = Vec::new();
        for stored in self.harness.stored().await {
            let verified = receiver.verify_stored(&stored).await;
            let delivery = verified.map_err(|refusal| format!("{stored:?}: {refusal}"))?;
            ids.push(delivery.event_id().to_owned());
        }
        match sent
            .iter()
            .find(|sent| !ids.contains(&sent.event_id().to_owned()))
        {
            Some(missing) => Err(format!("{:?} is not stored", missing.event_id())),
            None => Ok(()),
        }
    }
}

const SECRET: &str = "whsec_made_up_for_the_conformance_of_sinks";

#[allow(clippy::expect_used)] // the values are this file's own
fn receiver(scope: &str) -> Receiver {
    let secret = Secret::new(SECRET).expect("a secret");
    let builder = Receiver::builder().secret(secret).scope(scope);
    builder.without_deduplication().build().expect("a receiver")
}

/// `id` is written into the JSON as it is.
#[allow(clippy::expect_used)] // the values are this file's own
fn delivery(scope: &str, id: &str, note: &str) -> Delivery {
    let body = format!(r#"{{ "id":"{id}","type":"page.created", "data":{{"note":"{note}"}}}}"#);
    let signer = Signer::new(Secret::new(SECRET).expect("a secret"));
    delivery_by(&receiver(scope), &signer, body.as_bytes()).expect("an authentic delivery")
}
