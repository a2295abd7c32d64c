//! Seeds of changes, moves and lost events while the list is read.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use hookgate::{
    block_on,
    event::{DataModelId, RowId},
};
use hookgate_client::reconcile::{
    Fed, Finding, Life, MemoryMirror, Mirror, Mirrored, Planner, Reconciled, RowHash, Settings,
    Step, feed, is_known,
};

use super::service::{Chance, ListOrder, MODEL, Sent, Service, columns};

/// A program with a mirror, whose passes run while the service changes.
struct World {
    service: Service,
    mirror: MemoryMirror,
    model: DataModelId,
    chance: Chance,
    sent: Vec<Sent>,
    /// One event of so many is lost, outside of an outage.
    loss: usize,
    outage: bool,
    /// Changes of a moment.
    rate: usize,
    lag: usize,
    /// When the last event of a row was handled.
    handled_at: BTreeMap<String, u64>,
    /// The last list of unresolved rows.
    unresolved: BTreeSet<String>,
    repairs: u64,
    suppressed: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut chance = Chance::new(seed);
        let orders = [
            ListOrder::Creation,
            ListOrder::NewestFirst,
            ListOrder::Update,
            ListOrder::LastUpdateFirst,
            ListOrder::Any,
        ];
        let mut service = Service::new(orders[seed as usize % orders.len()]);
        for _ in 0..40 + chance.below(160) {
            service.create(&mut chance);
            service.now += 1;
        }
        Self {
            service,
            mirror: if chance.one_in(2) {
                MemoryMirror::default()
            } else {
                MemoryMirror::with_values()
            },
            model: DataModelId::from(MODEL),
            sent: Vec::new(),
            loss: [2, 5, 20, 1_000_000][chance.below(4)],
            outage: false,
            rate: chance.below(4),
            lag: if chance.one_in(3) { 2 } else { 0 },
            chance,
            handled_at: BTreeMap::new(),
            unresolved: BTreeSet::new(),
            repairs: 0,
            suppressed: 0,
        }
    }

    /// A second passes: rows change, and events that are due are handled.
    fn tick(&mut self) {
        self.service.remember();
        self.service.now += 1;
        for _ in 0..self.rate {
            let event = match self.chance.below(8) {
                0 => Some(self.service.create(&mut self.chance)),
                1 => self.service.delete(&mut self.chance),
                // Many rows are deleted at once, now and then.
                2 if self.chance.one_in(60) => {
                    for _ in 0..self.chance.below(25) {
                        let event = self.service.delete(&mut self.chance);
                        self.send(event);
                    }
                    None
                }
                _ => self.service.update(&mut self.chance),
            };
            self.send(event);
        }
        let now = self.service.now;
        let (due, later) = std::mem::take(&mut self.sent)
            .into_iter()
            .partition(|sent| sent.at.is_some_and(|at| at <= now));
        self.sent = later;
        let due: Vec<Sent> = due;
        for sent in due {
            if block_on(is_known(&self.mirror, &sent.event)).unwrap() {
                self.suppressed += 1;
            }
            if block_on(feed(&self.mirror, &sent.event)).unwrap() == Fed::Written {
                self.handled_at.insert(sent.row, now);
            }
        }
    }

    fn send(&mut self, event: Option<hookgate::Event>) {
        let Some(event) = event else { return };
        let row = event.data.row_id().unwrap().to_string();
        let is_lost = self.outage || self.chance.one_in(self.loss);
        let delay = match self.chance.below(20) {
            0 => 200, // a late retry, after a repair
            1 => 15,
            _ => self.chance.below(3) as u64,
        };
        let at = (!is_lost).then_some(self.service.now + delay);
        if at.is_some() {
            self.sent.push(Sent { row, at, event });
        }
    }

    fn states(&self, rows: &[RowId]) -> HashMap<RowId, Mirrored> {
        block_on(self.mirror.get(&self.model, rows))
            .unwrap()
            .into_iter()
            .collect()
    }

    /// Returns when the pass began, and whether it was complete.
    fn pass(&mut self, planner: &mut Planner) -> (u64, bool) {
        let began = self.service.now;
        self.unresolved.clear();
        loop {
            let findings = match planner.step() {
                Step::Done(pass) => return (began, pass.is_complete),
                Step::Model => {
                    planner.model(columns());
                    continue;
                }
                Step::List { after, limit } => {
                    planner.listed(
                        block_on(self.mirror.list(&self.model, after.as_ref(), limit)).unwrap(),
                    );
                    continue;
                }
                Step::Page { offset, limit } => {
                    let lag = if self.lag > 0 {
                        self.chance.below(self.lag + 1)
                    } else {
                        0
                    };
                    self.service.remember();
                    let page = self.service.page(offset, limit, lag);
                    // An event may come between the page and the look at the mirror.
                    if self.chance.one_in(4) {
                        self.tick();
                    }
                    let ids: Vec<_> = page.rows.iter().map(|row| row.id.clone()).collect();
                    let findings = planner.page(&page, &self.states(&ids));
                    self.tick();
                    findings
                }
                Step::Absent(rows) => planner.absent(&self.states(&rows)),
            };
            for finding in findings {
                self.handle(&finding);
            }
        }
    }

    fn handle(&mut self, finding: &Finding) {
        let row = finding.reconciled.row_id().to_string();
        match &finding.reconciled {
            Reconciled::Deleted(_) => {
                assert!(
                    self.service.find(&row).is_none(),
                    "false deletion of {row}, {:?}",
                    self.service.order
                );
            }
            Reconciled::Unresolved(_) => {
                self.unresolved.insert(row);
                return;
            }
            _ => {}
        }
        self.repairs += 1;
        block_on(finding.record(&self.mirror)).unwrap();
    }

    /// Every change before these times is in the mirror, or listed as unresolved. A page may show
    /// the list as it was a little earlier.
    fn check(&self, two_passes_ago: u64, three_passes_ago: u64, seed: u64) {
        let lag = self.lag as u64 + 1;
        let (two_passes_ago, three_passes_ago) = (two_passes_ago - lag, three_passes_ago - lag);
        let states: BTreeMap<_, _> = block_on(self.mirror.list(&self.model, None, usize::MAX))
            .unwrap()
            .into_iter()
            .collect();
        let is_excused = |row: &str, since: u64| {
            self.unresolved.contains(row) || self.handled_at.get(row).is_some_and(|at| *at >= since)
        };
        for row in &self.service.rows {
            if row.updated_at >= two_passes_ago || is_excused(&row.id, two_passes_ago) {
                continue;
            }
            let state = states.get(row.id.as_str()).map(|known| &known.state);
            let hash = RowHash::of(&serde_json::from_str(&row.properties().to_string()).unwrap());
            let is_found =
                state.is_some_and(|state| state.life == Life::Live && state.hash == hash);
            assert!(
                is_found,
                "seed {seed}, {:?}: {} was not found: {state:?} {row:?}",
                self.service.order, row.id
            );
        }
        for (row, known) in &states {
            let row = row.as_str();
            let Some(deleted_at) = self.service.deleted.get(row) else {
                continue;
            };
            if known.state.life != Life::Deleted
                && *deleted_at < three_passes_ago
                && !is_excused(row, three_passes_ago)
            {
                panic!(
                    "seed {seed}, {:?}: the deletion of {row} was not found",
                    self.service.order
                );
            }
        }
    }
}

fn run(seed: u64) -> (u64, u64) {
    let mut world = World::new(seed);
    let mut settings = Settings::default();
    settings.page_rows = 30;
    settings.overlap = 6;
    settings.guard_rows = [5, 50][world.chance.below(2)];
    settings.is_filling = true;
    let mut filling = Planner::new(world.model.clone(), settings.clone());
    world.pass(&mut filling);
    world.repairs = 0;
    settings.is_filling = false;
    let mut planner = Planner::new(world.model.clone(), settings);
    let mut complete = Vec::new();
    let passes = 5 + world.chance.below(6);
    let outage = world.chance.below(passes);
    for number in 0..passes {
        world.outage = number >= outage && number < outage + 2 && world.loss < 1_000_000;
        if world.chance.one_in(3) {
            (0..world.chance.below(40)).for_each(|_| world.tick());
        }
        let (began, is_complete) = world.pass(&mut planner);
        if is_complete {
            complete.push(began);
        } else {
            complete.clear();
        }
        if let [.., third, second, _] = complete[..] {
            world.check(second, third, seed);
        }
    }
    (world.repairs, world.suppressed)
}

/// Runs these seeds, a share of them on each core.
fn seeds(seeds: std::ops::Range<u64>) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let add = |all: (u64, u64), one: (u64, u64)| (all.0 + one.0, all.1 + one.1);
    let share = |first: usize| {
        let runs = seeds.clone().skip(first).step_by(threads);
        runs.map(run).fold((0, 0), add)
    };
    let share = &share;
    let (repairs, suppressed) = std::thread::scope(|scope| {
        let begin = |first| scope.spawn(move || share(first));
        let shares: Vec<_> = (0..threads).map(begin).collect();
        let ended = shares.into_iter().map(|share| share.join().unwrap());
        ended.fold((0, 0), add)
    });
    // The seeds do reach the cases.
    assert!(repairs > 500, "{repairs}");
    assert!(suppressed > 50, "{suppressed}");
}

/// Ten thousand in a release build, which `scripts/soak` makes.
#[test]
fn every_change_is_found_and_no_row_is_deleted_wrongly() {
    seeds(0..if cfg!(debug_assertions) { 100 } else { 10_000 });
}
