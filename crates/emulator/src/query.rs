//! The query of a request: parameters with their forms.

use crate::answer::ApiError;

/// Decoded pairs in order. The first of a name counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(text: &str) -> Self {
        let pairs = form_urlencoded::parse(text.as_bytes());
        Self(pairs.into_owned().collect())
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        let pair = self.0.iter().find(|(other, _)| other == name);
        pair.map(|(_, value)| &**value)
    }

    /// Reads an integer of at least `least`.
    pub(crate) fn number(&self, name: &str, least: u64, default: u64) -> Result<u64, ApiError> {
        let Some(text) = self.text(name) else {
            return Ok(default);
        };
        let number = text.parse::<u64>().ok().filter(|number| *number >= least);
        number.ok_or_else(|| {
            let message =
                format!("parameter `{name}` is {text:?}, expected an integer of at least {least}");
            ApiError::validation(message)
        })
    }

    pub(crate) fn flag(&self, name: &str) -> Result<bool, ApiError> {
        match self.text(name) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(text) => {
                let message = format!("parameter `{name}` is {text:?}, expected true or false");
                Err(ApiError::validation(message))
            }
        }
    }
}

/// A part of a path, as `encodeURIComponent` of the pages writes it: a key's name may hold a space.
pub(crate) fn decoded(part: &str) -> String {
    let query = Query::parse(&format!("part={}", part.replace('+', "%2B")));
    query.text("part").unwrap_or_default().to_owned()
}
