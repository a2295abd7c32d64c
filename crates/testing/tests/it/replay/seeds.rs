//! Under every plan, a correct receiver runs nothing twice, loses nothing, and accepts no forged
//! delivery.

use std::time::Duration;

use hookgate_testing::replay::Report;
use hookgate_testing::{Faults, Replay};
use proptest::prelude::*;
use proptest::test_runner::Config;

use super::apps::{Effects, app, durable};
use super::*;

/// Of every kind, few enough that an attempt is left: the late one, two that fail, one that panics,
/// one whose process ends.
fn plans() -> impl Strategy<Value = Faults> {
    let kinds = proptest::collection::vec(any::<bool>(), 5);
    let shares = prop_oneof![Just(None), (0.1..1.0_f64).prop_map(Some)];
    (
        any::<u64>(),
        kinds,
        shares,
        0..=2_u32,
        0..=1_u32,
        0..40_u64,
        0..=1_u32,
    )
        .prop_map(|(seed, kinds, share, fails, panics, slow, restarts)| {
            let mut faults = Faults::seeded(seed)
                .handler_fails(fails)
                .handler_panics(panics)
                .handler_is_slow(u32::from(slow > 0), Duration::from_secs(slow))
                .restarts(restarts);
            if let Some(share) = share {
                faults = faults.share(share);
            }
            let kinds = kinds.iter().zip([
                Faults::duplicate as fn(Faults) -> Faults,
                Faults::reorder,
                Faults::delay_past_window,
                Faults::sender_hangs_up,
                Faults::tampered,
            ]);
            kinds
                .filter(|(set, _)| **set)
                .fold(faults, |faults, (_, add)| add(faults))
        })
}

/// The report without the choice that a receiver makes by chance: of many stale deliveries in a
/// second it checks the signature of at most eight, and says of those that they are authentic.
fn of_any_sample(mut report: Report) -> Report {
    let events = report
        .events
        .iter_mut()
        .flat_map(|event| &mut event.attempts);
    let others = report
        .others
        .iter_mut()
        .flat_map(|other| &mut other.attempts);
    for attempt in events.chain(others) {
        if let Some(reason) = &mut attempt.reason
            && reason.contains("the delivery is stale")
        {
            *reason = "stale".to_owned();
        }
    }
    report
}

proptest! {
    #![proptest_config(Config { cases: 200, failure_persistence: None, ..Config::default() })]

    #[test]
    fn a_correct_receiver_passes_every_plan(faults in plans(), again in any::<bool>()) {
        let play = || in_paused_time(async {
            let effects = Effects::default();
            let replay = Replay::of(small_log()).secret(secret()).with(faults.clone());
            let store = durable(replay.clock());
            let report = replay.against(|harness| app(&harness, store.clone(), &effects)).await;
            (report.unwrap(), effects)
        });
        let (report, effects) = play();
        prop_assert!(report.each_event_committed_once(), "{report}");
        prop_assert!(effects.each_once(5), "{report}");
        if again {
            prop_assert_eq!(of_any_sample(report), of_any_sample(play().0));
        }
    }
}
