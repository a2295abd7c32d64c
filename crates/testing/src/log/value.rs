//! The values of a body, to be compared.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

/// The greatest depth of a body that is compared path by path: reading it is recursive.
const MAX_DEPTH: usize = 127;

/// JSON from any sender. Numbers keep their digits: 12.50 is not 12.5. Each object and array is read as texts of its values,
/// because a [`Value`] gives some names a meaning of its own, and a logged body need not have been signed.
pub(super) enum Json {
    Object(BTreeMap<String, Json>),
    Array(Vec<Json>),
    /// A text, number or word, as JSON.
    Leaf(String),
}

impl Json {
    /// Returns `None` if the text is not JSON, or is nested too deep.
    pub(super) fn read(text: &[u8]) -> Option<Self> {
        Self::of(serde_json::from_slice(text).ok()?, MAX_DEPTH)
    }

    fn of(value: &RawValue, depth: usize) -> Option<Self> {
        let text = value.get();
        let below = |value| Self::of(value, depth.checked_sub(1)?);
        Some(match text.as_bytes().first()? {
            b'{' => {
                let fields: BTreeMap<String, &RawValue> = serde_json::from_str(text).ok()?;
                let fields = fields
                    .into_iter()
                    .map(|(name, value)| Some((name, below(value)?)));
                Self::Object(fields.collect::<Option<_>>()?)
            }
            b'[' => {
                let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
                Self::Array(items.into_iter().map(below).collect::<Option<_>>()?)
            }
            // The escapes of a text make no difference.
            b'"' => Self::Leaf(Value::String(serde_json::from_str(text).ok()?).to_string()),
            _ => Self::Leaf(text.to_owned()),
        })
    }
}
