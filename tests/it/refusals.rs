//! The refusals, their answers, and their cost: nothing is read, remembered or reported without need.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use hookgate::{
    ConfigErrorKind, KeyRing, MemoryStore, Receiver, ReceiverBuilder, Secret, layer::Answer,
    lookup::Keys, verify::Timestamp,
};
use http_body::Frame;
use tower::{Layer, ServiceExt};

use crate::support::*;

/// A receiver that reports in which way each delivery was not authentic.
fn telling(builder: ReceiverBuilder) -> (Receiver, Arc<Mutex<Vec<String>>>) {
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let telling = Arc::clone(&told);
    let receiver = builder
        .on_answer(move |answer: &Answer| {
            let mut line = answer.outcome.name().to_owned();
            let mut below = answer.reason.as_ref().and_then(|reason| reason.source());
            while let Some(error) = below {
                line.push_str(": ");
                line.push_str(&error.to_string());
                below = error.source();
            }
            telling.lock().unwrap().push(line);
        })
        .build()
        .unwrap();
    (receiver, told)
}

/// Each is refused by its head alone.
fn refused_by_head() -> Vec<(&'static str, Sent)> {
    let good = || Sent::at(NOW, event("evt_1"));
    let twice = |name: &str| {
        let value = good().header(name);
        good().with(&name.to_lowercase(), value)
    };
    let (signature, timestamp) = ("X-Service-Signature", "X-Service-Timestamp");
    let written = good().header(signature);
    let hex = written.strip_prefix("sha256=").unwrap();
    let mut all = vec![
        ("no signature", good().without(signature)),
        ("no timestamp", good().without(timestamp)),
        ("neither", good().without(signature).without(timestamp)),
        ("signature twice, other case", twice(signature)),
        ("timestamp twice, other case", twice(timestamp)),
        (
            "comma-joined signatures",
            good().but(signature, format!("{written}, {written}")),
        ),
        (
            "comma-joined timestamps",
            good().but(timestamp, format!("{NOW},{NOW}")),
        ),
        (
            "event id twice",
            good()
                .with("X-Service-Event-Id", "evt_1")
                .with("x-service-event-id", "evt_1"),
        ),
        (
            "event type twice",
            good()
                .with("X-Service-Event-Type", "a")
                .with("X-SERVICE-EVENT-TYPE", "a"),
        ),
        (
            "webhook id twice",
            good()
                .with("X-Service-Webhook-Id", "wh_1")
                .with("X-Service-Webhook-Id", "wh_1"),
        ),
        ("empty signature", good().but(signature, "")),
        ("prefix alone", good().but(signature, "sha256=")),
        ("no prefix", good().but(signature, hex)),
        (
            "prefix in upper case",
            good().but(signature, format!("SHA256={hex}")),
        ),
        (
            "another prefix",
            good().but(signature, format!("sha1={hex}")),
        ),
        ("no algorithm", good().but(signature, "none=")),
        (
            "upper-case digits",
            good().but(signature, format!("sha256={}", "AB".repeat(32))),
        ),
        ("63 digits", good().but(signature, &written[..70])),
        ("65 digits", good().but(signature, format!("{written}0"))),
        ("2 digits", good().but(signature, "sha256=ab")),
        ("half the digest", good().but(signature, &written[..39])),
        (
            "bytes beyond ASCII",
            good().but(signature, "sha256=\u{e9}\u{e9}".as_bytes()),
        ),
        (
            "a sign among the digits",
            good().but(signature, format!("sha256=+f{}", &hex[2..])),
        ),
        (
            "9,000 digits",
            good().but(signature, format!("sha256={}", "a".repeat(9_000))),
        ),
        ("301 s old", Sent::at(NOW - 301, event("evt_1"))),
        ("a year old", Sent::at(NOW - 31_536_000, event("evt_1"))),
        ("301 s ahead", Sent::at(NOW + 301, event("evt_1"))),
        (
            "the last timestamp there is",
            Sent::at(9_999_999_999_999_999, event("evt_1")),
        ),
    ];
    for bad in bad_timestamps() {
        all.push(("malformed timestamp", good().but(timestamp, bad)));
    }
    all
}

fn bad_timestamps() -> Vec<Vec<u8>> {
    let now = NOW.to_string();
    let mut all: Vec<Vec<u8>> = [
        "",
        "0",
        "00",
        "-1",
        "+1",
        "1.0",
        "1e9",
        "0x69",
        "1_763_690_000",
        "1,763,690,000",
        "1763690000.5",
        "1763690000Z",
        "2025-11-21T01:53:20Z",
        "18446744073709551616",
        "9223372036854775808",
        "-9223372036854775808",
        "170141183460469231731687303715884105728",
        "NaN",
        "١٧٦٣٦٩٠٠٠٠",
        "１７６３６９００００",
    ]
    .iter()
    .map(|text| text.as_bytes().to_vec())
    .collect();
    all.extend(
        [
            format!("+{now}"),
            format!("0{now}"),
            format!("-{now}"),
            format!("{now} {now}"),
            "9".repeat(8_192),
        ]
        .map(String::into_bytes),
    );
    all
}

// fault S2-12: timestamps with signs, zeros, spaces, points, other digits, overflow
// fault R10: a body is read whose headers had it refused already
// fault S2: a layer that verifies nothing by itself; ids from unsigned headers
#[tokio::test]
async fn what_the_head_refuses_costs_not_a_byte_of_the_body() {
    let store = CountingStore::default();
    let (receiver, _) = telling(receiver().clock(manual()).store(store.clone()));
    let probe = Probe::new();
    let inner = tower::service_fn(move |_| {
        let probe = probe.clone();
        async move {
            probe.run(Bytes::new()).await;
            panic!("ran");
            #[allow(unreachable_code)]
            Ok::<_, std::convert::Infallible>(http::Response::new(String::new()))
        }
    });
    let service = receiver.layer().layer(inner);
    let mut cases = refused_by_head();
    let good = || Sent::at(NOW, event("evt_1"));
    let mut statuses = Vec::new();
    for sent in [
        Sent::at(NOW - 400, event("evt_1")),
        good().by("GET"),
        good().by("PUT"),
        good().by("DELETE"),
        good().with("Content-Encoding", "gzip"),
        good().but("Content-Type", "text/plain"),
        good()
            .with("Content-Length", "1048577")
            .with("Expect", "100-continue"),
    ] {
        statuses.push(("refused before authentication", sent));
    }
    cases.append(&mut statuses);
    for (what, sent) in cases {
        let (body, polls) = CountedBody::new(vec![Ok(Frame::data(sent.body.clone().into()))]);
        let answer = service
            .clone()
            .oneshot(sent.request_with(body))
            .await
            .unwrap();
        assert!(answer.status().is_client_error(), "{what}");
        assert_eq!(
            polls.load(Ordering::SeqCst),
            0,
            "{what}: {:?}",
            sent.headers
        );
    }
    // A body that is too large is read on so that the sender gets the answer, except where it is far too large for that.
    for (announced, read) in [(1_048_577, true), (4_000_000_000_000_000_000, false)] {
        let (body, polls) = CountedBody::new(vec![]);
        let sent = good().request_with(body.announcing(announced));
        assert_eq!(service.clone().oneshot(sent).await.unwrap().status(), 413);
        assert_eq!(
            polls.load(Ordering::SeqCst) > 0,
            read,
            "announced by the body alone"
        );
    }
    assert_eq!(
        store.calls(),
        0,
        "unauthenticated traffic reaches the store"
    );
}

// fault S2-04: the webhook-id header names another subscription, or none that is known
// fault S2-12: timestamps with signs, zeros, spaces, points, other digits, overflow
// fault S2-14: signatures in other case, length, algorithm, or in lists
// fault S2-30: refusals tell a forger what was wrong
// fault R5: a signature of another length panics
// fault R6: the same; a weaker algorithm is accepted
// fault R7: the least timestamp overflows
// fault R12: hex decoding panics beyond ASCII and reads a sign as a digit
// fault S13: a timestamp is printed again before it is signed
#[tokio::test]
async fn all_unauthentic_deliveries_get_the_same_answer() {
    let one = |tail: &str| Secret::new(&format!("whsec_made_up_for_subscription_{tail}")).unwrap();
    let map = || {
        Receiver::builder()
            .subscriptions([("wh_1", one("1")), ("wh_2", one("2"))])
            .store(CountingStore::default())
            .clock(manual())
    };
    let (ours, told) = telling(receiver().clock(manual()));
    let (mapped, mapped_told) = telling(map());
    let pinned_ring = KeyRing::new(secret()).with_workspace("ws_other").unwrap();
    let (pinned, pinned_told) = telling(
        Receiver::builder()
            .key_ring(pinned_ring)
            .store(CountingStore::default())
            .clock(manual()),
    );
    let probe = Probe::new();

    let mut answers = Vec::new();
    let ours_app = app(&ours, &probe);
    for (what, sent) in refused_by_head() {
        answers.push((what, ask(&ours_app, &sent).await));
    }
    let good = || Sent::at(NOW, event("evt_1"));
    let mut changed = good();
    changed.body[20] ^= 1;
    let foreign = Sent::signed("whsec_made_up_for_somebody_else", NOW, event("evt_1"));
    let later = good().but("X-Service-Timestamp", (NOW + 1).to_string());
    for (what, sent) in [
        ("another body", changed),
        ("another secret", foreign),
        ("another timestamp", later),
    ] {
        answers.push((what, ask(&ours_app, &sent).await));
    }
    let mapped_app = app(&mapped, &probe);
    let first = |id: &str| {
        Sent::signed("whsec_made_up_for_subscription_1", NOW, event("evt_1"))
            .with("X-Service-Webhook-Id", id)
    };
    for (what, sent) in [
        (
            "no subscription named",
            first("wh_1").without("X-Service-Webhook-Id"),
        ),
        ("unknown subscription", first("wh_3")),
        ("another's subscription", first("wh_2")),
    ] {
        answers.push((what, ask(&mapped_app, &sent).await));
    }
    answers.push((
        "another workspace",
        ask(&app(&pinned, &probe), &good()).await,
    ));

    let (_, model) = &answers[0];
    assert_eq!(model.status, 401);
    for (what, answer) in &answers {
        assert_eq!(
            (answer.status, &answer.headers, &answer.body),
            (401, &model.headers, &model.body),
            "{what}"
        );
    }
    assert_eq!(probe.started(), 0);
    // And yet the operator gets the exact reason.
    let reasons: BTreeSet<String> = [told, mapped_told, pinned_told]
        .iter()
        .flat_map(|told| told.lock().unwrap().clone())
        .collect();
    assert!(reasons.len() >= 12, "{reasons:#?}");
}

// fault S2-30: refusals tell a forger what was wrong
#[tokio::test]
async fn on_the_wire_too_all_401s_are_byte_for_byte_the_same() {
    let receiver = receiver().build().unwrap();
    let server = Server::start(app(&receiver, &Probe::new())).await;
    let good = || Sent::new(event("evt_1"));
    let timestamp: i64 = good().header("X-Service-Timestamp").parse().unwrap();
    let mut forged = good();
    forged.body[20] ^= 1;
    let mut answers = Vec::new();
    for sent in [
        good().without("X-Service-Signature"),
        good().without("X-Service-Timestamp"),
        good().but("X-Service-Signature", "sha256=ab"),
        good().but("X-Service-Timestamp", "01"),
        Sent::at(timestamp - 400, event("evt_1")),
        Sent::at(timestamp + 4_000, event("evt_1")),
        forged,
    ] {
        let mut answer = server.ask(&sent.bytes()).await;
        answer.headers.remove("date");
        answers.push(answer);
    }
    for answer in &answers {
        assert_eq!(
            (answer.status, &answer.headers, &answer.body),
            (401, &answers[0].headers, &answers[0].body)
        );
    }
}

// fault S2-10: timestamps from the future
// fault S2-11: off by one at 300 s
// fault S12: the future is accepted
#[tokio::test]
async fn a_signature_never_counts_from_outside_the_window_and_always_from_its_edge() {
    let receiver = receiver().clock(manual()).build().unwrap();
    let probe = Probe::new();
    let app = app(&receiver, &probe);
    for (age, status) in [(0, 204), (300, 204), (301, 401), (-300, 204), (-301, 401)] {
        let sent = Sent::at(NOW - age, event(&format!("evt_{age}")));
        assert_eq!(ask(&app, &sent).await.status, status, "age {age}");
    }
    assert_eq!(probe.started(), 3);
}

// fault S2-32: clock steps, a clock before 1970
// fault R7: the least timestamp overflows
#[tokio::test]
async fn no_reading_of_the_clock_breaks_a_delivery() {
    let clock = manual();
    let receiver = receiver().clock(clock.clone()).build().unwrap();
    let probe = Probe::new();
    let app = app(&receiver, &probe);
    for wall in [i64::MIN, -1, 0, 1, i64::MAX] {
        clock.set_wall(hookgate::clock::UnixSeconds::new(wall));
        assert_eq!(
            ask(&app, &Sent::at(NOW, event("evt_1"))).await.status,
            401,
            "clock {wall}"
        );
    }
    clock.set_wall(hookgate::clock::UnixSeconds::new(NOW));
    assert_eq!(ask(&app, &Sent::at(NOW, event("evt_1"))).await.status, 204);
    // A step of the wall clock makes the store forget no event: retention uses the monotonic clock.
    clock.set_wall(hookgate::clock::UnixSeconds::new(NOW + 10_000_000));
    assert!(
        ask(&app, &Sent::at(NOW + 10_000_000, event("evt_1")))
            .await
            .is_replay()
    );
    assert_eq!(probe.started(), 1);
}

// fault S2-15: bytes moved across the dot
#[tokio::test]
async fn no_byte_can_move_across_the_dot() {
    let receiver = receiver().clock(manual()).build().unwrap();
    let probe = Probe::new();
    let app = app(&receiver, &probe);
    // Signed as `NOW` and a body that begins with `5.`; sent as `NOW.5` and the rest. The signed string is the same.
    let rest = event("evt_1");
    let whole = Sent::at(NOW, format!("5.{rest}"));
    let mut moved = whole.clone().but("X-Service-Timestamp", format!("{NOW}.5"));
    moved.body = rest.into_bytes();
    assert_eq!(ask(&app, &moved).await.status, 401);
    assert_eq!(
        ask(&app, &whole).await.status,
        400,
        "authentic, and no JSON"
    );
    assert_eq!(probe.started(), 0);
}

// fault S2-16: the key stripped, decoded, trimmed
#[tokio::test]
async fn the_key_is_the_whole_secret_text_undecoded() {
    let receiver = receiver().clock(manual()).build().unwrap();
    let probe = Probe::new();
    let app = app(&receiver, &probe);
    let (timestamp, body) = (
        Timestamp::parse(NOW.to_string().as_bytes()).unwrap(),
        event("evt_1"),
    );
    for mistake in [
        SECRET.strip_prefix("whsec_").unwrap().to_owned(),
        SECRET.to_uppercase(),
        format!("{SECRET}="),
        format!("v1,{SECRET}"),
    ] {
        let key = Secret::unprefixed(&mistake).unwrap();
        let signature =
            hookgate::verify::Signature::sign(&key, &timestamp, body.as_bytes()).to_header_value();
        let sent = Sent::at(NOW, body.clone()).but("X-Service-Signature", signature);
        assert_eq!(ask(&app, &sent).await.status, 401, "{mistake}");
    }
    assert_eq!(ask(&app, &Sent::at(NOW, body)).await.status, 204);
}

// fault S2-17: empty and short secrets
// fault R13: bodies must be text; an empty secret is accepted
#[test]
fn a_secret_that_anyone_could_guess_is_refused() {
    for (text, kind) in [
        ("", ConfigErrorKind::UnusableSecret),
        ("whsec_", ConfigErrorKind::UnusableSecret),
        ("whsec_short", ConfigErrorKind::UnusableSecret),
        ("tk_live_0123456789abcdef", ConfigErrorKind::SecretApiKey),
        (
            "whsec_xxxxxxxxxxxxxxxxxxxxxxxx",
            ConfigErrorKind::GuessableSecret,
        ),
        ("whsec_${WEBHOOK_SECRET}", ConfigErrorKind::GuessableSecret),
    ] {
        assert_eq!(Secret::new(text).unwrap_err().kind(), kind);
    }
}

#[test]
fn a_second_source_of_keys_is_refused_and_none_is_dropped_in_silence() {
    type Source = fn(ReceiverBuilder) -> ReceiverBuilder;
    let sources: &[Source] = &[
        |builder| builder.secret(Secret::new("whsec_made_up_new_secret").unwrap()),
        |builder| {
            let secret = Secret::new("whsec_made_up_old_secret").unwrap();
            builder.key_ring(KeyRing::new(secret))
        },
        |builder| {
            let secret = Secret::new("whsec_made_up_old_secret").unwrap();
            builder.subscriptions([("wh_1", secret)])
        },
        #[cfg(feature = "lookup")]
        |builder| builder.provider(async |_| Ok::<Option<Secret>, hookgate::ConfigError>(None)),
        |builder| {
            let secret = Secret::new("whsec_made_up_old_secret").unwrap();
            builder.keys(Keys::single(KeyRing::new(secret)))
        },
    ];
    let builder = || Receiver::builder().store(MemoryStore::default());
    for first in sources {
        assert!(first(builder()).build().is_ok());
        for second in sources {
            let error = second(first(builder())).scope("orders").build();
            let error = error.err().unwrap();
            assert_eq!(error.kind(), ConfigErrorKind::UnusableKeys);
            let text = error.to_string();
            assert!(
                text.contains("two live secrets are one ring: .key_ring(KeyRing::named("),
                "{text}"
            );
        }
    }
}

#[tokio::test]
async fn other_methods_are_405_with_the_allowed_method() {
    let receiver = receiver().build().unwrap();
    let server = Server::start(app(&receiver, &Probe::new())).await;
    for method in ["GET", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW"] {
        let answer = server
            .ask(&Sent::new(event("evt_1")).by(method).bytes())
            .await;
        assert_eq!(answer.status, 405, "{method}");
        let allowed: Vec<_> = answer.headers.get_all("allow").iter().collect();
        assert_eq!(allowed, ["POST"], "{method}");
    }
}

// fault S2-25: compressed bombs
#[tokio::test]
async fn an_encoded_body_is_never_inflated() {
    let receiver = receiver().build().unwrap();
    let probe = Probe::new();
    let app = app(&receiver, &probe);
    let sent = || Sent::new(event("evt_1"));
    for encoding in ["gzip", "GZIP", "br", "deflate", "zstd", "identity, gzip"] {
        assert_eq!(
            ask(&app, &sent().with("Content-Encoding", encoding))
                .await
                .status,
            415,
            "{encoding}"
        );
    }
    for encoding in ["Identity", "", " ", ",", "identity, "] {
        let sent = Sent::new(event(&format!("evt_{encoding:?}").replace('"', "")));
        let answer = ask(&app, &sent.with("Content-Encoding", encoding)).await;
        assert_eq!(answer.status, 204, "{encoding:?}");
    }
}

// fault S2-24: bodies oversized, endless, slow; slow heads
// fault R4: a body over the limit, or one that breaks off, panics
#[tokio::test]
async fn exactly_the_limit_is_accepted_and_one_byte_more_is_not() {
    let limit = 4_096;
    let receiver = receiver().max_body(limit).build().unwrap();
    let probe = Probe::new();
    let server = Server::start(app(&receiver, &probe)).await;
    let padded = |id: &str, length: usize| format!("{:<length$}", event(id));
    assert_eq!(
        server
            .ask(&Sent::new(padded("evt_1", limit)).bytes())
            .await
            .status,
        204
    );
    assert_eq!(
        server
            .ask(&Sent::new(padded("evt_2", limit)).chunked(100))
            .await
            .status,
        204
    );
    assert_eq!(
        server
            .ask(&Sent::new(padded("evt_3", limit + 1)).bytes())
            .await
            .status,
        413
    );
    assert_eq!(
        server
            .ask(&Sent::new(padded("evt_4", limit + 1)).chunked(100))
            .await
            .status,
        413
    );
    assert_eq!(probe.started(), 2);
}

// fault S2-27: forged ids fill the store
#[tokio::test]
async fn a_flood_of_forged_ids_leaves_the_store_alone() {
    let store = CountingStore::default();
    let receiver = receiver()
        .store(store.clone())
        .clock(manual())
        .build()
        .unwrap();
    let app = app(&receiver, &Probe::new());
    for number in 0..1_000 {
        let sent = Sent::signed(
            "whsec_made_up_for_somebody_else",
            NOW,
            event(&format!("evt_{number}")),
        );
        assert_eq!(ask(&app, &sent).await.status, 401);
    }
    assert_eq!(store.calls(), 0);
}

// fault S2-31: secrets, digests or bodies in what is shown
// fault R11: Debug prints the secret
#[tokio::test]
async fn nothing_that_is_said_or_shown_holds_a_secret_a_signature_or_a_body() {
    let shown: Arc<Mutex<String>> = Arc::default();
    let kept = Arc::clone(&shown);
    let receiver = receiver()
        .clock(manual())
        .on_answer(move |answer| {
            kept.lock()
                .unwrap()
                .push_str(&format!("{answer:?} {:?}", answer.reason))
        })
        .build()
        .unwrap();
    let app = app(&receiver, &Probe::new());
    let good = Sent::at(NOW, event("evt_1"));
    let mut forged = good.clone();
    forged.body[20] ^= 1;
    let right = sign(SECRET, &NOW.to_string(), &forged.body);
    let mut all = format!("{receiver:?} {:?}", receiver.layer());
    for sent in [
        &good,
        &forged,
        &good.clone().without("X-Service-Timestamp"),
        &good.clone().with("X-Service-Event-Id", "evt_2"),
    ] {
        let response = app.clone().oneshot(sent.request()).await.unwrap();
        all.push_str(&format!(
            "{:?} {:?}",
            response.headers(),
            response.extensions().get::<Answer>()
        ));
        all.push_str(&format!("{:?}", Received::of(response).await));
    }
    all.push_str(&shown.lock().unwrap());
    for hidden in [
        SECRET,
        &SECRET[6..],
        &right[7..],
        &good.header("X-Service-Signature")[7..],
        "Ada",
        "Orders",
    ] {
        assert!(!all.contains(hidden), "{hidden} shows in {all}");
    }
}

// fault S2-04: the webhook-id header names another subscription, or none that is known
// fault S2-29: timing tells how much of a signature was right, or which subscriptions exist
#[tokio::test]
async fn an_unknown_subscription_costs_the_body_like_a_known_one() {
    let receiver = Receiver::builder()
        .subscriptions([("wh_1", secret())])
        .store(CountingStore::default())
        .clock(manual())
        .build()
        .unwrap();
    let service = receiver.layer().layer(Never);
    let forged = Sent::signed("whsec_made_up_for_somebody_else", NOW, event("evt_1"));
    let mut polls = Vec::new();
    for id in ["wh_1", "wh_2"] {
        let sent = forged.clone().with("X-Service-Webhook-Id", id);
        let frames = sent
            .body
            .chunks(10)
            .map(|chunk| Ok(Frame::data(Bytes::copy_from_slice(chunk))))
            .collect();
        let (body, polled): (_, Arc<AtomicUsize>) = CountedBody::new(frames);
        let answer = service
            .clone()
            .oneshot(sent.request_with(body))
            .await
            .unwrap();
        assert_eq!(answer.status(), 401);
        polls.push(polled.load(Ordering::SeqCst));
    }
    assert_eq!(polls[0], polls[1]);
}
