//! The work to do once the lock of the look-ups is free.

use std::task::Waker;

use crate::caught::caught;

/// It runs code from outside this crate, which may use the look-ups again.
#[must_use]
#[derive(Default)]
pub(super) struct Deferred {
    wake: Vec<Waker>,
    /// Wakers that are dropped and not woken (a waiter that woke itself at each poll would never stop), look-ups, and outcomes,
    /// which may be an error of the provider that has no other owner.
    unused: Vec<Box<dyn Send>>,
}

impl Deferred {
    pub(super) fn run(self) {
        // Each call by itself: a panic in one must not keep another waiter asleep.
        for waker in self.wake {
            let _ = caught(|| waker.wake());
        }
        for unused in self.unused {
            let _ = caught(|| drop(unused));
        }
    }

    pub(super) fn wake(&mut self, wakers: impl Iterator<Item = Waker>) {
        self.wake.extend(wakers);
    }

    pub(super) fn discard(&mut self, unused: Option<impl Send + 'static>) {
        if let Some(unused) = unused {
            self.unused.push(Box::new(unused));
        }
    }
}
