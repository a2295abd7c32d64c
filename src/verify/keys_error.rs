//! Errors of a set of keys.

use std::fmt;

/// The reason why a key ring or a map of key rings was refused.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{}", .kind.message(), quoted(.name))]
pub struct KeysError {
    kind: KeysErrorKind,
    /// The name that is taken already.
    name: Option<String>,
}

/// The error in a key ring or a map of key rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeysErrorKind {
    /// More than [`KeyRing::MAX_KEYS`](crate::KeyRing::MAX_KEYS) live keys in one ring.
    TooManyKeys,
    /// Two keys of one ring have the same [name](KeysError::name).
    NameTaken,
    /// Two keys of one ring have the same secret, so the matching key would be ambiguous.
    SecretTwiceInRing,
    /// Two rings with different scopes have the same secret: a delivery to one could be replayed to the other.
    SecretInTwoScopes,
    /// Two rings were given for one subscription id, which is the [name](KeysError::name).
    SubscriptionTaken,
    /// A name, scope, workspace or subscription id that is empty, longer than 256 bytes, blank or has control
    /// characters.
    UnusableName,
    /// No ring was given.
    NoKeys,
    /// These keys are one ring for all deliveries: there is no map to change by subscription id.
    NotBySubscription,
    /// These keys are a map by subscription id: name the subscription whose ring to change.
    BySubscription,
    /// These keys are looked up by a provider: change them at the provider's source, then forget the cached ones.
    ByProvider,
    /// These keys are not looked up by a provider: there is nothing to forget.
    NotByProvider,
}

impl KeysError {
    pub(crate) fn new(kind: KeysErrorKind) -> Self {
        Self { kind, name: None }
    }

    pub(crate) fn about(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> KeysErrorKind {
        self.kind
    }

    /// The key's name or the subscription's id that is taken, where there is one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }
}

impl fmt::Debug for KeysError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::readable::write_readably(f, "KeysError", &self.kind, self)
    }
}

impl KeysErrorKind {
    fn message(self) -> &'static str {
        match self {
            Self::TooManyKeys => "a ring holds at most 4 live keys: retire one first",
            Self::NameTaken => "two keys of one ring are named",
            Self::SecretTwiceInRing => "the same secret appears more than once in one ring",
            Self::SecretInTwoScopes => {
                "the same secret appears under two scopes: give each subscription its own, or let them share a scope on purpose"
            }
            Self::SubscriptionTaken => "two rings for the subscription",
            Self::UnusableName => {
                "a key name, scope, workspace or subscription id must be 1 to 256 bytes, not blank, without control characters"
            }
            Self::NoKeys => "no ring of keys was given",
            Self::NotBySubscription => "one ring serves every delivery here: replace it as a whole",
            Self::BySubscription => {
                "rings are held by subscription id here: name the subscription to replace"
            }
            Self::ByProvider => {
                "rings are looked up by a provider here: change them where it finds them, then call .forget(id)"
            }
            Self::NotByProvider => {
                "no provider looks rings up here: replace or remove them instead"
            }
        }
    }
}

fn quoted(name: &Option<String>) -> String {
    name.as_ref()
        .map_or_else(String::new, |name| format!(" {name:?}"))
}
