//! Who is asked: the provider of secrets.

use std::fmt;
use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::SubscriptionId;
use crate::error::LookupError;
use crate::verify::KeyRing;

/// Finds the ring of keys of a subscription, in a database for instance. See the [module docs](super) for when it is asked.
///
/// [`provider_fn`] makes one of an async closure. A type of your own holds what it needs. It need not be `Debug`: a receiver that
/// is printed does not print its provider, which may hold secrets.
///
/// ```
/// use hookgate::{KeyRing, LookupError, LookupFuture, Secret, SecretProvider, SubscriptionId};
///
/// struct Tenants(Database);
///
/// impl SecretProvider for Tenants {
///     fn look_up<'a>(&'a self, subscription: &'a SubscriptionId) -> LookupFuture<'a> {
///         LookupFuture::boxed(async move {
///             let row = self.0.find(subscription.as_str()).await;
///             let Some(row) = row.map_err(LookupError::unavailable)? else {
///                 return Ok(None);
///             };
///             // The id of the row, not the one that was asked for: see `# Security`.
///             let secret = Secret::new(&row.secret).map_err(LookupError::unusable)?;
///             let ring = KeyRing::new(secret).with_scope(&row.id).map_err(LookupError::unusable)?;
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
/// - The id is anyone's: pass it as a bound parameter. Answer `Ok(None)` for what is not there, and an error only where you
///   do not know: an unknown id is answered 401, an error 503.
/// - **Compare ids byte for byte.** Under a collation that ignores case, `wh_a` finds the row of `wh_A`; the scope would be
///   another one, and a copied delivery would run once more. Either let the database compare exactly, or name the scope after
///   the row as above.
/// - **One secret in two scopes can't be refused here**, as it is in a map, for nobody sees all rings at once: a delivery to
///   one subscription could then be replayed to the other by changing the unsigned id. Give each subscription a secret of its
///   own (a unique index over a hash of it), or let both name one scope.
/// - Put nothing of a secret in an error: errors are told to the operator.
pub trait SecretProvider: Send + Sync + 'static {
    /// Finds the live keys of a subscription. `Ok(None)`: there is no such subscription.
    ///
    /// Whoever waits for it polls it, one at a time. It is dropped when nobody waits any more; in the layer it goes on for up to
    /// 5 s, so that a slow answer serves the retry. A panic counts as an error.
    fn look_up<'a>(&'a self, subscription: &'a SubscriptionId) -> LookupFuture<'a>;
}

/// What a provider answers.
pub(super) type Answer = Result<Option<KeyRing>, LookupError>;

/// The future of a look-up. A provider that answers at once uses [`ready`](Self::ready) and allocates nothing; one that waits
/// uses [`boxed`](Self::boxed).
///
/// ```
/// use hookgate::{LookupError, LookupErrorKind, LookupFuture, block_on};
///
/// let at_once = LookupFuture::ready(Ok(None));
/// assert!(block_on(at_once).unwrap().is_none());
/// let later = LookupFuture::boxed(async { Err(LookupError::unavailable("connection refused")) });
/// assert_eq!(block_on(later).unwrap_err().kind(), LookupErrorKind::Unavailable);
/// ```
pub struct LookupFuture<'a>(Inner<'a>);

enum Inner<'a> {
    Ready(Ready<Answer>),
    Boxed(Pin<Box<dyn Future<Output = Answer> + Send + 'a>>),
}

impl<'a> LookupFuture<'a> {
    /// An answer that is already there.
    #[must_use]
    pub fn ready(answer: Result<Option<KeyRing>, LookupError>) -> Self {
        Self(Inner::Ready(ready(answer)))
    }

    /// An answer that has to be waited for.
    #[must_use]
    pub fn boxed(
        future: impl Future<Output = Result<Option<KeyRing>, LookupError>> + Send + 'a,
    ) -> Self {
        Self(Inner::Boxed(Box::pin(future)))
    }
}

impl Future for LookupFuture<'_> {
    type Output = Result<Option<KeyRing>, LookupError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Inner::Ready(answer) => Pin::new(answer).poll(context),
            Inner::Boxed(future) => future.as_mut().poll(context),
        }
    }
}

impl fmt::Debug for LookupFuture<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LookupFuture")
    }
}

/// A shared provider is a provider.
impl<P: SecretProvider + ?Sized> SecretProvider for Arc<P> {
    fn look_up<'a>(&'a self, subscription: &'a SubscriptionId) -> LookupFuture<'a> {
        (**self).look_up(subscription)
    }
}

/// A provider made of an async closure.
///
/// Its errors become a [`LookupError`] with themselves as the source: a [`SecretError`](crate::SecretError) or
/// [`KeysError`](crate::KeysError) an [`Unusable`](crate::LookupErrorKind::Unusable) one, any other an
/// [`Unavailable`](crate::LookupErrorKind::Unavailable) one. A `LookupError` stays what it is.
///
/// ```
/// use std::collections::HashMap;
/// use std::sync::Arc;
/// use hookgate::{LocalStore, Receiver, Secret, SecretError, provider_fn};
///
/// let secrets = Arc::new(HashMap::from([("wh_1".to_owned(), "whsec_made_up_for_this_example")]));
/// let receiver = Receiver::builder()
///     .provider(provider_fn(move |id| {
///         let secrets = Arc::clone(&secrets);
///         async move {
///             let found = secrets.get(id.as_str());
///             found.map(|secret| Secret::new(secret)).transpose()
///         }
///     }))
///     .store(LocalStore::default())
///     .build()?;
/// # let _ = receiver;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Security
/// As for [`SecretProvider`].
pub fn provider_fn<F, A, R, E>(look_up: F) -> ProviderFn<F>
where
    F: Fn(SubscriptionId) -> A + Send + Sync + 'static,
    A: Future<Output = Result<Option<R>, E>> + Send + 'static,
    R: Into<KeyRing>,
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    ProviderFn(look_up)
}

/// A provider made of an async closure, by [`provider_fn`].
#[derive(Clone, Copy)]
pub struct ProviderFn<F>(F);

impl<F, A, R, E> SecretProvider for ProviderFn<F>
where
    F: Fn(SubscriptionId) -> A + Send + Sync + 'static,
    A: Future<Output = Result<Option<R>, E>> + Send + 'static,
    R: Into<KeyRing>,
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    fn look_up<'a>(&'a self, subscription: &'a SubscriptionId) -> LookupFuture<'a> {
        let answer = (self.0)(subscription.clone());
        LookupFuture::boxed(async {
            match answer.await {
                Ok(ring) => Ok(ring.map(Into::into)),
                Err(error) => Err(LookupError::of_provider(error.into())),
            }
        })
    }
}

impl<F> fmt::Debug for ProviderFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProviderFn")
    }
}
