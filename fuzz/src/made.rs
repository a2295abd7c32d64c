//! Bodies made from choices: almost valid events, so that the fuzzer spends its time on more than
//! the grammar.

use super::choices::Choices;

pub const SECRETS: [&str; 3] = [
    "whsec_made_up_for_fuzzing_only",
    "whsec_made_up_as_its_successor",
    "whsec_made_up_and_longer_than_the_64_bytes_of_a_block_of_sha256_so_it_is_hashed",
];
pub const NOW: i64 = 1_763_690_000;
/// Marks values that no message may repeat.
pub const MARK: &str = "5ecret";

const NAMES: [&str; 22] = [
    "id",
    "type",
    "data",
    "workspaceId",
    "createdAt",
    "datamodelId",
    "datamodelName",
    "rowId",
    "properties",
    "changes",
    "createdBy",
    "updatedBy",
    "deletedBy",
    "name",
    "email",
    "before",
    "after",
    "Total",
    "\\u0069d",
    "t\\u0079pe",
    "Id",
    "",
];
const TEXTS: [&[u8]; 24] = [
    b"evt_1",
    b"row.created",
    b"row.updated",
    b"row.deleted",
    b"page.updated",
    b"ws_1",
    b"ws_2",
    b"2026-11-21T09:30:00Z",
    b"2024-02-29",
    b"5ecret@example.com",
    b"evt_\\u0031",
    b"",
    b" \\t",
    b"a\\u0000",
    b"\\ud83d\\ude00",
    b"\\ud83d",
    b"\\ude00\\ud83d",
    b"\xff",
    b"\xc3\xa9",
    b"\x01",
    b"\\x",
    b"\\u12",
    b"\xe2\x80\x83",
    b"\xc2\x85",
];
const NUMBERS: [&str; 17] = [
    "0",
    "1",
    "12.50",
    "-0",
    "-1e3",
    "1E+400",
    "1.7976931348623158e308",
    "17976931348623159e292",
    "5e-324",
    "1e-400",
    "9007199254740993",
    "18446744073709551617",
    "01",
    "1.",
    "-",
    "0e999",
    ".5",
];

/// Returns a body: an event made by choices, or the rest of the input unchanged.
pub fn body(choices: &mut Choices<'_>) -> Vec<u8> {
    match choices.below(8) {
        0 => std::mem::take(&mut choices.0).to_vec(),
        1 | 2 => {
            let mut out = Vec::new();
            value(choices, 0, &mut out);
            out
        }
        _ => event(choices),
    }
}

/// Returns an event of the documented shape, with a few changes where the choices say so.
pub fn event(choices: &mut Choices<'_>) -> Vec<u8> {
    let kind = choices.below(4);
    let event_type = ["row.created", "row.updated", "row.deleted", "page.updated"][kind];
    let mut data: Members = vec![
        ("datamodelId", b"\"dm_1\"".to_vec()),
        ("datamodelName", b"\"Orders\"".to_vec()),
        ("rowId", b"\"row_1\"".to_vec()),
    ];
    if kind < 2 {
        let content = free_object(choices, kind == 1);
        data.push((["properties", "changes"][kind], content));
    }
    let mut actor: Members = vec![("id", b"\"usr_1\"".to_vec()), ("name", b"\"Bo\"".to_vec())];
    if choices.once_in(3) {
        actor.push((
            "email",
            choices
                .one_of(&[b"\"5ecret@example.com\"".as_slice(), b"null"])
                .into(),
        ));
    }
    let actor = object(choices, actor);
    data.push((["createdBy", "updatedBy", "deletedBy", "by"][kind], actor));
    let data = object(choices, data);
    let envelope = vec![
        ("id", format!("\"evt_{}\"", choices.below(4)).into()),
        ("type", format!("\"{event_type}\"").into()),
        ("createdAt", b"\"2026-11-21T09:30:00Z\"".to_vec()),
        (
            "workspaceId",
            choices.one_of(&["\"ws_1\"", "\"ws_2\""]).into(),
        ),
        ("data", data),
    ];
    let mut event = object(choices, envelope);
    if choices.once_in(4) {
        damage(choices, &mut event);
    }
    event
}

type Members = Vec<(&'static str, Vec<u8>)>;

/// Writes members, with some left out, doubled, moved, changed or added.
fn object(choices: &mut Choices<'_>, mut members: Members) -> Vec<u8> {
    while choices.once_in(3) && !members.is_empty() {
        let place = choices.below(members.len());
        match choices.below(5) {
            0 => drop(members.remove(place)),
            1 => {
                let doubled = members[place].clone();
                members.push(doubled);
            }
            2 => {
                let first = members.remove(place);
                members.insert(0, first);
            }
            3 => {
                let mut changed = Vec::new();
                value(choices, 3, &mut changed);
                members[place].1 = changed;
            }
            _ => {
                let mut added = Vec::new();
                value(choices, 2, &mut added);
                members.insert(place, (choices.one_of(&NAMES), added));
            }
        }
    }
    write_object(choices, &members)
}

/// Properties, or changes.
fn free_object(choices: &mut Choices<'_>, with_sides: bool) -> Vec<u8> {
    let members = (0..choices.below(4)).map(|_| {
        let mut written = Vec::new();
        value(choices, 3, &mut written);
        if with_sides {
            let mut after = Vec::new();
            value(choices, 4, &mut after);
            written = object(choices, vec![("before", written), ("after", after)]);
        }
        (
            choices.one_of(&["Total", "Name", "", "a\\\"b", "\\u00e9"]),
            written,
        )
    });
    let members: Members = members.collect();
    write_object(choices, &members)
}

fn write_object(choices: &mut Choices<'_>, members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let (space, colon) = choices.one_of(&[("", ":"), ("", ":"), ("\n ", " : ")]);
    let mut out = b"{".to_vec();
    for (number, (name, value)) in members.iter().enumerate() {
        let comma = if number == 0 { "" } else { "," };
        out.extend(format!("{comma}{space}\"{name}\"{colon}").bytes());
        out.extend(value);
    }
    out.push(b'}');
    out
}

fn value(choices: &mut Choices<'_>, level: usize, out: &mut Vec<u8>) {
    match choices.below(if level < 6 { 12 } else { 9 }) {
        0..=2 => string(choices, out),
        3 => out.extend(choices.one_of(&NUMBERS).bytes()),
        4 => {
            // Digits, also long numbers.
            let digit = b'0' + u8::try_from(choices.below(10)).unwrap();
            let length = usize::from(choices.byte()) * 2 + 1;
            out.extend(std::iter::repeat_n(digit, length));
            out.extend(choices.one_of(&["", ".5", "e5", "e-500"]).bytes());
        }
        5 => out.extend(
            choices
                .one_of(&["true", "false", "null", "nul", "True", ""])
                .bytes(),
        ),
        6 => {
            // Levels, around the limit and below it.
            let levels = 110 + choices.below(30);
            let (open, close) = choices.one_of(&[("[", "]"), ("{\"a\":", "}")]);
            out.extend(open.repeat(levels).bytes());
            out.push(b'1');
            out.extend(close.repeat(levels).bytes());
        }
        7 | 8 => out.extend(choices.bytes()),
        9 => {
            out.push(b'[');
            for number in 0..choices.below(4) {
                out.extend((number > 0).then_some(b','));
                value(choices, level + 1, out);
            }
            out.push(b']');
        }
        _ => {
            let members: Vec<_> = (0..choices.below(6))
                .map(|_| {
                    let mut member = Vec::new();
                    value(choices, level + 1, &mut member);
                    (choices.one_of(&NAMES), member)
                })
                .collect();
            out.extend(write_object(choices, &members));
        }
    }
}

fn string(choices: &mut Choices<'_>, out: &mut Vec<u8>) {
    out.push(b'"');
    match choices.below(8) {
        0 => out.extend(choices.bytes()),
        1 => {
            // Around the greatest length of an id, in bytes.
            let length = 250 + choices.below(10);
            out.extend(std::iter::repeat_n(b'e', length));
        }
        _ => {
            for _ in 0..=choices.below(2) {
                out.extend(choices.one_of(&TEXTS));
            }
        }
    }
    out.push(b'"');
}

/// A few bytes changed, dropped or put in.
pub fn damage(choices: &mut Choices<'_>, bytes: &mut Vec<u8>) {
    for _ in 0..=choices.below(3) {
        let at = usize::from(choices.byte()) * 256 + usize::from(choices.byte());
        let at = at % (bytes.len() + 1);
        match choices.below(4) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, choices.byte()),
            2 if at < bytes.len() => drop(bytes.remove(at)),
            _ if at < bytes.len() => bytes[at] = choices.byte(),
            _ => bytes.push(choices.byte()),
        }
    }
}
