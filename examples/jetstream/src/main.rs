//! Deliveries are stored in NATS JetStream before they are answered. README.md in this example's folder lists the guarantees.

use std::{env, error::Error, time::Duration};

use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, StorageType};
use async_nats::jetstream::{self, Context};
use axum::{Router, routing::post_service};
use hookgate::dedupe::{StoreError, StoreErrorKind, StoreFuture};
use hookgate::{
    Delivery, Receiver, Secret,
    sink::{Accepted, Sink},
};

const RETENTION: Duration = Duration::from_secs(48 * 3_600);
const FORGETS: &str = "the stream webhooks forgets: it must have a duplicate window of 48 h, no maximum age below, retention by limits, discard new, and be kept in files without a limit for each subject";

#[derive(Debug)]
struct JetStream(Context);

impl JetStream {
    /// Makes the stream, or uses the existing one if it remembers ids for long enough: the default is 120 s.
    async fn open(url: &str) -> Result<Self, Box<dyn Error>> {
        let mut context = jetstream::new(async_nats::connect(url).await?);
        context.set_timeout(Duration::from_secs(4)); // within the budget of 4.5 s
        let made = Config {
            name: "webhooks".into(),
            subjects: vec!["webhooks.>".into()],
            duplicate_window: RETENTION,
            discard: DiscardPolicy::New, // a full stream refuses new messages, and forgets none
            ..Config::default()
        };
        let stream = context.get_or_create_stream(made).await?;
        let found = &stream.cached_info().config; // the configuration that the server reports
        let keeps = found.duplicate_window >= RETENTION
            && (found.max_age.is_zero() || found.max_age >= RETENTION)
            && (found.retention, found.discard) == (RetentionPolicy::Limits, DiscardPolicy::New)
            && (found.storage, found.max_messages_per_subject) == (StorageType::File, -1);
        keeps.then_some(Self(context)).ok_or(FORGETS.into())
    }
}

impl Sink for JetStream {
    fn accept<'a>(&'a self, delivery: &'a Delivery, _: Duration) -> StoreFuture<'a, Accepted> {
        let message = PublishMessage::build()
            .headers(hookgate_jetstream::headers(&delivery.to_stored()))
            .message_id(delivery.key().to_hex()) // a digest of scope and event id
            .payload(delivery.body().clone());
        StoreFuture::boxed(async move {
            let published = self.0.send_publish("webhooks.events", message).await;
            let stored = published.map_err(failed)?.await.map_err(failed)?;
            Ok(match stored.duplicate {
                true => Accepted::Duplicate { same_body: true }, // as far as JetStream can tell
                false => Accepted::New,
            })
        })
    }
}

fn failed(error: PublishError) -> StoreError {
    let kind = match error.kind() {
        PublishErrorKind::TimedOut => StoreErrorKind::TimedOut,
        _ => StoreErrorKind::Unavailable,
    };
    StoreError::new(kind).caused_by(error)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let secret = Secret::from_env("WEBHOOK_SECRET")?;
    let sink = JetStream::open(&env::var("NATS_URL")?).await?;
    let builder = Receiver::builder().secret(secret).retention(RETENTION);
    let acceptor = builder.max_body(1_000_000).accept_into(sink)?; // NATS: 1 MiB with headers
    let listener = tokio::net::TcpListener::bind(env::var("ADDR")?).await?;
    println!("listening on http://{}/webhooks", listener.local_addr()?);
    let app = Router::new().route("/webhooks", post_service(acceptor));
    Ok(axum::serve(listener, app).await?) // stopped at any time, it loses no delivery that was answered 2xx
}
