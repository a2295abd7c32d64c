mod histories;

use super::super::known::{EMPTY, NameHash, ValueHash};
use super::super::moment::Moment;
use super::*;

const A: NameHash = [1; 8];
const B: NameHash = [2; 8];

/// An event of one row at this second; `id` tells events of one second apart.
fn event(second: u32, id: u8, change: RowChange) -> RowEvent {
    let text = format!("2026-11-21T09:{:02}:{:02}Z", second / 60, second % 60);
    RowEvent {
        row_key: [0; 16],
        model: "dm_1".into(),
        row: "row_1".into(),
        event: [id; 16],
        at: Moment::read(&text),
        change,
    }
}

fn created(second: u32, id: u8, a: u8) -> RowEvent {
    event(second, id, RowChange::Created(vec![(A, [a; 8])]))
}

fn updated(second: u32, id: u8, name: NameHash, before: u8, after: u8) -> RowEvent {
    let (before, after) = ([before; 8], [after; 8]);
    let changed = Changed {
        name,
        before,
        after,
    };
    event(second, id, RowChange::Updated(vec![changed]))
}

fn deleted(second: u32, id: u8) -> RowEvent {
    event(second, id, RowChange::Deleted)
}

/// Handles the events one after the other.
fn handled(events: &[RowEvent]) -> (Option<LastHandled>, Vec<(Order, Option<GapReason>)>) {
    let (mut last, mut judged) = (None, Vec::new());
    for event in events {
        let Judgement { order, gap, next } = judge(last.as_ref(), event);
        last = next.or(last);
        judged.push((order, gap));
    }
    (last, judged)
}

#[track_caller]
fn are(events: &[RowEvent], expected: &[(Order, Option<GapReason>)]) {
    assert_eq!(handled(events).1, expected);
}

const NEWEST: (Order, Option<GapReason>) = (Order::Newest, None);
const STALE: (Order, Option<GapReason>) = (Order::Stale, None);
const UNKNOWN: (Order, Option<GapReason>) = (Order::Unknown, None);
const DIFFERS: (Order, Option<GapReason>) = (Order::Newest, Some(GapReason::BeforeDiffers));

const NOT_CREATED: (Order, Option<GapReason>) = (Order::Unknown, Some(GapReason::NotCreated));

#[test]
fn an_older_event_is_stale_and_leaves_the_record_of_the_newer() {
    let newer = updated(5, 2, A, 1, 2);
    are(&[newer.clone(), updated(4, 1, A, 0, 1)], &[NEWEST, STALE]);
    let (last, _) = handled(&[newer.clone(), updated(4, 1, A, 0, 1), created(3, 0, 0)]);
    assert_eq!(last.unwrap().at, newer.at.unwrap());
}

#[test]
fn events_of_one_second_are_unknown_and_never_replace_each_other() {
    let (one, other) = (updated(5, 1, A, 0, 1), updated(5, 2, A, 1, 2));
    are(&[one.clone(), other.clone()], &[NEWEST, UNKNOWN]);
    are(&[other, one.clone()], &[NEWEST, UNKNOWN]);
    are(
        &[one.clone(), deleted(5, 3), updated(6, 4, A, 1, 2)],
        &[NEWEST, UNKNOWN, NEWEST],
    );
    are(&[deleted(5, 3), created(5, 4, 1)], &[NEWEST, UNKNOWN]);
}

#[test]
fn the_same_event_again_is_judged_as_the_first_time() {
    let (first, second) = (created(1, 1, 1), updated(2, 2, A, 1, 2));
    are(
        &[
            first.clone(),
            first.clone(),
            second.clone(),
            second.clone(),
            first.clone(),
            first,
        ],
        &[NEWEST, NEWEST, NEWEST, NEWEST, STALE, STALE],
    );
    // Also where the first time was the sign of a gap: that was told once.
    let gap = updated(3, 3, A, 7, 8);
    are(&[second, gap.clone(), gap], &[NEWEST, DIFFERS, NEWEST]);
    let gone = deleted(4, 4);
    are(&[gone.clone(), gone], &[NEWEST, NEWEST]);
}

#[test]
fn a_deleted_row_stays_deleted_until_it_is_created_later() {
    let gone = deleted(5, 5);
    are(
        &[
            gone.clone(),
            created(1, 1, 1),
            updated(4, 4, A, 1, 2),
            updated(6, 6, A, 1, 2),
            updated(7, 7, A, 2, 3),
            deleted(4, 8),
        ],
        &[NEWEST, STALE, STALE, NOT_CREATED, NOT_CREATED, STALE],
    );
    are(
        &[
            gone.clone(),
            created(6, 6, 1),
            gone,
            updated(7, 7, A, 1, 2),
            deleted(8, 8),
            deleted(9, 9),
        ],
        &[NEWEST, NEWEST, STALE, NEWEST, NEWEST, NEWEST],
    );
}

// fault G2: the newest event of a row comes again after another event of the same time was handled, and is told to be the newest
#[test]
fn the_same_event_again_is_unknown_once_another_of_its_time_was_handled() {
    let (one, other) = (created(5, 1, 1), deleted(5, 2));
    for (one, other) in [(&one, &other), (&other, &one)] {
        are(
            &[one, other, one, other, one].map(Clone::clone),
            &[NEWEST, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN],
        );
    }
    // Also where the other one leaves nothing else in the record.
    let (gone, change) = (deleted(5, 1), updated(5, 2, A, 1, 2));
    are(&[gone.clone(), change, gone], &[NEWEST, UNKNOWN, UNKNOWN]);
}

// fault G3: the id of a deleted row is used again, and its creation, which comes after a newer update, is told to be the newest: the update's values are lost
#[test]
fn a_creation_that_is_older_than_a_handled_update_of_the_deleted_row_is_stale() {
    let (gone, change) = (deleted(5, 5), updated(7, 7, A, 1, 2));
    are(
        &[
            gone.clone(),
            change.clone(),
            change.clone(),
            created(6, 6, 1),
            updated(8, 8, A, 2, 3),
        ],
        &[NEWEST, NOT_CREATED, UNKNOWN, STALE, NEWEST],
    );
    // One that is newer is the newest.
    are(
        &[gone, change, created(8, 8, 1), updated(9, 9, A, 1, 3)],
        &[NEWEST, NOT_CREATED, NEWEST, NEWEST],
    );
}

#[test]
fn an_event_without_a_moment_is_unknown_and_is_not_recorded() {
    let undated = RowEvent {
        at: None,
        ..updated(0, 9, A, 1, 2)
    };
    for last in [None, handled(&[created(1, 1, 1)]).0] {
        let judgement = judge(last.as_ref(), &undated);
        assert_eq!(
            (judgement.order, judgement.gap, judgement.next),
            (Order::Unknown, None, None)
        );
    }
}

#[test]
fn a_value_from_before_an_update_that_is_not_the_known_one_is_a_gap() {
    let first = created(1, 1, 1);
    are(&[first.clone(), updated(2, 2, A, 1, 2)], &[NEWEST, NEWEST]);
    are(&[first.clone(), updated(2, 2, A, 7, 2)], &[NEWEST, DIFFERS]);
    // Of a row that was seen created, an absent property is known to be empty.
    are(&[first.clone(), updated(2, 2, B, 0, 2)], &[NEWEST, NEWEST]);
    are(&[first.clone(), updated(2, 2, B, 7, 2)], &[NEWEST, DIFFERS]);
    // A row from before the guard: only properties that events have named are known.
    let old = updated(1, 1, A, 4, 5);
    are(&[old.clone(), updated(2, 2, B, 7, 2)], &[NEWEST, NEWEST]);
    are(&[old.clone(), updated(2, 2, A, 5, 6)], &[NEWEST, NEWEST]);
    are(&[old, updated(2, 2, A, 4, 6)], &[NEWEST, DIFFERS]);
    // The gap is told once.
    let (missed, next) = (updated(2, 2, A, 7, 8), updated(3, 3, A, 8, 9));
    are(&[first, missed, next], &[NEWEST, DIFFERS, NEWEST]);
}

#[test]
fn a_late_event_is_not_a_gap_afterwards() {
    let (first, second, third) = (
        created(1, 1, 1),
        updated(2, 2, A, 1, 2),
        updated(3, 3, B, 0, 7),
    );
    let late = [first.clone(), third.clone(), second.clone()];
    are(
        &[&late[..], &[updated(4, 4, A, 2, 5)]].concat(),
        &[NEWEST, NEWEST, STALE, NEWEST],
    );
    // There and back again: the late event's value is the one from before, and not the present one.
    let (there, back) = (updated(2, 2, A, 1, 2), updated(3, 3, A, 2, 1));
    are(
        &[first, back, there, updated(4, 4, A, 1, 9)],
        &[NEWEST, DIFFERS, STALE, NEWEST],
    );
    // A creation that comes after the updates.
    are(
        &[
            second,
            third,
            created(1, 1, 1),
            updated(4, 4, A, 2, 5),
            updated(5, 5, B, 7, 8),
            updated(6, 6, [3; 8], 1, 2),
        ],
        &[NEWEST, NEWEST, STALE, NEWEST, NEWEST, DIFFERS],
    );
}
