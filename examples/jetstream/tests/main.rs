//! The example with the test's own NATS server, which is killed and started again.

#![allow(clippy::unwrap_used, clippy::expect_used)] // A test panics on an unexpected result.

#[allow(dead_code)] // some items are needed only by other tests
#[path = "../../../tests/servers/support/folder.rs"]
mod folder;
#[allow(dead_code)]
#[path = "../../../tests/it/process.rs"]
mod process;
#[allow(dead_code)]
#[path = "../../../tests/servers/support/server.rs"]
mod server;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_nats::jetstream;
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, StorageType, Stream};
use folder::Folder;
use hookgate::{
    Delivery, MemoryStore,
    clock::UnixSeconds,
    dedupe::{StoreError, StoreErrorKind},
    receiver::StoredDelivery,
    sink::{Accepted, PublishError, QueueSink, Sink},
    verify::Signature,
};
use process::{Example, Reply};
use server::{Server, free_port, program};

const SECRET: &str = "whsec_made_up_for_jetstream";
const EXAMPLE: &str = env!("CARGO_BIN_EXE_hookgate-jetstream");
const DAYS_2: Duration = Duration::from_secs(48 * 3_600);
/// Far more time than any step here takes.
const PATIENCE: Duration = Duration::from_secs(60);

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

    fn example(&self) -> Example {
        Example::start(
            EXAMPLE,
            &[("NATS_URL", &self.url()), ("WEBHOOK_SECRET", SECRET)],
        )
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
    example.deliver(SECRET, &body(id))
}

/// Delivers as the sender does, though sooner: again until it is accepted. Returns whether it was answered as a replay.
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
    // Deliveries that were answered 2xx are duplicates now; the others are accepted by the retry, or were stored after their 503.
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
    assert!(began.elapsed() < Duration::from_secs(30));
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
        let variables = [("NATS_URL", &*nats.url()), ("WEBHOOK_SECRET", SECRET)];
        let said = Example::refused(EXAMPLE, &variables);
        assert!(said.contains("the stream webhooks forgets"), "{said}");
    }
}

/// The reason why a work queue is refused: after a restart the server knows only the ids of the messages that are left.
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

/// The other program: it handles the messages of the stream. It is killed by its process id when this value is dropped.
struct Consumer {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Consumer {
    fn start(nats: &Nats, lines: &Arc<Mutex<Vec<String>>>) -> Self {
        let mut child = Command::new(EXAMPLE)
            .arg("consume")
            .envs([("NATS_URL", &*nats.url()), ("WEBHOOK_SECRET", SECRET)])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (output, lines) = (child.stdout.take().unwrap(), Arc::clone(lines));
        let kept = Arc::clone(&lines);
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                kept.lock().unwrap().push(line);
            }
        });
        Self { child, lines }
    }

    /// As its supervisor would.
    fn start_again_if_ended(&mut self, nats: &Nats) {
        if self.child.try_wait().unwrap().is_some() {
            *self = Self::start(nats, &self.lines);
        }
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        self.kill();
    }
}

fn handled(lines: &Mutex<Vec<String>>) -> BTreeSet<String> {
    let lines = lines.lock().unwrap();
    let ids = lines
        .iter()
        .filter_map(|line| line.strip_prefix("handled "));
    ids.map(str::to_owned).collect()
}

/// An event that the consumer can read as a whole.
fn whole(id: &str) -> String {
    format!(
        r#"{{"id":"{id}","type":"page.created","createdAt":"2026-11-21T09:30:00Z","workspaceId":"ws_1","data":{{}}}}"#
    )
}

#[tokio::test]
async fn a_changed_message_is_a_dead_letter_and_the_others_are_handled() {
    let Some(nats) = Nats::start() else {
        return;
    };
    let example = nats.example();
    assert_eq!(example.deliver(SECRET, &whole("evt_1")).status, 200);
    let context = jetstream::new(async_nats::connect(nats.url()).await.unwrap());
    let forged = context.publish("webhooks.events", whole("evt_2").into());
    forged.await.unwrap().await.unwrap();
    assert_eq!(example.deliver(SECRET, &whole("evt_3")).status, 200);
    let lines = Arc::default();
    let _consumer = Consumer::start(&nats, &lines);
    let until = Instant::now() + PATIENCE;
    while handled(&lines).len() < 2 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    let said = lines.lock().unwrap().clone();
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

/// Producer, consumer and server are killed in turn, each `HOOKGATE_KILLS` times, while a sender retries until 2xx.
#[test]
fn nothing_is_lost_when_producer_consumer_and_server_are_killed() {
    let Some(mut nats) = Nats::start() else {
        return;
    };
    let kills = std::env::var("HOOKGATE_KILLS").map_or(1, |kills| kills.parse::<usize>().unwrap());
    let producer = Mutex::new(Arc::new(nats.example()));
    let lines = Arc::default();
    let mut consumer = Consumer::start(&nats, &lines);
    let (stop, sent) = (AtomicBool::new(false), AtomicUsize::new(0));
    let accepted = std::thread::scope(|scope| {
        let sender = || {
            let mut accepted = BTreeSet::new();
            while !stop.load(Ordering::SeqCst) {
                let id = format!("evt_{}", sent.fetch_add(1, Ordering::SeqCst));
                let until = Instant::now() + PATIENCE;
                loop {
                    let example = Arc::clone(&producer.lock().unwrap());
                    let (body, deliver) = (whole(&id), std::panic::AssertUnwindSafe(&*example));
                    // A connection that breaks with the process is not an answer.
                    let reply = std::panic::catch_unwind(|| deliver.deliver(SECRET, &body).status);
                    if reply.is_ok_and(|status| status == 200) {
                        break;
                    }
                    assert!(Instant::now() < until, "{id} is not accepted");
                    std::thread::sleep(Duration::from_millis(50));
                }
                accepted.insert(id);
            }
            accepted
        };
        let senders = [(); 2].map(|()| scope.spawn(sender));
        for kill in 0..3 * kills {
            std::thread::sleep(Duration::from_millis(300 + 97 * (kill as u64 % 7)));
            match kill % 3 {
                0 => {
                    let killed =
                        std::mem::replace(&mut *producer.lock().unwrap(), Arc::new(nats.example()));
                    killed.kill();
                }
                1 => consumer.kill(),
                _ => {
                    nats.server.kill();
                    nats.start_again();
                }
            }
            consumer.start_again_if_ended(&nats);
        }
        stop.store(true, Ordering::SeqCst);
        let accepted = senders.map(|sender| sender.join().unwrap());
        accepted.into_iter().flatten().collect::<BTreeSet<_>>()
    });
    // What a killed consumer had received is delivered again after `ack_wait`.
    let until = Instant::now() + 3 * PATIENCE;
    while !accepted.is_subset(&handled(&lines)) && Instant::now() < until {
        consumer.start_again_if_ended(&nats);
        std::thread::sleep(Duration::from_millis(50));
    }
    let lost: Vec<_> = accepted.difference(&handled(&lines)).cloned().collect();
    let runs = lines.lock().unwrap().len();
    println!(
        "{kills} kills each: {} accepted, {runs} runs, {} lost",
        accepted.len(),
        lost.len()
    );
    assert!(lost.is_empty() && accepted.len() > 3 * kills, "{lost:?}");
}

/// `Sink::accept` of a queue behind a `MemoryStore`, against the client's own publish of the same message, in turns.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement: cargo test --release -p hookgate-jetstream -- --ignored --nocapture"]
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
    });
    restored.unwrap()
}

#[test]
fn it_is_under_140_lines() {
    let lines = include_str!("../src/main.rs").lines().count();
    assert!(lines < 140, "{lines}");
}
