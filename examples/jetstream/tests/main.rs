//! The example with the test's own NATS server, which is killed and started again.

#![allow(clippy::unwrap_used, clippy::expect_used)] // A test panics on an unexpected result.

#[path = "../../../tests/queues/mod.rs"]
mod queues;

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_nats::jetstream;
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, StorageType, Stream};
use hookgate::{
    Delivery, MemoryStore,
    clock::UnixSeconds,
    dedupe::{StoreError, StoreErrorKind},
    receiver::StoredDelivery,
    sink::{Accepted, PublishError, QueueSink, Sink},
    verify::Signature,
};
use queues::folder::Folder;
use queues::process::{Example, Reply, own_secret};
use queues::server::{Server, free_port, program};
use queues::{Halves, PATIENCE, whole};

const EXAMPLE: &str = env!("CARGO_BIN_EXE_hookgate-jetstream");
const DAYS_2: Duration = Duration::from_secs(48 * 3_600);

struct Nats {
    server: Server,
    folder: Folder,
    port: u16,
}

impl Nats {
    fn start() -> Option<Self> {
        let (folder, port) = (Folder::new(), free_port());
        let server = run(&folder, port)?;
        Some(Self {
            server,
            folder,
            port,
        })
    }

    fn start_again(&mut self) {
        self.server = run(&self.folder, self.port).unwrap();
    }

    fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    fn halves(&self) -> Halves {
        let claims = self.folder.path().join("claims.db");
        let claims = claims.to_str().unwrap();
        Halves::new(EXAMPLE, &[("NATS_URL", &self.url()), ("CLAIMS", claims)])
    }

    fn example(&self) -> Example {
        self.halves().producer()
    }

    /// Makes the stream beforehand.
    async fn make(&self, config: Config) -> Stream {
        let context = jetstream::new(async_nats::connect(self.url()).await.unwrap());
        let named = Config {
            name: "webhooks".into(),
            subjects: vec!["webhooks.>".into()],
            ..config
        };
        context.create_stream(named).await.unwrap()
    }

    /// Returns the content of the stream: the headers and the body of each message.
    async fn stored(&self) -> Vec<(BTreeMap<String, String>, String)> {
        let context = jetstream::new(async_nats::connect(self.url()).await.unwrap());
        let mut stream = context.get_stream("webhooks").await.unwrap();
        let state = stream.info().await.unwrap().state.clone();
        let mut stored = Vec::new();
        if state.messages == 0 {
            return stored;
        }
        for sequence in state.first_sequence..=state.last_sequence {
            let message = stream.get_raw_message(sequence).await.unwrap();
            let headers = message.headers.iter().map(|(name, values)| {
                let value = values.first().unwrap().as_str();
                (name.to_string(), value.to_owned())
            });
            let body = String::from_utf8(message.payload.to_vec()).unwrap();
            stored.push((headers.collect(), body));
        }
        assert_eq!(stored.len() as u64, state.messages);
        stored
    }
}

fn run(folder: &Folder, port: u16) -> Option<Server> {
    let mut command = Command::new(program("nats-server", &["/usr/sbin", "/usr/bin"])?);
    command.args(["--jetstream", "--addr", "127.0.0.1", "--port"]);
    command.arg(port.to_string());
    command.arg("--store_dir").arg(folder.path());
    Some(Server::start(&mut command, port))
}

fn body(id: &str) -> String {
    format!(r#"{{"id":"{id}","type":"page.created","data":{{"of":"{id}"}}}}"#)
}

fn deliver(example: &Example, id: &str) -> Reply {
    example.deliver(own_secret(), &body(id))
}

/// Delivers as the sender does, though sooner: again until it is accepted. Returns whether it was
/// answered as a replay.
fn until_accepted(example: &Example, id: &str) -> bool {
    let until = Instant::now() + PATIENCE;
    loop {
        let reply = deliver(example, id);
        if reply.status == 200 {
            return reply.is_replay();
        }
        assert_eq!(reply.status, 503);
        assert!(reply.has("retry-after: 10"));
        assert!(
            Instant::now() < until,
            "NATS is back, and {id} is not accepted"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost_when_nats_is_killed() {
    let Some(mut nats) = Nats::start() else {
        return;
    };
    let example = nats.example();
    let accepted = Mutex::new(BTreeSet::new());
    let seen_down = Mutex::new(0);
    std::thread::scope(|scope| {
        for sender in 0..4 {
            let (example, accepted, seen_down) = (&example, &accepted, &seen_down);
            scope.spawn(move || {
                for event in 0..100 {
                    let id = format!("evt_{sender}_{event}");
                    let status = deliver(example, &id).status;
                    match status {
                        200 => assert!(accepted.lock().unwrap().insert(id)),
                        503 => *seen_down.lock().unwrap() += 1,
                        _ => panic!("{status}"),
                    }
                }
            });
        }
        for kill in 1..=3 {
            let enough = || accepted.lock().unwrap().len() >= 80 * kill;
            let until = Instant::now() + PATIENCE;
            while !enough() && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(1));
            }
            nats.server.kill();
            // Longer than an answer may take.
            std::thread::sleep(Duration::from_secs(5));
            nats.start_again();
        }
    });
    let accepted = accepted.into_inner().unwrap();
    assert!(accepted.len() >= 240, "{}", accepted.len());
    assert!(
        seen_down.into_inner().unwrap() >= 3,
        "nobody has met a dead server"
    );
    // Deliveries that were answered 2xx are duplicates now; the others are accepted by the retry,
    // or were stored after their 503.
    for sender in 0..4 {
        for event in 0..100 {
            let id = format!("evt_{sender}_{event}");
            let replayed = until_accepted(&example, &id);
            assert!(replayed || !accepted.contains(&id), "{id} was lost");
        }
    }
    let stored = nats.stored().await;
    let ids: BTreeSet<_> = stored
        .iter()
        .map(|(headers, _)| headers["Nats-Msg-Id"].clone())
        .collect();
    assert_eq!((stored.len(), ids.len()), (400, 400), "each once");
    for (headers, stored_body) in &stored {
        let id = stored_body.split('"').nth(3).unwrap();
        assert_eq!(*stored_body, body(id));
        assert_eq!(headers["hookgate-scope"], "default");
        assert_eq!(headers["hookgate-key"], "primary");
        assert!(headers["x-service-timestamp"].parse::<u64>().is_ok());
        assert!(headers["x-service-signature"].starts_with("sha256="));
        assert_eq!(headers["Nats-Msg-Id"].len(), 32);
    }
}

#[tokio::test]
async fn a_server_that_is_down_is_503_and_the_retry_is_accepted() {
    let Some(mut nats) = Nats::start() else {
        return;
    };
    let example = nats.example();
    assert_eq!(deliver(&example, "evt_1").status, 200);
    nats.server.kill();
    let began = Instant::now();
    let down = deliver(&example, "evt_2");
    assert!(down.status == 503 && down.has("retry-after: 10"));
    assert!(began.elapsed() < PATIENCE);
    nats.start_again();
    until_accepted(&example, "evt_2");
    assert!(until_accepted(&example, "evt_1"));
    assert_eq!(nats.stored().await.len(), 2);
}

#[tokio::test]
async fn a_forged_delivery_is_not_written() {
    let Some(nats) = Nats::start() else {
        return;
    };
    let example = nats.example();
    let forged = example.deliver("whsec_made_up_by_a_forger", &body("evt_1"));
    assert_eq!(forged.status, 401);
    assert_eq!(nats.stored().await.len(), 0);
}

#[tokio::test]
async fn a_full_stream_is_503_and_forgets_nothing() {
    let Some(nats) = Nats::start() else {
        return;
    };
    nats.make(Config {
        duplicate_window: DAYS_2,
        discard: DiscardPolicy::New,
        max_messages: 1,
        ..Config::default()
    })
    .await;
    let example = nats.example();
    assert_eq!(deliver(&example, "evt_1").status, 200);
    assert_eq!(deliver(&example, "evt_2").status, 503);
    assert!(deliver(&example, "evt_1").is_replay());
    assert_eq!(nats.stored().await.len(), 1);
}

#[tokio::test]
async fn a_stream_that_forgets_is_refused_at_start() {
    let sound = Config {
        duplicate_window: DAYS_2,
        discard: DiscardPolicy::New,
        ..Config::default()
    };
    for forgetful in [
        Config {
            duplicate_window: Duration::from_secs(120),
            ..sound.clone()
        },
        Config {
            discard: DiscardPolicy::Old,
            ..sound.clone()
        },
        Config {
            retention: RetentionPolicy::WorkQueue,
            ..sound.clone()
        },
        Config {
            max_age: DAYS_2 * 2 / 3,
            duplicate_window: DAYS_2 * 2 / 3,
            ..sound.clone()
        },
        Config {
            storage: StorageType::Memory,
            ..sound.clone()
        },
        Config {
            max_messages_per_subject: 100,
            ..sound
        },
    ] {
        let Some(nats) = Nats::start() else {
            return;
        };
        nats.make(forgetful).await;
        let variables = [("NATS_URL", &*nats.url()), ("WEBHOOK_SECRET", own_secret())];
        let said = Example::refused(EXAMPLE, &variables);
        assert!(said.contains("the stream webhooks forgets"), "{said}");
    }
}

/// The reason why a work queue is refused: after a restart the server knows only the ids of the
/// messages that are left.
#[tokio::test]
async fn ids_go_with_their_messages_at_a_restart() {
    let Some(mut nats) = Nats::start() else {
        return;
    };
    let stream = nats.make(Config::default()).await;
    let context = jetstream::new(async_nats::connect(nats.url()).await.unwrap());
    let is_known = async |context: &jetstream::Context| {
        let message = jetstream::message::PublishMessage::build().message_id("evt_1");
        let sent = context.send_publish("webhooks.events", message).await;
        sent.unwrap().await.unwrap().duplicate
    };
    assert!(!is_known(&context).await);
    assert!(stream.delete_message(1).await.unwrap());
    assert!(is_known(&context).await);
    nats.server.kill();
    nats.start_again();
    let context = jetstream::new(async_nats::connect(nats.url()).await.unwrap());
    assert!(!is_known(&context).await);
}

#[tokio::test]
async fn a_changed_message_is_a_dead_letter_and_the_others_are_handled() {
    let Some(nats) = Nats::start() else {
        return;
    };
    let example = nats.example();
    assert_eq!(example.deliver(own_secret(), &whole("evt_1")).status, 200);
    let context = jetstream::new(async_nats::connect(nats.url()).await.unwrap());
    // With the id under which an authentic one would be known: its dead letter must not be taken
    // for a copy.
    let mut headers = async_nats::HeaderMap::new();
    headers.insert("Nats-Msg-Id", "the forged one");
    let forged = context.publish_with_headers("webhooks.events", headers, whole("evt_2").into());
    forged.await.unwrap().await.unwrap();
    assert_eq!(example.deliver(own_secret(), &whole("evt_3")).status, 200);
    let halves = nats.halves();
    let said = halves.consumer().wait_for(3);
    assert!(
        said.len() == 3 && said[1].starts_with("dead letter: not_authentic"),
        "{said:?}"
    );
    let mut stream = context.get_stream("webhooks").await.unwrap();
    assert_eq!(stream.info().await.unwrap().state.messages, 4);
    let dead = stream
        .get_last_raw_message_by_subject("webhooks.dead")
        .await
        .unwrap();
    assert_eq!(dead.payload, whole("evt_2"));
}

#[test]
fn nothing_is_lost_when_producer_consumer_and_server_are_killed() {
    let Some(mut nats) = Nats::start() else {
        return;
    };
    let halves = nats.halves();
    halves.nothing_is_lost(Some(&mut || {
        nats.server.kill();
        nats.start_again();
    }));
}

/// `Sink::accept` of a queue behind a `MemoryStore`, against the client's own publish of the same
/// message, in turns.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement: cargo test --release --manifest-path examples/jetstream/Cargo.toml -- --ignored --nocapture"]
async fn the_rate_behind_claims() {
    const AT_ONCE: usize = 64;
    const EVENTS: usize = 4_000;
    let Some(nats) = Nats::start() else {
        return;
    };
    nats.make(Config::default()).await;
    let context = jetstream::new(async_nats::connect(nats.url()).await.unwrap());
    let publisher = context.clone();
    let sink = Arc::new(QueueSink::new(
        MemoryStore::default(),
        move |delivery: Delivery| {
            let context = publisher.clone();
            async move {
                let (headers, body) = (headers(&delivery), delivery.body().clone());
                let unknown =
                    |_| PublishError::Unknown(StoreError::new(StoreErrorKind::Unavailable));
                let published = context
                    .publish_with_headers("webhooks.events", headers, body)
                    .await;
                published.map_err(unknown)?.await.map(drop).map_err(unknown)
            }
        },
    ));
    let mut rates = [Vec::new(), Vec::new()];
    for round in 0..2 * 9 {
        let deliveries: Vec<_> = (0..EVENTS)
            .map(|event| delivery(&format!("evt_{round}_{event}")))
            .collect();
        let messages: Vec<_> = deliveries
            .iter()
            .map(|one| (headers(one), one.body().clone()))
            .collect();
        let (deliveries, messages, next) = (
            Arc::new(deliveries),
            Arc::new(messages),
            Arc::new(AtomicUsize::new(0)),
        );
        let behind_claims = round % 2 == 1;
        let began = Instant::now();
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..AT_ONCE {
            let (deliveries, messages, next) = (
                Arc::clone(&deliveries),
                Arc::clone(&messages),
                Arc::clone(&next),
            );
            let (sink, context) = (Arc::clone(&sink), context.clone());
            tasks.spawn(async move {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= EVENTS {
                        return;
                    }
                    if behind_claims {
                        let accepted = sink.accept(&deliveries[at], DAYS_2).await.unwrap();
                        assert_eq!(accepted, Accepted::New);
                    } else {
                        let (headers, body) = messages[at].clone();
                        let published =
                            context.publish_with_headers("webhooks.events", headers, body);
                        published.await.unwrap().await.unwrap();
                    }
                }
            });
        }
        tasks.join_all().await;
        rates[round % 2].push(EVENTS as f64 / began.elapsed().as_secs_f64());
    }
    let [own, claimed] = rates.map(|mut rates| {
        rates.sort_by(f64::total_cmp);
        rates[rates.len() / 2]
    });
    println!(
        "a second, medians of 9: the client's own {own:.0}, behind claims {claimed:.0}, ratio {:.2}",
        claimed / own
    );
}

fn headers(delivery: &Delivery) -> async_nats::HeaderMap {
    let mut headers = async_nats::HeaderMap::new();
    for (name, value) in delivery.to_stored().attributes() {
        headers.insert(name, value);
    }
    headers
}

fn delivery(id: &str) -> Delivery {
    let restored = hookgate::dangerous::restore(&StoredDelivery {
        body: (whole(id) + &" ".repeat(900)).into(),
        timestamp: "1763690000".into(),
        signature: Signature::parse(format!("sha256={}", "0a".repeat(32)).as_bytes()).ok(),
        event_id: id.into(),
        event_type: "page.created".into(),
        received_at: UnixSeconds::new(1_763_690_001),
        scope: "default".into(),
        key_name: "primary".into(),
        subscription_id: None,
        pinned_workspace: None,
        traceparent: None,
        scheme: "workspace".into(),
    });
    restored.unwrap()
}

#[test]
fn it_has_120_lines_at_most() {
    let lines = include_str!("../src/main.rs").lines().count();
    assert!(lines <= 120, "{lines}");
}
