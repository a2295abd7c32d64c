//! Every input of the committed corpus, on stable: what the fuzzers have found interesting stays
//! judged right.
//!
//! A test of the crate: `cargo test -p hookgate-tests --test corpus`.

#![allow(clippy::unwrap_used)] // A test stops at what it did not expect.

#[path = "src/lib.rs"]
mod fuzz;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use fuzz::targets;

fn replay(target: &str, run: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../fuzz/corpus")
        .join(target);
    let mut replayed = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let input = fs::read(&path).unwrap();
        let outcome = catch_unwind(AssertUnwindSafe(|| run(&input)));
        assert!(outcome.is_ok(), "{target}: {}", path.display());
        replayed += 1;
    }
    assert!(replayed > 20, "{target}: only {replayed} inputs");
}

#[test]
fn headers() {
    replay("headers", targets::headers::run);
}

#[test]
fn timestamp_and_signature() {
    replay(
        "timestamp_and_signature",
        targets::timestamp_and_signature::run,
    );
}

#[test]
fn event_head() {
    replay("event_head", targets::event_head::run);
}

#[test]
fn typed_event() {
    replay("typed_event", targets::typed_event::run);
}

#[test]
fn whole_walk() {
    replay("whole_walk", targets::whole_walk::run);
}
