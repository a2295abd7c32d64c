//! The text of an id. A short text needs no allocation.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::ops::Deref;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// At least as long as any id in the service's samples.
const SHORT: usize = 46;

/// An immutable text. It has one form for each text, so two are equal where their forms are.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Text {
    Short { length: u8, bytes: [u8; SHORT] },
    Long(Box<str>),
}

impl<T: AsRef<str> + Into<Box<str>>> From<T> for Text {
    fn from(text: T) -> Self {
        let short = Self::short(text.as_ref().as_bytes());
        short.unwrap_or_else(|| Self::Long(text.into()))
    }
}

impl Text {
    /// Returns a text that needs no allocation. Its bytes must be UTF-8.
    fn short(text: &[u8]) -> Option<Self> {
        let (mut bytes, length) = ([0; SHORT], u8::try_from(text.len()).ok()?);
        bytes.get_mut(..text.len())?.copy_from_slice(text);
        Some(Self::Short { length, bytes })
    }

    /// Returns the bytes of the text. Its form as a `str` is checked at each use, which costs more than most uses of it.
    pub(super) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Short { length, bytes } => bytes.get(..usize::from(*length)).unwrap_or_default(),
            Self::Long(text) => text.as_bytes(),
        }
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            // It was made from a text, so it is valid UTF-8.
            Self::Short { .. } => std::str::from_utf8(self.as_bytes()).unwrap_or_default(),
            Self::Long(text) => text,
        }
    }
}

impl PartialOrd for Text {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Text {
    fn cmp(&self, other: &Self) -> Ordering {
        (**self).cmp(&**other)
    }
}

/// Hashes as a `str`, because an id can be borrowed as one.
impl Hash for Text {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

/// Reads all that a `String` is read from.
impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Name::deserialize(deserializer).map(|Name(text)| text.into())
    }
}

/// A text, borrowed where it has no escapes. (`Cow` itself never borrows when deserialised.)
#[derive(Deserialize)]
#[serde(transparent)] // Without it, the path tracker would not see the names of fields.
pub(super) struct Name<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_text_of_any_length_is_what_it_was_made_of() {
        let mut all = HashSet::new();
        for length in 0..=300 {
            for character in ["a", "é", "\u{3000}"] {
                let text = character.repeat(length);
                let kept = Text::from(&*text);
                assert_eq!(*kept, *text);
                assert!(kept == Text::from(text.clone()));
                let json = serde_json::to_string(&text).unwrap();
                assert!(serde_json::from_str::<Text>(&json).unwrap() == kept);
                assert_eq!(matches!(kept, Text::Short { .. }), text.len() <= SHORT);
                assert!(kept == kept.clone());
                assert_eq!(kept.cmp(&Text::from("aa")), (*text).cmp("aa"));
                all.insert(kept);
            }
        }
        assert_eq!(all.len(), 3 * 300 + 1);
    }
}
