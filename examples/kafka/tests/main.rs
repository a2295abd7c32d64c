//! The example with the mock cluster of librdkafka, which lives in the test's process and keeps
//! nothing after it. So only producer and consumer are killed.

#![allow(clippy::unwrap_used, clippy::expect_used)] // A test panics on an unexpected result.

#[path = "../../../tests/queues/mod.rs"]
mod queues;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use queues::process::own_secret;
use queues::{Halves, PATIENCE, until_accepted, whole};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::{Headers, Message, OwnedMessage};
use rdkafka::mocking::MockCluster;
use rdkafka::producer::{FutureProducer, FutureRecord};
use rdkafka::types::{RDKafkaApiKey, RDKafkaRespErr};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

const EXAMPLE: &str = env!("CARGO_BIN_EXE_hookgate-kafka");
const PARTITIONS: i32 = 4;

type Cluster = MockCluster<'static, rdkafka::producer::DefaultProducerContext>;

fn cluster() -> Cluster {
    let cluster = MockCluster::new(3).unwrap();
    for topic in ["webhooks", "webhooks.dead"] {
        cluster.create_topic(topic, PARTITIONS, 3).unwrap();
    }
    cluster
}

/// A killed consumer says nothing, and its successor waits until its session ends: so a short one,
/// longer than the 3 s that the mock waits for the members of a new group.
fn halves(cluster: &Cluster) -> Halves {
    let properties = format!(
        "bootstrap.servers={} session.timeout.ms=4000 heartbeat.interval.ms=500",
        cluster.bootstrap_servers()
    );
    Halves::new(EXAMPLE, &[("KAFKA", &properties)])
}

/// The content of a topic.
fn stored(cluster: &Cluster, topic: &str) -> Vec<OwnedMessage> {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", cluster.bootstrap_servers())
        .set("group.id", "test")
        .set("enable.partition.eof", "true")
        .create()
        .unwrap();
    let mut partitions = TopicPartitionList::new();
    for partition in 0..PARTITIONS {
        let from = Offset::Beginning;
        partitions
            .add_partition_offset(topic, partition, from)
            .unwrap();
    }
    consumer.assign(&partitions).unwrap();
    let (mut stored, mut ends) = (Vec::new(), 0);
    let until = Instant::now() + PATIENCE;
    while ends < PARTITIONS {
        assert!(Instant::now() < until, "{ends} partitions were read");
        match consumer.poll(Duration::from_millis(100)) {
            Some(Ok(message)) => stored.push(message.detach()),
            Some(Err(rdkafka::error::KafkaError::PartitionEOF(_))) => ends += 1,
            Some(Err(error)) => panic!("{error}"),
            None => {}
        }
    }
    stored
}

/// A row's event that is as long as asked for.
fn row_event(event: &str, row: &str, bytes: usize) -> String {
    let body = format!(
        r#"{{"id":"{event}","type":"row.deleted","createdAt":"2026-11-21T09:30:00Z","workspaceId":"ws_1","data":{{"datamodelId":"dm_1","rowId":"{row}"}}}}"#
    );
    let padding = bytes.saturating_sub(body.len());
    body + &" ".repeat(padding)
}

#[test]
fn a_message_has_the_body_byte_for_byte_and_the_key_of_its_row() {
    let cluster = cluster();
    let example = halves(&cluster).producer();
    let bodies = [1, 2, 3].map(|event| row_event(&format!("evt_{event}"), "row é 1", 950_000));
    for body in &bodies {
        assert_eq!(example.deliver(own_secret(), body).status, 200);
    }
    assert!(example.deliver(own_secret(), &bodies[0]).is_replay());
    let messages = stored(&cluster, "webhooks");
    let payloads = messages.iter().map(|message| message.payload().unwrap());
    assert!(
        payloads.eq(bodies.iter().map(String::as_bytes)),
        "in order, each once"
    );
    for message in &messages {
        assert_eq!(message.key().unwrap(), "row é 1".as_bytes());
        let headers: BTreeMap<_, _> = message
            .headers()
            .unwrap()
            .iter()
            .map(|header| {
                (
                    header.key,
                    std::str::from_utf8(header.value.unwrap()).unwrap(),
                )
            })
            .collect();
        assert!(headers["x-service-signature"].starts_with("sha256="));
        assert!(headers["x-service-timestamp"].parse::<u64>().is_ok());
        assert!(headers["x-service-event-id"].starts_with("evt_"));
        assert_eq!(headers["hookgate-scope"], "default");
    }
}

/// The client refuses it before it is sent, so the claim is released: the next delivery is no
/// conflict.
#[test]
fn a_message_that_is_too_long_is_503_and_a_retry_is_published_at_once() {
    let cluster = cluster();
    let example = halves(&cluster).producer();
    let key = "r".repeat(60_000);
    let refused = example.deliver(own_secret(), &row_event("evt_1", &key, 945_000));
    assert!(refused.status == 503 && refused.has("retry-after: 10"));
    assert_eq!(
        example
            .deliver(own_secret(), &row_event("evt_1", "row_1", 0))
            .status,
        200
    );
    assert_eq!(stored(&cluster, "webhooks").len(), 1);
}

/// Its claim stays until the lease ends.
#[test]
fn a_message_in_doubt_is_503_and_its_retry_is_published_after_the_lease() {
    let cluster = cluster();
    let example = halves(&cluster).producer();
    assert_eq!(example.deliver(own_secret(), &whole("evt_1")).status, 200);
    let refused = RDKafkaRespErr::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED;
    cluster.request_errors(RDKafkaApiKey::Produce, &[refused]);
    let began = Instant::now();
    assert_eq!(example.deliver(own_secret(), &whole("evt_2")).status, 503);
    until_accepted(&example, &whole("evt_2"));
    assert!(
        began.elapsed() >= Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(stored(&cluster, "webhooks").len(), 2);
}

#[test]
fn brokers_that_are_down_are_503_and_the_message_is_stored_once() {
    let cluster = cluster();
    let halves = halves(&cluster);
    let (example, mut consumer) = (halves.producer(), halves.consumer());
    assert_eq!(example.deliver(own_secret(), &whole("evt_1")).status, 200);
    consumer.wait_for(1);
    (1..=3).for_each(|broker| cluster.broker_down(broker).unwrap());
    assert_eq!(example.deliver(own_secret(), &whole("evt_2")).status, 503);
    (1..=3).for_each(|broker| cluster.broker_up(broker).unwrap());
    until_accepted(&example, &whole("evt_2"));
    assert_eq!(stored(&cluster, "webhooks").len(), 2);
    assert_eq!(consumer.wait_for(2), ["handled evt_1", "handled evt_2"]);
}

/// The client of an idempotent producer sends nothing more after such an error.
#[test]
fn a_producer_whose_client_gave_up_ends_and_starts_again() {
    let cluster = cluster();
    let halves = halves(&cluster);
    let example = halves.producer();
    assert_eq!(example.deliver(own_secret(), &whole("evt_1")).status, 200);
    let fatal = RDKafkaRespErr::RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER;
    cluster.request_errors(RDKafkaApiKey::Produce, &[fatal]);
    assert_eq!(example.deliver(own_secret(), &whole("evt_2")).status, 503);
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        example.deliver(own_secret(), &whole("evt_3"))
    }));
    assert!(ended.is_err(), "{ended:?}");
    assert_eq!(
        halves
            .producer()
            .deliver(own_secret(), &whole("evt_2"))
            .status,
        200
    );
}

#[tokio::test]
async fn a_changed_message_is_a_dead_letter_and_the_others_are_handled() {
    let cluster = cluster();
    let halves = halves(&cluster);
    let example = halves.producer();
    assert_eq!(example.deliver(own_secret(), &whole("evt_1")).status, 200);
    let forger: FutureProducer = ClientConfig::new()
        .set("bootstrap.servers", cluster.bootstrap_servers())
        .create()
        .unwrap();
    let body = whole("evt_2");
    let forged = FutureRecord::to("webhooks").key("evt_1").payload(&body);
    forger.send(forged, PATIENCE).await.unwrap();
    assert_eq!(example.deliver(own_secret(), &whole("evt_3")).status, 200);
    let said = halves.consumer().wait_for(3);
    let dead: Vec<_> = said
        .iter()
        .filter(|line| line.starts_with("dead letter: not_authentic"))
        .collect();
    assert!(said.len() == 3 && dead.len() == 1, "{said:?}");
    let dead = stored(&cluster, "webhooks.dead");
    assert!(dead.len() == 1 && dead[0].payload() == Some(body.as_bytes()));
    assert_eq!(dead[0].key(), Some(&b"evt_1"[..]));
}

#[test]
fn nothing_is_lost_when_producer_and_consumer_are_killed() {
    let cluster = cluster();
    halves(&cluster).nothing_is_lost(None);
}

#[test]
fn it_has_120_lines_at_most() {
    let lines = include_str!("../src/main.rs").lines().count();
    assert!(lines <= 120, "{lines}");
}
