//! Events, with the fields in the service's specification and the refusals in the design.

use super::json::{Json, Reader, Stop, Text};

/// The design's promise 8: 1 to 256 bytes, no control characters, not blank.
pub fn is_usable(text: &str) -> bool {
    (1..=256).contains(&text.len())
        && text.chars().filter(|char| char.is_control()).count() == 0
        && text.chars().filter(|char| !char.is_whitespace()).count() > 0
}

/// The result of reading the head of an event.
#[derive(Debug, PartialEq)]
pub enum Head {
    Of {
        id: String,
        event_type: String,
    },
    /// From another workspace than the one that the keys are pinned to.
    Foreign,
    Unusable,
    /// A case that the second implementation does not decide.
    NoOpinion,
}

/// Reads members from the front until the first id and the first type are found. A duplicate member
/// counts if it comes before that; later members are not read. Where the keys are pinned to a
/// workspace, all members are read, and the body ends behind them. If such a body is cut off, or is
/// not an object, it is not known to be from another workspace.
pub fn head(body: &[u8], pinned: Option<&str>) -> Head {
    let mut reader = Reader::new(body);
    let (mut ids, mut types, mut workspaces) = (Vec::new(), Vec::new(), Vec::new());
    let names = ["id", "type", "workspaceId"];
    // Of a value that is not needed, only the grammar matters.
    let names = if pinned.is_some() {
        &names[..]
    } else {
        &names[..2]
    };
    let broken = match members(&mut reader, names, |name, value| {
        match name {
            "id" => ids.push(value),
            "type" => types.push(value),
            "workspaceId" if pinned.is_some() => workspaces.push(value),
            _ => {}
        }
        pinned.is_none() && !ids.is_empty() && !types.is_empty()
    }) {
        Ok(()) => pinned.is_some() && reader.peek().is_some(),
        Err(Stop::Syntax) => true,
        Err(Stop::NoOpinion) => return Head::NoOpinion,
    };
    let hard_to_say = |value: &Json| match value {
        // Whether a number near the end of a float's range is accepted is not decided.
        Json::Number(number) => number.parse::<f64>().unwrap().abs() > 1e300,
        // Whether unpaired surrogates in names are found, where the value has the wrong type
        // anyway, is not decided.
        Json::Object(members) => members.iter().any(|(name, _)| !name.is_sound),
        _ => false,
    };
    if ids.iter().chain(&types).chain(&workspaces).any(hard_to_say) {
        return Head::NoOpinion;
    }
    match (pinned, &workspaces[..]) {
        (Some(pinned), [workspace]) if text(workspace) != Some(pinned) => return Head::Foreign,
        (Some(_), [_, _, ..]) => return Head::Foreign,
        _ => {}
    }
    match (&ids[..], &types[..], &workspaces[..]) {
        ([id], [event_type], [] | [_]) if !broken => {
            if pinned.is_some() && workspaces.is_empty() {
                return Head::Foreign;
            }
            match (text(id), text(event_type)) {
                (Some(id), Some(event_type)) if is_usable(id) && is_usable(event_type) => {
                    Head::Of {
                        id: id.into(),
                        event_type: event_type.into(),
                    }
                }
                _ => Head::Unusable,
            }
        }
        _ if pinned.is_some() && workspaces.is_empty() && !broken => Head::Foreign,
        _ => Head::Unusable,
    }
}

/// Passes on an object's members until the callback stops it. The names and values that matter must
/// be sound.
fn members(
    reader: &mut Reader<'_>,
    matters: &[&str],
    mut take: impl FnMut(&str, Json) -> bool,
) -> Result<(), Stop> {
    if reader.peek() != Some(b'{') {
        return Err(Stop::Syntax);
    }
    reader.take(b'{');
    if reader.take(b'}') {
        return Ok(());
    }
    loop {
        let name = reader.member_name()?;
        let value = match reader.any_value() {
            // An object that is cut off is another workspace than the pinned one, or a broken body:
            // both answers are right.
            Err(Stop::Syntax) if name.text == "workspaceId" => return Err(Stop::NoOpinion),
            value => value?,
        };
        let matters = matters.contains(&&*name.text);
        let is_sound = |text: &Text| text.is_sound;
        if !name.is_sound || matches!(&value, Json::Text(text) if matters && !is_sound(text)) {
            return Err(Stop::Syntax);
        }
        if take(&name.text, value) {
            return Ok(());
        }
        if reader.take(b'}') {
            return Ok(());
        }
        if !reader.take(b',') {
            return Err(Stop::Syntax);
        }
    }
}

fn text(value: &Json) -> Option<&str> {
    match value {
        Json::Text(text) => Some(&text.text),
        _ => None,
    }
}

/// The fault of a body as a whole, independent of its reader.
pub enum Body {
    Fine(Json),
    /// By the names of the crate's error kinds; the crate may report any of these.
    Faulty(Vec<&'static str>),
}

pub fn body(body: &[u8]) -> Body {
    if std::str::from_utf8(body).is_err() {
        return Body::Faulty(vec!["NotText"]);
    }
    let broken = vec![
        "Syntax",
        "LoneSurrogate",
        "TooDeep",
        "NumberOutOfRange",
        "ReservedKey",
    ];
    let json = match Reader::whole(body) {
        Ok(json) => json,
        Err(Stop::Syntax | Stop::NoOpinion) => return Body::Faulty(broken),
    };
    let mut faults = Vec::new();
    if json.depth() > 127 {
        faults.push("TooDeep");
    }
    for value in json.everything() {
        match value {
            Json::Text(text) if !text.is_sound => faults.push("LoneSurrogate"),
            Json::Object(members) => {
                let names = || members.iter().map(|(name, _)| name);
                if names().any(|name| !name.is_sound) {
                    faults.push("LoneSurrogate");
                }
                if names().any(|name| name.text.starts_with("$serde_json::private::")) {
                    faults.push("ReservedKey");
                }
            }
            Json::Number(number) if is_out_of_range(number) => faults.push("NumberOutOfRange"),
            _ => {}
        }
    }
    if faults.is_empty() {
        Body::Fine(json)
    } else {
        Body::Faulty(faults)
    }
}

/// Returns whether it is beyond the range of a 64-bit float, for the standard library or for
/// serde_json, which rounds up earlier.
fn is_out_of_range(number: &str) -> bool {
    number.parse::<f64>().unwrap().is_infinite() || serde_json::from_str::<f64>(number).is_err()
}

/// All faults of an event: kinds and paths.
pub type Faults = Vec<(&'static str, String)>;

type Check<'c> = &'c dyn Fn(&Json, String, &mut Faults);

/// Returns all faults. `rows_are_objects` is true where the row's type needs an object.
pub fn faults(event: &Json, rows_are_objects: bool) -> Faults {
    let mut faults = Vec::new();
    let event_type = event
        .all("type")
        .first()
        .and_then(|value| text(value))
        .map(str::to_owned);
    let is_of_a_row = matches!(
        event_type.as_deref(),
        Some("row.created" | "row.updated" | "row.deleted")
    );
    let data: Check<'_> = &|value, path, faults| match event_type.as_deref() {
        Some("row.created") => row(
            value,
            path,
            Some("properties"),
            "createdBy",
            rows_are_objects,
            faults,
        ),
        Some("row.updated") => row(value, path, Some("changes"), "updatedBy", true, faults),
        Some("row.deleted") => row(value, path, None, "deletedBy", true, faults),
        _ => {}
    };
    if !matches!(event, Json::Object(_)) {
        faults.push(("NotAnObject", String::new()));
        return faults;
    }
    fields(
        event,
        "",
        &[
            ("id", true, &usable),
            ("type", true, &usable),
            ("createdAt", true, &string),
            ("workspaceId", true, &string),
            ("data", is_of_a_row, data),
        ],
        &mut faults,
    );
    faults
}

fn row(
    data: &Json,
    path: String,
    content: Option<&str>,
    actor: &str,
    content_is_object: bool,
    faults: &mut Faults,
) {
    let check_content: Check<'_> = &|value, path, faults| match content {
        Some("changes") => changes(value, path, faults),
        _ if content_is_object => object(value, path, faults),
        _ => {}
    };
    let check_actor: Check<'_> = &|value, path, faults| {
        if *value == Json::Null {
            return;
        }
        let known: [(&str, bool, Check<'_>); 3] = [
            ("id", true, &string),
            ("name", true, &string),
            ("email", false, &string_or_null),
        ];
        fields(value, &path, &known, faults);
    };
    let mut known: Vec<(&str, bool, Check<'_>)> = vec![
        ("datamodelId", true, &string),
        ("datamodelName", true, &string),
        ("rowId", true, &string),
        (actor, false, check_actor),
    ];
    known.extend(content.map(|content| (content, true, check_content)));
    fields(data, &path, &known, faults);
}

fn changes(value: &Json, path: String, faults: &mut Faults) {
    object(value, path.clone(), faults);
    let Json::Object(members) = value else { return };
    for (name, sides) in members {
        let anything: Check<'_> = &|_, _, _| {};
        let known = [("before", false, anything), ("after", false, anything)];
        fields(sides, &join(&path, &name.text), &known, faults);
    }
}

/// An object with these fields, each at most once and the required ones once; others are free.
fn fields(value: &Json, path: &str, known: &[(&str, bool, Check<'_>)], faults: &mut Faults) {
    object(value, path.into(), faults);
    if !matches!(value, Json::Object(_)) {
        return;
    }
    for (name, is_required, check) in known {
        let found = value.all(name);
        if found.is_empty() && *is_required {
            faults.push(("Missing", join(path, name)));
        }
        if found.len() > 1 {
            faults.push(("RepeatedKey", join(path, name)));
        }
        for value in found {
            check(value, join(path, name), faults);
        }
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.into()
    } else {
        format!("{path}.{name}")
    }
}

fn object(value: &Json, path: String, faults: &mut Faults) {
    if !matches!(value, Json::Object(_)) {
        faults.push(("TypeMismatch", path));
    }
}

fn string(value: &Json, path: String, faults: &mut Faults) {
    if text(value).is_none() {
        faults.push(("TypeMismatch", path));
    }
}

fn string_or_null(value: &Json, path: String, faults: &mut Faults) {
    if *value != Json::Null {
        string(value, path, faults);
    }
}

fn usable(value: &Json, path: String, faults: &mut Faults) {
    match text(value) {
        None => faults.push(("TypeMismatch", path)),
        Some(text) if !is_usable(text) => faults.push(("Unusable", path)),
        Some(_) => {}
    }
}
