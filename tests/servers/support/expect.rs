//! Short forms of what many tests expect.

use std::borrow::Borrow;
use std::fmt::Display;
use std::time::{Duration, Instant};

use hookgate::dedupe::{ClaimToken, Claimed};

/// The value, where there is one. Without it the test is left out: the call has said which program
/// is missing.
#[allow(unused_macros)] // not each program that includes this file uses it
macro_rules! needed {
    ($found:expr) => {
        match $found {
            Some(found) => found,
            None => return,
        }
    };
}
#[allow(unused_imports)]
pub(crate) use needed;

/// Asserts that the text holds these words.
#[track_caller]
pub fn says(told: impl Display, words: impl AsRef<str>) {
    let (told, words) = (told.to_string(), words.as_ref());
    assert!(told.contains(words), "no {words:?} in {told}");
}

/// What a claim finds of an event that this token has committed.
pub fn done_by(token: impl Borrow<ClaimToken>) -> Claimed {
    let body_mark = token.borrow().body_mark();
    Claimed::Done { body_mark }
}

/// Asks until it is so: for long, so that a busy machine fails no test.
pub async fn until(what: impl Display, mut is_so: impl AsyncFnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(120);
    while !is_so().await {
        assert!(Instant::now() < end, "{what}: not yet");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Repeats it until it once took less than this. A busy machine may be late now and then, and a
/// call without a limit is late each time.
pub async fn once_within(
    limit: Duration,
    what: impl Display,
    mut measured: impl AsyncFnMut(u32) -> Duration,
) {
    const ROUNDS: u32 = 10;
    let mut fastest = Duration::MAX;
    for round in 0..ROUNDS {
        fastest = fastest.min(measured(round).await);
        if fastest < limit {
            return;
        }
    }
    panic!("{what}: {fastest:?} at the fastest");
}
