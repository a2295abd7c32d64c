//! The deliveries, their times and their faults: all of it is chosen before the first delivery is
//! sent.
//!
//! Nothing is chosen at random while the replay runs, so that no order of tasks can change a plan.

use std::collections::HashMap;
use std::time::Duration;

use fastrand::Rng;
use hookgate::{clock::UnixSeconds, dedupe::EventKey, verify::Window};

use super::entry::Entry;
use super::faults::Faults;
use crate::sender::{Tamper, fnv1a};

const SECOND: Duration = Duration::from_secs(1);
/// The longest delay past the window. A delivery that would need a longer one, because the window
/// is very wide, is not delayed.
const LONGEST_DELAY: Duration = Duration::from_secs(7 * 24 * 3_600);

/// The whole plan.
pub(super) struct Plan<'a> {
    entries: &'a [Entry],
    faults: &'a Faults,
    window: Window,
    begin: UnixSeconds,
    pub(super) deliveries: Vec<Planned>,
    /// The faults of the first runs of an event.
    pub(super) run_faults: HashMap<EventKey, Vec<RunFault>>,
    /// The times at which the process ends, and another begins.
    pub(super) restarts: Vec<Duration>,
}

/// A delivery that is going to be sent.
#[derive(Clone, Debug)]
pub(super) struct Planned {
    /// The index of its entry.
    pub(super) entry: usize,
    /// Its number among the copies of the entry; 0 is the entry itself.
    pub(super) copy: u32,
    /// 1 for the first attempt.
    pub(super) attempt: u32,
    /// The time of its arrival, counted from the beginning.
    pub(super) due: Duration,
    /// The time at which it was sent. Where it is signed again, it is signed for this time.
    pub(super) sent: Duration,
    /// The time after which the sender hangs up, where that is earlier than the sender's own
    /// time-out.
    pub(super) hang_up_after: Option<Duration>,
    /// The time that the handler waits in a run that this delivery begins.
    pub(super) handler_delay: Duration,
    /// The change that is made after it was signed.
    pub(super) tamper: Option<Tamper>,
    /// The names of its faults.
    pub(super) faults: Vec<&'static str>,
    /// Whether the sender tries again after a failure: not where the log itself holds a later
    /// attempt.
    pub(super) retried: bool,
}

/// The fault of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunFault {
    Fails,
    Panics,
    Slow(Duration),
}

impl Planned {
    /// Returns the sender's next attempt. The plan's faults apply to the first attempt only.
    pub(super) fn retry(self) -> Self {
        Self {
            attempt: self.attempt + 1,
            hang_up_after: None,
            handler_delay: Duration::ZERO,
            tamper: None,
            faults: Vec::new(),
            ..self
        }
    }
}

impl<'a> Plan<'a> {
    /// Makes the plan for entries that are sorted by their time of receipt, replayed from `begin`
    /// on.
    pub(super) fn new(
        entries: &'a [Entry],
        faults: &'a Faults,
        window: Window,
        begin: UnixSeconds,
    ) -> Self {
        let mut plan = Self {
            entries,
            faults,
            window,
            begin,
            deliveries: as_logged(entries),
            run_faults: HashMap::new(),
            restarts: Vec::new(),
        };
        if faults.reorder {
            plan.reorder();
        }
        if faults.delay {
            plan.delay();
        }
        if faults.hang_up {
            plan.hang_up();
        }
        plan.restart();
        let originals = plan.deliveries.len();
        if faults.duplicate {
            plan.duplicate();
        }
        if faults.tampered {
            plan.tamper(originals);
        }
        plan.plan_runs();
        plan.deliveries.sort_by_key(|planned| planned.due);
        plan
    }

    /// Swaps a delivery with one of the next three, where neither leaves the window by it.
    fn reorder(&mut self) {
        let mut rng = self.rng("reorder");
        let keeps = |planned: &Planned, due: Duration| {
            let entry = &self.entries[planned.entry];
            entry.resigned
                || entry.timestamp.is_none_or(|timestamp| {
                    let fresh = |due| self.window.check(timestamp, at(self.begin, due)).is_ok();
                    fresh(due) || !fresh(planned.due)
                })
        };
        let mut planned = self.deliveries.clone();
        let mut moved = vec![false; planned.len()];
        for early in self.choose("which to reorder", |_| true) {
            let late = (early + 1 + rng.usize(0..3)).min(planned.len() - 1);
            if late <= early || moved[early] || moved[late] {
                continue;
            }
            let (sooner, later) = (planned[early].due, planned[late].due);
            if keeps(&planned[early], later) && keeps(&planned[late], sooner) {
                for (place, due) in [(early, later), (late, sooner)] {
                    (planned[place].due, planned[place].sent) = (due, due);
                    planned[place].faults.push("reordered");
                    moved[place] = true;
                }
            }
        }
        planned.sort_by_key(|planned| planned.due);
        self.deliveries = planned;
    }

    fn delay(&mut self) {
        let mut rng = self.rng("delay");
        for index in self.choose("which to delay", |entry| !entry.is_forged()) {
            let planned = &mut self.deliveries[index];
            let entry = &self.entries[planned.entry];
            let more = Duration::from_secs(rng.u64(1..=600));
            let signed = match (entry.resigned, entry.timestamp) {
                (false, Some(timestamp)) => timestamp,
                _ => at(self.begin, planned.sent),
            };
            // Counted from its own timestamp, which may lie before or after its arrival.
            let ends = at(signed, self.window.past());
            let left = ends.since(at(self.begin, planned.due)).unwrap_or_default();
            if left <= LONGEST_DELAY {
                planned.due += left + more + SECOND;
                planned.faults.push("delayed past the window");
            }
        }
    }

    fn hang_up(&mut self) {
        let mut rng = self.rng("hang up");
        for index in self.choose("where to hang up", |entry| entry.event().is_some()) {
            let planned = &mut self.deliveries[index];
            // Within the receiver's budget: after it, the receiver has already answered.
            let hang_up_after = Duration::from_millis(rng.u64(1..4_400));
            planned.hang_up_after = Some(hang_up_after);
            planned.handler_delay = hang_up_after + Duration::from_millis(rng.u64(100..15_000));
            planned.faults.push("sender hangs up");
        }
    }

    /// The process ends in the midst of a run that is made slow for this, or a little after a
    /// delivery.
    fn restart(&mut self) {
        let mut rng = self.rng("restart");
        let events = self.indices_where(|entry| entry.event().is_some());
        for _ in 0..self.faults.restarts {
            let Some(&index) = events.get(rng.usize(0..events.len().max(1))) else {
                return;
            };
            let planned = &mut self.deliveries[index];
            let after = if rng.bool() {
                let delay = Duration::from_millis(rng.u64(1_500..9_000));
                planned.handler_delay = planned.handler_delay.max(delay);
                SECOND
            } else {
                Duration::from_millis(rng.u64(100..60_000))
            };
            self.restarts.push(planned.due + after);
        }
    }

    fn duplicate(&mut self) {
        let mut rng = self.rng("duplicate");
        for index in self.choose("which to duplicate", |_| true) {
            let mut due = self.deliveries[index].due;
            let (at_once, copies) = (rng.bool(), rng.u32(1..=3));
            let fault = if at_once {
                "copy at once"
            } else {
                "copy in turn"
            };
            for copy in 1..=copies {
                if !at_once {
                    due += Duration::from_millis(rng.u64(1_000..40_000));
                }
                self.copy(index, copy, due, fault, None);
            }
        }
    }

    /// Adds copies that were changed after they were signed.
    fn tamper(&mut self, originals: usize) {
        let mut rng = self.rng("tamper");
        let authentic = self.indices_where(|entry| !entry.is_forged());
        let authentic: Vec<_> = authentic.into_iter().filter(|it| *it < originals).collect();
        for index in self.choose_from("which to tamper with", authentic) {
            let changes = [Tamper::Body, Tamper::Signature, Tamper::Timestamp];
            let change = changes[rng.usize(0..changes.len())];
            let later = Duration::from_millis(rng.u64(0..2_000));
            let due = self.deliveries[index].due + later;
            self.copy(index, 1, due, "tampered with", Some(change));
        }
    }

    fn copy(
        &mut self,
        of: usize,
        copy: u32,
        due: Duration,
        fault: &'static str,
        tamper: Option<Tamper>,
    ) {
        self.deliveries.push(Planned {
            copy,
            due,
            hang_up_after: None,
            tamper,
            faults: vec![fault],
            retried: false,
            ..self.deliveries[of].clone()
        });
    }

    fn plan_runs(&mut self) {
        let mut keys = Vec::new();
        let mut known = std::collections::HashSet::new();
        let events = self.entries.iter().filter_map(Entry::event);
        keys.extend(events.map(|it| it.key).filter(|key| known.insert(*key)));
        let (slow, by) = self.faults.slow.unwrap_or_default();
        // Slow runs succeed, so they come last: after a success there would be no further run.
        for (kind, times, fault) in [
            ("fails", self.faults.fails, RunFault::Fails),
            ("panics", self.faults.panics, RunFault::Panics),
            ("is slow", slow, RunFault::Slow(by)),
        ] {
            if times == 0 {
                continue;
            }
            for index in self.choose_from(kind, (0..keys.len()).collect()) {
                let faults = self.run_faults.entry(keys[index]).or_default();
                faults.extend((0..times).map(|_| fault));
            }
        }
        // Failures and panics are shuffled for each event, by its index.
        for (index, key) in keys.iter().enumerate() {
            let mut rng = self.rng_of("order", index);
            if let Some(faults) = self.run_faults.get_mut(key) {
                let failing = faults.partition_point(|it| !matches!(it, RunFault::Slow(_)));
                rng.shuffle(&mut faults[..failing]);
            }
        }
    }

    /// Chooses the share of the deliveries for which this holds, and one at least; in ascending
    /// order.
    fn choose(&self, purpose: &str, holds: impl Fn(&Entry) -> bool) -> Vec<usize> {
        self.choose_from(purpose, self.indices_where(holds))
    }

    fn choose_from(&self, purpose: &str, mut of: Vec<usize>) -> Vec<usize> {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss
        )]
        // a share of 0 to 1 of a length
        let number = (of.len() as f64 * self.faults.share.unwrap_or(0.5)).ceil() as usize;
        self.rng(purpose).shuffle(&mut of);
        of.truncate(number.max(1));
        of.sort_unstable();
        of
    }

    fn indices_where(&self, holds: impl Fn(&Entry) -> bool) -> Vec<usize> {
        let holds = |index: &usize| holds(&self.entries[self.deliveries[*index].entry]);
        (0..self.deliveries.len()).filter(holds).collect()
    }

    fn rng(&self, purpose: &str) -> Rng {
        self.rng_of(purpose, 0)
    }

    /// Choices that depend only on the seed and their purpose, and not on earlier choices.
    fn rng_of(&self, purpose: &str, index: usize) -> Rng {
        let of = [self.faults.seed.to_le_bytes(), (index as u64).to_le_bytes()].concat();
        Rng::with_seed(fnv1a(of.into_iter().chain(purpose.bytes())))
    }
}

/// Returns the deliveries without faults. The log counts whole seconds: deliveries of one second
/// are spread over it, in their order.
fn as_logged(entries: &[Entry]) -> Vec<Planned> {
    let mut last_of: HashMap<EventKey, usize> = HashMap::new();
    for (index, entry) in entries.iter().enumerate() {
        last_of.extend(entry.event().map(|event| (event.key, index)));
    }
    let mut deliveries = Vec::with_capacity(entries.len());
    for same_second in entries.chunk_by(|one, next| one.at == next.at) {
        let since = same_second[0].at.since(entries[0].at).unwrap_or_default();
        let gap = SECOND / u32::try_from(same_second.len()).unwrap_or(u32::MAX);
        for (place, entry) in (0..).zip(same_second) {
            let (index, due) = (deliveries.len(), since + gap * place);
            deliveries.push(Planned {
                entry: index,
                copy: 0,
                attempt: 1,
                due,
                sent: due,
                hang_up_after: None,
                handler_delay: Duration::ZERO,
                tamper: None,
                faults: Vec::new(),
                retried: entry
                    .event()
                    .is_some_and(|event| last_of.get(&event.key) == Some(&index)),
            });
        }
    }
    deliveries
}

/// Returns the time of a wall clock that showed `begin`, after this duration.
pub(super) fn at(begin: UnixSeconds, passed: Duration) -> UnixSeconds {
    let passed = i64::try_from(passed.as_secs()).unwrap_or(i64::MAX);
    UnixSeconds::new(begin.as_i64().saturating_add(passed))
}
