//! Deliveries are stored in Amazon SQS before they are answered (`receive`), and handled by other
//! processes (`consume`). README.md in this example's folder lists the guarantees.

use std::{env, error::Error, time::Duration};

use aws_config::retry::RetryConfig;
use aws_sdk_sqs::{Client, error::SdkError, types::MessageAttributeValue};
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
use axum::{Router, routing::post_service};
use base64::{Engine, engine::general_purpose::STANDARD};
use hookgate::dedupe::{StoreError, StoreErrorKind};
use hookgate::receiver::StoredDelivery;
use hookgate::run::Acknowledgement;
use hookgate::sink::{PublishError, QueueSink};
use hookgate::{Delivery, Event, MemoryStore, Receiver, Secret};

const LONGEST: Duration = Duration::from_secs(20); // of a run
const VISIBLE_AFTER: i32 = 30; // seconds, longer than a run
// After an unknown outcome: shorter than the sender's first wait.
const LEASE: Duration = Duration::from_secs(5);

async fn publish(sqs: Client, queue: String, delivery: Delivery) -> Result<(), PublishError> {
    // The key of a group has at most 128 of these characters. Rows that share one have their events
    // in order too.
    let key = delivery.message_key();
    let mut group = key.replace(|c: char| !c.is_ascii_graphic(), "_");
    group.truncate(128);
    let message = sqs.send_message().queue_url(queue).message_group_id(group);
    let message = message.message_deduplication_id(delivery.key().to_hex());
    let mut message = message.message_body(STANDARD.encode(delivery.body()));
    let text = MessageAttributeValue::builder().data_type("String");
    for (name, value) in delivery.to_stored().attributes() {
        let value = text.clone().string_value(value).build();
        message = message.message_attributes(name, value.expect("it has a type"));
    }
    let Err(error) = message.send().await else {
        return Ok(());
    };
    let answer = error.raw_response();
    let refused = answer.is_some_and(|answer| answer.status().is_client_error());
    let not_stored = refused || matches!(error, SdkError::ConstructionFailure(_));
    let unavailable = StoreError::new(StoreErrorKind::Unavailable).caused_by(error);
    Err(match not_stored {
        true => PublishError::Failed(unavailable),
        false => PublishError::Unknown(unavailable),
    })
}

async fn receive(sqs: Client, queue: String, secret: Secret) -> Result<(), Box<dyn Error>> {
    let publish = move |delivery| publish(sqs.clone(), queue.clone(), delivery);
    // Several processes share a `RedisStore` or `PostgresStore`.
    let sink = QueueSink::new(MemoryStore::default(), publish).lease(LEASE);
    let builder = Receiver::builder().secret(secret);
    let acceptor = builder.max_body(700_000).accept_into(sink)?; // SQS: 1 MiB with attributes
    let listener = tokio::net::TcpListener::bind(env::var("ADDR")?).await?;
    println!("listening on http://{}/webhooks", listener.local_addr()?);
    let app = Router::new().route("/webhooks", post_service(acceptor));
    Ok(axum::serve(listener, app).await?)
}

/// Ends with an error if it cannot reach SQS: its supervisor starts it again.
async fn consume(sqs: Client, queue: String, secret: Secret) -> Result<(), Box<dyn Error>> {
    let dead = env::var("DEAD_LETTERS_URL")?;
    // Here an event runs once while the process lives; a `RedisStore` or `PostgresStore` remembers
    // it for all consumers.
    let builder = Receiver::builder().secret(secret).run_limit(LONGEST);
    let receiver = builder.store(MemoryStore::default()).build()?;
    let on_event = async |event: Event| println!("handled {}", event.id);
    loop {
        // One message at a time, which is invisible to other consumers from here on.
        let next = sqs
            .receive_message()
            .queue_url(&queue)
            .wait_time_seconds(20);
        let next = next
            .message_attribute_names("All")
            .visibility_timeout(VISIBLE_AFTER);
        for message in next.send().await?.messages.unwrap_or_default() {
            let attributes = message.message_attributes.unwrap_or_default();
            let text = message.body.unwrap_or_default();
            let body = STANDARD.decode(&text).unwrap_or_default(); // an empty body is not authentic
            let attribute = |name: &str| attributes.get(name)?.string_value();
            let stored = StoredDelivery::from_attributes(body, attribute);
            let ran = receiver.run_stored(&stored, on_event).await;
            match ran.acknowledgement() {
                Acknowledgement::Done => {}
                Acknowledgement::Retry => continue, // it is visible again after a while
                Acknowledgement::DeadLetter => {
                    println!("dead letter: {ran}");
                    let id = message.message_id.unwrap_or_default();
                    let put = sqs.send_message().queue_url(&dead).message_body(text);
                    let put = put.message_group_id(&id).message_deduplication_id(&id);
                    put.set_message_attributes(Some(attributes)).send().await?;
                }
            }
            let handle = message.receipt_handle.unwrap_or_default();
            let delete = sqs
                .delete_message()
                .queue_url(&queue)
                .receipt_handle(handle);
            delete.send().await?;
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let secret = Secret::from_env("WEBHOOK_SECRET")?;
    let queue = env::var("QUEUE_URL")?;
    let tls = Provider::Rustls(CryptoMode::Ring);
    let http = aws_smithy_http_client::Builder::new().tls_provider(tls);
    let config = aws_config::from_env().http_client(http.build_https());
    // One attempt: its error tells whether the message is stored. The sender tries again.
    let config = config.retry_config(RetryConfig::disabled()).load().await;
    let sqs = Client::new(&config);
    match env::args().nth(1).as_deref() {
        Some("consume") => consume(sqs, queue, secret).await,
        _ => receive(sqs, queue, secret).await,
    }
}
