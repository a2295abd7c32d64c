//! Two thousand requests that were damaged on their way: a live server answers them without a 5xx
//! and runs only signed deliveries. Seeded, so that a failure can be repeated.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::support::*;

/// So many of the requests are answered at least.
const ENOUGH: usize = 500;

/// SplitMix64: a few lines, the same numbers everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(end.max(1)).unwrap()).unwrap()
    }
}

/// Changes a few places, each in one of the ways in which requests get damaged.
fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    const TOKENS: [&[u8]; 22] = [
        b"\r\n",
        b"\n",
        b"\r\n\r\n",
        b"\0",
        b"\xff\xfe",
        b":",
        b" ",
        b"\t",
        b",",
        b"{",
        b"}",
        b"\"",
        b"[[[[",
        b"\\ud800",
        b"Content-Length: 4000000000000000000\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"X-Service-Timestamp: 1\r\n",
        b"X-Service-Signature: sha256=ab\r\n",
        b"X-Service-Event-Id: evt_2\r\n",
        b"Content-Encoding: gzip\r\n",
        b"Expect: 100-continue\r\n",
        b"-9223372036854775808",
    ];
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len());
        match random.below(7) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = u8::try_from(random.below(256)).unwrap(),
            2 => bytes.truncate(at.max(1)),
            3 => drop(bytes.drain(at..bytes.len().min(at + 1 + random.below(20)))),
            4 => {
                let copied = bytes[at..bytes.len().min(at + 1 + random.below(60))].to_vec();
                bytes.splice(at..at, copied);
            }
            _ => {
                let token = TOKENS[random.below(TOKENS.len())];
                bytes.splice(at..at, token.iter().copied());
            }
        }
        if bytes.is_empty() {
            bytes.push(b'P');
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_thousand_broken_requests_get_no_5xx_and_no_run() {
    let receiver = receiver()
        .body_deadline(Duration::from_millis(300))
        .build()
        .unwrap();
    let probe = Probe::new();
    let server = Arc::new(Server::start(app(&receiver, &probe)).await);
    let signed: Vec<Sent> = (0..50)
        .map(|number| {
            Sent::new(event(&format!("evt_{number}")))
                .with("X-Service-Event-Type", "row.deleted")
                .with("Connection", "close")
        })
        .collect();
    let bodies: std::collections::HashSet<Vec<u8>> =
        signed.iter().map(|sent| sent.body.clone()).collect();
    let (began, all) = (Instant::now(), Arc::new(AtomicUsize::new(0)));
    let workers: Vec<_> = (0..20_u64)
        .map(|worker| {
            let (server, signed, all) = (Arc::clone(&server), signed.clone(), Arc::clone(&all));
            tokio::spawn(async move {
                let mut random = Random(worker);
                for number in 0.. {
                    // A busy machine answers fewer in their time, and is asked on until it has
                    // answered enough.
                    let (has_enough, took) = (all.load(Ordering::SeqCst) > ENOUGH, began.elapsed());
                    if has_enough && (number >= 100 || took > Duration::from_secs(25)) {
                        break;
                    }
                    assert!(took < Duration::from_secs(300), "too few are answered");
                    let sent = &signed[random.below(signed.len())];
                    let mut bytes = if random.below(2) == 0 {
                        sent.bytes()
                    } else {
                        sent.chunked(1 + random.below(90))
                    };
                    mutate(&mut bytes, &mut random);
                    let mut wire = server.connect().await;
                    wire.send(&bytes).await;
                    if let Some(answer) = wire.answer_within(Duration::from_millis(150)).await {
                        let shown = String::from_utf8_lossy(&bytes).into_owned();
                        assert!(answer.status < 500, "{} to {shown}", answer.status);
                        all.fetch_add(1, Ordering::SeqCst);
                    }
                }
            })
        })
        .collect();
    for worker in workers {
        worker.await.unwrap();
    }
    for body in probe.seen() {
        assert!(
            bodies.contains(&body[..]),
            "a body ran that nobody signed: {body:?}"
        );
    }
    let good = Sent::new(event("evt_good"));
    assert_eq!(
        server.ask(&good.bytes()).await.status,
        204,
        "and the server is well"
    );
    eventually("no run is left", || receiver.runs() == 0).await;
}
