//! Verification against the lower limit and against peers, in one interleaved run:
//! `cargo bench -p hookgate-benches --bench verify`, and with `--profile bench-cgu4` as four
//! codegen units compile it.
//!
//! The lower limit, LIMIT, is the work that every HMAC-SHA256 needs: `sha2`'s compression of the
//! same blocks, padded and keyed beforehand, and a comparison of 32 bytes. All figures are ratios
//! to it, medians over rounds in which every contestant runs in turn, so that a noisy machine slows
//! all of them alike. With `-- --check`, a missed goal fails the run where the CPU has SHA
//! extensions.
//!
//! The goals apply to *one live key*: the service's five `X-Service-` headers as pairs, already
//! taken out of the server's map, are made into `DeliveryHeaders` (names compared, signature and
//! timestamp parsed strictly), the window is checked, the key ring is looked up, the body is
//! verified, and the states are wiped. The rows below it show the difference with all eleven
//! headers of a request behind a proxy, and with `DeliveryHeaders` made beforehand.
//!
//! One peer is built only on request, since it brings some fifty packages with it:
//! `RUSTFLAGS="--cfg slack_peer" cargo bench -p hookgate-benches --bench verify`.

#![allow(clippy::print_stdout, clippy::unwrap_used)] // A bench prints, and panics on an unexpected result.

use std::hint::black_box;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac, block_api::HmacCore};
use hookgate::{
    KeyRing, Secret, Verifier,
    clock::UnixSeconds,
    verify::{DeliveryHeaders, Signature, Timestamp},
};
use sha2::{Sha256, block_api::compress256};
use subtle::ConstantTimeEq;

mod support;

use support::{Arguments, Case, Contestant, cpu, sha_extensions};

const SIZES: [(usize, &str); 4] = [
    (300, "300 B"),
    (1 << 10, "1 KiB"),
    (4 << 10, "4 KiB"),
    (64 << 10, "64 KiB"),
];
/// The greatest cost of one live key, as a multiple of LIMIT, by size: required with one codegen
/// unit and with four, and aimed at.
const REQUIRED: [f64; 4] = [1.50, 1.18, 1.05, 1.00];
const REQUIRED_CGU4: [f64; 4] = [1.55, 1.20, 1.07, 1.01];
const AIM: [f64; 4] = [1.40, 1.13, 1.04, 1.00];
/// The required speed, as a multiple of that of `standardwebhooks`, at the smallest size.
const REQUIRED_LEAD: f64 = 6.0;
const ROUNDS: usize = 201;
/// How long a contestant runs in a round, as far as its speed allows.
const TURN: Duration = Duration::from_micros(150);

const LIMIT: &str = "LIMIT: bare compression";
const OURS: &str = "hookgate, one live key";
const OURS_REQUEST: &str = "  all 11 headers of a request";
const OURS_PARSED: &str = "  headers parsed beforehand";
const OURS_STREAMED: &str = "  body in pieces (begin, push, finish), kept";
const OURS_REFUSED: &str = "  a wrong signature, refused";
/// What a key's states cost beside the hashing.
const STATES: &str = "  its states, copied and wiped alone";
const OURS_TWO: &str = "hookgate, two live keys, old one signed";
#[cfg(slack_peer)]
const SLACK: &str = "slack-morphism 2";
const STANDARD_WEBHOOKS: &str = "standardwebhooks 1.0";
const RING: &str = "ring, keyed once";
const NAIVE: &str = "hmac, naive: key, concat, hex text";

const SECRET: &str = "whsec_made_up_for_the_benches_only";
const NEW_SECRET: &str = "whsec_made_up_as_its_successor__";

fn main() {
    let arguments = Arguments::read();
    let check = arguments.has("--check");
    println!("CPU: {}, SHA extensions: {}", cpu(), sha_extensions());

    let cases = SIZES.map(|(size, label)| {
        let body = body(size);
        let delivery = Delivery::new(&body);
        support::interleaved(label, contestants(&delivery), ROUNDS, TURN)
    });
    print_table(&cases);
    arguments.record("verify", "ns", &cases);

    // In hundredths, as they are printed.
    let of = |size: usize, name: &str| (cases[size].ratio(name, LIMIT) * 100.0).round() / 100.0;
    let mut missed = 0;
    // Cargo names the folder of a program after its profile.
    let is_cgu4 = std::env::current_exe()
        .is_ok_and(|program| program.iter().any(|folder| folder == "bench-cgu4"));
    let required = if is_cgu4 { REQUIRED_CGU4 } else { REQUIRED };
    println!("codegen units: {}", if is_cgu4 { 4 } else { 1 });
    println!("\nGoals for one live key (× LIMIT)");
    for (index, (_, label)) in SIZES.iter().enumerate() {
        let (ratio, required) = (of(index, OURS), required[index]);
        let verdict = if ratio > required {
            missed += 1;
            "MISSED"
        } else if ratio <= AIM[index] {
            "met, aim reached"
        } else {
            "met"
        };
        println!(
            "  {label:>6}: {ratio:.2}, required {required:.2}, aim {:.2}: {verdict}",
            AIM[index]
        );
    }
    let lead = of(0, STANDARD_WEBHOOKS) / of(0, OURS);
    if lead < REQUIRED_LEAD {
        missed += 1;
    }
    println!(
        "  {lead:.1} times faster than standardwebhooks at 300 B, required {REQUIRED_LEAD:.1}"
    );
    for (index, (_, label)) in SIZES.iter().enumerate() {
        let cost = of(index, OURS_TWO) / of(index, OURS);
        println!("  a second live key at {label}: {cost:.2} times one key");
    }
    if check && missed > 0 && sha_extensions() {
        println!("{missed} required goals missed");
        std::process::exit(1);
    }
}

/// One delivery, in the forms that the contestants take.
struct Delivery<'b> {
    body: &'b [u8],
    now: UnixSeconds,
    timestamp: String,
    signature: String,
    refused: String,
    digest: [u8; 32],
}

impl<'b> Delivery<'b> {
    fn new(body: &'b [u8]) -> Self {
        // One peer reads the clock itself, so it needs a timestamp of today.
        let today = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_secs();
        let now = UnixSeconds::new(i64::try_from(today).unwrap());
        let timestamp = Timestamp::at(now).unwrap();
        let signature = Signature::sign(&secret(), &timestamp, body).to_header_value();
        let mut digest = [0; 32];
        hex::decode_to_slice(&signature["sha256=".len()..], &mut digest).unwrap();
        Self {
            body,
            now,
            timestamp: timestamp.to_string(),
            signature,
            refused: format!("sha256={}", "0".repeat(64)),
            digest,
        }
    }

    /// Returns the service's own headers.
    fn headers<'a>(&'a self, signature: &'a str) -> [(&'static str, &'a str); 5] {
        [
            ("x-service-webhook-id", "wh_0123456789abcdef"),
            ("x-service-event-id", "evt_0123456789abcdef"),
            ("x-service-event-type", "row.created"),
            ("x-service-signature", signature),
            ("x-service-timestamp", &self.timestamp),
        ]
    }

    /// Returns the same headers among the others of a request behind a proxy.
    fn request_headers(&self) -> [(&'static str, &str); 11] {
        let [webhook_id, event_id, event_type, signature, timestamp] =
            self.headers(&self.signature);
        [
            ("host", "receiver.example.org"),
            ("user-agent", "Service-Webhook/1.0"),
            ("content-type", "application/json"),
            ("content-length", "300"),
            ("accept", "*/*"),
            ("x-forwarded-for", "192.0.2.1"),
            webhook_id,
            event_id,
            event_type,
            signature,
            timestamp,
        ]
    }
}

fn contestants<'a>(delivery: &'a Delivery<'a>) -> Vec<Contestant<'a>> {
    let one = Verifier::new(secret());
    let two = Verifier::new(
        KeyRing::named("new", Secret::new(NEW_SECRET).unwrap())
            .unwrap()
            .with_key("old", secret())
            .unwrap(),
    );
    let headers = delivery.headers(&delivery.signature);
    let refused = delivery.headers(&delivery.refused);
    let request = delivery.request_headers();
    let (whole, parsed, streamed, rejecting) = (one.clone(), one.clone(), one.clone(), one.clone());
    let head = DeliveryHeaders::from_pairs(headers).unwrap();
    vec![
        (LIMIT, limit(delivery)),
        (OURS, Box::new(move || accepts(&one, &headers, delivery))),
        (
            OURS_REQUEST,
            Box::new(move || accepts(&whole, &request, delivery)),
        ),
        (
            OURS_PARSED,
            Box::new(move || {
                let body = black_box(delivery.body);
                parsed.verify(black_box(&head), body, delivery.now).is_ok()
            }),
        ),
        (
            OURS_STREAMED,
            Box::new(move || {
                let pairs = black_box(&headers).iter().copied();
                let head = DeliveryHeaders::from_pairs(pairs).unwrap();
                let limit = delivery.body.len();
                let mut body = streamed.begin(&head, delivery.now, limit).unwrap();
                for chunk in delivery.body.chunks((limit / 2).min(16 << 10)) {
                    body.push(Bytes::copy_from_slice(black_box(chunk))).unwrap();
                }
                body.finish().is_ok()
            }),
        ),
        (
            OURS_REFUSED,
            Box::new(move || !accepts(&rejecting, &refused, delivery)),
        ),
        (STATES, states_alone()),
        (
            OURS_TWO,
            Box::new(move || accepts(&two, &headers, delivery)),
        ),
        (RING, ring_keyed(delivery)),
        (NAIVE, naive(delivery)),
        #[cfg(slack_peer)]
        (SLACK, slack(delivery)),
        (STANDARD_WEBHOOKS, standard_webhooks(delivery)),
    ]
}

/// Runs a whole verification, from pairs of headers to the proof.
fn accepts(verifier: &Verifier, headers: &[(&str, &str)], delivery: &Delivery<'_>) -> bool {
    let pairs = black_box(headers).iter().copied();
    let head = DeliveryHeaders::from_pairs(pairs).unwrap();
    verifier
        .verify(&head, black_box(delivery.body), delivery.now)
        .is_ok()
}

fn limit<'a>(delivery: &'a Delivery<'a>) -> Box<dyn FnMut() -> bool + 'a> {
    // FIPS 180-4 §5.3.3, and RFC 2104: each pad is one block, compressed beforehand.
    const INITIAL: [u32; 8] = [
        0x6a09_e667,
        0xbb67_ae85,
        0x3c6e_f372,
        0xa54f_f53a,
        0x510e_527f,
        0x9b05_688c,
        0x1f83_d9ab,
        0x5be0_cd19,
    ];
    let keyed = |pad: u8| {
        let mut block = [pad; 64];
        for (byte, key) in block.iter_mut().zip(SECRET.bytes()) {
            *byte ^= key;
        }
        let mut state = INITIAL;
        compress256(&mut state, &[block]);
        state
    };
    let padded = |parts: &[&[u8]]| -> Vec<[u8; 64]> {
        let mut bytes = parts.concat();
        let bits = (bytes.len() + 64) as u64 * 8;
        bytes.push(0x80);
        bytes.resize((bytes.len() + 8).next_multiple_of(64) - 8, 0);
        bytes.extend(bits.to_be_bytes());
        bytes.as_chunks().0.to_vec()
    };
    let (inner, outer) = (keyed(0x36), keyed(0x5c));
    let blocks = padded(&[delivery.timestamp.as_bytes(), b".", delivery.body]);
    let last = padded(&[&[0; 32]])[0];
    Box::new(move || {
        let (mut inner, mut outer, mut last) = (inner, outer, last);
        compress256(&mut inner, black_box(&blocks));
        for (bytes, word) in last.as_chunks_mut().0.iter_mut().zip(inner) {
            *bytes = word.to_be_bytes();
        }
        compress256(&mut outer, &[last]);
        let mut digest = [0; 32];
        for (bytes, word) in digest.as_chunks_mut().0.iter_mut().zip(outer) {
            *bytes = word.to_be_bytes();
        }
        digest == *black_box(&delivery.digest)
    })
}

/// Copies the states of a key and wipes them, as each verification does: `hmac` and `sha2` are
/// built with `zeroize` here too.
fn states_alone<'a>() -> Box<dyn FnMut() -> bool + 'a> {
    let keyed = HmacCore::<Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
    Box::new(move || {
        let mut copy = black_box(&keyed).clone();
        black_box(&mut copy);
        true
    })
}

fn ring_keyed<'a>(delivery: &'a Delivery<'a>) -> Box<dyn FnMut() -> bool + 'a> {
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, SECRET.as_bytes());
    Box::new(move || {
        let mut given = [0; 32];
        hex::decode_to_slice(
            &black_box(&delivery.signature)["sha256=".len()..],
            &mut given,
        )
        .unwrap();
        let mut mac = ring::hmac::Context::with_key(&key);
        mac.update(delivery.timestamp.as_bytes());
        mac.update(b".");
        mac.update(black_box(delivery.body));
        mac.sign().as_ref().ct_eq(&given).into()
    })
}

fn naive<'a>(delivery: &'a Delivery<'a>) -> Box<dyn FnMut() -> bool + 'a> {
    Box::new(move || {
        let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
        let signed = [
            delivery.timestamp.as_bytes(),
            b".",
            black_box(delivery.body),
        ]
        .concat();
        mac.update(&signed);
        let text = format!("sha256={}", hex::encode(mac.finalize().into_bytes()));
        text == *black_box(&delivery.signature)
    })
}

#[cfg(slack_peer)]
fn slack<'a>(delivery: &'a Delivery<'a>) -> Box<dyn FnMut() -> bool + 'a> {
    use slack_morphism::signature_verifier::SlackEventSignatureVerifier;
    let verifier = SlackEventSignatureVerifier::new(&SECRET.to_owned().into());
    let body = std::str::from_utf8(delivery.body).unwrap();
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
    mac.update(format!("v0:{}:{body}", delivery.timestamp).as_bytes());
    let signature = format!("v0={}", hex::encode(mac.finalize().into_bytes()));
    Box::new(move || {
        verifier
            .verify(&signature, black_box(body), &delivery.timestamp)
            .is_ok()
    })
}

fn standard_webhooks<'a>(delivery: &'a Delivery<'a>) -> Box<dyn FnMut() -> bool + 'a> {
    let webhook = standardwebhooks::Webhook::from_bytes(SECRET.into()).unwrap();
    let id = "evt_0123456789abcdef";
    let signature = webhook
        .sign(id, delivery.now.as_i64(), delivery.body)
        .unwrap();
    let mut headers = http::HeaderMap::new();
    headers.insert("webhook-id", id.parse().unwrap());
    headers.insert("webhook-timestamp", delivery.timestamp.parse().unwrap());
    headers.insert("webhook-signature", signature.parse().unwrap());
    Box::new(move || webhook.verify(black_box(delivery.body), &headers).is_ok())
}

fn print_table(cases: &[Case]) {
    print!("\n{:<42}", "time × LIMIT, median of rounds");
    for (_, label) in SIZES {
        print!("{label:>8}");
    }
    println!();
    for series in &cases[0].series {
        print!("{:<42}", series.name);
        for case in cases {
            print!("{:>8.2}", case.ratio(&series.name, LIMIT));
        }
        println!();
    }
}

fn secret() -> Secret {
    Secret::new(SECRET).unwrap()
}

/// Returns JSON-like text of this length.
fn body(size: usize) -> Vec<u8> {
    let row = br#"{"id":"evt_0123456789abcdef","type":"row.created","data":{"name":"Example","count":42}},"#;
    row.iter().copied().cycle().take(size).collect()
}
