//! `receive` stores deliveries in a quorum queue, `consume` handles them: see README.md.

use std::{env, sync::Arc, time::Duration};

use axum::{BoxError, Router, routing::post_service};
use futures_util::TryStreamExt;
use hookgate::dedupe::{StoreError, StoreErrorKind};
use hookgate::receiver::StoredDelivery;
use hookgate::sink::{PublishError, QueueSink};
use hookgate::{Delivery, Event, MemoryStore, Receiver, Secret, run::Acknowledgement};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, Confirmation, Connection, options::*};
use tokio::{sync::Mutex, time};

const PAUSE: Duration = Duration::from_secs(5); // before a retry: shorter than the sender's first wait

/// Makes the queue and its dead letters. A queue of this name with other arguments is an error.
async fn open() -> Result<Channel, BoxError> {
    let connection = Connection::connect(&env::var("AMQP_URL")?, Default::default()).await?;
    let channel = connection.create_channel().await?;
    let durable = QueueDeclareOptions::durable();
    let declare = |name: &str, arguments| channel.queue_declare(name.into(), durable, arguments);
    let text = |value: &str| AMQPValue::LongString(value.into());
    let mut arguments = FieldTable::default();
    arguments.insert("x-queue-type".into(), text("quorum"));
    declare("webhooks.dead", arguments.clone()).await?;
    arguments
        .insert("x-dead-letter-exchange".into(), text(""))
        .insert("x-dead-letter-routing-key".into(), text("webhooks.dead"))
        .insert("x-dead-letter-strategy".into(), text("at-least-once")) // which needs the next one
        .insert("x-overflow".into(), text("reject-publish")) // a full queue refuses messages and loses none
        .insert("x-delivery-limit".into(), AMQPValue::LongInt(10));
    declare("webhooks", arguments).await?;
    channel.confirm_select(Default::default()).await?;
    Ok(channel)
}

async fn send(channel: &Mutex<Channel>, delivery: &Delivery) -> Result<Confirmation, BoxError> {
    let mut channel = channel.lock().await; // until its confirm: lapin gives a returned message to any that waits
    if !channel.status().connected() {
        *channel = open().await?; // the connection was broken
    }
    let mut headers = FieldTable::default();
    for (name, value) in delivery.to_stored().attributes() {
        headers.insert(name.into(), AMQPValue::LongString(value.into()));
    }
    let properties = BasicProperties::default().with_headers(headers);
    let options = BasicPublishOptions {
        mandatory: true, // a message that no queue takes comes back
        ..Default::default()
    };
    let queue = "webhooks".into();
    let sent = channel.basic_publish("".into(), queue, options, delivery.body(), properties);
    let confirmed = sent.await?;
    Ok(confirmed.await?)
}

async fn publish(channel: Arc<Mutex<Channel>>, delivery: Delivery) -> Result<(), PublishError> {
    let unavailable = StoreError::new(StoreErrorKind::Unavailable);
    match time::timeout(Duration::from_secs(4), send(&channel, &delivery)).await {
        Ok(Ok(Confirmation::Ack(None))) => Ok(()),
        Ok(Ok(Confirmation::Ack(Some(_)))) => Err(PublishError::Failed(unavailable)), // sent back
        Ok(Ok(_)) => Err(PublishError::Unknown(unavailable)), // also by a full queue
        Ok(Err(error)) => Err(PublishError::Unknown(unavailable.caused_by(error))),
        Err(late) => Err(PublishError::Unknown(unavailable.caused_by(late))), // 0.5 s before an answer is due
    }
}

async fn receive(channel: Channel, secret: Secret) -> Result<(), BoxError> {
    let channel = Arc::new(Mutex::new(channel));
    let publish = move |delivery| publish(Arc::clone(&channel), delivery);
    let sink = QueueSink::new(MemoryStore::default(), publish).lease(PAUSE); // several processes share a `RedisStore` or `PostgresStore`
    let acceptor = Receiver::builder().secret(secret).accept_into(sink)?;
    let listener = tokio::net::TcpListener::bind(env::var("ADDR")?).await?;
    println!("listening on http://{}/webhooks", listener.local_addr()?);
    let app = Router::new().route("/webhooks", post_service(acceptor));
    Ok(axum::serve(listener, app).await?)
}

/// Ends with an error if it cannot reach the server: its supervisor starts it again.
async fn consume(channel: Channel, secret: Secret) -> Result<(), BoxError> {
    let builder = Receiver::builder().secret(secret);
    let receiver = builder.store(MemoryStore::default()).build()?; // several consumers share a `RedisStore` or `PostgresStore`
    let on_event = async |event: Event| println!("handled {}", event.id);
    channel.basic_qos(1, Default::default()).await?; // a kill counts as a try of no other message
    let (queue, options) = ("webhooks".into(), BasicConsumeOptions::default());
    let consumer = channel.basic_consume(queue, "".into(), options, FieldTable::default());
    let mut messages = consumer.await?;
    while let Some(message) = messages.try_next().await? {
        let headers = message.properties.headers().clone().unwrap_or_default();
        let attribute = |name: &str| {
            let value = headers.inner().get(name)?.as_long_string()?;
            std::str::from_utf8(value.as_bytes()).ok()
        };
        let stored = StoredDelivery::from_attributes(message.data.clone(), attribute);
        let ran = receiver.run_stored(&stored, on_event).await;
        match ran.acknowledgement() {
            Acknowledgement::Done => message.ack(Default::default()).await?,
            Acknowledgement::Retry => {
                time::sleep(PAUSE).await;
                message.reject(BasicRejectOptions { requeue: true }).await?
            }
            Acknowledgement::DeadLetter => {
                println!("dead letter: {ran}");
                message.reject(Default::default()).await?
            }
        };
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let secret = Secret::from_env("WEBHOOK_SECRET")?;
    let channel = time::timeout(Duration::from_secs(4), open()).await??; // a server that has just started may not answer
    match env::args().nth(1).as_deref() {
        Some("consume") => consume(channel, secret).await,
        _ => receive(channel, secret).await,
    }
}
