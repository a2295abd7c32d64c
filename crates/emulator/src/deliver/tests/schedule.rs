//! When attempts are made.

use super::*;

#[tokio::test(start_paused = true)]
async fn retries_come_at_the_times_of_the_specification() {
    let room = room(500);
    room.emit("evt_1");
    room.deliveries.settled().await;
    assert_eq!(room.times(), [0]);
    let first = room.record("evt_1");
    assert_eq!(first.state, DeliveryState::Pending);
    assert_eq!(
        first.next_attempt_at.as_deref(),
        Some("2026-11-21T09:31:00.000Z")
    );

    assert_eq!(room.advance("59s").await, 0);
    assert_eq!(room.advance("1s").await, 1);
    assert_eq!(room.advance("2d").await, 3);
    // Cumulative: 1 min, 6 min, 36 min, 2 h 36 min.
    assert_eq!(room.times(), [0, 60, 360, 2_160, 9_360]);
    let last = room.record("evt_1");
    assert_eq!(
        (last.state, last.attempts.len(), last.retry_count),
        (DeliveryState::Discarded, 5, 4)
    );
    assert_eq!(last.next_attempt_at, None);
    assert_eq!(room.advance("30d").await, 0);
    assert_eq!(
        room.parts.clock.moment(),
        Duration::from_secs(60 + 32 * 86_400)
    );
}

#[tokio::test(start_paused = true)]
async fn an_answer_after_five_seconds_is_a_failure_and_the_wait_begins_there() {
    for (millis, status) in [(4_999, Some(200)), (5_001, None)] {
        let answer = move |number, _: &str| {
            (
                200,
                Duration::from_millis(if number == 1 { millis } else { 0 }),
            )
        };
        let room = room_on(ManualClock::at(START), answer);
        room.emit("evt_1");
        room.deliveries.settled().await;
        let record = room.record("evt_1");
        assert_eq!(record.attempts[0].status, status, "{millis}");
        if status.is_none() {
            assert_eq!(
                record.attempts[0].error.as_deref(),
                Some("no answer in time")
            );
            assert_eq!(record.attempts[0].duration_ms, 5_000);
            assert_eq!(room.advance("1h").await, 1);
            assert_eq!(room.times(), [0, 65]);
        }
        assert_eq!(room.state("evt_1"), DeliveryState::Delivered);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_not_2xx_is_a_failure_and_2xx_is_the_end() {
    for status in [199, 300, 301, 400, 404, 410, 500, 503] {
        let room = room(status);
        room.emit("evt_1");
        room.deliveries.settled().await;
        assert_eq!(room.state("evt_1"), DeliveryState::Pending, "{status}");
    }
    for status in [200, 204, 299] {
        let room = room(status);
        room.emit("evt_1");
        room.advance("3d").await;
        assert_eq!(room.times(), [0]);
        let record = room.record("evt_1");
        assert_eq!(record.state, DeliveryState::Delivered, "{status}");
        assert_eq!(record.attempts[0].status, Some(status));
    }
}

#[tokio::test(start_paused = true)]
async fn tokios_time_makes_the_retries_come_by_themselves() {
    let room = room_on(TokioClock::starting_at(START), |_, _| (500, Duration::ZERO));
    room.emit("evt_1");
    sleep(Duration::from_secs(3 * 3_600)).await;
    assert_eq!(room.times(), [0, 60, 360, 2_160, 9_360]);
    assert_eq!(room.state("evt_1"), DeliveryState::Discarded);
}

#[tokio::test(start_paused = true)]
async fn time_that_passes_during_attempts_loses_and_repeats_none() {
    // Each first attempt takes 3 s and fails, so that retries come due while others are under way.
    let answer = |number: usize, _: &str| {
        let fails = number.is_multiple_of(3);
        (
            if fails { 500 } else { 204 },
            Duration::from_millis(number as u64 * 37 % 3_000),
        )
    };
    let room = room_on(TokioClock::starting_at(START), answer);
    let mut emitted = 0;
    for round in 0..40 {
        for _ in 0..25 {
            emitted += 1;
            room.emit(&format!("evt_{emitted}"));
        }
        if round % 3 == 0 {
            // Two at once run one after the other.
            let (one, two) = tokio::join!(room.advance("7m"), room.advance("40m"));
            assert!(one + two > 0);
        }
    }
    room.advance("3d").await;
    let records = room.deliveries.records(None);
    assert_eq!(records.len(), emitted);
    let mut seen = BTreeMap::<String, usize>::new();
    for id in room.ids() {
        *seen.entry(id).or_default() += 1;
    }
    for record in &records {
        assert_ne!(record.state, DeliveryState::Pending, "{record:?}");
        assert_eq!(seen[&record.event_id], record.attempts.len(), "{record:?}");
        let delivered = record
            .attempts
            .iter()
            .filter(|attempt| attempt.status == Some(204));
        assert!(delivered.count() <= 1, "{record:?}");
    }
    assert!(room.times().is_sorted(), "in order of time");
    assert!(room.receiver.at_once.lock().unwrap().1 <= 16);
}

#[tokio::test(start_paused = true)]
async fn at_most_sixteen_requests_of_a_subscription_run_at_once() {
    let room = room_on(ManualClock::at(START), |_, _| (200, Duration::from_secs(1)));
    for number in 0..100 {
        room.emit(&format!("evt_{number:03}"));
    }
    room.deliveries.settled().await;
    assert_eq!(room.receiver.at_once.lock().unwrap().1, 16);
    let ids = room.ids();
    assert!(ids.len() == 100 && ids.is_sorted());
}
