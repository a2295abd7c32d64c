//! Typed events against plain structs of a known type, in one interleaved run:
//! `cargo bench -p hookgate-benches --bench parse`.
//!
//! The peers are written for one known type of event: a derived struct with the same fields, the
//! same owned texts and **the same `R`**, read by `serde_json::from_str` after one check of UTF-8,
//! which is the fastest way that serde_json has (`from_slice` checks each text by itself and is
//! slower).
//!
//! - *Plain* does not check the parts that `R` skips: half surrogate pairs, numbers beyond a float,
//!   nesting without end.
//! - *Plain, all checked* accepts and refuses the same bodies as `Event<R>`, with the means of
//!   serde: a visitor that walks over the whole body and builds nothing.
//!
//! `Event<R>` must not take more than 1.05 times as long as the second, which does the same work,
//! and must stay below a ceiling relative to the first. With `-- --check`, a missed goal fails the
//! run.

#![allow(clippy::print_stdout, clippy::unwrap_used)] // A bench prints, and panics on an unexpected result.

use std::hint::black_box;
use std::time::Duration;

use hookgate::{
    Event, EventData, Properties, Secret, Verified, Verifier,
    clock::UnixSeconds,
    event::{ActorId, DataModelId, DateText, EventErrorKind, EventHead, RowId, WorkspaceId},
    verify::{DeliveryHeaders, Signature, Timestamp},
};
use serde::de::{DeserializeOwned, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

mod support;

use support::{Arguments, Case, Contestant};

const ROUNDS: usize = 201;
const TURN: Duration = Duration::from_micros(300);
/// The greatest time of `Event<R>`, as a multiple of a plain struct whose whole body is checked
/// too.
const REQUIRED: f64 = 1.05;
/// The same relative to a plain struct that does no further checks: for small rows, and for rows of
/// which it skips nearly all. The measured ratio is well below this; a ratio above it is a
/// regression.
const CEILING: f64 = 1.50;

const PLAIN: &str = "plain struct of known type";
const CHECKED: &str = "plain struct, all checked";
const EVENT: &str = "Event<R>";
const HEAD: &str = "head alone: id and type";
const TYPE_MISMATCH: &str = "a misfit, and its path found";
const TAGGED: &str = "enum that serde derives (tag, content, flatten)";
const VALUE: &str = "serde_json::Value, then the struct";

fn main() {
    let arguments = Arguments::read();
    println!("CPU: {}", support::cpu());
    let (small, big) = (signed(&small_body("7")), signed(&big_body("7")));
    let (small_misfit, big_misfit) = (signed(&small_body("\"7\"")), signed(&big_body("\"7\"")));
    println!(
        "small: {} B, 8 properties; big: {} B, 200 properties",
        small.body().len(),
        big.body().len()
    );
    let mut cases = vec![
        compare_all("small, R = struct of 8", &small, &small_misfit),
        compare::<WithRaw>("small, R = struct of 8, one a RawValue", &small),
        compare::<Properties>("small, R = Properties", &small),
        compare_all("big, R = struct of 8", &big, &big_misfit),
        compare::<WithRaw>("big, R = struct of 8, one a RawValue", &big),
        compare::<All>("big, R = struct of 200", &big),
        compare::<Properties>("big, R = Properties", &big),
    ];
    let missed = print_table(&cases);
    cases.extend(look_up_by_name());
    arguments.record("parse", "ns", &cases);
    if arguments.has("--check") && missed > 0 {
        println!("{missed} required goals missed");
        std::process::exit(1);
    }
}

fn print_table(cases: &[Case]) -> usize {
    println!(
        "\n{:<42}{:>10}{:>14}",
        "Event<R>, as a multiple of", "plain", "all checked"
    );
    let mut missed = 0;
    for case in cases {
        let (plain, checked) = (case.ratio(EVENT, PLAIN), case.ratio(EVENT, CHECKED));
        let verdict = if checked > REQUIRED || plain > CEILING {
            missed += 1;
            "MISSED"
        } else {
            "met"
        };
        println!("  {:<40}{plain:>10.2}{checked:>14.2} {verdict}", case.name);
    }
    println!("required: {REQUIRED:.2} of all checked, and below {CEILING:.2} of plain");
    println!("\nothers, Event<R> = 1");
    for case in cases {
        let others = case
            .series
            .iter()
            .filter(|series| ![PLAIN, CHECKED, EVENT].contains(&&*series.name));
        for series in others {
            let name = case.name.split(',').next().unwrap();
            println!(
                "  {name:<6} {:<50} {:.2}",
                series.name,
                case.ratio(&series.name, EVENT)
            );
        }
    }
    missed
}

/// The contestants that the goal applies to.
fn contestants<'a, R: DeserializeOwned + 'static>(
    verified: &'a Verified<String>,
) -> Vec<Contestant<'a>> {
    vec![
        (
            PLAIN,
            Box::new(|| {
                let text = std::str::from_utf8(black_box(verified.body())).unwrap();
                let event: Plain<R> = serde_json::from_str(text).unwrap();
                black_box(event).kind.len() == "row.created".len()
            }),
        ),
        (
            CHECKED,
            Box::new(|| {
                let text = std::str::from_utf8(black_box(verified.body())).unwrap();
                let _: Anything = serde_json::from_str(text).unwrap();
                let event: Plain<R> = serde_json::from_str(text).unwrap();
                black_box(event).kind.len() == "row.created".len()
            }),
        ),
        (
            EVENT,
            Box::new(|| {
                let event = Event::<R>::from_verified(black_box(verified)).unwrap();
                matches!(black_box(event).data, EventData::RowCreated(_))
            }),
        ),
    ]
}

/// Compares those alone.
fn compare<R: DeserializeOwned + 'static>(name: &str, verified: &Verified<String>) -> Case {
    support::interleaved(name, contestants::<R>(verified), ROUNDS, TURN)
}

/// Compares those and all others.
fn compare_all(name: &str, verified: &Verified<String>, misfit: &Verified<String>) -> Case {
    let mut contestants = contestants::<Order>(verified);
    let more: [Contestant<'_>; 4] = [
        (
            HEAD,
            Box::new(|| EventHead::from_verified(black_box(verified)).is_ok()),
        ),
        (
            TYPE_MISMATCH,
            Box::new(|| {
                let error = Event::<Order>::from_verified(black_box(misfit)).unwrap_err();
                assert_eq!(error.path(), Some("data.properties.Lines"));
                error.kind() == EventErrorKind::TypeMismatch
            }),
        ),
        (
            TAGGED,
            Box::new(|| {
                let text = std::str::from_utf8(black_box(verified.body())).unwrap();
                serde_json::from_str::<Tagged<Order>>(text)
                    .is_ok_and(|event| !black_box(event).id.is_empty())
            }),
        ),
        (
            VALUE,
            Box::new(|| {
                let value: Value = serde_json::from_slice(black_box(verified.body())).unwrap();
                black_box(serde_json::from_value::<Plain<Order>>(value)).is_ok()
            }),
        ),
    ];
    contestants.extend(more);
    support::interleaved(name, contestants, ROUNDS, TURN)
}

/// Reads a whole text and keeps nothing. `IgnoredAny` checks less: serde_json does not check the
/// values that it skips.
struct Anything;

impl<'de> Deserialize<'de> for Anything {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        json.deserialize_any(Self)
    }
}

macro_rules! take {
    ($($visit:ident($($value:ty)?)),*) => {$(
        fn $visit<E>(self $(, _: $value)?) -> Result<Self, E> {
            Ok(Self)
        }
    )*};
}

impl<'de> Visitor<'de> for Anything {
    type Value = Self;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("anything")
    }

    take!(
        visit_unit(),
        visit_bool(bool),
        visit_i64(i64),
        visit_u64(u64),
        visit_f64(f64),
        visit_str(&str)
    );

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self, A::Error> {
        while seq.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self, A::Error> {
        while map.next_entry::<Self, Self>()?.is_some() {}
        Ok(self)
    }
}

/// A struct for one known type of event. The ids are of the crate's types where they can be
/// deserialised.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Plain<R> {
    #[serde(rename = "id")]
    _id: String,
    #[serde(rename = "type")]
    kind: String,
    #[serde(rename = "createdAt")]
    _created_at: DateText,
    #[serde(rename = "workspaceId")]
    _workspace_id: WorkspaceId,
    #[serde(rename = "data")]
    _data: Row<R>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row<R> {
    #[serde(rename = "datamodelId")]
    _datamodel_id: DataModelId,
    #[serde(rename = "datamodelName")]
    _datamodel_name: String,
    #[serde(rename = "rowId")]
    _row_id: RowId,
    #[serde(rename = "properties")]
    _properties: R,
    #[serde(rename = "createdBy")]
    _created_by: Actor,
}

#[derive(Deserialize)]
struct Actor {
    #[serde(rename = "id")]
    _id: ActorId,
    #[serde(rename = "name")]
    _name: String,
    #[serde(rename = "email")]
    _email: Option<String>,
}

/// The form that serde's documentation suggests for several types of event with common fields.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tagged<R> {
    id: String,
    #[serde(rename = "createdAt")]
    _created_at: DateText,
    #[serde(rename = "workspaceId")]
    _workspace_id: WorkspaceId,
    #[serde(flatten, bound = "R: DeserializeOwned")]
    _kind: Kind<R>,
}

#[derive(Deserialize)]
#[serde(tag = "type", content = "data", bound = "R: DeserializeOwned")]
#[allow(dead_code, clippy::enum_variant_names)] // the fields are only deserialised, and the names are those of the service
enum Kind<R> {
    #[serde(rename = "row.created")]
    RowCreated(Row<R>),
    #[serde(rename = "row.updated")]
    RowUpdated(Value),
    #[serde(rename = "row.deleted")]
    RowDeleted(Value),
}

/// Eight of the properties.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
#[allow(dead_code)] // the fields are only deserialised
struct Order {
    number: String,
    customer: String,
    total: f64,
    due: String,
    paid: bool,
    tags: Vec<String>,
    lines: u32,
    note: String,
}

/// The same, with one property kept as it was written.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
#[allow(dead_code)] // the fields are only deserialised
struct WithRaw {
    number: String,
    customer: String,
    total: Box<RawValue>,
    due: String,
    paid: bool,
    tags: Vec<String>,
    lines: u32,
    note: String,
}

macro_rules! wide {
    ($($text:ident $number:ident $flag:ident $list:ident;)*) => {
        /// All 200 properties of the large row: the eight, and 48 times four.
        #[derive(Deserialize)]
        #[allow(dead_code)] // the fields are only deserialised
        struct All {
            #[serde(rename = "Number")]
            number: String,
            #[serde(rename = "Customer")]
            customer: String,
            #[serde(rename = "Total")]
            total: f64,
            #[serde(rename = "Due")]
            due: String,
            #[serde(rename = "Paid")]
            paid: bool,
            #[serde(rename = "Tags")]
            tags: Vec<String>,
            #[serde(rename = "Lines")]
            lines: u32,
            #[serde(rename = "Note")]
            note: String,
            $($text: String, $number: f64, $flag: bool, $list: Vec<String>,)*
        }

        /// Returns the properties that only the large row has.
        fn more_properties() -> String {
            let mut text = String::new();
            $(
                text += &format!(
                    r#","{}":"{}","{}":1234.5,"{}":true,"{}":["new","priority"]"#,
                    stringify!($text),
                    "wide words ".repeat(85),
                    stringify!($number),
                    stringify!($flag),
                    stringify!($list),
                );
            )*
            text
        }
    };
}
wide! {
    text_0 number_0 flag_0 list_0; text_1 number_1 flag_1 list_1; text_2 number_2 flag_2 list_2; text_3 number_3
    flag_3 list_3; text_4 number_4 flag_4 list_4; text_5 number_5 flag_5 list_5; text_6 number_6 flag_6 list_6;
    text_7 number_7 flag_7 list_7; text_8 number_8 flag_8 list_8; text_9 number_9 flag_9 list_9; text_10 number_10
    flag_10 list_10; text_11 number_11 flag_11 list_11; text_12 number_12 flag_12 list_12; text_13 number_13
    flag_13 list_13; text_14 number_14 flag_14 list_14; text_15 number_15 flag_15 list_15; text_16 number_16
    flag_16 list_16; text_17 number_17 flag_17 list_17; text_18 number_18 flag_18 list_18; text_19 number_19
    flag_19 list_19; text_20 number_20 flag_20 list_20; text_21 number_21 flag_21 list_21; text_22 number_22
    flag_22 list_22; text_23 number_23 flag_23 list_23; text_24 number_24 flag_24 list_24; text_25 number_25
    flag_25 list_25; text_26 number_26 flag_26 list_26; text_27 number_27 flag_27 list_27; text_28 number_28
    flag_28 list_28; text_29 number_29 flag_29 list_29; text_30 number_30 flag_30 list_30; text_31 number_31
    flag_31 list_31; text_32 number_32 flag_32 list_32; text_33 number_33 flag_33 list_33; text_34 number_34
    flag_34 list_34; text_35 number_35 flag_35 list_35; text_36 number_36 flag_36 list_36; text_37 number_37
    flag_37 list_37; text_38 number_38 flag_38 list_38; text_39 number_39 flag_39 list_39; text_40 number_40
    flag_40 list_40; text_41 number_41 flag_41 list_41; text_42 number_42 flag_42 list_42; text_43 number_43
    flag_43 list_43; text_44 number_44 flag_44 list_44; text_45 number_45 flag_45 list_45; text_46 number_46
    flag_46 list_46; text_47 number_47 flag_47 list_47;
}

fn small_body(lines: &str) -> String {
    body(lines, "")
}

fn big_body(lines: &str) -> String {
    body(lines, &more_properties())
}

fn body(lines: &str, more: &str) -> String {
    format!(
        r#"{{"id":"evt_0123456789abcdef","type":"row.created","createdAt":"2026-11-21T09:30:00.000Z","workspaceId":"ws_0123456789abcdef","data":{{"datamodelId":"dm_orders","datamodelName":"Orders","rowId":"row_0123456789abcdef","properties":{{"Number":"2026-004711","Customer":"Ada Lovelace","Total":1234.56,"Due":"2026-12-01","Paid":false,"Tags":["new","priority"],"Lines":{lines},"Note":"Deliver to the back door, and ring twice: the shutdown is weak."{more}}},"createdBy":{{"id":"usr_0123456789abcdef","name":"Grace Hopper","email":"grace@example.com"}}}}}}"#
    )
}

/// Returns the verified body that an event is read from.
fn signed(body: &str) -> Verified<String> {
    let secret = Secret::new("whsec_made_up_for_the_parse_bench").unwrap();
    let now = UnixSeconds::new(1_763_690_000);
    let timestamp = Timestamp::at(now).unwrap();
    let signature = Signature::sign(&secret, &timestamp, body.as_bytes()).to_header_value();
    let pairs = [
        ("x-service-timestamp", timestamp.as_str()),
        ("x-service-signature", &signature),
    ];
    let headers = DeliveryHeaders::from_pairs(pairs).unwrap();
    Verifier::new(secret)
        .verify(&headers, body.to_owned(), now)
        .unwrap()
}

/// Compares a look-up by name for each of many properties with one walk over them: the ratio must
/// not grow with their number.
fn look_up_by_name() -> Vec<Case> {
    const WALK: &str = "one walk over all";
    const BY_NAME: &str = "each by its name";
    println!("\nProperties of one row, each looked up by its name; one walk over all of them = 1");
    [8, 100, 1_000, 10_000]
        .map(|count: usize| {
            let names: Vec<String> = (0..count).map(|n| format!("Property {n}")).collect();
            let fields: Vec<String> = names
                .iter()
                .map(|name| format!("\"{name}\":{count}"))
                .collect();
            let text = format!("{{{}}}", fields.join(","));
            let properties: Properties = serde_json::from_str(&text).unwrap();
            let number = |value: &hookgate::event::Value<'_>| {
                value.to::<u64>().unwrap().into_option() == Some(count as u64)
            };
            let contestants: Vec<Contestant<'_>> = vec![
                (
                    WALK,
                    Box::new(|| properties.iter().all(|(_, value)| number(&value))),
                ),
                (
                    BY_NAME,
                    // A clone has no index yet, so that making the index counts too.
                    Box::new(|| {
                        let fresh = properties.clone();
                        names.iter().all(|name| number(&fresh.value(name)))
                    }),
                ),
                (
                    "the clone alone",
                    Box::new(|| !black_box(properties.clone()).is_empty()),
                ),
            ];
            let case = support::interleaved(&format!("{count} properties"), contestants, 21, TURN);
            let clone = case.ratio("the clone alone", WALK);
            println!("  {count:>6} {:>8.1}", case.ratio(BY_NAME, WALK) - clone);
            case
        })
        .into()
}
