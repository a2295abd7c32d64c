//! The deliveries, their times and their faults: all of it is chosen before the first delivery is sent.
//!
//! Nothing is chosen at random while the replay runs, so that no order of tasks can change a plan.

use std::collections::HashMap;
use std::time::Duration;

use hookgate::{clock::UnixSeconds, dedupe::EventKey, verify::Window};

use super::choices::SeededChoices;
use super::entry::Entry;
use super::faults::Faults;

const SECOND: Duration = Duration::from_secs(1);
/// The longest delay past the window. A delivery that would need a longer one, because the window is very wide, is not delayed.
const LONGEST_DELAY: Duration = Duration::from_secs(7 * 24 * 3_600);

/// The whole plan.
pub(super) struct Plan {
    pub(super) deliveries: Vec<Planned>,
    /// The behaviour of the first runs of an event.
    pub(super) run_plans: HashMap<EventKey, Vec<RunPlan>>,
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
    /// The time of its arrival, counted from the beginning.
    pub(super) due: Duration,
    /// The time at which it was sent. Where it is signed again, it is signed for this time.
    pub(super) sent: Duration,
    /// The time after which the sender hangs up, where that is earlier than the sender's own time-out.
    pub(super) hang_up_after: Option<Duration>,
    /// The time that the handler waits in a run that this delivery begins.
    pub(super) handler_delay: Duration,
    /// The faults of this delivery.
    pub(super) faults: Vec<&'static str>,
    /// Whether the sender tries again after a failure: not where the log itself holds a later attempt.
    pub(super) retried: bool,
}

/// The planned delay and behaviour of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RunPlan {
    pub(super) delay: Duration,
    pub(super) behaviour: Behaviour,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Behaviour {
    #[default]
    CallsHandler,
    Fails,
    Panics,
}

impl Plan {
    /// Makes the plan for entries that are sorted by their time of receipt, replayed from `begin` on.
    pub(super) fn of(
        entries: &[Entry],
        faults: &Faults,
        window: Window,
        begin: UnixSeconds,
    ) -> Self {
        let mut plan = Self::without_faults(entries);
        let choices = SeededChoices::of(faults);
        if faults.reorder {
            plan.reorder(entries, &choices, window, begin);
        }
        if faults.delay {
            plan.delay(entries, &choices, window, begin);
        }
        if faults.hang_up {
            plan.hang_up(entries, &choices);
        }
        plan.restart(entries, &choices, faults);
        if faults.duplicate {
            plan.duplicate(&choices);
        }
        plan.plan_runs(entries, &choices, faults);
        plan.deliveries.sort_by_key(|planned| planned.due);
        plan
    }

    fn without_faults(entries: &[Entry]) -> Self {
        let first = entries.first().map(|entry| entry.at);
        let mut last_of: HashMap<EventKey, usize> = HashMap::new();
        for (index, entry) in entries.iter().enumerate() {
            if let Some(named) = entry.event() {
                last_of.insert(named.key, index);
            }
        }
        let mut deliveries = Vec::with_capacity(entries.len());
        let mut same_second = 0..0;
        for (index, entry) in entries.iter().enumerate() {
            if index >= same_second.end {
                let of_it = entries[index..].iter();
                let count = of_it.take_while(|other| other.at == entry.at).count();
                same_second = index..index + count;
            }
            // The log counts whole seconds: deliveries of one second are spread over it, in their order.
            let count = u32::try_from(same_second.len()).unwrap_or(u32::MAX);
            let place = u32::try_from(index - same_second.start).unwrap_or(u32::MAX);
            let since = first.and_then(|first| entry.at.since(first));
            let due = since.unwrap_or_default() + SECOND / count.max(1) * place;
            deliveries.push(Planned {
                entry: index,
                copy: 0,
                due,
                sent: due,
                hang_up_after: None,
                handler_delay: Duration::ZERO,
                faults: Vec::new(),
                retried: entry
                    .event()
                    .is_some_and(|named| last_of.get(&named.key) == Some(&index)),
            });
        }
        Self {
            deliveries,
            run_plans: HashMap::new(),
            restarts: Vec::new(),
        }
    }

    /// Swaps a delivery with one of the next three.
    fn reorder(
        &mut self,
        entries: &[Entry],
        choices: &SeededChoices,
        window: Window,
        begin: UnixSeconds,
    ) {
        let mut rng = choices.rng("reorder");
        let keeps = |planned: &Planned, due: Duration| {
            let entry = &entries[planned.entry];
            // Signed when it is sent, or at least not moved from inside the window to outside.
            entry.resigned
                || entry.timestamp.is_none_or(|timestamp| {
                    let fresh = |due| window.check(timestamp, at(begin, due)).is_ok();
                    fresh(due) || !fresh(planned.due)
                })
        };
        let mut moved = vec![false; self.deliveries.len()];
        for index in choices.choose("which to reorder", self.deliveries.len()) {
            let later = index + 1 + rng.usize(0..3);
            let farthest = self.deliveries.len().saturating_sub(1);
            let later = later.min(farthest);
            if later <= index || moved[index] || moved[later] {
                continue;
            }
            let (early, late) = (self.deliveries[index].due, self.deliveries[later].due);
            if keeps(&self.deliveries[index], late) && keeps(&self.deliveries[later], early) {
                for (place, due) in [(index, late), (later, early)] {
                    let planned = &mut self.deliveries[place];
                    (planned.due, planned.sent) = (due, due);
                    planned.faults.push("reordered");
                    moved[place] = true;
                }
            }
        }
        self.deliveries.sort_by_key(|planned| planned.due);
    }

    fn delay(
        &mut self,
        entries: &[Entry],
        choices: &SeededChoices,
        window: Window,
        begin: UnixSeconds,
    ) {
        let mut rng = choices.rng("delay");
        let authentic = self.indices_where(entries, |entry| !entry.is_forged());
        for index in choices.choose_from("which to delay", &authentic) {
            let planned = &mut self.deliveries[index];
            let entry = &entries[planned.entry];
            let more = Duration::from_secs(rng.u64(1..=600));
            let signed = match (entry.resigned, entry.timestamp) {
                (false, Some(timestamp)) => timestamp,
                _ => at(begin, planned.sent),
            };
            // Counted from its own timestamp, which may lie before or after its arrival.
            let ends = signed.as_i64().saturating_add(seconds(window.past()));
            let left = UnixSeconds::new(ends).since(at(begin, planned.due));
            let left = left.unwrap_or_default();
            if left > LONGEST_DELAY {
                continue;
            }
            planned.due += left + more + SECOND;
            planned.faults.push("delayed past the window");
        }
    }

    fn hang_up(&mut self, entries: &[Entry], choices: &SeededChoices) {
        let mut rng = choices.rng("hang up");
        let events = self.indices_where(entries, |entry| entry.event().is_some());
        for index in choices.choose_from("where to hang up", &events) {
            let planned = &mut self.deliveries[index];
            // Within the receiver's budget: after it, the receiver has already answered.
            let hang_up_after = Duration::from_millis(rng.u64(1..4_400));
            planned.hang_up_after = Some(hang_up_after);
            planned.handler_delay = hang_up_after + Duration::from_millis(rng.u64(100..15_000));
            planned.faults.push("sender hangs up");
        }
    }

    /// The process ends in the midst of a run that is made slow for this, or a little after a delivery.
    fn restart(&mut self, entries: &[Entry], choices: &SeededChoices, faults: &Faults) {
        let mut rng = choices.rng("restart");
        let events = self.indices_where(entries, |entry| entry.event().is_some());
        for _ in 0..faults.restarts {
            let Some(&index) = events.get(rng.usize(0..events.len().max(1))) else {
                return;
            };
            let in_a_run = rng.bool();
            let planned = &mut self.deliveries[index];
            let due = planned.due;
            if in_a_run {
                planned.handler_delay = planned
                    .handler_delay
                    .max(Duration::from_millis(rng.u64(1_500..9_000)));
                self.restarts.push(due + SECOND);
            } else {
                let later = Duration::from_millis(rng.u64(100..60_000));
                self.restarts.push(due + later);
            }
        }
        self.restarts.sort_unstable();
    }

    fn duplicate(&mut self, choices: &SeededChoices) {
        let mut rng = choices.rng("duplicate");
        for index in choices.choose("which to duplicate", self.deliveries.len()) {
            let original = self.deliveries[index].clone();
            let at_once = rng.bool();
            let mut due = original.due;
            for copy in 1..=rng.u32(1..=3) {
                if !at_once {
                    due += Duration::from_millis(rng.u64(1_000..40_000));
                }
                self.deliveries.push(Planned {
                    copy,
                    due,
                    hang_up_after: None,
                    faults: vec![if at_once {
                        "copy at once"
                    } else {
                        "copy in turn"
                    }],
                    retried: false,
                    ..original.clone()
                });
            }
        }
    }

    fn plan_runs(&mut self, entries: &[Entry], choices: &SeededChoices, faults: &Faults) {
        let mut keys: Vec<EventKey> = Vec::new();
        let mut known = std::collections::HashSet::new();
        for named in entries.iter().filter_map(Entry::event) {
            if known.insert(named.key) {
                keys.push(named.key);
            }
        }
        let (slow, by) = faults.slow.unwrap_or_default();
        for (kind, times, run_plan) in [
            ("fails", faults.fails, (Duration::ZERO, Behaviour::Fails)),
            ("panics", faults.panics, (Duration::ZERO, Behaviour::Panics)),
            ("is slow", slow, (by, Behaviour::CallsHandler)),
        ] {
            if times == 0 {
                continue;
            }
            for index in choices.choose(kind, keys.len()) {
                let run_plans = self.run_plans.entry(keys[index]).or_default();
                let (delay, behaviour) = run_plan;
                // Slow runs succeed, so they come last: after a success there would be no further run.
                run_plans.extend((0..times).map(|_| RunPlan { delay, behaviour }));
            }
        }
        // Failures and panics are shuffled for each event. The index of the event makes the order the same each time.
        for (index, key) in keys.iter().enumerate() {
            let Some(run_plans) = self.run_plans.get_mut(key) else {
                continue;
            };
            let failing = run_plans
                .iter()
                .take_while(|run_plan| run_plan.behaviour != Behaviour::CallsHandler);
            let failing = failing.count();
            choices
                .rng_of("order", index)
                .shuffle(&mut run_plans[..failing]);
        }
    }

    fn indices_where(&self, entries: &[Entry], holds: impl Fn(&Entry) -> bool) -> Vec<usize> {
        let holds = |index: &usize| holds(&entries[self.deliveries[*index].entry]);
        (0..self.deliveries.len()).filter(holds).collect()
    }
}

/// Returns the time of the replay's wall clock at this duration after its beginning.
pub(super) fn at(begin: UnixSeconds, passed: Duration) -> UnixSeconds {
    UnixSeconds::new(begin.as_i64().saturating_add(seconds(passed)))
}

fn seconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_secs()).unwrap_or(i64::MAX)
}
