//! The head of an event: its id and type, read without the rest.

use std::borrow::Cow;
use std::fmt;
use std::ops::ControlFlow;

use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::error::Category;
use serde_json::value::RawValue;

#[cfg(feature = "tower")]
use super::date::Date;
use super::error::{EventError, EventErrorKind as Kind, Position};
use super::ids::{EventId, EventType};
use super::json::Name;
#[cfg(feature = "tower")]
use crate::UnixSeconds;
use crate::verify::{Malformed, SignedBytes, Verified};

/// An event's id and type, from the bytes that were signed.
///
/// Deduplication needs no more than this, and it is cheap: reading stops as soon as both are known, and a `data` before them
/// is skipped. The text after that point is not read; [`Event::from_verified`](super::Event::from_verified) checks the whole
/// body.
///
/// ```
/// use hookgate::{EventHead, EventType};
/// # use hookgate::{DeliveryHeaders, Secret, Signature, Timestamp, UnixSeconds, Verifier};
/// # let secret = Secret::new("whsec_made_up_for_this_example")?;
/// # let timestamp = Timestamp::parse(b"1763690000")?;
/// # let body = br#"{"id":"evt_1","type":"row.created","data":{}}"#;
/// # let signature = Signature::sign(&secret, &timestamp, body).to_header_value();
/// # let pairs = [("x-service-timestamp", "1763690000"), ("x-service-signature", signature.as_str())];
/// # let headers = DeliveryHeaders::from_pairs(pairs)?;
/// # let verified = Verifier::new(secret).verify(&headers, body, UnixSeconds::new(1_763_690_000))?;
///
/// let head = EventHead::of(&verified)?;
/// assert_eq!(head.id, "evt_1");
/// assert_eq!(head.event_type, EventType::ROW_CREATED);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventHead {
    /// The event's id.
    pub id: EventId,
    /// The event's type.
    pub event_type: EventType,
}

impl EventHead {
    /// Reads the head of a body that was verified as authentic.
    ///
    /// Where the keys are pinned to a workspace, the workspace's id is read as well.
    ///
    /// # Errors
    /// `WorkspaceMismatch`, which takes precedence over all others: the delivery is then **not authentic** for these keys.
    /// Otherwise `Syntax`, `NotAnObject`, or `Missing`, `Duplicate`, `TypeMismatch`, `Unusable` with the path `id` or `type` (or
    /// `workspaceId`, repeated).
    pub fn of<B: SignedBytes>(verified: &Verified<B>) -> Result<Self, EventError> {
        read(verified.body(), verified.proof().pinned_workspace())
    }
}

/// Returns the time of the event from its body; `None` where it is missing or can't be parsed. Use it only to estimate
/// attempts.
#[cfg(feature = "tower")]
pub(crate) fn created_at<B: SignedBytes>(verified: &Verified<B>) -> Option<UnixSeconds> {
    created_at_of(verified.body())
}

#[cfg(feature = "tower")]
fn created_at_of(body: &[u8]) -> Option<UnixSeconds> {
    let mut created = None;
    // It usually stands before `data`, so this reads little. The parser reports an early stop as a broken object.
    let _ = each_field(body, &["createdAt"], |_, value| {
        fill(&mut created, value, Date::parse);
        ControlFlow::Break(())
    });
    Some(created?.ok()?.unix_seconds())
}

fn read(body: &[u8], pinned: Option<&str>) -> Result<EventHead, EventError> {
    let (mut id, mut event_type) = (None, None);
    let mut is_pinned_workspace = pinned.is_none().then_some(Ok(true));
    let wanted = ["id", "type", "workspaceId"];
    let wanted = &wanted[..2 + usize::from(pinned.is_some())];
    let mut is_complete = false;
    let outcome = each_field(body, wanted, |name, value| {
        match name {
            "id" => fill(&mut id, value, EventId::parse),
            "type" => fill(&mut event_type, value, EventType::parse),
            _ => fill(&mut is_pinned_workspace, value, |id| Ok(Some(id) == pinned)),
        }
        is_complete = id.is_some() && event_type.is_some() && is_pinned_workspace.is_some();
        if is_complete {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    // A repeated workspace is an error of form. Another workspace or a missing one is an error of authenticity, and takes
    // precedence.
    if let Some(Ok(false) | Err(Kind::TypeMismatch)) = is_pinned_workspace {
        return Err(EventError::new(Kind::WorkspaceMismatch));
    }
    // The parser reports an early stop as a broken object. So its error counts only if a field was not found.
    if let Err(error) = outcome
        && !is_complete
    {
        return Err(match error.classify() {
            Category::Data => EventError::new(Kind::NotAnObject),
            _ => EventError::new(Kind::Syntax).at_position(Some(Position {
                line: error.line(),
                column: error.column(),
            })),
        });
    }
    if is_pinned_workspace.is_none() {
        return Err(EventError::new(Kind::WorkspaceMismatch));
    }
    usable(is_pinned_workspace, "workspaceId")?;
    Ok(EventHead {
        id: usable(id, "id")?,
        event_type: usable(event_type, "type")?,
    })
}

/// A field: absent, read, or with a fault. A fault is no error yet: a later field may take precedence.
type FieldRead<T> = Option<Result<T, Kind>>;

/// Fills a slot from a string, borrowed where possible, so that an id is allocated once.
fn fill<T>(
    slot: &mut FieldRead<T>,
    value: &RawValue,
    parse: impl FnOnce(&str) -> Result<T, Malformed>,
) {
    *slot = Some(match slot {
        None => text_of(value).and_then(|text| parse(&text).map_err(|Malformed| Kind::Unusable)),
        Some(_) => Err(Kind::Duplicate),
    });
}

fn text_of(value: &RawValue) -> Result<Cow<'_, str>, Kind> {
    if !value.get().starts_with('"') {
        return Err(Kind::TypeMismatch);
    }
    // Only half of a surrogate pair is left to be found.
    let text = serde_json::from_str::<Name<'_>>(value.get());
    text.map(|Name(text)| text).map_err(|_| Kind::Syntax)
}

fn usable<T>(slot: FieldRead<T>, path: &str) -> Result<T, EventError> {
    slot.unwrap_or(Err(Kind::Missing)).map_err(|kind| {
        let error = EventError::new(kind);
        match kind {
            Kind::Syntax => error,
            Kind::TypeMismatch => error.at_path(path).because(Some(
                "found another kind of value, expected a string".into(),
            )),
            _ => error.at_path(path),
        }
    })
}

/// Passes the wanted fields of an object to `take`, until it breaks. The other fields are skipped.
fn each_field<'de>(
    body: &'de [u8],
    wanted: &[&str],
    take: impl FnMut(&str, &'de RawValue) -> ControlFlow<()>,
) -> serde_json::Result<()> {
    serde_json::Deserializer::from_slice(body).deserialize_map(FieldsVisitor { wanted, take })
}

struct FieldsVisitor<'w, F> {
    wanted: &'w [&'w str],
    take: F,
}

impl<'de, F: FnMut(&str, &'de RawValue) -> ControlFlow<()>> Visitor<'de> for FieldsVisitor<'_, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(Name(name)) = map.next_key()? {
            if !self.wanted.contains(&&*name) {
                map.next_value::<IgnoredAny>()?;
            } else if (self.take)(&name, map.next_value()?).is_break() {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(body: &str, pinned: Option<&str>) -> Result<String, (Kind, Option<String>)> {
        read(body.as_bytes(), pinned)
            .map(|head| format!("{} {}", head.id, head.event_type))
            .map_err(|error| (error.kind(), error.path().map(Into::into)))
    }

    #[test]
    fn stops_at_id_and_type_and_skips_what_comes_before() {
        for body in [
            r#"{"id":"evt_1","type":"row.created","data":{"#,
            r#"{"type":"row.created","id":"evt_1""#,
            " \r\n\t{\"id\":\"evt_\\u0031\",\"type\":\"row.created\" garbage",
            r#"{"data":{"id":"x","type":[{"id":1}]},"x":[1e400,"\ud800"],"type":"row.created","id":"evt_1"}"#,
            r#"{"id":"evt_1","type":"row.created","id":"evt_2"}"#,
        ] {
            assert_eq!(
                kind(body, None).as_deref(),
                Ok("evt_1 row.created"),
                "{body}"
            );
        }
    }

    #[test]
    fn faults_up_to_there_are_told_apart() {
        let at = |path: &str| Some(path.to_owned());
        for (body, expected) in [
            ("", (Kind::Syntax, None)),
            ("{", (Kind::Syntax, None)),
            ("\u{feff}{}", (Kind::Syntax, None)),
            (r#"{"id":"evt_1","type":"row.cre"#, (Kind::Syntax, None)),
            (r#"{"id":"evt_1" "type":"a"}"#, (Kind::Syntax, None)),
            (r#"{"id":"\ud800","type":"a"}"#, (Kind::Syntax, None)),
            ("[]", (Kind::NotAnObject, None)),
            ("null", (Kind::NotAnObject, None)),
            ("\"{}\"", (Kind::NotAnObject, None)),
            ("{}", (Kind::Missing, at("id"))),
            (r#"{"id":"evt_1"}"#, (Kind::Missing, at("type"))),
            (
                r#"{"id":"a","id":"b","type":"c"}"#,
                (Kind::Duplicate, at("id")),
            ),
            (
                r#"{"type":"a","type":"a","id":"c"}"#,
                (Kind::Duplicate, at("type")),
            ),
            (r#"{"id":"","type":"c"}"#, (Kind::Unusable, at("id"))),
            (r#"{"id":"a\u0000","type":"c"}"#, (Kind::Unusable, at("id"))),
            (r#"{"id":"a","type":" "}"#, (Kind::Unusable, at("type"))),
            (r#"{"id":1,"type":"c"}"#, (Kind::TypeMismatch, at("id"))),
            (r#"{"id":null,"type":"c"}"#, (Kind::TypeMismatch, at("id"))),
            (
                r#"{"id":{"id":"a"},"type":"c"}"#,
                (Kind::TypeMismatch, at("id")),
            ),
            (
                r#"{"id":"a","type":["c"]}"#,
                (Kind::TypeMismatch, at("type")),
            ),
        ] {
            assert_eq!(kind(body, None), Err(expected), "{body}");
        }
        assert_eq!(
            read(b"{\"id\":\xff", None).unwrap_err().kind(),
            Kind::Syntax
        );
    }

    #[test]
    fn a_pinned_workspace_goes_before_every_other_fault() {
        let ok = r#"{"id":"a","type":"b","createdAt":"","workspaceId":"ws_1","data"#;
        assert!(kind(ok, Some("ws_1")).is_ok());
        for (body, expected) in [
            (
                r#"{"id":"a","type":"b","workspaceId":"ws_2"}"#,
                Kind::WorkspaceMismatch,
            ),
            (r#"{"id":"a","type":"b"}"#, Kind::WorkspaceMismatch),
            (
                r#"{"id":"a","type":"b","workspaceId":null}"#,
                Kind::WorkspaceMismatch,
            ),
            (
                r#"{"id":"","type":1,"workspaceId":"ws_2"}"#,
                Kind::WorkspaceMismatch,
            ),
            (r#"{"id":"a","id":"a","workspaceId":"ws_2"#, Kind::Syntax),
            (r#"{"workspaceId":"ws_2","id":"#, Kind::WorkspaceMismatch),
            (r#"{"id":"a","type":"b","#, Kind::Syntax),
            (
                r#"{"workspaceId":"ws_1","workspaceId":"ws_2","id":"a","type":"b"}"#,
                Kind::Duplicate,
            ),
        ] {
            assert_eq!(
                kind(body, Some("ws_1")).map_err(|error| error.0),
                Err(expected),
                "{body}"
            );
        }
    }

    #[cfg(feature = "tower")]
    #[test]
    fn the_creation_is_read_wherever_it_stands() {
        let at = Some(UnixSeconds::new(1_763_690_000));
        for (body, expected) in [
            (
                r#"{"id":"a","createdAt":"2025-11-21T01:53:20Z","data":{"#,
                at,
            ),
            (
                r#"{"data":{"createdAt":"2020-01-01"},"createdAt":"2025-11-21T01:53:20.5Z"}"#,
                at,
            ),
            (r#"{"createdAt":"2025-11-21T0\u0031:53:20Z"}"#, at),
            (r#"{"createdAt":"yesterday"}"#, None),
            (r#"{"createdAt":1763690000}"#, None),
            (r#"{"id":"a"}"#, None),
            (r#"{"id":"a","createdAt":"2025"#, None),
            ("[]", None),
            ("", None),
        ] {
            assert_eq!(created_at_of(body.as_bytes()), expected, "{body}");
        }
    }
}
