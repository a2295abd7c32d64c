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
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use async_nats::HeaderMap;
use async_nats::jetstream;
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, StorageType, Stream};
use folder::Folder;
use hookgate::{
    Delivery, Receiver, Secret,
    clock::UnixSeconds,
    receiver::StoredDelivery,
    run::Run,
    verify::{Signature, VerifyErrorKind},
};
use hookgate_jetstream::{KEY, SCOPE, SIGNATURE, TIMESTAMP};
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
        assert_eq!(headers[SCOPE], "default");
        assert_eq!(headers[KEY], "primary");
        assert!(headers[TIMESTAMP].parse::<u64>().is_ok());
        assert!(headers[SIGNATURE].starts_with("sha256="));
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

#[test]
fn the_parts_of_a_delivery_go_through_a_message() {
    let sent = StoredDelivery {
        body: body("evt_1").into(),
        timestamp: "1763690000".into(),
        signature: Signature::parse(format!("sha256={}", "0a".repeat(32)).as_bytes()).ok(),
        event_id: String::new(), // in the body
        event_type: String::new(),
        received_at: UnixSeconds::new(1_763_690_001),
        scope: "orders".into(),
        key_name: "new".into(),
        subscription_id: Some("wh_1".into()),
        pinned_workspace: None,
        traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into()),
    };
    let headers = hookgate_jetstream::headers(&sent);
    let read = hookgate_jetstream::stored(&headers, &sent.body);
    let signatures = [&read, &sent].map(|stored| stored.signature.as_ref().unwrap());
    let [one, other] = signatures.map(Signature::to_header_value);
    assert_eq!(one, other);
    assert_eq!(read.traceparent, sent.traceparent);
    assert_eq!(format!("{read:?}"), format!("{sent:?}")); // all but body, signature, workspace and trace
    assert_eq!(read.body, sent.body);
}

/// The consumer's side: no window of ages, a handler as behind the layer, and the dead letters for a message that was changed.
#[tokio::test]
async fn a_consumer_handles_an_authentic_message_and_refuses_a_changed_one_for_good() {
    let Some(nats) = Nats::start() else {
        return;
    };
    let example = nats.example();
    assert_eq!(deliver(&example, "evt_1").status, 200);
    let (headers, payload) = nats.stored().await.remove(0);
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.insert(name, value);
    }
    let builder = Receiver::builder().secret(Secret::new(SECRET).unwrap());
    let receiver = builder.without_deduplication().build().unwrap();

    let stored = hookgate_jetstream::stored(&map, payload.as_bytes());
    let delivery = receiver.verify_stored(&stored).await.unwrap();
    async fn on_delivery(_: Delivery) {}
    let run = Run::of(&delivery).limit(PATIENCE);
    let ran = run.handler(on_delivery).await;
    assert_eq!(ran.to_string(), "handled");

    let stored = hookgate_jetstream::stored(&map, body("evt_2").as_bytes());
    let refusal = receiver.verify_stored(&stored).await.unwrap_err();
    let error = refusal.verify_error().map(|error| error.kind());
    assert_eq!(error, Some(VerifyErrorKind::SignatureMismatch));
    assert_eq!(refusal.retry_after(), None);
}

#[test]
fn it_is_under_80_lines() {
    let lines = include_str!("../src/main.rs").lines().count();
    assert!(lines < 80, "{lines}");
}
