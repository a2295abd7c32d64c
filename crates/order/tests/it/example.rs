//! The example `ordered`: its handler in every order of events, and the whole program as a process.

use std::collections::BTreeMap;

use hookgate::Event;

use crate::ordered::Rows;
use crate::process::{Example, own_secret};

/// All orders of this many things.
fn orders(count: usize) -> Vec<Vec<usize>> {
    (0..count).fold(vec![vec![]], |shorter, last| {
        let put = |order: Vec<usize>| {
            (0..=order.len()).map(move |at| {
                let mut order = order.clone();
                order.insert(at, last);
                order
            })
        };
        shorter.into_iter().flat_map(put).collect()
    })
}

#[derive(Clone, Copy)]
enum Kind {
    Created,
    Updated,
    Deleted,
}

const KINDS: [Kind; 3] = [Kind::Created, Kind::Updated, Kind::Deleted];

/// The event at this place of a history. Every second one of a kind names two properties. Each
/// value is of one event alone.
fn at_place(place: usize, kind: Kind, time: &str) -> Event {
    let names = if place.is_multiple_of(2) { "AB" } else { "A" };
    let of_each = |form: &dyn Fn(char) -> String| names.chars().map(form).collect::<Vec<_>>();
    let (event_type, data) = match kind {
        Kind::Created => {
            let values = of_each(&|name| format!(r#""{name}":{place}"#)).join(",");
            ("created", format!(r#","properties":{{{values}}}"#))
        }
        Kind::Updated => {
            let change = |name| format!(r#""{name}":{{"before":0,"after":{place}}}"#);
            let changes = of_each(&change).join(",");
            ("updated", format!(r#","changes":{{{changes}}}"#))
        }
        Kind::Deleted => ("deleted", String::new()),
    };
    let event = format!(
        r#"{{"id":"evt_{place}","type":"row.{event_type}","createdAt":"{time}","workspaceId":"ws_1","data":{{"datamodelId":"dm_1","datamodelName":"Orders","rowId":"row_1"{data}}}}}"#
    );
    hookgate_testing::event(event).unwrap()
}

type Values = BTreeMap<char, usize>;

/// The row after these events in the order of their times.
fn in_order(kinds: &[Kind]) -> Option<Values> {
    let mut row: Option<Values> = None;
    for (place, kind) in kinds.iter().enumerate() {
        let names = if place % 2 == 0 { "AB" } else { "A" };
        let values = names.chars().map(|name| (name, place));
        match kind {
            Kind::Created => row = Some(values.collect()),
            Kind::Updated => row.get_or_insert_default().extend(values),
            Kind::Deleted => row = None,
        }
    }
    row
}

/// All histories of up to five events of one row, also with an id that is used again, deletions,
/// and events that were lost; with times in whole seconds, and with other numbers of digits.
#[test]
fn every_order_of_up_to_five_events_ends_with_the_same_row() {
    let times = [
        ["30:01Z", "30:02Z", "30:03Z", "30:04Z", "30:05Z"],
        ["30:02.300Z", "30:03Z", "30:03.250Z", "30:03.9Z", "30:04Z"],
    ];
    for count in 1..=5 {
        let orders = orders(count);
        for number in 0..3_usize.pow(count as u32) {
            let kinds: Vec<_> = (0..count as u32)
                .map(|place| KINDS[number / 3_usize.pow(place) % 3])
                .collect();
            let expected = in_order(&kinds);
            for times in times {
                let events: Vec<_> = (0..count)
                    .map(|place| {
                        let time = format!("2026-11-21T09:{}", times[place]);
                        at_place(place, kinds[place], &time)
                    })
                    .collect();
                for order in &orders {
                    let mut rows = Rows::default();
                    let mut row_id = None;
                    for &at in order {
                        row_id = rows.apply(events[at].clone());
                    }
                    let values = |(name, value): (&String, &_)| {
                        let value = format!("{value:?}").trim_matches('"').parse().unwrap();
                        (name.chars().next().unwrap(), value)
                    };
                    let row = rows.get(&row_id.unwrap());
                    let row = row.map(|row| row.iter().map(values).collect::<Values>());
                    let types: Vec<_> = events.iter().map(|event| event.event_type()).collect();
                    assert_eq!(row, expected, "{types:?} in the order {order:?}");
                }
            }
        }
    }
}

/// The order of two equal times, and of a time that can't be read, is unknown: such a deletion
/// deletes nothing. `02` may be any moment of its second, and is read as `02.000`.
#[test]
fn a_creation_and_a_deletion_end_with_the_same_row_in_both_orders() {
    for (created, deleted, exists) in [
        ("30:01Z", "30:01Z", true),
        ("30:01Z", "soon", true),
        ("soon", "soon", true),
        ("30:02Z", "30:02.300Z", false),
        ("30:02.300Z", "30:02Z", true),
        ("30:02Z", "30:02.000Z", true),
        ("30:02.000Z", "30:02Z", true),
        ("30:02.3Z", "30:02.300Z", true),
        ("30:02.300Z", "30:03Z", false),
        ("30:03Z", "30:02.300Z", true),
    ] {
        let time = |text: &str| text.replacen("30:", "2026-11-21T09:30:", 1);
        let events = [
            at_place(0, Kind::Created, &time(created)),
            at_place(1, Kind::Deleted, &time(deleted)),
        ];
        for order in [[0, 1], [1, 0]] {
            let mut rows = Rows::default();
            let ids = order.map(|at| rows.apply(events[at].clone()).unwrap());
            let row = rows.get(&ids[0]);
            assert_eq!(row.is_some(), exists, "{created} {deleted} {order:?}");
        }
    }
}

// fault G1: a property is changed and changed back; the update in between comes last and fits the present value, so that its old value stays
// fault G6: a row's deletion is missed, its id is used again, and values of the former row stay in the new one
// fault G7: the times of events have other numbers of digits, as senders write that drop zeros: an event is told to be the newest beside a newer one that was handled
#[test]
fn ordered_ends_with_the_newest_values_in_any_order() {
    let event = |id: u32, event_type: &str, data: &str| {
        format!(
            r#"{{"id":"evt_{id}","type":"row.{event_type}","createdAt":"2026-11-21T09:30:{id:02}Z","workspaceId":"ws_1","data":{{"datamodelId":"dm_1","datamodelName":"Orders","rowId":"ROW"{data}}}}}"#
        )
    };
    let created = event(1, "created", r#","properties":{"Total":5,"Paid":false}"#);
    let paid = r#","changes":{"Paid":{"before":false,"after":true}}"#;
    let paid = event(2, "updated", paid);
    let total = r#","changes":{"Total":{"before":5.0,"after":12.50}}"#;
    let total = event(3, "updated", total);
    let deleted = event(4, "deleted", "");
    let mut example = Example::start("ordered", &[("WEBHOOK_SECRET", own_secret())]);
    let deliver = |example: &Example, row: &str, event: &str| {
        let id = event.split('"').nth(3).unwrap();
        let event = event.replace("ROW", row);
        let event = event.replace(id, &format!("{id}_{row}"));
        assert_eq!(example.deliver(own_secret(), &event).status, 204);
    };
    // There and back again: the value from before the older update is the present one.
    let there = r#","changes":{"Total":{"before":5,"after":6}}"#;
    let there = event(2, "updated", there);
    let back = r#","changes":{"Total":{"before":6,"after":5}}"#;
    let back = event(3, "updated", back);
    // The row's id is used again, and the new row is updated.
    let created_again = event(5, "created", r#","properties":{"Total":7,"Paid":true}"#);
    let updated_again = r#","changes":{"Total":{"before":7,"after":8}}"#;
    let updated_again = event(6, "updated", updated_again);
    let again = [&created, &deleted, &created_again, &updated_again];
    // It is older than the others and changes nothing, so that it shows the row at the end.
    let shows = event(0, "updated", r#","changes":{}"#);
    let at = |event: &str, second: &str| event.replacen(r#":04Z""#, &format!(r#":{second}Z""#), 1);
    let changed = |id, before, after, second| {
        let change = format!(r#","changes":{{"Total":{{"before":{before},"after":{after}}}}}"#);
        at(&event(4, "updated", &change), second).replace("evt_4", &format!("evt_{id}"))
    };
    // Their times are 4.900, 4.950 and 5: the sender drops zeros. The last value may be that from
    // before the update in between.
    let new = at(
        &event(4, "created", r#","properties":{"Total":5}"#),
        "04.900",
    );
    let between = changed(5, 5, 6, "04.950");
    let (last, last_back) = (changed(6, 6, 7, "05"), changed(6, 6, 5, "05"));
    for (name, events, last) in [
        (
            "row",
            &[&created, &paid, &total][..],
            r#"{"Paid": "true", "Total": "12.5"}"#,
        ),
        (
            "back",
            &[&created, &there, &back],
            r#"{"Paid": "false", "Total": "5"}"#,
        ),
        ("again", &again, r#"{"Paid": "true", "Total": "8"}"#),
        ("digits", &[&new, &between, &last], r#"{"Total": "7"}"#),
        (
            "digits_back",
            &[&new, &between, &last_back],
            r#"{"Total": "5"}"#,
        ),
    ] {
        for (number, order) in orders(events.len()).into_iter().enumerate() {
            let row = format!("{name}_{number}");
            for at in order {
                deliver(&example, &row, events[at]);
            }
            deliver(&example, &row, &shows);
            example.line_with(&format!("evt_0_{row} is stale: {row} is Some({last})"));
        }
    }
    // A creation that is the newest leaves nothing of a former row, whose deletion was missed.
    let smaller = event(5, "created", r#","properties":{"Total":7}"#);
    for event in [&created, &smaller] {
        deliver(&example, "row_8", event);
    }
    example.line_with(r#"evt_5_row_8 is newest: row_8 is Some({"Total": "7"})"#);
    let missed = r#","changes":{"Total":{"before":99,"after":1}}"#;
    let missed = event(5, "updated", missed).replace("ROW", "row_0");
    assert_eq!(example.deliver(own_secret(), &missed).status, 204);
    example.line_with("missed or late: row_0 (before_differs)");
    // A deleted row does not come back.
    for event in [&deleted, &created, &total] {
        deliver(&example, "row_9", event);
    }
    for line in [
        "evt_4_row_9 is newest",
        "evt_1_row_9 is stale",
        "evt_3_row_9 is stale",
    ] {
        example.line_with(&format!("{line}: row_9 is None"));
    }
}
