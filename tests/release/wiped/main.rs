//! No copy of a secret, of a padded key block, of a key's states or of a computed MAC stays in memory, except for the states that a ring
//! of keys holds: see *Wiped memory* in `SECURITY.md`. All memory of the process that can be written is searched after each step, on the
//! heap, freed or not, and on the stacks.
//!
//! In a debug build computed MACs are not looked for: without optimisation some of their words stay on the stack.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)] // a failed expectation must stop the test

mod layer;
mod memory;
mod needles;

use std::collections::BTreeSet;
use std::hint::black_box;
use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};
use std::thread;

use bytes::Bytes;
use hookgate::{
    KeyRing, Receiver, Secret, Verifier, block_on,
    clock::{ManualClock, UnixSeconds},
    lookup::Keys,
    receiver::RequestHead,
    verify::{DeliveryHeaders, Intake, Signature, Timestamp},
};

use memory::{Kind, Place, copies};
use needles::SIGNATURES;

/// Three that fit into a block, and one that HMAC hashes first. The test of the control has the last two to itself.
const SECRETS: [&[u8]; 6] = [
    b"whsec_made_up_0_Zk3vQx81mTnB5rYw2LpHs9EaUcGf7DjK",
    b"whsec_made_up_1_q8NdV4tXz0RbWm6CyJ2hPk5SgLe9AuFoTi",
    b"whsec_made_up_2_H7xBn3KsVd1QzMw9PfRt5JyLg8CaUe2WvXo4",
    b"whsec_made_up_3_pT6mYc0LhZr4NsXe8DwKq2VbJf7GuAi9RtBo1MvEx5HzCk3WyPn6QdSg",
    b"whsec_made_up_4_Ua5cWq9ZtKe2RhNx7YvBm3PsJd8LgFo6TiVz",
    b"whsec_made_up_5_g2XrDk6MbQz8HyTw4NpCv7LsEj9RfAu3UoWi",
];
const TIMESTAMP: &str = "1763690000";
const NOW: UnixSeconds = UnixSeconds::new(1_763_690_000);
const BODY: &[u8] = &body(b'1');
/// Its signatures are never in memory, unless the receiver leaves them there.
const FORGED: &[u8] = &body(b'2');

/// Returns a body that makes a signed string of four full blocks and more.
const fn body(id: u8) -> [u8; 300] {
    let (mut body, mut at) = ([b' '; 300], 0);
    let event = br#"{"id":"evt_?","type":"page.created"}"#;
    while at < event.len() {
        body[at] = if event[at] == b'?' { id } else { event[at] };
        at += 1;
    }
    body
}

#[test]
fn no_copy_of_key_material_stays_after_a_verification() {
    let mut run = Run::begin();
    for keys in [1, 2, 4] {
        let verifier = run.keys("ring", keys, || Verifier::new(ring(keys)));
        let (good, wrong) = (signature(keys - 1), forged());
        let (good, wrong) = (head(&good), head(&wrong));
        run.step("whole", || verifier.verify(&good, BODY, NOW).unwrap());
        run.step("refused", || {
            verifier.verify(&wrong, FORGED, NOW).unwrap_err()
        });
        for size in [7, 70, 300] {
            run.step("pieces", || {
                let mut check = verifier.begin(&good, NOW).unwrap();
                BODY.chunks(size).for_each(|piece| check.update(piece));
                check.finish().unwrap()
            });
            run.step("pieces, refused", || {
                let mut check = verifier.begin(&wrong, NOW).unwrap();
                FORGED.chunks(size).for_each(|piece| check.update(piece));
                check.finish().unwrap_err()
            });
        }
        run.step("no body", || {
            verifier.begin(&wrong, NOW).unwrap().finish().unwrap_err()
        });
        run.step("dropped midway", || {
            let mut check = verifier.begin(&wrong, NOW).unwrap();
            check.update(&FORGED[..200]);
        });
        run.step("moved before the first piece, then dropped midway", || {
            let mut check = Box::new(verifier.begin(&wrong, NOW).unwrap());
            check.update(&FORGED[..200]);
        });
        run.step("an intake", || {
            let mut intake = Intake::new(verifier.begin(&good, NOW).unwrap(), 300);
            for piece in BODY.chunks(70) {
                intake.push(Bytes::from_static(piece)).unwrap();
            }
            intake.finish().unwrap()
        });
        run.step("an intake, dropped midway", || {
            let mut intake = Intake::new(verifier.begin(&wrong, NOW).unwrap(), 300);
            intake.push(Bytes::from_static(&FORGED[..200])).unwrap();
        });
        run.drop("ring", verifier);
    }
    run.ends();
}

#[test]
fn no_copy_of_key_material_stays_in_a_receiver() {
    let mut run = Run::begin();
    let receiver = run.keys("receiver", 2, || {
        Receiver::builder()
            .keys(ring(2).into())
            .clock(ManualClock::at(NOW))
            .without_deduplication()
            .build()
            .unwrap()
    });
    for (name, signature, body) in [("good", signature(1), BODY), ("forged", forged(), FORGED)] {
        let head = RequestHead::new("POST", pairs(&signature));
        run.step(name, || {
            let mut intake = receiver.open(&head).unwrap();
            for piece in body.chunks(70) {
                intake.push(Bytes::from_static(piece)).unwrap();
            }
            assert_eq!(receiver.recognise(intake, &head).is_ok(), name == "good");
        });
    }
    run.drop("receiver", receiver);
    run.ends();
}

#[test]
fn no_copy_of_key_material_stays_when_keys_are_set_up_and_replaced() {
    let mut run = Run::begin();
    let path = std::env::temp_dir().join(format!("hookgate-wiped-{}", std::process::id()));
    run.step("text", || drop(secret(0)));
    run.step("clones", || drop(vec![secret(0).clone(); 3]));
    run.step("file", || {
        std::fs::write(&path, SECRETS[0]).unwrap();
        Secret::from_file(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
    });
    run.step("a ring that was refused", || {
        ring(2).with_key("again", secret(0)).unwrap_err()
    });
    run.step("a ring that grows, among other allocations", || {
        let mut names = Vec::new();
        let keys = (0..4).map(|number| {
            names.push(number.to_string().repeat(100));
            (number.to_string(), secret(number))
        });
        drop(KeyRing::from_keys(keys).unwrap());
        names
    });
    run.step("signatures", || {
        let timestamp = Timestamp::parse(TIMESTAMP.as_bytes()).unwrap();
        let signed = Signature::sign(&secret(0), &timestamp, BODY).to_header_value();
        assert_eq!(signed, signature(0));
    });
    run.step("subscriptions that come and go", || {
        let keys = Keys::by_subscription((0..3).map(|number| (number.to_string(), secret(number))));
        let keys = keys.unwrap();
        keys.replace_subscription("0", secret(3)).unwrap();
        for number in 0..3 {
            keys.remove_subscription(&number.to_string()).unwrap();
        }
    });
    run.step("a single ring that is replaced", || {
        let keys = Keys::single(ring(4));
        keys.replace(ring(1)).unwrap();
    });
    run.ends();
}

/// The control: copies that were left behind are found, in freed memory of the heap and on the stack. The second is the one that no
/// borrow prevents: a check is moved after its first piece.
#[test]
fn a_copy_that_was_left_behind_is_found() {
    use hmac::{Hmac, KeyInit};

    let run = Run::begin();
    let keyed = || Hmac::<sha2::Sha256>::new_from_slice(SECRETS[4]).unwrap();
    let ((), grown) = after(|| {
        let mut macs = Vec::with_capacity(1);
        macs.push(keyed());
        let between = vec![0_u8; 1 << 10];
        macs.push(keyed());
        drop((macs, between));
    });
    let is_left = |place: &Place| place.secret == 4 && place.kind == Kind::Pad;
    assert!(grown.iter().any(is_left));

    let (verifier, held) = after(|| Verifier::new(Secret::new(text(5)).unwrap()));
    let signature = forged();
    let ((), moved) = after(|| {
        let mut check = verifier.begin(&head(&signature), NOW).unwrap();
        check.update(&FORGED[..200]);
        drop(black_box(check));
    });
    let kinds: BTreeSet<_> = moved.difference(&held).map(|place| place.kind).collect();
    assert!(kinds.contains(&Kind::Pad) && kinds.contains(&Kind::Running));
    drop(run);
}

/// Steps that are watched, one after the other. No other test works with keys meanwhile.
struct Run {
    seen: BTreeSet<Place>,
    left: Vec<String>,
    _turn: std::sync::MutexGuard<'static, ()>,
}

impl Run {
    fn begin() -> Self {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        Self {
            seen: copies(),
            left: Vec::new(),
            _turn: turn,
        }
    }

    /// Takes a step that may leave nothing new.
    fn step<T: Send>(&mut self, name: &str, act: impl FnOnce() -> T + Send) {
        let (value, now) = after(act);
        drop(value);
        self.note(name, &now);
    }

    /// Makes something that holds this many keys: the two states of each.
    fn keys<T: Send>(&mut self, name: &str, keys: usize, make: impl FnOnce() -> T + Send) -> T {
        let (made, now) = after(make);
        for secret in 0..keys {
            let own = |place: &&Place| place.secret == secret && place.kind == Kind::Pad;
            let own: Vec<Place> = now.difference(&self.seen).filter(own).copied().collect();
            assert_eq!(own.len(), 2, "{name}: {own:?}");
            self.seen.extend(own);
        }
        self.note(name, &now);
        made
    }

    fn drop<T: Send>(&mut self, name: &str, value: T) {
        self.step(name, move || drop(value));
        self.seen = copies();
        let left: Vec<_> = self.seen.iter().filter(|place| counts(place)).collect();
        assert!(left.is_empty(), "{name} stays: {left:?}");
    }

    fn note(&mut self, name: &str, now: &BTreeSet<Place>) {
        let new = now.difference(&self.seen);
        let new: Vec<_> = new.filter(|place| counts(place)).collect();
        self.left
            .extend(new.iter().map(|place| format!("{name}: {place}")));
        self.seen.extend(now);
    }

    fn ends(self) {
        assert!(self.left.is_empty(), "{}", self.left.join("\n"));
    }
}

/// The signatures of the good body are in its header. The last secrets belong to the control.
fn counts(place: &Place) -> bool {
    let is_left_out = match place.kind {
        Kind::Mac { body } => body == 0 || cfg!(debug_assertions),
        Kind::Key | Kind::Pad | Kind::Running => place.secret >= 4,
    };
    !is_left_out
}

/// Acts on a thread of its own, and searches while that waits: far up its stack, so that it does not overwrite the part that was used.
fn after<T: Send>(act: impl FnOnce() -> T + Send) -> (T, BTreeSet<Place>) {
    #[inline(never)]
    fn far_down<T>(act: impl FnOnce() -> T) -> T {
        let room = black_box([0_u8; 256 << 10]);
        let value = act();
        black_box(&room);
        value
    }
    thread::scope(|scope| {
        let ((done, acted), (leave, may_leave)) = (channel(), channel());
        scope.spawn(move || {
            done.send(far_down(act)).unwrap();
            may_leave.recv().unwrap();
        });
        let value = acted.recv().unwrap();
        let found = copies();
        leave.send(()).unwrap();
        (value, found)
    })
}

fn text(secret: usize) -> &'static str {
    std::str::from_utf8(SECRETS[secret]).unwrap()
}

fn secret(number: usize) -> Secret {
    Secret::new(text(number)).unwrap()
}

fn ring(keys: usize) -> KeyRing {
    KeyRing::from_keys((0..keys).map(|number| (number.to_string(), secret(number)))).unwrap()
}

fn signature(secret: usize) -> String {
    format!("sha256={}", hex::encode(SIGNATURES[secret]))
}

fn forged() -> String {
    format!("sha256={}", "0".repeat(64))
}

fn pairs(signature: &str) -> [(&str, &str); 2] {
    [
        ("x-service-timestamp", TIMESTAMP),
        ("x-service-signature", signature),
    ]
}

fn head(signature: &str) -> DeliveryHeaders<'_> {
    DeliveryHeaders::from_pairs(pairs(signature)).unwrap()
}
