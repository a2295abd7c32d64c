//! No block of the heap holds key material when it is freed: neither the text of a secret, nor a
//! state of its HMAC. The allocator of this program searches each block. *Wiped memory* in
//! `SECURITY.md` says which copies are not looked for.

#![allow(clippy::unwrap_used)] // a failed expectation must stop the test
#![allow(unsafe_code)] // An allocator can't be written without.

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::io::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use hmac::{Hmac, KeyInit};
use hookgate::{
    KeyRing, Secret, Verifier,
    clock::UnixSeconds,
    lookup::Keys,
    verify::{DeliveryHeaders, Signature, Timestamp},
};
use sha2::block_api::compress256;

const SECRET: &str = "whsec_made_up_Zk3vQx81mTnB5rYw2LpHs9EaUcGf7DjK";
const OTHER: &str = "whsec_made_up_q8NdV4tXz0RbWm6CyJ2hPk5SgLe9AuFoTi";
const NOW: UnixSeconds = UnixSeconds::new(1_763_690_000);
const BODY: &[u8] = &[b' '; 300];

/// As many bytes of a needle are searched for: more than the secrets have in common.
const LENGTH: usize = 16;
type Needle = [u8; LENGTH];

/// The end of the text, and the states under the two pads. They are in no block of the heap.
static NEEDLES: std::sync::OnceLock<[Needle; 3]> = std::sync::OnceLock::new();
static FOUND: AtomicUsize = AtomicUsize::new(0);

struct Searching;

#[global_allocator]
static ALLOCATOR: Searching = Searching;

// SAFETY: each call is passed on to the system's allocator. `realloc` is the default one, which
// allocates, copies and frees.
unsafe impl GlobalAlloc for Searching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // Zeroed: a freed block that was not written wholly can be read.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if let Some(needles) = NEEDLES.get() {
            // SAFETY: the block has this many bytes, all of them initialised, and belongs to this
            // call.
            let bytes = unsafe { std::slice::from_raw_parts(block, layout.size()) };
            let is_needle = |window: &[u8]| needles.iter().any(|needle| needle == window);
            let found = bytes.windows(LENGTH).filter(|window| is_needle(window));
            FOUND.fetch_add(found.count(), Ordering::SeqCst);
        }
        unsafe { System.dealloc(block, layout) }
    }
}

/// Returns the state under a pad, as the crate `sha2` holds it.
fn padded(pad: u8) -> Needle {
    // FIPS 180-4 §5.3.3, and RFC 2104.
    let mut state = [
        0x6a09_e667,
        0xbb67_ae85,
        0x3c6e_f372,
        0xa54f_f53a,
        0x510e_527f,
        0x9b05_688c,
        0x1f83_d9ab,
        0x5be0_cd19,
    ];
    let mut block = [pad; 64];
    for (byte, key) in block.iter_mut().zip(SECRET.bytes()) {
        *byte ^= key;
    }
    compress256(&mut state, &[block]);
    let mut needle = [0; LENGTH];
    for (bytes, word) in needle.as_chunks_mut::<4>().0.iter_mut().zip(state) {
        *bytes = word.to_ne_bytes();
    }
    needle
}

/// Returns how often freed blocks had key material in them.
fn found<T>(act: impl FnOnce() -> T) -> usize {
    let before = FOUND.load(Ordering::SeqCst);
    drop(black_box(act()));
    FOUND.load(Ordering::SeqCst) - before
}

/// One test: the control would be found by another one beside it.
// fault F39: freed memory of the heap holds a copy of key material: the text of a secret, a state of a key that moved in a ring that grows, a state of a delivery
#[test]
fn no_freed_memory_of_the_heap_holds_key_material() {
    let mut text = [0; LENGTH];
    text.copy_from_slice(&SECRET.as_bytes()[SECRET.len() - LENGTH..]);
    NEEDLES.set([text, padded(0x36), padded(0x5c)]).unwrap();

    // The control: a text that nothing wipes, and the states of a list that grows.
    assert_eq!(found(|| SECRET.to_owned()), 1);
    let keyed = || Hmac::<sha2::Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
    let moved = found(|| {
        let mut states = Vec::with_capacity(1);
        (0..2).for_each(|_| states.push(keyed()));
        states
    });
    // A block that is freed twice, with another content in front, counts twice.
    assert!(moved >= 2, "two states of the first one: {moved}");

    let steps: [(&str, fn()); 7] = [
        ("a secret", || drop(vec![secret().clone(); 3])),
        ("a secret's file", of_file),
        ("a ring that grows, and one that is refused", || {
            let ring = ring().with_key("again", Secret::new(SECRET).unwrap());
            assert!(ring.is_err());
        }),
        ("a signature", || {
            let timestamp = Timestamp::at(NOW).unwrap();
            drop(Signature::sign(&secret(), &timestamp, BODY).to_header_value());
        }),
        ("keys that are replaced", || {
            let keys = Keys::single(ring());
            keys.replace(Secret::new(OTHER).unwrap()).unwrap();
        }),
        ("a verification", || {
            for (_, signature) in signatures() {
                let verifier = Verifier::new(ring());
                drop(verifier.verify(&head(&signature), BODY, NOW));
            }
        }),
        ("a body in pieces", in_pieces),
    ];
    for (name, step) in steps {
        assert_eq!(found(step), 0, "{name}");
    }
}

fn of_file() {
    let path = std::env::temp_dir().join(format!("hookgate-wiped-{}", std::process::id()));
    // A text that begins as the published ones do is refused in a file. The needle is its end. No
    // copy of it is made here.
    let mut file = std::fs::File::create(&path).unwrap();
    file.write_all(b"whsec_").unwrap();
    file.write_all(&SECRET.as_bytes()["whsec_made_up_".len()..])
        .unwrap();
    drop(file);
    Secret::from_file(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
}

fn in_pieces() {
    for (is_good, signature) in signatures() {
        let verifier = Verifier::new(ring());
        for pieces in [2, 5] {
            let mut body = verifier.begin(&head(&signature), NOW, 300).unwrap();
            for piece in BODY.chunks(60).take(pieces) {
                body.push(Bytes::from_static(piece)).unwrap();
            }
            // Two pieces are dropped midway.
            if pieces == 5 {
                assert_eq!(body.finish().is_ok(), is_good);
            }
        }
    }
}

fn secret() -> Secret {
    Secret::new(SECRET).unwrap()
}

/// Returns a ring whose first key was moved, where moving is possible.
fn ring() -> KeyRing {
    let ring = KeyRing::named("new", secret()).unwrap();
    ring.with_key("old", Secret::new(OTHER).unwrap()).unwrap()
}

/// Returns a good signature and a wrong one.
fn signatures() -> Vec<(bool, String)> {
    let timestamp = Timestamp::at(NOW).unwrap();
    let good = Signature::sign(&secret(), &timestamp, BODY).to_header_value();
    vec![(true, good), (false, format!("sha256={}", "0".repeat(64)))]
}

fn pairs(signature: &str) -> [(&str, &str); 2] {
    [
        ("x-service-timestamp", "1763690000"),
        ("x-service-signature", signature),
    ]
}

fn head(signature: &str) -> DeliveryHeaders<'_> {
    DeliveryHeaders::from_pairs(pairs(signature)).unwrap()
}
