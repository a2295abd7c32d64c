//! The parts of a receiver for an acceptor, which stores deliveries and does not claim them.

use std::time::Duration;

use super::{Permit, Receiver};
use crate::dedupe::{
    ClaimToken, Claimed, DedupeStore, EventKey, Ownership, ScopesInUse, StoreFuture,
};
use crate::dedupe::{StoreError, StoreErrorKind};
use crate::outcome::Refusal;

impl Receiver {
    /// Takes a permit to accept, held until it is dropped.
    pub(crate) fn enter(&self) -> Result<Permit, Refusal> {
        self.shared.gate.enter().map_err(Refusal::new)
    }

    /// Returns the time for which an event must be remembered.
    pub(crate) fn retains_for(&self) -> Duration {
        self.shared.retention
    }
}

/// The store of an acceptor's receiver; it claims nothing. A handler behind that receiver would run without a claim, also for
/// events that the sink has accepted or will accept. So every claim fails, and the error gives the operator the reason.
#[derive(Debug)]
pub(super) struct NoClaims {
    /// The list of scopes of the sink, which remembers events in place of this store.
    scopes: Option<ScopesInUse>,
}

impl NoClaims {
    pub(super) fn beside(scopes: Option<ScopesInUse>) -> Self {
        Self { scopes }
    }

    fn refuses<T: Send + 'static>() -> StoreFuture<'static, T> {
        let below = "this receiver belongs to an Acceptor, which accepts deliveries and claims none: for handlers build another one, with .store(…) and .build()";
        StoreFuture::ready(Err(
            StoreError::new(StoreErrorKind::Unavailable).caused_by(below)
        ))
    }
}

impl DedupeStore for NoClaims {
    fn claim<'a>(
        &'a self,
        _: &'a EventKey,
        _: ClaimToken,
        _: Duration,
    ) -> StoreFuture<'a, Claimed> {
        Self::refuses()
    }

    fn renew<'a>(
        &'a self,
        _: &'a EventKey,
        _: ClaimToken,
        _: Duration,
    ) -> StoreFuture<'a, Ownership> {
        Self::refuses()
    }

    fn commit<'a>(
        &'a self,
        _: &'a EventKey,
        _: ClaimToken,
        _: Duration,
    ) -> StoreFuture<'a, Ownership> {
        Self::refuses()
    }

    fn release<'a>(&'a self, _: &'a EventKey, _: ClaimToken) -> StoreFuture<'a, Ownership> {
        Self::refuses()
    }

    fn scopes_in_use(&self) -> Option<&ScopesInUse> {
        self.scopes.as_ref()
    }
}
