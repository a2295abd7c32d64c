//! An event in the form in which the service writes it: the fields in the order of its samples, without white space and without
//! escapes in the texts that are read here. serde_json reads only the row's properties or changes.
//!
//! Any other form is left to [`parse`](super::parse), which reads this form too, with the same result.

use serde::Deserialize;

use super::content::{Event, EventData};
use super::date::DateText;
use super::fields::Fields;
use super::ids::EventId;
use super::row::{Actor, RowCreated, RowUpdated};

/// Reads an event in this form; `None` for any other form. An error means that the row does not fit its type: the event need not
/// be read again.
pub(super) fn event<'t, R: Deserialize<'t>>(
    text: &'t str,
) -> Option<Result<Event<R>, serde_json::Error>> {
    let mut rest = Rest(text);
    let id = EventId::parse(rest.text_after(r#"{"id":""#)?).ok()?;
    let event_type = rest.text_after(r#","type":""#)?;
    let created_at = DateText::of(rest.text_after(r#","createdAt":""#)?);
    let workspace_id = rest.text_after(r#","workspaceId":""#)?.into();
    let data = match event_type {
        "row.created" => rest
            .row(r#","properties":"#, r#","createdBy":{"id":""#)?
            .map(EventData::RowCreated),
        "row.updated" => rest
            .row(r#","changes":"#, r#","updatedBy":{"id":""#)?
            .map(|row| EventData::RowUpdated(RowUpdated::of(row))),
        _ => return None,
    };
    let event = |data| Event {
        id,
        created_at,
        workspace_id,
        data,
        extra: Fields::default(),
    };
    match data {
        Ok(data) => (rest.0 == "}").then(|| Ok(event(data))),
        Err(error) => Some(Err(error)),
    }
}

/// The part of the body that is not read yet.
struct Rest<'t>(&'t str);

impl<'t> Rest<'t> {
    fn skip(&mut self, expected: &str) -> Option<()> {
        self.0 = self.0.strip_prefix(expected)?;
        Some(())
    }

    /// Reads a text that begins after `expected`, which ends with the opening quotation mark.
    fn text_after(&mut self, expected: &str) -> Option<&'t str> {
        self.skip(expected)?;
        let (text, rest) = self.0.split_at_checked(plain_length(self.0.as_bytes()))?;
        self.0 = rest.strip_prefix('"')?;
        Some(text)
    }

    /// Reads the data of an event. `content` is the text before the properties or changes, and `actor` that before the actor's id.
    fn row<C: Deserialize<'t>>(
        &mut self,
        content: &str,
        actor: &str,
    ) -> Option<Result<RowCreated<C>, serde_json::Error>> {
        let datamodel_id = self.text_after(r#","data":{"datamodelId":""#)?.into();
        let datamodel_name = self.text_after(r#","datamodelName":""#)?.into();
        let row_id = self.text_after(r#","rowId":""#)?.into();
        self.skip(content)?;
        let mut values = serde_json::Deserializer::from_str(self.0).into_iter();
        let properties = match values.next()? {
            Ok(properties) => properties,
            Err(error) => return Some(Err(error)),
        };
        self.0 = self.0.get(values.byte_offset()..)?;
        let id = self.text_after(actor)?.into();
        let name = self.text_after(r#","name":""#)?.into();
        let email = self.text_after(r#","email":""#).map(Into::into);
        self.skip("}}")?;
        Some(Ok(RowCreated {
            datamodel_id,
            datamodel_name,
            row_id,
            properties,
            created_by: Some(Actor {
                id,
                name,
                email,
                extra: Fields::default(),
                email_is_null: false,
            }),
            extra: Fields::default(),
            actor_is_null: false,
        }))
    }
}

/// Returns the number of bytes before the first quotation mark, backslash or control character.
pub(super) fn plain_length(text: &[u8]) -> usize {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    // The high bit of each byte that is zero. A borrow can set it in a byte above such a byte, and the lowest one counts.
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word;
    let is = |word: u64, byte: u8| zeros(word ^ (ONES * u64::from(byte)));
    let (words, rest) = text.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let control = word.wrapping_sub(ONES * 0x20) & !word;
        let found = (control | is(word, b'"') | is(word, b'\\')) & HIGH;
        if found != 0 {
            return at * 8 + found.trailing_zeros() as usize / 8;
        }
    }
    let ends = |byte: &u8| matches!(byte, ..0x20 | b'"' | b'\\');
    text.len() - rest.len() + rest.iter().position(ends).unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::marker::PhantomData;

    use serde::de::DeserializeOwned;

    use super::super::{parse, properties::Properties};
    use super::*;

    const CREATED: &str = r#"{"id":"e","type":"row.created","createdAt":"","workspaceId":"w","data":{"datamodelId":"d","datamodelName":"é","rowId":"r","properties":{"a":1},"createdBy":{"id":"u","name":"n","email":"m"}}}"#;
    const UPDATED: &str = r#"{"id":"e","type":"row.updated","createdAt":"","workspaceId":"w","data":{"datamodelId":"d","datamodelName":"n","rowId":"r","changes":{"a":{"before":1,"after":[]}},"updatedBy":{"id":"u","name":"n"}}}"#;

    fn shown<R: serde::Serialize>(event: Result<Event<R>, serde_json::Error>) -> Option<String> {
        event
            .ok()
            .map(|event| serde_json::to_string(&event).unwrap())
    }

    fn compare<R: serde::Serialize + DeserializeOwned>(text: &str) -> bool {
        let in_order = event::<R>(text);
        let is_in_order = in_order.is_some();
        if let Some(read) = in_order {
            let whole = shown(parse::in_any_order(text, PhantomData::<R>));
            assert_eq!(shown(read), whole, "{text}");
        }
        is_in_order
    }

    #[test]
    fn the_services_form_is_read_as_any_other_on_every_edit_of_one_byte() {
        let mut in_order = 0;
        for body in [CREATED, UPDATED] {
            assert!(event::<Properties>(body).unwrap().is_ok());
            for at in 0..=body.len() {
                for byte in 0..=u8::MAX {
                    let mut edits = vec![body.as_bytes().to_vec(); 3];
                    edits[0].insert(at, byte);
                    if at < body.len() {
                        edits[1][at] = byte;
                        edits[2].remove(at);
                    }
                    for text in edits
                        .iter()
                        .filter_map(|edited| std::str::from_utf8(edited).ok())
                    {
                        in_order += usize::from(compare::<Properties>(text));
                        compare::<BTreeMap<String, u8>>(text);
                    }
                }
            }
        }
        assert!(in_order > 5_000, "{in_order}");
    }

    #[test]
    fn another_form_is_left_to_the_parser() {
        for (from, to) in [
            (r#","createdBy":{"id":"u","name":"n","email":"m"}"#, ""),
            (r#""email":"m""#, r#""email":null"#),
            (r#""email":"m""#, r#""email":"m","extra":1"#),
            (r#""name":"n","email":"m""#, r#""email":"m","name":"n""#),
            ("row.created", "page.created"),
            (r#""id":"e""#, r#""id":"\u0065""#),
            ("}}}", "}} }"),
            ("}}}", "}},\"extra\":1}"),
            ("}}}", "}}}}"),
        ] {
            let text = CREATED.replace(from, to);
            assert!(
                text != CREATED && event::<Properties>(&text).is_none(),
                "{text}"
            );
        }
    }

    #[test]
    fn a_row_that_does_not_fit_is_an_error_and_not_read_again() {
        assert!(event::<BTreeMap<String, bool>>(CREATED).unwrap().is_err());
    }

    #[test]
    fn the_end_of_a_plain_text_is_found_at_every_place() {
        for length in 0..40 {
            let plain: Vec<u8> = (0..length)
                .map(|at| [b' ', 0x7f, 0x80, 0xff][at % 4])
                .collect();
            assert_eq!(plain_length(&plain), length);
            for at in 0..length {
                for byte in 0..=u8::MAX {
                    let mut text = plain.clone();
                    text[at] = byte;
                    let ends = byte < 0x20 || byte == b'"' || byte == b'\\';
                    assert_eq!(
                        plain_length(&text),
                        if ends { at } else { length },
                        "{byte}"
                    );
                }
            }
        }
    }
}
