//! Properties of the inbox, tried on random cases.

#![allow(clippy::unwrap_used)] // a wrong seed must stop the test

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use fastrand::Rng;

/// Tries a property on so many random cases, other ones in each run. `HOOKGATE_SEED` repeats the
/// case that a failure names.
pub(crate) fn each_case(cases: u32, property: impl Fn(&mut Rng)) {
    let seeds: Vec<u64> = match std::env::var("HOOKGATE_SEED") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => (0..cases).map(|_| fastrand::u64(..)).collect(),
    };
    for seed in seeds {
        let tried = catch_unwind(AssertUnwindSafe(|| property(&mut Rng::with_seed(seed))));
        if let Err(panic) = tried {
            eprintln!("to repeat this case: HOOKGATE_SEED={seed}");
            resume_unwind(panic);
        }
    }
}
