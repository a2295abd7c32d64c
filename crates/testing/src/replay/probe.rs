//! The probe: a store in front of the user's own store, which sees each claim and each commit.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hookgate::{
    DedupeStore,
    dedupe::{
        ClaimToken, Claimed, EventKey, Ownership, ScopesInUse, StoreError, StoreErrorKind,
        StoreFuture, StoreStats,
    },
};

use super::process::Process;

/// Passes every call on while its process lives. After the end of the process, no call reaches the store.
pub(super) struct ProbedStore {
    pub(super) inner: Arc<dyn DedupeStore>,
    pub(super) process: Arc<Process>,
}

impl ProbedStore {
    async fn ask<'a, T: Unpin>(
        &'a self,
        call: impl FnOnce() -> StoreFuture<'a, T>,
    ) -> Result<T, StoreError> {
        // A store may do its work when it is called, before the first poll.
        if self.process.end_signal.has_ended() {
            return Err(process_ended());
        }
        let asked = self.process.end_signal.until_end(call()).await;
        asked.unwrap_or_else(|| Err(process_ended()))
    }
}

fn process_ended() -> StoreError {
    let source = std::io::Error::other("the process has ended");
    StoreError::new(StoreErrorKind::Unavailable).caused_by(source)
}

impl DedupeStore for ProbedStore {
    fn claim<'a>(
        &'a self,
        key: &'a EventKey,
        token: ClaimToken,
        lease: Duration,
    ) -> StoreFuture<'a, Claimed> {
        StoreFuture::boxed(async move {
            let claimed = self.ask(|| self.inner.claim(key, token, lease)).await;
            let process = &self.process;
            match &claimed {
                Ok(Claimed::Fresh) => process.observations.granted(key, token),
                Ok(Claimed::Done { body_mark }) => {
                    let after = process.clock.passed();
                    process
                        .observations
                        .found_done(key, *body_mark, process.number, after);
                }
                _ => {}
            }
            claimed
        })
    }

    fn renew<'a>(
        &'a self,
        key: &'a EventKey,
        token: ClaimToken,
        lease: Duration,
    ) -> StoreFuture<'a, Ownership> {
        StoreFuture::boxed(self.ask(move || self.inner.renew(key, token, lease)))
    }

    fn commit<'a>(
        &'a self,
        key: &'a EventKey,
        token: ClaimToken,
        retain: Duration,
    ) -> StoreFuture<'a, Ownership> {
        StoreFuture::boxed(async move {
            let committed = self.ask(|| self.inner.commit(key, token, retain)).await;
            let process = &self.process;
            match &committed {
                Ok(Ownership::Held) => {
                    let after = process.clock.passed();
                    process
                        .observations
                        .committed(key, token, process.number, after);
                }
                Ok(Ownership::Lost) => process.observations.commit_lost(key),
                Err(_) => process.observations.commit_unanswered(key),
            }
            committed
        })
    }

    fn release<'a>(&'a self, key: &'a EventKey, token: ClaimToken) -> StoreFuture<'a, Ownership> {
        StoreFuture::boxed(self.ask(move || self.inner.release(key, token)))
    }

    fn observe(&self) -> Option<StoreStats> {
        self.inner.observe()
    }

    fn scopes_in_use(&self) -> Option<&ScopesInUse> {
        self.inner.scopes_in_use()
    }
}

impl fmt::Debug for ProbedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
