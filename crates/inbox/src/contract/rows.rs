//! `serial_by_row`: one entry of a row at a time, others in parallel.

use std::collections::HashSet;
use std::sync::Mutex;

use super::*;

pub(super) async fn one_of_a_row_at_a_time(subject: Subject) {
    let entries = [("a", "a_1"), ("a", "a_2"), ("b", "b_1"), ("a", "a_3")];
    subject.with_rows(&entries).await;
    subject.with(&["none_1", "none_2"]).await;
    // No two entries of one row in a batch; entries without a row are all leased.
    let batch = subject.lease(serial(9)).await;
    assert_eq!(events(&batch.jobs), ["a_1", "b_1", "none_1", "none_2"]);
    // No entry of a row that runs, and no early lease call.
    let batch = subject.lease(serial(9)).await;
    assert!(batch.jobs.is_empty());
    assert_ne!(batch.next_in, Some(Duration::ZERO));
    // A lease without `serial_by_row` gets the rest.
    let rest = subject.lease(request(9)).await.jobs;
    assert_eq!(events(&rest), ["a_2", "a_3"]);
}

pub(super) async fn the_next_of_a_row_follows_a_settlement(subject: Subject) {
    // A lease that was taken without `serial_by_row` counts as well.
    subject
        .with_rows(&[("a", "a_1"), ("a", "a_2"), ("a", "a_3")])
        .await;
    let first = subject.one().await;
    assert!(subject.lease(serial(9)).await.jobs.is_empty());
    subject.settle(&first, End::Done).await;
    let second = subject.lease(serial(9)).await.jobs;
    assert_eq!(events(&second), ["a_2"]);
    subject.settle(&second[0], dead()).await;
    let third = subject.lease(serial(9)).await.jobs;
    assert_eq!(events(&third), ["a_3"]);
}

pub(super) async fn a_failed_entry_does_not_hold_its_row(subject: Subject) {
    subject.with_rows(&[("a", "a_1"), ("a", "a_2")]).await;
    let first = subject.lease(serial(1)).await.jobs;
    subject.settle(&first[0], retry(LONG)).await;
    assert_eq!(events(&subject.lease(serial(9)).await.jobs), ["a_2"]);
}

pub(super) async fn an_excepted_entry_holds_its_row(subject: Subject) {
    subject
        .with_rows(&[("a", "a_1"), ("a", "a_2"), ("b", "b_1")])
        .await;
    let short = request_for(1, subject.units(1));
    let first = subject.lease(short).await.jobs;
    assert_eq!(events(&first), ["a_1"]);
    subject.pass(2).await;
    let without = LeaseRequest {
        except: vec![first[0].id],
        ..serial(9)
    };
    let batch = subject.lease(without).await;
    assert_eq!(events(&batch.jobs), ["b_1"]);
    assert_ne!(batch.next_in, Some(Duration::ZERO));
    assert_eq!(subject.settle(&first[0], End::Done).await, Ownership::Held);
}

pub(super) async fn a_lease_that_ended_frees_its_row(subject: Subject) {
    subject.with_rows(&[("a", "a_1"), ("a", "a_2")]).await;
    let short = LeaseRequest {
        lease: subject.units(1),
        ..serial(1)
    };
    let stale = subject.lease(short).await.jobs.remove(0);
    subject.pass(2).await;
    // Either entry may be leased, and then its row runs.
    let next = subject.lease(serial(9)).await.jobs;
    assert_eq!(next.len(), 1);
    assert!(subject.lease(serial(9)).await.jobs.is_empty());
    if next[0].id == stale.id {
        assert_eq!(subject.renew(&stale, LONG).await, Ownership::Lost);
    }
}

pub(super) async fn ended_leases_of_a_row_that_runs_are_nobodys_hurry(subject: Subject) {
    subject.with_rows(&[("a", "a_1"), ("a", "a_2")]).await;
    // As workers without `serial_by_row` do.
    let both = subject.lease(request_for(2, subject.units(1))).await.jobs;
    assert_eq!(both.len(), 2);
    subject.pass(2).await;
    assert_eq!(subject.lease(serial(9)).await.jobs.len(), 1);
    let none = subject.lease(serial(9)).await;
    assert!(none.jobs.is_empty());
    assert_ne!(none.next_in, Some(Duration::ZERO));
}

pub(super) async fn many_lessors_keep_rows_apart(subject: Subject) {
    const ROWS: usize = 3;
    const EACH: usize = 12;
    for number in 0..EACH {
        for row in 0..ROWS {
            let (row, name) = (format!("row_{row}"), format!("evt_{row}_{number}"));
            subject.accept(&entry_of(&row, &name)).await;
        }
    }
    let running = Arc::new(Mutex::new(HashSet::new()));
    let left = Arc::new(Semaphore::new(ROWS * EACH));
    let mut lessors = JoinSet::new();
    for _ in 0..8 {
        let (engine, running) = (Arc::clone(&subject.engine), Arc::clone(&running));
        let left = Arc::clone(&left);
        lessors.spawn(async move {
            while left.available_permits() > 0 {
                let jobs = engine.lease(serial(2)).await.unwrap().jobs;
                for job in &jobs {
                    let row = *job.entry.row.unwrap().as_bytes();
                    assert!(running.lock().unwrap().insert(row), "two of a row run");
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
                for job in &jobs {
                    let row = *job.entry.row.unwrap().as_bytes();
                    running.lock().unwrap().remove(&row);
                    let settled = engine.settle(job.id, job.token, End::Done).await;
                    assert_eq!(settled.unwrap(), Ownership::Held);
                    left.acquire().await.unwrap().forget();
                }
            }
        });
    }
    let all = lessors.join_all();
    let time = Duration::from_secs(120);
    tokio::time::timeout(time, all).await.expect("a row stands");
    assert_eq!(
        subject.names(in_state(EntryState::Done)).await.len(),
        ROWS * EACH
    );
}
