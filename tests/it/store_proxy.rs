//! Stores in front of a [`MemoryStore`]: one function that every call passes through.

use hookgate::{MemoryStore, dedupe::StoreFuture};

/// A call of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    Claim,
    Renew,
    Commit,
    Release,
}

/// The handling of each call. [`store_proxy!`] makes a store of it.
pub trait StoreProxy {
    /// Calls the inner store with `call_inner`, or does not.
    fn pass<'a, T: Send + Unpin + 'static>(
        &'a self,
        call: Call,
        call_inner: impl FnOnce(&'a MemoryStore) -> StoreFuture<'a, T> + Send + 'a,
    ) -> StoreFuture<'a, T>;
}

/// Makes a store of a type that is a [`StoreProxy`].
macro_rules! store_proxy {
    ($store:ty) => {
        impl hookgate::DedupeStore for $store {
            fn claim<'a>(
                &'a self,
                key: &'a hookgate::dedupe::EventKey,
                token: hookgate::dedupe::ClaimToken,
                lease: std::time::Duration,
            ) -> hookgate::dedupe::StoreFuture<'a, hookgate::dedupe::Claimed> {
                use crate::store_proxy::{Call, StoreProxy};
                self.pass(Call::Claim, move |store| store.claim(key, token, lease))
            }

            fn renew<'a>(
                &'a self,
                key: &'a hookgate::dedupe::EventKey,
                token: hookgate::dedupe::ClaimToken,
                lease: std::time::Duration,
            ) -> hookgate::dedupe::StoreFuture<'a, hookgate::dedupe::Ownership> {
                use crate::store_proxy::{Call, StoreProxy};
                self.pass(Call::Renew, move |store| store.renew(key, token, lease))
            }

            fn commit<'a>(
                &'a self,
                key: &'a hookgate::dedupe::EventKey,
                token: hookgate::dedupe::ClaimToken,
                retain: std::time::Duration,
            ) -> hookgate::dedupe::StoreFuture<'a, hookgate::dedupe::Ownership> {
                use crate::store_proxy::{Call, StoreProxy};
                self.pass(Call::Commit, move |store| store.commit(key, token, retain))
            }

            fn release<'a>(
                &'a self,
                key: &'a hookgate::dedupe::EventKey,
                token: hookgate::dedupe::ClaimToken,
            ) -> hookgate::dedupe::StoreFuture<'a, hookgate::dedupe::Ownership> {
                use crate::store_proxy::{Call, StoreProxy};
                self.pass(Call::Release, move |store| store.release(key, token))
            }
        }
    };
}

pub(crate) use store_proxy;
