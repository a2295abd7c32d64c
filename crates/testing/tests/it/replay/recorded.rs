//! The log that stands in the repository, which `scripts/record` makes, replayed at its recorded
//! time and with each fault, alone and together.

use std::time::Duration;

use hookgate_testing::replay::Report;
use hookgate_testing::{Faults, Replay};

use super::apps::{Effects, app, durable};
use super::*;

/// The secret that the `receiver` example prints as made up.
const RECORDED_WITH: &str = "whsec_made_up_for_local_tries";

/// Adds a kind of fault.
type Add = fn(Faults) -> Faults;

fn recorded() -> DeliveryLog {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/deliveries.jsonl");
    DeliveryLog::open(path).unwrap()
}

/// Replayed against an app whose store outlives its processes.
async fn replayed(faults: Faults) -> (Report, Effects) {
    let effects = Effects::default();
    let replay = Replay::of(recorded())
        .secret(Secret::new(RECORDED_WITH).unwrap())
        .with(faults);
    let store = durable(replay.clock());
    let report = replay.against(|harness| app(&harness, store.clone(), &effects));
    (report.await.unwrap(), effects)
}

#[tokio::test(start_paused = true)]
async fn the_recorded_log_is_replayed_at_its_recorded_time() {
    let (report, effects) = replayed(Faults::none()).await;
    assert!(report.each_event_committed_once(), "{report}");
    assert!(effects.each_once(report.events().len()), "{report}");
    assert!(report.events().len() >= 3);
    // A refused delivery is refused again, a handled one is handled: only a failure of the recorded
    // handler does not occur with this one.
    for other in report.answered_otherwise() {
        let failed = other.logged_status.is_some_and(|status| status >= 500);
        let is_handled = ["handled", "replayed"].contains(&&*other.outcome);
        assert!(failed || is_handled, "{other}");
    }
    let recorded = recorded();
    let times = recorded
        .deliveries()
        .iter()
        .map(|logged| logged.received_at);
    let first = times.min();
    assert_eq!(report.began_at, first.unwrap().as_i64());
}

#[tokio::test(start_paused = true)]
async fn the_recorded_log_passes_with_each_fault_and_with_all() {
    const SLOW: Duration = Duration::from_secs(12);
    let kinds: [(&str, Add); 8] = [
        ("duplicate", Faults::duplicate),
        ("reorder", Faults::reorder),
        ("delay", Faults::delay_past_window),
        ("hang up", Faults::sender_hangs_up),
        ("fails", |faults| faults.handler_fails(1)),
        ("panics", |faults| faults.handler_panics(1)),
        ("slow", |faults| faults.handler_is_slow(1, SLOW)),
        ("restart", |faults| faults.restarts(1)),
    ];
    for seed in 0..6 {
        for (name, add) in kinds {
            let (report, effects) = replayed(add(Faults::seeded(seed))).await;
            assert!(report.each_event_committed_once(), "{name}: {report}");
            assert!(effects.each_once(report.events().len()), "{name}: {report}");
        }
        let together = Faults::seeded(seed);
        let together = kinds.iter().fold(together, |faults, (_, add)| add(faults));
        let (report, effects) = replayed(together.clone()).await;
        assert!(report.each_event_committed_once(), "{report}");
        assert!(effects.each_once(report.events().len()), "{report}");
        assert!(together.to_string().contains(&SLOW.as_millis().to_string()));
        let again = replayed(together).await.0;
        assert_eq!(report, again, "the same seed is the same replay");
    }
}
