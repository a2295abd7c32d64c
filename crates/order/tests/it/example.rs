//! The example `ordered`, as a process.

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
    // Their times are 4.900, 4.950 and 5: the sender drops zeros. The last value is that from before the update in between.
    let at = |event: &str, second: &str| event.replacen(r#":04Z""#, &format!(r#":{second}Z""#), 1);
    let new = |second| at(&event(4, "created", r#","properties":{"Total":5}"#), second);
    let changed = |id, before, after, second| {
        let change = format!(r#","changes":{{"Total":{{"before":{before},"after":{after}}}}}"#);
        at(&event(4, "updated", &change), second).replace("evt_4", &format!("evt_{id}"))
    };
    for (name, last) in [("digits", 7), ("digits_back", 5)] {
        let events = [
            new("04.900"),
            changed(5, 5, 6, "04.950"),
            changed(6, 6, last, "05"),
        ];
        for (number, order) in orders(3).into_iter().enumerate() {
            let row = format!("{name}_{number}");
            for at in order {
                deliver(&example, &row, &events[at]);
            }
            deliver(&example, &row, &shows);
            example.line_with(&format!(
                "evt_0_{row} is stale: {row} is Some({{\"Total\": \"{last}\"}})"
            ));
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
