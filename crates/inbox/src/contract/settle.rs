//! Settling: it can be repeated, and only the holder can do it.

use hookgate::dedupe::ClaimToken;

use super::*;

pub(super) async fn a_settlement_can_be_repeated(subject: Subject) {
    let ends = [
        ("evt_done", End::Done, EntryState::Done),
        ("evt_retry", retry(LONG), EntryState::Queued),
        ("evt_dead", dead(), EntryState::Dead),
    ];
    for (name, end, state) in ends {
        subject.with(&[name]).await;
        let job = subject.one().await;
        for _ in 0..3 {
            let settled = subject.settle(&job, end.clone()).await;
            assert_eq!(settled, Ownership::Held, "{name}");
            let listed = subject.listed(name).await;
            assert_eq!((listed.state, listed.tries), (state, 1), "{name}");
        }
        assert_eq!(subject.renew(&job, LONG).await, Ownership::Lost, "{name}");
        assert_eq!(subject.state(name).await, state);
    }

    // A repeated settlement does not begin the wait again.
    let waiting = subject.listed("evt_retry").await.until;
    subject.with(&["evt_again"]).await;
    let job = subject.one().await;
    subject.settle(&job, retry(subject.units(6))).await;
    let first = subject.listed("evt_again").await.until;
    subject.pass(2).await;
    let again = subject.settle(&job, retry(subject.units(6))).await;
    assert_eq!(again, Ownership::Held);
    assert_eq!(subject.listed("evt_again").await.until, first);
    assert_eq!(subject.listed("evt_retry").await.until, waiting);

    // After the next lease, the settlement is refused.
    subject.pass(6).await;
    let next = subject.one().await;
    assert_eq!(next.id, job.id);
    let late = subject.settle(&job, retry(LONG)).await;
    assert_eq!(late, Ownership::Lost);
    assert_eq!(subject.settle(&next, End::Done).await, Ownership::Held);
}

pub(super) async fn a_settlement_needs_its_token(subject: Subject) {
    subject.with(&["evt_1"]).await;
    let mut job = subject.one().await;
    let token = job.token;
    job.token = ClaimToken::new(b"another");
    assert_eq!(subject.renew(&job, Duration::ZERO).await, Ownership::Lost);
    for end in [End::Done, retry(Duration::ZERO), dead(), End::Return] {
        assert_eq!(subject.settle(&job, end).await, Ownership::Lost);
    }
    let listed = subject.listed("evt_1").await;
    assert_eq!((listed.state, listed.tries), (EntryState::Running, 1));
    assert!(subject.lease(request(1)).await.jobs.is_empty());

    let right = job.id;
    (job.token, job.id) = (token, EntryId::new(i64::MAX));
    assert_eq!(subject.renew(&job, LONG).await, Ownership::Lost);
    assert_eq!(subject.settle(&job, End::Done).await, Ownership::Lost);
    job.id = right;
    assert_eq!(subject.settle(&job, End::Done).await, Ownership::Held);
}

pub(super) async fn a_failed_try_waits_and_keeps_its_error(subject: Subject) {
    subject.with(&["evt_1", "evt_2"]).await;
    let jobs = subject.lease(request(2)).await.jobs;
    subject.settle(&jobs[0], retry(subject.units(200))).await;
    subject.settle(&jobs[1], retry(subject.units(1))).await;
    subject.pass(2).await;
    let due = subject.lease(request(9)).await.jobs;
    assert_eq!(events(&due), ["evt_2"]);
    assert_eq!(due[0].tries, 2);
    let listed = subject.listed("evt_1").await;
    assert_eq!(listed.state, EntryState::Queued);
    assert_eq!(listed.last_error.unwrap(), "the database is away");
    let until = listed.until.unwrap();
    assert!(Duration::from_millis(until - listed.accepted_at) >= subject.units(200));
}

pub(super) async fn a_returned_try_does_not_count(subject: Subject) {
    subject.with(&["evt_1"]).await;
    for _ in 0..3 {
        let job = subject.one().await;
        assert_eq!(job.tries, 1);
        for _ in 0..3 {
            assert_eq!(subject.settle(&job, End::Return).await, Ownership::Held);
            let listed = subject.listed("evt_1").await;
            assert_eq!((listed.state, listed.tries), (EntryState::Queued, 0));
        }
    }
    let job = subject.one().await;
    subject.settle(&job, retry(Duration::ZERO)).await;
    let job = subject.one().await;
    assert_eq!(job.tries, 2);
    subject.settle(&job, End::Return).await;
    assert_eq!(subject.one().await.tries, 2);
}

pub(super) async fn a_dead_letter_is_left_alone(subject: Subject) {
    subject.with(&["evt_1"]).await;
    let job = subject.one().await;
    assert_eq!(subject.settle(&job, dead()).await, Ownership::Held);
    subject.pass(2).await;
    let batch = subject.lease(request(9)).await;
    assert!(batch.jobs.is_empty());
    assert!(batch.dead_lettered.is_empty());
    assert_eq!(batch.next_in, None);
    let listed = subject.listed("evt_1").await;
    assert_eq!((listed.state, listed.tries), (EntryState::Dead, 1));
    assert_eq!(listed.until, None);
    assert_eq!(listed.last_error.unwrap(), "no such row");
    // Its body is kept: an operator may make it due again.
    assert_eq!(listed.body_bytes, entry("evt_1").body.len() as u64);
}

pub(super) async fn the_last_attempt_is_dead_lettered_when_its_lease_ends(subject: Subject) {
    subject.with(&["evt_1", "evt_2"]).await;
    let twice = LeaseRequest {
        lease: subject.units(1),
        max_tries: 2,
        ..request(1)
    };
    assert_eq!(subject.lease(twice.clone()).await.jobs[0].tries, 1);
    assert_eq!(
        subject.settle(&subject.one().await, End::Done).await,
        Ownership::Held
    );
    subject.pass(2).await;
    let last = subject.lease(twice.clone()).await;
    assert!(last.dead_lettered.is_empty());
    let last = &last.jobs[0];
    assert_eq!((last.entry.event_id.as_str(), last.tries), ("evt_1", 2));
    subject.pass(2).await;

    let batch = subject.lease(twice.clone()).await;
    assert!(batch.jobs.is_empty());
    assert_eq!(batch.dead_lettered.len(), 1);
    let dead_lettered = &batch.dead_lettered[0];
    assert_eq!(dead_lettered.id, last.id);
    assert_eq!(
        (dead_lettered.state, dead_lettered.tries),
        (EntryState::Dead, 2)
    );
    assert_eq!(dead_lettered.last_error.as_deref(), Some(NEVER_SETTLED));
    assert_eq!(subject.state("evt_1").await, EntryState::Dead);
    // It is reported once, and a late settlement or renewal is refused.
    assert!(subject.lease(twice).await.dead_lettered.is_empty());
    assert_eq!(subject.settle(last, End::Done).await, Ownership::Lost);
    assert_eq!(subject.renew(last, LONG).await, Ownership::Lost);
    assert_eq!(subject.state("evt_1").await, EntryState::Dead);
}

pub(super) async fn errors_are_kept_as_they_are_told(subject: Subject) {
    let texts = [
        ("evt_1", "é".repeat(1 << 20)),
        ("evt_2", format!("x{}", "𝄞".repeat(1 << 18))),
        ("evt_3", "before\0after\nand below".to_owned()),
        ("evt_4", String::new()),
    ];
    for (name, text) in &texts {
        subject.with(&[name]).await;
        let (job, error) = (subject.one().await, one_line(text));
        let end = End::Retry {
            after: LONG,
            error: error.clone(),
        };
        assert_eq!(subject.settle(&job, end).await, Ownership::Held, "{name}");
        assert_eq!(subject.listed(name).await.last_error, Some(error));
    }
    // An operator's reason may be any text.
    let inbox = Inbox {
        engine: Arc::clone(&subject.engine),
    };
    for (name, text) in &texts {
        assert_eq!(inbox.dead_letter(of(name), text).await.unwrap(), 1);
        assert_eq!(subject.listed(name).await.last_error, Some(one_line(text)));
    }
}
