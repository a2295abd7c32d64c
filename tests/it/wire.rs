//! Faults that need a wire: framing, slowness, hang-ups, over real TCP with HTTP/1.1.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use hookgate::{Outcome, Receiver, layer::Settled};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;

use crate::support::*;

/// A guarded route on a live server.
struct Rig {
    receiver: Receiver,
    probe: Probe,
    store: CountingStore,
    server: Server,
    /// Requests whose future was dropped before its end.
    hung_up: Arc<AtomicUsize>,
    /// Requests that were answered or dropped.
    ended: Arc<AtomicUsize>,
    settled: Arc<Mutex<Vec<Settled>>>,
}

struct Ended {
    answered: bool,
    hung_up: Arc<AtomicUsize>,
    ended: Arc<AtomicUsize>,
}

impl Drop for Ended {
    fn drop(&mut self) {
        self.hung_up
            .fetch_add(usize::from(!self.answered), Ordering::SeqCst);
        self.ended.fetch_add(1, Ordering::SeqCst);
    }
}

async fn rig(probe: Probe) -> Rig {
    rig_with(probe, receiver()).await
}

async fn rig_with(probe: Probe, builder: hookgate::ReceiverBuilder) -> Rig {
    let (store, settled) = (
        CountingStore::default(),
        Arc::<Mutex<Vec<Settled>>>::default(),
    );
    let kept = Arc::clone(&settled);
    let receiver = builder
        .store(store.clone())
        .on_settled(move |run| kept.lock().unwrap().push(run.clone()))
        .build()
        .unwrap();
    let counts: [Arc<AtomicUsize>; 2] = Default::default();
    let [hung_up, ended] = counts.clone();
    let watch = from_fn(move |request: Request, next: Next| {
        let [hung_up, ended] = counts.clone();
        let mut request_ended = Ended {
            answered: false,
            hung_up,
            ended,
        };
        async move {
            let request_ended = &mut request_ended; // All of it, not the one field that is named below.
            let response = next.run(request).await;
            request_ended.answered = true;
            response
        }
    });
    let server = Server::start(app(&receiver, &probe).layer(watch)).await;
    Rig {
        receiver,
        probe,
        store,
        server,
        hung_up,
        ended,
        settled,
    }
}

// fault R1: a chunked body spins for ever
#[tokio::test]
async fn a_chunked_body_is_a_body_like_any_other() {
    let rig = rig(Probe::new()).await;
    for size in [1, 7, 64, 10_000] {
        let sent = Sent::new(event(&format!("evt_{size}")));
        let unsigned = sent.clone().without("X-Service-Signature");
        let wrong = unsigned.clone().with("X-Service-Signature", "a=aa");
        for (sent, status) in [(sent, 204), (unsigned, 401), (wrong, 401)] {
            let got = rig.server.status(&sent.chunked(size)).await;
            assert_eq!(got, status, "chunks of {size}");
        }
    }
    assert_eq!(rig.probe.started(), 4);
}

// fault S2-26: two lengths, length beside chunks, bad chunks, early end
// fault R1: a chunked body spins for ever
// fault R4: a body over the limit, or one that breaks off, panics
#[tokio::test]
async fn a_sender_gone_amid_the_body_leaves_nothing_behind() {
    let rig = rig(Probe::new()).await;
    let sent = Sent::new(event("evt_1"));
    for bytes in [sent.bytes(), sent.chunked(40)] {
        let mut wire = rig.server.connect().await;
        wire.send(&bytes[..bytes.len() - 30]).await;
        drop(wire);
    }
    let ended = || rig.ended.load(Ordering::SeqCst);
    eventually("both requests end", || ended() == 2).await;
    let status = rig.server.status(&sent.bytes()).await;
    assert_eq!(status, 204, "the whole one is fresh");
    assert_eq!((rig.probe.started(), rig.receiver.runs()), (1, 0));
    assert_eq!(rig.store.calls(), 2, "one claim, one commit");
}

// fault S2-26: two lengths, length beside chunks, bad chunks, early end
// fault R1: a chunked body spins for ever
#[tokio::test]
async fn a_broken_chunk_ends_the_request_without_a_run() {
    let rig = rig(Probe::new()).await;
    let sent = Sent::new(event("evt_1")).with("Transfer-Encoding", "chunked");
    for bad in [
        "zz\r\n{}\r\n0\r\n\r\n",
        "-1\r\n{}\r\n0\r\n\r\n",
        "5\r\n{}\r\n0\r\n\r\n\r\n",
        "ffffffffffffffffff\r\n",
    ] {
        let mut bytes = sent.head();
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(bad.as_bytes());
        let mut wire = rig.server.connect().await;
        wire.send(&bytes).await;
        if let Some(Received { status, .. }) = wire.answer().await {
            assert!((400..500).contains(&status), "{bad:?}: {status}");
        }
    }
    assert_eq!((rig.probe.started(), rig.store.calls()), (0, 0));
}

// fault S2-24: bodies oversized, endless, slow; slow heads
// fault R2: an announced length is allocated: abort
// fault R3: the same, in spite of a limit
#[tokio::test]
async fn an_announced_length_is_refused_and_never_allocated() {
    let rig = rig(Probe::new()).await;
    for length in ["1048577", "4000000000000000000", "8796093022208"] {
        let signed = Sent::new(event("evt_1")).with("Content-Length", length);
        for sent in [signed.clone(), signed.without("X-Service-Signature")] {
            let mut bytes = sent.head();
            bytes.extend_from_slice(b"\r\n");
            assert_eq!(rig.server.ask(&bytes).await.status, 413, "{length}");
        }
    }
    assert_eq!(rig.probe.started(), 0);
}

#[cfg(target_os = "linux")]
// fault R2: an announced length is allocated: abort
#[tokio::test]
async fn memory_follows_what_has_arrived_and_not_what_was_announced() {
    fn reserved_mib() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmSize"));
        let number = line.unwrap().split_whitespace().nth(1);
        number.unwrap().parse::<u64>().unwrap() / 1_024
    }
    let announced = 1_usize << 30;
    let builder = receiver().max_body(announced).body_budget(2 * announced);
    let rig = rig_with(Probe::new(), builder).await;
    let before = reserved_mib();
    let mut wires = Vec::new();
    for number in 0..32 {
        let sent = Sent::new(event(&format!("evt_{number}")));
        let mut bytes = sent.with("Content-Length", announced.to_string()).head();
        bytes.extend_from_slice(b"\r\n{");
        let mut wire = rig.server.connect().await;
        wire.send(&bytes).await;
        wires.push(wire);
    }
    let grown = reserved_mib().saturating_sub(before);
    for mut wire in wires {
        assert_eq!(wire.answer().await.unwrap().status, 408);
    }
    let at_the_end = reserved_mib().saturating_sub(before);
    let reserved = grown.max(at_the_end);
    assert!(
        reserved < 8 * 1_024,
        "32 GiB were announced, {reserved} MiB reserved"
    );
}

// fault S2-26: two lengths, length beside chunks, bad chunks, early end
#[tokio::test]
async fn two_lengths_never_run() {
    let rig = rig(Probe::new()).await;
    let sent = Sent::new(event("evt_1"));
    let longer = (sent.body.len() + 1).to_string();
    let mut bytes = sent
        .clone()
        .with("Content-Length", longer)
        .with("Content-Length", sent.body.len().to_string())
        .head();
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(&sent.body);
    assert_eq!(rig.server.ask(&bytes).await.status, 400);
    assert_eq!(rig.probe.started(), 0);
}

// fault S2-26: two lengths, length beside chunks, bad chunks, early end
#[tokio::test]
async fn a_content_length_beside_chunked_encoding_adds_no_request() {
    let rig = rig(Probe::new()).await;
    for (id, length) in [("evt_1", "5"), ("evt_2", "0"), ("evt_3", "900")] {
        let sent = Sent::new(event(id));
        let mut wire = rig.server.connect().await;
        wire.send(&sent.with("Content-Length", length).chunked(50))
            .await;
        // Either the chunks count, or nothing does. Never a part of the body, and never a second
        // request in it.
        if let Some(Received { status, .. }) = wire.answer().await {
            assert!([204, 400].contains(&status), "{length}: {status}");
        }
    }
    for body in rig.probe.seen() {
        assert!(body.ends_with(b"}}}"), "only whole bodies run");
    }
}

// fault S2-13: headers doubled, comma-joined, folded, in trailers
#[tokio::test]
async fn a_folded_header_is_refused() {
    let rig = rig(Probe::new()).await;
    let sent = Sent::new(event("evt_1"));
    let signature = sent.header("X-Service-Signature");
    let folded = format!("{}\r\n {}", &signature[..30], &signature[30..]);
    let sent = sent.but("X-Service-Signature", folded);
    let status = rig.server.status(&sent.bytes()).await;
    assert!([400, 401].contains(&status), "{status}");
    assert_eq!(rig.probe.started(), 0);
}

// fault S2-13: headers doubled, comma-joined, folded, in trailers
// fault S16: the first of two headers wins in silence
#[tokio::test]
async fn repeated_headers_are_refused_in_upper_and_lower_case() {
    let rig = rig(Probe::new()).await;
    let sent = Sent::new(event("evt_1"));
    for name in ["X-Service-Signature", "X-Service-Timestamp"] {
        let value = sent.header(name);
        for doubled in [
            sent.clone().with(name, &value),
            sent.clone().with(&name.to_uppercase(), &value),
            sent.clone().with(&name.to_lowercase(), "something else"),
            sent.clone().but(name, format!("{value}, {value}")),
        ] {
            assert_eq!(rig.server.ask(&doubled.bytes()).await.status, 401, "{name}");
        }
    }
    assert_eq!((rig.probe.started(), rig.store.calls()), (0, 0));
}

// fault S2-13: headers doubled, comma-joined, folded, in trailers
#[tokio::test]
async fn trailers_never_count() {
    let rig = rig(Probe::new()).await;
    let sent = Sent::new(event("evt_1"));
    let signature = sent.header("X-Service-Signature");
    let unsigned = sent.clone().without("X-Service-Signature");
    let wrong = format!("sha256={}", "0".repeat(64));
    let wrong = sent.clone().but("X-Service-Signature", wrong);
    for (sent, trailer, status) in [
        (unsigned, &*signature, 401),
        (wrong, &*signature, 401),
        (sent, "sha256=other", 204),
    ] {
        let mut bytes = sent.with("Trailer", "X-Service-Signature").chunked(50);
        bytes.truncate(bytes.len() - 2);
        bytes.extend_from_slice(format!("X-Service-Signature: {trailer}\r\n\r\n").as_bytes());
        assert_eq!(rig.server.status(&bytes).await, status, "{trailer}");
    }
    assert_eq!(rig.probe.started(), 1);
}

// fault S2-24: bodies oversized, endless, slow; slow heads
#[tokio::test]
async fn a_body_that_trickles_or_stalls_is_cut_off_at_its_deadline() {
    let rig = rig(Probe::new()).await;
    let sent = Sent::new(event("evt_1"));
    let bytes = sent.bytes();
    let body_at = bytes.len() - sent.body.len();
    let stalled = async {
        let started = Instant::now();
        let mut wire = rig.server.connect().await;
        wire.send(&bytes[..body_at + 10]).await;
        (wire.answer().await.unwrap().status, started.elapsed())
    };
    let trickling = async {
        let started = Instant::now();
        let mut wire = rig.server.connect().await;
        wire.send(&bytes[..body_at]).await;
        for byte in &bytes[body_at..] {
            wire.send(&[*byte]).await;
            if let Some(answer) = wire.answer_within(Duration::from_millis(40)).await {
                return (answer.status, started.elapsed());
            }
        }
        panic!("read to its end after {:?}", started.elapsed());
    };
    for (status, after) in [tokio::join!(stalled), tokio::join!(trickling)].map(|(end,)| end) {
        assert_eq!(status, 408);
        assert!(after >= Duration::from_millis(1_900), "{after:?}");
        assert!(after < PATIENCE, "{after:?}");
    }
    assert_eq!((rig.probe.started(), rig.store.calls()), (0, 0));
}

// fault S2-24: bodies oversized, endless, slow; slow heads
#[tokio::test]
async fn a_slow_head_is_the_servers_part_and_never_reaches_the_receiver() {
    let seen = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&seen);
    let counts = move |_: &_| {
        counted.fetch_add(1, Ordering::SeqCst);
    };
    let app: Router = Guarded::by(receiver().on_answer(counts)).app;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let served = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(Duration::from_millis(200))
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(app));
        let _ = served.await;
    });
    let mut wire = Wire::to(address).await;
    wire.send(b"POST /hook HTTP/1.1\r\nHost: loc").await;
    if let Some(answer) = wire.answer().await {
        assert_eq!(answer.status, 408);
    }
    serving.await.unwrap();
    assert_eq!(seen.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn two_deliveries_in_one_write_are_answered_in_order() {
    let rig = rig(Probe::new()).await;
    let (first, second) = (
        Sent::new(event("evt_1")),
        Sent::new(event("evt_2")).without("X-Service-Signature"),
    );
    let mut bytes = first.bytes();
    bytes.extend(second.bytes());
    bytes.extend(first.chunked(20));
    bytes.extend(Sent::new(event("evt_3")).bytes());
    let mut wire = rig.server.connect().await;
    wire.send(&bytes).await;
    assert_eq!(wire.answer().await.unwrap().status, 204);
    assert_eq!(wire.answer().await.unwrap().status, 401);
    // Whether a connection continues behind an unread body is the server's choice.
    if let Some(answer) = wire.answer().await {
        assert!(answer.is_replay());
        assert_eq!(wire.answer().await.unwrap().status, 204);
    }
    let mut both = Sent::new(event("evt_4")).bytes();
    both.extend(Sent::new(event("evt_5")).bytes());
    let mut wire = rig.server.connect().await;
    wire.send(&both).await;
    for _ in 0..2 {
        assert_eq!(wire.answer().await.unwrap().status, 204);
    }
    let seen = rig.probe.seen();
    assert_eq!(seen[seen.len() - 2..], [event("evt_4"), event("evt_5")]);
}

// fault S2-34: the sender hangs up amid the run
// fault S6: a cancelled handler blocks its event past the first retry
#[tokio::test]
async fn a_sender_gone_amid_the_run_loses_nothing_and_its_retry_finds_it_done() {
    let rig = rig(Probe::new().hold()).await;
    let sent = Sent::new(event("evt_1"));
    let mut wire = rig.server.connect().await;
    wire.send(&sent.bytes()).await;
    eventually("the run begins", || rig.probe.started() == 1).await;
    drop(wire);
    let hung_up = || rig.hung_up.load(Ordering::SeqCst);
    eventually("the server notices", || hung_up() == 1).await;
    let (finished, runs) = (rig.probe.finished(), rig.receiver.runs());
    assert_eq!((finished, runs), (0, 1), "the run goes on");
    rig.probe.let_go();
    eventually("the run settles", || rig.settled.lock().unwrap().len() == 1).await;
    let run = rig.settled.lock().unwrap()[0].clone();
    assert_eq!((run.outcome, run.late), (Outcome::Handled, true));
    assert!(rig.server.ask(&sent.bytes()).await.is_replay());
    assert_eq!((rig.probe.started(), rig.probe.finished()), (1, 1));
    eventually("no run is left", || rig.receiver.runs() == 0).await;
}

// fault S2-35: a copy is acknowledged while the first one runs
#[tokio::test]
async fn a_copy_of_a_running_delivery_is_answered_2xx_only_after_its_end() {
    let rig = rig(Probe::new().hold()).await;
    let sent = Sent::new(event("evt_1"));
    let (mut first, mut second) = (rig.server.connect().await, rig.server.connect().await);
    first.send(&sent.bytes()).await;
    eventually("the run begins", || rig.probe.started() == 1).await;
    second.send(&sent.bytes()).await;
    let early = second.answer_within(Duration::from_millis(300)).await;
    assert!(early.is_none(), "it waits");
    rig.probe.let_go();
    assert_eq!(first.answer().await.unwrap().status, 204);
    let copy = second.answer().await.unwrap();
    assert!(copy.is_replay(), "{copy:?}");
    assert_eq!(rig.probe.started(), 1);
}

// fault S2-36: a handler slower than the sender waits
#[tokio::test]
async fn a_handler_slower_than_the_budget_continues_behind_a_503() {
    let second = Duration::from_secs(1);
    let builder = receiver().answer_within(second).body_deadline(second);
    let rig = rig_with(Probe::new().hold(), builder).await;
    let sent = Sent::new(event("evt_1"));
    for _ in 0..2 {
        let answer = rig.server.ask(&sent.bytes()).await;
        assert_eq!(answer.status, 503);
        assert!(answer.headers.contains_key("retry-after"));
    }
    rig.probe.let_go();
    eventually("the run settles", || rig.settled.lock().unwrap().len() == 1).await;
    assert!(rig.server.ask(&sent.bytes()).await.is_replay());
    assert_eq!(rig.probe.started(), 1);
}
