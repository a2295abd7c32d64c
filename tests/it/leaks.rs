//! No secret, MAC or body in anything that can be formatted (promise 7). A new public type belongs
//! in `shown`.

use std::error::Error;
use std::fmt::{Debug, Display};
use std::time::Duration;

use bytes::Bytes;
use hookgate::{
    ConfigErrorKind, KeyRing, Secret, Verifier,
    clock::{Clock, ManualClock, SystemClock, UnixSeconds},
    dedupe::{ClaimToken, Claimed, EventKey, Ownership, StoreError, StoreErrorKind, StoreFuture},
    verify::{DeliveryHeaders, Signature, Timestamp, Window},
};

const SECRET: &str = "whsec_made_up_LEAKED_SECRET_text";
const OLD_SECRET: &str = "whsec_made_up_LEAKED_OLD_SECRET_";
const BODY: &str = r#"{"id":"evt_LEAKED_BODY","email":"LEAKED@example.org"}"#;
const NOW: UnixSeconds = UnixSeconds::new(1_763_690_000);

#[test]
fn nothing_that_can_be_formatted_shows_a_secret_a_mac_or_a_body() {
    let needles = needles();
    let shown = shown();
    let texts = shown.len();
    assert!(texts > 60, "only {texts} texts were looked at");
    none_shows(&needles, shown);
}

/// An explainer knows the secret and computes right signatures.
#[cfg(feature = "testing")]
#[test]
fn an_explanation_shows_none_of_it_either() {
    use hookgate_record::LoggedDelivery;
    use hookgate_testing::explain::Explainer;

    let needles = needles();
    let mut shown = Shown(Vec::new());
    let timestamp = Timestamp::at(NOW).unwrap();
    let signature = Signature::sign(&Secret::new(SECRET).unwrap(), &timestamp, BODY.as_bytes());
    let headers = [
        ("x-service-timestamp", timestamp.to_string()),
        ("x-service-signature", signature.to_header_value()),
    ];
    for (secret, body) in [
        (SECRET.to_owned(), BODY.to_owned()),
        (format!("'{SECRET}'"), BODY.replace(':', ": ")),
        (OLD_SECRET.to_owned(), BODY.to_owned()),
    ] {
        let explainer = Explainer::new().secret("a", &secret).limit_bytes(1 << 20);
        shown.debug(&explainer);
        let explanation = explainer.explain(&LoggedDelivery::new(NOW, headers.clone(), body));
        shown.debug(&explanation);
        shown.debug(&format!("{explanation} {}", explanation.conclusion()));
    }
    let read = hookgate_testing::read::http(format!("X-A: 1\n{BODY}"), NOW);
    shown.error(&read.unwrap_err());
    none_shows(&needles, shown.0);
}

/// A body in which every value but ids and type is a needle: ids and type are shown to the operator
/// on purpose, the rest is not.
const TYPED: &str = r#"{"id":"evt_1","type":"row.created","createdAt":"LEAKED-created","workspaceId":"ws_1","data":{"datamodelId":"dm_1","datamodelName":"LEAKED-model","rowId":"row_1","properties":{"Name":"LEAKED-name"},"createdBy":{"id":"usr_1","name":"LEAKED-actor","email":"LEAKED@example.org"},"x":"LEAKED-extra"}}"#;

#[test]
fn receivers_deliveries_events_and_refusals_show_none_of_it_either() {
    use hookgate::{
        MemoryStore, Receiver, block_on,
        receiver::{Admission, RequestHead},
    };

    let secret = || Secret::new(SECRET).unwrap();
    let timestamp = Timestamp::at(NOW).unwrap();
    let receiver = Receiver::builder()
        .secret(secret())
        .clock(ManualClock::at(NOW))
        .store(MemoryStore::default());
    let mut shown = Shown(Vec::new());
    shown.debug(&receiver);
    shown.error(&Receiver::builder().build().unwrap_err());
    let receiver = receiver.build().unwrap();
    shown.debug(&receiver);

    let recognised = |shown: &mut Shown, body: &'static str, id: Option<&str>| {
        let signature = Signature::sign(&secret(), &timestamp, body.as_bytes()).to_header_value();
        let mut headers = vec![
            ("x-service-signature", signature.as_str()),
            ("x-service-timestamp", timestamp.as_str()),
        ];
        headers.extend(id.map(|id| ("x-service-event-id", id)));
        let head = RequestHead::new("POST", headers.iter().copied());
        shown.debug(&head.clone().announcing(9));
        let mut received = receiver.check_head(&head).unwrap();
        received.push(Bytes::from_static(body.as_bytes())).unwrap();
        receiver.verify(received, &head)
    };
    let delivery = recognised(&mut shown, TYPED, None).unwrap();
    shown.debug(&delivery);
    shown.debug(delivery.verified());
    shown.debug(&delivery.event::<hookgate::Properties>().unwrap().data);
    shown.error(&delivery.event::<Vec<u8>>().map(|_| ()).unwrap_err());
    #[cfg(feature = "tower")]
    shown.error(&hookgate::layer::Unhandled::new(&delivery));
    let admission = block_on(receiver.admit(&delivery)).unwrap();
    shown.debug(&admission);
    let Admission::Fresh(claim) = admission else {
        panic!("not fresh")
    };
    shown.debug(&claim);
    shown.debug(&block_on(claim.commit()).unwrap());
    shown.debug(&block_on(receiver.admit(&delivery)).unwrap());
    for refusal in [
        recognised(&mut shown, TYPED, Some("evt_LEAKED")).unwrap_err(),
        recognised(&mut shown, r#"{"id":"LEAKED","id":7}"#, None).unwrap_err(),
        recognised(&mut shown, r#"["LEAKED"]"#, None).unwrap_err(),
        receiver
            .check_head(&RequestHead::new("GET", [("x-service-signature", SECRET)]))
            .unwrap_err(),
        receiver
            .check_head(&RequestHead::new("POST", [("x-service-signature", SECRET)]))
            .unwrap_err(),
    ] {
        shown.debug(&refusal.kind());
        shown.error(&refusal);
        shown.0.push(format!("{refusal:#}"));
    }
    let mut needles = needles();
    needles.push("LEAKED".into());
    none_shows(&needles, shown.0);
}

#[cfg(feature = "lookup")]
#[test]
fn what_is_looked_up_shows_none_of_it_either() {
    use hookgate::{
        MemoryStore, Receiver, block_on,
        dedupe::StoreFuture,
        lookup::{SecretProvider, SubscriptionId},
        receiver::RequestHead,
    };

    let timestamp = Timestamp::at(NOW).unwrap();
    let signature = Signature::sign(&Secret::new(SECRET).unwrap(), &timestamp, BODY.as_bytes());
    let header = signature.to_header_value();
    let head = |id: &'static str| {
        let headers = [
            ("x-service-signature", header.as_str()),
            ("x-service-timestamp", timestamp.as_str()),
            ("x-service-webhook-id", id),
        ];
        RequestHead::new("POST", headers)
    };
    let mut shown = Shown(Vec::new());
    // A ring, a secret that is refused, an error of the provider's own, a panic.
    let provider = async |id: SubscriptionId| match id.as_str() {
        "wh_1" => Secret::new(SECRET).map(Some).map_err(Box::from),
        "wh_2" => Secret::new(&SECRET.replace("whsec_", "tk_live_"))
            .map(Some)
            .map_err(Box::from),
        "wh_3" => Err(Box::<dyn Error + Send + Sync>::from("made up: no route")),
        _ => panic!("made up: the provider breaks"),
    };
    let id = SubscriptionId::parse("wh_1").unwrap();
    shown.both(&id);
    shown.debug(&provider.look_up(&id));
    shown.debug(&StoreFuture::<_, String>::ready(Ok(Some(KeyRing::new(
        Secret::new(SECRET).unwrap(),
    )))));
    let builder = Receiver::builder()
        .provider(provider)
        .clock(ManualClock::at(NOW))
        .store(MemoryStore::default());
    shown.debug(&builder);
    let receiver = builder.build().unwrap();
    let mut opening = Box::pin(async { receiver.check_head_async(&head("wh_1")).await });
    shown.debug(&block_on(opening.as_mut()).unwrap());
    for id in ["wh_2", "wh_3", "wh_4"] {
        let refusal = block_on(receiver.check_head_async(&head(id))).unwrap_err();
        shown.error(&refusal);
        shown.debug(&refusal.kind());
    }
    shown.error(&receiver.check_head(&head("wh_5")).unwrap_err());
    shown.debug(&receiver);
    shown.debug(receiver.keys());
    shown.debug(&receiver.keys().lookup_stats());
    assert!(shown.0.len() > 40, "{}", shown.0.len());
    let needles = needles();
    none_shows(&needles, shown.0);
}

fn none_shows(needles: &[String], shown: Vec<String>) {
    for text in shown {
        for needle in needles {
            let leaks = text.to_lowercase().contains(&needle.to_lowercase());
            assert!(!leaks, "{needle:?} shows in {text:?}");
        }
    }
}

#[test]
fn the_search_finds_what_leaks() {
    let needles = needles();
    let found = |text: String| needles.iter().any(|needle| text.contains(needle.as_str()));
    let (raw, header) = mac();
    assert!(found(format!("{SECRET:?}")) && found(format!("{BODY:?}")));
    assert!(found(header) && found(format!("{raw:?}")) && found(format!("{raw:#?}")));
}

/// Every public type, as each of its formats shows it.
fn shown() -> Vec<String> {
    let mut shown = Shown(Vec::new());
    let timestamp = Timestamp::at(NOW).unwrap();
    let secret = || Secret::new(SECRET).unwrap();
    let signature = Signature::sign(&secret(), &timestamp, BODY.as_bytes());
    let (timestamp_text, header) = (timestamp.to_string(), signature.to_header_value());
    let pairs = [
        ("x-service-signature", header.as_str()),
        ("x-service-timestamp", &timestamp_text),
    ];
    let ring = || {
        let ring = KeyRing::named("new", Secret::new(OLD_SECRET).unwrap()).unwrap();
        ring.with_key("old", secret()).unwrap()
    };
    let verifier = Verifier::new(ring());
    let head = DeliveryHeaders::from_pairs(pairs).unwrap();

    // Keys.
    shown.debug(&secret());
    shown.debug(&ring());
    shown.debug(verifier.keys());
    let by_subscription = hookgate::lookup::Keys::by_subscription([("wh_1", ring())]).unwrap();
    shown.debug(&by_subscription);
    shown.debug(&verifier);

    // A delivery on its way.
    shown.debug(&signature);
    shown.both(&timestamp);
    shown.debug(&head);
    shown.debug(&Window::default());
    let mut received = verifier.begin(&head, NOW, 1 << 10).unwrap();
    for chunk in BODY.as_bytes().chunks(20) {
        received.push(Bytes::copy_from_slice(chunk)).unwrap();
        shown.debug(&received);
    }
    shown.debug(&received.finish().unwrap());
    shown.debug(&verifier.verify(&head, BODY, NOW).unwrap());
    shown.debug(&verifier.verify(&head, BODY, NOW).unwrap());

    // Refusals of a delivery.
    let refusal = |now: i64, body: &str| {
        verifier
            .verify(&head, body, UnixSeconds::new(now))
            .unwrap_err()
    };
    for error in [
        refusal(NOW.as_i64() + 301, BODY),
        refusal(NOW.as_i64() - 301, BODY),
        refusal(NOW.as_i64(), &BODY.replace("evt", "EVT")),
    ] {
        shown.error(&error);
        shown.debug(&error.kind());
    }
    let unknown =
        DeliveryHeaders::from_pairs([pairs[0], pairs[1], ("x-service-webhook-id", "wh_2")]);
    let unknown = Verifier::new(by_subscription).verify(&unknown.unwrap(), BODY, NOW);
    shown.error(&unknown.unwrap_err());
    let doubled = DeliveryHeaders::from_pairs([pairs[0], pairs[0], pairs[1]]).unwrap_err();
    shown.error(&doubled);
    let malformed = DeliveryHeaders::from_pairs([("x-service-signature", SECRET), pairs[1]]);
    shown.error(&malformed.unwrap_err());
    shown.error(&Signature::parse(SECRET.as_bytes()).unwrap_err());
    let mut full = verifier.begin(&head, NOW, 8).unwrap();
    shown.error(&full.push(Bytes::from_static(BODY.as_bytes())).unwrap_err());
    shown.debug(&full);

    // Refusals of secrets and rings.
    for text in [
        format!("{SECRET}\n"),
        format!("'{SECRET}'"),
        SECRET.replace("whsec_", "tk_live_"),
        SECRET.replace("whsec_", ""),
        format!("{SECRET}\n{OLD_SECRET}"),
        format!("whsec_{SECRET}"),
    ] {
        let error = Secret::new(&text).unwrap_err();
        shown.error(&error);
        shown.debug(&error.kind());
    }
    shown.debug(&ConfigErrorKind::SecretUnset);
    let path = std::env::temp_dir().join(format!("hookgate-leaks-{}", std::process::id()));
    std::fs::write(&path, format!("{SECRET}\n\n")).unwrap();
    shown.error(&Secret::from_file(&path).unwrap_err());
    std::fs::remove_file(&path).unwrap();
    shown.error(&Secret::from_file(&path).unwrap_err());
    shown.error(&ring().with_key("third", secret()).unwrap_err());
    let twice = hookgate::lookup::Keys::by_subscription([("wh_1", secret()), ("wh_2", secret())]);
    shown.error(&twice.unwrap_err());
    shown.debug(&ConfigErrorKind::NoStore);

    // Clocks and the store's contract.
    let clock = ManualClock::at(NOW);
    shown.debug(&SystemClock);
    shown.debug(&clock);
    shown.both(&clock.now());
    shown.debug(&clock.monotonic());
    let token = ClaimToken::new(BODY.as_bytes());
    shown.debug(&token);
    shown.debug(&EventKey::new("default", "evt_LEAKED_BODY"));
    shown.debug(&Claimed::Done {
        body_mark: token.body_mark(),
    });
    shown.debug(&Claimed::Running {
        retry_after: Duration::ZERO,
    });
    shown.debug(&Ownership::Held);
    shown.debug(&StoreFuture::<_>::ready(Ok(Claimed::Done {
        body_mark: token.body_mark(),
    })));
    shown.error(&StoreError::new(StoreErrorKind::Full));
    shown.0
}

struct Shown(Vec<String>);

impl Shown {
    fn debug(&mut self, value: &dyn Debug) {
        self.0.extend([format!("{value:?}"), format!("{value:#?}")]);
    }

    fn both<T: Debug + Display>(&mut self, value: &T) {
        self.debug(value);
        self.0.extend([format!("{value}"), format!("{value:#}")]);
    }

    /// An error with all that lies below it.
    fn error<T: Error>(&mut self, error: &T) {
        self.both(error);
        let mut source = error.source();
        while let Some(below) = source {
            self.both(&below);
            source = below.source();
        }
    }
}

/// The values that must not show, in every spelling that a careless format would give them.
fn needles() -> Vec<String> {
    let mut needles = vec!["LEAKED".to_owned(), SECRET.to_owned(), BODY.to_owned()];
    let (mac, _) = mac();
    for bytes in [
        &mac[..],
        SECRET.as_bytes(),
        OLD_SECRET.as_bytes(),
        BODY.as_bytes(),
    ] {
        // The first half is enough to be recognised, and shows a shortened text as well.
        let part = &bytes[..12];
        needles.push(hex::encode(part));
        needles.push(base64(part));
        let list = |between: &str| {
            let numbers: Vec<_> = part.iter().map(u8::to_string).collect();
            numbers.join(between)
        };
        needles.extend([list(", "), list(",\n    "), list(",\n        ")]);
        needles.push(part.escape_ascii().to_string());
    }
    needles
}

fn mac() -> ([u8; 32], String) {
    let timestamp = Timestamp::at(NOW).unwrap();
    let signature = Signature::sign(&Secret::new(SECRET).unwrap(), &timestamp, BODY.as_bytes());
    let header = signature.to_header_value();
    let mut raw = [0; 32];
    hex::decode_to_slice(&header["sha256=".len()..], &mut raw).unwrap();
    (raw, header)
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}
