//! The gate: permits limit the runs under way, and the gate can be shut.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::delivery::ReceiverId;
use super::health::{Health, HealthSigns};
use crate::clock::Clock;
use crate::dedupe::ScopeEntry;
use crate::outcome::RefusalKind;
use crate::sync::{AtomicBool, AtomicUsize};

/// Counts the runs under way and enforces their limit.
pub(crate) struct Gate {
    /// Identifies the receiver or acceptor.
    pub(crate) id: ReceiverId,
    max_runs: usize,
    runs: AtomicUsize,
    shut: AtomicBool,
    /// Each permit holds the gate, and each claim a permit: so a claim counts its own end here.
    pub(crate) health_signs: HealthSigns,
    /// Held with the gate, since a run that outlives its receiver still uses its scope.
    _scope: Option<ScopeEntry>,
    /// Tells a drain that all permits are free.
    #[cfg(feature = "tower")]
    permits: tokio_util::task::TaskTracker,
}

impl Gate {
    pub(crate) fn new(max_runs: usize, clock: Arc<dyn Clock>, scope: Option<ScopeEntry>) -> Self {
        Self {
            id: ReceiverId::new(),
            max_runs,
            runs: AtomicUsize::new(0),
            shut: AtomicBool::new(false),
            health_signs: HealthSigns::new(clock),
            _scope: scope,
            #[cfg(feature = "tower")]
            permits: Default::default(),
        }
    }

    /// Takes a permit to run, held until it is dropped.
    pub(crate) fn enter(self: &Arc<Self>) -> Result<Permit, RefusalKind> {
        // One step, so that a refused run never takes a permit from another one.
        let one_more = |runs| (runs < self.max_runs).then_some(runs + 1);
        self.runs
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_more)
            .map_err(|_| RefusalKind::NoPermitFree)?;
        let permit = Permit {
            gate: Arc::clone(self),
            #[cfg(feature = "tower")]
            _token: self.permits.token(),
        };
        // Counted before `shut` is read: either the call that shuts the gate sees this run, or this
        // run sees the gate shut.
        if self.shut.load(Ordering::SeqCst) {
            return Err(RefusalKind::ShuttingDown);
        }
        Ok(permit)
    }

    /// Returns the number of runs under way.
    pub(crate) fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }

    /// Returns the health of the receiver. It reads a few numbers and the clock.
    pub(crate) fn health(&self) -> Health {
        let draining = self.shut.load(Ordering::SeqCst);
        self.health_signs
            .health(self.runs(), self.max_runs, draining)
    }

    /// Shuts the gate: no new run may begin.
    pub(crate) fn shut(&self) {
        self.shut.store(true, Ordering::SeqCst);
        #[cfg(feature = "tower")]
        self.permits.close();
    }

    /// Waits until the gate is shut and all permits are free.
    #[cfg(feature = "tower")]
    pub(crate) async fn idle(&self) {
        self.permits.wait().await;
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
pub(crate) struct Permit {
    gate: Arc<Gate>,
    #[cfg(feature = "tower")]
    _token: tokio_util::task::task_tracker::TaskTrackerToken,
}

impl Permit {
    pub(crate) fn health_signs(&self) -> &HealthSigns {
        &self.gate.health_signs
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.gate.runs.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(all(test, shuttle))]
fn gate(max_runs: usize) -> Arc<Gate> {
    let clock = Arc::new(crate::clock::SystemClock);
    Arc::new(Gate::new(max_runs, clock, None))
}

#[cfg(all(test, shuttle))]
mod races {
    use std::sync::atomic::Ordering::SeqCst;

    use shuttle::thread;

    use super::*;

    #[test]
    fn permits_are_never_exceeded_and_all_come_back() {
        crate::dedupe::races::explore(|| {
            let gate = gate(2);
            let inside = Arc::new(AtomicUsize::new(0));
            let runs: Vec<_> = (0..4)
                .map(|_| {
                    let (gate, inside) = (Arc::clone(&gate), Arc::clone(&inside));
                    thread::spawn(move || {
                        for _ in 0..2 {
                            let Ok(permit) = gate.enter() else { continue };
                            assert!(inside.fetch_add(1, SeqCst) < 2, "a permit too many");
                            inside.fetch_sub(1, SeqCst);
                            drop(permit);
                        }
                    })
                })
                .collect();
            runs.into_iter().for_each(|run| run.join().unwrap());
            assert_eq!(gate.runs(), 0);
            let permits = [gate.enter(), gate.enter()];
            assert!(permits.iter().all(Result::is_ok), "a permit was lost");
        });
    }

    /// If a thread shuts the gate and then sees no run, no run comes later.
    #[test]
    fn nothing_runs_behind_a_shut_gate_that_was_seen_idle() {
        crate::dedupe::races::explore(|| {
            let gate = gate(2);
            let is_idle = Arc::new(AtomicBool::new(false));
            let runs: Vec<_> = (0..2)
                .map(|_| {
                    let (gate, is_idle) = (Arc::clone(&gate), Arc::clone(&is_idle));
                    thread::spawn(move || {
                        for _ in 0..2 {
                            if let Ok(_permit) = gate.enter() {
                                assert!(!is_idle.load(SeqCst), "a run behind the shut gate");
                            }
                        }
                    })
                })
                .collect();
            gate.shut();
            if gate.runs() == 0 {
                is_idle.store(true, SeqCst);
            }
            runs.into_iter().for_each(|run| run.join().unwrap());
        });
    }
}
