//! The refusals, their answers, and their cost: nothing is read, remembered or reported without
//! need.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use hookgate::{
    ConfigErrorKind, KeyRing, MemoryStore, Receiver, ReceiverBuilder, Secret,
    layer::Answer,
    lookup::Keys,
    verify::{Signature, Timestamp},
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
    let signed_as = |value: &str| good().but(signature, value);
    let of_hint = |name: &str, value| good().with(name, value).with(&name.to_uppercase(), value);
    #[rustfmt::skip] // a row a case
    let mut all = vec![
        ("no signature", good().without(signature)),
        ("no timestamp", good().without(timestamp)),
        ("neither", good().without(signature).without(timestamp)),
        ("signature twice, other case", twice(signature)),
        ("timestamp twice, other case", twice(timestamp)),
        ("comma-joined signatures", signed_as(&format!("{written}, {written}"))),
        ("comma-joined timestamps", good().but(timestamp, format!("{NOW},{NOW}"))),
        ("event id twice", of_hint("x-service-event-id", "evt_1")),
        ("event type twice", of_hint("X-Service-Event-Type", "a")),
        ("webhook id twice", of_hint("X-Service-Webhook-Id", "wh_1")),
        ("empty signature", signed_as("")),
        ("prefix alone", signed_as("sha256=")),
        ("no prefix", signed_as(hex)),
        ("prefix in upper case", signed_as(&format!("SHA256={hex}"))),
        ("another prefix", signed_as(&format!("sha1={hex}"))),
        ("no algorithm", signed_as("none=")),
        ("upper-case digits", signed_as(&format!("sha256={}", "AB".repeat(32)))),
        ("63 digits", signed_as(&written[..70])),
        ("65 digits", signed_as(&format!("{written}0"))),
        ("2 digits", signed_as("sha256=ab")),
        ("half the digest", signed_as(&written[..39])),
        ("bytes beyond ASCII", signed_as("sha256=\u{e9}\u{e9}")),
        ("a sign among the digits", signed_as(&format!("sha256=+f{}", &hex[2..]))),
        ("9,000 digits", signed_as(&format!("sha256={}", "a".repeat(9_000)))),
        ("301 s old", Sent::at(NOW - 301, event("evt_1"))),
        ("a year old", Sent::at(NOW - 31_536_000, event("evt_1"))),
        ("301 s ahead", Sent::at(NOW + 301, event("evt_1"))),
        ("the last timestamp there is", Sent::at(9_999_999_999_999_999, event("evt_1"))),
    ];
    for bad in bad_timestamps() {
        all.push(("malformed timestamp", good().but(timestamp, bad)));
    }
    all
}

fn bad_timestamps() -> Vec<String> {
    let now = NOW.to_string();
    let fixed = "|0|00|-1|+1|1.0|1e9|0x69|1_763_690_000|1,763,690,000|1763690000.5|1763690000Z|\
        2025-11-21T01:53:20Z|18446744073709551616|9223372036854775808|-9223372036854775808|\
        170141183460469231731687303715884105728|NaN|١٧٦٣٦٩٠٠٠٠|１７６３６９００００";
    let mut all: Vec<_> = fixed.split('|').map(str::to_owned).collect();
    all.extend(["+", "0", "-"].map(|sign| format!("{sign}{now}")));
    all.extend([format!("{now} {now}"), "9".repeat(8_192)]);
    all
}

// fault S2-12: timestamps with signs, zeros, spaces, points, other digits, overflow
// fault R10: a body is read whose headers had it refused already
// fault S2: a layer that verifies nothing by itself; ids from unsigned headers
#[tokio::test]
async fn what_the_head_refuses_costs_not_a_byte_of_the_body() {
    let store = CountingStore::default();
    let (receiver, _) = telling(receiver().clock(manual()).store(store.clone()));
    let service = receiver.layer().layer(Never);
    let mut cases = refused_by_head();
    let good = || Sent::at(NOW, event("evt_1"));
    let too_large = good().with("Content-Length", "1048577");
    cases.extend([
        ("400 s old", Sent::at(NOW - 400, event("evt_1"))),
        ("GET", good().by("GET")),
        ("PUT", good().by("PUT")),
        ("DELETE", good().by("DELETE")),
        ("gzip", good().with("Content-Encoding", "gzip")),
        ("text", good().but("Content-Type", "text/plain")),
        ("too large", too_large.with("Expect", "100-continue")),
    ]);
    for (what, sent) in cases {
        let (body, polls) = CountedBody::new(vec![Ok(Frame::data(sent.body.clone().into()))]);
        let answer = service.clone().oneshot(sent.request_with(body)).await;
        assert!(answer.unwrap().status().is_client_error(), "{what}");
        let polls = polls.load(Ordering::SeqCst);
        assert_eq!(polls, 0, "{what}: {:?}", sent.headers);
    }
    // A body that is too large is read on so that the sender gets the answer, except where it is
    // far too large for that.
    for (announced, read) in [(1_048_577, true), (4_000_000_000_000_000_000, false)] {
        let (body, polls) = CountedBody::new(vec![]);
        let sent = good().request_with(body.announcing(announced));
        assert_eq!(service.clone().oneshot(sent).await.unwrap().status(), 413);
        let polls = polls.load(Ordering::SeqCst);
        assert_eq!(polls > 0, read, "announced by the body alone");
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
    const FIRST: &str = "whsec_made_up_for_subscription_1";
    let keyed =
        |builder: ReceiverBuilder| telling(builder.store(CountingStore::default()).clock(manual()));
    let secrets =
        [FIRST, "whsec_made_up_for_subscription_2"].map(|text| Secret::new(text).unwrap());
    let [one, two] = secrets;
    let pinned_ring = KeyRing::new(secret()).with_workspace("ws_other").unwrap();
    let mapped = Receiver::builder().subscriptions([("wh_1", one), ("wh_2", two)]);
    let receivers = [
        receiver(),
        mapped,
        Receiver::builder().key_ring(pinned_ring),
    ]
    .map(keyed);
    let probe = Probe::new();
    let [ours, mapped, pinned] = [0, 1, 2].map(|at: usize| app(&receivers[at].0, &probe));

    let good = || Sent::at(NOW, event("evt_1"));
    let mut changed = good();
    changed.body[20] ^= 1;
    let foreign = Sent::signed("whsec_made_up_for_somebody_else", NOW, event("evt_1"));
    let later = good().but("X-Service-Timestamp", (NOW + 1).to_string());
    let to = |id: &str| Sent::signed(FIRST, NOW, event("evt_1")).with("X-Service-Webhook-Id", id);
    let mut cases: Vec<_> = refused_by_head()
        .into_iter()
        .map(|(what, sent)| (what, &ours, sent))
        .collect();
    cases.extend([
        ("another body", &ours, changed),
        ("another secret", &ours, foreign),
        ("another timestamp", &ours, later),
        (
            "no subscription named",
            &mapped,
            to("").without("X-Service-Webhook-Id"),
        ),
        ("unknown subscription", &mapped, to("wh_3")),
        ("another's subscription", &mapped, to("wh_2")),
        ("another workspace", &pinned, good()),
    ]);
    let mut answers = Vec::new();
    for (what, app, sent) in cases {
        answers.push((what, ask(app, &sent).await));
    }

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
    let reasons = receivers
        .iter()
        .flat_map(|(_, told)| told.lock().unwrap().clone());
    let reasons: BTreeSet<String> = reasons.collect();
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
    let guarded = Guarded::by(receiver().clock(manual()));
    for (age, status) in [(0, 204), (300, 204), (301, 401), (-300, 204), (-301, 401)] {
        let sent = Sent::at(NOW - age, event(&format!("evt_{age}")));
        assert_eq!(guarded.status(&sent).await, status, "age {age}");
    }
    assert_eq!(guarded.probe.started(), 3);
}

// fault S2-32: clock steps, a clock before 1970
// fault R7: the least timestamp overflows
#[tokio::test]
async fn no_reading_of_the_clock_breaks_a_delivery() {
    let clock = manual();
    let guarded = Guarded::by(receiver().clock(clock.clone()));
    let set = |seconds| clock.set_wall(hookgate::clock::UnixSeconds::new(seconds));
    let sent = Sent::at(NOW, event("evt_1"));
    for wall in [i64::MIN, -1, 0, 1, i64::MAX] {
        set(wall);
        assert_eq!(guarded.status(&sent).await, 401, "clock {wall}");
    }
    set(NOW);
    assert_eq!(guarded.status(&sent).await, 204);
    // A step of the wall clock makes the store forget no event: retention uses the monotonic clock.
    set(NOW + 10_000_000);
    assert!(
        guarded
            .replays(&Sent::at(NOW + 10_000_000, event("evt_1")))
            .await
    );
    assert_eq!(guarded.probe.started(), 1);
}

// fault S2-15: bytes moved across the dot
#[tokio::test]
async fn no_byte_can_move_across_the_dot() {
    let guarded = Guarded::by(receiver().clock(manual()));
    // Signed as `NOW` and a body that begins with `5.`; sent as `NOW.5` and the rest. The signed
    // string is the same.
    let rest = event("evt_1");
    let whole = Sent::at(NOW, format!("5.{rest}"));
    let mut moved = whole.clone().but("X-Service-Timestamp", format!("{NOW}.5"));
    moved.body = rest.into_bytes();
    assert_eq!(guarded.status(&moved).await, 401);
    assert_eq!(guarded.status(&whole).await, 400, "authentic, and no JSON");
    assert_eq!(guarded.probe.started(), 0);
}

// fault S2-16: the key stripped, decoded, trimmed
#[tokio::test]
async fn the_key_is_the_whole_secret_text_undecoded() {
    let guarded = Guarded::by(receiver().clock(manual()));
    let timestamp = Timestamp::parse(NOW.to_string().as_bytes()).unwrap();
    let body = event("evt_1");
    for mistake in [
        SECRET.strip_prefix("whsec_").unwrap().to_owned(),
        SECRET.to_uppercase(),
        format!("{SECRET}="),
        format!("v1,{SECRET}"),
    ] {
        let key = Secret::unprefixed(&mistake).unwrap();
        let signature = Signature::sign(&key, &timestamp, body.as_bytes()).to_header_value();
        let sent = Sent::at(NOW, body.clone()).but("X-Service-Signature", signature);
        assert_eq!(guarded.status(&sent).await, 401, "{mistake}");
    }
    assert_eq!(guarded.status(&Sent::at(NOW, body)).await, 204);
}

// fault S2-17: empty and short secrets
// fault R13: bodies must be text; an empty secret is accepted
#[test]
fn a_secret_that_anyone_could_guess_is_refused() {
    use ConfigErrorKind as Kind;
    for (text, kind) in [
        ("", Kind::UnusableSecret),
        ("whsec_", Kind::UnusableSecret),
        ("whsec_short", Kind::UnusableSecret),
        ("tk_live_0123456789abcdef", Kind::SecretApiKey),
        ("whsec_xxxxxxxxxxxxxxxxxxxxxxxx", Kind::GuessableSecret),
        ("whsec_${WEBHOOK_SECRET}", Kind::GuessableSecret),
    ] {
        assert_eq!(Secret::new(text).unwrap_err().kind(), kind, "{text}");
    }
}

#[test]
fn a_second_source_of_keys_is_refused_and_none_is_dropped_in_silence() {
    type Source = fn(ReceiverBuilder) -> ReceiverBuilder;
    let sources: &[Source] = &[
        |builder| builder.secret(Secret::new("whsec_made_up_new_secret").unwrap()),
        |builder| builder.key_ring(KeyRing::new(secret())),
        |builder| builder.subscriptions([("wh_1", secret())]),
        #[cfg(feature = "lookup")]
        |builder| builder.provider(async |_| Ok::<Option<Secret>, hookgate::ConfigError>(None)),
        |builder| builder.keys(Keys::single(KeyRing::new(secret()))),
    ];
    let builder = || Receiver::builder().store(MemoryStore::default());
    for first in sources {
        assert!(first(builder()).build().is_ok());
        for second in sources {
            let error = second(first(builder())).scope("orders").build();
            let error = error.err().unwrap();
            assert_eq!(error.kind(), ConfigErrorKind::UnusableKeys);
            let advice = "two live secrets are one ring: .key_ring(KeyRing::named(";
            assert!(error.to_string().contains(advice), "{error}");
        }
    }
}

#[tokio::test]
async fn other_methods_are_405_with_the_allowed_method() {
    let receiver = receiver().build().unwrap();
    let server = Server::start(app(&receiver, &Probe::new())).await;
    for method in ["GET", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW"] {
        let sent = Sent::new(event("evt_1")).by(method);
        let answer = server.ask(&sent.bytes()).await;
        assert_eq!(answer.status, 405, "{method}");
        let allowed: Vec<_> = answer.headers.get_all("allow").iter().collect();
        assert_eq!(allowed, ["POST"], "{method}");
    }
}

// fault S2-25: compressed bombs
#[tokio::test]
async fn an_encoded_body_is_never_inflated() {
    let guarded = Guarded::by(receiver());
    let encoded = ["gzip", "GZIP", "br", "deflate", "zstd", "identity, gzip"];
    let plain = ["Identity", "", " ", ",", "identity, "];
    for (encodings, status) in [(&encoded[..], 415), (&plain, 204)] {
        for encoding in encodings {
            let id = format!("evt_{encoding:?}").replace('"', "");
            let sent = Sent::new(event(&id)).with("Content-Encoding", encoding);
            assert_eq!(guarded.status(&sent).await, status, "{encoding:?}");
        }
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
    for (id, length, status) in [("evt_1", limit, 204), ("evt_2", limit + 1, 413)] {
        let whole = Sent::new(padded(id, length)).bytes();
        assert_eq!(server.status(&whole).await, status, "{length}");
        let chunked = Sent::new(padded(&format!("{id}_chunked"), length)).chunked(100);
        assert_eq!(server.status(&chunked).await, status, "{length} in chunks");
    }
    assert_eq!(probe.started(), 2);
}

// fault S2-27: forged ids fill the store
#[tokio::test]
async fn a_flood_of_forged_ids_leaves_the_store_alone() {
    let store = CountingStore::default();
    let guarded = Guarded::by(receiver().store(store.clone()).clock(manual()));
    for number in 0..1_000 {
        let event = event(&format!("evt_{number}"));
        let sent = Sent::signed("whsec_made_up_for_somebody_else", NOW, event);
        assert_eq!(guarded.status(&sent).await, 401);
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
            *kept.lock().unwrap() += &format!("{answer:?} {:?}", answer.reason)
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
        let answer = response.extensions().get::<Answer>();
        all += &format!("{:?} {answer:?}", response.headers());
        all += &format!("{:?}", Received::of(response).await);
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
        let (body, polled) = CountedBody::in_pieces(&sent.body, 10);
        let answer = service.clone().oneshot(sent.request_with(body)).await;
        assert_eq!(answer.unwrap().status(), 401);
        polls.push(polled.load(Ordering::SeqCst));
    }
    assert_eq!(polls[0], polls[1]);
}
