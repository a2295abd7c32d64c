//! Many senders at once, some of which never finish a request: no other sender waits for them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hookgate::MemoryStore;
use tokio::sync::Semaphore;

use crate::support::*;

const CONNECTIONS: usize = 512;
const STALLED: usize = 64;
const DELIVERIES_EACH: usize = 4;
/// So many deliveries are under way at a time, so that a busy machine answers each within the
/// budget.
const AT_A_TIME: usize = 64;
/// The layer's default budget for a delivery, half a second below the sender's limit.
const BUDGET: Duration = Duration::from_millis(4_500);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_stalled_connections_of_512_delay_no_other() {
    let probe = Probe::new();
    let store = MemoryStore::default();
    // A permit for each delivery under way and not one more: a stalled one that held any would
    // show.
    let receiver = receiver().max_runs(AT_A_TIME);
    let receiver = receiver.store(store.clone()).build().unwrap();
    let server = Server::start(app(&receiver, &probe)).await;
    let address = server.address;

    // All are connected, and the stalled ones have sent all their bytes, before the first good
    // delivery is sent.
    let mut stalled = Vec::new();
    for number in 0..STALLED {
        let sent = Sent::new(event(&format!("evt_stalled_{number}")));
        let bytes = sent.bytes();
        // A quarter each: nothing at all, half a head, a head alone, half a body.
        let (head, body) = (bytes.len() - sent.body.len(), sent.body.len());
        let some = [0, head / 2, head, head + body / 2][number % 4];
        let mut wire = Wire::to(address).await;
        wire.send(&bytes[..some]).await;
        stalled.push((wire, some >= head));
    }
    let mut good = Vec::new();
    for _ in STALLED..CONNECTIONS {
        good.push(Wire::to(address).await);
    }

    let places = Arc::new(Semaphore::new(AT_A_TIME));
    let good: Vec<_> = good
        .into_iter()
        .enumerate()
        .map(|(number, mut wire)| {
            let places = Arc::clone(&places);
            tokio::spawn(async move {
                let mut slowest = Duration::ZERO;
                for copy in 0..DELIVERIES_EACH {
                    let id = format!("evt_{number}_{copy}");
                    let bytes = Sent::new(event(&id)).bytes();
                    let _place = places.acquire().await.unwrap();
                    let sent_at = Instant::now();
                    wire.send(&bytes).await;
                    let got = wire.answer().await.unwrap();
                    assert_eq!(got.status, 204, "{id}");
                    slowest = slowest.max(sent_at.elapsed());
                }
                slowest
            })
        })
        .collect();
    let mut slowest = Duration::ZERO;
    for connection in good {
        slowest = slowest.max(connection.await.unwrap());
    }
    let handled = (CONNECTIONS - STALLED) * DELIVERIES_EACH;
    println!("slowest of {handled} deliveries: {slowest:?}");
    assert!(slowest < BUDGET, "{slowest:?}");
    assert_eq!(probe.finished(), handled);

    // A stalled request whose head the receiver has read is answered 408; none of them ever held a
    // permit or a claim.
    for (mut wire, begun) in stalled {
        if begun {
            assert_eq!(wire.answer().await.unwrap().status, 408);
        }
    }
    assert_eq!((probe.started(), receiver.runs()), (handled, 0));
    assert_eq!(store.stats().done, handled);
}
