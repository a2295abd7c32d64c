//! The whole state of a plan under way, and the rules that are checked where things happen.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use hookgate::{
    Outcome, Scheme,
    dedupe::{ClaimToken, EventKey},
    layer::{Answer, Settled},
    outcome::RefusalKind,
};
use tokio::time::Instant;

use super::ledger::{Ledger, State};
use super::plan::{Call, EventPlan, Fault, HandlerAction, RUN_LIMIT};
use super::run::{RunEnd, RunGuard, RunState};

const BUDGET: Duration = Duration::from_millis(4_500);
/// Tokio's timers tick once a millisecond.
const TICK: Duration = Duration::from_millis(2);
/// The longest time between two looks of a waiting copy.
const LONGEST_WAIT: Duration = Duration::from_millis(402);
/// How many copies may wait, in all and for one event.
pub(super) const MAX_WAITING: (usize, usize) = (64, 4);

#[derive(Debug)]
pub(super) struct World {
    /// How the sender signs.
    pub(super) scheme: Scheme,
    start: Instant,
    /// By how much the receiver's wall clock is off, in seconds.
    pub(super) skew: AtomicI64,
    /// By how much the store's clock has jumped ahead, in milliseconds.
    pub(super) jumped: AtomicU64,
    pub(super) jumps: AtomicUsize,
    in_flight: AtomicUsize,
    names: HashMap<EventKey, usize>,
    events: Mutex<Vec<EventState>>,
    violations: Mutex<Vec<String>>,
    /// The outcomes that the hook got, and those that the requests got.
    told: Mutex<Vec<Outcome>>,
    outcomes: Mutex<Vec<Outcome>>,
    notes: Mutex<Vec<&'static str>>,
    /// Claims that were granted, or may have been, and whose commit or release was not yet
    /// requested.
    owed: Mutex<HashSet<ClaimToken>>,
    grants: Mutex<HashMap<ClaimToken, Grant>>,
}

#[derive(Debug)]
pub(super) struct EventState {
    plan: EventPlan,
    pub(super) ledger: Ledger,
    calls: [usize; 4],
    pub(super) faults_met: usize,
    pub(super) runs: Vec<RunState>,
    pub(super) settled: Vec<Outcome>,
    /// Requests that are waiting for their answer.
    in_flight: usize,
    pub answered_2xx: bool,
    /// The claim that the receiver last got as its own: that of the run that begins next, without a
    /// wait in between.
    handed_over: Option<ClaimToken>,
}

/// The state when a claim was granted.
#[derive(Clone, Copy, Debug)]
struct Grant {
    /// The ledger's losses, its own among them.
    losses: usize,
    /// The jumps of the store's clock.
    jumps: usize,
}

/// The known facts when a request arrived.
pub(super) struct RequestStart {
    event: usize,
    at: Instant,
    fresh: bool,
    state: State,
    disturbances: usize,
}

impl World {
    pub(super) fn new(events: &[EventPlan], scheme: Scheme) -> Arc<Self> {
        let state = |plan: &EventPlan| EventState {
            plan: plan.clone(),
            ledger: Ledger::default(),
            calls: [0; 4],
            faults_met: 0,
            runs: Vec::new(),
            settled: Vec::new(),
            in_flight: 0,
            answered_2xx: false,
            handed_over: None,
        };
        let name = |event| (EventKey::new("default", &event_id(event)), event);
        Arc::new(Self {
            scheme,
            start: Instant::now(),
            skew: AtomicI64::new(0),
            jumped: AtomicU64::new(0),
            jumps: AtomicUsize::new(0),
            in_flight: AtomicUsize::new(0),
            names: (0..events.len()).map(name).collect(),
            events: Mutex::new(events.iter().map(state).collect()),
            violations: Mutex::default(),
            told: Mutex::default(),
            outcomes: Mutex::default(),
            notes: Mutex::default(),
            owed: Mutex::default(),
            grants: Mutex::default(),
        })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Vec<EventState>> {
        self.events.lock().unwrap()
    }

    pub(super) fn violation(&self, what: String) {
        let at = self.start.elapsed();
        self.violations
            .lock()
            .unwrap()
            .push(format!("{at:?}: {what}"));
    }

    fn check(&self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.violation(what());
        }
    }

    pub(super) fn violations(&self) -> Vec<String> {
        self.violations.lock().unwrap().clone()
    }

    pub(super) fn note(&self, what: &'static str) {
        self.notes.lock().unwrap().push(what);
    }

    /// The events that happened, for a test of the plans.
    pub(super) fn happened(&self) -> Vec<String> {
        let mut happened: Vec<_> = self
            .notes
            .lock()
            .unwrap()
            .iter()
            .map(|it| (*it).into())
            .collect();
        let outcomes = self.outcomes.lock().unwrap();
        happened.extend(
            outcomes
                .iter()
                .map(|outcome| format!("answered {}", outcome.name())),
        );
        for state in self.lock().iter() {
            let settled = state
                .settled
                .iter()
                .map(|outcome| format!("settled {}", outcome.name()));
            happened.extend(settled);
            if state.ledger.losses > 0 {
                happened.push("a claim or record was lost".into());
            }
        }
        happened
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    pub(super) fn true_time(&self) -> i64 {
        1_763_690_000 + self.start.elapsed().as_secs() as i64
    }

    pub(super) fn store_time(&self) -> Duration {
        self.start.elapsed() + Duration::from_millis(self.jumped.load(Ordering::SeqCst))
    }

    pub(super) fn event_of(&self, key: &EventKey) -> Option<usize> {
        self.names.get(key).copied()
    }

    /// The fault that this call of the store meets.
    pub(super) fn fault(&self, event: usize, call: Call) -> Option<Fault> {
        let state = &mut self.lock()[event];
        let nth = state.calls[call as usize];
        state.calls[call as usize] += 1;
        let planned = state.plan.faults.iter().find(|fault| {
            fault.call == call && (fault.nth..fault.nth + fault.times).contains(&nth)
        })?;
        state.faults_met += 1;
        Some(planned.fault)
    }

    /// A caller got the answer that it may hold the claim.
    pub(super) fn owes(&self, token: ClaimToken) {
        self.owed.lock().unwrap().insert(token);
    }

    /// The caller requests a commit or release of it.
    pub(super) fn pays(&self, token: ClaimToken) {
        self.owed.lock().unwrap().remove(&token);
    }

    /// The store has granted a claim. The answer may come later, or never.
    pub(super) fn granted(&self, token: ClaimToken, losses: usize) {
        let jumps = self.jumps.load(Ordering::SeqCst);
        let grant = Grant { losses, jumps };
        self.grants.lock().unwrap().insert(token, grant);
    }

    /// The receiver gets the answer that the claim is its own.
    pub(super) fn hands_over(&self, event: usize, token: ClaimToken) {
        self.lock()[event].handed_over = Some(token);
    }

    /// The faults are over.
    pub(super) fn calm(&self) {
        self.skew.store(0, Ordering::SeqCst);
        for state in self.lock().iter_mut() {
            state.plan.faults.clear();
            state.plan.runs = vec![HandlerAction::Succeeds(0)];
        }
    }

    /// Whether only the handler and the sender could harm this event.
    pub(super) fn undisturbed(&self, event: &EventState) -> bool {
        event.faults_met == 0 && self.jumps.load(Ordering::SeqCst) == 0
    }

    // ---- runs

    /// A run begins, on a claim that holds. No other may be under way or have succeeded, unless its
    /// claim was lost since.
    ///
    /// There is one excuse for a run on a claim that has ended: the store's clock jumped while the
    /// grant was on its way. The receiver reads its own clock, and by that one the claim holds; no
    /// store could be asked that would answer in less than no time. So this can't be helped, the
    /// second run beside or after another one included, and its commit must be lost.
    pub(super) fn run_begins(self: &Arc<Self>, event: usize) -> (RunGuard, HandlerAction) {
        let now = self.store_time();
        let state = &mut self.lock()[event];
        let token = state.handed_over.take().expect("a run has a claim");
        let grant = self.grants.lock().unwrap()[&token];
        let holds = state.ledger.holds(token, now);
        if !holds {
            self.note("a run on a claim that a jump had ended");
            self.check(grant.jumps < self.jumps.load(Ordering::SeqCst), || {
                format!("event {event} runs on a claim that has ended")
            });
        }
        let losses = grant.losses;
        for (number, run) in state.runs.iter().enumerate() {
            if run.end.is_none() {
                self.note("two runs at a time");
            }
            let bars = run.end.is_none_or(RunEnd::is_success);
            self.check(!holds || !bars || run.losses < losses, || {
                format!("event {event} runs again beside or after its run {number}: {run:?}")
            });
        }
        let number = state.runs.len();
        let does = *state
            .plan
            .runs
            .get(number)
            .or(state.plan.runs.last())
            .unwrap();
        state.runs.push(RunState {
            began: Instant::now(),
            losses,
            end: None,
        });
        let guard = RunGuard {
            world: Arc::clone(self),
            event,
            number,
            open: true,
        };
        (guard, does)
    }

    pub(super) fn run_ends(&self, event: usize, number: usize, end: RunEnd) {
        let run = &mut self.lock()[event].runs[number];
        run.end = Some(end);
        let limit = Duration::from_millis(RUN_LIMIT);
        let lasted = run.began.elapsed();
        self.check(end != RunEnd::CutOff || lasted >= limit, || {
            format!("run {number} of event {event} was cut off after {lasted:?}")
        });
        self.check(lasted <= limit + TICK, || {
            format!("run {number} of event {event} lasted {lasted:?}")
        });
    }

    /// A run settles: with the outcome by which it ended, was committed or was given up.
    pub(super) fn settled(&self, settled: &Settled) {
        let Some(event) = self.event_of(settled.delivery.key()) else {
            return;
        };
        let now = self.store_time();
        let state = &mut self.lock()[event];
        let outcome = settled.outcome;
        state.settled.push(outcome);
        self.check(
            state
                .runs
                .iter()
                .any(|run| run.end.is_some_and(|end| end.settles_as(outcome))),
            || format!("a run of event {event} settled as {outcome:?}"),
        );
        match outcome {
            Outcome::Handled | Outcome::DeadLettered => self
                .check(state.ledger.commits > 0, || {
                    format!("event {event} is said to be {outcome:?}, and was not committed")
                }),
            Outcome::HandledUnrecorded(_) => self.check(!self.undisturbed(state), || {
                format!("a success of event {event} was not recorded, without a fault: {outcome:?}")
            }),
            _ => self.check(
                !self.undisturbed(state) || state.ledger.state(now) != State::Running,
                || format!("event {event} is not claimable after {outcome:?}"),
            ),
        }
    }

    // ---- requests

    /// Call it right before the request is polled for the first time.
    pub(super) fn arrives(&self, event: usize) -> RequestStart {
        self.in_flight.fetch_add(1, Ordering::SeqCst);
        let now = self.store_time();
        let state = &mut self.lock()[event];
        state.in_flight += 1;
        RequestStart {
            event,
            at: Instant::now(),
            fresh: self.skew.load(Ordering::SeqCst).abs() <= 300,
            state: state.ledger.state(now),
            disturbances: state.faults_met + self.jumps.load(Ordering::SeqCst),
        }
    }

    pub(super) fn told(&self, answer: &Answer) {
        self.told.lock().unwrap().push(answer.outcome);
    }

    pub(super) fn had_outcome(&self, outcome: Outcome) {
        self.outcomes.lock().unwrap().push(outcome);
    }

    pub(super) fn hung_up(&self, arrival: &RequestStart) {
        self.in_flight.fetch_sub(1, Ordering::SeqCst);
        self.lock()[arrival.event].in_flight -= 1;
        self.check(arrival.at.elapsed() <= BUDGET + TICK, || {
            format!("no answer after {:?}", arrival.at.elapsed())
        });
    }

    pub(super) fn answered(&self, arrival: &RequestStart, status: u16, outcome: Outcome) {
        self.had_outcome(outcome);
        let total = self.in_flight.fetch_sub(1, Ordering::SeqCst);
        let now = self.store_time();
        let event = arrival.event;
        let state = &mut self.lock()[event];
        let here = state.in_flight;
        state.in_flight -= 1;
        let elapsed = arrival.at.elapsed();
        self.check(elapsed <= BUDGET + TICK, || {
            format!("answered after {elapsed:?}")
        });

        let success = (200..300).contains(&status);
        let done = matches!(
            outcome,
            Outcome::Handled
                | Outcome::HandledUnrecorded(_)
                | Outcome::DeadLettered
                | Outcome::Replayed { .. }
        );
        self.check(success == done, || {
            format!("a copy of event {event} was answered {status} for {outcome:?}")
        });
        if success {
            state.answered_2xx = true;
            let succeeded = state
                .runs
                .iter()
                .any(|run| run.end.is_some_and(RunEnd::is_success));
            self.check(succeeded, || {
                format!(
                    "a copy of event {event} was answered {status} ({outcome:?}) before any run succeeded"
                )
            });
        }
        let refused = match outcome {
            Outcome::Refused(kind) => Some(kind),
            _ => None,
        };
        self.check(
            arrival.fresh == (refused != Some(RefusalKind::NotAuthentic)),
            || format!("{outcome:?} although the age was right: {}", arrival.fresh),
        );
        match outcome {
            Outcome::Replayed { .. } => self.check(state.ledger.commits > 0, || {
                format!("event {event} was replayed and never done")
            }),
            Outcome::RunsOn => self.check(state.runs.iter().any(|run| run.end.is_none()), || {
                format!("event {event} is said to run on, and no run is under way")
            }),
            _ => {}
        }

        // From here on: rules that hold where only the handler can fail.
        let disturbed =
            state.faults_met + self.jumps.load(Ordering::SeqCst) != arrival.disturbances;
        if disturbed || !arrival.fresh {
            return;
        }
        let replayed = matches!(outcome, Outcome::Replayed { same_body: true });
        match arrival.state {
            State::Done => self.check(replayed, || {
                format!("a copy of event {event}, which was done, was answered {outcome:?}")
            }),
            State::Free => self.check(refused.is_none() && !replayed, || {
                format!("a copy of event {event}, which was free, was answered {outcome:?}")
            }),
            State::Running => match refused {
                None => {}
                Some(RefusalKind::StillRunning) => {
                    let too_many_wait = here > MAX_WAITING.1 || total > MAX_WAITING.0;
                    let then = now.saturating_sub(LONGEST_WAIT);
                    self.check(too_many_wait || state.ledger.was_running_since(then, now), || {
                        format!("a copy of event {event} did not see that it was free, and {here} copies of {total} in all have places")
                    });
                }
                Some(other) => self.violation(format!("event {event} was refused: {other:?}")),
            },
        }
    }

    /// Checks the rules for the end.
    pub(super) fn check_the_end(&self) {
        for (event, state) in self.lock().iter().enumerate() {
            let ends: Vec<_> = state.runs.iter().filter_map(|run| run.end).collect();
            self.check(
                ends.len() == state.runs.len() && state.settled.len() == state.runs.len(),
                || {
                    format!(
                        "event {event}: {} runs, settled {:?}",
                        state.runs.len(),
                        state.settled
                    )
                },
            );
            let ended = |success| {
                ends.iter()
                    .filter(|end| end.is_success() == success)
                    .count()
            };
            let settled =
                |name: fn(&Outcome) -> bool| state.settled.iter().filter(|it| name(it)).count();
            let failed = settled(|outcome| matches!(outcome, Outcome::Failed(_)));
            self.check(failed == ended(false), || {
                format!("event {event}: ended {ends:?}, settled {:?}", state.settled)
            });
            let recorded =
                settled(|outcome| matches!(outcome, Outcome::Handled | Outcome::DeadLettered));
            let commits = state.ledger.commits;
            self.check(recorded <= commits && commits <= ended(true), || {
                format!(
                    "event {event}: {recorded} told, {commits} committed, {} succeeded",
                    ended(true)
                )
            });
            self.check(ended(true) <= 1 + state.ledger.losses, || {
                format!(
                    "event {event}: {ends:?} with {} losses",
                    state.ledger.losses
                )
            });
            // A success is known on one side at least: to the sender, which stops, or to the store,
            // which reports it to the next copy.
            let known = state.answered_2xx || commits > 0;
            self.check(
                ended(true) == 0 || known || !self.undisturbed(state),
                || format!("event {event} was handled, and nobody knows"),
            );
            if self.undisturbed(state) {
                let once = ended(true).min(1);
                self.check(
                    (ended(true), recorded, commits, state.ledger.losses) == (once, once, once, 0),
                    || {
                        format!(
                            "event {event}, undisturbed: {:?}, {:?}",
                            state.settled, state.ledger
                        )
                    },
                );
            }
        }
        let owed = self.owed.lock().unwrap().len();
        self.check(owed == 0, || {
            format!("{owed} claims were neither committed nor released")
        });
        let sorted = |list: &Mutex<Vec<Outcome>>| {
            let mut names: Vec<_> = list
                .lock()
                .unwrap()
                .iter()
                .map(|it| format!("{it:?}"))
                .collect();
            names.sort();
            names
        };
        let (told, answered) = (sorted(&self.told), sorted(&self.outcomes));
        self.check(told == answered, || {
            format!("told {told:?}, answered {answered:?}")
        });
        self.check(self.in_flight.load(Ordering::SeqCst) == 0, || {
            "requests without an end".into()
        });
    }
}

pub(super) fn event_id(event: usize) -> String {
    format!("evt_{event}")
}
