//! The sender against a receiver in a process of its own, over real HTTP, while the network and the
//! handler misbehave.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hookgate::clock::SystemClock;
use hookgate_testing::factory::{EventFactory, JsonText};
use hookgate_testing::sender::{
    AttemptEnd, Disposition, NetworkFaults, Sender, SentEvent, Subscription,
};
use hookgate_testing::{Transport, TransportError};
use http::{Request, Response};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{SECRET, secret};
use crate::process::Example;

/// A connection for each request. Dropping it closes the connection amid whatever it is in.
#[derive(Clone)]
struct Tcp;

impl Transport for Tcp {
    async fn deliver(&self, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        let host = request.uri().authority().ok_or("no host")?.as_str();
        let mut stream = TcpStream::connect(host).await?;
        let path = request.uri().path();
        let length = request.body().len();
        let mut head = format!(
            "POST {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-length: {length}\r\n"
        );
        for (name, value) in request.headers() {
            head += &format!("{name}: {}\r\n", value.to_str()?);
        }
        stream.write_all(format!("{head}\r\n").as_bytes()).await?;
        stream.write_all(request.body()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        let answer = String::from_utf8(answer)?.to_ascii_lowercase();
        let status = answer.split(' ').nth(1).ok_or("no answer")?;
        let mut response = Response::builder().status(status.parse::<u16>()?);
        if answer.contains("\r\nidempotent-replayed: true\r\n") {
            response = response.header("idempotent-replayed", "true");
        }
        Ok(response.body(Bytes::new())?)
    }
}

/// How often an event's run succeeded, and how often it ran.
fn counts(example: &Example, id: &str) -> (u64, u64) {
    let reply = example.get(&format!("/count?id={id}"));
    let value: Value = serde_json::from_str(&reply.body).unwrap();
    let count = |name: &str| value[name].as_u64().unwrap();
    (count("effects"), count("starts"))
}

#[tokio::test]
async fn over_http_and_faults_each_event_is_handled_once_or_discarded() {
    const SEED: u64 = 2_026;
    let example = Example::start("conformance", &[("SECRET", SECRET)]);
    let url = format!("http://{}/webhooks", example.address);
    let subscription = Subscription::new("wh_1", &url, secret(), Tcp).unwrap();
    let faults = NetworkFaults::seeded(SEED)
        .refused(0.1)
        .answers_lost(0.15)
        .duplicated(0.25)
        .slow(0.1, Duration::from_secs(6));
    // No process is killed here, so no lease has to end, and retries may follow as fast as a test
    // needs them: after 50 ms, 0.25 s, 1.5 s and 6 s. The receiver's budget of 4.5 s and the
    // sender's time limit of 5 s are real.
    let mut sender = Sender::builder()
        .subscription(subscription.at_once(32))
        .clock(SystemClock)
        .speed(1_200)
        .faults(faults)
        .build();
    let factory = EventFactory::seeded(SEED).with_clock(SystemClock);
    let programs = [
        "",
        "fail=1",
        "sleep=30",
        "fail=2",
        "panic=1",
        "sleep=200;fail=1",
        "panic=1;fail=2",
        "",
        "fail=99",
        "sleep=4700",
    ];
    for program in programs.iter().cycle().take(120) {
        let event = factory
            .row_created()
            .property("probe", JsonText::text(program));
        sender.emit(event).unwrap();
    }
    let report = sender.settle().await;

    // The run of an attempt that its sender hung up on may go on beyond the last attempt.
    let ended = |event: &SentEvent| {
        event.disposition == Disposition::Discarded || counts(&example, &event.id).0 > 0
    };
    let until = Instant::now() + Duration::from_secs(60);
    while !report.events().iter().all(ended) && Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    let mut found = HashSet::new();
    for event in report.events() {
        let (handled, runs) = counts(&example, &event.id);
        assert!(handled <= 1, "handled {handled} times: {event}\n{report}");
        let discarded = event.disposition == Disposition::Discarded;
        assert!(handled == 1 || discarded, "lost: {event}\n{report}");
        assert!(!discarded || event.attempts.len() == 5, "{event}\n{report}");
        found.insert((event.disposition, handled, runs > 1));
        let odd = |attempt: &hookgate_testing::sender::SentAttempt| {
            let misread = match &attempt.end {
                AttemptEnd::Answered(status) => ![200, 204, 500, 503].contains(status),
                AttemptEnd::Failed(reason) => {
                    !["connection refused", "the answer was lost"].contains(&&**reason)
                }
                _ => false,
            };
            misread.then(|| attempt.end.clone())
        };
        let odd: Vec<_> = event.attempts.iter().filter_map(odd).collect();
        assert!(odd.is_empty(), "{odd:?}: {event}");
    }
    // Every case occurred: success at once, success after failures, and none.
    for case in [
        (Disposition::Delivered, 1, false),
        (Disposition::Delivered, 1, true),
        (Disposition::Discarded, 0, true),
    ] {
        assert!(found.contains(&case), "{case:?} is not in {found:?}");
    }
    let attempts = || report.events().iter().flat_map(|event| &event.attempts);
    assert!(attempts().any(|attempt| attempt.replayed), "{report}");
    assert!(attempts().any(|attempt| attempt.copy.is_some()), "{report}");
    let timed_out = attempts().any(|attempt| attempt.end == AttemptEnd::TimedOut);
    assert!(timed_out, "{report}");
    let faults: HashSet<_> = attempts().filter_map(|attempt| attempt.fault).collect();
    assert_eq!(faults.len(), 4, "{faults:?}");
}
