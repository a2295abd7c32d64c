//! The calls of an operator.

use super::*;
use crate::InboxStats;

impl Subject {
    /// Accepts one entry for each state, with the state as its name.
    async fn of_each_state(&self) {
        for name in ["done", "dead", "running"] {
            self.with(&[name]).await;
            let job = self.one().await;
            match name {
                "done" => self.settle(&job, End::Done).await,
                "dead" => self.settle(&job, dead()).await,
                _ => Ownership::Held,
            };
        }
        self.with(&["failed"]).await;
        let failed = self.one().await;
        self.settle(&failed, retry(LONG)).await;
        self.with(&["queued"]).await;
    }
}

pub(super) async fn lists_are_in_order_and_in_pages(subject: Subject) {
    let ids = subject.with(&["evt_1", "evt_2", "evt_3", "evt_4"]).await;
    assert!(ids.is_sorted());
    let on = async |page| {
        let found = subject.engine.list(Selection::all(), page).await.unwrap();
        found.iter().map(|listed| listed.id).collect::<Vec<_>>()
    };
    assert_eq!(on(Page::first(3)).await, ids[..3]);
    assert_eq!(on(Page::after(ids[2], 3)).await, ids[3..]);
    assert_eq!(on(Page::after(ids[0], 2)).await, ids[1..3]);
    assert!(on(Page::after(ids[3], 3)).await.is_empty());
    assert!(on(Page::first(0)).await.is_empty());
    assert_eq!(on(Page::first(usize::MAX)).await, ids);
}

pub(super) async fn lists_are_of_what_is_asked_for(subject: Subject) {
    subject.of_each_state().await;
    let states = [
        (EntryState::Done, vec!["done"]),
        (EntryState::Dead, vec!["dead"]),
        (EntryState::Running, vec!["running"]),
        (EntryState::Queued, vec!["failed", "queued"]),
    ];
    for (state, names) in states {
        assert_eq!(subject.names(in_state(state)).await, names);
    }
    let queued = subject.listed("queued").await;
    assert_eq!(subject.names(by(queued.id)).await, ["queued"]);
    assert!(subject.list(of("unknown")).await.is_empty());
    // All conditions together.
    let mut both = by(queued.id);
    both.state = Some(EntryState::Dead);
    assert!(subject.list(both).await.is_empty());

    subject.pass(3).await;
    subject.with(&["young"]).await;
    let old = Selection {
        older_than: Some(subject.units(2)),
        ..Selection::default()
    };
    assert_eq!(subject.names(old).await.len(), 5);
    let zero = Selection {
        older_than: Some(Duration::ZERO),
        ..Selection::default()
    };
    assert_eq!(subject.names(zero).await.len(), 6);
}

pub(super) async fn an_entry_is_shown_whole(subject: Subject) {
    subject.of_each_state().await;
    for name in ["dead", "running", "failed", "queued", "done"] {
        let listed = subject.listed(name).await;
        let (again, entry) = subject.engine.show(listed.id).await.unwrap().unwrap();
        assert_eq!(format!("{again:?}"), format!("{listed:?}"));
        let whole = super::entry(name);
        let body = if name == "done" {
            Bytes::new()
        } else {
            whole.body
        };
        assert_eq!(entry.body, body, "{name}");
        assert_eq!(listed.body_bytes, entry.body.len() as u64);
        assert_eq!(
            (entry.event_id.as_str(), entry.digest),
            (name, whole.digest)
        );
    }
    let none = subject.engine.show(EntryId::new(i64::MAX)).await.unwrap();
    assert!(none.is_none());
}

pub(super) async fn what_waits_or_is_dead_is_tried_again(subject: Subject) {
    subject.of_each_state().await;
    // Entries that are running or done are not changed.
    for state in [EntryState::Running, EntryState::Done] {
        let retried = subject.due_again(in_state(state)).await;
        assert_eq!(retried, 0, "{state:?}");
    }
    assert_eq!(subject.due_again(of("dead")).await, 1);
    let failed = subject.listed("failed").await.id;
    assert_eq!(subject.due_again(by(failed)).await, 1);
    assert_eq!(subject.listed("dead").await.tries, 0);
    let mut jobs = subject.lease(request(9)).await.jobs;
    jobs.sort_by(|a, b| a.entry.event_id.cmp(&b.entry.event_id));
    assert_eq!(events(&jobs), ["dead", "failed", "queued"]);
    for job in &jobs {
        assert_eq!(job.tries, 1, "all tries are before it");
        assert_eq!(job.entry.body, entry(&job.entry.event_id).body);
    }

    // All of them at once.
    for job in &jobs {
        subject.settle(job, dead()).await;
    }
    assert_eq!(subject.due_again(in_state(EntryState::Dead)).await, 3);
    // A previous holder can change nothing any more.
    assert_eq!(subject.lease(request(9)).await.jobs.len(), 3);
    assert_eq!(subject.settle(&jobs[0], End::Done).await, Ownership::Lost);
}

pub(super) async fn a_waiting_entry_can_be_dead_lettered(subject: Subject) {
    subject.of_each_state().await;
    let dead_letter = async |which| subject.operate(which, by_hand()).await;
    for name in ["running", "done", "dead"] {
        assert_eq!(dead_letter(of(name)).await, 0, "{name}");
    }
    assert_eq!(
        subject.listed("dead").await.last_error.unwrap(),
        "no such row"
    );
    assert_eq!(dead_letter(Selection::default()).await, 2);
    for name in ["failed", "queued"] {
        let listed = subject.listed(name).await;
        assert_eq!(listed.state, EntryState::Dead);
        assert_eq!(listed.last_error.unwrap(), "by hand");
    }
    assert!(subject.lease(request(9)).await.jobs.is_empty());
    assert_eq!(subject.due_again(of("queued")).await, 1);
    assert_eq!(subject.one().await.entry.event_id, "queued");
}

pub(super) async fn what_is_over_is_purged(subject: Subject) {
    subject.of_each_state().await;
    let purge = async |which| subject.operate(which, Change::Purge).await;
    // Entries that are queued or running stay.
    for name in ["running", "failed", "queued"] {
        assert_eq!(purge(of(name)).await, 0, "{name}");
    }
    for state in [EntryState::Queued, EntryState::Running] {
        assert_eq!(purge(in_state(state)).await, 0, "{state:?}");
    }
    let age = |state, units| Selection {
        state: Some(state),
        older_than: Some(subject.units(units)),
        ..Selection::default()
    };
    assert_eq!(purge(age(EntryState::Dead, 200)).await, 0);
    assert_eq!(purge(in_state(EntryState::Dead)).await, 1);
    assert_eq!(subject.names(Selection::default()).await.len(), 4);
    let done = subject.listed("done").await.id;
    assert_eq!(purge(by(done)).await, 1);
    assert_eq!(purge(by(done)).await, 0);
    // Their ids are forgotten.
    for name in ["dead", "done"] {
        assert_eq!(subject.accept(&entry(name)).await, Accepted::New, "{name}");
        assert!(
            subject.listed(name).await.id > done,
            "ids are never used again"
        );
    }
    let jobs = subject.lease(request(9)).await.jobs;
    for job in &jobs {
        subject
            .settle(job, if job.tries == 1 { dead() } else { End::Done })
            .await;
    }
    subject.pass(2).await;
    assert_eq!(purge(age(EntryState::Dead, 1)).await, jobs.len() as u64);
    assert_eq!(
        subject.names(Selection::default()).await,
        ["running", "failed"]
    );
    assert_eq!(purge(Selection::default()).await, 0);
}

pub(super) async fn what_is_erased_is_gone_and_still_known(subject: Subject) {
    subject.of_each_state().await;
    let erase = async |which, waiting| subject.operate(which, Change::Erase { waiting }).await;
    for name in ["running", "failed", "queued"] {
        assert_eq!(erase(of(name), false).await, 0, "{name}");
    }
    assert_eq!(erase(of("dead"), false).await, 1);
    assert_eq!(erase(of("failed"), true).await, 1);
    assert_eq!(erase(of("queued"), true).await, 1);
    for name in ["dead", "failed", "queued"] {
        let listed = subject.listed(name).await;
        assert_eq!(listed.state, EntryState::Done, "{name}");
        assert_eq!(
            (listed.body_bytes, &listed.last_error),
            (0, &None),
            "{name}"
        );
        let (_, entry) = subject.engine.show(listed.id).await.unwrap().unwrap();
        assert!(entry.body.is_empty() && entry.row.is_none(), "{name}");
        assert_eq!(entry.traceparent, None, "{name}");
        // A copy is a duplicate, and another body under the same id is noticed.
        let mut copy = super::entry(name);
        let same = Accepted::Duplicate { same_body: true };
        assert_eq!(subject.accept(&copy).await, same, "{name}");
        copy.digest ^= 1;
        let other = Accepted::Duplicate { same_body: false };
        assert_eq!(subject.accept(&copy).await, other, "{name}");
        assert_eq!(subject.due_again(of(name)).await, 0, "{name}");
    }
    assert!(subject.lease(request(9)).await.jobs.is_empty());
    let stats = subject.engine.stats().await.unwrap();
    assert_eq!((stats.queued, stats.retrying, stats.dead), (0, 0, 0));
    assert_eq!((stats.running, stats.done), (1, 4));
    subject.engine.overwrite_deleted().await.unwrap();
    assert_eq!(subject.state("running").await, EntryState::Running);
    // Nothing is left of the one that is done; a second time does no harm.
    assert_eq!(erase(of("done"), false).await, 1);
    assert_eq!(subject.state("done").await, EntryState::Done);
}

pub(super) async fn a_last_error_is_erased_alone(subject: Subject) {
    subject.of_each_state().await;
    let names = ["queued", "failed", "running", "dead", "done"];
    for name in names {
        let before = subject.listed(name).await;
        let erased = subject.operate(of(name), Change::EraseLastError);
        assert_eq!(erased.await, 1, "{name}");
        let after = subject.listed(name).await;
        assert_eq!(after.last_error, None, "{name}");
        assert_eq!(
            (after.state, after.tries, after.until, after.body_bytes),
            (before.state, before.tries, before.until, before.body_bytes),
            "{name}"
        );
    }
    assert_eq!(subject.due_again(of("dead")).await, 1);
    let jobs = subject.lease(request(9)).await.jobs;
    let mut leased = events(&jobs);
    leased.sort_unstable();
    assert_eq!(leased, ["dead", "queued"]);
}

pub(super) async fn a_run_whose_entry_is_erased_has_lost_its_lease(subject: Subject) {
    subject
        .with_rows(&[("row_1", "first"), ("row_1", "second")])
        .await;
    let first = subject.lease(serial(9)).await.jobs.remove(0);
    assert_eq!(first.entry.event_id, "first");
    let erased = subject.operate(of("first"), Change::Erase { waiting: true });
    assert_eq!(erased.await, 1);
    assert_eq!(subject.renew(&first, LONG).await, Ownership::Lost);
    for end in [retry(LONG), dead(), End::Return, End::Done] {
        assert_eq!(subject.settle(&first, end).await, Ownership::Lost);
    }
    let erased = subject.listed("first").await;
    assert_eq!(erased.state, EntryState::Done);
    let (_, entry) = subject.engine.show(erased.id).await.unwrap().unwrap();
    assert_eq!(entry.row, None);
    // Its row is free for the next entry.
    let second = subject.lease(serial(9)).await.jobs;
    assert_eq!(events(&second), ["second"]);
}

pub(super) async fn numbers_are_counted(subject: Subject) {
    let stats = async || subject.engine.stats().await.unwrap();
    assert_eq!(stats().await, InboxStats::default());
    subject.of_each_state().await;
    subject.pass(3).await;
    let counted = stats().await;
    let oldest = counted.oldest.unwrap();
    assert!(oldest + Duration::from_millis(5) >= subject.units(3));
    assert!(oldest < LONG);
    let expected = InboxStats {
        queued: 2,
        retrying: 1,
        running: 1,
        dead: 1,
        done: 1,
        oldest: Some(oldest),
    };
    assert_eq!(counted, expected);
    // An entry that is accepted later is younger than the oldest.
    subject.with(&["later"]).await;
    assert!(stats().await.oldest.unwrap() >= subject.units(3) - Duration::from_millis(5));
    // Entries that are done or dead do not count as waiting.
    subject.operate(Selection::default(), by_hand()).await;
    let counted = stats().await;
    assert_eq!((counted.queued, counted.dead, counted.running), (0, 4, 1));
    assert!(counted.oldest.is_some(), "one runs");
}
