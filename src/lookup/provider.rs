//! The provider of secrets, which answers look-ups.

use std::future::Future;
use std::sync::Arc;

use super::SubscriptionId;
use super::error::{LookupError, ProviderError};
use crate::future::StoreFuture;
use crate::verify::KeyRing;

/// Finds the key ring of a subscription, for example in a database. The [module docs](super) describe when it is called.
///
/// [`provider_fn`] makes a provider from an async closure. A type of your own can hold more. It need not be `Debug`: a
/// receiver's debug output does not contain its provider, which may hold secrets.
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
    /// Its waiters poll it, one at a time. It is dropped when no delivery waits any more; in the layer it continues for up to 5
    /// s, so that a slow answer serves the retry. A panic counts as an error.
    fn look_up<'a>(
        &'a self,
        subscription: &'a SubscriptionId,
    ) -> StoreFuture<'a, Option<KeyRing>, ProviderError>;
}

/// The answer of a provider.
pub(super) type Answer = Result<Option<KeyRing>, LookupError>;

/// A shared provider is a provider.
impl<P: SecretProvider + ?Sized> SecretProvider for Arc<P> {
    fn look_up<'a>(
        &'a self,
        subscription: &'a SubscriptionId,
    ) -> StoreFuture<'a, Option<KeyRing>, ProviderError> {
        (**self).look_up(subscription)
    }
}

/// Makes a provider from an async closure. The [module docs](super) have an example.
///
/// Any error is one of the provider's, and is reported to the operator.
///
/// # Security
/// As for [`SecretProvider`].
pub fn provider_fn<F, A, R, E>(look_up: F) -> impl SecretProvider
where
    F: Fn(SubscriptionId) -> A + Send + Sync + 'static,
    A: Future<Output = Result<Option<R>, E>> + Send + 'static,
    R: Into<KeyRing>,
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    ProviderFn(look_up)
}

struct ProviderFn<F>(F);

impl<F, A, R, E> SecretProvider for ProviderFn<F>
where
    F: Fn(SubscriptionId) -> A + Send + Sync + 'static,
    A: Future<Output = Result<Option<R>, E>> + Send + 'static,
    R: Into<KeyRing>,
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    fn look_up<'a>(
        &'a self,
        subscription: &'a SubscriptionId,
    ) -> StoreFuture<'a, Option<KeyRing>, ProviderError> {
        let answer = (self.0)(subscription.clone());
        StoreFuture::boxed(async {
            let ring = answer.await.map_err(Into::into)?;
            Ok(ring.map(Into::into))
        })
    }
}
