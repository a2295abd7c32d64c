//! What a row must say to be safe: a row that could never pass a delivery, or that trusts a value
//! that is not signed, is refused.

use super::written::is_name;
use super::{Form, Part, Place, Scheme};
use crate::config::{ConfigError, ConfigErrorKind};

/// Headers that say how the body is sent. The layer reads them itself.
const OF_HTTP: [&str; 4] = [
    "content-encoding",
    "content-length",
    "content-type",
    "transfer-encoding",
];

impl Scheme {
    /// Checks the row.
    ///
    /// # Errors
    /// `UnusableScheme`, with a sentence for the author of the row.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let fault = self.of_name();
        let fault = fault.or_else(|| self.of_headers());
        let fault = fault.or_else(|| self.of_form());
        let fault = fault.or_else(|| self.of_parts());
        let fault = fault.or_else(|| self.of_places());
        fault.map_or(Ok(()), |fault| Err(unusable(self, fault)))
    }

    fn of_name(&self) -> Option<&'static str> {
        let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if !(1..=64).contains(&self.name.len()) || !self.name.bytes().all(is_of_name) {
            return Some("it needs a name of letters, digits, - _ and ., at most 64 of them");
        }
        // A stored delivery names its row, and is read by the row that ships under that name.
        let shipped = Self::named(self.name);
        let is_other = shipped.is_some_and(|row| !row.is_same(self));
        is_other.then_some("a row that ships has this name: give it another one, .with_name(…)")
    }

    fn of_headers(&self) -> Option<&'static str> {
        let headers = self.headers_read();
        let named = || headers.iter().flatten().copied();
        // RFC 9110, section 5.6.2, in lower case. A bit of a word stands for each length: see
        // `HeaderSlots`.
        let is_of_token = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"!#$%&'*+-.^_`|~".contains(&byte)
        };
        let is_usable = |name: &str| (1..64).contains(&name.len()) && name.bytes().all(is_of_token);
        let is_repeated = |name: &str| named().filter(|other| *other == name).count() > 1;
        if !named().all(is_usable) {
            return Some("headers are named in lower case, by at most 63 characters");
        }
        if named().any(is_repeated) {
            return Some("one header has two meanings");
        }
        let is_of_http = named().any(|name| OF_HTTP.contains(&name));
        is_of_http.then_some("a header that says how the body is sent can't say how it is signed")
    }

    fn of_form(&self) -> Option<&'static str> {
        let element = match self.timestamp {
            Some(Place::Element(name)) => Some(name),
            _ => None,
        };
        let Form::List { separator, version } = self.form else {
            return element.map(|_| "an element needs a list of signatures");
        };
        // A name, and a mark that is in no name.
        let is_label = |label: &str| match label.as_bytes() {
            [name @ .., mark] => is_name(name) && mark.is_ascii_punctuation() && !is_name(&[*mark]),
            [] => false,
        };
        let labels = || std::iter::once(version).chain(element);
        let is_in_signature =
            |char: char| char.is_ascii_alphanumeric() || ['+', '/', '=', '-', '_'].contains(&char);
        if !labels().all(is_label) {
            return Some(
                "a version has a name and a mark behind it, such as v1=, and so has an element",
            );
        }
        if element == Some(version) {
            return Some("the timestamp and the signatures need two names in the list");
        }
        if !(separator.is_ascii_graphic() || separator == ' ')
            || is_in_signature(separator)
            || labels().any(|label| label.contains(separator))
        {
            return Some(
                "the separator of a list is a blank or a sign that is in none of its elements, such as a comma",
            );
        }
        None
    }

    fn of_parts(&self) -> Option<&'static str> {
        let Some((Part::Body, before)) = self.signed.split_last() else {
            return Some("the body must be the last part of what is signed");
        };
        let count = |wanted: Part| before.iter().filter(|part| **part == wanted).count();
        // A value that is signed without an end could give bytes to the next one, under the same
        // signature.
        let has_end = |at: usize| {
            matches!(before.get(at + 1), Some(Part::Text(text)) if !text.is_empty()
                && !text.starts_with(|first: char| first.is_ascii_digit()))
        };
        let mut values = before
            .iter()
            .enumerate()
            .filter(|(_, part)| !matches!(part, Part::Text(_)));
        Some(match (self.timestamp, self.id) {
            _ if count(Part::Body) > 0 => "the body is signed once, as the last part",
            _ if !values.all(|(at, _)| has_end(at)) => {
                "a text must follow each signed id and timestamp, and not begin with a digit"
            }
            (Some(_), _) if count(Part::Timestamp) != 1 => "its timestamp is not signed, or twice",
            (None, _) if count(Part::Timestamp) > 0 => {
                "it signs a timestamp and names no place of it"
            }
            (_, Some(Place::Header(_))) if count(Part::Id) != 1 => {
                "its id stands in a header that is not signed: an id decides only if it was signed; name it with .hints(…)"
            }
            (_, None | Some(Place::Json(_))) if count(Part::Id) > 0 => {
                "it signs an id of a header, and names no header of it"
            }
            _ => return None,
        })
    }

    fn of_places(&self) -> Option<&'static str> {
        let kind_field = self.kind_field().map(|(name, _)| name);
        let mut fields = self.id_field().into_iter().chain(kind_field);
        Some(match (self.timestamp, self.id, self.kind) {
            (Some(Place::Json(_) | Place::JsonIfPresent(_)), ..) => {
                "the timestamp stands in a header or an element of the signature's list"
            }
            (_, Some(Place::Header(_)), _) if self.id_hint.is_some() => {
                "it has two headers for the id"
            }
            (_, Some(Place::Element(_) | Place::JsonIfPresent(_)), _) => {
                "the id stands in a signed header or in the body of each delivery"
            }
            (_, _, Some(Place::Header(_) | Place::Element(_))) => {
                "a type that is signed stands in the body; name a header with .hints(…)"
            }
            _ if self.id_field().is_some() && self.id_field() == kind_field => {
                "one field has two meanings"
            }
            _ if fields.any(|name| name.is_empty() || name.contains('.')) => {
                "a field is one of the body's own, named without a path"
            }
            _ => return None,
        })
    }
}

/// Returns the error of a row, or of a setting that does not fit it.
pub(crate) fn unusable(scheme: &Scheme, fault: &str) -> ConfigError {
    let message = format!("the scheme {:?} can't be used: {fault}", scheme.name);
    ConfigError::saying(ConfigErrorKind::UnusableScheme, message).about(scheme.name)
}
