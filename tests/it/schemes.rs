//! Other senders: each rule of a scheme, and the four rows that ship.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::routing::post;
use base64::Engine;
use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use hookgate::clock::{ManualClock, UnixSeconds};
use hookgate::dedupe::RetrySchedule;
use hookgate::event::EventHead;
use hookgate::layer::Answer;
use hookgate::lookup::Keys;
use hookgate::outcome::RefusalKind;
use hookgate::receiver::{RequestHead, StoredDelivery};
use hookgate::scheme::{Encoding, Form, Key, Part, Place};
use hookgate::verify::{Timestamp, VerifyErrorKind as Kind, Window, sign};
use hookgate::{
    ConfigErrorKind, Delivery, Event, EventRouter, KeyRing, MemoryStore, Receiver, ReceiverBuilder,
    Scheme, Secret, Signed, Verifier, block_on, dangerous,
};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use tower::ServiceExt;

const NOW: i64 = 1_763_690_000;
const TEXT: &str = "whsec_made_up_for_the_scheme_tests";
/// Of the specification's own vector.
const BYTES: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const OTHER_BYTES: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
const ROWS: [Scheme; 4] = [
    Scheme::WORKSPACE,
    Scheme::STANDARD_WEBHOOKS,
    Scheme::STRIPE,
    Scheme::GITHUB,
];
const EVENT: &str = r#"{"id":"evt_1","type":"invoice.paid","data":{"total":7}}"#;

type Pairs = Vec<(String, String)>;

fn text_of(scheme: Scheme) -> &'static str {
    match scheme == Scheme::STANDARD_WEBHOOKS {
        true => BYTES,
        false => TEXT,
    }
}

fn secret_of(scheme: Scheme) -> Secret {
    Secret::new(text_of(scheme)).unwrap()
}

fn now() -> Timestamp {
    Timestamp::at(UnixSeconds::new(NOW)).unwrap()
}

fn signed(scheme: Scheme, secret: &Secret, id: &str, body: &str) -> Pairs {
    let headers = sign(&scheme, secret, &now(), id, body.as_bytes()).unwrap();
    let owned = |(name, value): (&str, String)| (name.to_owned(), value);
    headers.into_iter().map(owned).collect()
}

fn good(scheme: Scheme, id: &str, body: &str) -> Pairs {
    signed(scheme, &secret_of(scheme), id, body)
}

fn pairs(headers: &Pairs) -> impl Iterator<Item = (&String, &String)> + Clone {
    headers.iter().map(|(name, value)| (name, value))
}

/// With the scheme's own secret.
fn own(scheme: Scheme) -> Verifier {
    verifier(scheme, secret_of(scheme))
}

fn verifier(scheme: Scheme, keys: impl Into<Keys>) -> Verifier {
    match scheme.has_timestamp() {
        true => Verifier::for_scheme(scheme, keys).unwrap(),
        false => Verifier::without_window(scheme, keys).unwrap(),
    }
}

/// Returns the reason of a refusal, over a whole body and one in pieces, which agree.
fn verdict(verifier: &Verifier, headers: &Pairs, body: &str) -> Result<String, Kind> {
    let head = verifier
        .headers(pairs(headers))
        .map_err(|error| error.kind())?;
    let now = UnixSeconds::new(NOW);
    let whole = verifier.verify(&head, body.as_bytes(), now);
    let whole = whole.map(|verified| verified.key_name().to_owned());
    let begun = verifier.begin(&head, now, 1 << 20);
    if let (Err(one), Err(other)) = (&whole, &begun) {
        assert_eq!(one, other);
        return Err(one.kind());
    }
    let mut pieces = begun.unwrap();
    for piece in body.as_bytes().chunks(7) {
        pieces.push(Bytes::copy_from_slice(piece)).unwrap();
    }
    let pieces = pieces.finish();
    let pieces = pieces.map(|verified| verified.key_name().to_owned());
    assert_eq!(whole, pieces);
    whole.map_err(|error| error.kind())
}

fn builder(scheme: Scheme) -> ReceiverBuilder {
    let builder = Receiver::builder()
        .scheme(scheme)
        .secret(secret_of(scheme))
        .clock(ManualClock::at(UnixSeconds::new(NOW)))
        .store(MemoryStore::default());
    match scheme.has_timestamp() {
        true => builder,
        false => builder.without_window(),
    }
}

fn request(headers: &Pairs, body: &str) -> Request<Full<Bytes>> {
    let mut request = Request::post("/hooks");
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let body = Bytes::from(body.to_owned());
    request.body(Full::new(body)).unwrap()
}

async fn handled(receiver: &Receiver, headers: &Pairs, body: &str) -> Response<Bytes> {
    let handler = async |_: Delivery| StatusCode::NO_CONTENT;
    receiver.handle(request(headers, body), handler).await
}

fn delivery(receiver: &Receiver, headers: &Pairs, body: &str) -> Delivery {
    let head = receiver.request_head("POST", pairs(headers));
    let mut received = receiver.check_head(&head).unwrap();
    received.push(Bytes::from(body.to_owned())).unwrap();
    receiver.verify(received, &head).unwrap()
}

fn says(error: Option<hookgate::ConfigError>, kind: ConfigErrorKind, message: &str) {
    let error = error.expect(message);
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().contains(message), "{error}");
}

#[test]
fn the_first_line_builds_for_each_row_and_the_defaults_follow_the_scheme() {
    for scheme in ROWS {
        let least = RetrySchedule::of_scheme(&scheme).minimum_retention(&Default::default());
        assert!(builder(scheme).build().is_ok(), "{}", scheme.name());
        let too_short = builder(scheme).retention(least - Duration::from_secs(1));
        let kind = too_short.build().err().map(|error| error.kind());
        assert!(matches!(
            kind,
            Some(ConfigErrorKind::RetentionTooShort { .. })
        ));
        let three_days = Duration::from_secs(72 * 3_600);
        assert_eq!(least > three_days, scheme != Scheme::WORKSPACE);
        assert_eq!(Scheme::named(scheme.name()), Some(scheme));
    }
    // The sender waits two seconds, and tries again after one.
    const WAITS: &[Duration] = &[Duration::from_secs(1)];
    let quick = Scheme::WORKSPACE
        .retries(WAITS)
        .attempt_timeout(Duration::from_secs(2));
    assert!(builder(quick).build().is_ok());
    let slow = builder(quick).answer_within(Duration::from_secs(3));
    assert!(slow.build().is_err());
}

#[test]
fn the_published_vector_of_standard_webhooks_holds() {
    let headers = [
        ("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"),
        ("webhook-timestamp", "1614265330"),
        (
            "webhook-signature",
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        ),
    ];
    let verifier = own(Scheme::STANDARD_WEBHOOKS);
    let head = verifier.headers(headers).unwrap();
    let at =
        |seconds| verifier.verify(&head, br#"{"test": 2432232314}"#, UnixSeconds::new(seconds));
    let verified = at(1_614_265_330).unwrap();
    let event = EventHead::from_verified(&verified).unwrap();
    assert_eq!(event.id, "msg_p5jXN8AQM9LWM0D4loKWxJek");
    assert_eq!(event.event_type, "untyped");
    assert!(at(1_614_265_630).is_ok());
    let stale = at(1_614_265_631).unwrap_err();
    assert_eq!(stale.kind().name(), "stale");
}

#[test]
fn each_row_takes_what_it_signs_and_no_edit_of_one_byte() {
    for scheme in ROWS {
        let verifier = own(scheme);
        let headers = good(scheme, "msg_1", EVENT);
        let accepted = verdict(&verifier, &headers, EVENT);
        assert_eq!(accepted.as_deref(), Ok("primary"));
        for at in 0..EVENT.len() {
            let mut bytes = EVENT.as_bytes().to_vec();
            bytes[at] ^= 1;
            let body = String::from_utf8(bytes).unwrap();
            let refused = verdict(&verifier, &headers, &body);
            let mismatch = Err(Kind::SignatureMismatch);
            assert_eq!(refused, mismatch, "{}: {at}", scheme.name());
        }
        for header in 0..headers.len() {
            for at in 0..headers[header].1.len() {
                let mut edited = headers.clone();
                let mut value = edited[header].1.clone().into_bytes();
                value[at] ^= 1;
                edited[header].1 = String::from_utf8(value).unwrap();
                let refused = verdict(&verifier, &edited, EVENT);
                assert!(refused.is_err(), "{}: {edited:?}", scheme.name());
            }
        }
    }
}

#[test]
fn the_grammar_of_a_list_is_strict_and_unknown_versions_are_skipped() {
    let stripe = good(Scheme::STRIPE, "", EVENT)[0].1.clone();
    let v1 = stripe.split_once(',').unwrap().1.to_owned();
    let wrong = format!("v1={}", "0".repeat(64));
    let malformed = Err(Kind::HeaderMalformed("stripe-signature"));
    let eight = |last: &str| format!("t={NOW},{},{last}", [wrong.as_str(); 7].join(","));
    let of_stripe = [
        (stripe.clone(), Ok(())),
        (format!("t={NOW},v0=abc,{v1}"), Ok(())),
        (format!("{v1},t={NOW}"), Ok(())),
        (format!("t={NOW},{wrong},{v1}"), Ok(())),
        (eight(&v1), Ok(())),
        (format!("{},v0=abc", eight(&v1)), malformed),
        (format!("{},{wrong}", eight(&v1)), malformed),
        (format!("t={NOW},{wrong}"), Err(Kind::SignatureMismatch)),
        (format!("t={NOW},v0=abc"), malformed),
        (format!("t={NOW}"), malformed),
        (v1.clone(), malformed),
        (format!("t={NOW},t={NOW},{v1}"), malformed),
        (format!("t=0{NOW},{v1}"), malformed),
        (format!("t=+{NOW},{v1}"), malformed),
        (format!("t={NOW}, {v1}"), malformed),
        (format!("t={NOW},{v1}, t=1, v1=zz"), malformed),
        (format!("t={NOW},{v1},\tv0=1"), malformed),
        (format!("t={NOW},{v1},v0 =1"), malformed),
        (format!("t={NOW},{v1},"), malformed),
        (format!("t={NOW},{v1},v2"), malformed),
        (format!("t={NOW},{v1},=x"), malformed),
        (format!("t={NOW},{}", v1.to_uppercase()), malformed),
        (format!("t={NOW},{}", &v1[..v1.len() - 1]), malformed),
        (format!("t={NOW},{v1}0"), malformed),
        (String::new(), malformed),
    ];
    for (value, expected) in of_stripe {
        let headers = vec![("Stripe-Signature".to_owned(), value.clone())];
        let found = verdict(&own(Scheme::STRIPE), &headers, EVENT).map(drop);
        assert_eq!(found, expected, "{value}");
    }

    let standard = good(Scheme::STANDARD_WEBHOOKS, "msg_1", EVENT);
    let v1 = standard[0].1.clone();
    let wrong = format!("v1,{}=", "A".repeat(43));
    let malformed = Err(Kind::HeaderMalformed("webhook-signature"));
    let last = v1.rfind('=').unwrap();
    // The last character before the padding has two bits that stand for nothing.
    let mut other_spelling = v1.clone().into_bytes();
    other_spelling[last - 1] += 1;
    let of_standard = [
        (v1.clone(), Ok(())),
        (format!("v1a,abc {v1}"), Ok(())),
        (format!("{wrong} {v1}"), Ok(())),
        ([v1.as_str(); 8].join(" "), Ok(())),
        ([v1.as_str(); 9].join(" "), malformed),
        (wrong.clone(), Err(Kind::SignatureMismatch)),
        ("v1a,abc v2,def".to_owned(), malformed),
        (v1.replace("v1,", "v1="), malformed),
        (v1.replace("v1,", ""), malformed),
        (v1.trim_end_matches('=').to_owned(), malformed),
        (String::from_utf8(other_spelling).unwrap(), malformed),
        (format!("{v1}  {v1}"), malformed),
        (format!("{v1},"), malformed),
        (String::new(), malformed),
    ];
    for (value, expected) in of_standard {
        let mut headers = standard.clone();
        headers[0].1 = value.clone();
        let found = verdict(&own(Scheme::STANDARD_WEBHOOKS), &headers, EVENT).map(drop);
        assert_eq!(found, expected, "{value}");
    }
}

#[test]
fn each_header_of_what_is_signed_is_there_once() {
    for scheme in ROWS {
        let verifier = own(scheme);
        let headers = good(scheme, "msg_1", EVENT);
        for at in 0..headers.len() {
            let mut without = headers.clone();
            let removed = without.remove(at);
            let kind = verdict(&verifier, &without, EVENT).unwrap_err();
            assert!(
                matches!(kind, Kind::HeaderMissing(name) if name == removed.0),
                "{kind:?}"
            );
            let mut doubled = headers.clone();
            doubled.push((removed.0.to_uppercase(), removed.1));
            let kind = verdict(&verifier, &doubled, EVENT).unwrap_err();
            assert!(matches!(kind, Kind::HeaderRepeated(_)), "{kind:?}");
        }
    }
    let hints = ["x-github-delivery", "x-github-event", "x-github-hook-id"];
    for hint in hints {
        let mut headers = good(Scheme::GITHUB, "", EVENT);
        for expected in [Ok("primary".to_owned()), Err(Kind::HeaderRepeated(hint))] {
            headers.push((hint.to_owned(), "1".to_owned()));
            assert_eq!(verdict(&own(Scheme::GITHUB), &headers, EVENT), expected);
        }
    }
}

#[test]
fn an_id_of_a_header_cannot_give_bytes_to_the_timestamp_or_the_body() {
    let verifier = own(Scheme::STANDARD_WEBHOOKS);
    let long = "i".repeat(257);
    for id in ["msg.1", ".", "", " ", "a b", "é", "msg_1\u{7f}", &long] {
        let headers = signed_by_hand(id, EVENT);
        let kind = verdict(&verifier, &headers, EVENT);
        assert_eq!(kind, Err(Kind::HeaderMalformed("webhook-id")), "{id:?}");
    }
    assert!(verdict(&verifier, &signed_by_hand(&long[1..], EVENT), EVENT).is_ok());
}

/// As the sender would sign any id: `sign` refuses one that no receiver takes.
fn signed_by_hand(id: &str, body: &str) -> Pairs {
    let key = base64::engine::general_purpose::STANDARD.decode(&BYTES["whsec_".len()..]);
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(&key.unwrap()).unwrap();
    mac.update(format!("{id}.{NOW}.{body}").as_bytes());
    let mac = base64::engine::general_purpose::STANDARD.encode(mac.finalize().into_bytes());
    let headers = [
        ("webhook-id", id.to_owned()),
        ("webhook-timestamp", NOW.to_string()),
        ("webhook-signature", format!("v1,{mac}")),
    ];
    headers.map(|(name, value)| (name.to_owned(), value)).into()
}

#[test]
fn each_signature_of_a_list_is_compared_with_each_live_key() {
    let [old, new, foreign] = [BYTES, OTHER_BYTES, "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"];
    let secret = |text| Secret::new(text).unwrap();
    let ring = KeyRing::named("new", secret(new)).unwrap();
    let ring = ring.with_key("old", secret(old)).unwrap();
    let verifier = verifier(Scheme::STANDARD_WEBHOOKS, ring);
    let by = |text| signed(Scheme::STANDARD_WEBHOOKS, &secret(text), "msg_1", EVENT);
    for (texts, expected) in [
        (vec![old], Ok("old")),
        (vec![new], Ok("new")),
        (vec![foreign, old], Ok("old")),
        (vec![foreign, foreign, new], Ok("new")),
        (vec![foreign], Err(Kind::SignatureMismatch)),
        (vec![foreign, foreign], Err(Kind::SignatureMismatch)),
    ] {
        let mut headers = by(texts[0]);
        let values: Vec<_> = texts.iter().map(|text| by(text)[0].1.clone()).collect();
        headers[0].1 = values.join(" ");
        let found = verdict(&verifier, &headers, EVENT);
        assert_eq!(found, expected.map(str::to_owned), "{texts:?}");
    }
}

/// A sender that rotates signs with both keys for a while.
#[test]
fn a_key_that_has_ended_does_not_hide_the_live_one_beside_it() {
    let scheme = Scheme::STANDARD_WEBHOOKS;
    let [old, new] = [BYTES, OTHER_BYTES].map(|text| Secret::new(text).unwrap());
    let end = UnixSeconds::new(NOW - 1);
    let named = |name, secret: &Secret| KeyRing::named(name, secret.clone()).unwrap();
    let first = Secret::new("whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX").unwrap();
    let between = named("first", &first).with_key_until("old", old.clone(), end);
    let rings = [
        named("new", &new).with_key_until("old", old.clone(), end),
        between.and_then(|ring| ring.with_key("new", new.clone())),
    ];
    let by = |secret: &Secret| signed(scheme, secret, "msg_1", EVENT);
    for ring in rings {
        let verifier = verifier(scheme, ring.unwrap());
        for both in [[&new, &old], [&old, &new]] {
            let mut headers = by(&old);
            let values = both.map(|secret| by(secret)[0].1.clone());
            headers[0].1 = values.join(" ");
            assert_eq!(verdict(&verifier, &headers, EVENT), Ok("new".to_owned()));
        }
        assert_eq!(verdict(&verifier, &by(&old), EVENT), Err(Kind::KeyEnded));
    }
}

#[tokio::test]
async fn an_id_decides_only_if_it_was_signed() {
    // Stripe's stands in the body, and no header is asked.
    let stripe = builder(Scheme::STRIPE).build().unwrap();
    let mut headers = good(Scheme::STRIPE, "", EVENT);
    headers.push(("x-service-event-id".into(), "evt_2".into()));
    let first = delivery(&stripe, &headers, EVENT);
    let (id, kind) = (first.event_id(), first.event_type());
    assert_eq!((id, kind), ("evt_1", "invoice.paid"));

    // Standard Webhooks' stands in a header that is signed, and the body's own is not asked.
    let standard = builder(Scheme::STANDARD_WEBHOOKS).build().unwrap();
    let headers = good(Scheme::STANDARD_WEBHOOKS, "msg_1", EVENT);
    let first = delivery(&standard, &headers, EVENT);
    let (id, kind) = (first.event_id(), first.event_type());
    assert_eq!((id, kind), ("msg_1", "invoice.paid"));

    // GitHub's stands in a header that is not signed: the body decides, and so two equal bodies are
    // one event.
    let github = builder(Scheme::GITHUB).build().unwrap();
    let with = |id: &str, kind: &str| {
        let mut headers = good(Scheme::GITHUB, "", EVENT);
        headers.push(("x-github-delivery".into(), id.into()));
        headers.push(("x-github-event".into(), kind.into()));
        headers
    };
    let [one, two] = [("a", "push"), ("b", "star")].map(|(id, kind)| with(id, kind));
    let delivery_of = |headers: &Pairs| delivery(&github, headers, EVENT);
    let digest = <sha2::Sha256 as sha2::Digest>::digest(EVENT.as_bytes());
    let digest = format!("sha256:{}", hex::encode(digest));
    assert_eq!(delivery_of(&one).event_id(), digest);
    assert_eq!(delivery_of(&one).key(), delivery_of(&two).key());
    let hint = delivery_of(&two).signed::<serde_json::Value>().unwrap();
    assert_eq!((hint.kind.as_str(), hint.kind_is_signed), ("star", false));
    assert_eq!(handled(&github, &one, EVENT).await.status(), 204);
    let again = handled(&github, &two, EVENT).await;
    assert_eq!((again.status().as_u16(), again.headers().len()), (200, 1));
    assert!(again.headers().contains_key("idempotent-replayed"));

    // Where a timestamp is signed and no id, the digest is that of all that was signed.
    let digests = Scheme::new("digests")
        .signature("x-signature", Form::One(""), Encoding::Hex)
        .timestamp(Place::Header("x-time"))
        .signs(&[
            Part::Text("v0:"),
            Part::Timestamp,
            Part::Text(":"),
            Part::Body,
        ]);
    let receiver = builder(digests).build().unwrap();
    let id = delivery(&receiver, &good(digests, "", EVENT), EVENT);
    let all = <sha2::Sha256 as sha2::Digest>::digest(format!("v0:{NOW}:{EVENT}"));
    assert_eq!(id.event_id(), format!("sha256:{}", hex::encode(all)));
}

#[tokio::test]
async fn a_body_without_its_id_or_type_is_400_where_the_scheme_has_them_there() {
    // A body without the type that it may leave out is not compared with the header of one.
    let hinted = Scheme::new("acme")
        .signature("x-signature", Form::One(""), Encoding::Hex)
        .timestamp(Place::Header("x-time"))
        .signs(&[Part::Timestamp, Part::Text("."), Part::Body])
        .event_type(Place::JsonIfPresent("type"))
        .hints("x-id", "x-type");
    for (body, status) in [
        ("{}", 204),
        (r#"{"type":"a"}"#, 400),
        (r#"{"type":"b"}"#, 204),
    ] {
        let receiver = builder(hinted).build().unwrap();
        let mut headers = good(hinted, "", body);
        headers.push(("x-type".to_owned(), "b".to_owned()));
        let answer = handled(&receiver, &headers, body).await;
        assert_eq!(answer.status(), status, "{body}");
    }
    let whole = r#"{"object":"event","type":"a","id":"evt_1"}"#;
    for (scheme, body, status) in [
        (Scheme::STRIPE, r#"{"type":"a"}"#, 400),
        (Scheme::STRIPE, r#"{"id":"evt_1"}"#, 400),
        (Scheme::STRIPE, r#"{"id":"a","id":"b","type":"c"}"#, 400),
        (Scheme::STRIPE, "no json", 400),
        (Scheme::STRIPE, whole, 204),
        (Scheme::STANDARD_WEBHOOKS, "{}", 204),
        (Scheme::STANDARD_WEBHOOKS, r#"{"type":7}"#, 204),
        (Scheme::STANDARD_WEBHOOKS, "no json", 204),
        (Scheme::GITHUB, "no json", 204),
        (Scheme::GITHUB, "", 204),
    ] {
        let receiver = builder(scheme).build().unwrap();
        let answer = handled(&receiver, &good(scheme, "msg_1", body), body).await;
        assert_eq!(answer.status(), status, "{}: {body}", scheme.name());
    }
}

#[test]
fn without_a_timestamp_nothing_builds_but_without_a_window() {
    let bare = |scheme: Scheme| {
        let builder = Receiver::builder().scheme(scheme).secret(secret_of(scheme));
        builder.store(MemoryStore::default())
    };
    let kind = ConfigErrorKind::UnusableScheme;
    let windowed = bare(Scheme::GITHUB).build().err();
    says(windowed, kind, ".without_window()");
    assert!(bare(Scheme::GITHUB).without_window().build().is_ok());
    let both = bare(Scheme::GITHUB).without_window();
    let both = both.window(Window::default()).build().err();
    says(both, kind, "leave out .window");
    for scheme in &ROWS[..3] {
        let error = bare(*scheme).without_window().build().err();
        says(error, kind, "the window stays");
        let error = Verifier::without_window(*scheme, secret_of(*scheme)).err();
        says(error, kind, "the window stays");
    }
    let error = Verifier::for_scheme(Scheme::GITHUB, secret_of(Scheme::GITHUB)).err();
    says(error, kind, "Verifier::without_window");
    // A day later it is still authentic, and the store alone knows it.
    let verifier = own(Scheme::GITHUB);
    let headers = good(Scheme::GITHUB, "", EVENT);
    let head = verifier.headers(pairs(&headers)).unwrap();
    let a_day_later = UnixSeconds::new(NOW + 86_400);
    assert!(verifier.verify(&head, EVENT, a_day_later).is_ok());
    assert!(head.timestamp().is_none());
}

#[test]
fn a_row_that_cannot_be_safe_does_not_build() {
    const DOT: Part = Part::Text(".");
    const LONG: &str = "x-a-name-of-sixty-four-characters-that-no-sender-has-in-its-page";
    assert_eq!(LONG.len(), 64);
    let hex = |scheme: Scheme, name| scheme.signature(name, Form::One(""), Encoding::Hex);
    let row = hex(Scheme::new("acme"), "x-signature");
    let in_time = row.timestamp(Place::Header("x-time"));
    let timed = in_time.signs(&[Part::Timestamp, DOT, Part::Body]);
    let list = |separator, version, encoding| {
        let form = Form::List { separator, version };
        timed.signature("x-signature", form, encoding)
    };
    let separated = |separator| list(separator, "v1=", Encoding::Base64);
    let element = |name| separated(',').timestamp(Place::Element(name));
    let one_field = timed
        .event_id(Place::Json("id"))
        .event_type(Place::Json("id"));
    #[rustfmt::skip] // a row a case
    let cases = [
        (timed.event_id(Place::Header("x-id")), "an id decides only if it was signed"),
        (timed.event_id(Place::JsonIfPresent("id")), "in the body of each delivery"),
        (timed.event_id(Place::Element("id=")), "in the body of each delivery"),
        (timed.event_type(Place::Header("x-type")), "a type that is signed"),
        (timed.signs(&[Part::Body]), "its timestamp is not signed"),
        (timed.signs(&[Part::Body, DOT, Part::Timestamp]), "the body must be the last part"),
        (timed.signs(&[]), "the body must be the last part"),
        (timed.signs(&[Part::Body, Part::Body]), "signed once"),
        (timed.signs(&[Part::Timestamp, Part::Body]), "a text must follow"),
        (timed.signs(&[Part::Timestamp, Part::Text(""), Part::Body]), "a text must follow"),
        (timed.signs(&[Part::Timestamp, Part::Text("0."), Part::Body]), "a text must follow"),
        (timed.signs(&[Part::Id, DOT, Part::Timestamp, DOT, Part::Body]), "names no header of it"),
        (row.signs(&[Part::Timestamp, DOT, Part::Body]), "names no place of it"),
        (timed.timestamp(Place::Json("at")), "the timestamp stands in a header"),
        (timed.timestamp(Place::Element("t=")), "needs a list"),
        (timed.hints("x-signature", "x-type"), "two meanings"),
        (timed.timestamp(Place::Header("x-signature")), "two meanings"),
        (timed.subscription(LONG), "at most 63 characters"),
        (timed.subscription("X-Hook"), "lower case"),
        (timed.subscription(""), "lower case"),
        (list(',', "1", Encoding::Hex), "a mark behind it"),
        (Scheme::new(""), "it needs a name"),
        (Scheme::new("acme"), "lower case"),
        (timed.with_name("an acme"), "it needs a name"),
        (timed.with_name("acme\nb"), "it needs a name"),
        (timed.with_name("workspace"), "a row that ships has this name"),
        (Scheme::STRIPE.event_type(Place::JsonIfPresent("type")), "a row that ships has this name"),
        (timed.subscription("x-hook:"), "lower case"),
        (timed.subscription("x-hoök"), "lower case"),
        (hex(timed, "content-type"), "how the body is sent"),
        (one_field, "one field has two meanings"),
        (timed.event_id(Place::Json("")), "without a path"),
        (timed.event_type(Place::Json("data.type")), "without a path"),
        (element(""), "so has an element"),
        (element("v"), "so has an element"),
        (element("v1="), "two names in the list"),
        (separated('a'), "the separator of a list"),
        (separated('='), "the separator of a list"),
        (separated('+'), "the separator of a list"),
        (separated('…'), "the separator of a list"),
        (separated('\n'), "the separator of a list"),
    ];
    for (row, message) in cases {
        let error = builder(row).build().err();
        says(error, ConfigErrorKind::UnusableScheme, message);
    }
    assert!(builder(timed).build().is_ok());
    assert!(builder(element("t=")).build().is_ok());
    // The sender's times are the user's to correct: they say nothing about a signature.
    let patient = Scheme::STRIPE.attempt_timeout(Duration::from_secs(20));
    assert!(builder(patient).build().is_ok());
}

#[test]
fn keys_that_do_not_fit_the_scheme_are_refused_with_a_sentence() {
    let standard = || Receiver::builder().scheme(Scheme::STANDARD_WEBHOOKS);
    let build = |builder: ReceiverBuilder| builder.store(MemoryStore::default()).build();
    let (text, unusable) = (secret_of(Scheme::STRIPE), ConfigErrorKind::UnusableSecret);
    let error = build(standard().secret(text.clone())).err();
    says(error, unusable, "not base64 after its prefix");
    // No key, one byte, and the most that is refused.
    let row = Scheme::STANDARD_WEBHOOKS
        .with_name("acme")
        .key(Key::Base64After("acme-signing-secret-"));
    for rest in ["", "AQ==", "AAECAwQFBgcICQoLDA0O"] {
        let secret = Secret::unprefixed(&format!("acme-signing-secret-{rest}")).unwrap();
        let error = build(Receiver::builder().scheme(row).secret(secret)).err();
        says(error, unusable, "fewer than 16 bytes");
    }
    let least = Secret::unprefixed("acme-signing-secret-AAECAwQFBgcICQoLDA0ODw==").unwrap();
    assert!(build(Receiver::builder().scheme(row).secret(least)).is_ok());

    let kind = ConfigErrorKind::UnusableScheme;
    let pinned = KeyRing::new(text.clone()).with_workspace("ws_1").unwrap();
    let stripe = || Receiver::builder().scheme(Scheme::STRIPE);
    let error = build(stripe().key_ring(pinned)).err();
    says(error, kind, "pinned to a workspace");
    let error = build(stripe().subscriptions([("a", text.clone())])).err();
    says(error, kind, "set one ring");
    // Two texts of one key: without this, a delivery to one subscription could be replayed to the
    // other.
    let row = Scheme::STANDARD_WEBHOOKS
        .with_name("acme")
        .subscription("x-hook");
    let texts = [BYTES, BYTES.strip_prefix("whsec_").unwrap()];
    let [one, two] = texts.map(|text| Secret::unprefixed(text).unwrap());
    let builder = Receiver::builder().scheme(row);
    let error = build(builder.subscriptions([("1", one), ("2", two)])).err();
    assert_eq!(error.unwrap().kind(), ConfigErrorKind::UnusableKeys);
    // One ring that does not fit leaves all as they were.
    let fits = ("1", secret_of(Scheme::STANDARD_WEBHOOKS));
    let keys = Keys::by_subscription([fits, ("2", text.clone())]).unwrap();
    let error = build(Receiver::builder().scheme(row).keys(keys.clone())).err();
    assert_eq!(error.unwrap().kind(), ConfigErrorKind::UnusableSecret);
    let mut headers = good(Scheme::WORKSPACE, "", EVENT);
    headers.push(("x-service-webhook-id".to_owned(), "2".to_owned()));
    assert!(verdict(&Verifier::new(keys), &headers, EVENT).is_ok());
    let ends = KeyRing::new(secret_of(Scheme::STANDARD_WEBHOOKS));
    let ends = ends.with_key_until("old", text.clone(), UnixSeconds::new(NOW));
    let github = Receiver::builder().scheme(Scheme::GITHUB).without_window();
    says(
        build(github.key_ring(ends.unwrap())).err(),
        kind,
        "end date",
    );

    // Keys serve one scheme.
    let keys = Keys::single(secret_of(Scheme::STANDARD_WEBHOOKS));
    let receiver = build(standard().keys(keys.clone())).unwrap();
    let error = build(stripe().keys(keys.clone())).err();
    says(error, kind, "another scheme");
    let second = standard().keys(keys.clone()).without_deduplication();
    assert!(second.build().is_ok());
    assert!(receiver.keys().replace(text).is_err());
    let successor = Secret::new(OTHER_BYTES).unwrap();
    receiver.keys().replace(successor.clone()).unwrap();
    let verifier = Verifier::new(keys);
    let by = |secret: &Secret| signed(Scheme::STANDARD_WEBHOOKS, secret, "msg_1", EVENT);
    assert!(verdict(&verifier, &by(&successor), EVENT).is_ok());
    let old = by(&secret_of(Scheme::STANDARD_WEBHOOKS));
    let mismatch = Err(Kind::SignatureMismatch);
    assert_eq!(verdict(&verifier, &old, EVENT), mismatch);
}

#[test]
fn a_subscription_of_another_scheme_selects_its_ring() {
    let [one, two] = ["1", "2"].map(|tail| Secret::new(&format!("{TEXT}_{tail}")).unwrap());
    let keys = Keys::by_subscription([("1", one.clone()), ("2", two.clone())]).unwrap();
    let verifier = verifier(Scheme::GITHUB, keys);
    let by = |secret: &Secret, id: Option<&str>| {
        let mut headers = signed(Scheme::GITHUB, secret, "", EVENT);
        headers.extend(id.map(|id| ("x-github-hook-id".to_owned(), id.to_owned())));
        verdict(&verifier, &headers, EVENT).map(drop)
    };
    assert_eq!(by(&one, Some("1")), Ok(()));
    assert_eq!(by(&two, Some("2")), Ok(()));
    assert_eq!(by(&two, Some("1")), Err(Kind::SignatureMismatch));
    assert_eq!(by(&two, Some("3")), Err(Kind::UnknownSubscription));
}

#[test]
fn headers_that_were_read_by_another_scheme_are_refused_and_the_reason_says_so() {
    let default = Verifier::new(secret_of(Scheme::WORKSPACE));
    let headers = good(Scheme::WORKSPACE, "", EVENT);
    let head = default.headers(pairs(&headers)).unwrap();
    let refused = own(Scheme::STRIPE).verify(&head, EVENT, UnixSeconds::new(NOW));
    assert_eq!(refused.unwrap_err().kind(), Kind::SchemeMismatch);

    let receiver = builder(Scheme::STRIPE).build().unwrap();
    let headers = good(Scheme::STRIPE, "", EVENT);
    let head = RequestHead::new("POST", pairs(&headers));
    let refusal = receiver.check_head(&head).unwrap_err();
    assert_eq!(refusal.kind(), RefusalKind::NotAuthentic);
    assert_eq!(refusal.verify_error().unwrap().kind(), Kind::SchemeMismatch);
}

#[derive(serde::Deserialize)]
struct Invoice {
    data: Data,
}

#[derive(serde::Deserialize)]
struct Data {
    total: u32,
}

async fn on_invoice(Signed { id, kind, body, .. }: Signed<Invoice>) -> StatusCode {
    let is_known = id == "evt_1" || id == "msg_1" || id.as_str().starts_with("sha256:");
    assert!(is_known, "{id}");
    assert!(kind == "invoice.paid" || kind == "untyped", "{kind}");
    assert_eq!(body.data.total, 7);
    StatusCode::CREATED
}

async fn answer(app: Router, headers: &Pairs, body: &str) -> (u16, String, Option<Answer>) {
    let response = app
        .oneshot(request(headers, body).map(Body::new))
        .await
        .unwrap();
    let (status, told) = (
        response.status().as_u16(),
        response.extensions().get().cloned(),
    );
    let text = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(text.to_vec()).unwrap(), told)
}

#[tokio::test]
async fn signed_is_the_argument_for_every_scheme_once_typed_with_422_and_500() {
    for scheme in ROWS {
        let receiver = builder(scheme).build().unwrap();
        let route = post(on_invoice).layer(receiver.layer());
        let app: Router = Router::new().route("/hooks", route);
        let headers = good(scheme, "msg_1", EVENT);
        for status in [201, 200] {
            let (got, ..) = answer(app.clone(), &headers, EVENT).await;
            assert_eq!(got, status, "{}", scheme.name());
        }

        let misfit = EVENT.replace("7", "\"a secret\"").replace("evt_1", "evt_2");
        let headers = good(scheme, "msg_2", &misfit);
        for _ in 0..2 {
            // Released, so that a mended deployment takes the retry.
            let (status, text, told) = answer(app.clone(), &headers, &misfit).await;
            assert_eq!(status, 422);
            let reason = told.unwrap().reason.unwrap().to_string();
            assert!(reason.starts_with("data.total does not fit"), "{reason}");
            let leaks = reason.contains("a secret") || text.contains("total");
            assert!(!leaks, "{reason} {text}");
        }
    }
    let unguarded: Router = Router::new().route("/hooks", post(on_invoice));
    let (status, text, _) = answer(unguarded, &good(Scheme::STRIPE, "", EVENT), EVENT).await;
    assert_eq!(status, 500);
    assert!(text.contains(".layer(receiver.layer())"), "{text}");
}

#[tokio::test]
async fn an_event_of_the_workspace_or_its_router_with_another_scheme_says_so() {
    let on_event = async |_: Event| StatusCode::NO_CONTENT;
    let on_any = async |_: Delivery| StatusCode::NO_CONTENT;
    let router = || {
        EventRouter::new()
            .on("invoice.paid", on_any)
            .build()
            .unwrap()
    };
    for scheme in &ROWS[1..] {
        let receiver = || builder(*scheme).build().unwrap().layer();
        let typed: Router = Router::new().route("/hooks", post(on_event).layer(receiver()));
        let routed: Router = Router::new().route("/hooks", post(router()).layer(receiver()));
        for app in [typed, routed] {
            let (status, text, told) = answer(app, &good(*scheme, "msg_1", EVENT), EVENT).await;
            assert_eq!(status, 500);
            let advice = "take `Signed<T>` in place of `Event<R>`";
            assert!(text.contains(advice), "{text}");
            let reason = told.unwrap().reason.unwrap().to_string();
            assert!(reason.contains("Signed<T>"), "{reason}");
        }
        let plain = builder(*scheme).build().unwrap();
        let request = request(&good(*scheme, "msg_1", EVENT), EVENT);
        let answer = plain.handle(request, on_event).await;
        let reason = answer.extensions().get::<Answer>().unwrap().reason.clone();
        assert_eq!(answer.status(), 500);
        assert!(reason.unwrap().to_string().contains("Signed<T>"));
    }
}

#[tokio::test]
async fn one_identical_401_answers_every_delivery_that_is_not_authentic() {
    let mut seen = Vec::new();
    for scheme in ROWS {
        let receiver = builder(scheme).build().unwrap();
        let headers = good(scheme, "msg_1", EVENT);
        let forger = Secret::new(OTHER_BYTES).unwrap();
        let mut cases = vec![Vec::new(), signed(scheme, &forger, "a", EVENT)];
        for at in 0..headers.len() {
            let mut edited = headers.clone();
            edited[at].1.push('x');
            cases.push(edited);
            let mut doubled = headers.clone();
            doubled.push(headers[at].clone());
            cases.push(doubled);
        }
        if scheme.has_timestamp() {
            let old = Timestamp::at(UnixSeconds::new(NOW - 301)).unwrap();
            let stale = sign(&scheme, &secret_of(scheme), &old, "msg_1", EVENT.as_bytes()).unwrap();
            let owned = |(name, value): (&str, String)| (name.to_owned(), value);
            cases.push(stale.into_iter().map(owned).collect());
        }
        for headers in cases {
            let answer = handled(&receiver, &headers, EVENT).await;
            assert_eq!(answer.status(), 401, "{headers:?}");
            seen.push((answer.headers().clone(), answer.into_body()));
        }
    }
    assert!(seen.iter().all(|answer| *answer == seen[0]) && seen.len() > 20);
}

/// The reason why the receiver refuses stored parts that were changed so.
fn refused(
    receiver: &Receiver,
    stored: &StoredDelivery,
    change: fn(&mut StoredDelivery),
) -> Option<Kind> {
    let mut stored = stored.clone();
    change(&mut stored);
    let refusal = block_on(receiver.verify_stored(&stored)).unwrap_err();
    refusal.verify_error().map(|error| error.kind())
}

#[test]
fn stored_parts_name_the_scheme_and_are_verified_by_it_again() {
    for scheme in ROWS {
        let receiver = builder(scheme).build().unwrap();
        let mut headers = good(scheme, "msg_1", EVENT);
        if scheme == Scheme::GITHUB {
            headers.push(("x-github-event".into(), "push".into()));
        }
        let first = delivery(&receiver, &headers, EVENT);
        let stored = first.to_stored();
        assert_eq!(stored.scheme, scheme.name());
        let attributes = stored.attributes();
        let attribute = |name: &str| {
            let found = attributes.iter().find(|(other, _)| *other == name);
            found.map(|(_, value)| value.clone())
        };
        let is_named = attribute("hookgate-scheme").is_some();
        assert_eq!(is_named, scheme != Scheme::WORKSPACE);
        let message = StoredDelivery::from_attributes(stored.body.clone(), attribute);
        for stored in [&stored, &message] {
            let again = block_on(receiver.verify_stored(stored)).unwrap();
            assert_eq!((again.key(), again.head()), (first.key(), first.head()));
            assert_eq!(again.verified().timestamp(), first.verified().timestamp());
            let restored = dangerous::restore(stored).unwrap();
            assert_eq!(restored.key(), first.key());
            assert_eq!(restored.head(), first.head());
            assert_eq!(restored.verified().scheme_name(), scheme.name());
            assert_eq!(restored.to_stored().scheme, scheme.name());
        }
        let kind = |change: fn(&mut StoredDelivery)| refused(&receiver, &stored, change);
        let scheme_mismatch = kind(|stored| stored.scheme = "acme".into());
        assert_eq!(scheme_mismatch, Some(Kind::SchemeMismatch));
        let mismatch = Some(Kind::SignatureMismatch);
        assert_eq!(kind(|stored| stored.body = "{}".into()), mismatch);
        if scheme == Scheme::STANDARD_WEBHOOKS {
            assert_eq!(kind(|stored| stored.event_id = "msg_2".into()), mismatch);
        }
    }
    // Bytes of a body can't move into a longer stored id, under the same signature: live, that id
    // has no usable form either.
    let scheme = Scheme::STANDARD_WEBHOOKS;
    let receiver = builder(scheme).build().unwrap();
    let body = "10.1763690000.{}";
    let mut stored = delivery(&receiver, &good(scheme, "msg_1", body), body).to_stored();
    stored.event_id = format!("msg_1.{NOW}.10");
    stored.body = Bytes::from_static(b"{}");
    let kind = refused(&receiver, &stored, |_| ());
    assert_eq!(kind, Some(Kind::HeaderMalformed("webhook-id")));
    assert!(dangerous::restore(&stored).is_err());

    // The name of a row of your own comes back too.
    let acme = Scheme::new("acme").signature("x-signature", Form::One(""), Encoding::Hex);
    let receiver = builder(acme).build().unwrap();
    let stored = delivery(&receiver, &good(acme, "", EVENT), EVENT).to_stored();
    let restored = dangerous::restore(&stored).unwrap();
    assert_eq!(restored.to_stored().scheme, "acme");
    // Other times of the sender are the same scheme.
    let slower = Scheme::WORKSPACE.attempt_timeout(Duration::from_secs(9));
    let receiver = builder(slower).build().unwrap();
    let event = delivery(&receiver, &good(slower, "", EVENT), EVENT);
    let kind = event
        .event::<hookgate::Properties>()
        .map_err(|error| error.kind());
    assert_ne!(
        kind.err(),
        Some(hookgate::event::EventErrorKind::OtherScheme)
    );
    assert!(restored.event::<hookgate::Properties>().is_err());
    assert_eq!(restored.signed::<Invoice>().unwrap().body.data.total, 7);
}

#[test]
fn a_secret_of_bytes_is_taken_with_and_without_its_prefix() {
    let acme = Scheme::STANDARD_WEBHOOKS;
    let bare = Secret::unprefixed(&BYTES["whsec_".len()..]).unwrap();
    let expected = good(acme, "msg_1", EVENT);
    assert_eq!(signed(acme, &bare, "msg_1", EVENT), expected);
    let text = acme.with_name("acme").key(Key::Text);
    assert_ne!(signed(text, &secret_of(acme), "msg_1", EVENT), expected);
}

#[tokio::test]
async fn copies_of_one_event_at_once_run_once_in_each_scheme() {
    for scheme in ROWS {
        let receiver = builder(scheme).build().unwrap();
        let runs = Arc::new(AtomicUsize::new(0));
        let copies = (0..8).map(|_| {
            let (receiver, runs) = (receiver.clone(), Arc::clone(&runs));
            let request = request(&good(scheme, "msg_1", EVENT), EVENT);
            tokio::spawn(async move {
                let handler = async move |_: Signed<Invoice>| {
                    runs.fetch_add(1, Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    StatusCode::OK
                };
                receiver.handle(request, handler).await.status()
            })
        });
        let copies: Vec<_> = copies.collect();
        let mut statuses = Vec::new();
        for copy in copies {
            statuses.push(copy.await.unwrap().as_u16());
        }
        assert_eq!(runs.load(Ordering::SeqCst), 1);
        // At most four wait for one event; the others come again.
        let answered = statuses.iter().all(|status| [200, 503].contains(status));
        assert!(answered, "{statuses:?}");
    }
}

#[test]
fn a_second_id_or_type_behind_the_first_one_fits_no_type() {
    let [stripe, standard, github] = [Scheme::STRIPE, Scheme::STANDARD_WEBHOOKS, Scheme::GITHUB];
    #[rustfmt::skip] // a row a case
    let cases = [
        (stripe, r#"{"id":"evt_1","type":"a","id":"evt_2"}"#, Some("id")),
        (stripe, r#"{"id":"evt_1","type":"a","type":"b"}"#, Some("type")),
        (standard, r#"{"type":"a","\u0074ype":"b"}"#, Some("type")),
        // They say nothing about this event.
        (standard, r#"{"id":"a","id":"b"}"#, None),
        (github, r#"{"id":"a","id":"b"}"#, None),
    ];
    for (scheme, body, path) in cases {
        let receiver = builder(scheme).build().unwrap();
        let delivery = delivery(&receiver, &good(scheme, "msg_1", body), body);
        let signed = delivery.signed::<serde_json::Value>();
        let found = signed.as_ref().err().and_then(|error| error.path());
        assert_eq!(found, path, "{body}");
        assert_eq!(signed.is_ok(), path.is_none(), "{body}");
    }
}
