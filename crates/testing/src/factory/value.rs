//! Values in every format of the specification, as the text that is sent.

use std::fmt;

use serde_json::value::RawValue;

use super::tree::quoted;

/// The text of one JSON value, exactly as it is sent: `12.50` stays `12.50`, `"a\/b"` stays
/// `"a\/b"`.
///
/// There is one constructor for each property format of the specification. `Debug` shows only the
/// length.
///
/// ```
/// use hookgate_testing::factory::JsonText;
///
/// assert_eq!(JsonText::text("Ada \"the first\"").as_str(), r#""Ada \"the first\"""#);
/// assert_eq!(JsonText::currency("12.50").as_str(), "12.50");
/// assert_eq!(JsonText::multi_select(["gift", "express"]).as_str(), r#"["gift","express"]"#);
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct JsonText(Box<str>);

impl JsonText {
    /// TEXT: a string.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::raw(quoted(text))
    }

    /// NUMBER: these digits as they are written. A text that is not a JSON number is sent as well,
    /// and receivers refuse it.
    #[must_use]
    pub fn number(digits: impl fmt::Display) -> Self {
        Self::raw(digits.to_string())
    }

    /// CURRENCY: a number without a currency, as in the specification.
    #[must_use]
    pub fn currency(digits: impl fmt::Display) -> Self {
        Self::number(digits)
    }

    /// DATE: a date, or a date-time with its zone, in ISO 8601.
    #[must_use]
    pub fn date(iso8601: &str) -> Self {
        Self::text(iso8601)
    }

    /// SELECT: one of the property's options.
    #[must_use]
    pub fn select(option: &str) -> Self {
        Self::text(option)
    }

    /// MULTI_SELECT: some of the property's options.
    #[must_use]
    pub fn multi_select<'a>(options: impl IntoIterator<Item = &'a str>) -> Self {
        list(options.into_iter().map(quoted))
    }

    /// CHECKBOX: a boolean.
    #[must_use]
    pub fn checkbox(is_checked: bool) -> Self {
        Self::raw(is_checked.to_string())
    }

    /// RELATION: ids of rows.
    #[must_use]
    pub fn relation<'a>(rows: impl IntoIterator<Item = &'a str>) -> Self {
        list(rows.into_iter().map(quoted))
    }

    /// FILE: files by URL and name.
    #[must_use]
    pub fn file<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        list(files.into_iter().map(|(url, name)| {
            let (url, name) = (quoted(url), quoted(name));
            format!(r#"{{"url":{url},"name":{name}}}"#)
        }))
    }

    /// `null`: a property whose value was deleted.
    #[must_use]
    pub fn null() -> Self {
        Self::raw("null")
    }

    /// JSON where the text is JSON, and a string otherwise: `12.50` is a number, `open` a string.
    /// `007` and `NaN` are strings as well, because they are not JSON. For the string `12` write
    /// the quotes too.
    #[expect(clippy::disallowed_methods, reason = "only a raw text is made of it")]
    #[must_use]
    pub fn lenient(text: &str) -> Self {
        match serde_json::from_str::<&RawValue>(text) {
            Ok(json) => Self::raw(json.get()),
            Err(_) => Self::text(text),
        }
    }

    /// Exactly this text, JSON or not.
    #[must_use]
    pub fn raw(json: impl Into<Box<str>>) -> Self {
        Self(json.into())
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn into_text(self) -> Box<str> {
        self.0
    }
}

fn list(items: impl Iterator<Item = String>) -> JsonText {
    let items: Vec<_> = items.collect();
    JsonText::raw(format!("[{}]", items.join(",")))
}

impl fmt::Debug for JsonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JsonText({} bytes)", self.0.len())
    }
}
