//! The example with the test's own moto, which stands in for SQS. It keeps nothing across a
//! restart, so only producer and consumer are killed.

#![allow(clippy::unwrap_used, clippy::expect_used)] // A test panics on an unexpected result.

#[path = "../../../tests/queues/mod.rs"]
mod queues;

use std::collections::HashMap;
use std::process::Command;
use std::time::{Duration, Instant};

use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::{Config, Credentials, Region};
use aws_sdk_sqs::types::{Message, MessageSystemAttributeName, QueueAttributeName};
use base64::{Engine, engine::general_purpose::STANDARD};
use queues::process::own_secret;
use queues::server::{Server, free_port, program};
use queues::{Halves, until_accepted, whole};

const EXAMPLE: &str = env!("CARGO_BIN_EXE_hookgate-sqs");
const TOOLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/tools/moto/bin");

struct Sqs {
    server: Server,
    port: u16,
    client: Client,
}

impl Sqs {
    async fn start() -> Option<Self> {
        let port = free_port();
        let client = Client::from_conf(
            Config::builder()
                .behavior_version(aws_config::BehaviorVersion::latest())
                .region(Region::new("us-east-1"))
                .credentials_provider(Credentials::new("made", "up", None, None, "test"))
                .http_client(aws_smithy_http_client::Builder::new().build_http())
                .endpoint_url(format!("http://127.0.0.1:{port}"))
                .build(),
        );
        let server = run(port)?;
        let sqs = Self {
            server,
            port,
            client,
        };
        sqs.make_queues().await;
        Some(sqs)
    }

    /// As README.md says.
    async fn make_queues(&self) {
        for (name, redrive) in [
            ("webhooks-dead.fifo", None),
            (
                "webhooks.fifo",
                Some(
                    r#"{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:123456789012:webhooks-dead.fifo","maxReceiveCount":"10"}"#,
                ),
            ),
        ] {
            let made = self.client.create_queue().queue_name(name);
            let mut made = made.attributes(QueueAttributeName::FifoQueue, "true");
            if let Some(redrive) = redrive {
                made = made.attributes(QueueAttributeName::RedrivePolicy, redrive);
            }
            let url = made.send().await.unwrap().queue_url.unwrap();
            assert_eq!(url, self.url(name));
        }
    }

    fn url(&self, name: &str) -> String {
        format!("http://127.0.0.1:{}/123456789012/{name}", self.port)
    }

    fn halves(&self) -> Halves {
        let variables = [
            (
                "AWS_ENDPOINT_URL",
                &*format!("http://127.0.0.1:{}", self.port),
            ),
            ("AWS_REGION", "us-east-1"),
            ("AWS_ACCESS_KEY_ID", "made"),
            ("AWS_SECRET_ACCESS_KEY", "up"),
            ("QUEUE_URL", &self.url("webhooks.fifo")),
            ("DEAD_LETTERS_URL", &self.url("webhooks-dead.fifo")),
        ];
        Halves::new(EXAMPLE, &variables)
    }

    /// Receives a message, with all that it has, if there is one. It stays visible.
    async fn look(&self, name: &str) -> Option<Message> {
        let received = self.client.receive_message().queue_url(self.url(name));
        let received = received.message_attribute_names("All");
        let received = received.message_system_attribute_names(MessageSystemAttributeName::All);
        let received = received.visibility_timeout(0).send().await.unwrap();
        received.messages.unwrap_or_default().pop()
    }
}

fn run(port: u16) -> Option<Server> {
    let mut command = Command::new(program("moto_server", &[TOOLS])?);
    command.args(["-H", "127.0.0.1", "-p", &port.to_string()]);
    Some(Server::start(&mut command, port))
}

#[tokio::test]
async fn a_message_has_the_body_byte_for_byte_and_the_group_of_its_row() {
    let Some(sqs) = Sqs::start().await else {
        return;
    };
    // SQS takes no U+FFFF as text, and a group no spaces.
    let body = "{\"id\":\"evt_1\",\"type\":\"row.deleted\",\"createdAt\":\"2026-11-21T09:30:00Z\",\"workspaceId\":\"ws_1\",\
         \"data\":{\"datamodelId\":\"dm_1\",\"rowId\":\"row é 1\",\"of\":\"\u{ffff}\\u0000 \"}}\n";
    let example = sqs.halves().producer();
    assert_eq!(example.deliver(own_secret(), body).status, 200);
    let copy = example.deliver(own_secret(), body);
    assert!(copy.is_replay(), "{copy:?}");
    let message = sqs.look("webhooks.fifo").await.unwrap();
    assert_eq!(
        STANDARD.decode(message.body.unwrap()).unwrap(),
        body.as_bytes()
    );
    let attributes = message.message_attributes.unwrap();
    let attributes: HashMap<_, _> = attributes
        .iter()
        .map(|(name, value)| (&**name, value.string_value().unwrap()))
        .collect();
    assert!(attributes["x-service-signature"].starts_with("sha256="));
    assert!(attributes["x-service-timestamp"].parse::<u64>().is_ok());
    assert_eq!(attributes["x-service-event-id"], "evt_1");
    assert_eq!(attributes["hookgate-scope"], "default");
    assert!(attributes.len() <= 10, "SQS takes 10");
    let system = message.attributes.unwrap();
    assert_eq!(
        system[&MessageSystemAttributeName::MessageGroupId],
        "row___1"
    );
    assert_eq!(
        system[&MessageSystemAttributeName::MessageDeduplicationId].len(),
        32
    );
}

#[tokio::test]
async fn the_longest_body_fits_into_a_message() {
    let Some(sqs) = Sqs::start().await else {
        return;
    };
    let example = sqs.halves().producer();
    let body = whole("evt_1");
    let body = body.clone() + &" ".repeat(700_000 - body.len());
    assert_eq!(example.deliver(own_secret(), &body).status, 200);
}

/// SQS's own limit of tries, by the redrive policy.
#[tokio::test]
async fn a_message_that_is_received_ten_times_is_a_dead_letter() {
    let Some(sqs) = Sqs::start().await else {
        return;
    };
    let example = sqs.halves().producer();
    assert_eq!(example.deliver(own_secret(), &whole("evt_1")).status, 200);
    for _ in 0..10 {
        assert!(sqs.look("webhooks.fifo").await.is_some());
    }
    assert!(sqs.look("webhooks.fifo").await.is_none());
    let dead = sqs.look("webhooks-dead.fifo").await.unwrap();
    assert_eq!(
        STANDARD.decode(dead.body.unwrap()).unwrap(),
        whole("evt_1").as_bytes()
    );
}

#[tokio::test]
async fn a_refused_message_is_503_and_its_retry_is_published_at_once() {
    let Some(sqs) = Sqs::start().await else {
        return;
    };
    let example = sqs.halves().producer();
    let url = sqs.url("webhooks.fifo");
    sqs.client
        .delete_queue()
        .queue_url(url)
        .send()
        .await
        .unwrap();
    let refused = example.deliver(own_secret(), &whole("evt_1"));
    assert!(refused.status == 503 && refused.has("retry-after: 10"));
    sqs.make_queues().await;
    assert_eq!(example.deliver(own_secret(), &whole("evt_1")).status, 200);
}

#[tokio::test]
async fn a_message_in_doubt_is_503_and_its_retry_is_published_after_the_lease() {
    let Some(mut sqs) = Sqs::start().await else {
        return;
    };
    let example = sqs.halves().producer();
    sqs.server.kill();
    let began = Instant::now();
    assert_eq!(example.deliver(own_secret(), &whole("evt_1")).status, 503);
    sqs.server = run(sqs.port).unwrap();
    sqs.make_queues().await;
    until_accepted(&example, &whole("evt_1"));
    assert!(
        began.elapsed() >= Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
    assert!(sqs.look("webhooks.fifo").await.is_some());
}

#[tokio::test]
async fn a_changed_message_is_a_dead_letter_and_the_others_are_handled() {
    let Some(sqs) = Sqs::start().await else {
        return;
    };
    let halves = sqs.halves();
    let example = halves.producer();
    assert_eq!(example.deliver(own_secret(), &whole("evt_1")).status, 200);
    let url = sqs.url("webhooks.fifo");
    let forged = sqs
        .client
        .send_message()
        .queue_url(&url)
        .message_body(whole("evt_2"));
    let forged = forged
        .message_group_id("evt_2")
        .message_deduplication_id("evt_2");
    forged.send().await.unwrap();
    assert_eq!(example.deliver(own_secret(), &whole("evt_3")).status, 200);
    let said = halves.consumer().wait_for(3);
    let dead: Vec<_> = said
        .iter()
        .filter(|line| line.starts_with("dead letter: "))
        .collect();
    assert!(said.len() == 3 && dead.len() == 1, "{said:?}");
    let dead = sqs.look("webhooks-dead.fifo").await.unwrap();
    assert_eq!(dead.body.unwrap(), whole("evt_2"));
}

#[tokio::test]
async fn nothing_is_lost_when_producer_and_consumer_are_killed() {
    let Some(sqs) = Sqs::start().await else {
        return;
    };
    sqs.halves().nothing_is_lost(None);
}

#[test]
fn it_has_120_lines_at_most() {
    let lines = include_str!("../src/main.rs").lines().count();
    assert!(lines <= 120, "{lines}");
}
