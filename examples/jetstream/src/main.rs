//! `receive` stores deliveries in NATS JetStream, `consume` handles them: see README.md.

use std::{env, time::Duration};

use async_nats::Error;
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, StorageType};
use async_nats::jetstream::{self, AckKind, Context, consumer::pull, message::PublishMessage};
use axum::{Router, routing::post_service};
use futures_util::TryStreamExt;
use hookgate::dedupe::{StoreError, StoreErrorKind, StoreFuture};
use hookgate::receiver::StoredDelivery;
use hookgate::run::Acknowledgement;
use hookgate::sink::{Accepted, Sink};
use hookgate::{Delivery, Event, Receiver, Secret};
use hookgate_sqlite::SqliteStore;

const RETENTION: Duration = Duration::from_secs(48 * 3_600);
const LONGEST: Duration = Duration::from_secs(20); // of a run
const FORGETS: &str = "the stream webhooks forgets: it must have a duplicate window of 48 h, no maximum age below, retention by limits, discard new, and be kept in files without a limit for each subject";

#[derive(Debug)]
struct JetStream(Context);

impl JetStream {
    /// Makes the stream, or uses one that remembers ids for long enough: the default is 120 s.
    async fn open(url: &str) -> Result<Self, Error> {
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
        let mut message = PublishMessage::build()
            .message_id(delivery.key().to_hex()) // a digest of scope and event id
            .payload(delivery.body().clone());
        for (name, value) in delivery.to_stored().attributes() {
            message = message.header(name, value);
        }
        StoreFuture::boxed(async move {
            let stored = async { self.0.send_publish("webhooks.events", message).await?.await };
            match stored.await {
                Ok(stored) if stored.duplicate => Ok(Accepted::Duplicate { same_body: true }),
                Ok(_) => Ok(Accepted::New),
                Err(error) => Err(StoreError::new(StoreErrorKind::Unavailable).caused_by(error)),
            }
        })
    }
}

async fn receive(sink: JetStream, secret: Secret) -> Result<(), Error> {
    let builder = Receiver::builder().secret(secret).retention(RETENTION);
    let acceptor = builder.max_body(1_000_000).accept_into(sink)?; // NATS: 1 MiB with headers
    let listener = tokio::net::TcpListener::bind(env::var("ADDR")?).await?;
    println!("listening on http://{}/webhooks", listener.local_addr()?);
    let app = Router::new().route("/webhooks", post_service(acceptor));
    Ok(axum::serve(listener, app).await?) // stopped at any time, it loses no delivery that was answered 2xx
}

async fn consume(JetStream(context): JetStream, secret: Secret) -> Result<(), Error> {
    let builder = Receiver::builder().secret(secret).run_limit(LONGEST);
    let claims = SqliteStore::open(env::var("CLAIMS")?)?; // several consumers share a `RedisStore` or `PostgresStore`
    let receiver = builder.store(claims).build()?; // after a kill of the server, all messages may come again
    let config = pull::Config {
        durable_name: Some("handlers".into()),
        filter_subject: "webhooks.events".into(),
        ack_wait: LONGEST + Duration::from_secs(10),
        ..pull::Config::default()
    };
    let stream = context.get_stream("webhooks").await?; // README.md: why an existing consumer is not created again
    let handlers = stream.get_or_create_consumer("handlers", config).await?;
    let one = handlers.stream().max_messages_per_batch(1); // `ack_wait` begins when a message is sent
    let mut messages = one.messages().await?; // an error ends this process: its supervisor starts it again
    let on_event = async |event: Event| println!("handled {}", event.id);
    while let Some(message) = messages.try_next().await? {
        let mut headers = message.headers.clone().unwrap_or_default();
        let attribute = |name: &str| headers.get(name).map(|value| value.as_str());
        let stored = StoredDelivery::from_attributes(message.payload.clone(), attribute);
        let ran = receiver.run_stored(&stored, on_event).await;
        let answer = match ran.acknowledgement() {
            Acknowledgement::Done => AckKind::Ack,
            Acknowledgement::Retry if message.info()?.delivered < 10 => AckKind::Nak(Some(LONGEST)),
            _ => {
                println!("dead letter: {ran}");
                let id = format!("dead {}", message.info()?.stream_sequence); // else a copy of its event
                headers.insert("Nats-Msg-Id", id);
                let body = message.payload.clone();
                let put = context.publish_with_headers("webhooks.dead", headers, body);
                put.await?.await?; // durable, before the message is acknowledged
                AckKind::Ack
            }
        };
        message.ack_with(answer).await?;
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let secret = Secret::from_env("WEBHOOK_SECRET")?;
    let queue = JetStream::open(&env::var("NATS_URL")?).await?;
    match env::args().nth(1).as_deref() {
        Some("consume") => consume(queue, secret).await,
        _ => receive(queue, secret).await,
    }
}
