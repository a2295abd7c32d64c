//! Does the time that a comparison of signatures takes say where they differ? Measured as dudect
//! does it (Reparaz, Balasch and Verbauwhede, 2017): two classes of inputs in random order, and
//! Welch's t of their times. Beyond |t| = 10 a difference is no accident; a comparison that stops
//! at the first difference is far beyond 100, which the same run shows.
//!
//! In release builds only:
//! `cargo test -p hookgate-release-tests --release --test constant_time -- --nocapture` prints the
//! figures. `HOOKGATE_TIMINGS` sets how many times each class is measured. One leak shows in no
//! timing: a `==` on 32 bytes that the compiler made into two wide steps. A test looks for it in
//! the source: `digests_are_compared_in_constant_time_only` in `tests/repository/`.

#![cfg(not(debug_assertions))]
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a failed expectation must stop the test, and this one prints figures
#![allow(clippy::cast_precision_loss)] // Nanoseconds and counts are far below 2^53.

use std::hint::black_box;
use std::time::Instant;

use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use hookgate::{
    KeyRing, Secret, Verifier, clock::UnixSeconds, lookup::Keys, verify::DeliveryHeaders,
};
use sha2::Sha256;

const SECRET: &str = "whsec_made_up_for_timing_only";
const NOW: i64 = 1_763_690_000;
const BODY: &[u8] = br#"{"id":"evt_1","type":"row.deleted"}"#;

/// The limits of |t|: our comparison must stay below the first, and the comparison with an early
/// exit must exceed the second.
const OURS_MAX: f64 = 10.0;
const CONTROL_AT_LEAST: f64 = 100.0;
/// A loaded machine has its moments. A leak shows at every attempt.
const ATTEMPTS: usize = 4;

// fault S2-29: timing tells how much of a signature was right, or which subscriptions exist
#[test]
fn the_time_of_a_comparison_does_not_say_where_signatures_differ() {
    let timings = std::env::var("HOOKGATE_TIMINGS");
    let timings = timings.map_or(200_000, |number| number.parse().unwrap());
    let control = welch(timings, early_exit());
    println!("control, early exit over 4 KiB: t = {control:.1}");
    assert!(
        control.abs() > CONTROL_AT_LEAST,
        "this machine could not see a leak: t = {control:.1}"
    );
    for (name, of_known) in [("a known subscription", true), ("an unknown one", false)] {
        let pairs = [
            (Place::First, Place::Last),
            (Place::First, Place::All),
            (Place::Last, Place::All),
        ];
        for (one, other) in pairs {
            let measured = (0..ATTEMPTS)
                .map(|_| welch(timings, comparison(of_known, one, other)))
                .inspect(|t| println!("{name}, {one:?} against {other:?}: t = {t:.1}"))
                .find(|t| t.abs() < OURS_MAX);
            assert!(
                measured.is_some(),
                "{name}: time tells {one:?} from {other:?}"
            );
        }
    }
    // Whether it matches at all may show: the answer says that. Where the answer is the same, since
    // the subscription is unknown, only a branch on the outcome could be measured.
    let outcome = welch(timings, comparison(false, Place::Nowhere, Place::Last));
    println!(
        "an unknown one, the right signature against a wrong one, for information: t = {outcome:.1}"
    );
}

/// A signature that is wrong at one place must be right everywhere else, or every comparison would
/// end at the first byte.
#[test]
fn the_signatures_that_are_compared_are_right_but_for_one_place() {
    let timestamp = NOW.to_string();
    let signature = header(SECRET.as_bytes(), &timestamp, Place::Nowhere);
    let pairs = [
        ("x-service-timestamp", &timestamp),
        ("x-service-signature", &signature),
    ];
    let head = DeliveryHeaders::from_pairs(pairs).unwrap();
    let verifier = Verifier::new(Secret::new(SECRET).unwrap());
    assert!(verifier.verify(&head, BODY, UnixSeconds::new(NOW)).is_ok());
}

/// Where a signature is wrong.
#[derive(Clone, Copy, Debug)]
enum Place {
    Nowhere,
    First,
    Last,
    All,
}

/// Finishes a body with a signature that is wrong here or there: the MAC's end and the comparison,
/// and nothing before them.
fn comparison(of_known: bool, one: Place, other: Place) -> impl FnMut(bool) -> f64 {
    let keys = [("wh_1", KeyRing::new(Secret::new(SECRET).unwrap()))];
    let verifier = Verifier::new(Keys::by_subscription(keys).unwrap());
    let key: &[u8] = if of_known { SECRET.as_bytes() } else { &[] };
    let webhook_id = if of_known { "wh_1" } else { "wh_2" }.to_owned();
    let timestamp = NOW.to_string();
    let signatures = [one, other].map(|place| header(key, &timestamp, place));
    move |class| {
        let head = DeliveryHeaders::from_pairs([
            ("x-service-timestamp", &timestamp),
            ("x-service-signature", &signatures[usize::from(class)]),
            ("x-service-webhook-id", &webhook_id),
        ]);
        let mut body = verifier
            .begin(&head.unwrap(), UnixSeconds::new(NOW), BODY.len())
            .unwrap();
        // The second piece begins the hashing.
        for piece in BODY.chunks(20) {
            body.push(Bytes::from_static(piece)).unwrap();
        }
        let begin = Instant::now();
        let outcome = black_box(black_box(body).finish());
        let time = begin.elapsed();
        assert!(outcome.is_err());
        time.as_nanos() as f64
    }
}

/// The header of a signature that is right but for this place.
fn header(key: &[u8], timestamp: &str, place: Place) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.update(format!("{timestamp}.").as_bytes());
    mac.update(BODY);
    let mut bytes: [u8; 32] = mac.finalize().into_bytes().into();
    match place {
        Place::Nowhere => {}
        Place::First => bytes[0] ^= 1,
        Place::Last => bytes[31] ^= 1,
        Place::All => bytes.iter_mut().for_each(|byte| *byte = !*byte),
    }
    format!("sha256={}", hex::encode(bytes))
}

/// The control: a comparison that leaks, as it stops at the first difference.
fn early_exit() -> impl FnMut(bool) -> f64 {
    let right = vec![0x5a_u8; 4_096];
    let wrong = [0, 4_095].map(|place| {
        let mut bytes = right.clone();
        bytes[place] ^= 1;
        bytes
    });
    move |class| {
        let given = &wrong[usize::from(class)];
        let begin = Instant::now();
        let equal = black_box(stops_early(black_box(&right), black_box(given)));
        let time = begin.elapsed();
        assert!(!equal);
        time.as_nanos() as f64
    }
}

#[inline(never)]
fn stops_early(one: &[u8], other: &[u8]) -> bool {
    one.iter().zip(other).all(|(one, other)| one == other)
}

/// Welch's t of the times of two classes, measured in random order, without the slowest tenth of
/// all: those were interrupted.
fn welch(timings: usize, mut measure: impl FnMut(bool) -> f64) -> f64 {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next_class = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random >> 63 == 1
    };
    for _ in 0..1_000 {
        black_box(measure(next_class())); // Caches and predictors get used to it.
    }
    let measured: Vec<(bool, f64)> = (0..2 * timings)
        .map(|_| {
            let class = next_class();
            (class, measure(class))
        })
        .collect();
    let mut sorted: Vec<f64> = measured.iter().map(|(_, time)| *time).collect();
    sorted.sort_by(f64::total_cmp);
    let slow = sorted[sorted.len() / 10 * 9];
    let [one, other] = [false, true].map(|class| {
        let times = measured
            .iter()
            .filter(|(of, time)| *of == class && *time <= slow);
        Moments::of(times.map(|(_, time)| *time))
    });
    let spread = one.variance / one.count + other.variance / other.count;
    // Times that are all the same have no difference.
    if spread == 0.0 && one.mean == other.mean {
        return 0.0;
    }
    (one.mean - other.mean) / spread.sqrt()
}

struct Moments {
    count: f64,
    mean: f64,
    variance: f64,
}

impl Moments {
    fn of(times: impl Iterator<Item = f64> + Clone) -> Self {
        let count = times.clone().count() as f64;
        let mean = times.clone().sum::<f64>() / count;
        let squares = times.map(|time| (time - mean).powi(2)).sum::<f64>();
        Self {
            count,
            mean,
            variance: squares / (count - 1.0),
        }
    }
}
