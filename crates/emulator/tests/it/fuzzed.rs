//! Made-up requests and seeds: the short form of the two fuzz targets, by a seed. Some 6,000
//! requests and 2,000 seeds; with `HOOKGATE_TIMES=20` twenty times as many, and with
//! `HOOKGATE_SEED` other ones.

#[path = "../../../../fuzz/src/choices.rs"]
mod choices;
#[path = "../../../../fuzz/src/emulator.rs"]
mod emulator;

/// Inputs of up to 400 bytes, the same ones in each run with the same seed.
fn each(count: u64, run: fn(&[u8])) {
    let set = |name, default| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let mut numbers = fastrand::Rng::with_seed(set("HOOKGATE_SEED", 15));
    for _ in 0..count * set("HOOKGATE_TIMES", 1) {
        let length = numbers.usize(..400);
        let input: Vec<u8> = std::iter::repeat_with(|| numbers.u8(..))
            .take(length)
            .collect();
        run(&input);
    }
}

#[test]
fn made_up_requests_are_answered_and_leave_a_sound_state() {
    each(1_500, emulator::requests);
}

#[test]
fn made_up_seeds_start_or_are_refused_with_their_place() {
    each(2_000, emulator::seeds);
}
