//! The person or the row whose data is looked for, and the places where it can stand.

use std::borrow::Cow;
use std::fmt;

use hookgate_inbox::{Listed, StoredEntry};
use hookgate_record::LoggedDelivery;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// So many texts in texts are looked into.
const DEEPEST: usize = 8;
const BACKSLASH: u16 = b'\\' as u16;

/// The person or the row.
#[derive(Clone, Copy)]
pub(super) enum Subject<'a> {
    Person(&'a str),
    Row(&'a str),
}

/// The place of the data in an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    /// In its body, and perhaps in its last error: the entry is of the person or the row.
    InBody,
    /// In its last error alone: the entry is another's.
    InLastError,
}

/// An id of a person or a row.
pub(super) fn id(text: &str) -> Result<String, &'static str> {
    if text.trim() != text || text.is_empty() {
        return Err("write the id as the events have it, without spaces around it");
    }
    Ok(text.to_owned())
}

impl<'a> Subject<'a> {
    /// Clap has checked that one of the two is given.
    pub(super) fn of(person: Option<&'a str>, row: Option<&'a str>) -> Self {
        match (person, row) {
            (Some(person), _) => Self::Person(person),
            (None, row) => Self::Row(row.unwrap_or_default()),
        }
    }

    pub(super) fn is_in(&self, entry: &StoredEntry) -> Option<Holds> {
        let body = entry.body.as_ref();
        if body.is_some_and(|body| self.is_in_body(body)) {
            return Some(Holds::InBody);
        }
        self.is_in_last_error(&entry.listed)
    }

    pub(super) fn is_in_last_error(&self, listed: &Listed) -> Option<Holds> {
        let error = listed.last_error.as_deref()?;
        self.is_in_text(error).then_some(Holds::InLastError)
    }

    pub(super) fn is_in_logged(&self, logged: &LoggedDelivery) -> bool {
        let reason = logged.answer.as_ref();
        let reason = reason.and_then(|answer| answer.reason.as_deref());
        self.is_in_text(&logged.target)
            || self.is_in_text(reason.unwrap_or_default())
            || logged
                .headers
                .iter()
                .any(|(_, value)| self.is_in_text(&String::from_utf8_lossy(value)))
            || logged
                .body
                .as_ref()
                .is_some_and(|body| self.is_in_body(body))
    }

    /// Whether the id stands in the text as a word: neither a letter, a digit, `_` nor `-` is beside it.
    pub(super) fn is_in_text(&self, text: &str) -> bool {
        let is_of_a_word = |char: char| char.is_alphanumeric() || char == '_' || char == '-';
        let (text, id) = self.comparable(text);
        text.match_indices(&*id).any(|(at, _)| {
            let (before, behind) = (&text[..at], &text[at + id.len()..]);
            !before.ends_with(is_of_a_word) && !behind.starts_with(is_of_a_word)
        })
    }

    /// Whether the id stands anywhere in bytes that can't be read as JSON, as they may have been cut or changed: as it is, or
    /// behind escapes. The characters beside it do not count, since in `\nAda` one is a letter: a match too many is better than one too few.
    pub(super) fn is_in_raw(&self, bytes: &[u8]) -> bool {
        let text = String::from_utf8_lossy(bytes);
        let (mut text, id) = self.comparable(&text);
        // A body in a line of a log is a text in a text, and may hold others.
        for _ in 0..DEEPEST {
            if text.contains(&*id) {
                return true;
            }
            let Some(plain) = unescaped(&text) else {
                return false;
            };
            // A letter that was escaped may be a capital one.
            text = Cow::Owned(self.comparable(&plain).0.into_owned());
        }
        text.contains(&*id)
    }

    /// A text and the id, as they are compared: an e-mail address counts in capital and small letters.
    fn comparable<'t>(&self, text: &'t str) -> (Cow<'t, str>, Cow<'a, str>) {
        let (Self::Person(id) | Self::Row(id)) = *self;
        if id.contains('@') {
            let lower = |text: &str| Cow::Owned(text.to_ascii_lowercase());
            return (lower(text), lower(id));
        }
        (text.into(), id.into())
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "texts are compared as they are read"
    )]
    fn is_in_body(&self, body: &[u8]) -> bool {
        let mut json = serde_json::Deserializer::from_slice(body);
        let search = Search {
            subject: self,
            place: Place::Top,
        };
        let found = search
            .deserialize(&mut json)
            .and_then(|found| json.end().map(|()| found));
        found.unwrap_or_else(|_| self.is_in_raw(body))
    }
}

/// Undoes the escapes of a JSON text once. `None` if it has no escape. Other text and cut-off escapes stay as they are.
fn unescaped(text: &str) -> Option<String> {
    let units: Vec<u16> = text.encode_utf16().collect();
    let (mut plain, mut rest) = (Vec::with_capacity(units.len()), &units[..]);
    while let [first, behind @ ..] = rest {
        // Two escapes in a row may be the halves of one character.
        let (unit, behind) = match escape(rest) {
            Some((unit, length)) => (unit, &rest[length..]),
            None => (*first, behind),
        };
        plain.push(unit);
        rest = behind;
    }
    (plain.len() < units.len()).then(|| String::from_utf16_lossy(&plain))
}

/// The character of an escape, and the length of the escape.
fn escape(text: &[u16]) -> Option<(u16, usize)> {
    let [BACKSLASH, kind, digits @ ..] = text else {
        return None;
    };
    let kind = u8::try_from(*kind).ok()?;
    let char = match kind {
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'b' => 8,
        b'f' => 12,
        b'"' | b'\\' | b'/' => kind,
        b'u' => {
            let digits = digits.get(..4)?.iter().try_fold(0, |number, &digit| {
                let digit = char::from(u8::try_from(digit).ok()?).to_digit(16)?;
                Some(number << 4 | u16::try_from(digit).ok()?)
            });
            return Some((digits?, 6));
        }
        _ => return None,
    };
    Some((char.into(), 2))
}

/// The place of a value in a body.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Top,
    Data,
    RowId,
    Other,
}

/// Looks through a value, names of fields included. A name that stands there twice counts each time, which a map would hide.
#[derive(Clone, Copy)]
struct Search<'s> {
    subject: &'s Subject<'s>,
    place: Place,
}

impl Search<'_> {
    fn at(self, name: &str) -> Self {
        let place = match (self.place, name) {
            (Place::Top, "data") => Place::Data,
            (Place::Data, "rowId") => Place::RowId,
            _ => Place::Other,
        };
        Self { place, ..self }
    }

    fn is_in(self, text: &str) -> bool {
        match self.subject {
            Subject::Person(_) => self.subject.is_in_text(text),
            Subject::Row(row) => self.place == Place::RowId && text == *row,
        }
    }
}

impl<'de> DeserializeSeed<'de> for Search<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Search<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
        let mut found = false;
        while let Some(name) = map.next_key::<String>()? {
            found |= matches!(self.subject, Subject::Person(_)) && self.is_in(&name);
            found |= map.next_value_seed(self.at(&name))?;
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<bool, A::Error> {
        let inside = self.at("");
        let mut found = false;
        while let Some(value) = list.next_element_seed(inside)? {
            found |= value;
        }
        Ok(found)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<bool, E> {
        Ok(self.is_in(text))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<bool, E> {
        Ok(self.is_in(&number.to_string()))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<bool, E> {
        Ok(self.is_in(&number.to_string()))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_unit<E: Error>(self) -> Result<bool, E> {
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_is_found_in_every_place_and_no_other_person() {
        let person = Subject::Person("usr_1");
        for body in [
            r#"{"data":{"createdBy":{"id":"usr_1","name":"Ada"}}}"#,
            r#"{"data":{"properties":{"Owner":["usr_2","usr_1"]}}}"#,
            r#"{"data":{"properties":{"Note":"ask @usr_1, please"}}}"#,
            r#"{"data":{"changes":{"Owner":{"before":{"id":"usr_1"},"after":null}}}}"#,
            r#"{"data":{"usr_1":true}}"#,
            r#"{"data":{"a":"\u0075sr_1","a":"usr_2"}}"#,
            r#"{"data":{"deletedBy":{"id":"usr_1"}}"#, // cut off
            "usr_1",
        ] {
            assert!(person.is_in_body(body.as_bytes()), "{body}");
        }
        for body in [
            r#"{"id":"evt_1","data":{"createdBy":{"id":"usr_12"}}}"#,
            r#"{"data":{"createdBy":{"id":"xusr_1"},"n":[1,2.5,null,true]}}"#,
            r#"{"data":{"id":"usr_1-b","x":"usr_1_2"}}"#,
            "",
        ] {
            assert!(!person.is_in_body(body.as_bytes()), "{body}");
        }
        assert!(Subject::Person("ada@example.com").is_in_body(br#"{"a":"Ada <ada@example.com>"}"#));
        assert!(Subject::Person("7").is_in_body(br#"{"user":7}"#));
    }

    #[test]
    fn a_person_is_found_behind_escapes_in_what_was_cut_off() {
        for body in [
            r#"{"a":"Dear\nAda"#,
            r#"{"a":"Dear\\\\nAda"#,
            r#"{"a":"\u0041da"#,
            r#"{"a":"\\u0041d\\u0061"#,
            r#"{"a":"\\\\u005cu0041da, \u00"#,
            "xAdax\\",
        ] {
            assert!(Subject::Person("Ada").is_in_body(body.as_bytes()), "{body}");
        }
        assert!(!Subject::Person("Ada").is_in_body(br#"{"a":"\u0042da, A\u00 da \x\"#));
        let smile = Subject::Person("\u{1f600}");
        assert!(smile.is_in_body(br#"{"a":"\ud83d\ude00"#));
        let address = Subject::Person("Ada@Example.com");
        for body in [
            r#"{"a":"Ada <ADA@example.COM>"}"#,
            r#"{"a":"\u0041DA@example.com"#,
        ] {
            assert!(address.is_in_body(body.as_bytes()), "{body}");
        }
        assert!(!Subject::Person("usr_a").is_in_body(br#"{"a":"usr_A"}"#));
    }

    #[test]
    fn a_row_is_found_by_its_own_id_and_not_by_relations_to_it() {
        let row = Subject::Row("row_1");
        for body in [
            r#"{"data":{"rowId":"row_1"}}"#,
            r#"{"data":{"rowId":"row_1","rowId":"row_2"}}"#,
            r#"{"data":{"rowId":"row_1""#,
        ] {
            assert!(row.is_in_body(body.as_bytes()), "{body}");
        }
        for body in [
            r#"{"data":{"rowId":"row_12"}}"#,
            r#"{"rowId":"row_1","data":{"rowId":"row_2","properties":{"Customer":["row_1"]}}}"#,
            r#"{"data":{"properties":{"rowId":"row_1"}}}"#,
            r#"{"data":[{"rowId":"row_1"}]}"#,
        ] {
            assert!(!row.is_in_body(body.as_bytes()), "{body}");
        }
    }

    #[test]
    fn an_id_that_would_fit_everything_is_refused() {
        assert_eq!(id("usr_1"), Ok("usr_1".to_owned()));
        for text in ["", " ", "usr_1 ", "\tusr_1"] {
            assert!(id(text).is_err(), "{text:?}");
        }
    }
}
