//! The head of an event: its id and type, read without the rest.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;

use super::date::Date;
use super::event_error::{EventError, EventErrorKind as Kind, Position};
use super::ids::{EventId, EventType, Name};
use super::parse::plain_length;
use crate::clock::UnixSeconds;
use crate::scheme::{DeliveryHeaders, Scheme, SignedHead, UNTYPED};
use crate::verify::{Malformed, SignedBytes, Verified, digest};

/// An event's id and type, from the bytes that were signed. Under a [scheme](crate::Scheme) that
/// signs no type, the type is `untyped`, or in a delivery of a receiver the hint of a header.
///
/// Deduplication needs no more than this, and it is cheap: reading stops as soon as both are known,
/// and a `data` before them is skipped. The text after that point is not read, unless the keys are
/// pinned to a workspace; [`Event::from_verified`](super::Event::from_verified) checks the whole
/// body.
///
/// ```
/// use hookgate::event::{EventHead, EventType};
/// # use hookgate::{
/// #     Secret, Verifier,
/// #     clock::UnixSeconds,
/// #     verify::{DeliveryHeaders, Signature, Timestamp},
/// # };
/// # let secret = Secret::new("whsec_made_up_for_this_example")?;
/// # let timestamp = Timestamp::parse(b"1763690000")?;
/// # let body = br#"{"id":"evt_1","type":"row.created","data":{}}"#;
/// # let signature = Signature::sign(&secret, &timestamp, body).to_header_value();
/// # let pairs = [("x-service-timestamp", "1763690000"), ("x-service-signature", signature.as_str())];
/// # let headers = DeliveryHeaders::from_pairs(pairs)?;
/// # let verified = Verifier::new(secret).verify(&headers, body, UnixSeconds::new(1_763_690_000))?;
///
/// let head = EventHead::from_verified(&verified)?;
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
    /// Where the keys are pinned to a workspace, the envelope is read to its end: a second
    /// `workspaceId` could name another workspace anywhere.
    ///
    /// # Errors
    /// `WorkspaceMismatch` for a workspace that is another one, missing, repeated or no text. It
    /// takes precedence over all others: the delivery is then **not authentic** for these keys.
    /// Otherwise `Syntax`, `NotAnObject`, or `Missing`, `RepeatedKey`, `TypeMismatch`, `Unusable`
    /// with the path `id` or `type`.
    pub fn from_verified<B: SignedBytes>(verified: &Verified<B>) -> Result<Self, EventError> {
        match verified.scheme() {
            Some(scheme) if scheme.is_workspace() => {
                read(verified.body(), verified.pinned_workspace())
            }
            Some(scheme) => read_other(verified, scheme),
            None => Err(EventError::new(Kind::OtherScheme)),
        }
    }
}

/// Reads the head of another scheme than the default one. An id that is not in the body is the one
/// that was signed in a header, or the digest of what was signed.
fn read_other<B: SignedBytes>(
    verified: &Verified<B>,
    scheme: &Scheme,
) -> Result<EventHead, EventError> {
    let (id_field, kind_field) = (scheme.id_field(), scheme.kind_field());
    let body = verified.body();
    let (fields, outcome) = fields_of(scheme, Extent::UntilFound, body);
    let is_required = id_field.is_some() || kind_field.is_some_and(|(_, required)| required);
    // An early stop is reported as a broken object: see `search`.
    if let Err(error) = outcome
        && is_required
        && fields.iter().any(|(_, field)| field.is_none())
    {
        return Err(broken(&error));
    }
    let mut fields = fields.into_iter().map(|(_, field)| field);
    let id = match id_field {
        Some(name) => usable(fields.next().flatten(), name, EventId::parse)?,
        None => {
            let text = id_of(verified.signed_head(), body);
            usable(Some(Ok(text)), "id", EventId::parse)?
        }
    };
    let untyped = || usable(Some(Ok(UNTYPED.into())), "type", EventType::parse);
    let event_type = match kind_field {
        Some((name, true)) => usable(fields.next().flatten(), name, EventType::parse)?,
        Some((name, false)) => {
            let found = usable(fields.next().flatten(), name, EventType::parse);
            found.or_else(|_| untyped())?
        }
        None => untyped()?,
    };
    Ok(EventHead { id, event_type })
}

/// Refuses a body with a second id or type behind the first one, which deduplication does not read:
/// a type of the user's could.
///
/// # Errors
/// `RepeatedKey`, with the field.
pub(super) fn refuse_repeated(scheme: &Scheme, body: &[u8]) -> Result<(), EventError> {
    // A broken body is found where it is read as the user's type.
    let (fields, _) = fields_of(scheme, Extent::Whole, body);
    let is_repeated =
        |(_, field): &&(&str, Field<'_>)| matches!(field, Some(Err(Kind::RepeatedKey)));
    match fields.iter().find(is_repeated) {
        Some((name, _)) => Err(EventError::new(Kind::RepeatedKey).at_path(*name)),
        None => Ok(()),
    }
}

/// Returns the id and the type that an **unverified** delivery names, each where it can be read. If
/// the scheme has no id in the body, the id comes from the signed header, or is the digest of the
/// signed bytes.
#[must_use]
pub fn unverified_head(
    scheme: &Scheme,
    headers: Option<&DeliveryHeaders<'_>>,
    body: &[u8],
) -> [Option<String>; 2] {
    let (fields, _) = fields_of(scheme, Extent::UntilFound, body);
    let mut texts = fields
        .into_iter()
        .map(|(_, field)| Some(field?.ok()?.into_owned()));
    let id = match scheme.id_field() {
        Some(_) => texts.next().flatten(),
        None => headers.map(|headers| id_of(&headers.signed, body).into_owned()),
    };
    [id, texts.next().flatten()]
}

/// The fields that a scheme names, the id before the type, and how reading them ended.
type FieldsOfScheme<'b> = (Vec<(&'static str, Field<'b>)>, serde_json::Result<()>);

/// Reads the fields of id and type that this scheme has in the body. A scheme without such a field
/// reads no body.
fn fields_of<'b>(scheme: &Scheme, extent: Extent, body: &'b [u8]) -> FieldsOfScheme<'b> {
    let kind_field = scheme.kind_field().map(|(name, _)| name);
    let names = [scheme.id_field(), kind_field].into_iter().flatten();
    let mut fields: Vec<_> = names.map(|name| (name, None)).collect();
    let outcome = match fields.is_empty() {
        true => Ok(()),
        false => fill(&mut fields, extent, body),
    };
    (fields, outcome)
}

/// Returns the id that is not in the body.
fn id_of<'h>(head: &'h SignedHead, body: &[u8]) -> Cow<'h, str> {
    match &head.id {
        Some(id) => Cow::Borrowed(&**id),
        None => format!("sha256:{}", hex::encode(digest(head, body))).into(),
    }
}

/// Returns the time of the event from its body; `None` where it is missing or can't be parsed. Use
/// it only to estimate attempts.
pub(crate) fn created_at<B: SignedBytes>(verified: &Verified<B>) -> Option<UnixSeconds> {
    created_at_of(verified.body())
}

fn created_at_of(body: &[u8]) -> Option<UnixSeconds> {
    let mut fields = [("createdAt", None)];
    // It usually comes before `data`, so this reads little. The parser reports an early stop as a
    // broken object.
    let _ = fill(&mut fields, Extent::UntilFound, body);
    let [(_, created)] = fields;
    Date::parse(&created?.ok()?).ok()?.unix_seconds().ok()
}

/// Reads id and type where they come first, as texts without escapes and without white space around
/// them: the form in which the service writes them. `None` for any other body, which [`search`]
/// reads.
fn at_the_front(body: &[u8]) -> Option<EventHead> {
    let (id, rest) = plain_text(body.strip_prefix(br#"{"id":""#)?)?;
    let (event_type, _) = plain_text(rest.strip_prefix(br#","type":""#)?)?;
    Some(EventHead {
        id: EventId::parse(id).ok()?,
        event_type: EventType::parse(event_type).ok()?,
    })
}

/// Returns a text up to its closing quotation mark, and the rest. `None` if it holds an escape, or
/// a control character.
fn plain_text(text: &[u8]) -> Option<(&str, &[u8])> {
    let (text, rest) = text.split_at_checked(plain_length(text))?;
    Some((std::str::from_utf8(text).ok()?, rest.strip_prefix(b"\"")?))
}

fn read(body: &[u8], pinned: Option<&str>) -> Result<EventHead, EventError> {
    // With a pin, the whole envelope is read.
    let front = at_the_front(body).filter(|_| pinned.is_none());
    front.map_or_else(|| search(body, pinned), Ok)
}

fn search(body: &[u8], pinned: Option<&str>) -> Result<EventHead, EventError> {
    let mut fields = [("id", None), ("type", None), ("workspaceId", None)];
    let (wanted, extent) = match pinned {
        None => (&mut fields[..2], Extent::UntilFound),
        Some(_) => (&mut fields[..], Extent::Whole),
    };
    let outcome = fill(wanted, extent, body);
    let is_complete = wanted.iter().all(|(_, field)| field.is_some());
    let [(_, id), (_, event_type), (_, workspace)] = fields;
    let is_foreign = match (&pinned, &workspace) {
        (None, _) => false,
        (Some(pinned), Some(Ok(id))) => pinned != id,
        // Repeated, or no text.
        (Some(_), Some(Err(_))) => true,
        (Some(_), None) => outcome.is_ok(),
    };
    if is_foreign {
        return Err(EventError::new(Kind::WorkspaceMismatch));
    }
    // The parser reports an early stop as a broken object. So without a pin its error counts only
    // if a field was not found.
    if let Err(error) = outcome
        && (!is_complete || pinned.is_some())
    {
        return Err(broken(&error));
    }
    Ok(EventHead {
        id: usable(id, "id", EventId::parse)?,
        event_type: usable(event_type, "type", EventType::parse)?,
    })
}

fn broken(error: &serde_json::Error) -> EventError {
    match error.classify() {
        Category::Data => EventError::new(Kind::NotAnObject),
        _ => EventError::new(Kind::Syntax).at_position(Some(Position {
            line: error.line(),
            column: error.column(),
        })),
    }
}

/// A field: absent, its text, or a fault. A fault is not an error yet: a later field may take
/// precedence.
type Field<'b> = Option<Result<Cow<'b, str>, Kind>>;

fn usable<T>(
    field: Field<'_>,
    path: &str,
    parse: impl FnOnce(&str) -> Result<T, Malformed>,
) -> Result<T, EventError> {
    let text = field.unwrap_or(Err(Kind::Missing));
    let parsed = text.and_then(|text| parse(&text).map_err(|Malformed| Kind::Unusable));
    parsed.map_err(|kind| {
        let reason = "found another kind of value, expected a string";
        let reason = (kind == Kind::TypeMismatch).then(|| reason.into());
        EventError::new(kind).at_path(path).because(reason)
    })
}

/// How much of the envelope is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// Until each field was there.
    UntilFound,
    /// To its end, and nothing may come after it.
    Whole,
}

/// Fills these fields from an object. The other fields are skipped.
fn fill<'b>(
    fields: &mut [(&str, Field<'b>)],
    extent: Extent,
    body: &'b [u8],
) -> serde_json::Result<()> {
    let mut json = serde_json::Deserializer::from_slice(body);
    json.deserialize_map(FieldsVisitor(fields, extent))?;
    match extent {
        Extent::UntilFound => Ok(()),
        Extent::Whole => json.end(),
    }
}

struct FieldsVisitor<'f, 'n, 'b>(&'f mut [(&'n str, Field<'b>)], Extent);

impl<'de> Visitor<'de> for FieldsVisitor<'_, '_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(Name(name)) = map.next_key()? {
            let Some((_, field)) = self.0.iter_mut().find(|(wanted, _)| *wanted == name) else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            if field.is_some() {
                // Known before the second value is read, which may be broken.
                *field = Some(Err(Kind::RepeatedKey));
            }
            map.next_value_seed(FieldSeed(field))?;
            let is_found = |(_, field): &(_, Field<'_>)| field.is_some();
            if self.1 == Extent::UntilFound && self.0.iter().all(is_found) {
                break;
            }
        }
        Ok(())
    }
}

/// Fills a field from a string, borrowed where possible. Any other value is a fault, before its
/// content is skipped: what is known of a field counts, also where the text is broken behind its
/// beginning.
struct FieldSeed<'f, 'b>(&'f mut Field<'b>);

impl<'b> FieldSeed<'_, 'b> {
    fn fill<E>(self, value: Result<Cow<'b, str>, Kind>) -> Result<(), E> {
        let is_repeated = self.0.is_some();
        *self.0 = Some(if is_repeated {
            Err(Kind::RepeatedKey)
        } else {
            value
        });
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for FieldSeed<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

macro_rules! other_kinds {
    ($($visit:ident($($value:ty)?),)*) => {$(
        fn $visit<E>(self $(, _: $value)?) -> Result<(), E> {
            self.fill(Err(Kind::TypeMismatch))
        }
    )*};
}

impl<'de> Visitor<'de> for FieldSeed<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<(), E> {
        self.fill(Ok(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.fill(Ok(Cow::Owned(text.to_owned())))
    }

    other_kinds! { visit_bool(bool), visit_i64(i64), visit_u64(u64), visit_f64(f64), visit_unit(), }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<(), A::Error> {
        self.visit_unit::<A::Error>()?;
        IgnoredAny.visit_seq(seq).map(drop)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        self.visit_unit::<A::Error>()?;
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
    fn the_front_is_read_as_any_other_part_on_every_edit_of_one_byte() {
        let body = br#"{"id":"evt_1","type":"a.b","data":{}}"#;
        let mut at_the_front = 0;
        for at in 0..=body.len() {
            for byte in 0..=u8::MAX {
                let mut edits = vec![body.to_vec(), body.to_vec(), body.to_vec()];
                edits[0].insert(at, byte);
                if at < body.len() {
                    edits[1][at] = byte;
                    edits[2].remove(at);
                }
                for edited in edits {
                    if let Some(head) = super::at_the_front(&edited) {
                        assert_eq!(search(&edited, None).ok(), Some(head));
                        at_the_front += 1;
                    }
                }
            }
        }
        assert!(at_the_front > 1_000, "{at_the_front}");
    }

    #[test]
    fn faults_up_to_there_are_distinguished() {
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
                (Kind::RepeatedKey, at("id")),
            ),
            (
                r#"{"type":"a","type":"a","id":"c"}"#,
                (Kind::RepeatedKey, at("type")),
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
        let ok = r#"{"id":"a","type":"b","createdAt":"","workspaceId":"ws_1","data":{}} "#;
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
            (r#"{"workspaceId":["ws_1","#, Kind::WorkspaceMismatch),
            (r#"{"workspaceId":"ws_1,"#, Kind::Syntax),
            (r#"{"id":"a","type":"b","#, Kind::Syntax),
            (
                r#"{"workspaceId":"ws_1","workspaceId":"ws_1","id":"a","type":"b"}"#,
                Kind::WorkspaceMismatch,
            ),
            // Nothing foreign was found, but the rest can't be read: it might name another
            // workspace.
            (
                r#"{"workspaceId":"ws_1","id":"a","type":"b","data"#,
                Kind::Syntax,
            ),
            (
                r#"{"workspaceId":"ws_1","id":"a","type":"b"} {"workspaceId":"ws_2"}"#,
                Kind::Syntax,
            ),
            (
                r#"{"workspaceId":"ws_1","id":"a","type":"b","id":"c"}"#,
                Kind::RepeatedKey,
            ),
        ] {
            assert_eq!(
                kind(body, Some("ws_1")).map_err(|error| error.0),
                Err(expected),
                "{body}"
            );
        }
    }

    #[test]
    fn a_second_workspace_is_found_at_every_place_and_in_every_spelling() {
        let fields = [
            r#""id":"a""#,
            r#""type":"b""#,
            r#""workspaceId":"ws_1""#,
            r#""data":{"workspaceId":"ws_2"}"#,
        ];
        let keys = ["workspaceId", r"workspace\u0049d", r"\u0077orkspaceId"];
        let values = [r#""ws_1""#, r#""ws_2""#, r#""ws_\u0031""#, "null", "[{}]"];
        for order in 0..24 {
            let (mut left, mut ordered, mut order) = (fields.to_vec(), Vec::new(), order);
            for count in (1..=4).rev() {
                ordered.push(left.remove(order % count));
                order /= count;
            }
            let one = format!("{{{}}}", ordered.join(","));
            assert_eq!(kind(&one, Some("ws_1")).as_deref(), Ok("a b"), "{one}");
            for (at, key, value) in (0..=4).flat_map(|at| {
                let pairs = move |key| values.map(|value| (at, key, value));
                keys.into_iter().flat_map(pairs)
            }) {
                let mut two = ordered.clone();
                let second = format!("\"{key}\":{value}");
                two.insert(at, &second);
                let two = format!("{{{}}}", two.join(","));
                let found = kind(&two, Some("ws_1")).map_err(|error| error.0);
                assert_eq!(found, Err(Kind::WorkspaceMismatch), "{two}");
            }
        }
    }

    #[test]
    fn a_second_workspace_counts_also_where_its_value_cannot_be_read() {
        for value in ["1e400", r#""\ud800""#] {
            let body =
                format!(r#"{{"workspaceId":"ws_1","id":"a","type":"b","workspaceId":{value}}}"#);
            let found = kind(&body, Some("ws_1")).map_err(|error| error.0);
            assert_eq!(found, Err(Kind::WorkspaceMismatch), "{body}");
        }
    }

    #[cfg(feature = "tower")]
    #[test]
    fn the_creation_is_read_at_any_place() {
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
