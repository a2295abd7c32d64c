//! The one error of secrets, keys, settings and arms that can't be used as they were given.

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use ConfigErrorKind as Kind;

/// The reason why a secret, keys, the settings of a receiver or the arms of a router were refused. The message says which of them
/// to change, and how. It never repeats a secret.
///
/// ```
/// use hookgate::{ConfigErrorKind, Secret};
///
/// let error = Secret::new("tk_live_0123456789abcdef").unwrap_err();
/// assert_eq!(error.kind(), ConfigErrorKind::SecretApiKey);
/// assert!(error.to_string().starts_with("this is an API key"));
/// ```
#[derive(Clone)]
pub struct ConfigError {
    kind: ConfigErrorKind,
    /// The origin of a secret, the name of a key or subscription, or the event type of an arm.
    about: Option<String>,
    /// The data model of an arm.
    model: Option<String>,
    source: Option<Arc<io::Error>>,
}

/// The kinds of errors of a configuration. `Display` writes the message without the name that it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigErrorKind {
    /// The text is empty.
    #[error("the secret is empty: paste the whole whsec_… text of the subscription")]
    SecretEmpty,
    /// The text is white space only.
    #[error("the secret is only white space: paste the whole whsec_… text of the subscription")]
    SecretBlank,
    /// There is white space before or after the secret, often a line break that was pasted with it.
    #[error("white space around the secret: paste it without spaces or line breaks")]
    SecretSurroundedByWhiteSpace,
    /// There is white space, a line break or a control character inside the secret, for example where a file holds two secrets.
    #[error(
        "white space, a line break or a control character inside the secret: one secret, on one line"
    )]
    SecretContainsWhiteSpace,
    /// The text begins with a byte order mark, as some editors and PowerShell write it in front of a file.
    #[error("a byte order mark in front of the secret: save its file as UTF-8 without one")]
    SecretByteOrderMark,
    /// Quotes stand around the secret, often from a settings file.
    #[error("quotes around the secret: paste it without them")]
    SecretQuoted,
    /// An API key of the service (`tk_live_`, `tk_test_`, `mcp_`) in place of the subscription's secret.
    #[error("this is an API key: paste the subscription's secret, which starts with whsec_")]
    SecretApiKey,
    /// The prefix `whsec_` is missing.
    #[error(
        "the secret does not start with whsec_: paste it whole, prefix included (Secret::unprefixed takes another form)"
    )]
    SecretWithoutPrefix,
    /// The prefix `whsec_` is there twice.
    #[error(
        "the secret starts with whsec_ twice: paste it as it is shown, prefix included, and put nothing in front"
    )]
    SecretPrefixTwice,
    /// The text is only the prefix `whsec_`.
    #[error("the secret ends after its prefix whsec_: paste the whole text of the subscription")]
    SecretPrefixOnly,
    /// The secret has fewer than 16 characters after the prefix.
    #[error("the secret is too short: 16 characters or more are expected after the prefix")]
    SecretTooShort,
    /// The bytes are no UTF-8 text.
    #[error("the secret is not UTF-8 text")]
    SecretNotText,
    /// The environment variable is not set.
    #[error("the environment variable is not set")]
    SecretUnset,
    /// The file can't be read.
    #[error("the secret's file can't be read")]
    SecretUnreadable,
    /// More than [`KeyRing::MAX_KEYS`](crate::KeyRing::MAX_KEYS) live keys in one ring.
    #[error("a ring holds at most 4 live keys: retire one first")]
    TooManyKeys,
    /// Two keys of one ring have the same [name](ConfigError::name).
    #[error("two keys of one ring have the same name")]
    NameTaken,
    /// Two keys of one ring have the same secret, so the matching key would be ambiguous.
    #[error("the same secret appears more than once in one ring")]
    SecretTwiceInRing,
    /// Two rings with different scopes have the same secret: a delivery to one could be replayed to the other.
    #[error(
        "the same secret appears under two scopes: give each subscription its own, or let them share a scope on purpose"
    )]
    SecretInTwoScopes,
    /// Two rings were given for one subscription id, which is the [name](ConfigError::name).
    #[error("two rings for the same subscription")]
    SubscriptionTaken,
    /// A name, scope, workspace or subscription id that is empty, longer than 256 bytes, blank or has control
    /// characters.
    #[error(
        "a key name, scope, workspace or subscription id must be 1 to 256 bytes, not blank, without control characters"
    )]
    UnusableName,
    /// No ring was given.
    #[error("no ring of keys was given")]
    NoKeys,
    /// These keys are one ring for all deliveries: there is no map to change by subscription id.
    #[error("one ring serves every delivery here: replace it as a whole")]
    NotBySubscription,
    /// These keys are a map by subscription id: name the subscription whose ring to change.
    #[error("rings are held by subscription id here: name the subscription to replace")]
    BySubscription,
    /// These keys are looked up by a provider: change them at the provider's source, then forget the cached ones.
    #[error(
        "rings are looked up by a provider here: change them where it finds them, then call .forget(id)"
    )]
    ByProvider,
    /// These keys are not looked up by a provider: there is nothing to forget.
    #[error("no provider looks rings up here: replace or remove them instead")]
    NotByProvider,
    /// No secret was given.
    #[error("no secret: call .secret(…), .secrets(ring), .subscriptions(map) or .provider(lookup)")]
    NoSecret,
    /// Another receiver with other keys uses this store under the same scope, and neither of them has named its scope. Each
    /// could make events of the other look handled. See [`scope`](crate::ReceiverBuilder::scope).
    #[error(
        "another receiver with other keys remembers in this store under the scope `default` too, so each could make the other's events look handled: name the scope of this one, such as .scope(\"ledger\"); during a rotation give both receivers a key in common"
    )]
    ScopeTaken,
    /// A scope was set for keys that have their own: a ring that names its scope itself, the rings of a map or a provider, or
    /// shared keys.
    #[error(
        ".scope(…) is for the ring of .secret(…) or .secrets(ring) that names no scope itself: elsewhere each ring names its own, by KeyRing::with_scope"
    )]
    ScopeBesideKeys,
    /// No store was given, and deduplication was not switched off.
    #[error(
        "no store: call .store(MemoryStore::default()), or .without_deduplication() if the handler deduplicates itself"
    )]
    NoStore,
    /// A store was given and deduplication switched off as well.
    #[error(".store(…) has no effect beside .without_deduplication(): leave out one of the two")]
    StoreWithoutDeduplication,
    /// A store was given, or deduplication switched off, together with the sink of `accept_into`, which does the
    /// deduplication itself.
    #[error(
        "a store beside a sink: with .accept_into(sink) the sink remembers the events, so leave out .store(…) and .without_deduplication()"
    )]
    StoreBesideSink,
    /// The retention is too short: handled events would be forgotten while the sender still retries them or a copy can be
    /// replayed.
    #[error("a retention of {} s is too short: {} s cover the sender's retries and the window", .given.as_secs(), .needed.as_secs())]
    RetentionTooShort {
        /// The retention that the retry schedule and the window need.
        needed: Duration,
        /// The retention that was set.
        given: Duration,
    },
    /// A duration is too short or too long.
    #[error("{setting} must be longer than {} ms and at most {} ms", .least.as_millis(), .most.as_millis())]
    OutOfRange {
        /// The builder's method.
        setting: &'static str,
        /// It must be longer than this.
        least: Duration,
        /// The longest that is accepted.
        most: Duration,
    },
    /// The budget for all request bodies has no room for one body of the largest accepted size.
    #[error(
        "a body_budget of {given} bytes has no room for one body of max_body bytes: call .body_budget({needed}) or more, or lower .max_body(…)"
    )]
    BodyBudgetTooSmall {
        /// The bytes that one body of `max_body` bytes needs.
        needed: usize,
        /// The budget that was set, or the default.
        given: usize,
    },
    /// A limit is zero: no delivery could ever be handled.
    #[error("{setting} must be at least 1")]
    Zero {
        /// The builder's method.
        setting: &'static str,
    },
    /// There is no arm and no `otherwise`: no event could ever be handled.
    #[error("no arm: call .on(…), .on_model(…), .on_rows(…) or .otherwise(…)")]
    NoArm,
    /// Two arms take the same event type, and the same data model if they name one.
    #[error("two arms for the same events")]
    ArmTwice,
    /// `otherwise` was set twice: two handlers for events without an arm.
    #[error("two handlers for .otherwise(…)")]
    OtherwiseTwice,
    /// An event type that no delivery can have: empty, blank, longer than 256 bytes, with control characters or white space
    /// around it.
    #[error(
        "1 to 256 bytes are expected, not blank, without white space around them or control characters"
    )]
    UnusableType,
    /// A data model's id that is empty, blank, or has control characters or white space around it.
    #[error("it must not be blank or have white space around it or control characters")]
    UnusableModel,
    /// A data model is given for an event type that names none.
    #[error("row.created, row.updated and row.deleted do; call .on(…) for any other type")]
    TypeWithoutModel,
    /// Unhandled events are to be refused, but with `otherwise` every event is handled.
    #[error(
        ".otherwise(…) takes every event, so .refuse_unhandled() has nothing to refuse: leave one of them out"
    )]
    NothingToRefuse,
}

impl ConfigError {
    /// Makes an error of this kind, for a crate whose settings belong to a receiver's.
    ///
    /// ```
    /// use hookgate::{ConfigError, ConfigErrorKind};
    ///
    /// let error = ConfigError::new(ConfigErrorKind::Zero { setting: "workers" });
    /// assert_eq!(error.to_string(), "workers must be at least 1");
    /// ```
    #[must_use]
    pub fn new(kind: ConfigErrorKind) -> Self {
        Self {
            kind,
            about: None,
            model: None,
            source: None,
        }
    }

    /// Sets the origin of a secret (a variable or a path, never its content), or the name of a key or subscription.
    pub(crate) fn about(mut self, name: impl Into<String>) -> Self {
        self.about = Some(name.into());
        self
    }

    #[cfg(feature = "axum")]
    pub(crate) fn of_arm(mut self, event_type: &str, model: Option<&str>) -> Self {
        self.model = model.map(Into::into);
        self.about(event_type)
    }

    pub(crate) fn caused_by(mut self, source: io::Error) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> ConfigErrorKind {
        self.kind
    }

    /// The name that the error is about, where there is one: of a key, a subscription, a variable, a file or an event type.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.about.as_deref()
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = self.kind;
        let about = self.about.as_deref().unwrap_or_default();
        let model = self.model.as_deref().unwrap_or_default();
        match (self.kind, &self.model) {
            (Kind::ArmTwice, None) => write!(f, "two arms for {about:?} of any data model"),
            (Kind::ArmTwice, Some(_)) => {
                write!(f, "two arms for {about:?} of the data model {model:?}")
            }
            (Kind::UnusableType, _) => write!(f, "no event has the type {about:?}: {message}"),
            (Kind::UnusableModel, _) => write!(
                f,
                "{model:?} is no id of a data model, in an arm for {about:?}: {message}"
            ),
            (Kind::TypeWithoutModel, _) => write!(
                f,
                "{about:?} names no data model, so there is no {model:?} to look for: {message}"
            ),
            (Kind::NameTaken | Kind::SubscriptionTaken, _) => write!(f, "{message}: {about:?}"),
            _ if about.is_empty() => write!(f, "{message}"),
            _ => write!(f, "{about}: {message}"),
        }
    }
}

impl fmt::Debug for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::readable::write_readably(f, "ConfigError", &self.kind, self)
    }
}

impl Error for ConfigError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
