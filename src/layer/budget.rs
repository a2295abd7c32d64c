//! The limit on the bytes that all bodies under way hold together. Until a body is complete, it is
//! unknown whether it is authentic: a sender without the secret must not decide how much memory the
//! receiver takes.

use std::sync::atomic::Ordering;

use crate::config::{ConfigError, ConfigErrorKind};
use crate::sync::AtomicUsize;

/// The bytes that bodies under way hold, and the limit for them.
///
/// A body is counted once it is held across a wait, or has a second piece. A body that arrives in
/// one piece, as most deliveries do, is never counted. The count is the memory of the buffers, not
/// the length of the bodies, and never an announced length. A body that finds no room is refused,
/// and no other body is: each body's deadline frees its own bytes.
pub(crate) struct BodyBudget {
    limit: usize,
    held: AtomicUsize,
}

/// There was no room for the next bytes of this body.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BudgetSpent;

impl BodyBudget {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            held: AtomicUsize::new(0),
        }
    }

    /// Checks that there is room for one body of the largest size.
    pub(super) fn check(&self, max_body: usize) -> Result<(), ConfigError> {
        if self.limit < max_body {
            return Err(ConfigError::new(ConfigErrorKind::BodyBudgetTooSmall {
                needed: max_body,
                given: self.limit,
            }));
        }
        Ok(())
    }

    /// Returns the bytes that are held, and their limit.
    #[cfg(any(feature = "metrics", test))]
    pub(crate) fn held(&self) -> (usize, usize) {
        (self.held.load(Ordering::Relaxed), self.limit)
    }

    /// Returns the share of a body that holds no bytes yet.
    pub(super) fn share(&self) -> BodyShare<'_> {
        BodyShare {
            budget: self,
            bytes: 0,
        }
    }
}

/// The share of one body in the budget. It is given back when it is dropped.
pub(super) struct BodyShare<'b> {
    budget: &'b BodyBudget,
    bytes: usize,
}

impl BodyShare<'_> {
    /// Takes as much as a buffer of this size needs.
    pub(super) fn grow_to(&mut self, bytes: usize) -> Result<(), BudgetSpent> {
        let more = bytes.saturating_sub(self.bytes);
        let with_more = |held: usize| {
            let held = held.checked_add(more)?;
            (held <= self.budget.limit).then_some(held)
        };
        // Relaxed: the count orders no other memory.
        self.budget
            .held
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, with_more)
            .map_err(|_| BudgetSpent)?;
        self.bytes += more;
        Ok(())
    }
}

impl Drop for BodyShare<'_> {
    fn drop(&mut self) {
        self.budget.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    // fault F12: unauthenticated bodies under way have no common bound
    #[test]
    fn a_body_without_room_is_refused_and_takes_nothing_from_others() {
        let budget = BodyBudget::new(10);
        let (mut first, mut second) = (budget.share(), budget.share());
        assert_eq!(first.grow_to(6), Ok(()));
        assert_eq!(first.grow_to(3), Ok(()), "it holds more already");
        assert_eq!(second.grow_to(5), Err(BudgetSpent));
        assert_eq!(second.grow_to(usize::MAX), Err(BudgetSpent));
        assert_eq!(budget.held(), (6, 10));
        assert_eq!(second.grow_to(4), Ok(()));
        assert_eq!(budget.held(), (10, 10));
        drop(first);
        assert_eq!(second.grow_to(10), Ok(()));
        drop(second);
        assert_eq!(budget.held(), (0, 10));
    }
}

#[cfg(all(test, shuttle))]
mod races {
    use std::sync::Arc;

    use shuttle::thread;

    use super::*;

    // fault F12: unauthenticated bodies under way have no common bound
    #[test]
    fn the_limit_is_kept_and_all_shares_come_back() {
        crate::dedupe::races::explore(|| {
            let budget = Arc::new(BodyBudget::new(6));
            let bodies = [1, 2, 3].map(|step| {
                let budget = Arc::clone(&budget);
                thread::spawn(move || {
                    let mut share = budget.share();
                    for bytes in [step, 2 * step] {
                        let _ = share.grow_to(bytes);
                        assert!(budget.held().0 <= 6, "too much is held");
                    }
                })
            });
            for body in bodies {
                body.join().unwrap();
            }
            assert_eq!(budget.held().0, 0, "not all was given back");
        });
    }
}
