//! Look-ups with hostile senders, and in every order that chance finds.

use std::pin::Pin;
use std::task::{Poll, Wake};

use axum::body::Body;
use bytes::Bytes;
use hookgate::Delivery;
use http_body::Frame;

use super::*;

// Ways to find out whether a subscription is known.

/// Breaks off, or never comes.
struct Faulty {
    large: Option<Bytes>,
    breaks: bool,
}

impl http_body::Body for Faulty {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match self.large.take() {
            Some(large) => Poll::Ready(Some(Ok(Frame::data(large)))),
            None if self.breaks => Poll::Ready(Some(Err(std::io::Error::other("gone")))),
            None => Poll::Pending,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_stale_delivery_with_a_faulty_body_does_not_reveal_known_subscriptions() {
    for by_provider in [false, true] {
        let provider = Provider::new(async |id, _| match id.as_str() {
            "wh_1" => found(),
            _ => Ok(None),
        });
        let ring = |text: &str| KeyRing::new(Secret::new(text).unwrap());
        let harness = Harness::without_secret(
            |builder, _| {
                let builder = builder.max_body(1_000);
                if by_provider {
                    builder.provider(provider)
                } else {
                    builder.subscriptions([("wh_1", ring(SECRET)), ("wh_3", ring(OTHER))])
                }
            },
            async |_, _| StatusCode::NO_CONTENT,
        );
        for id in ["wh_1", "wh_2", "2"] {
            for (large, breaks) in [(true, false), (false, true), (false, false)] {
                pass(1_100).await; // in each second, one is read all the same
                let stale = event_of(id, "evt_1").aged(400).request(&harness.clock);
                let large = large.then(|| Bytes::from_static(&[b' '; 1_001]));
                let request = stale.map(|_| Body::new(Faulty { large, breaks }));
                let answer = harness.ask(request).await;
                assert_eq!(answer.status(), 401, "{id} {breaks}");
            }
        }
    }
}

// A flood of invented ids that keeps all places taken.

/// Tasks that send invented ids, each `copies` times: again at once after an answer, and after 200
/// ms where it was refused or has waited for a second.
fn flood(receiver: &Receiver, tasks: usize, copies: usize) -> JoinSet<()> {
    let sent = Arc::new(sent_to("wh_1"));
    let numbers = Arc::new(AtomicUsize::new(0));
    let mut flood = JoinSet::new();
    for _ in 0..tasks {
        let (receiver, sent) = (receiver.clone(), Arc::clone(&sent));
        let numbers = Arc::clone(&numbers);
        flood.spawn(async move {
            loop {
                let number = numbers.fetch_add(1, Ordering::SeqCst) / copies;
                if !opens(&receiver, &sent, &format!("wh_invented_{number}")).await {
                    sleep(Duration::from_millis(200)).await;
                }
            }
        });
    }
    flood
}

/// Whether the keys of this id, or that it has none, are found within a second.
async fn opens(receiver: &Receiver, sent: &support::Sent, id: &str) -> bool {
    let headers = sent.headers.iter().map(|(name, value)| (&**name, &**value));
    let headers = headers.filter(|(name, _)| *name != "X-Service-Webhook-Id");
    let id = ("X-Service-Webhook-Id", id.as_bytes());
    let head = RequestHead::new("POST", headers.chain([id]));
    let opened = tokio::time::timeout(Duration::from_secs(1), receiver.check_head_async(&head));
    opened.await.is_ok_and(|opened| opened.is_ok())
}

// fault F9: during a flood of invented ids, or of ids whose look-ups fail, a known one is refused for as long as the flood lasts
#[tokio::test(start_paused = true)]
async fn an_id_that_is_new_gets_its_share_of_the_look_ups_amid_a_flood() {
    for copies in [1, 100] {
        let provider = Provider::new(async |id, _| {
            sleep(Duration::from_millis(10)).await;
            if id.as_str().starts_with("wh_invented") {
                return Ok(None);
            }
            found()
        });
        let receiver = receiver(&provider);
        let sent = sent_to("wh_1");
        let _flood = flood(&receiver, 1_500, copies);
        pass(1_000).await;
        let mut tries = Vec::new();
        for id in 0..5 {
            let id = format!("wh_{id}");
            let mut tried = 1;
            while tried < 200 && !opens(&receiver, &sent, &id).await {
                sleep(Duration::from_millis(137)).await;
                tried += 1;
            }
            tries.push(tried);
        }
        println!("{copies} of an id: {tries:?}");
        assert!(tries.iter().all(|tried| *tried < 200), "{tries:?}");
    }
}

// fault F9: during a flood of invented ids, or of ids whose look-ups fail, a known one is refused for as long as the flood lasts
#[tokio::test(start_paused = true)]
async fn ids_whose_look_ups_fail_leave_room_for_known_ones() {
    let provider = Provider::new(async |id, _| {
        sleep(Duration::from_millis(10)).await;
        match id.as_str() {
            "wh_1" => found(),
            _ => Err(unavailable()),
        }
    });
    let clock = support::manual();
    let receiver = Receiver::builder()
        .provider(provider.clone())
        .store(MemoryStore::default())
        .clock(clock.clone())
        .build()
        .unwrap();
    let sent = sent_to("wh_1");
    assert!(opens(&receiver, &sent, "wh_1").await);
    clock.advance(Duration::from_secs(60)); // its ring has ended
    // Each id comes again and again, so that its look-up has failed before.
    let mut flood = JoinSet::new();
    for task in 0..1_500 {
        let (receiver, sent) = (receiver.clone(), sent.clone());
        flood.spawn(async move {
            let id = format!("wh_invented_{task}");
            loop {
                opens(&receiver, &sent, &id).await;
                sleep(Duration::from_millis(200)).await;
            }
        });
    }
    pass(5_000).await;
    assert_eq!(under_way(&receiver).0, 12);
    let began = Instant::now();
    assert!(opens(&receiver, &sent, "wh_1").await);
    assert!(began.elapsed() < Duration::from_millis(50));
}

// The budget.

#[tokio::test(start_paused = true)]
async fn a_look_up_that_begins_late_does_not_outlast_the_budget() {
    let provider = Provider::new(async |_, _| pending::<Found>().await);
    let harness = guarded(&provider);
    let began = Instant::now();
    let request = event_of("wh_1", "evt_1").request(&harness.clock);
    let answer = harness
        .receiver
        .handle(request, async |_: Delivery| StatusCode::OK);
    sleep(Duration::from_millis(4_400)).await; // no poll meanwhile
    assert_eq!(answer.await.status(), 503);
    assert_eq!(began.elapsed().as_millis(), 4_500);
}

// Every order.

type Kept = Arc<Mutex<Option<Waker>>>;

struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Requests that are polled when they were woken and never else, as a runtime does; dropped,
/// forgotten and moved to another task at any time. Each that is left must end once its look-up
/// can.
#[test]
fn the_remaining_requests_are_woken_after_any_sequence() {
    for seed in 1..=400_u64 {
        let mut numbers = Numbers(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        // Look-ups that are open, each with the waker that it was polled with last.
        let scripted = Arc::new(Mutex::new(Vec::<(Arc<AtomicBool>, Kept)>::new()));
        let script = Arc::clone(&scripted);
        let provider = Provider::new(move |_, number| {
            let (ready, waker) = (Arc::new(AtomicBool::new(false)), Arc::default());
            let place: Kept = Arc::clone(&waker);
            script.lock().unwrap().push((Arc::clone(&ready), waker));
            std::future::poll_fn(move |context| {
                if ready.load(Ordering::SeqCst) {
                    return Poll::Ready(match number % 4 {
                        0 => Err(unavailable()),
                        1 => panic!("made up: the provider breaks"),
                        _ => ring_of(support::SECRET),
                    });
                }
                *place.lock().unwrap() = Some(context.waker().clone());
                Poll::Pending
            })
        });
        let receiver = receiver(&provider);
        let all: Vec<_> = (0..24).map(|id| sent_to(format!("wh_{id}"))).collect();
        let heads: Vec<_> = all.iter().map(support::Sent::request_head).collect();
        let mut requests = Vec::new();
        let nudge = |ready: bool, at: usize| {
            let open = scripted.lock().unwrap().get(at).cloned();
            let Some((flag, waker)) = open else { return };
            flag.fetch_or(ready, Ordering::SeqCst);
            let waker = waker.lock().unwrap().take();
            waker.into_iter().for_each(Waker::wake);
        };
        let run = |requests: &mut Vec<(Pin<Box<_>>, Arc<Woken>)>, most: usize| {
            for _ in 0..most {
                let next = requests
                    .iter()
                    .position(|(_, woken)| woken.0.swap(false, Ordering::SeqCst));
                let Some(next) = next else { return };
                let (request, woken): &mut (Pin<Box<dyn Future<Output = _> + '_>>, _) =
                    &mut requests[next];
                let waker = Arc::clone(woken).into();
                let polled = request.as_mut().poll(&mut Context::from_waker(&waker));
                if polled
                    .map(|_: Result<hookgate::verify::BodyVerifier, Refusal>| ())
                    .is_ready()
                {
                    drop(requests.swap_remove(next));
                }
            }
        };
        for _ in 0..200 {
            match numbers.below(8) {
                0..=2 => {
                    let opening = receiver.check_head_async(&heads[numbers.below(heads.len())]);
                    let woken = Arc::new(Woken(AtomicBool::new(true)));
                    requests.push((Box::pin(opening) as _, woken));
                }
                3 if !requests.is_empty() => {
                    drop(requests.swap_remove(numbers.below(requests.len())));
                }
                4 if !requests.is_empty() => {
                    // Another task polls it from now on.
                    let at = numbers.below(requests.len());
                    requests[at].1 = Arc::new(Woken(AtomicBool::new(true)));
                }
                5 => receiver
                    .keys()
                    .forget(&format!("wh_{}", numbers.below(24)))
                    .unwrap(),
                6 => nudge(
                    numbers.below(3) == 0,
                    numbers.below(provider.count().max(1)),
                ),
                _ => run(&mut requests, numbers.below(6)),
            }
            let (running, waiting) = under_way(&receiver);
            assert!(running <= 16 && waiting <= requests.len());
        }
        let mut rounds = 0;
        while !requests.is_empty() {
            run(&mut requests, usize::MAX);
            let known = provider.count();
            (0..known).for_each(|at| nudge(true, at));
            rounds += 1;
            let left = requests.len();
            assert!(rounds < 100, "seed {seed}: {left} wait for ever");
        }
        assert_eq!(under_way(&receiver), (0, 0), "seed {seed}");
        assert_eq!(provider.running(), 0, "seed {seed}");
    }
}

// Rings that are held.

/// In the number of rings, since a platform's come by the thousand.
#[test]
fn building_a_map_takes_linear_time() {
    let build = |count: usize| {
        let secret = |number| Secret::new(&format!("whsec_made_up_secret_{number:08}")).unwrap();
        let rings: Vec<_> = (0..count)
            .map(|number| (format!("wh_{number}"), secret(number)))
            .collect();
        let began = std::time::Instant::now();
        assert!(Keys::by_subscription(rings).is_ok());
        began.elapsed()
    };
    // The best of several, in turns, and both longer than a machine's time slice: other work of the
    // machine must not count, and where it does, it counts for both.
    let (mut few, mut many) = (Duration::MAX, Duration::MAX);
    for _ in 0..4 {
        few = few.min(build(1_600));
        many = many.min(build(12_800));
    }
    // Eight times as many; each compared with each would take 64 times as long.
    assert!(many < few * 30, "{few:?}, {many:?}");
}
