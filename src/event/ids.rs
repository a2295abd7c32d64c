//! Ids as separate types, so that one can't be used in place of another.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::text_id::text_id;
use crate::verify::Malformed;

/// The maximum number of bytes of an id or a type.
const MAX_BYTES: usize = 256;

/// Returns whether a text can be an event's id or type: 1 to 256 bytes, no control characters, not
/// blank.
pub(super) fn is_usable(text: &str) -> bool {
    if text.len() > MAX_BYTES {
        return false;
    }
    // Nearly all texts have only these characters. Without an early exit, many bytes are checked at
    // once.
    let shows = |byte: u8| (b' '..=b'~').contains(&byte);
    if text.bytes().fold(true, |all, byte| all & shows(byte)) {
        return text.bytes().any(|byte| byte != b' ');
    }
    !text.chars().any(char::is_control) && !text.chars().all(char::is_whitespace)
}

/// Ids from the service that this crate does not depend on: any text.
macro_rules! free_ids {
    ($($(#[$meta:meta])* $name:ident;)*) => {
        $(
            text_id! {
                $(#[$meta])*
                #[derive(Serialize, Deserialize)]
                #[serde(transparent)]
                $name(Box<str>)
            }

            impl From<&str> for $name {
                fn from(text: &str) -> Self {
                    Self(text.into())
                }
            }

            impl From<String> for $name {
                fn from(text: String) -> Self {
                    Self(text.into())
                }
            }
        )*
    };
}

free_ids! {
    /// A workspace's id. Prefix `ws_` in the service's samples.
    WorkspaceId;
    /// A data model's id. Prefix `dm_` in the service's samples.
    DataModelId;
    /// A row's id. Prefix `row_` in the service's samples.
    RowId;
    /// The id of the user who caused an event.
    ActorId;
}

text_id! {
    /// An event's id, which deduplication uses.
    ///
    /// It is always usable: 1 to 256 bytes, no control characters, not blank. The service begins it
    /// with `evt_`; that is not required. Upper and lower case differ.
    ///
    /// ```
    /// use hookgate::event::EventId;
    ///
    /// assert_eq!(EventId::parse("evt_1").unwrap().as_str(), "evt_1");
    /// for unusable in ["", "   ", "evt\n1", &"e".repeat(257)] {
    ///     assert!(EventId::parse(unusable).is_err());
    /// }
    /// ```
    #[derive(Serialize)]
    #[serde(transparent)]
    EventId(Box<str>)
}

impl EventId {
    /// Parses an id's text.
    ///
    /// # Errors
    /// [`Malformed`] for a text that is empty, blank, longer than 256 bytes or has control
    /// characters.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let id = is_usable(text).then(|| Self(text.into()));
        id.ok_or(Malformed)
    }

    /// Returns the bytes of the text, unchecked: for a comparison or a digest.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

text_id! {
    /// An event's type, such as `row.created`: a known one or any other usable text.
    ///
    /// ```
    /// use hookgate::event::EventType;
    ///
    /// assert_eq!(EventType::parse("row.created").unwrap(), EventType::ROW_CREATED);
    /// assert_eq!(EventType::parse("row.archived").unwrap().as_str(), "row.archived");
    /// assert!(EventType::parse("").is_err());
    ///
    /// assert!(EventType::ROW_CREATED.is_known() && EventType::ROW_CREATED.names_datamodel());
    /// assert!(EventType::PAGE_CREATED.is_known() && !EventType::PAGE_CREATED.names_datamodel());
    /// assert!(!EventType::parse("row.archived").unwrap().is_known());
    /// ```
    #[derive(Serialize)]
    #[serde(transparent)]
    EventType(Cow<'static, str>)
}

macro_rules! known_types {
    ($($name:ident = $text:literal, $summary:literal;)*) => {
        impl EventType {
            $(
                #[doc = $summary]
                pub const $name: Self = Self(Cow::Borrowed($text));
            )*

            /// Parses a type's text. A known type needs no allocation.
            ///
            /// # Errors
            /// [`Malformed`] for a text that is empty, blank, longer than 256 bytes or has control
            /// characters.
            pub fn parse(text: &str) -> Result<Self, Malformed> {
                match text {
                    $($text => Ok(Self::$name),)*
                    other if is_usable(other) => Ok(Self(Cow::Owned(other.into()))),
                    _ => Err(Malformed),
                }
            }

            /// Returns whether the service's specification lists this type. Any other type is
            /// mistyped, or newer than this crate.
            #[must_use]
            pub fn is_known(&self) -> bool {
                self.known().is_some()
            }

            /// Returns its text, if it is one of the types above: one of a bounded number, as a
            /// label of a metric must be.
            ///
            /// ```
            /// # use hookgate::event::EventType;
            /// assert_eq!(EventType::ROW_CREATED.known(), Some("row.created"));
            /// assert_eq!(EventType::parse("row.archived")?.known(), None);
            /// # Ok::<(), hookgate::verify::Malformed>(())
            /// ```
            #[must_use]
            pub fn known(&self) -> Option<&'static str> {
                match &*self.0 {
                    $($text => Some($text),)*
                    _ => None,
                }
            }
        }
    };
}

known_types! {
    ROW_CREATED = "row.created", "A row was first created.";
    ROW_UPDATED = "row.updated", "A row's properties changed.";
    ROW_DELETED = "row.deleted", "A row was deleted.";
    PAGE_CREATED = "page.created", "A page was created.";
    PAGE_UPDATED = "page.updated", "A page's content changed.";
    PAGE_DELETED = "page.deleted", "A page was deleted.";
    MEMBER_INVITED = "member.invited", "A member was invited.";
    MEMBER_REMOVED = "member.removed", "A member was removed.";
}

impl EventType {
    /// Returns whether an event of this type names a data model according to the specification:
    /// `row.created`, `row.updated` and `row.deleted` do.
    #[must_use]
    pub fn names_datamodel(&self) -> bool {
        matches!(self.as_str(), "row.created" | "row.updated" | "row.deleted")
    }
}

/// A text, borrowed where it has no escapes. (`Cow` itself never borrows when deserialised.)
#[derive(Deserialize)]
#[serde(transparent)] // Without it, the path tracker would not see the names of fields.
pub(super) struct Name<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_lead_back_to_their_text() {
        assert_eq!(EventId::parse("evt_1").unwrap().to_string(), "evt_1");
        assert_eq!(RowId::from("row_1").to_string(), "row_1");
    }

    #[test]
    fn usable_means_1_to_256_bytes_that_show() {
        for (text, usable) in [
            ("a", true),
            (" a ", true),
            ("ünï", true),
            (&"e".repeat(256), true),
            (&"é".repeat(128), true),
            ("", false),
            (" \u{3000}", false),
            ("a\0", false),
            ("a\u{85}", false),
            (&"é".repeat(129), false),
        ] {
            assert_eq!(is_usable(text), usable, "{text:?}");
            assert_eq!(EventType::parse(text).is_ok(), usable, "{text:?}");
        }
    }
}
