//! The rate: waits that are seen, one bucket for all clones.

use std::io::{Read as _, Write as _};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use hookgate_client::{Body, ErrorKind, Options, WaitReason};
use hookgate_emulator::{Emulator, Seed};
use http::{Request, Response};
use serde_json::json;

use crate::support::{Fake, Whole, answer, builder, orders, with_header};

const PAGE: &str = r#"{"data": {"id": "page_1"}}"#;

#[tokio::test]
async fn the_rate_is_read_from_the_answers() {
    let emulator = orders().await;
    let client = crate::support::client(&emulator);
    assert_eq!(client.rate().limit, 60, "before the first answer");
    client.page("page_1").await.unwrap();
    let rate = client.clone().rate();
    assert_eq!((rate.limit, rate.remaining, rate.waiting), (1_000, 999, 0));
    assert!(rate.resets_in > Duration::from_secs(50));
}

/// Asks the emulator over a connection of its own, and blocks: paused time would pass while a task
/// waits for a socket.
#[derive(Clone)]
struct Blocking(std::net::SocketAddr);

impl tower_service::Service<Request<Body>> for Blocking {
    type Response = Response<Whole>;
    type Error = std::io::Error;
    type Future = std::future::Ready<Result<Response<Whole>, std::io::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), std::io::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let key = request.headers()["authorization"].to_str().unwrap();
        let head = format!(
            "GET {} HTTP/1.1\r\nhost: {}\r\nauthorization: {key}\r\nconnection: close\r\n\r\n",
            request.uri().path(),
            self.0
        );
        let mut stream = std::net::TcpStream::connect(self.0).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap();
        let mut answer = Response::builder().status(status);
        for line in lines {
            let (name, value) = line.split_once(": ").unwrap();
            answer = answer.header(name, value);
        }
        let body = Whole(Some(body.to_owned().into()));
        std::future::ready(Ok(answer.body(body).unwrap()))
    }
}

/// The client's time is paused, so that its waits take none. The emulator's is advanced by each
/// wait.
#[test]
fn two_hundred_requests_of_the_standard_tier_wait_and_none_is_answered_429() {
    let seed = json!({ "workspace": { "id": "ws_1", "tier": "standard" },
        "keys": [{ "name": "k", "key": "tk_test_admin", "scope": "admin" }], "pages": [{ "id": "page_1", "title": "Home" }] });
    let seed = Seed::parse(&seed.to_string()).unwrap();
    let mut emulated = tokio::runtime::Builder::new_multi_thread();
    let emulated = emulated.worker_threads(1).enable_all().build().unwrap();
    let emulator = Arc::new(emulated.block_on(Emulator::start(seed)).unwrap());
    let waits = Arc::new(Mutex::new(Vec::new()));
    let (seen, advanced) = (Arc::clone(&waits), Arc::clone(&emulator));
    let runtime = emulated.handle().clone();
    let mut paused = tokio::runtime::Builder::new_current_thread();
    let paused = paused.enable_time().start_paused(true).build().unwrap();
    paused.block_on(async {
        let client = builder(&emulator, "tk_test_admin")
            .with_service(Blocking(emulator.address()))
            .on_wait(move |wait| {
                assert_eq!(wait.reason, WaitReason::Rate);
                seen.lock().unwrap().push(wait.time);
                let (emulator, runtime, time) = (Arc::clone(&advanced), runtime.clone(), wait.time);
                let passing = std::thread::spawn(move || runtime.block_on(emulator.advance(time)));
                passing.join().unwrap();
            })
            .build()
            .unwrap();
        for _ in 0..200 {
            client.clone().page("page_1").await.unwrap();
        }
    });
    let waits = waits.lock().unwrap();
    assert_eq!(waits.len(), 3, "{waits:?}");
    let minute = Duration::from_secs(60);
    assert!(waits.iter().all(|wait| *wait <= minute), "{waits:?}");
}

#[tokio::test(start_paused = true)]
async fn clones_share_the_bucket_and_a_429_holds_all_of_them_back() {
    let slow_down = answer(429, Some((60, 0, 20)), "{}");
    let fake = Fake::answering([slow_down, answer(200, Some((60, 59, 60)), PAGE)]);
    let client = fake.client();
    let begun = tokio::time::Instant::now();
    let mut calls = Vec::new();
    for _ in 0..2 {
        let client = client.clone();
        calls.push(tokio::spawn(async move { client.page("page_1").await }));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // The second waits without a request.
    assert_eq!(
        (client.rate().waiting, fake.seen.lock().unwrap().len()),
        (1, 1)
    );
    for call in calls {
        call.await.unwrap().unwrap();
    }
    let passed = begun.elapsed();
    assert!(passed >= Duration::from_secs(20), "{passed:?}");
    assert_eq!(fake.seen.lock().unwrap().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_wait_beyond_the_total_time_fails_at_once_and_nothing_is_sent() {
    let fake = Fake::answering([answer(200, Some((60, 0, 50)), PAGE)]);
    let client = fake.client();
    client.page("page_1").await.unwrap();
    let begun = tokio::time::Instant::now();
    let short = client.with(Options::default().total_timeout(Duration::from_secs(5)));
    let error = short.delete_data_model("dm_1").await.unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::Timeout, 0));
    assert!(error.message().contains("in 50 s"), "{error}");
    assert!(!error.is_outcome_unknown(), "{error}");
    assert_eq!(begun.elapsed(), Duration::ZERO);
    assert_eq!(fake.seen.lock().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_retry_after_is_waited_for_and_repeats_back_off() {
    let asked = with_header(answer(429, None, "{}"), "retry-after", "17");
    let server = answer(503, None, "");
    let fake = Fake::answering([asked, server.clone(), server, answer(200, None, PAGE)]);
    let waits = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&waits);
    let builder = fake.builder();
    let builder = builder.on_wait(move |wait| seen.lock().unwrap().push(wait.time));
    builder.build().unwrap().page("page_1").await.unwrap();
    let waits = waits.lock().unwrap();
    for (wait, seconds) in waits.iter().zip([17..=17, 1..=2, 2..=4]) {
        let [least, most] = [seconds.start(), seconds.end()].map(|end| Duration::from_secs(*end));
        assert!((least..=most).contains(wait), "{waits:?}");
    }
    assert_eq!(waits.len(), 3);
}

// fault K11: a `Retry-After` that is a date, or a number with too many digits, is ignored, and the service is asked again at once
#[tokio::test(start_paused = true)]
async fn a_retry_after_is_read_in_each_form_that_it_may_have() {
    let hour = 3_600;
    for (asked, seconds) in [
        ("7", 7),
        ("Fri, 17 Jul 2026 10:36:20 GMT", 20),
        ("Friday, 17-Jul-26 10:36:20 GMT", 20),
        ("Fri, 17 Jul 2026 10:30:00 GMT", 0),
        ("Fri, 17 Jul 9026 10:30:00 GMT", 0), // it was no Friday
        ("Mon, 17 Jul 2028 10:36:20 GMT", hour),
        ("18446744073709551615", hour),
        ("999999999", hour),
        ("1784284590", 30), // Unix seconds
        ("1784284500", 0),
        ("1795870734", hour),
        ("99999999999999999999999999", hour),
        ("soon", 0),
        ("", 0),
    ] {
        let slow_down = with_header(answer(429, None, "{}"), "retry-after", asked);
        let slow_down = with_header(slow_down, "date", "Fri, 17 Jul 2026 10:36:00 GMT");
        let client = Fake::answering([slow_down, answer(200, None, PAGE)]).client();
        let begun = tokio::time::Instant::now();
        let patient = Options::default().total_timeout(Duration::MAX);
        let patient = patient.backoff(Duration::ZERO);
        client.with(patient).page("page_1").await.unwrap();
        assert_eq!(begun.elapsed().as_secs(), seconds, "{asked}");
    }
}

// fault K10: a header `Date` with large numbers overflows, and the client panics
#[tokio::test]
async fn a_date_of_any_text_does_not_panic() {
    for date in [
        "Sun, 06 Nov 18446744073709551615 08:49:37 GMT",
        "Sun, 06 Nov 1994 18446744073709551615:49:37 GMT",
        "Sun, 06 Nov 1994 08:18446744073709551615:37 GMT",
        "Sun, 18446744073709551615 Nov 1994 08:49:37 GMT",
        "Thu, 01 Jan 0000 00:00:00 GMT",
        "Fri, 31 Feb 2026 10:36:00 GMT",
        "Fri, 17 Jul 2026 99:99:99 GMT",
        ", ",
    ] {
        let answered = answer(200, Some((60, 7, 1_784_284_560)), PAGE);
        let answered = with_header(answered, "date", date);
        let client = Fake::answering([answered]).client();
        client.page("page_1").await.unwrap();
        assert!(client.rate().resets_in <= Duration::from_secs(60), "{date}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_share_of_the_rate_leaves_the_rest_to_others() {
    let fake = Fake::answering([answer(200, None, PAGE)]);
    let client = fake.client();
    let half = client.with(Options::default().rate_share(0.5));
    for _ in 0..30 {
        half.page("page_1").await.unwrap();
    }
    let begun = tokio::time::Instant::now();
    client.page("page_1").await.unwrap();
    assert_eq!(begun.elapsed(), Duration::ZERO);
    half.page("page_1").await.unwrap();
    assert_eq!(begun.elapsed(), Duration::from_secs(60));
}

// fault K2: a 429 whose call is not repeated holds no other call back
#[tokio::test(start_paused = true)]
async fn a_429_that_is_not_repeated_holds_the_other_calls_back_too() {
    let asked = with_header(answer(429, None, "{}"), "retry-after", "200");
    // The first is out of repeats, the second out of time: its total time is 150 s.
    for retries in [0, 4] {
        let fake = Fake::answering([asked.clone(), answer(200, None, PAGE)]);
        let client = fake.client();
        let first = client.with(Options::default().retries(retries));
        let error = first.page("page_1").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::RateLimited);
        assert_eq!(error.attempts(), 1);
        let begun = tokio::time::Instant::now();
        let patient = client.with(Options::default().total_timeout(Duration::from_secs(300)));
        patient.page("page_1").await.unwrap();
        assert_eq!(begun.elapsed(), Duration::from_secs(200), "{retries}");
    }
}

// fault K1: a header `Retry-After` or a time-out without end overflows the clock, and the client panics
#[tokio::test(start_paused = true)]
async fn no_header_and_no_setting_is_too_long_for_the_clock() {
    for status in [429, 503] {
        let longest = u64::MAX.to_string();
        let asked = with_header(answer(status, None, "{}"), "retry-after", &longest);
        let fake = Fake::answering([asked, answer(200, None, PAGE)]);
        let client = fake.client();
        let error = client.page("page_1").await.unwrap_err();
        let answered = error.status().unwrap().as_u16();
        assert_eq!((error.attempts(), answered), (1, status));
        // The calls of no client are held back for ever.
        let begun = tokio::time::Instant::now();
        let endless = Options::default().total_timeout(Duration::MAX);
        let endless = endless.attempt_timeout(Duration::MAX);
        client.with(endless).page("page_1").await.unwrap();
        assert!(begun.elapsed() <= Duration::from_secs(3_600));
    }
}
