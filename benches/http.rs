//! The whole axum route, guarded and unguarded, in requests per second over loopback, with bodies of 1 KiB and of 64 KiB.
//!
//! ```text
//! cargo bench -p hookgate-benches --bench http
//! ```
//!
//! Server and sender have a thread each, with 32 connections kept alive between them. Every request is signed beforehand and
//! carries a fresh id, so that every claim is fresh and the stores really grow. Each round starts new servers with empty
//! stores and measures all of them in turn; the printed figures are the ratios to the unguarded route of the same round.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)] // A bench panics on an unexpected result.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::post;
use bytes::Bytes;
use hookgate::{
    Clock, Event, EventData, MemoryStore, MokaStore, Receiver, ReceiverBuilder, Secret, Signature,
    SystemClock, Timestamp,
};
use http::StatusCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

mod support;

#[path = "support/delivery.rs"]
mod delivery;

use delivery::Order;
use support::{Arguments, Case};

const SECRET: &str = "whsec_made_up_for_the_http_bench";
const CONNECTIONS: usize = 32;
/// The bodies' length, its name, and the default number of requests in a round.
const SIZES: [(usize, &str, usize); 2] = [(1 << 10, "1 KiB", 20_000), (64 << 10, "64 KiB", 3_000)];
const DEFAULT_ROUNDS: usize = 7;

fn main() {
    let arguments = Arguments::read();
    let setting = |name: &str, default| {
        let value = std::env::var(name).ok();
        value.map_or(default, |text| text.parse().expect("a number"))
    };
    let rounds = setting("HOOKGATE_BENCH_ROUNDS", DEFAULT_ROUNDS);
    println!("CPU: {}", support::cpu());
    let cases = SIZES.map(|(bytes, size, requests)| {
        let requests = setting("HOOKGATE_BENCH_REQUESTS", requests);
        println!(
            "\nPOST of {size} over {CONNECTIONS} connections, {rounds} rounds of {requests} requests each"
        );
        let mut case = Case::new(size);
        for round in 0..rounds {
            let sent = signed_requests(round, requests, bytes);
            for contestant in &CONTESTANTS {
                case.add(contestant.name, contestant.measure(&sent));
            }
        }
        print_case(&case, bytes);
        case
    });
    arguments.record("http", "requests a second", &cases);
}

fn print_case(case: &Case, bytes: usize) {
    println!(
        "{:<42} {:>8} {:>8} {:>8}",
        "requests per second, unguarded = 1", "median", "best", "goal"
    );
    for contestant in &CONTESTANTS {
        let (name, base) = (contestant.name, CONTESTANTS[0].name);
        // The goals are those of small bodies: for large ones nearly all the time is the hash.
        let goal = if bytes == SIZES[0].0 {
            contestant.goal
        } else {
            ""
        };
        println!(
            "{name:<42} {:>8.2} {:>8.2} {goal:>8}",
            case.ratio(name, base),
            case.best_ratio(name, base),
        );
    }
}

struct Contestant {
    name: &'static str,
    goal: &'static str,
    app: fn() -> Router,
    /// Whether the requests are sent once before they are measured.
    replayed: bool,
}

const CONTESTANTS: [Contestant; 5] = [
    Contestant {
        name: "unguarded: reads the body, answers 204",
        goal: "",
        app: || Router::new().route("/webhooks", post(unguarded)),
        replayed: false,
    },
    Contestant {
        name: "verification alone",
        goal: "0.74",
        app: || guarded(ReceiverBuilder::without_deduplication).route_handler(false),
        replayed: false,
    },
    Contestant {
        name: "typed event, MemoryStore, fresh ids",
        goal: "0.55",
        app: || guarded(|builder| builder.store(MemoryStore::default())).route_handler(true),
        replayed: false,
    },
    Contestant {
        name: "typed event, MokaStore, fresh ids",
        goal: "0.52",
        app: || guarded(|builder| builder.store(MokaStore::new(262_144))).route_handler(true),
        replayed: false,
    },
    Contestant {
        name: "typed event, MemoryStore, replays",
        goal: "0.72",
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

impl Contestant {
    /// Requests per second.
    fn measure(&self, requests: &[Bytes]) -> f64 {
        let (address, shutdown) = (oneshot::channel(), oneshot::channel::<()>());
        let app = (self.app)();
        let server = thread::spawn(move || {
            runtime().block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                address.0.send(listener.local_addr().unwrap()).unwrap();
                let stopped = async { drop(shutdown.1.await) };
                axum::serve(listener, app)
                    .with_graceful_shutdown(stopped)
                    .await
                    .unwrap();
            });
        });
        let elapsed = runtime().block_on(async {
            let address = address.1.await.unwrap();
            if self.replayed {
                send_all(address, requests).await;
            }
            send_all(address, requests).await
        });
        shutdown.0.send(()).unwrap();
        server.join().unwrap();
        requests.len() as f64 / elapsed.as_secs_f64()
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

async fn send_all(address: SocketAddr, requests: &[Bytes]) -> Duration {
    let mut connections = Vec::new();
    for share in requests.chunks(requests.len().div_ceil(CONNECTIONS)) {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        connections.push((stream, share.to_vec()));
    }
    let began = Instant::now();
    let tasks: Vec<_> = connections
        .into_iter()
        .map(|(stream, share)| tokio::spawn(send_in_turn(stream, share)))
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    began.elapsed()
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

fn signed_requests(round: usize, count: usize, bytes: usize) -> Vec<Bytes> {
    let secret = Secret::new(SECRET).unwrap();
    let timestamp = Timestamp::at(SystemClock.now()).unwrap();
    (0..count)
        .map(|number| {
            let body = delivery::body(&format!("evt_{round:04}_{number:010}"), bytes);
            let signature = Signature::sign(&secret, &timestamp, body.as_bytes()).to_header_value();
            let length = body.len();
            format!(
                "POST /webhooks HTTP/1.1\r\nhost: localhost\r\nuser-agent: Service-Webhook/1.0\r\n\
                 content-type: application/json\r\ncontent-length: {length}\r\n\
                 x-service-timestamp: {timestamp}\r\nx-service-signature: {signature}\r\n\r\n{body}"
            )
            .into()
        })
        .collect()
}
