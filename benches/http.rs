//! The whole axum route over loopback, unguarded, guarded by hand, and guarded by hookgate:
//! requests per second, and the processor time of the server for each request. Bodies of 512 B to 1
//! MiB by HTTP/1, and of 1 KiB by HTTP/2.
//!
//! ```text
//! cargo bench -p hookgate-benches --bench http                      # all sizes
//! cargo bench -p hookgate-benches --bench http -- --only '1 MiB'    # one of them
//! ```
//!
//! Server and sender have a thread each. By HTTP/1 they keep 32 connections alive between them, by
//! HTTP/2 four with eight streams each. Every request is signed beforehand and carries a fresh id,
//! so that every claim is fresh and the stores really grow. Each round starts new servers with
//! empty stores and measures all of them in turn; the printed figures are ratios within the same
//! round. The routes by hand call nothing of ours: `support/by_hand.rs`. Linux counts the processor
//! time of the server's thread. It varies less than the requests per second, which other programs
//! of the machine change.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)] // A bench panics on an unexpected result.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::post;
use bytes::Bytes;
use hookgate::{
    Event, EventData, MemoryStore, Receiver, ReceiverBuilder, Secret,
    clock::{Clock, SystemClock},
    dedupe::MokaStore,
    verify::{Signature, Timestamp},
};
use http::request::Builder;
use http::{Request, StatusCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

mod support;

#[path = "support/by_hand.rs"]
mod by_hand;
#[path = "support/delivery.rs"]
mod delivery;

use delivery::Order;
use support::{Arguments, Case};

const SECRET: &str = "whsec_made_up_for_the_http_bench";
const CONNECTIONS: usize = 32;
/// The connections by HTTP/2, and the streams on each that are open at a time.
const CONNECTIONS_OF_2: usize = 4;
const STREAMS: usize = CONNECTIONS / CONNECTIONS_OF_2;
/// A case: its name, the bodies' length, whether it is HTTP/2, and the default number of requests
/// in a round.
const KINDS: [(&str, usize, bool, usize); 6] = [
    ("1 KiB", 1 << 10, false, 20_000),
    ("512 B", 512, false, 20_000),
    ("8 KiB", 8 << 10, false, 10_000),
    ("64 KiB", 64 << 10, false, 3_000),
    ("1 MiB", 1 << 20, false, 200),
    ("1 KiB, HTTP/2", 1 << 10, true, 20_000),
];
const DEFAULT_ROUNDS: usize = 7;

fn main() {
    let arguments = Arguments::read();
    let setting = |name: &str, default| {
        let value = std::env::var(name).ok();
        value.map_or(default, |text| text.parse().expect("a number"))
    };
    let rounds = setting("HOOKGATE_BENCH_ROUNDS", DEFAULT_ROUNDS);
    println!("CPU: {}", support::cpu());
    let mut cases = Vec::new();
    let only = arguments.after("--only");
    let asked = KINDS
        .into_iter()
        .filter(|(kind, ..)| only.is_none_or(|only| only == *kind));
    for (kind, bytes, by_2, requests) in asked {
        let requests = setting("HOOKGATE_BENCH_REQUESTS", requests);
        println!("\n{kind}: {rounds} rounds of {requests} requests each");
        let (mut rate, mut cpu) = (Case::new(kind), Case::new(&format!("{kind}, CPU")));
        for round in 0..rounds {
            let sent = Requests::signed(round, requests, bytes, by_2);
            for contestant in &CONTESTANTS {
                let measured = contestant.measure(&sent);
                rate.add(contestant.name, measured.per_second);
                cpu.add(contestant.name, measured.cpu_nanos);
            }
        }
        print_case(&rate, &cpu, kind == KINDS[0].0);
        cases.extend([rate, cpu]);
    }
    arguments.record(
        "http",
        "requests a second; CPU: nanoseconds of the server for a request",
        &cases,
    );
}

fn print_case(rate: &Case, cpu: &Case, has_goals: bool) {
    println!(
        "{:<38} {:>16} {:>14} {:>14} {:>8}",
        "", "CPU, unguarded=1", "CPU, by hand=1", "rate, by hand", "CPU goal"
    );
    for contestant in &CONTESTANTS {
        let (name, by_hand) = (contestant.name, contestant.by_hand);
        println!(
            "{name:<38} {:>16.2} {:>14.2} {:>14.2} {:>8}",
            cpu.ratio(name, UNGUARDED),
            cpu.ratio(name, by_hand),
            rate.ratio(name, by_hand),
            if has_goals { contestant.goal } else { "" },
        );
    }
    let verified = cpu.ratio(REPLAYS, VERIFIED);
    println!("a duplicate, verification alone = 1: {verified:.2} (goal 1.05)");
    let claimed = cpu.ratio(CLAIMED, TASK_BY_HAND);
    println!("typed and claimed, by hand in a task of its own = 1: {claimed:.2} (goal 1.08)");
}

struct Contestant {
    name: &'static str,
    /// The route that does the same without the library.
    by_hand: &'static str,
    /// Of processor time beside the one by hand, at most. For bodies of 1 KiB by HTTP/1.
    goal: &'static str,
    app: fn() -> Router,
    /// Whether the requests are sent once before they are measured.
    replayed: bool,
}

const UNGUARDED: &str = "unguarded";
const VERIFIED_BY_HAND: &str = "verified, by hand";
const TYPED_BY_HAND: &str = "typed, a bounded set of ids, by hand";
/// The same promise as ours: a run that its sender can't cut off.
const TASK_BY_HAND: &str = "the same in a task of its own, by hand";
const CLAIMED: &str = "typed, MemoryStore, fresh ids";
const VERIFIED: &str = "verification alone";
const REPLAYS: &str = "typed, MemoryStore, replays";

const CONTESTANTS: [Contestant; 8] = [
    Contestant {
        name: UNGUARDED,
        by_hand: UNGUARDED,
        goal: "",
        app: || Router::new().route("/webhooks", post(unguarded)),
        replayed: false,
    },
    Contestant {
        name: VERIFIED_BY_HAND,
        by_hand: VERIFIED_BY_HAND,
        goal: "",
        app: || Router::new().route("/webhooks", by_hand::verified(SECRET)),
        replayed: false,
    },
    Contestant {
        name: TYPED_BY_HAND,
        by_hand: TYPED_BY_HAND,
        goal: "",
        app: || Router::new().route("/webhooks", by_hand::typed(SECRET)),
        replayed: false,
    },
    Contestant {
        name: TASK_BY_HAND,
        by_hand: TYPED_BY_HAND,
        goal: "",
        app: || Router::new().route("/webhooks", by_hand::typed_in_a_task(SECRET)),
        replayed: false,
    },
    Contestant {
        name: VERIFIED,
        by_hand: VERIFIED_BY_HAND,
        goal: "1.20",
        app: || guarded(ReceiverBuilder::without_deduplication).route_handler(false),
        replayed: false,
    },
    Contestant {
        name: CLAIMED,
        by_hand: TYPED_BY_HAND,
        goal: "1.15",
        app: || guarded(|builder| builder.store(MemoryStore::default())).route_handler(true),
        replayed: false,
    },
    Contestant {
        name: "typed, MokaStore, fresh ids",
        by_hand: TYPED_BY_HAND,
        goal: "",
        app: || guarded(|builder| builder.store(MokaStore::new(262_144))).route_handler(true),
        replayed: false,
    },
    Contestant {
        name: REPLAYS,
        by_hand: VERIFIED_BY_HAND,
        goal: "",
        app: || guarded(|builder| builder.store(MemoryStore::default())).route_handler(true),
        replayed: true,
    },
];

async fn unguarded(_body: Bytes) -> StatusCode {
    StatusCode::NO_CONTENT
}

async fn typed(event: Event<Order>) -> StatusCode {
    let EventData::RowCreated(row) = event.data else {
        return StatusCode::BAD_REQUEST;
    };
    std::hint::black_box(row.properties.weigh());
    StatusCode::NO_CONTENT
}

struct Guarded(Receiver);

fn guarded(store: impl FnOnce(ReceiverBuilder) -> ReceiverBuilder) -> Guarded {
    let builder = Receiver::builder().secret(Secret::new(SECRET).unwrap());
    Guarded(store(builder).build().unwrap())
}

impl Guarded {
    fn route_handler(self, parse: bool) -> Router {
        let route = if parse { post(typed) } else { post(unguarded) };
        Router::new().route("/webhooks", route.layer(self.0.layer()))
    }
}

/// The result of one round of one contestant.
struct Measured {
    per_second: f64,
    /// Zero where the system does not count it.
    cpu_nanos: f64,
}

impl Contestant {
    fn measure(&self, requests: &Requests) -> Measured {
        let (started, shutdown) = (oneshot::channel(), oneshot::channel::<()>());
        let app = (self.app)();
        let server = thread::spawn(move || {
            runtime().block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                let address = listener.local_addr().unwrap();
                started
                    .0
                    .send((address, CpuTime::of_this_thread()))
                    .unwrap();
                let stopped = async { drop(shutdown.1.await) };
                axum::serve(listener, app)
                    .with_graceful_shutdown(stopped)
                    .await
                    .unwrap();
            });
        });
        let (elapsed, cpu) = runtime().block_on(async {
            let (address, cpu) = started.1.await.unwrap();
            if self.replayed {
                requests.send_all(address).await;
            }
            let before = cpu.nanos();
            let elapsed = requests.send_all(address).await;
            (elapsed, cpu.nanos() - before)
        });
        shutdown.0.send(()).unwrap();
        server.join().unwrap();
        let count = requests.count() as f64;
        Measured {
            per_second: count / elapsed.as_secs_f64(),
            cpu_nanos: cpu / count,
        }
    }
}

/// The processor time of a thread, which any thread can read.
#[derive(Debug)]
struct CpuTime(Option<PathBuf>);

impl CpuTime {
    fn of_this_thread() -> Self {
        let thread = std::fs::read_link("/proc/thread-self").ok();
        Self(thread.map(|thread| PathBuf::from("/proc").join(thread).join("schedstat")))
    }

    fn nanos(&self) -> f64 {
        let text = self
            .0
            .as_ref()
            .and_then(|path| std::fs::read_to_string(path).ok());
        let on_a_processor = text.as_deref().and_then(|text| text.split(' ').next());
        on_a_processor
            .and_then(|nanos| nanos.parse().ok())
            .unwrap_or_default()
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

/// The requests of a round, signed.
enum Requests {
    One(Vec<Bytes>),
    Two(Vec<Request<Bytes>>),
}

impl Requests {
    /// With all headers that the service sends.
    fn signed(round: usize, count: usize, bytes: usize, by_2: bool) -> Self {
        let secret = Secret::new(SECRET).unwrap();
        let timestamp = Timestamp::at(SystemClock.now()).unwrap();
        let signed = (0..count).map(|number| {
            let id = format!("evt_{round:04}_{number:010}");
            let body = delivery::body(&id, bytes);
            let signature = Signature::sign(&secret, &timestamp, body.as_bytes()).to_header_value();
            let headers = [
                ("content-type", "application/json".to_owned()),
                ("content-length", body.len().to_string()),
                ("user-agent", "Service-Webhook/1.0".to_owned()),
                ("x-service-webhook-id", "wh_orders".to_owned()),
                ("x-service-event-id", id),
                ("x-service-event-type", "row.created".to_owned()),
                ("x-service-signature", signature),
                ("x-service-timestamp", timestamp.to_string()),
            ];
            (headers, body)
        });
        if by_2 {
            let request = |(headers, body): ([(&str, String); 8], String)| {
                let request = Request::post("http://localhost/webhooks");
                let add = |request: Builder, (name, value)| request.header(name, value);
                let request = headers.into_iter().fold(request, add);
                request.body(body.into()).unwrap()
            };
            return Self::Two(signed.map(request).collect());
        }
        let request = |(headers, body): ([(&str, String); 8], String)| {
            let headers = headers
                .map(|(name, value)| format!("{name}: {value}\r\n"))
                .concat();
            format!("POST /webhooks HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n{body}")
        };
        Self::One(signed.map(|signed| request(signed).into()).collect())
    }

    fn count(&self) -> usize {
        match self {
            Self::One(requests) => requests.len(),
            Self::Two(requests) => requests.len(),
        }
    }

    async fn send_all(&self, address: SocketAddr) -> Duration {
        let share = self.count().div_ceil(CONNECTIONS);
        let mut tasks = Vec::new();
        let began;
        match self {
            Self::One(requests) => {
                let mut connections = Vec::new();
                for share in requests.chunks(share) {
                    connections.push((connect(address).await, share.to_vec()));
                }
                began = Instant::now();
                for (stream, share) in connections {
                    tasks.push(tokio::spawn(send_in_turn(stream, share)));
                }
            }
            Self::Two(requests) => {
                let mut streams = Vec::new();
                for shares in requests.chunks(share * STREAMS) {
                    let (sender, connection) =
                        h2::client::handshake(connect(address).await).await.unwrap();
                    tokio::spawn(connection);
                    for share in shares.chunks(share) {
                        streams.push((sender.clone(), share.to_vec()));
                    }
                }
                began = Instant::now();
                for (sender, share) in streams {
                    tasks.push(tokio::spawn(send_in_streams(sender, share)));
                }
            }
        }
        for task in tasks {
            task.await.unwrap();
        }
        began.elapsed()
    }
}

async fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

async fn send_in_turn(mut stream: TcpStream, requests: Vec<Bytes>) {
    let mut answer = [0; 1_024];
    for request in requests {
        stream.write_all(&request).await.unwrap();
        let mut held = 0;
        // No answer here has a body, so the empty line ends it.
        while !answer[..held].ends_with(b"\r\n\r\n") {
            let read = stream.read(&mut answer[held..]).await.unwrap();
            assert_ne!(read, 0, "the server hung up");
            held += read;
        }
        assert!(
            answer.starts_with(b"HTTP/1.1 20"),
            "{}",
            String::from_utf8_lossy(&answer[..held])
        );
    }
}

async fn send_in_streams(sender: h2::client::SendRequest<Bytes>, requests: Vec<Request<Bytes>>) {
    for request in requests {
        let (head, body) = request.into_parts();
        let mut ready = sender.clone().ready().await.unwrap();
        let request = Request::from_parts(head, ());
        let (answer, mut stream) = ready.send_request(request, false).unwrap();
        stream.send_data(body, true).unwrap();
        let status = answer.await.unwrap().status();
        assert!(status.is_success(), "{status}");
    }
}
