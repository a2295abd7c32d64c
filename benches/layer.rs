//! The cost of each step of a delivery, without a socket:
//! `cargo bench -p hookgate-benches --bench layer`.
//!
//! A `row.created` of 1 KiB with a fresh id goes through an axum route by `oneshot`, and step by
//! step through `Receiver`. Each row of the table is one step, by subtraction: the walk up to the
//! step's end, less the walk up to its beginning. Time is a share of the difference between the
//! guarded and the unguarded route, from one interleaved run; allocations are exact.
//!
//! ```text
//! cargo bench -p hookgate-benches --bench layer -- --instructions    # needs valgrind (Debian's package)
//! ```
//!
//! Instructions are counted by valgrind's cachegrind in two child processes a step, which prepare
//! in the same way and deliver different numbers of deliveries. It knows no SHA extensions, so the
//! row *bare compression* shows the part of the steps that is SHA-256 in software: on a CPU with
//! the extensions that part is about a fifth.

#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used)] // A bench prints, and panics on an unexpected result.
#![allow(unsafe_code)] // An allocator needs unsafe code.

use std::hint::black_box;
use std::process::Command;
use std::time::Instant;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::routing::post;
use hookgate::{
    Delivery, Event, EventData, MemoryStore, Receiver, Secret, block_on,
    clock::{Clock, SystemClock},
    receiver::{Admission, Claim, RequestHead},
    verify::{Signature, Timestamp},
};
use http::{HeaderMap, Request, StatusCode};
use sha2::block_api::compress256;
use tower::Service;

mod support;

#[path = "support/by_hand.rs"]
mod by_hand;
#[path = "support/counting.rs"]
mod counting;
#[path = "support/delivery.rs"]
mod delivery;

use counting::allocated;
use delivery::Order;
use support::{Arguments, Case};

const SECRET: &str = "whsec_made_up_for_the_layer_bench";
const BODY_BYTES: usize = 1_024;
/// The number of deliveries in a round.
const DELIVERIES: usize = 200;
const ROUNDS: usize = 61;

fn main() {
    let arguments = Arguments::read();
    if let Some(step) = arguments.after("--child") {
        let count = arguments.after("--deliver").unwrap().parse().unwrap();
        return walk_as_child(step, count);
    }
    println!("CPU: {}", support::cpu());
    println!(
        "a row.created of {BODY_BYTES} bytes, fresh ids, MemoryStore; {ROUNDS} rounds of {DELIVERIES}"
    );
    let time = time();
    let (times, bytes) = allocations();
    let mut cases = vec![time, times, bytes];
    if arguments.has("--instructions") {
        cases.push(instructions());
    }
    print_steps(&cases);
    arguments.record("layer", "ns, allocations, bytes, instructions", &cases);
}

/// The last step of the walk, from the shortest walk to the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LastStep {
    /// Only the compression of the blocks that the MAC is made of.
    Compression,
    Head,
    Mac,
    Recognise,
    Admit,
    Event,
    Commit,
    Unguarded,
    /// The route of a handler that verifies without the library: `support/by_hand.rs`.
    ByHand,
    /// The same with a typed row and a bounded set of ids.
    TypedByHand,
    /// The same in a task of its own, so that it outlives its request.
    TaskByHand,
    Verified,
    Claimed,
    Typed,
}

use LastStep::*;

const ALL: [LastStep; 14] = [
    Compression,
    Head,
    Mac,
    Recognise,
    Admit,
    Event,
    Commit,
    Unguarded,
    ByHand,
    TypedByHand,
    TaskByHand,
    Verified,
    Claimed,
    Typed,
];

/// The steps: name, the walk up to its end, the walks to subtract.
const STEPS: [(&str, LastStep, &[LastStep]); 8] = [
    ("headers read, window checked (open)", Head, &[]),
    ("body hashed, MAC compared (push, finish)", Mac, &[Head]),
    ("id and type read (recognise)", Recognise, &[Mac]),
    ("key made, event claimed (admit)", Admit, &[Recognise]),
    ("typed event", Event, &[Admit]),
    ("claim committed (commit)", Commit, &[Event]),
    (
        "futures, timers, extensions, answer (layer)",
        Typed,
        &[Unguarded, Commit],
    ),
    ("all that the guarded route adds", Typed, &[Unguarded]),
];

/// One kind of walk, with the objects that it needs.
struct Walk {
    up_to: LastStep,
    receiver: Receiver,
    app: Router,
    runtime: tokio::runtime::Runtime,
}

impl Walk {
    fn new(up_to: LastStep) -> Self {
        let builder = Receiver::builder().secret(Secret::new(SECRET).unwrap());
        let receiver = match up_to {
            Verified => builder.without_deduplication(),
            _ => builder.store(MemoryStore::default()),
        };
        let receiver = receiver.build().unwrap();
        let route = match up_to {
            Unguarded => post(plain),
            ByHand => by_hand::verified(SECRET),
            TypedByHand => by_hand::typed(SECRET),
            TaskByHand => by_hand::typed_in_a_task(SECRET),
            Verified | Claimed => post(plain).layer(receiver.layer()),
            _ => post(typed).layer(receiver.layer()),
        };
        let runtime = tokio::runtime::Builder::new_current_thread();
        Self {
            up_to,
            receiver,
            // With its state, as a server has it: without, axum makes the route anew for each
            // request.
            app: Router::new().route("/webhooks", route).with_state(()),
            runtime: { runtime }.enable_all().build().unwrap(),
        }
    }

    /// Sends each of the deliveries.
    fn deliver(&mut self, signed: &[Signed]) {
        match self.up_to {
            Compression => signed.iter().for_each(Signed::compress),
            _ if self.takes_requests() => panic!("it takes requests"),
            up_to => {
                for delivery in signed {
                    step_by_step(&self.receiver, delivery, up_to);
                }
            }
        }
    }

    fn deliver_requests(&mut self, requests: Vec<Request<Body>>) {
        let app = &mut self.app;
        self.runtime.block_on(async {
            for request in requests {
                let answer = app.call(request).await.unwrap();
                assert_eq!(answer.status(), StatusCode::NO_CONTENT);
            }
        });
    }

    fn takes_requests(&self) -> bool {
        matches!(
            self.up_to,
            Unguarded | ByHand | TypedByHand | TaskByHand | Verified | Claimed | Typed
        )
    }

    /// Runs `measure` around the deliveries, after their preparation.
    fn run<T>(&mut self, signed: &[Signed], measure: impl FnOnce(&mut dyn FnMut()) -> T) -> T {
        if self.takes_requests() {
            let mut requests: Vec<_> = signed.iter().map(Signed::request).collect();
            measure(&mut || self.deliver_requests(std::mem::take(&mut requests)))
        } else {
            measure(&mut || self.deliver(signed))
        }
    }
}

async fn plain(_body: Bytes) -> StatusCode {
    StatusCode::NO_CONTENT
}

async fn typed(event: Event<Order>) -> StatusCode {
    look_at(event);
    StatusCode::NO_CONTENT
}

fn look_at(event: Event<Order>) {
    let EventData::RowCreated(row) = event.data else {
        panic!("another type");
    };
    black_box(row.properties.weigh());
}

fn step_by_step(receiver: &Receiver, signed: &Signed, up_to: LastStep) {
    let head = RequestHead::new("POST", &signed.headers).announcing(signed.body.len() as u64);
    let mut received = receiver.check_head(&head).unwrap();
    if up_to == Head {
        return drop(black_box(received));
    }
    received.push(signed.body.clone()).unwrap();
    if up_to == Mac {
        return drop(black_box(received.finish().unwrap()));
    }
    let delivery: Delivery = receiver.verify(received, &head).unwrap();
    if up_to == Recognise {
        return drop(black_box(delivery));
    }
    let claim: Claim = match block_on(receiver.admit(&delivery)) {
        Ok(Admission::Fresh(claim)) => claim,
        other => panic!("{other:?}"),
    };
    if up_to == Admit {
        return drop(black_box(claim));
    }
    look_at(delivery.event().unwrap());
    if up_to == Event {
        return drop(black_box(claim));
    }
    block_on(claim.commit()).unwrap();
}

/// A delivery with its headers.
struct Signed {
    headers: HeaderMap,
    body: Bytes,
}

impl Signed {
    fn new(id: &str) -> Self {
        let body = delivery::body(id, BODY_BYTES);
        let secret = Secret::new(SECRET).unwrap();
        let timestamp = Timestamp::at(SystemClock.now()).unwrap();
        let signature = Signature::sign(&secret, &timestamp, body.as_bytes()).to_header_value();
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("host", "receiver.example.org"),
            ("user-agent", "Service-Webhook/1.0"),
            ("content-type", "application/json"),
            ("content-length", "1024"),
            ("x-service-timestamp", timestamp.as_str()),
            ("x-service-signature", &signature),
        ] {
            headers.insert(name, value.parse().unwrap());
        }
        Self {
            headers,
            body: body.into(),
        }
    }

    fn request(&self) -> Request<Body> {
        let mut request = Request::post("/webhooks")
            .body(Body::from(self.body.clone()))
            .unwrap();
        *request.headers_mut() = self.headers.clone();
        request
    }

    /// Compresses as many blocks as timestamp, dot and body fill, and the outer one.
    fn compress(&self) {
        let mut state = [0; 8];
        let (blocks, _) = self.body.as_chunks::<64>();
        compress256(&mut state, black_box(blocks));
        compress256(&mut state, black_box(&[[0; 64]; 2]));
        black_box(state);
    }
}

fn signed(round: usize, count: usize) -> Vec<Signed> {
    (0..count)
        .map(|n| Signed::new(&format!("evt_{round:04}_{n:010}")))
        .collect()
}

fn name(up_to: LastStep) -> String {
    format!("{up_to:?}")
}

/// Returns the nanoseconds a delivery takes, for each walk in turn.
fn time() -> Case {
    let mut case = Case::new("time");
    let mut walks = ALL.map(Walk::new);
    for round in 0..ROUNDS {
        let signed = signed(round, DELIVERIES);
        for walk in &mut walks {
            let nanos = walk.run(&signed, |deliver| {
                let start = Instant::now();
                deliver();
                start.elapsed().as_secs_f64() * 1e9
            });
            case.add(&name(walk.up_to), nanos / DELIVERIES as f64);
        }
    }
    case
}

/// Returns the allocations and bytes of the median delivery.
fn allocations() -> (Case, Case) {
    let (mut times, mut bytes) = (Case::new("allocations"), Case::new("bytes"));
    for up_to in ALL {
        let mut walk = Walk::new(up_to);
        // Not the first deliveries: maps and similar types allocate their first memory there.
        for (n, delivery) in signed(0, DELIVERIES).into_iter().enumerate() {
            let (before, after) = walk.run(&[delivery], |deliver| {
                let before = allocated();
                deliver();
                (before, allocated())
            });
            if n >= DELIVERIES / 2 {
                times.add(&name(up_to), (after.times - before.times) as f64);
                bytes.add(&name(up_to), (after.bytes - before.bytes) as f64);
            }
        }
    }
    (times, bytes)
}

/// Returns the instructions a delivery takes.
fn instructions() -> Case {
    let mut case = Case::new("instructions");
    for up_to in ALL {
        let [few, many] = [DELIVERIES / 10, DELIVERIES].map(|count| {
            let child = Command::new("valgrind")
                .args([
                    "--tool=cachegrind",
                    "--cache-sim=no",
                    "--cachegrind-out-file=/dev/null",
                ])
                .arg(std::env::current_exe().unwrap())
                .args(["--child", &name(up_to), "--deliver", &count.to_string()])
                .output()
                .expect("valgrind, which is a package of Debian's");
            let report = String::from_utf8_lossy(&child.stderr).into_owned();
            assert!(child.status.success(), "{report}");
            let line = report.lines().find(|line| line.contains("I   refs:"));
            let count = line.expect("a count").rsplit(' ').next().unwrap();
            count.replace(',', "").parse::<f64>().unwrap()
        });
        case.add(
            &name(up_to),
            (many - few) / (DELIVERIES - DELIVERIES / 10) as f64,
        );
    }
    case
}

/// Prepares as many deliveries as the other child does, and delivers `count` of them. (More are for
/// a profiler.)
fn walk_as_child(step: &str, count: usize) {
    let up_to = ALL.into_iter().find(|up_to| name(*up_to) == step).unwrap();
    let mut walk = Walk::new(up_to);
    let signed = signed(0, count.max(DELIVERIES));
    if walk.takes_requests() {
        let requests: Vec<_> = signed.iter().map(Signed::request).collect();
        let mut requests = requests;
        let rest = requests.split_off(count);
        walk.deliver_requests(requests);
        drop(rest);
    } else {
        walk.deliver(&signed[..count]);
    }
}

fn print_steps(cases: &[Case]) {
    let unguarded = name(Unguarded);
    print!("\n{:<46}{:>12}", "a delivery, step by step", "time share");
    for case in &cases[1..] {
        print!("{:>14}", case.name);
    }
    println!();
    let cost = |case: &Case, up_to: LastStep, less: &[LastStep]| {
        let taken: f64 = less.iter().map(|less| case.median(&name(*less))).sum();
        case.median(&name(up_to)) - taken
    };
    let whole = cost(&cases[0], Typed, &[Unguarded]);
    for (step, up_to, less) in STEPS {
        print!(
            "{step:<46}{:>11.0}%",
            100.0 * cost(&cases[0], up_to, less) / whole
        );
        for case in &cases[1..] {
            print!("{:>14.0}", cost(case, up_to, less));
        }
        println!();
    }
    print!(
        "{:<46}{:>11.0}%",
        "(bare compression of the MAC's blocks)",
        100.0 * cost(&cases[0], Compression, &[]) / whole
    );
    for case in &cases[1..] {
        print!("{:>14.0}", case.median(&name(Compression)));
    }
    println!("\n\na route by oneshot, unguarded = 1");
    for (row, up_to) in [
        ("verified, by hand", ByHand),
        ("typed, by hand", TypedByHand),
        ("  in its own task", TaskByHand),
        ("verification alone", Verified),
        ("and deduplication", Claimed),
        ("and a typed event", Typed),
    ] {
        println!(
            "  {row:<20} {:.2}",
            cases[0].ratio(&name(up_to), &unguarded)
        );
    }
}
