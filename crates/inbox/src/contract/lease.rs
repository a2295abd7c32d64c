//! Leasing: each entry goes to one worker at a time, and to the next one when its lease has ended.

use std::collections::BTreeSet;

use super::*;

pub(super) async fn the_longest_due_comes_first(subject: Subject) {
    subject.with(&["evt_1", "evt_2", "evt_3"]).await;
    assert_eq!(
        events(&subject.lease(request(9)).await.jobs),
        ["evt_1", "evt_2", "evt_3"]
    );

    // An entry whose lease has ended was due before an entry that was accepted after that.
    subject.with(&["evt_4"]).await;
    let short = request_for(1, subject.units(1));
    assert_eq!(events(&subject.lease(short).await.jobs), ["evt_4"]);
    subject.pass(2).await;
    subject.with(&["evt_5"]).await;
    let job = subject.one().await;
    assert_eq!(job.entry.event_id, "evt_4");

    // An entry whose back-off has ended was due before an entry that was accepted after that.
    subject.settle(&job, retry(subject.units(1))).await;
    subject.pass(2).await;
    subject.with(&["evt_6"]).await;
    assert_eq!(
        events(&subject.lease(request(9)).await.jobs),
        ["evt_5", "evt_4", "evt_6"]
    );
}

pub(super) async fn two_lessors_never_get_the_same_entry(subject: Subject) {
    const ENTRIES: usize = 60;
    for number in 0..ENTRIES {
        subject.accept(&entry(&format!("evt_{number}"))).await;
    }
    let mut lessors = JoinSet::new();
    for _ in 0..8 {
        let engine = Arc::clone(&subject.engine);
        lessors.spawn(async move {
            let mut mine = Vec::new();
            // A call without a result may have met entries that are being leased to others: it is
            // repeated.
            let mut nothing = 0;
            while nothing < 3 {
                let jobs = engine.lease(request(3)).await.unwrap().jobs;
                assert!(jobs.len() <= 3);
                nothing = if jobs.is_empty() { nothing + 1 } else { 0 };
                mine.extend(jobs.iter().map(|job| job.id));
            }
            mine
        });
    }
    let leased = lessors.join_all().await.concat();
    assert_eq!(leased.len(), ENTRIES);
    let distinct: BTreeSet<_> = leased.into_iter().collect();
    assert_eq!(distinct.len(), ENTRIES, "an entry is leased twice");
}

pub(super) async fn no_more_than_asked_for(subject: Subject) {
    subject.with(&["evt_1", "evt_2", "evt_3"]).await;
    assert!(subject.lease(request(0)).await.jobs.is_empty());
    assert_eq!(subject.lease(request(2)).await.jobs.len(), 2);
    assert_eq!(subject.lease(request(usize::MAX)).await.jobs.len(), 1);
    assert!(subject.lease(request(2)).await.jobs.is_empty());
}

pub(super) async fn tries_are_counted(subject: Subject) {
    subject.with(&["evt_1"]).await;
    subject.pass(1).await;
    for tries in 1..=4 {
        let job = subject.one().await;
        assert_eq!(job.tries, tries);
        let waited = subject.units(tries);
        assert!(job.waited + Duration::from_millis(5) >= waited);
        assert!(job.waited < waited + LONG);
        assert_eq!(subject.listed("evt_1").await.tries, tries);
        subject.settle(&job, retry(Duration::ZERO)).await;
        subject.pass(1).await;
    }
}

pub(super) async fn a_lease_holds_until_it_ends(subject: Subject) {
    subject.with(&["evt_1"]).await;
    let lease = subject.units(200);
    assert_eq!(subject.lease(request_for(1, lease)).await.jobs.len(), 1);
    for _ in 0..3 {
        assert!(subject.lease(request(1)).await.jobs.is_empty());
        subject.pass(1).await;
    }
    let listed = subject.listed("evt_1").await;
    assert_eq!(listed.state, EntryState::Running);
    let kept = Duration::from_millis(listed.until.unwrap() - listed.accepted_at);
    assert!(kept >= lease);
}

pub(super) async fn another_lessor_gets_the_entries_whose_lease_has_ended(subject: Subject) {
    subject.with(&["evt_1"]).await;
    let short = request_for(1, subject.units(1));
    let stale = subject.lease(short).await.jobs.remove(0);
    subject.pass(2).await;
    let next = subject.one().await;
    assert_eq!((next.id, next.tries), (stale.id, 2));
    assert_ne!(next.token, stale.token);

    assert_eq!(subject.renew(&stale, LONG).await, Ownership::Lost);
    let ends = [End::Done, retry(Duration::ZERO), dead(), End::Return];
    for end in ends {
        assert_eq!(subject.settle(&stale, end).await, Ownership::Lost);
        let listed = subject.listed("evt_1").await;
        assert_eq!((listed.state, listed.tries), (EntryState::Running, 2));
        assert_eq!(listed.last_error, None);
    }
    assert_eq!(subject.renew(&next, LONG).await, Ownership::Held);
    assert_eq!(subject.settle(&next, End::Done).await, Ownership::Held);
    assert_eq!(subject.settle(&stale, dead()).await, Ownership::Lost);
    assert_eq!(subject.state("evt_1").await, EntryState::Done);
}

pub(super) async fn a_late_holder_without_successor_still_holds(subject: Subject) {
    subject.with(&["evt_1", "evt_2"]).await;
    let short = request_for(2, subject.units(1));
    let jobs = subject.lease(short).await.jobs;
    subject.pass(2).await;
    assert_eq!(subject.settle(&jobs[0], End::Done).await, Ownership::Held);
    assert_eq!(subject.renew(&jobs[1], LONG).await, Ownership::Held);
    assert!(subject.lease(request(2)).await.jobs.is_empty());
    assert_eq!(subject.state("evt_1").await, EntryState::Done);
}

pub(super) async fn a_renewal_lengthens(subject: Subject) {
    subject.with(&["evt_1"]).await;
    let short = request_for(1, subject.units(2));
    let job = subject.lease(short).await.jobs.remove(0);
    assert_eq!(subject.renew(&job, LONG).await, Ownership::Held);
    assert_eq!(subject.renew(&job, LONG).await, Ownership::Held);
    subject.pass(4).await;
    assert!(subject.lease(request(1)).await.jobs.is_empty());

    // A renewal counts from now, so it can shorten the lease as well.
    assert_eq!(subject.renew(&job, subject.units(1)).await, Ownership::Held);
    subject.pass(2).await;
    assert_eq!(subject.one().await.tries, 2);
}

pub(super) async fn excepted_entries_are_left_alone(subject: Subject) {
    subject.with(&["evt_1", "evt_2"]).await;
    let short = request_for(2, subject.units(1));
    let jobs = subject.lease(short).await.jobs;
    subject.pass(2).await;
    let without = LeaseRequest {
        except: vec![jobs[0].id],
        max_tries: 1,
        ..request(9)
    };
    // The first entry still runs in this process, although its lease has ended: it is not leased
    // and does not become a dead letter, and `next_in` does not ask for an early call because of
    // it.
    let batch = subject.lease(without).await;
    assert!(batch.jobs.is_empty());
    let dead_lettered: Vec<_> = batch.dead_lettered.iter().map(|listed| listed.id).collect();
    assert_eq!(dead_lettered, [jobs[1].id]);
    assert_ne!(batch.next_in, Some(Duration::ZERO));
    assert_eq!(subject.settle(&jobs[0], End::Done).await, Ownership::Held);
}

/// The case: the lease of an entry has ended, another worker has leased and returned the entry, and
/// the first run still goes on in this process.
pub(super) async fn an_excepted_entry_is_left_alone_where_it_waits(subject: Subject) {
    subject
        .with_rows(&[("a", "a_1"), ("a", "a_2"), ("b", "b_1")])
        .await;
    for serial_by_row in [false, true] {
        let job = subject.one().await;
        subject.settle(&job, End::Return).await;
        let without = LeaseRequest {
            except: vec![job.id],
            serial_by_row,
            ..request(9)
        };
        let batch = subject.lease(without).await;
        let mut others = vec!["a_1", "a_2", "b_1"];
        others.retain(|name| *name != job.entry.event_id);
        if serial_by_row {
            others.retain(|name| !name.starts_with("a_"));
        }
        let mut leased = events(&batch.jobs);
        leased.sort_unstable();
        assert_eq!(leased, others);
        for other in &batch.jobs {
            subject.settle(other, End::Return).await;
        }
    }
}

pub(super) async fn the_time_of_the_next_one_is_told(subject: Subject) {
    assert_eq!(subject.lease(request(1)).await.next_in, None);
    subject.with(&["evt_1"]).await;
    let job = subject.one().await;
    subject.settle(&job, retry(subject.units(100))).await;
    let batch = subject.lease(request(1)).await;
    assert!(batch.jobs.is_empty());
    let next = batch.next_in.unwrap();
    assert!(next <= subject.units(100), "{next:?}");
    assert!(next > subject.units(50), "{next:?}");

    // Another lease, which may end earlier.
    subject.with(&["evt_2"]).await;
    let lease = request_for(1, subject.units(40));
    assert_eq!(subject.lease(lease).await.jobs.len(), 1);
    let next = subject.lease(request(1)).await.next_in.unwrap();
    assert!(next <= subject.units(40), "{next:?}");
    assert!(next > Duration::ZERO, "{next:?}");
}

pub(super) async fn times_without_end_are_no_fault(subject: Subject) {
    for name in ["evt_1", "evt_2", "evt_3"] {
        let accepted = subject.engine.accept(entry(name), Duration::MAX).await;
        assert_eq!(accepted.unwrap(), Accepted::New);
    }
    let jobs = subject.lease(request_for(3, Duration::MAX)).await.jobs;
    assert_eq!(
        subject.renew(&jobs[0], Duration::MAX).await,
        Ownership::Held
    );
    subject.settle(&jobs[1], retry(Duration::MAX)).await;
    subject.settle(&jobs[2], End::Done).await;
    subject.pass(2).await;
    let batch = subject.lease(request(9)).await;
    assert!(batch.jobs.is_empty());
    assert_ne!(batch.next_in, Some(Duration::ZERO));
    let again = subject.accept(&entry("evt_3")).await;
    assert_eq!(again, Accepted::Duplicate { same_body: true });
    let long_ago = Selection {
        older_than: Some(Duration::MAX),
        ..Selection::default()
    };
    assert!(subject.list(long_ago).await.is_empty());
}
