//! Age: an entry that may have run long ago is not run again without an operator's decision.

use super::*;

impl Subject {
    fn within(&self, units: u32, request: LeaseRequest) -> LeaseRequest {
        LeaseRequest {
            run_within: Some(self.units(units)),
            ..request
        }
    }

    async fn assert_too_old(&self, batch: &Batch, event: &str) {
        self.assert_dead(batch, event, TOO_OLD).await;
    }

    async fn assert_dead(&self, batch: &Batch, event: &str, reason: &str) {
        let dead_lettered: Vec<_> = batch.dead_lettered.iter().collect();
        assert_eq!(dead_lettered.len(), 1, "{event}");
        assert_eq!(dead_lettered[0].event_id.as_str(), event);
        assert_eq!(dead_lettered[0].state, EntryState::Dead);
        let listed = self.listed(event).await;
        assert_eq!((listed.state, listed.until), (EntryState::Dead, None));
        let error = listed.last_error.unwrap();
        assert!(error.starts_with(reason), "{error}");
    }
}

pub(super) async fn an_entry_that_may_have_run_is_not_run_when_it_is_too_old(subject: Subject) {
    // Its process was killed, it failed, or it became a dead letter that an operator makes due.
    for name in ["", "_serial"] {
        let request = if name.is_empty() { request } else { serial };
        let [died, failed, dead_letter] =
            ["died", "failed", "dead"].map(|end| format!("{end}{name}"));
        subject.accept(&entry_of(&died, &died)).await;
        let short = LeaseRequest {
            lease: subject.units(1),
            ..request(1)
        };
        assert_eq!(events(&subject.lease(short).await.jobs), [&*died]);
        subject.pass(4).await;
        let batch = subject.lease(subject.within(3, request(9))).await;
        assert!(batch.jobs.is_empty(), "{:?}", events(&batch.jobs));
        subject.assert_too_old(&batch, &died).await;

        for (event, end) in [(&failed, retry(Duration::ZERO)), (&dead_letter, dead())] {
            subject.accept(&entry_of(event, event)).await;
            let job = subject.one().await;
            subject.settle(&job, end).await;
            subject.pass(4).await;
            if *event == dead_letter {
                assert_eq!(subject.due_again(of(event)).await, 1);
            }
            let batch = subject.lease(subject.within(3, request(9))).await;
            assert!(batch.jobs.is_empty(), "{:?}", events(&batch.jobs));
            subject.assert_too_old(&batch, event).await;
        }
    }
    // An entry that is young enough is run, and so is every entry if no age limit is set.
    subject.with(&["young"]).await;
    let job = subject.one().await;
    subject.settle(&job, retry(Duration::ZERO)).await;
    subject.pass(1).await;
    let young = subject.within(1_000, request(1));
    let again = subject.lease(young).await.jobs.remove(0);
    subject.settle(&again, retry(Duration::ZERO)).await;
    subject.pass(4).await;
    assert_eq!(events(&subject.lease(request(9)).await.jobs), ["young"]);
}

pub(super) async fn an_entry_that_was_never_leased_is_run_however_old_it_is(subject: Subject) {
    subject.with(&["evt_1", "evt_2"]).await;
    subject.pass(4).await;
    assert_eq!(subject.operate(of("evt_2"), by_hand()).await, 1);
    assert_eq!(subject.due_again(of("evt_2")).await, 1);
    let batch = subject.lease(subject.within(1, request(9))).await;
    assert_eq!(events(&batch.jobs), ["evt_1", "evt_2"]);
    assert!(batch.dead_lettered.is_empty());
}

pub(super) async fn a_try_that_was_returned_may_have_run(subject: Subject) {
    subject.with(&["evt_1"]).await;
    let job = subject.one().await;
    assert_eq!(subject.settle(&job, End::Return).await, Ownership::Held);
    assert_eq!(subject.listed("evt_1").await.tries, 0);
    subject.pass(4).await;
    let batch = subject.lease(subject.within(3, request(9))).await;
    assert!(batch.jobs.is_empty());
    subject.assert_too_old(&batch, "evt_1").await;
}

pub(super) async fn an_operators_word_runs_an_entry_that_is_too_old(subject: Subject) {
    subject.with(&["evt_1"]).await;
    let job = subject.one().await;
    subject.settle(&job, dead()).await;
    subject.pass(4).await;
    for _ in 0..2 {
        assert_eq!(subject.due_again(of("evt_1")).await, 1);
        let batch = subject.lease(subject.within(3, request(9))).await;
        subject.assert_too_old(&batch, "evt_1").await;
        let forgotten = Change::Retry { forgets_age: true };
        assert_eq!(subject.operate(of("evt_1"), forgotten).await, 1);
        // It counts as never run, however long it takes until a worker leases it.
        subject.pass(4).await;
        let batch = subject.lease(subject.within(3, request(9))).await;
        assert_eq!(events(&batch.jobs), ["evt_1"]);
        assert_eq!(batch.jobs[0].tries, 1);
        // That run may have had an effect too.
        subject.settle(&batch.jobs[0], dead()).await;
        subject.pass(4).await;
    }
}

/// Its age is not known then: the clock was set back since, or ran ahead before. An engine on the
/// clock of a server is not tested.
pub(super) async fn an_entry_whose_first_lease_lies_far_ahead_is_not_run(subject: Subject) {
    let Time::Manual(clock) = &subject.time else {
        return;
    };
    let now = clock.now().as_i64();
    let leap = i64::try_from(CLOCK_LEAP.as_secs()).unwrap();
    for (name, set_back, is_run) in [("near", leap - 60, true), ("far", leap + 60, false)] {
        clock.set_wall(UnixSeconds::new(now));
        subject.with(&[name]).await;
        let job = subject.one().await;
        subject.settle(&job, retry(Duration::ZERO)).await;
        clock.set_wall(UnixSeconds::new(now - set_back));
        assert_eq!(subject.due_again(of(name)).await, 1);
        let batch = subject.lease(subject.within(100_000, request(9))).await;
        if is_run {
            assert_eq!(events(&batch.jobs), [name]);
            subject.settle(&batch.jobs[0], End::Done).await;
        } else {
            assert!(batch.jobs.is_empty());
            subject.assert_dead(&batch, name, CLOCK_JUMPED).await;
        }
    }
}

pub(super) async fn entries_that_are_too_old_keep_no_others_from_their_turn(subject: Subject) {
    for number in 0..5 {
        let name = format!("old_{number}");
        subject.accept(&entry_of("a", &name)).await;
    }
    for job in subject.lease(request(9)).await.jobs {
        subject.settle(&job, retry(Duration::ZERO)).await;
    }
    subject.pass(4).await;
    subject.accept(&entry_of("a", "new")).await;
    // No lease waits for the next poll because of the old entries.
    let mut rounds = 0;
    let leased = loop {
        let request = if rounds % 2 == 0 {
            request(2)
        } else {
            serial(2)
        };
        let batch = subject.lease(subject.within(3, request)).await;
        if !batch.jobs.is_empty() {
            break batch.jobs;
        }
        assert!(!batch.dead_lettered.is_empty());
        assert_eq!(batch.next_in, Some(Duration::ZERO));
        rounds += 1;
    };
    assert_eq!(events(&leased), ["new"]);
    assert_eq!(subject.names(in_state(EntryState::Dead)).await.len(), 5);
}
