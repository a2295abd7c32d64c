//! The head of an event: its id and type, read without the rest.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;

#[cfg(feature = "tower")]
use super::date::Date;
use super::error::{EventError, EventErrorKind as Kind, Position};
use super::ids::{EventId, EventType};
use super::json::Name;
#[cfg(feature = "tower")]
use crate::UnixSeconds;
use crate::verify::Malformed;
use crate::verify::{SignedBytes, Verified};

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
    /// `workspaceId`, doubled).
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
    let mut created = Slot::Absent;
    // The parser reports an early stop as a broken object, so its result is ignored.
    let _ =
        serde_json::Deserializer::from_slice(body).deserialize_map(CreatedAtVisitor(&mut created));
    match created {
        Slot::Read(second) => Some(second),
        _ => None,
    }
}

/// Reads up to `createdAt`, which usually stands before `data`: the cost per delivery is very small.
#[cfg(feature = "tower")]
struct CreatedAtVisitor<'s>(&'s mut Slot<UnixSeconds>);

#[cfg(feature = "tower")]
impl<'de> Visitor<'de> for CreatedAtVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(Name(name)) = map.next_key()? {
            if name == "createdAt" {
                let seconds = |text: &str| Date::parse(text).map(|date| date.unix_seconds());
                return map.next_value_seed(TextSeed(self.0, seconds));
            }
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

fn read(body: &[u8], pinned: Option<&str>) -> Result<EventHead, EventError> {
    let mut found = HeadFields {
        id: Slot::Absent,
        event_type: Slot::Absent,
        is_pinned_workspace: match pinned {
            Some(_) => Slot::Absent,
            None => Slot::Read(true),
        },
    };
    let outcome = serde_json::Deserializer::from_slice(body).deserialize_map(HeadVisitor {
        found: &mut found,
        pinned,
    });
    // A doubled workspace is an error of form. Another workspace or a missing one is an error of authenticity, and takes
    // precedence.
    if matches!(
        found.is_pinned_workspace,
        Slot::Read(false) | Slot::Faulty(Kind::TypeMismatch)
    ) {
        return Err(EventError::new(Kind::WorkspaceMismatch));
    }
    // The parser reports an early stop as a broken object. So its error counts only if a field was not found.
    if let Err(error) = outcome
        && !found.is_complete()
    {
        return Err(match error.classify() {
            Category::Data => EventError::new(Kind::NotAnObject),
            _ => EventError::new(Kind::Syntax).at_position(Some(Position {
                line: error.line(),
                column: error.column(),
            })),
        });
    }
    if matches!(found.is_pinned_workspace, Slot::Absent) {
        return Err(EventError::new(Kind::WorkspaceMismatch));
    }
    found.is_pinned_workspace.into_usable("workspaceId")?;
    Ok(EventHead {
        id: found.id.into_usable("id")?,
        event_type: found.event_type.into_usable("type")?,
    })
}

struct HeadFields {
    id: Slot<EventId>,
    event_type: Slot<EventType>,
    is_pinned_workspace: Slot<bool>,
}

enum Slot<T> {
    Absent,
    Read(T),
    Faulty(Kind),
}

impl HeadFields {
    fn is_complete(&self) -> bool {
        !matches!(self.id, Slot::Absent)
            && !matches!(self.event_type, Slot::Absent)
            && !matches!(self.is_pinned_workspace, Slot::Absent)
    }
}

impl<T> Slot<T> {
    fn into_usable(self, path: &str) -> Result<T, EventError> {
        match self {
            Self::Read(value) => Ok(value),
            Self::Absent => Err(EventError::new(Kind::Missing).at_path(path)),
            Self::Faulty(Kind::TypeMismatch) => Err(EventError::new(Kind::TypeMismatch)
                .at_path(path)
                .because(Some(
                    "found another kind of value, expected a string".into(),
                ))),
            Self::Faulty(kind) => Err(EventError::new(kind).at_path(path)),
        }
    }
}

struct HeadVisitor<'f> {
    found: &'f mut HeadFields,
    pinned: Option<&'f str>,
}

impl<'de> Visitor<'de> for HeadVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { found, pinned } = self;
        while !found.is_complete() {
            let Some(Name(name)) = map.next_key()? else {
                break;
            };
            match (&*name, pinned) {
                ("id", _) => map.next_value_seed(TextSeed(&mut found.id, EventId::parse))?,
                ("type", _) => {
                    map.next_value_seed(TextSeed(&mut found.event_type, EventType::parse))?;
                }
                ("workspaceId", Some(pinned)) => {
                    let is_pinned = |id: &str| Ok(id == pinned);
                    map.next_value_seed(TextSeed(&mut found.is_pinned_workspace, is_pinned))?;
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// Fills a slot from a string, borrowed where possible, so that an id is allocated once. Any other value is recorded as a
/// fault and is no error yet: a later field may take precedence.
struct TextSeed<'s, T, P>(&'s mut Slot<T>, P);

impl<T, P: FnOnce(&str) -> Result<T, Malformed>> TextSeed<'_, T, P> {
    fn fill(self, read: Result<&str, Kind>) {
        *self.0 = match (&self.0, read) {
            (Slot::Absent, Ok(text)) => match (self.1)(text) {
                Ok(value) => Slot::Read(value),
                Err(Malformed) => Slot::Faulty(Kind::Unusable),
            },
            (Slot::Absent, Err(kind)) => Slot::Faulty(kind),
            _ => Slot::Faulty(Kind::Duplicate),
        };
    }
}

impl<'de, T, P> DeserializeSeed<'de> for TextSeed<'_, T, P>
where
    P: FnOnce(&str) -> Result<T, Malformed>,
{
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

macro_rules! other_kinds {
    ($($visit:ident: $type:ty),*) => {$(
        fn $visit<E>(self, _: $type) -> Result<(), E> {
            self.fill(Err(Kind::TypeMismatch));
            Ok(())
        }
    )*};
}

impl<'de, T, P> Visitor<'de> for TextSeed<'_, T, P>
where
    P: FnOnce(&str) -> Result<T, Malformed>,
{
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.fill(Ok(text));
        Ok(())
    }

    other_kinds!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64);

    fn visit_unit<E>(self) -> Result<(), E> {
        self.fill(Err(Kind::TypeMismatch));
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<(), A::Error> {
        self.fill(Err(Kind::TypeMismatch));
        IgnoredAny.visit_seq(seq).map(drop)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        self.fill(Err(Kind::TypeMismatch));
        IgnoredAny.visit_map(map).map(drop)
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
