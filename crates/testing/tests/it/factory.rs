//! Sample events equal those of the service.

use std::collections::HashSet;

use hookgate::{
    Event, EventData, Properties,
    clock::{ManualClock, UnixSeconds},
};
use hookgate_testing::factory::{EVENT_TYPES, EventFactory, JsonText, PathErrorKind};
use hookgate_testing::iso8601;
use serde_json::Value;

#[test]
fn each_of_the_eight_types_has_the_fields_of_the_specification_in_its_order() {
    let factory = EventFactory::new();
    let made = [
        factory.row_created(),
        factory.row_updated(),
        factory.row_deleted(),
        factory.page_created(),
        factory.page_updated(),
        factory.page_deleted(),
        factory.member_invited(),
        factory.member_removed(),
    ];
    for (sample, event_type) in made.iter().zip(EVENT_TYPES) {
        assert_eq!(sample.event_type().as_deref(), Some(event_type));
        let json = sample.to_json();
        let places = [
            "\"id\":\"evt_",
            "\"type\":",
            "\"createdAt\":",
            "\"workspaceId\":\"ws_",
            "\"data\":{",
        ]
        .map(|field| json.find(field).unwrap());
        assert!(places.is_sorted(), "{json}");
        let event: Event = sample.event().unwrap();
        assert_eq!(event.event_type(), event_type);
        assert!(event.extra.is_empty(), "{json}");
        assert_eq!(sample.delivery().unwrap().event_type(), event_type);
    }
    let has_email = made[..3].iter().map(|sample| {
        let (by, extra) = match sample.event::<Properties>().unwrap().data {
            EventData::RowCreated(row) => (row.created_by, row.extra),
            EventData::RowUpdated(row) => {
                assert_eq!(row.changes.len(), 2);
                (row.updated_by, row.extra)
            }
            EventData::RowDeleted(row) => (row.deleted_by, row.extra),
            other => panic!("{other:?}"),
        };
        assert!(extra.is_empty());
        by.unwrap().email.is_some()
    });
    assert_eq!(has_email.collect::<Vec<_>>(), [true, true, false]);
    assert!(made[2].get("data.deletedBy.email").is_none());
}

#[test]
fn every_property_format_is_there_and_reads_as_its_own() {
    let event: Event = EventFactory::new().row_created().event().unwrap();
    let EventData::RowCreated(row) = event.data else {
        panic!("no row.created")
    };
    let properties = row.properties.required();
    assert_eq!(properties.text("Customer").unwrap(), "Ada Lovelace");
    assert_eq!(properties.number("Quantity").unwrap().as_str(), "3");
    assert_eq!(properties.currency("Total").unwrap().as_str(), "1249.90");
    assert!(!properties.date("Ordered").unwrap().is_date_only());
    assert!(properties.date("Due").unwrap().is_date_only());
    assert_eq!(properties.select("Status").unwrap(), "open");
    assert_eq!(
        properties.multi_select("Tags").unwrap(),
        ["gift", "express"]
    );
    assert!(!properties.checkbox("Paid").unwrap());
    assert_eq!(properties.relation("Account").unwrap()[0], "row_ada");
    assert_eq!(properties.files("Invoice").unwrap()[0].name, "2026-7.pdf");
}

#[test]
fn ids_are_distinct_and_the_same_for_the_same_seed() {
    let ids = |factory: &EventFactory| -> Vec<_> {
        EVENT_TYPES
            .map(|event_type| factory.of_type(event_type).event_id().unwrap())
            .into()
    };
    let (one, other) = (EventFactory::seeded(1), EventFactory::seeded(11));
    let all: HashSet<_> = [ids(&one), ids(&one.clone()), ids(&other)]
        .concat()
        .into_iter()
        .collect();
    assert_eq!(all.len(), 24);
    assert_eq!(ids(&EventFactory::seeded(1)), ids(&EventFactory::seeded(1)));
}

#[test]
fn a_clock_says_when_an_event_was_created() {
    let second = UnixSeconds::new(1_763_690_000);
    let sample = EventFactory::new()
        .with_clock(ManualClock::at(second))
        .row_deleted();
    let event: Event = sample.event().unwrap();
    assert_eq!(event.created_at.as_str(), iso8601(second));
    assert_eq!(event.created_at.as_str(), "2025-11-21T01:53:20Z");
}

#[test]
fn a_path_reaches_any_place_and_keeps_every_digit() {
    let sample = || EventFactory::new().row_created();
    // `*` stands for `data.properties`.
    for (path, value, json) in [
        ("*.Total", "12.50", "12.50"),
        ("*.Total", "18446744073709551617", "18446744073709551617"),
        ("*.Total", r#""12""#, r#""12""#),
        ("*.Status", "shipped", r#""shipped""#),
        ("*.Status", "007", r#""007""#),
        ("*.Status", "NaN", r#""NaN""#),
        ("*.Status", "", r#""""#),
        ("*.Paid", "true", "true"),
        ("*.Paid", " null ", "null"),
        ("*.Tags.0", "late", r#""late""#),
        ("*.Tags.2", "late", r#""late""#),
        (
            "*.Invoice.0.url",
            "https://x.example",
            r#""https://x.example""#,
        ),
        ("*.Invoice.1.url", "u", r#""u""#),
        (
            "*.New",
            r#"{"b":1,"a":[1.0, 2]}"#,
            r#"{"b":1,"a":[1.0, 2]}"#,
        ),
        ("data.some.new.place", "1", "1"),
        (r"*.No\. 1", "1", "1"),
        (r"*.a\\b", "1", "1"),
        ("id", "evt_mine", r#""evt_mine""#),
        ("data", "[]", "[]"),
    ] {
        let path = &path.replace("*", "data.properties");
        let set = sample().set(path, value).unwrap();
        assert_eq!(set.get(path).as_deref(), Some(json), "{path}={value}");
        serde_json::from_str::<Value>(&set.to_json()).unwrap();
    }
    let set = sample().set(r"data.properties.No\. 1", "1").unwrap();
    assert!(set.to_json().contains(r#""No. 1":1"#));
    let twice = sample()
        .set("data.a", "null")
        .unwrap()
        .set("data.a.b", "1")
        .unwrap();
    assert_eq!(twice.get("data.a").as_deref(), Some(r#"{"b":1}"#));

    // Parts that are not changed keep their text.
    let raw = r#"{"b" : 1.0, "a" : "\/"}"#;
    let set = sample()
        .set("data.x", raw)
        .unwrap()
        .set("data.y", "1")
        .unwrap();
    assert_eq!(set.get("data.x").as_deref(), Some(raw));
    let set = set.set("data.x.a", "2").unwrap();
    assert_eq!(set.get("data.x").as_deref(), Some(r#"{"b":1.0,"a":2}"#));
}

#[test]
fn a_path_that_leads_nowhere_says_where_it_ends() {
    // `*` stands for `data.properties`.
    for (path, kind, up_to) in [
        ("", PathErrorKind::EmptyStep, ""),
        ("data..Total", PathErrorKind::EmptyStep, "data..Total"),
        ("data.", PathErrorKind::EmptyStep, "data."),
        ("id.of", PathErrorKind::NoContainer, "id.of"),
        ("*.Total.cents", PathErrorKind::NoContainer, "*.Total.cents"),
        ("*.Tags.3", PathErrorKind::NoIndex, "*.Tags.3"),
        ("*.Tags.first", PathErrorKind::NoIndex, "*.Tags.first"),
        ("*.Tags.0.x.y", PathErrorKind::NoContainer, "*.Tags.0.x"),
    ] {
        let [path, up_to] = [path, up_to].map(|path| path.replace("*", "data.properties"));
        let set = EventFactory::new().row_created().set(&path, "1");
        let error = set.unwrap_err();
        assert_eq!((error.kind(), error.path()), (kind, &*up_to), "{path}");
        assert!(!error.to_string().is_empty());
    }
}

#[test]
fn builders_change_what_they_name_and_nothing_else() {
    let factory = EventFactory::new();
    let before = factory.row_updated();
    let after = before
        .clone()
        .without_changes()
        .change("", JsonText::null(), JsonText::number("1.0"))
        .actor("usr_ada", "Ada", "ada@example.com")
        .row("row_x")
        .workspace("ws_x");
    assert_eq!(
        after.get("data.changes").as_deref(),
        Some(r#"{"":{"before":null,"after":1.0}}"#)
    );
    assert_eq!(
        after.get_text("data.updatedBy.email").as_deref(),
        Some("ada@example.com")
    );
    assert_eq!(after.get_text("data.rowId").as_deref(), Some("row_x"));
    assert_eq!(after.event_id(), before.event_id());
    assert_eq!(
        after.get("data.datamodelId"),
        before.get("data.datamodelId")
    );

    let deleted = factory
        .row_deleted()
        .actor("usr_ada", "Ada", "ada@example.com");
    let by = r#"{"id":"usr_ada","name":"Ada"}"#;
    assert_eq!(deleted.get("data.deletedBy").as_deref(), Some(by));
    let gone = factory.row_created().without("data.rowId").unwrap();
    assert!(gone.get("data.rowId").is_none());
    // Values never appear in `Debug`, which may be logged.
    assert!(!format!("{:?}", factory.row_created()).contains("Lovelace"));
}
