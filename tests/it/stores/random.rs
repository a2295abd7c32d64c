//! Random calls on `MemoryStore`, beside a model that keeps all of it in plain maps.

use std::collections::BTreeMap;
use std::time::Duration;

use hookgate::{
    DedupeStore, MemoryStore,
    clock::ManualClock,
    dedupe::{Capacity, ClaimToken, Claimed, Ownership},
};
use proptest::prelude::*;

use super::{clock, key, now, token};

/// Few enough that they meet often.
const EVENTS: usize = 40;
const SECOND: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug)]
enum Call {
    Claim,
    Renew,
    Commit,
    Release,
    /// A claim and a commit.
    Finish,
    Wait,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    call: Call,
    event: usize,
    holder: usize,
    /// The lease, or the time to wait.
    lease: u32,
    retain: u32,
}

fn step() -> impl Strategy<Value = Step> {
    let call = prop_oneof![
        4 => Just(Call::Claim),
        1 => Just(Call::Renew),
        4 => Just(Call::Commit),
        1 => Just(Call::Release),
        9 => Just(Call::Finish),
        2 => Just(Call::Wait),
    ];
    // A long retention is the usual one: a record that ends early then stands behind others.
    let retain = prop_oneof![2 => Just(60_u32), 1 => 1..20_u32];
    let parts = (call, 0..EVENTS, 0..3_usize, 1..9_u32, retain);
    parts.prop_map(|(call, event, holder, lease, retain)| Step {
        call,
        event,
        holder,
        lease,
        retain,
    })
}

#[derive(Clone, Copy)]
struct Running {
    by: ClaimToken,
    end: u32,
}

#[derive(Clone, Copy)]
struct Done {
    by: ClaimToken,
    number: u64,
    committed: u32,
    end: u32,
}

/// Times are in seconds.
struct Model {
    capacity: Capacity,
    now: u32,
    running: BTreeMap<usize, Running>,
    done: BTreeMap<usize, Done>,
    commits: u64,
    evicted: u64,
    youngest_evicted: Option<u32>,
    /// The longest lease that was given: so long a commit can be repeated.
    longest_lease: u32,
}

impl Model {
    fn new(capacity: Capacity) -> Self {
        Self {
            capacity,
            now: 0,
            running: BTreeMap::new(),
            done: BTreeMap::new(),
            commits: 0,
            evicted: 0,
            youngest_evicted: None,
            longest_lease: 0,
        }
    }

    fn forget_ended(&mut self) {
        self.running.retain(|_, running| running.end > self.now);
        self.done.retain(|_, done| done.end > self.now);
    }

    fn claim(&mut self, event: usize, by: ClaimToken, lease: u32) -> Option<Claimed> {
        self.longest_lease = self.longest_lease.max(lease);
        if let Some(done) = self.done.get(&event) {
            return Some(Claimed::Done {
                body_mark: done.by.body_mark(),
            });
        }
        let end = self.now + lease;
        match self.running.get(&event) {
            Some(running) if running.by != by => {
                let retry_after = SECOND * (running.end - self.now);
                return Some(Claimed::Running { retry_after });
            }
            None if self.capacity.refuses_when_full()
                && self.done.len() + self.running.len() >= self.capacity.records() =>
            {
                return None;
            }
            _ => {}
        }
        self.running.insert(event, Running { by, end });
        Some(Claimed::Fresh)
    }

    fn holds(&self, event: usize, by: ClaimToken) -> bool {
        self.running
            .get(&event)
            .is_some_and(|running| running.by == by)
    }

    fn renew(&mut self, event: usize, by: ClaimToken, lease: u32) -> bool {
        self.longest_lease = self.longest_lease.max(lease);
        self.holds(event, by) && self.claim(event, by, lease) == Some(Claimed::Fresh)
    }

    fn release(&mut self, event: usize, by: ClaimToken) -> bool {
        self.holds(event, by) && self.running.remove(&event).is_some()
    }

    fn commit(&mut self, event: usize, by: ClaimToken, retain: u32) -> bool {
        if !self.holds(event, by) {
            let done = self.done.get(&event);
            let is_repeated = |done: &Done| done.committed + self.longest_lease > self.now;
            return done.is_some_and(|done| done.by == by && is_repeated(done));
        }
        self.running.remove(&event);
        if !self.capacity.refuses_when_full() && self.done.len() >= self.capacity.records() {
            let first = self
                .done
                .iter()
                .min_by_key(|(_, done)| done.number)
                .map(|(event, _)| *event);
            let age = self.now - self.done.remove(&first.unwrap()).unwrap().committed;
            self.evicted += 1;
            self.youngest_evicted = Some(self.youngest_evicted.map_or(age, |least| least.min(age)));
        }
        self.commits += 1;
        let done = Done {
            by,
            number: self.commits,
            committed: self.now,
            end: self.now + retain,
        };
        self.done.insert(event, done);
        true
    }
}

fn held(is_held: bool) -> Ownership {
    if is_held {
        Ownership::Held
    } else {
        Ownership::Lost
    }
}

fn check(capacity: Capacity, steps: &[Step], clock: &ManualClock) -> Result<(), TestCaseError> {
    let store = MemoryStore::new(capacity).with_clock(clock.clone());
    let tokens: Vec<ClaimToken> = (0..3 * EVENTS).map(|_| token()).collect();
    let mut model = Model::new(capacity);
    let wait = |model: &mut Model, seconds| {
        clock.advance(SECOND * seconds);
        model.now += seconds;
        model.forget_ended();
    };
    for step in steps {
        let (event, by) = (step.event, tokens[3 * step.event + step.holder]);
        let (key, lease, retain) = (key(event), SECOND * step.lease, SECOND * step.retain);
        // Of two commits at one time under different retentions, either may be evicted first.
        if matches!(step.call, Call::Commit | Call::Finish) {
            wait(&mut model, 1);
        }
        if matches!(step.call, Call::Claim | Call::Finish) {
            let claimed = now(store.claim(&key, by, lease)).ok();
            prop_assert_eq!(claimed, model.claim(event, by, step.lease));
        }
        match step.call {
            Call::Claim => {}
            Call::Renew => {
                let renewed = now(store.renew(&key, by, lease)).unwrap();
                prop_assert_eq!(renewed, held(model.renew(event, by, step.lease)));
            }
            Call::Commit | Call::Finish => {
                let committed = now(store.commit(&key, by, retain)).unwrap();
                prop_assert_eq!(committed, held(model.commit(event, by, step.retain)));
            }
            Call::Release => {
                let released = now(store.release(&key, by)).unwrap();
                prop_assert_eq!(released, held(model.release(event, by)));
            }
            Call::Wait => wait(&mut model, step.lease),
        }
    }
    let stats = store.stats();
    let held = (model.done.len(), model.running.len());
    prop_assert_eq!((stats.done, stats.running), held);
    prop_assert_eq!(stats.evicted, model.evicted);
    let youngest = model.youngest_evicted.map(|age| SECOND * age);
    prop_assert_eq!(stats.youngest_evicted, youngest);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    // fault S2-28: an authentic flood fills memory
    #[test]
    fn random_calls_are_answered_as_the_model_does(
        records in 1..30_usize,
        refuses in any::<bool>(),
        steps in proptest::collection::vec(step(), 0..600),
    ) {
        let mut capacity = Capacity::new(records);
        if refuses {
            capacity = capacity.refusing_when_full();
        }
        check(capacity, &steps, &clock())?;
    }
}
