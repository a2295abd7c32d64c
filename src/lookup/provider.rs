//! The provider of secrets: the id that it is asked for, and its answer.

use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

#[cfg(feature = "lookup")]
use crate::config::{ConfigError, ConfigErrorKind};
#[cfg(feature = "lookup")]
use crate::future::StoreFuture;
use crate::text_id::text_id;
use crate::verify::{KeyRing, Malformed};

/// An error of a provider: any error. Its text is reported to the operator.
type ProviderError = Box<dyn Error + Send + Sync>;

/// Finds the keys of a subscription, for example in a database. The [module docs](super) describe
/// when it is called.
///
/// **An async closure is a provider**: any `Fn(SubscriptionId)` whose future ends in a
/// `Result<Option<_>, _>`. What it finds is
/// - a [`Secret`](crate::Secret), for a ring of one key;
/// - a [`KeyRing`];
/// - or a list of keys, each with its name, its secret and its end date:
///   `Vec<(String, Secret, Option<UnixSeconds>)>`, as rows of a table. An empty list is an unknown
///   subscription, as `None`.
///
/// A type of your own can hold more. It need not be `Debug`: a receiver's debug output does not
/// contain its provider, which may hold secrets.
///
/// ```
/// use std::error::Error;
/// use hookgate::{
///     KeyRing, Secret,
///     dedupe::StoreFuture,
///     lookup::{SecretProvider, SubscriptionId},
/// };
///
/// struct Tenants(Database);
///
/// impl SecretProvider for Tenants {
///     fn look_up<'a>(
///         &'a self,
///         subscription: &'a SubscriptionId,
///     ) -> StoreFuture<'a, Option<KeyRing>, Box<dyn Error + Send + Sync>> {
///         StoreFuture::boxed(async move {
///             let Some(row) = self.0.find(subscription.as_str()).await? else {
///                 return Ok(None);
///             };
///             // The id of the row, not the one that was asked for: see `# Security`.
///             let ring = KeyRing::new(Secret::new(&row.secret)?).with_scope(&row.id)?;
///             Ok(Some(ring))
///         })
///     }
/// }
/// # struct Database;
/// # struct Row { id: String, secret: String }
/// # impl Database { async fn find(&self, id: &str) -> Result<Option<Row>, std::io::Error> {
/// #     Ok((id == "wh_1").then(|| Row { id: id.into(), secret: "whsec_made_up_for_this_example".into() })) } }
/// # let id = SubscriptionId::parse("wh_1").unwrap();
/// # assert!(hookgate::block_on(Tenants(Database).look_up(&id)).unwrap().is_some());
/// ```
///
/// # Security
/// - Any client can choose the id: pass it as a bound parameter. Answer `Ok(None)` if there is no
///   such subscription, and an error only if you do not know: an unknown id is answered 401, an
///   error 503.
/// - **Compare ids byte for byte.** Under a collation that ignores case, `wh_a` finds the row of
///   `wh_A`; the scope would be another one, and a copied delivery would run once more. Either let
///   the database compare exactly, or name the scope after the row as above.
/// - **One secret in two scopes cannot be refused here**, unlike in a map, because no code sees all
///   rings at once: a delivery to one subscription could then be replayed to the other by changing
///   the unsigned id. Give each subscription its own secret (a unique index over a hash of it), or
///   let both name one scope.
/// - Put no part of a secret in an error: errors are reported to the operator.
#[cfg(feature = "lookup")]
pub trait SecretProvider: Send + Sync + 'static {
    /// Finds the live keys of a subscription. `Ok(None)`: there is no such subscription. The
    /// delivery of an error, of any kind, is answered 503; the operator gets it as the source of
    /// the refusal.
    ///
    /// In a tokio runtime it is a task of its own, which ends after 5 s at the latest; the
    /// runtime's timer must be on. Without a runtime it is part of a delivery's future and is
    /// dropped with it. A panic counts as an error.
    fn look_up<'a>(
        &'a self,
        subscription: &'a SubscriptionId,
    ) -> StoreFuture<'a, Option<KeyRing>, ProviderError>;
}

#[cfg(feature = "lookup")]
impl<F, A, K, E> SecretProvider for F
where
    F: Fn(SubscriptionId) -> A + Send + Sync + 'static,
    A: Future<Output = Result<Option<K>, E>> + Send + 'static,
    K: TryInto<KeyRing>,
    K::Error: Into<ProviderError>,
    E: Into<ProviderError>,
{
    fn look_up<'a>(
        &'a self,
        subscription: &'a SubscriptionId,
    ) -> StoreFuture<'a, Option<KeyRing>, ProviderError> {
        let answer = self(subscription.clone());
        StoreFuture::boxed(async {
            let keys = answer.await.map_err(Into::into)?;
            let ring = keys.map(|keys| keys.try_into().map_err(Into::into));
            match ring.transpose() {
                // An empty list of keys.
                Err(error) if config_error(&error) == Some(ConfigErrorKind::NoSecret) => Ok(None),
                ring => ring,
            }
        })
    }
}

#[cfg(feature = "lookup")]
fn config_error(error: &ProviderError) -> Option<ConfigErrorKind> {
    error.downcast_ref().map(ConfigError::kind)
}

#[cfg(feature = "lookup")]
impl From<ProviderError> for LookupError {
    fn from(error: ProviderError) -> Self {
        match config_error(&error) {
            Some(_) => Self::Unusable(error),
            None => Self::Unavailable(error),
        }
    }
}

pub(crate) type LookUp = Pin<Box<dyn Future<Output = LookupResult> + Send>>;

/// The end of a look-up, for all its deliveries: a ring, which is a decoy for an unknown
/// subscription.
pub(crate) type LookupResult = Result<Arc<KeyRing>, Arc<LookupError>>;

/// The reason why a subscription's keys could not be looked up. The delivery is answered 503, never
/// as an unknown subscription.
#[derive(Debug, thiserror::Error)]
#[cfg_attr(not(feature = "lookup"), allow(dead_code))]
pub(crate) enum LookupError {
    #[error("the provider of secrets could not answer")]
    Unavailable(#[source] ProviderError),
    /// The provider found a secret or a ring that is refused.
    #[error("the keys that the provider of secrets found can't be used")]
    Unusable(#[source] ProviderError),
    #[error("the provider of secrets did not answer in time")]
    TimedOut,
    #[error("the provider of secrets panicked")]
    Panicked,
}

text_id! {
    /// A subscription's id that may be looked up: `wh_` and 1 to 64 of `A-Z`, `a-z`, `0-9`, `_` and
    /// `-`. Cheap to clone.
    ///
    /// # Security
    /// It comes from `X-Service-Webhook-Id`, which is **not signed**: any client can send any id of
    /// this form. The form keeps quotes, wildcards, spaces and control characters out of the text
    /// that the provider gets. It gives no other protection.
    ///
    /// ```
    /// use hookgate::lookup::SubscriptionId;
    ///
    /// assert_eq!(SubscriptionId::parse("wh_1-a_B")?.as_str(), "wh_1-a_B");
    /// for other in ["wh_", "wh_a b", "wh_é", "WH_1", "evt_1", &format!("wh_{}", "a".repeat(65))] {
    ///     assert!(SubscriptionId::parse(other).is_err());
    /// }
    /// # Ok::<(), hookgate::verify::Malformed>(())
    /// ```
    SubscriptionId(pub(super) Arc<str>)
}

impl SubscriptionId {
    /// Makes an id from its text.
    ///
    /// # Errors
    /// [`Malformed`] for any other form.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        as_looked_up(text.as_bytes())
            .map(|id| Self(id.into()))
            .ok_or(Malformed)
    }
}

/// Returns the id in a header, if it has the form that may be looked up: `wh_`, then 1 to 64
/// characters.
pub(super) fn as_looked_up(id: &[u8]) -> Option<&str> {
    let tail = id.strip_prefix(b"wh_")?;
    let of_form = (1..=64).contains(&tail.len())
        && tail
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    of_form.then(|| std::str::from_utf8(id).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_every_byte_only_sixty_four_may_stand_in_an_id() {
        let mut taken = Vec::new();
        for byte in 0..=u8::MAX {
            let whole = [b"wh_", [byte].as_slice()].concat();
            let inside = [b"wh_a", [byte].as_slice(), b"z"].concat();
            assert_eq!(
                as_looked_up(&whole).is_some(),
                as_looked_up(&inside).is_some()
            );
            taken.extend(as_looked_up(&whole).map(|_| byte));
        }
        let alphabet = b"-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";
        assert_eq!(taken, alphabet);
    }

    #[test]
    fn length_and_prefix_are_exact() {
        let long = |tail: usize| format!("wh_{}", "a".repeat(tail));
        for (id, taken) in [
            (long(0), false),
            (long(1), true),
            (long(64), true),
            (long(65), false),
            (long(10_000), false),
            (String::new(), false),
            ("wh".into(), false),
            ("wh-1".into(), false),
            ("Wh_1".into(), false),
            (" wh_1".into(), false),
            ("wh_1 ".into(), false),
            ("wh_1\n".into(), false),
            ("wh_%".into(), false),
            ("wh_1'--".into(), false),
            ("wh_\u{661}".into(), false),
            ("wh_wh_".into(), true),
        ] {
            assert_eq!(as_looked_up(id.as_bytes()).is_some(), taken, "{id:?}");
            assert_eq!(SubscriptionId::parse(&id).is_ok(), taken, "{id:?}");
        }
        assert!(as_looked_up(b"wh_\xff\xfe").is_none());
    }
}
