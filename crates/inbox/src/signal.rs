//! Wakes workers that wait for work: as many as there is work for.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// Tells the workers of this process that entries may have become due. An engine has one, and calls [`wake`](Self::wake) after each
/// commit that may have made entries due.
#[derive(Debug, Default)]
pub struct WorkSignal {
    notify: Notify,
    /// The number of [`Listening`].
    listening: AtomicUsize,
    /// The number of those that wait, with nothing left to lease.
    idle: AtomicUsize,
    /// The number of entries for which workers were woken so far.
    hints: AtomicUsize,
}

impl WorkSignal {
    /// Listens from now on. Called before a lease, so that no signal between the lease and the wait is lost.
    pub fn listen(&self) -> Listening<'_> {
        // Counted first: a signal that comes before `enable` is kept for it.
        self.listening.fetch_add(1, Ordering::SeqCst);
        let hints = self.hints();
        let mut notified = Box::pin(self.notify.notified());
        notified.as_mut().enable();
        Listening {
            signal: self,
            notified,
            is_idle: false,
            hints,
        }
    }

    /// Wakes workers for this number of entries, one for each. A worker that is not listening leases before it waits.
    pub fn wake(&self, entries: usize) {
        let woken = entries.min(self.listening.load(Ordering::SeqCst));
        self.hints.fetch_add(woken, Ordering::SeqCst);
        for _ in 0..woken {
            self.notify.notify_one();
        }
    }

    /// Wakes all workers: the number of entries is not known.
    pub fn wake_all(&self) {
        self.notify.notify_waiters();
    }

    /// Returns the number of entries for which workers were woken so far. Calls of [`wake_all`](Self::wake_all) are none of them:
    /// all others were woken too.
    #[must_use]
    pub fn hints(&self) -> usize {
        self.hints.load(Ordering::SeqCst)
    }

    /// Returns the number of workers that have room for entries.
    #[must_use]
    pub fn listening(&self) -> usize {
        self.listening.load(Ordering::SeqCst)
    }

    /// Returns the number of workers that have room for entries and wait for some.
    #[must_use]
    pub fn idle(&self) -> usize {
        self.idle.load(Ordering::SeqCst)
    }
}

/// A worker that has room for entries. It completes when the worker is woken. A signal that it received and did not use goes to
/// another worker when it is dropped.
#[must_use = "it listens until it is dropped"]
pub struct Listening<'a> {
    signal: &'a WorkSignal,
    notified: Pin<Box<Notified<'a>>>,
    is_idle: bool,
    hints: usize,
}

impl fmt::Debug for Listening<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listening")
    }
}

impl Listening<'_> {
    /// The number of [`hints`](WorkSignal::hints) when it began to listen.
    #[must_use]
    pub fn hints(&self) -> usize {
        self.hints
    }

    /// The worker has leased all entries that are due, and waits for more.
    pub fn is_idle_now(&mut self) {
        if !self.is_idle {
            self.is_idle = true;
            self.signal.idle.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl Future for Listening<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.notified.as_mut().poll(context)
    }
}

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        self.signal.listening.fetch_sub(1, Ordering::SeqCst);
        if self.is_idle {
            self.signal.idle.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    fn is_woken(listening: &mut Listening<'_>) -> bool {
        let mut context = Context::from_waker(std::task::Waker::noop());
        pin!(listening).poll(&mut context).is_ready()
    }

    #[test]
    fn as_many_workers_are_woken_as_there_are_entries() {
        let signal = WorkSignal::default();
        // Before any worker listens: each leases first.
        signal.wake(5);
        let mut workers: Vec<_> = (0..4).map(|_| signal.listen()).collect();
        for expected in [0, 1, 3] {
            signal.wake(expected);
            let woken: Vec<_> = workers.iter_mut().map(is_woken).collect();
            assert_eq!(woken.iter().filter(|woken| **woken).count(), expected);
            workers = (0..4).map(|_| signal.listen()).collect();
        }
        signal.wake_all();
        assert!(workers.iter_mut().all(is_woken));
    }

    #[test]
    fn a_signal_that_is_not_used_goes_to_another_worker() {
        let signal = WorkSignal::default();
        let (full, mut idle) = (signal.listen(), signal.listen());
        idle.is_idle_now();
        assert_eq!((signal.listening(), signal.idle()), (2, 1));
        signal.wake(1);
        assert!(!is_woken(&mut idle));
        drop(full);
        assert!(is_woken(&mut idle));
        drop(idle);
        assert_eq!((signal.listening(), signal.idle()), (0, 0));
    }
}
