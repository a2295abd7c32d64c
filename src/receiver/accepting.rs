//! What a receiver keeps for an acceptor, which stores deliveries where a receiver by itself would claim them.

use std::time::Duration;

use super::{Permit, Receiver};
use crate::dedupe::{
    ClaimToken, Claimed, DedupeStore, EventKey, Ownership, ScopesInUse, StoreFuture,
};
use crate::error::{StoreError, StoreErrorKind};
use crate::outcome::Refusal;

impl Receiver {
    /// A permit to accept, held until it is dropped.
    pub(crate) fn enter(&self) -> Result<Permit, Refusal> {
        self.shared.gate.enter().map_err(Refusal::new)
    }

    /// How long an event must be remembered.
    pub(crate) fn retains_for(&self) -> Duration {
        self.shared.retention
    }
}

/// The store of an acceptor's receiver: none. Whoever puts a handler behind that receiver would run it unclaimed, and on what the sink
/// has accepted or will; so nothing is claimed there, and the operator is told why.
#[derive(Debug)]
pub(super) struct NoClaims {
    /// The list of what remembers in its place.
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
