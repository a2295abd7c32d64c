//! Errors of a secret.

use std::{fmt, io};

/// The reason why [`Secret`](crate::Secret) refused a text. The message says which text to paste instead and never repeats
/// the refused one.
#[derive(thiserror::Error)]
#[error("{}{}", origin_prefix(.origin), .kind.message())]
pub struct SecretError {
    kind: SecretErrorKind,
    origin: Option<String>,
    #[source]
    source: Option<io::Error>,
}

/// The error in the text of a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SecretErrorKind {
    /// The text is empty.
    Empty,
    /// The text is white space only.
    Blank,
    /// White space stands before or after the secret, often a line break that was pasted with it.
    SurroundedByWhiteSpace,
    /// White space, a line break or a control character stands inside the secret, for example where a file holds two secrets.
    ContainsWhiteSpace,
    /// Quotes stand around the secret, often from a settings file.
    Quoted,
    /// An API key of the service (`tk_live_`, `tk_test_`, `mcp_`) in place of the subscription's secret.
    ApiKey,
    /// The prefix `whsec_` is missing.
    WithoutPrefix,
    /// The prefix `whsec_` stands twice.
    PrefixTwice,
    /// The text is only the prefix `whsec_`.
    PrefixOnly,
    /// The secret has fewer than 16 characters after the prefix.
    TooShort,
    /// The bytes are no UTF-8 text.
    NotText,
    /// The environment variable is not set.
    Unset,
    /// The file can't be read.
    Unreadable,
}

impl SecretError {
    pub(crate) fn new(kind: SecretErrorKind) -> Self {
        Self {
            kind,
            origin: None,
            source: None,
        }
    }

    /// Sets the origin of the text: a variable or a path, never its content.
    pub(crate) fn with_origin(mut self, origin: String) -> Self {
        self.origin = Some(origin);
        self
    }

    pub(crate) fn caused_by(mut self, source: io::Error) -> Self {
        self.source = Some(source);
        self
    }

    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> SecretErrorKind {
        self.kind
    }
}

impl fmt::Debug for SecretError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::readable::write_readably(f, "SecretError", &self.kind, self)
    }
}

impl SecretErrorKind {
    fn message(self) -> &'static str {
        match self {
            Self::Empty => "the secret is empty: paste the whole whsec_… text of the subscription",
            Self::Blank => {
                "the secret is only white space: paste the whole whsec_… text of the subscription"
            }
            Self::SurroundedByWhiteSpace => {
                "white space around the secret: paste it without spaces or line breaks"
            }
            Self::ContainsWhiteSpace => {
                "white space, a line break or a control character inside the secret: one secret, on one line"
            }
            Self::Quoted => "quotes around the secret: paste it without them",
            Self::ApiKey => {
                "this is an API key: paste the subscription's secret, which starts with whsec_"
            }
            Self::WithoutPrefix => {
                "the secret does not start with whsec_: paste it whole, prefix included (Secret::of_other_form takes another form)"
            }
            Self::PrefixTwice => {
                "the secret starts with whsec_ twice: paste it as it is shown, prefix included, and put nothing in front"
            }
            Self::PrefixOnly => {
                "the secret ends after its prefix whsec_: paste the whole text of the subscription"
            }
            Self::TooShort => {
                "the secret is too short: 16 characters or more are expected after the prefix"
            }
            Self::NotText => "the secret is not UTF-8 text",
            Self::Unset => "the environment variable is not set",
            Self::Unreadable => "the secret's file can't be read",
        }
    }
}

fn origin_prefix(origin: &Option<String>) -> String {
    origin
        .as_ref()
        .map_or_else(String::new, |origin| format!("{origin}: "))
}
