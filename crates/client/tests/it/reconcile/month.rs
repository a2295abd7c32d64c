//! End to end in one clock: emulator with every fault, client, receiver and mirror, a month with two outages of 30 h. In a release
//! build, as `scripts/soak` makes it, with 100,000 changes; else with a part of them.

mod history;
mod program;
mod users;

use std::future::ready;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hookgate::{MemoryStore, Receiver, Secret};
use hookgate_client::reconcile::{
    MemoryMirror, Mirror, Reconcile, ReconcileError, Reconciled, Report, Settings,
};
use hookgate_client::{ApiKey, Client};
use hookgate_emulator::{Emulator, Seed};
use tokio::time::{Instant, sleep, sleep_until};

use super::service::Chance;
use crate::support::TestClock;
use history::History;
use program::{Program, SECRET};

const MODEL: &str = "dm_orders";
const HOUR: Duration = Duration::from_secs(3_600);
const MONTH: Duration = Duration::from_secs(30 * 86_400);
/// The receiver and its passes are down from the first of these hours to the second.
const OUTAGES: [(u32, u32); 2] = [(200, 230), (500, 530)];
/// With the rate of the lowest tier.
const SEED: &str = r#"{
  "workspace": {"id": "ws_1", "tier": "standard"},
  "keys": [
    {"name": "read", "key": "tk_test_read", "scope": "read"},
    {"name": "write", "key": "tk_test_write", "scope": "write"}
  ],
  "dataModels": [{
    "id": "dm_orders",
    "title": "Orders",
    "properties": [
      {"id": "prop_customer", "name": "Customer", "type": "TEXT"},
      {"id": "prop_quantity", "name": "Quantity", "type": "NUMBER"},
      {"id": "prop_total", "name": "Total", "type": "CURRENCY"}
    ]
  }]
}"#;

struct Size {
    changes: u64,
    rows: u64,
    pass_every: Duration,
}

struct World {
    start: Instant,
    emulator: Arc<Emulator>,
    history: Arc<Mutex<History>>,
    mirror: Arc<MemoryMirror>,
    claims: Arc<MemoryStore>,
    failed_passes: u32,
}

fn client(emulator: &Emulator, key: &str) -> Client {
    let key = ApiKey::new(key).unwrap();
    let client = Client::builder(&emulator.base_url(), key).allow_plain_http();
    client.build().unwrap()
}

fn settings(guard_percent: u64, is_filling: bool) -> Settings {
    let mut settings = Settings::default();
    settings.guard_percent = guard_percent;
    settings.is_filling = is_filling;
    settings
}

impl World {
    async fn new() -> Self {
        let start = Instant::now();
        let history = Arc::new(Mutex::new(History::default()));
        let mirror = Arc::new(MemoryMirror::default().with_clock(TestClock(start)));
        let program = Program::new(start, Arc::clone(&history), Arc::clone(&mirror));
        let emulator = Emulator::builder(Seed::parse(SEED).unwrap())
            .clock(TestClock(start))
            .transport(program.clone())
            .start()
            .await
            .unwrap();
        let claims = Arc::new(MemoryStore::default().with_clock(emulator.clock()));
        let receiver = Receiver::builder()
            .secret(Secret::new(SECRET).unwrap())
            .store(Arc::clone(&claims))
            .clock(emulator.clock())
            .build()
            .unwrap();
        program.open(receiver);
        Self {
            start,
            emulator: Arc::new(emulator),
            history,
            mirror,
            claims,
            failed_passes: 0,
        }
    }

    fn reconcile(&self, settings: Settings) -> Reconcile<Client, Arc<MemoryMirror>> {
        let client = client(&self.emulator, "tk_test_read");
        Reconcile::new(client, Arc::clone(&self.mirror), MODEL, settings)
            .claims(Arc::clone(&self.claims), "shop")
    }

    /// Makes a pass until the next outage begins. `None` where the service could not be read.
    async fn pass(
        &mut self,
        reconcile: &mut Reconcile<Client, Arc<MemoryMirror>>,
    ) -> Option<Report> {
        let history = Arc::clone(&self.history);
        history.lock().unwrap().unresolved.clear();
        let handle = move |finding: Reconciled| {
            history.lock().unwrap().found(&finding);
            ready(Ok::<_, String>(()))
        };
        let next = OUTAGES.map(|(from, _)| self.start + HOUR * from);
        let next = next.into_iter().find(|from| *from > Instant::now());
        let stop = async move {
            match next {
                Some(next) => sleep_until(next).await,
                None => std::future::pending().await,
            }
        };
        match reconcile.pass_until(stop, handle).await {
            Ok(report) => Some(report),
            Err(ReconcileError::Source(_)) => {
                self.failed_passes += 1;
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// Makes three complete passes one after the other. Then the mirror has every change from before them, except in rows
    /// that are listed as unresolved. Returns their number.
    async fn three_passes(
        &mut self,
        reconcile: &mut Reconcile<Client, Arc<MemoryMirror>>,
    ) -> usize {
        let (mut complete, mut began) = (0, Instant::now());
        while complete < 3 {
            match self.pass(reconcile).await {
                Some(report) if report.pass.is_complete => complete += 1,
                _ => (complete, began) = (0, Instant::now()),
            }
        }
        let history = self.history.lock().unwrap();
        history.check(&self.mirror, began);
        history.unresolved.len()
    }

    /// As an operator does after an outage: looks at the unresolved rows, and allows them to be repaired.
    async fn catch_up(&mut self) -> usize {
        let mut guarded = self.reconcile(settings(1, false));
        let unresolved = self.three_passes(&mut guarded).await;
        let mut allowed = self.reconcile(settings(100, false));
        assert_eq!(self.three_passes(&mut allowed).await, 0);
        unresolved
    }
}

async fn month(size: Size) {
    let mut world = World::new().await;
    let mut chance = Chance::new(1);
    // The rows that exist before there is a subscription.
    for number in 1..=size.rows {
        users::create(&world.emulator, &world.history, number);
    }
    let mut filling = world.reconcile(settings(1, true));
    assert_eq!(world.pass(&mut filling).await.unwrap().handled, size.rows);
    world.history.lock().unwrap().all_are_known();
    world.emulator.subscribe("/webhooks", SECRET).unwrap();
    world.emulator.every_fault_seeded(1);

    let users = users::Users {
        emulator: Arc::clone(&world.emulator),
        client: client(&world.emulator, "tk_test_write"),
        history: Arc::clone(&world.history),
        chance: Chance::new(chance.next()),
        rows: size.rows,
    };
    let users = tokio::spawn(users.work(size.rows, size.changes));
    let mut reconcile = world.reconcile(settings(1, false));
    let mut outages = OUTAGES.into_iter().peekable();
    let mut unresolved = Vec::new();
    while world.start.elapsed() < MONTH {
        sleep(size.pass_every).await;
        let is_down = |(from, _): &(u32, u32)| world.start.elapsed() >= HOUR * *from;
        let Some((_, until)) = outages.next_if(is_down) else {
            world.pass(&mut reconcile).await;
            continue;
        };
        sleep_until(world.start + HOUR * until).await;
        unresolved.push(world.catch_up().await);
        reconcile = world.reconcile(settings(1, false));
        // From here on with the longer reading of the schedule: retries come a day after the repairs.
        users::set_switch(&world.emulator, "attempts", "6").await;
    }
    users.await.unwrap();
    let last = world.three_passes(&mut reconcile).await;

    // No retry comes later.
    sleep(27 * HOUR).await;
    assert_eq!(world.catch_up().await, 0);
    let rows = users::listed(&world.emulator).await;
    let seen = world.history.lock().unwrap().account(&rows);
    for fault in world.emulator.faults() {
        let hits = fault["hits"].as_u64().unwrap();
        assert!(hits > size.changes / 600, "{fault}");
    }
    println!(
        "{seen:?}, unresolved {unresolved:?} and {last}, {} passes failed",
        world.failed_passes
    );
    assert_eq!(seen.changes, size.changes);
    // Deleted rows are kept for a week.
    let states = world
        .mirror
        .list(&MODEL.into(), None, usize::MAX)
        .await
        .unwrap();
    let deleted = states.len() - rows.len();
    assert!(deleted * 2 < seen.deletions, "{deleted} {seen:?}");
    assert!(seen.repaired * 20 > seen.changes, "{seen:?}");
    assert!(seen.late > 0, "{seen:?}");
    let unseen = seen.overtaken + seen.traceless;
    assert!(unseen * 100 < seen.changes, "{seen:?}");
    assert!(seen.reordered * 1_000 < seen.changes, "{seen:?}");
    assert!(unresolved.iter().all(|rows| *rows > 0), "{unresolved:?}");
}

#[tokio::test(start_paused = true)]
async fn after_a_month_with_outages_and_every_fault_each_change_was_handled_once() {
    month(if cfg!(debug_assertions) {
        Size {
            changes: 3_000,
            rows: 500,
            pass_every: HOUR * 8,
        }
    } else {
        Size {
            changes: 100_000,
            rows: 4_000,
            pass_every: HOUR * 2,
        }
    })
    .await;
}
