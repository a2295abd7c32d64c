//! How much may be under way: permits for runs, places for waiting copies, and the door that shuts.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::dedupe::EventKey;
use crate::outcome::RefusalKind;

/// Counts what is under way and lets in no more than was allowed.
pub(crate) struct Gate {
    max_runs: usize,
    max_waiting: usize,
    max_waiting_per_event: usize,
    runs: AtomicUsize,
    shut: AtomicBool,
    /// Copies that wait, by event. Bounded by `max_waiting`.
    waiting: Mutex<Waiting>,
    #[cfg(feature = "tower")]
    pub(crate) bell: Bell,
}

#[derive(Default)]
struct Waiting {
    total: usize,
    by_event: HashMap<EventKey, usize>,
}

/// Wakes who waits for the end of runs, and runs that are told to end.
#[cfg(feature = "tower")]
#[derive(Default)]
pub(crate) struct Bell {
    /// Rung when the last run has ended.
    pub(crate) idle: tokio::sync::Notify,
    /// Rung when runs that are still under way are to be aborted.
    pub(crate) abort: tokio::sync::Notify,
    pub(crate) aborting: AtomicBool,
}

impl Gate {
    pub(super) fn new(max_runs: usize, max_waiting: usize, max_waiting_per_event: usize) -> Self {
        Self {
            max_runs,
            max_waiting,
            max_waiting_per_event,
            runs: AtomicUsize::new(0),
            shut: AtomicBool::new(false),
            waiting: Mutex::default(),
            #[cfg(feature = "tower")]
            bell: Bell::default(),
        }
    }

    /// A permit to run, held until it is dropped.
    pub(super) fn enter(self: &Arc<Self>) -> Result<Permit, RefusalKind> {
        // Counted before the door is looked at: who shuts it either sees this run or is seen by it.
        let permit = Permit(Arc::clone(self));
        let before = self.runs.fetch_add(1, Ordering::SeqCst);
        if self.shut.load(Ordering::SeqCst) {
            Err(RefusalKind::ShuttingDown)
        } else if before >= self.max_runs {
            Err(RefusalKind::NoPermitFree)
        } else {
            Ok(permit)
        }
    }

    /// A place to wait for another copy's run, held until it is dropped.
    #[cfg_attr(not(feature = "tower"), allow(dead_code))] // waiting needs the layer's timers
    pub(crate) fn wait(self: &Arc<Self>, event: EventKey) -> Result<Place, RefusalKind> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let here = waiting.by_event.get(&event).copied().unwrap_or(0);
        if waiting.total >= self.max_waiting || here >= self.max_waiting_per_event {
            return Err(RefusalKind::TooManyWaiting);
        }
        waiting.total += 1;
        waiting.by_event.insert(event, here + 1);
        drop(waiting);
        Ok(Place {
            gate: Arc::clone(self),
            event,
        })
    }

    /// Runs under way.
    pub(super) fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }

    /// Lets nothing more in.
    #[cfg_attr(not(feature = "tower"), allow(dead_code))] // draining needs the layer's timers
    pub(crate) fn shut(&self) {
        self.shut.store(true, Ordering::SeqCst);
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate")
            .field("runs", &self.runs())
            .field("max_runs", &self.max_runs)
            .finish_non_exhaustive()
    }
}

/// A permit to run.
pub(crate) struct Permit(Arc<Gate>);

impl Drop for Permit {
    fn drop(&mut self) {
        let before = self.0.runs.fetch_sub(1, Ordering::SeqCst);
        #[cfg(feature = "tower")]
        if before == 1 {
            self.0.bell.idle.notify_waiters();
        }
        #[cfg(not(feature = "tower"))]
        let _ = before;
    }
}

/// A place to wait in.
#[cfg_attr(not(feature = "tower"), allow(dead_code))] // waiting needs the layer's timers
pub(crate) struct Place {
    gate: Arc<Gate>,
    event: EventKey,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut waiting = self
            .gate
            .waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        waiting.total = waiting.total.saturating_sub(1);
        if let Entry::Occupied(mut here) = waiting.by_event.entry(self.event) {
            *here.get_mut() -= 1;
            if *here.get() == 0 {
                here.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permits_come_back_and_are_never_exceeded() {
        let gate = Arc::new(Gate::new(2, 0, 0));
        let (first, second) = (gate.enter(), gate.enter());
        assert!(first.is_ok() && second.is_ok());
        assert_eq!(gate.enter().err(), Some(RefusalKind::NoPermitFree));
        drop(first);
        assert!(gate.enter().is_ok());
        drop(second);
        assert_eq!(gate.runs(), 0);
        gate.shut();
        assert_eq!(gate.enter().err(), Some(RefusalKind::ShuttingDown));
        assert_eq!(gate.runs(), 0);
    }

    #[test]
    fn places_are_bounded_in_all_and_by_event() {
        let gate = Arc::new(Gate::new(9, 3, 2));
        let [one, two] = ["evt_1", "evt_2"].map(|id| EventKey::new("default", id));
        let places = [gate.wait(one), gate.wait(one)];
        assert_eq!(gate.wait(one).err(), Some(RefusalKind::TooManyWaiting));
        let other = gate.wait(two);
        assert!(other.is_ok());
        assert_eq!(gate.wait(two).err(), Some(RefusalKind::TooManyWaiting));
        drop((places, other));
        assert!(gate.waiting.lock().unwrap().by_event.is_empty());
        assert!(gate.wait(one).is_ok());
    }
}
