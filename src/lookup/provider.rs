//! The provider of secrets, which answers look-ups.

use std::error::Error;
use std::future::Future;

use super::keys::{LookupError, SubscriptionId};
use crate::config::{ConfigError, ConfigErrorKind};
use crate::future::StoreFuture;
use crate::verify::KeyRing;

/// An error of a provider: any error. Its text is reported to the operator.
type ProviderError = Box<dyn Error + Send + Sync>;

/// Finds the keys of a subscription, for example in a database. The [module docs](super) describe when it is called.
///
/// **An async closure is a provider**: any `Fn(SubscriptionId)` whose future ends in a `Result<Option<_>, _>`. What it finds is
/// - a [`Secret`](crate::Secret), for a ring of one key;
/// - a [`KeyRing`];
/// - or a list of keys, each with its name, its secret and its end date:
///   `Vec<(String, Secret, Option<UnixSeconds>)>`, as rows of a table. An empty list is an unknown subscription, as `None`.
///
/// A type of your own can hold more. It need not be `Debug`: a receiver's debug output does not contain its provider, which may
/// hold secrets.
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
/// - Any client can choose the id: pass it as a bound parameter. Answer `Ok(None)` if there is no such subscription, and an
///   error only if you do not know: an unknown id is answered 401, an error 503.
/// - **Compare ids byte for byte.** Under a collation that ignores case, `wh_a` finds the row of `wh_A`; the scope would be
///   another one, and a copied delivery would run once more. Either let the database compare exactly, or name the scope after
///   the row as above.
/// - **One secret in two scopes cannot be refused here**, unlike in a map, because no code sees all rings at once: a delivery
///   to one subscription could then be replayed to the other by changing the unsigned id. Give each subscription its own secret
///   (a unique index over a hash of it), or let both name one scope.
/// - Put no part of a secret in an error: errors are reported to the operator.
pub trait SecretProvider: Send + Sync + 'static {
    /// Finds the live keys of a subscription. `Ok(None)`: there is no such subscription. The delivery of an error, of any kind, is
    /// answered 503; the operator gets it as the source of the refusal.
    ///
    /// In a tokio runtime it is a task of its own, which ends after 5 s at the latest; the runtime's timer must be on. Without a
    /// runtime it is part of a delivery's future and is dropped with it. A panic counts as an error.
    fn look_up<'a>(
        &'a self,
        subscription: &'a SubscriptionId,
    ) -> StoreFuture<'a, Option<KeyRing>, ProviderError>;
}

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

fn config_error(error: &ProviderError) -> Option<ConfigErrorKind> {
    error.downcast_ref().map(ConfigError::kind)
}

impl From<ProviderError> for LookupError {
    fn from(error: ProviderError) -> Self {
        match config_error(&error) {
            Some(_) => Self::Unusable(error),
            None => Self::Unavailable(error),
        }
    }
}
