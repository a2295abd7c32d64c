//! From verified bytes to events, and the errors for bytes that are no event.
#![allow(clippy::unwrap_used)] // a test that can't go on ends

use std::error::Error as _;
use std::fmt::Debug;

use hookgate::{
    Event, EventData, KeyRing, Properties, Secret, Verified, Verifier,
    clock::UnixSeconds,
    event::{
        Change, DataModelId, Date, DateText, EventError, EventErrorKind as Kind, EventHead, Field,
        Fields, File, Json, Number, RowId, or_default,
    },
    verify::{DeliveryHeaders, Signature, Timestamp},
};
use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

const CREATED: &str = r#"{"id":"evt_1","type":"row.created","createdAt":"2026-11-21T09:30:00.123Z","workspaceId":"ws_1","data":{"datamodelId":"dm_1","datamodelName":"Orders","rowId":"row_1","properties":{"Name":"Ada \ud83d\ude00 \/ 😀","Total":12.50,"Count":18446744073709551617,"Due":"2026-11-21","At":"2026-11-21T09:30:00+01:00","State":"open","Tags":["a","b"],"Paid":true,"Rows":["row_2"],"Files":[{"url":"https://files.example/1","name":"a.pdf"}],"Big":1e5,"Note":null},"createdBy":{"id":"usr_1","name":"Bo","email":"bo@example.com"}}}"#;
const UPDATED: &str = r#"{"id":"evt_2","type":"row.updated","createdAt":"2026-11-21T09:30:00Z","workspaceId":"ws_1","data":{"datamodelId":"dm_1","datamodelName":"Orders","rowId":"row_1","changes":{"Total":{"before":1.10,"after":2.50},"Note":{"after":"new","by":1.0},"Gone":{"before":null,"after":null}},"updatedBy":{"id":"usr_1","name":"Bo","email":null}}}"#;
const DELETED: &str = r#"{"id":"evt_3","type":"row.deleted","createdAt":"2026-11-21T09:30:00Z","workspaceId":"ws_1","data":{"datamodelId":"dm_1","datamodelName":"Orders","rowId":"row_1","deletedBy":{"id":"usr_1","name":"Bo","team":{"size":1.0}},"soft":true},"attempt":1}"#;
const OTHER: &str = r#"{"data":{"page":[1.10,{"a":null}]},"id":"7","type":"page.created","createdAt":"","workspaceId":"ws_1"}"#;
const ALL: [&str; 4] = [CREATED, UPDATED, DELETED, OTHER];

/// A row type that picks some properties and ignores the rest.
#[derive(Debug, Deserialize)]
#[allow(dead_code)]
struct Order {
    #[serde(rename = "Name")]
    name: String,
    #[serde(rename = "Total")]
    total: f64,
}

fn verified_by<B: AsRef<[u8]>>(ring: KeyRing, secret: &Secret, body: B) -> Verified<Vec<u8>> {
    let timestamp = Timestamp::parse(b"1763690000").unwrap();
    let signature = Signature::sign(secret, &timestamp, body.as_ref()).to_header_value();
    let pairs = [
        ("x-service-timestamp", "1763690000"),
        ("x-service-signature", &signature),
    ];
    let headers = DeliveryHeaders::from_pairs(pairs).unwrap();
    let now = UnixSeconds::new(1_763_690_000);
    let verified = Verifier::new(ring).verify(&headers, body.as_ref().to_vec(), now);
    verified.unwrap()
}

fn secret() -> Secret {
    Secret::new("whsec_made_up_for_these_tests").unwrap()
}

fn verified(body: impl AsRef<[u8]>) -> Verified<Vec<u8>> {
    verified_by(KeyRing::new(secret()), &secret(), body)
}

fn event<R: DeserializeOwned>(body: impl AsRef<[u8]>) -> Result<Event<R>, EventError> {
    Event::from_verified(&verified(body))
}

fn fails<R: DeserializeOwned>(body: impl AsRef<[u8]>) -> (Kind, Option<String>) {
    let error = event::<R>(body).unwrap_err();
    (error.kind(), error.path().map(Into::into))
}

fn at(kind: Kind, path: &str) -> (Kind, Option<String>) {
    (kind, Some(path.into()))
}

/// The same for texts that are equal as JSON: names sorted, strings without escapes, numbers in
/// their own digits.
fn canonical(text: &str) -> String {
    let json: Json = serde_json::from_str(text).unwrap();
    match json.as_str().as_bytes()[0] {
        b'{' => {
            let fields: Fields = json.to().unwrap();
            let entry =
                |(name, value): (&str, &Json)| format!("{name:?}:{}", canonical(value.as_str()));
            let mut entries: Vec<_> = fields.iter().map(entry).collect();
            entries.sort();
            format!("{{{}}}", entries.join(","))
        }
        b'[' => {
            let items: Vec<Json> = json.to().unwrap();
            let items: Vec<_> = items.iter().map(|item| canonical(item.as_str())).collect();
            format!("[{}]", items.join(","))
        }
        b'"' => format!("{:?}", json.to::<String>().unwrap()),
        _ => json.as_str().to_owned(),
    }
}

// fault K13: the canonical form of an array or an object is no JSON
#[test]
fn the_canonical_form_of_a_value_is_json_of_the_same_meaning() {
    for text in [
        r#"["a","b"]"#,
        r#"{ "b": [1, [], {}, [[2]]], "a,": {"y": null, "x": "1,]"} }"#,
        "[]",
        "{}",
        "[true]",
    ] {
        let json: Json = serde_json::from_str(text).unwrap();
        let canonical = json.canonical();
        let read: Json = serde_json::from_str(&canonical).unwrap();
        let value = |json: &Json| json.to::<serde_json::Value>().unwrap();
        assert_eq!(value(&read), value(&json), "{canonical}");
        assert_eq!(read.canonical(), canonical);
    }
}

/// The same event with `data` in front.
fn data_first(body: &str) -> String {
    let fields: Fields = serde_json::from_str(body).unwrap();
    let mut entries: Vec<_> = fields.iter().collect();
    entries.sort_by_key(|(name, _)| *name != "data");
    let entries = entries
        .iter()
        .map(|(name, json)| format!("{name:?}:{}", json.as_str()));
    format!("{{{}}}", entries.collect::<Vec<_>>().join(","))
}

#[test]
fn events_are_written_again_as_they_were_read() {
    for body in ALL {
        let body = body.replace(r#""workspaceId""#, r#""new":{"x":[1.0,2e5]},"workspaceId""#);
        for body in [data_first(&body), body] {
            let again = serde_json::to_string(&event::<Properties>(&body).unwrap()).unwrap();
            assert_eq!(canonical(&again), canonical(&body));
        }
    }
}

// fault F10a: an actor that is null or absent, or a page, member or test event without `data`, is refused for good
#[test]
fn an_actor_may_be_null_or_absent() {
    for (body, key) in [
        (CREATED, "createdBy"),
        (UPDATED, "updatedBy"),
        (DELETED, "deletedBy"),
    ] {
        let start = body.find(&format!("\"{key}\"")).unwrap();
        let length = match body[start..].find("},\"") {
            // Its team ends in front of it.
            Some(end) => end + 1,
            None => body.len() - 2 - start,
        };
        let actor = &body[start..start + length];
        let null = body.replace(actor, &format!("\"{key}\":null"));
        let absent = body.replace(actor, "\"by\":1");
        for (body, is_there) in [(body, true), (&null, false), (&absent, false)] {
            for body in [data_first(body), body.to_owned()] {
                let event = event::<Properties>(&body).unwrap();
                let actor = match &event.data {
                    EventData::RowCreated(row) => &row.created_by,
                    EventData::RowUpdated(row) => &row.updated_by,
                    EventData::RowDeleted(row) => &row.deleted_by,
                    _ => panic!("{body}"),
                };
                assert_eq!(actor.is_some(), is_there, "{body}");
                let again = serde_json::to_string(&event).unwrap();
                assert_eq!(canonical(&again), canonical(&body));
            }
        }
        // A doubled field is refused, also with null.
        let doubled = null.replace("\"rowId\"", &format!("\"{key}\":null,\"rowId\""));
        let path = format!("data.{key}");
        assert_eq!(fails::<Order>(doubled), at(Kind::RepeatedKey, &path));
    }
}

#[test]
fn an_actor_that_a_program_fills_is_written_once() {
    let actor = CREATED.find(r#","createdBy""#).unwrap();
    let null = format!(r#"{},"createdBy":null}}}}"#, &CREATED[..actor]);
    let (from, mut into) = (
        event::<Properties>(UPDATED).unwrap(),
        event::<Properties>(&null).unwrap(),
    );
    let (EventData::RowUpdated(from), EventData::RowCreated(row)) = (from.data, &mut into.data)
    else {
        panic!("the two events");
    };
    row.created_by = from.updated_by.map(|mut actor| {
        actor.email = Some("hidden".into()); // it was null
        actor
    });
    let written = serde_json::to_string(&into).unwrap();
    assert_eq!(written.matches("createdBy").count(), 1, "{written}");
    assert_eq!(written.matches("email").count(), 1, "{written}");
}

// fault F10a: an actor that is null or absent, or a page, member or test event without `data`, is refused for good
#[test]
fn data_may_be_missing_where_the_specification_shows_no_payload() {
    let bare = |event_type: &str| {
        format!(r#"{{"id":"1","type":"{event_type}","createdAt":"","workspaceId":"ws_1"}}"#)
    };
    for event_type in ["page.deleted", "member.removed", "test", "row.restored"] {
        let absent = bare(event_type);
        let null = absent.replace("\"createdAt\"", "\"data\":null,\"createdAt\"");
        for body in [absent, null.clone(), data_first(&null)] {
            let event = event::<Order>(&body).unwrap();
            let EventData::Other(other) = &event.data else {
                panic!("{body}")
            };
            assert_eq!(
                (event.event_type(), other.data.as_str()),
                (event_type, "null")
            );
            assert_eq!(other.data.to::<Option<Order>>().unwrap().map(drop), None);
            let event = self::event::<Properties>(&body).unwrap();
            let again = serde_json::to_string(&event).unwrap();
            assert_eq!(canonical(&again), canonical(&body));
        }
        let doubled = null.replace("\"id\"", "\"data\":null,\"id\"");
        assert!(event::<Order>(doubled).is_err());
    }
    for event_type in ["row.created", "row.updated", "row.deleted"] {
        let absent = bare(event_type);
        assert_eq!(fails::<Order>(&absent), at(Kind::Missing, "data"));
        let null = absent.replace("\"createdAt\"", "\"data\":null,\"createdAt\"");
        assert_eq!(fails::<Order>(null), at(Kind::TypeMismatch, "data"));
    }
}

#[test]
fn each_type_becomes_its_variant() {
    let created = event::<Order>(CREATED).unwrap();
    let (event_type, id) = (created.event_type(), created.id.as_str());
    assert_eq!((event_type, id), ("row.created", "evt_1"));
    let nanos = created.created_at.date().unwrap().unix_nanos().unwrap();
    assert_eq!(nanos % 1_000_000_000, 123_000_000);
    assert_eq!(created.datamodel_id().unwrap(), &"dm_1");
    let EventData::RowCreated(row) = created.data else {
        panic!()
    };
    let Order { name, total } = row.properties;
    assert_eq!((&*name, total), ("Ada 😀 / 😀", 12.5));
    let actor = row.created_by.unwrap();
    assert_eq!(actor.email.as_deref(), Some("bo@example.com"));

    let EventData::RowUpdated(row) = event::<Order>(UPDATED).unwrap().data else {
        panic!()
    };
    assert!(row.changes.names().eq(["Total", "Note", "Gone"]));
    assert_eq!(row.updated_by.unwrap().email, None);

    let EventData::RowDeleted(row) = event::<Order>(DELETED).unwrap().data else {
        panic!()
    };
    let actor = row.deleted_by.unwrap();
    assert_eq!(
        actor.extra.find("team").unwrap().as_str(),
        r#"{"size":1.0}"#
    );

    let EventData::Other(other) = event::<Order>(OTHER).unwrap().data else {
        panic!()
    };
    assert_eq!(other.event_type, "page.created");
    assert_eq!(other.data.as_str(), r#"{"page":[1.10,{"a":null}]}"#);
}

#[test]
fn every_value_format_has_its_getter() {
    let EventData::RowCreated(row) = event::<Properties>(CREATED).unwrap().data else {
        panic!()
    };
    let row = row.properties;
    let needed = row.required();
    assert_eq!(needed.text("Name").unwrap(), "Ada 😀 / 😀");
    assert_eq!(
        needed.number("Count").unwrap().as_str(),
        "18446744073709551617"
    );
    assert_eq!(needed.currency("Total").unwrap().as_str(), "12.50");
    assert!(needed.date("Due").unwrap().is_date_only());
    let seconds = needed.date("At").unwrap().unix_seconds().unwrap();
    assert_eq!(seconds, UnixSeconds::new(1_795_249_800));
    assert_eq!(needed.select("State").unwrap(), "open");
    assert_eq!(needed.multi_select("Tags").unwrap(), ["a", "b"]);
    assert!(needed.checkbox("Paid").unwrap());
    assert_eq!(needed.relation("Rows").unwrap(), ["row_2"]);
    assert_eq!(needed.files("Files").unwrap()[0].name, "a.pdf");
    assert_eq!(row.to::<Order>().unwrap().total, 12.5);

    assert_eq!(row.text("Note").unwrap(), Field::Null);
    assert_eq!(row.text("Nothing").unwrap(), Field::Absent);
    for (error, kind, place) in [
        (row.text("Total").err(), Kind::TypeMismatch, "Total"),
        (row.date("State").err(), Kind::TypeMismatch, "State"),
        (
            row.multi_select("Files").err(),
            Kind::TypeMismatch,
            "Files[0]",
        ),
        (needed.text("Nothing").err(), Kind::Missing, "Nothing"),
        (needed.text("Note").err(), Kind::TypeMismatch, "Note"),
    ] {
        let error = error.expect(place);
        let path = format!("data.properties.{place}");
        assert_eq!((error.kind(), error.path()), (kind, Some(&*path)));
    }
}

#[test]
fn changes_distinguish_absent_null_and_values() {
    let EventData::RowUpdated(row) = event::<Properties>(UPDATED).unwrap().data else {
        panic!()
    };
    let changes = row.changes;
    let before = changes.before("Total").number().unwrap().into_option();
    assert_eq!(before.unwrap().as_str(), "1.10");
    assert!(changes.before("Note").is_absent() && !changes.after("Note").is_absent());
    assert!(changes.before("Gone").is_null());
    assert!(changes.after("Never").is_absent());
    let sides = changes
        .iter()
        .map(|(name, Change { before, .. })| (name, before.is_absent()));
    assert!(sides.eq([("Total", false), ("Note", true), ("Gone", false)]));

    #[derive(Deserialize)]
    struct MatchingModel {
        #[serde(rename = "Total")]
        total: Option<Change<f64>>,
        #[serde(rename = "Note")]
        note: Option<Change<Option<String>>>,
    }
    let fits: MatchingModel = changes.to().unwrap();
    assert_eq!(fits.total.unwrap().after, 2.5);
    let (before, after) = (None, Some("new".into()));
    assert_eq!(fits.note.unwrap(), Change { before, after });

    #[derive(Debug, Deserialize)]
    struct MismatchedModel {
        #[serde(rename = "Note")]
        _note: Option<Change<u8>>,
    }
    let error = changes.to::<MismatchedModel>().unwrap_err();
    assert_eq!(error.kind(), Kind::TypeMismatch);
    assert_eq!(error.path(), Some("data.changes.Note.after"));
}

#[test]
fn the_last_of_repeated_properties_is_read_and_both_are_kept() {
    let body = CREATED.replace(r#""Total":12.50"#, r#""Total":1,"Total":2"#);
    let EventData::RowCreated(row) = event::<Properties>(&body).unwrap().data else {
        panic!()
    };
    let last = row.properties.required().number("Total").unwrap();
    assert_eq!(last.as_str(), "2");
    assert_eq!(row.properties.to::<Order>().unwrap().total, 2.0);
    let totals = row.properties.iter().filter(|(name, _)| *name == "Total");
    assert_eq!(totals.count(), 2);
    let repeated = at(Kind::RepeatedKey, "data.properties.Total");
    assert_eq!(fails::<Order>(&body), repeated);
}

fn created(properties: &str) -> String {
    let (before, rest) = CREATED.split_once(r#"{"Name""#).unwrap();
    let (_, after) = rest.split_once(r#""Note":null}"#).unwrap();
    format!("{before}{properties}{after}")
}

fn row<R: DeserializeOwned>(properties: &str) -> Result<R, EventError> {
    let read = |body: String| match event::<R>(body)?.data {
        EventData::RowCreated(row) => Ok(row.properties),
        other => panic!("unexpected {}", other.event_type()),
    };
    let body = created(properties);
    let first = read(data_first(&body));
    let second = read(body);
    assert_eq!(first.is_ok(), second.is_ok());
    second
}

#[test]
fn a_rows_integer_takes_what_serde_json_takes() {
    #[derive(Debug, PartialEq, Deserialize)]
    struct Row {
        n: i64,
        small: Option<u8>,
        wide: i128,
        list: Vec<u64>,
    }
    let json = r#"{"n":-3,"small":255,"wide":-170141183460469231731687303715884105728,"list":[18446744073709551615,0]}"#;
    let expected = Row {
        n: -3,
        small: Some(255),
        wide: i128::MIN,
        list: vec![u64::MAX, 0],
    };
    assert_eq!(row::<Row>(json).unwrap(), expected);
    let properties: Properties = serde_json::from_str(json).unwrap();
    assert_eq!(properties.to::<Row>().unwrap(), expected);
}

// fault F32: a NUMBER below `flatten` or in an enum refuses its event for good, or is `None` in silence
#[test]
fn what_is_no_integer_for_serde_json_is_refused_with_its_path_and_position() {
    #[derive(Debug, Deserialize)]
    #[allow(dead_code)]
    struct Row<T> {
        n: Vec<T>,
    }
    let refused = |error: EventError, json: &str| {
        assert_eq!(error.kind(), Kind::TypeMismatch, "{json}: {error}");
        assert_eq!(error.path(), Some("data.properties.n[1]"), "{json}");
        // The position is that of the value, or of the character behind it.
        let body = created(&format!(r#"{{"n":[1,{json}]}}"#));
        let end = body.rfind(json).unwrap() + json.len();
        let column = error.column().unwrap();
        let is_there = column <= end + 1 && column + json.len() >= end;
        assert!(is_there, "{json}: {error}");
        error.to_string()
    };
    for (json, reason) in [
        ("3.0", "found a decimal number, expected"),
        ("1e3", "found a decimal number, expected"),
        ("3.5", "found a decimal number, expected"),
        ("1e307", "found a decimal number, expected"),
        (r#""3""#, "found a string, expected"),
        ("true", "found a boolean, expected"),
        ("null", "found null, expected"),
        ("[3]", "found an array, expected"),
        (r#"{"n":3}"#, "found an object, expected"),
    ] {
        let properties = format!(r#"{{"n":[1,{json}]}}"#);
        let errors = [
            row::<Row<i64>>(&properties).err(),
            row::<Row<u8>>(&properties).err(),
        ];
        for error in errors {
            let message = refused(error.expect(json), json);
            assert!(message.contains(reason), "{json}: {message}");
        }
        // Of 128 bits, serde_json reads the digits in front of a point, and gives no reason.
        let errors = [
            row::<Row<i128>>(&properties).err(),
            row::<Row<u128>>(&properties).err(),
        ];
        for error in errors {
            let error = error.expect(json);
            assert_eq!(error.kind(), Kind::TypeMismatch, "{json}: {error}");
            let path = error.path().unwrap();
            assert!(path.starts_with("data.properties.n"), "{json}: {path}");
        }
    }
    for json in ["256", "-1"] {
        let properties = format!(r#"{{"n":[1,{json}]}}"#);
        let message = refused(row::<Row<u8>>(&properties).unwrap_err(), json);
        let reason = "found an integer that does not fit, expected u8";
        assert!(message.contains(reason), "{message}");
    }
}

// fault F32: a NUMBER below `flatten` or in an enum refuses its event for good, or is `None` in silence
#[test]
fn a_flattened_option_is_none_where_an_integer_does_not_fit() {
    #[derive(Debug, Deserialize)]
    struct Row<T> {
        #[serde(flatten, bound = "T: DeserializeOwned")]
        stock: Option<Stock<T>>,
    }
    #[derive(Debug, Deserialize)]
    struct Stock<T> {
        qty: T,
    }
    let quantity = |json| row::<Row<i64>>(json).unwrap().stock.map(|stock| stock.qty);
    assert_eq!(quantity(r#"{"qty":3}"#), Some(3));
    assert_eq!(quantity(r#"{"qty":3.0}"#), None);
    let kept = row::<Row<Number>>(r#"{"qty":3.0}"#).unwrap().stock.unwrap();
    assert_eq!(kept.qty.to_i64(), Some(3));
    let float = row::<Row<f64>>(r#"{"qty":3.0}"#).unwrap().stock.unwrap();
    assert!((float.qty - 3.0).abs() < f64::EPSILON);
}

#[derive(Deserialize)]
struct Plain<T> {
    value: T,
}

#[derive(Deserialize)]
struct Flattened<T> {
    #[serde(flatten, bound = "T: DeserializeOwned")]
    inner: Plain<T>,
}

#[derive(Deserialize)]
struct FlattenedMap<T> {
    #[serde(flatten, bound = "T: DeserializeOwned")]
    rest: std::collections::HashMap<String, T>,
}

#[derive(Deserialize)]
#[serde(untagged)]
#[allow(dead_code)]
enum Untagged<T> {
    Other { other: bool },
    Plain(Plain<T>),
}

#[derive(Deserialize)]
#[serde(tag = "kind")]
enum InternallyTagged<T> {
    Plain { value: T },
}

#[derive(Deserialize)]
#[serde(tag = "kind", content = "content")]
enum AdjacentlyTagged<T> {
    Plain { value: T },
}

/// Returns what a type reads in each place where serde buffers a value first.
fn in_each_buffer<T: DeserializeOwned>(json: &str) -> Result<Vec<T>, EventError> {
    fn both<R: DeserializeOwned>(properties: &str) -> Result<[R; 2], EventError> {
        let kept: Properties = serde_json::from_str(properties).unwrap();
        Ok([row(properties)?, kept.to()?])
    }
    let plain = format!(r#"{{"value":{json}}}"#);
    let mut read = Vec::new();
    read.extend(both::<Flattened<T>>(&plain)?.map(|row| row.inner.value));
    for mut row in both::<FlattenedMap<T>>(&plain)? {
        read.extend(row.rest.remove("value"));
    }
    for row in both::<Untagged<T>>(&plain)? {
        match row {
            Untagged::Plain(row) => read.push(row.value),
            Untagged::Other { .. } => panic!("{json}"),
        }
    }
    for tagged in [
        format!(r#"{{"kind":"Plain","value":{json}}}"#),
        format!(r#"{{"value":{json},"kind":"Plain"}}"#),
    ] {
        let rows = both::<InternallyTagged<T>>(&tagged)?;
        read.extend(rows.map(|InternallyTagged::Plain { value }| value));
    }
    let tagged = format!(r#"{{"content":{plain},"kind":"Plain"}}"#);
    let rows = both::<AdjacentlyTagged<T>>(&tagged)?;
    read.extend(rows.map(|AdjacentlyTagged::Plain { value }| value));
    Ok(read)
}

// fault F32: a NUMBER below `flatten` or in an enum refuses its event for good, or is `None` in silence
#[test]
fn each_value_type_is_read_wherever_serde_buffers_it() {
    fn check<T: DeserializeOwned + Serialize>(json: &str, written: &str) {
        for value in in_each_buffer::<T>(json).unwrap() {
            assert_eq!(serde_json::to_string(&value).unwrap(), written, "{json}");
        }
        let values = in_each_buffer::<Option<T>>(json).unwrap();
        assert_eq!(values.len(), 12);
        for value in values {
            let value = value.expect("it is there");
            assert_eq!(serde_json::to_string(&value).unwrap(), written, "{json}");
        }
        for value in in_each_buffer::<Option<T>>("null").unwrap() {
            assert!(value.is_none());
        }
    }
    // Integers of 64 bits keep their digits; others have the shortest text of their float.
    let same = [
        "7",
        "-9223372036854775808",
        "18446744073709551615",
        "0.1",
        "3.0",
    ];
    let shortest = [("12.50", "12.5"), ("1e3", "1000.0")];
    let large = [("18446744073709551617", "1.8446744073709552e+19")];
    let all = same.map(|json| (json, json)).into_iter();
    for (json, written) in all.chain(shortest).chain(large) {
        check::<Number>(json, written);
        check::<Json>(json, written);
    }
    for date in [r#""2026-11-21""#, r#""2026-12-31T23:59:60Z""#] {
        check::<Date>(date, date);
        check::<DateText>(date, date);
        check::<Json>(date, date);
    }
    check::<RowId>(r#""row_1""#, r#""row_1""#);
    check::<DataModelId>(r#""dm_1""#, r#""dm_1""#);
    check::<Vec<RowId>>(r#"["row_1","row_2"]"#, r#"["row_1","row_2"]"#);
    let files = r#"[{"url":"https://files.example/1","name":"a.pdf"}]"#;
    check::<Vec<File>>(files, files);
    check::<Json>(files, files);
    let change = r#"{"before":null,"after":1.5}"#;
    check::<Change<Option<Number>>>(change, change);

    for (json, reason) in [
        (r#""7""#, "found a string, expected a number"),
        ("true", "found a boolean, expected a number"),
        ("[7]", "found an array, expected a number"),
        (r#"{"n":7}"#, "found an object, expected a number"),
    ] {
        let properties = format!(r#"{{"value":{json}}}"#);
        let error = row::<Flattened<Number>>(&properties).err().unwrap();
        assert_eq!(error.kind(), Kind::TypeMismatch);
        assert!(error.to_string().contains(reason), "{error}");
    }
}

#[test]
fn properties_without_a_field_of_their_own_are_kept_in_a_flattened_one() {
    #[derive(Deserialize)]
    struct Order {
        #[serde(rename = "Name")]
        name: String,
        #[serde(flatten)]
        rest: Properties,
    }
    let order: Order = row(r#"{"Name":"Ada","Total":7,"Due":"2026-11-21","Note":null}"#).unwrap();
    assert_eq!(order.name, "Ada");
    assert_eq!(order.rest.required().number("Total").unwrap().as_str(), "7");
    assert!(order.rest.required().date("Due").unwrap().is_date_only());
    assert_eq!(order.rest.text("Note").unwrap(), Field::Null);
}

#[test]
fn a_date_that_means_no_instant_is_no_reason_to_refuse_its_event() {
    #[derive(Debug, Deserialize)]
    struct Order {
        #[serde(rename = "Due")]
        due: Option<Date>,
    }
    for text in [
        "2026-12-31T23:59:60Z",
        "2026-11-21T09:30:00+0100",
        "2026-11-21T09:30:00",
        "2026-02-30",
    ] {
        let json = format!(r#"{{"Due":"{text}"}}"#);
        let due = row::<Order>(&json).unwrap().due.unwrap();
        assert_eq!(due.as_str(), text);
        let error = due.unix_seconds().unwrap_err();
        assert_eq!(error.kind(), Kind::TypeMismatch);
        assert!(!error.to_string().contains("2026"), "{error}");
    }
    let error = row::<Order>(r#"{"Due":"soon"}"#).unwrap_err();
    assert_eq!(error.path(), Some("data.properties.Due"));
}

#[test]
fn an_absent_or_null_property_is_the_default_where_the_type_says_so() {
    #[derive(Debug, Deserialize)]
    struct Order {
        #[serde(rename = "Customer", default, deserialize_with = "or_default")]
        customer: String,
        #[serde(rename = "Tags", default, deserialize_with = "or_default")]
        tags: Vec<String>,
        #[serde(rename = "Paid", default, deserialize_with = "or_default")]
        paid: bool,
    }
    for json in [r#"{"Customer":null,"Tags":null,"Paid":null}"#, "{}"] {
        let order: Order = row(json).unwrap();
        assert!(order.customer.is_empty() && order.tags.is_empty() && !order.paid);
    }
    let order: Order = row(r#"{"Customer":"Ada","Tags":["a"],"Paid":true}"#).unwrap();
    assert!(order.customer == "Ada" && order.tags == ["a"] && order.paid);
    let error = row::<Order>(r#"{"Tags":["a",7]}"#).unwrap_err();
    assert_eq!(error.path(), Some("data.properties.Tags[1]"));
}

#[test]
fn a_missing_name_that_looks_like_one_in_the_row_is_named_beside_it() {
    #[derive(Debug, Deserialize)]
    struct Person {
        #[serde(rename = "Prénom")]
        _name: String,
    }
    for (name, escaped) in [
        ("Pre\u{301}nom", r"Pre\u{301}nom"),
        ("prénom", r"pr\u{e9}nom"),
        ("Prénom ", r"Pr\u{e9}nom "),
        ("Prénom\u{a0}", r"Pr\u{e9}nom\u{a0}"),
        ("Prén\u{43e}m", r"Pr\u{e9}n\u{43e}m"),
        ("Prenom", "Prenom"),
    ] {
        let json = format!(r#"{{"Nom":"SECRET","{name}":"SECRET"}}"#);
        let expected = format!(r#"data.properties.Prénom is missing; the row has "{escaped}""#);
        let properties: Properties = serde_json::from_str(&json).unwrap();
        let changes: hookgate::event::Changes =
            serde_json::from_str(&format!(r#"{{"{name}":{{"after":"SECRET"}}}}"#)).unwrap();
        let errors = [
            row::<Person>(&json).unwrap_err(),
            properties.to::<Person>().unwrap_err(),
            properties.required().text("Prénom").unwrap_err(),
            properties.required().to::<String>("Prénom").unwrap_err(),
            changes.to::<Person>().unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.kind(), Kind::Missing);
            let message = error.to_string().replace("data.changes", "data.properties");
            assert!(message.starts_with(&expected), "{message}");
            assert!(!format!("{error} {error:?}").contains("SECRET"));
        }
    }
    // A field inside a value, another name, and no name at all.
    #[derive(Debug, Deserialize)]
    struct Files {
        #[serde(rename = "Files")]
        _files: Vec<File>,
    }
    let error = row::<Files>(r#"{"URL":1,"Files":[{"name":"a"}]}"#).unwrap_err();
    assert_eq!(error.path(), Some("data.properties.Files[0].url"));
    assert!(!error.to_string().contains("the row has"), "{error}");
    for json in [r#"{"Vorname":"SECRET"}"#, "{}"] {
        let error = row::<Person>(json).unwrap_err();
        assert!(!error.to_string().contains("the row has"), "{error}");
    }
}

#[test]
fn a_type_mismatch_names_its_path_its_model_and_its_position_in_either_order() {
    let spread = CREATED.replace(r#""data":{"#, "\n \"data\":{\n  ");
    for body in [CREATED.to_owned(), data_first(CREATED), spread] {
        let body = body.replace("12.50", r#""much""#);
        let error = event::<Order>(&body).unwrap_err();
        assert_eq!(error.kind(), Kind::TypeMismatch);
        assert_eq!(error.path(), Some("data.properties.Total"));
        assert_eq!(error.model().unwrap(), &"dm_1");
        assert_eq!(error.model_name(), Some("Orders"));
        let line = body.lines().nth(error.line().unwrap() - 1).unwrap();
        let up_to_there = &line[..error.column().unwrap()];
        assert!(up_to_there.ends_with(r#""much""#), "{error}");
        let said = error.to_string();
        assert!(said.contains("found a string, expected f64"), "{said}");
    }
}

#[test]
fn missing_repeated_and_mismatched_fields_are_named() {
    let without = |field: &str| CREATED.replacen(&format!("\"{field}\":"), "\"else\":", 1);
    for (field, path) in [
        ("id", "id"),
        ("type", "type"),
        ("createdAt", "createdAt"),
        ("workspaceId", "workspaceId"),
        ("data", "data"),
        ("datamodelId", "data.datamodelId"),
        ("datamodelName", "data.datamodelName"),
        ("rowId", "data.rowId"),
        ("properties", "data.properties"),
        ("createdBy", "data.createdBy"),
        ("name", "data.createdBy.name"),
        ("Total", "data.properties.Total"),
    ] {
        let body = match field {
            // A file has a name as well.
            "name" => CREATED.replace(r#""name":"Bo","#, ""),
            _ => without(field),
        };
        if field == "createdBy" {
            assert!(event::<Order>(&body).is_ok());
        } else {
            assert_eq!(fails::<Order>(&body), at(Kind::Missing, path), "{field}");
        }
        let first = match field {
            "properties" => r#"{"Name":"","Total":1}"#,
            "createdBy" => r#"{"id":"","name":""}"#,
            "data" => &CREATED[CREATED.find(r#"{"datamodelId"#).unwrap()..CREATED.len() - 1],
            "Total" => "1",
            "type" => r#""row.created""#,
            _ => r#""x""#,
        };
        let twice = format!("\"{field}\":{first},\"{field}\":");
        let doubled = match field {
            "name" => CREATED.replace(r#""name":"Bo""#, r#""name":"Bo","name":"Bo""#),
            _ => CREATED.replacen(&format!("\"{field}\":"), &twice, 1),
        };
        for doubled in [data_first(&doubled), doubled] {
            let repeated = at(Kind::RepeatedKey, path);
            assert_eq!(fails::<Order>(&doubled), repeated, "{field}");
        }
    }
    let (mismatch, unusable) = (Kind::TypeMismatch, Kind::Unusable);
    #[rustfmt::skip] // a row a case
    let cases = [
        (CREATED, r#""id":"evt_1""#, r#""id":1"#, mismatch, "id"),
        (CREATED, r#""id":"evt_1""#, r#""id":"\u0000""#, unusable, "id"),
        (CREATED, r#""type":"row.created""#, r#""type":"""#, unusable, "type"),
        (CREATED, r#""data":{"#, r#""data":[],"x":{"#, mismatch, "data"),
        (CREATED, r#""createdBy":{"#, r#""createdBy":[],"x":{"#, mismatch, "data.createdBy"),
        (CREATED, r#""email":"bo@example.com""#, r#""email":1"#, mismatch, "data.createdBy.email"),
        (CREATED, r#""name":"Bo""#, r#""name":null"#, mismatch, "data.createdBy.name"),
        (UPDATED, r#"{"before":1.10,"after":2.50}"#, "5", mismatch, "data.changes.Total"),
        (UPDATED, r#""after":2.50"#, r#""before":2.50"#, Kind::RepeatedKey, "data.changes.Total.before"),
    ];
    for (body, from, to, kind, path) in cases {
        let edited = body.replacen(from, to, 1);
        assert_eq!(fails::<Order>(edited), at(kind, path), "{to}");
    }
}

#[test]
fn fields_that_no_handler_reads_are_checked_too() {
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    for (value, kind) in [
        (r#""\ud800""#.to_owned(), Kind::LoneSurrogate),
        (r#"{"\udc00":1}"#.to_owned(), Kind::LoneSurrogate),
        ("1e400".to_owned(), Kind::NumberOutOfRange),
        ("-1E+999".to_owned(), Kind::NumberOutOfRange),
        ("9".repeat(400), Kind::NumberOutOfRange),
        (nested(127), Kind::TooDeep),
        ("01".to_owned(), Kind::Syntax),
        ("NaN".to_owned(), Kind::Syntax),
        ("\"\t\"".to_owned(), Kind::Syntax),
        (r#""\x""#.to_owned(), Kind::Syntax),
    ] {
        for place in [r#""Big":1e5"#, r#""id":"usr_1""#, r#""workspaceId":"ws_1""#] {
            let body = CREATED.replace(place, &format!("{place},\"ignored\":{value}"));
            assert_eq!(fails::<Properties>(&body).0, kind, "{value}");
            assert_eq!(fails::<Order>(&body).0, kind, "{value}");
        }
    }
    // Body, data and properties are three levels.
    let ignored = |levels| CREATED.replace("1e5", &nested(levels));
    assert!(event::<Order>(ignored(124)).is_ok());
    assert_eq!(fails::<Order>(ignored(125)).0, Kind::TooDeep);

    assert_eq!(fails::<Order>(format!("{CREATED} x")).0, Kind::Syntax);
    assert_eq!(fails::<Order>(format!("\u{feff}{CREATED}")).0, Kind::Syntax);
    assert_eq!(fails::<Order>(format!("[{CREATED}]")).0, Kind::NotAnObject);
    assert_eq!(fails::<Order>("").0, Kind::Syntax);
    let mut broken = CREATED.as_bytes().to_vec();
    broken[CREATED.find("Bo").unwrap() + 1] = 0xff;
    let error = event::<Order>(&broken).unwrap_err();
    assert_eq!(error.kind(), Kind::NotText);
    assert!(error.source().is_some());
}

#[test]
fn a_pinned_ring_takes_its_own_workspace_only() {
    for body in [CREATED.to_owned(), data_first(CREATED)] {
        let ring = |workspace| KeyRing::new(secret()).with_workspace(workspace).unwrap();
        let own = verified_by(ring("ws_1"), &secret(), &body);
        assert!(EventHead::from_verified(&own).is_ok());
        assert!(Event::<Order>::from_verified(&own).is_ok());
        for body in [&body, &body.replace("12.50", "null")] {
            let foreign = verified_by(ring("ws_2"), &secret(), body);
            let head = EventHead::from_verified(&foreign).unwrap_err();
            let whole = Event::<Order>::from_verified(&foreign).unwrap_err();
            assert_eq!([head.kind(), whole.kind()], [Kind::WorkspaceMismatch; 2]);
        }
    }
}

#[test]
fn no_value_shows_in_any_debug_or_message() {
    const SECRET: &str = "SECRET";
    let hidden = [
        "Ada",
        "Orders",
        "Bo",
        "bo@example.com",
        "a.pdf",
        "2026-11-21T09:30:00.123Z",
    ];
    let created = hidden
        .iter()
        .fold(CREATED.to_owned(), |body, text| body.replace(text, SECRET));
    let created = created
        .replace("\"open\"", "\"SECRET, expected SECRET\"")
        .replace("12.50", "\"SECRET\"");
    let updated = UPDATED
        .replace("1.10", "\"SECRET\"")
        .replace("\"new\"", "\"SECRET\"");
    let other = OTHER.replace("1.10", "\"SECRET\"");

    let mut shown = Vec::new();
    let mut show = |value: &dyn Debug| shown.push(format!("{value:?} {value:#?}"));
    for body in [&created, &updated, &other] {
        let event = event::<Properties>(body).unwrap();
        show(&event);
        show(&event.data);
        match &event.data {
            EventData::RowCreated(row) => {
                show(&row.properties);
                show(&row.properties.required());
                show(&row.created_by);
                show(&row.properties.value("Name"));
                show(&row.properties.value("Name").json());
                show(&row.properties.files("Files").unwrap());
            }
            EventData::RowUpdated(row) => {
                show(&row.changes);
                show(&row.changes.iter().collect::<Vec<_>>());
            }
            _ => {}
        }
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum State {
        Open,
    }
    #[derive(Debug, Deserialize)]
    struct OnlyKnownStates {
        #[serde(rename = "State")]
        _state: State,
    }
    #[derive(Debug, Deserialize)]
    struct Silent {
        #[serde(rename = "State", deserialize_with = "refuse")]
        _state: String,
    }
    fn refuse<'de, D: serde::Deserializer<'de>>(json: D) -> Result<String, D::Error> {
        Err(serde::de::Error::custom(String::deserialize(json)?))
    }
    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Strict {}
    let _ = State::Open;
    let errors = [
        event::<Order>(&created).unwrap_err(),
        event::<OnlyKnownStates>(&created).unwrap_err(),
        event::<Silent>(&created).unwrap_err(),
        event::<Strict>(created.replace("\"Name\"", "\"SECRETS\"")).unwrap_err(),
        event::<Order>(created.replace("\"id\":\"usr_1\"", "\"id\":[\"SECRET\"]")).unwrap_err(),
        event::<Order>(created.replace("row.created", " ")).unwrap_err(),
        event::<Order>(&created[..created.len() - 9]).unwrap_err(),
    ];
    for error in &errors {
        let with_chain = |error: &EventError| format!("{error} {error:?} {:?}", error.source());
        // A property's name may show in a path, and nowhere else.
        let path = error.path().unwrap_or("-").to_owned();
        shown.push(with_chain(error).replace(&path, "path"));
    }
    let said = errors[1].to_string();
    assert!(
        said.contains("found an unknown variant, expected `open`"),
        "{said}"
    );
    for text in shown {
        assert!(!text.contains(SECRET), "{text}");
    }
}

#[test]
fn no_truncation_is_an_event_and_none_panics() {
    for body in ALL {
        for end in 0..body.len() {
            let verified = verified(&body.as_bytes()[..end]);
            assert!(Event::<Properties>::from_verified(&verified).is_err());
            assert!(Event::<Order>::from_verified(&verified).is_err());
            let _ = EventHead::from_verified(&verified);
        }
    }
}

#[test]
fn no_edit_of_a_byte_panics() {
    for body in ALL {
        let mut bytes = body.as_bytes().to_vec();
        for at in 0..bytes.len() {
            let kept = bytes[at];
            for edit in *b"\"\\{}[]:,u0-e\x00\x1f\x80\xff " {
                bytes[at] = edit;
                let verified = verified(&bytes);
                let head = EventHead::from_verified(&verified);
                if let Ok(event) = Event::<Properties>::from_verified(&verified) {
                    assert_eq!(head.unwrap().id, event.id);
                    let again = serde_json::to_string(&event).unwrap();
                    let text = str::from_utf8(&bytes).unwrap();
                    assert_eq!(canonical(&again), canonical(text));
                }
                if let Err(error) = Event::<Order>::from_verified(&verified) {
                    assert!(!error.to_string().is_empty());
                }
            }
            bytes[at] = kept;
        }
    }
}

/// Any JSON value, as text.
fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|value| value.to_string()),
        "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,9})?([eE][+-]?[0-9]{1,2})?",
        any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap()),
        Just(r#""\ud83d\ude00\/\u0041""#.to_owned()),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let items = prop::collection::vec(inner.clone(), 0..4);
        let array = items.prop_map(|items| format!("[{}]", items.join(",")));
        prop_oneof![
            array,
            object(prop::collection::vec((any::<String>(), inner), 0..4))
        ]
    })
}

fn object(fields: impl Strategy<Value = Vec<(String, String)>>) -> impl Strategy<Value = String> {
    fields.prop_map(|fields| {
        let field = |(name, value)| format!("{}:{value}", serde_json::to_string(&name).unwrap());
        let fields: Vec<_> = fields.into_iter().map(field).collect();
        format!("{{ {} }}", fields.join(" ,\n"))
    })
}

/// An object with these fields and any others, in any order.
fn shuffled(fields: Vec<(&'static str, BoxedStrategy<String>)>) -> BoxedStrategy<String> {
    let named = |(name, value): (&'static str, BoxedStrategy<String>)| {
        value
            .prop_map(move |value| (name.to_owned(), value))
            .boxed()
    };
    let fields: Vec<_> = fields.into_iter().map(named).collect();
    // No field of the specification begins like this.
    let extra = prop::collection::vec(("_[a-z\"é]{0,5}", value()), 0..3);
    let all = (fields, extra).prop_map(|(mut fields, extra)| {
        fields.extend(extra);
        fields
    });
    object(all.prop_shuffle()).boxed()
}

fn text(text: &'static str) -> BoxedStrategy<String> {
    Just(format!("\"{text}\"")).boxed()
}

fn any_event() -> impl Strategy<Value = String> {
    let named_actor = || vec![("id", text("usr_1")), ("name", text("Bo"))];
    let actor = || {
        let email = prop_oneof![text("bo@example.com"), Just("null".into())];
        shuffled([named_actor(), vec![("email", email.boxed())]].concat())
    };
    let row = |content: Vec<(&'static str, BoxedStrategy<String>)>| {
        let ids = [
            ("datamodelId", "dm"),
            ("datamodelName", "n"),
            ("rowId", "r"),
        ];
        let ids = ids.map(|(name, id)| (name, text(id)));
        shuffled(ids.into_iter().chain(content).collect())
    };
    let named = |value: BoxedStrategy<String>| {
        object(prop::collection::vec((any::<String>(), value), 0..5)).boxed()
    };
    let change = shuffled(
        ["before", "after"]
            .map(|side| (side, value().boxed()))
            .to_vec(),
    );
    let envelope = |event_type, data| {
        shuffled(vec![
            ("id", text("evt_1")),
            ("type", text(event_type)),
            ("createdAt", text("2026-11-21T09:30:00Z")),
            ("workspaceId", text("ws_1")),
            ("data", data),
        ])
    };
    let properties = ("properties", named(value().boxed()));
    let created = row(vec![properties, ("createdBy", actor())]);
    let updated = row(vec![("changes", named(change)), ("updatedBy", actor())]);
    let deleted = row(vec![("deletedBy", shuffled(named_actor()))]);
    prop_oneof![
        envelope("row.created", created),
        envelope("row.updated", updated),
        envelope("row.deleted", deleted),
        envelope("member.invited", value().boxed()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(128) })]

    #[test]
    fn any_event_in_any_order_of_fields_is_written_again_as_it_was_read(body in any_event()) {
        let verified = verified(&body);
        let event = Event::<Properties>::from_verified(&verified).unwrap();
        prop_assert_eq!(&EventHead::from_verified(&verified).unwrap().id, &event.id);
        let again = serde_json::to_string(&event).unwrap();
        prop_assert_eq!(canonical(&again), canonical(&body));
    }

    #[test]
    fn no_bytes_panic(body in prop::collection::vec(any::<u8>(), 0..200)) {
        let verified = verified(&body);
        prop_assert!(Event::<Properties>::from_verified(&verified).is_err());
        prop_assert!(EventHead::from_verified(&verified).is_err());
    }

    #[test]
    fn a_date_is_parsed_or_refused_and_never_panics(text in "[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]{1,10})?(Z|[+-][0-9]{2}:[0-9]{2}))?") {
        if let Ok(date) = Date::parse(&text) {
            prop_assert_eq!(date.as_str(), &text);
            let _ = (date.unix_nanos(), date.to_system_time());
        }
    }
}
