//! Random histories of a row.

use std::collections::BTreeMap;

use super::*;

/// SplitMix64: the same numbers for the same seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, most: u8) -> u8 {
        u8::try_from(self.next() % u64::from(most)).unwrap()
    }
}

/// A row in the service: its events, and an update that follows all of them, if the row exists
/// then.
fn history(random: &mut Random) -> (Vec<RowEvent>, Option<RowEvent>) {
    let (mut values, mut is_live) = (BTreeMap::<NameHash, ValueHash>::new(), false);
    let (mut events, mut second) = (Vec::new(), 0);
    for id in 1..2 + random.below(12) {
        second += u32::from(random.below(3));
        let change = if !is_live {
            is_live = true;
            values = [(A, [1 + random.below(3); 8])].into();
            RowChange::Created(values.iter().map(|(name, value)| (*name, *value)).collect())
        } else if random.below(6) == 0 {
            is_live = false;
            RowChange::Deleted
        } else {
            // At least one: an update without a change says nothing.
            let names = [B, [3; 8]].into_iter().filter(|_| random.below(2) == 0);
            let mut names: Vec<_> = names.collect();
            if names.is_empty() || random.below(2) == 0 {
                names.push(A);
            }
            let changes = names.into_iter().map(|name| {
                let after = [random.below(4); 8];
                let before = values.insert(name, after).unwrap_or(EMPTY);
                Changed {
                    name,
                    before,
                    after,
                }
            });
            RowChange::Updated(changes.collect())
        };
        events.push(event(second, id, change));
    }
    let changes = [A, B, [3; 8]].map(|name| Changed {
        name,
        before: values.get(&name).copied().unwrap_or(EMPTY),
        after: [9; 8],
    });
    let follows = event(second + 1, 99, RowChange::Updated(changes.into()));
    (events, is_live.then_some(follows))
}

#[test]
fn in_the_services_order_no_event_is_stale_and_none_is_a_gap() {
    for seed in 0..4_000 {
        let (events, _) = history(&mut Random(seed));
        let (last, judged) = handled(&events);
        let wrong =
            |(order, gap): &(Order, Option<GapReason>)| *order == Order::Stale || gap.is_some();
        assert!(!judged.iter().any(wrong), "seed {seed}: {judged:?}");
        let newest = events
            .iter()
            .map(|event| event.at.unwrap().to_parts())
            .max();
        assert_eq!(last.map(|last| last.at.to_parts()), newest, "seed {seed}");
    }
}

/// Any order, any number of copies. The record ends with the newest moment. An event is stale if
/// and only if a newer one was handled, and the newest only if no other of its time was handled
/// either. Once all have come, the next update is the newest, and no gap, except where a deletion
/// hid updates of the row that was created again.
// fault G2: the newest event of a row comes again after another event of the same time was handled, and is told to be the newest
// fault G3: the id of a deleted row is used again, and its creation, which comes after a newer update, is told to be the newest: the update's values are lost
#[test]
fn in_any_order_the_record_is_that_of_the_newest_event() {
    for seed in 0..4_000 {
        let mut random = Random(seed);
        let (events, follows) = history(&mut random);
        let copies = 1 + usize::from(random.below(3));
        let mut deliveries: Vec<_> = std::iter::repeat_n(&events, copies).flatten().collect();
        deliveries.sort_by_cached_key(|_| random.next());
        let (mut last, mut was_deleted) = (None::<LastHandled>, false);
        let mut handled: Vec<&RowEvent> = Vec::new();
        for event in deliveries {
            let at = |event: &RowEvent| event.at.unwrap().to_parts();
            let newest = handled.iter().map(|event| at(event)).max();
            let has_equal = handled
                .iter()
                .any(|other| at(other) == at(event) && other.event != event.event);
            let Judgement { order, next, gap } = judge(last.as_ref(), event);
            let expected = if newest > Some(at(event)) {
                Order::Stale
            } else if has_equal || order == Order::Unknown && was_deleted {
                Order::Unknown
            } else {
                Order::Newest
            };
            assert_eq!(order, expected, "seed {seed}");
            if order == Order::Unknown && !has_equal {
                assert!(matches!(event.change, RowChange::Updated(_)));
            }
            let is_same = last.as_ref().is_some_and(|last| last.event == event.event);
            assert!(!is_same || gap.is_none(), "seed {seed}");
            was_deleted |= matches!(event.change, RowChange::Deleted);
            if let Some(next) = &next {
                assert_eq!(
                    LastHandled::from_bytes(&next.to_bytes()).ok().as_ref(),
                    Some(next)
                );
            }
            last = next.or(last);
            handled.push(event);
            let newest = handled.iter().map(|event| at(event)).max();
            let recorded = last.as_ref().map(|last| last.at.to_parts());
            assert_eq!(recorded, newest, "seed {seed}");
        }
        if let Some(follows) = follows {
            let judgement = judge(last.as_ref(), &follows);
            let gap = judgement.gap.filter(|_| !was_deleted);
            assert_eq!((judgement.order, gap), (Order::Newest, None), "seed {seed}");
        }
    }
}

/// Senders that drop zeros write `54.9`, `55` and `54.95`. The true times differ, and each text
/// means any moment of its unit.
// fault G7: the times of events have other numbers of digits, as senders write that drop zeros: an event is told to be the newest beside a newer one that was handled
#[test]
fn an_event_is_not_the_newest_beside_a_newer_one_with_another_number_of_digits() {
    let mut newest = 0;
    for seed in 0..4_000 {
        let mut random = Random(seed);
        let mut millis = 0;
        let mut events: Vec<_> = (1..2 + random.below(12))
            .map(|id| {
                millis += 1 + random.next() % 400;
                let digits = if random.below(3) == 0 { 0 } else { 3 };
                let fraction = format!(".{:03}", millis % 1_000);
                let text = format!("2026-11-21T09:00:{:02}", millis / 1_000);
                let text = format!("{text}{}Z", &fraction[..if digits == 0 { 0 } else { 4 }]);
                let at = Moment::read(&text);
                let change = updated(0, id, A, 0, id).change;
                (
                    millis,
                    RowEvent {
                        at,
                        ..event(0, id, change)
                    },
                )
            })
            .collect();
        events.sort_by_cached_key(|_| random.next());
        let (mut last, mut handled) = (None::<LastHandled>, Vec::new());
        for (millis, event) in &events {
            let Judgement { order, next, .. } = judge(last.as_ref(), event);
            let is_newer = |other: &u64| other > millis;
            match order {
                Order::Newest => {
                    assert!(!handled.iter().any(is_newer), "seed {seed}: {event:?}");
                    newest += 1;
                }
                Order::Stale => assert!(handled.iter().any(is_newer), "seed {seed}: {event:?}"),
                Order::Unknown => {}
            }
            last = next.or(last);
            handled.push(*millis);
        }
    }
    assert!(newest > 4_000, "{newest}");
}
