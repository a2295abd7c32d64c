//! Seeds: the JSON that a workspace begins with.

mod check;
mod error;
mod file;

use std::sync::Arc;

use hookgate::internal::from_foreign_json;
use serde_json::Value;

pub use error::SeedError;
pub(crate) use file::SeedFile;

/// The workspace that an emulator starts with, and returns to with `reset`. A snapshot is a seed as
/// well.
///
/// `docs/emulator.md` has the form, and says which fields are required. An unknown field is an
/// error, except in `pages`, `blocks`, `workflows` and `stats`.
///
/// ```
/// use hookgate_emulator::Seed;
///
/// let seed = Seed::parse(r#"{"keys": [{"name": "ci", "key": "tk_test_admin", "scope": "admin"}]}"#);
/// assert!(seed.is_ok());
///
/// let wrong = Seed::parse("{\n  \"keis\": []\n}").unwrap_err();
/// assert_eq!((wrong.line(), wrong.column()), (2, 8));
/// assert!(wrong.to_string().contains("expected one of `workspace`, `switches`, `keys`"), "{wrong}");
/// ```
#[derive(Clone, Debug)]
pub struct Seed(pub(crate) Arc<SeedFile>);

impl Seed {
    /// Reads a seed.
    ///
    /// # Errors
    /// The text is not JSON of this form. The error has the line, the column and the expected form.
    pub fn parse(text: &str) -> Result<Self, SeedError> {
        let start = text.trim_ascii_start();
        if !start.is_empty() && !start.starts_with('{') {
            let offset = text.len() - start.len();
            return Err(SeedError::at(text, offset, "expected a JSON object"));
        }
        let read = from_foreign_json::<SeedFile>(text.as_bytes());
        let file = read.map_err(|error| {
            let value = from_foreign_json::<Value>(text.as_bytes()).ok();
            match value.as_ref().map(check::check_form) {
                Some(Err(wrong)) => wrong.in_text(text),
                _ => SeedError::of_json(text, &error),
            }
        })?;
        check::check(&file).map_err(|wrong| wrong.in_text(text))?;
        Ok(Self(Arc::new(file)))
    }

    /// Adds a subscription to all events for this URL.
    ///
    /// # Errors
    /// The id, the URL or the secret is not valid, or the id is taken.
    pub fn subscription(self, id: &str, url: &str, secret: &str) -> Result<Self, SeedError> {
        let mut file = SeedFile::clone(&self.0);
        let subscription = serde_json::json!({ "id": id, "url": url, "secret": secret });
        let subscription = serde_json::from_value(subscription);
        file.subscriptions
            .push(subscription.map_err(|error| SeedError::of_json("", &error))?);
        check::check(&file).map_err(|wrong| SeedError::at("", 0, wrong.message))?;
        Ok(Self(Arc::new(file)))
    }

    /// Returns an empty workspace: `ws_1`, of the tier Standard, without keys.
    #[must_use]
    pub fn empty() -> Self {
        Self(Arc::new(SeedFile::default()))
    }

    /// Returns the sample workspace of the docs: orders and their clients, a key of each scope
    /// (`tk_test_read`, `tk_test_write`, `tk_test_admin`), two members, pages and a trigger. It has
    /// no subscription.
    ///
    /// # Panics
    /// Never: a test parses the sample.
    #[must_use]
    pub fn orders() -> Self {
        #[allow(clippy::expect_used)] // a constant, which a test parses
        Self::parse(include_str!("orders.json")).expect("the sample seed is a seed")
    }
}

#[cfg(test)]
mod tests;
