//! Deliveries are stored in Kafka before they are answered (`receive`), and handled by other
//! processes (`consume`). README.md in this example's folder lists the guarantees.

use std::{env, error::Error, process::exit, str, time::Duration};

use axum::{Router, routing::post_service};
use hookgate::dedupe::{StoreError, StoreErrorKind};
use hookgate::receiver::StoredDelivery;
use hookgate::run::Acknowledgement;
use hookgate::sink::{PublishError, QueueSink};
use hookgate::{Delivery, Event, MemoryStore, Receiver, Secret};
use rdkafka::consumer::{CommitMode, Consumer, StreamConsumer};
use rdkafka::message::{BorrowedHeaders, Header, Headers, Message, OwnedHeaders};
use rdkafka::producer::{FutureProducer, FutureRecord};
use rdkafka::{ClientConfig, error::KafkaError, error::RDKafkaErrorCode};

const LONGEST: Duration = Duration::from_secs(20); // of a run
// Between two tries, and after an unknown outcome: shorter than the sender's first wait.
const PAUSE: Duration = Duration::from_secs(5);

// The client's own retries end within the 30 s that an acceptor waits.
const PRODUCER: &str = "acks=all enable.idempotence=true message.timeout.ms=20000";
// `earliest`: the first consumer also gets the messages that were published before it started.
const CONSUMER: &str = "group.id=handlers enable.auto.commit=false auto.offset.reset=earliest";

/// With these properties of librdkafka, and with those of the environment.
fn config(own: &str) -> Result<ClientConfig, env::VarError> {
    let all = format!("{} {own}", env::var("KAFKA")?);
    let pairs = all.split_whitespace().filter_map(|one| one.split_once('='));
    let pairs = pairs.map(|(name, value)| (name.into(), value.into()));
    Ok(pairs.collect())
}

async fn publish(producer: FutureProducer, delivery: Delivery) -> Result<(), PublishError> {
    let mut headers = OwnedHeaders::new();
    for (key, value) in delivery.to_stored().attributes() {
        let value = Some(&value);
        headers = headers.insert(Header { key, value });
    }
    let key = delivery.message_key();
    let record = FutureRecord::to("webhooks").key(&*key).headers(headers);
    let unavailable = StoreError::new(StoreErrorKind::Unavailable);
    let taken = match producer.send_result(record.payload(&**delivery.body())) {
        Ok(taken) => taken,
        // The client sends nothing more: its supervisor starts the process again.
        Err((error, _)) if error.rdkafka_error_code() == Some(RDKafkaErrorCode::Fatal) => exit(1),
        Err((error, _)) => return Err(PublishError::Failed(unavailable.caused_by(error))),
    };
    match taken.await {
        Ok(Ok(_)) => Ok(()),
        // Whatever its last try was told, an earlier one may have stored the message.
        Ok(Err((error, _))) => Err(PublishError::Unknown(unavailable.caused_by(error))),
        Err(error) => Err(PublishError::Unknown(unavailable.caused_by(error))),
    }
}

async fn receive(secret: Secret) -> Result<(), Box<dyn Error>> {
    let producer: FutureProducer = config(PRODUCER)?.create()?;
    let publish = move |delivery| publish(producer.clone(), delivery);
    // Several processes share a `RedisStore` or `PostgresStore`.
    let sink = QueueSink::new(MemoryStore::default(), publish).lease(PAUSE);
    let builder = Receiver::builder().secret(secret);
    let acceptor = builder.max_body(950_000).accept_into(sink)?; // Kafka: 1 MB with key and headers
    let listener = tokio::net::TcpListener::bind(env::var("ADDR")?).await?;
    println!("listening on http://{}/webhooks", listener.local_addr()?);
    let app = Router::new().route("/webhooks", post_service(acceptor));
    Ok(axum::serve(listener, app).await?)
}

/// Ends with an error if it cannot commit or put a dead letter: its supervisor starts it again.
async fn consume(secret: Secret) -> Result<(), Box<dyn Error>> {
    // An event runs once while the process lives; a `RedisStore` remembers it for all consumers.
    let builder = Receiver::builder().secret(secret).run_limit(LONGEST);
    let receiver = builder.store(MemoryStore::default()).build()?;
    let on_event = async |event: Event| println!("handled {}", event.id);
    let producer: FutureProducer = config(PRODUCER)?.create()?;
    let consumer: StreamConsumer = config(CONSUMER)?.create()?;
    consumer.subscribe(&["webhooks"])?;
    loop {
        let message = match consumer.recv().await {
            Err(KafkaError::MessageConsumption(_)) => continue, // the client connects again by itself
            received => received?,
        };
        let attribute = |name: &str| {
            let mut headers = message.headers()?.iter();
            str::from_utf8(headers.find(|header| header.key == name)?.value?).ok()
        };
        let body = message.payload().unwrap_or_default().to_vec();
        let stored = StoredDelivery::from_attributes(body, attribute);
        let mut ran = receiver.run_stored(&stored, on_event).await;
        for _ in 1..10 {
            if ran.acknowledgement() != Acknowledgement::Retry {
                break;
            }
            tokio::time::sleep(PAUSE).await; // in place, since a partition has no way round a message
            ran = receiver.run_stored(&stored, on_event).await;
        }
        if ran.acknowledgement() != Acknowledgement::Done {
            println!("dead letter: {ran}");
            let record = FutureRecord {
                key: message.key(),
                payload: message.payload(),
                headers: message.headers().map(BorrowedHeaders::detach),
                ..FutureRecord::to("webhooks.dead")
            };
            let put = producer.send(record, LONGEST).await;
            put.map_err(|(error, _)| error)?; // stored, before the offset is committed
        }
        consumer.commit_message(&message, CommitMode::Sync)?;
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let secret = Secret::from_env("WEBHOOK_SECRET")?;
    match env::args().nth(1).as_deref() {
        Some("consume") => consume(secret).await,
        _ => receive(secret).await,
    }
}
