//! The program of the page, killed at each of its steps: example `repaired`, whose table ends equal
//! to the service.
//!
//! Two processes share the stores, the mirror and the table, and are killed now and then before or
//! after any call of these. The sender loses, delays, doubles and repeats deliveries; the times of
//! its events are equal, or have other numbers of digits. The simulation runs in paused time, and a
//! seed gives the same run again: `HOOKGATE_SEED=17` runs that one, `HOOKGATE_SEEDS=200` runs so
//! many.

mod process;
mod sender;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hookgate::MemoryStore;
use hookgate_client::reconcile::{Life, MemoryMirror, Mirror};
use hookgate_order::{MemoryOrderStore, Order};
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

use super::service::{Chance, MODEL, event};
use crate::support::TestClock;
use process::Process;
use sender::Service;

#[allow(dead_code)] // its `main`
#[path = "../../../examples/repaired.rs"]
mod example;

const MINUTE: Duration = Duration::from_secs(60);
/// Rows are changed, and processes killed, for so long.
const BUSY: Duration = Duration::from_secs(3_600);

/// What survives a kill.
#[derive(Clone)]
struct Durable {
    clock: TestClock,
    claims: Arc<MemoryStore>,
    order: MemoryOrderStore,
    mirror: Arc<MemoryMirror>,
    table: Arc<example::Table>,
}

impl Durable {
    fn new(clock: TestClock) -> Self {
        Self {
            clock,
            claims: Arc::new(MemoryStore::default().with_clock(clock)),
            order: MemoryOrderStore::default().with_clock(clock),
            mirror: Arc::new(MemoryMirror::default().with_clock(clock)),
            table: Arc::default(),
        }
    }

    /// The rows of the table, without empty properties.
    fn rows(&self) -> BTreeMap<String, BTreeMap<String, String>> {
        let rows = self.table.rows();
        let full = rows.iter().map(|(row, properties)| {
            let properties = properties.iter().filter(|(_, now)| now.value != "null");
            let properties = properties.map(|(name, now)| (name.clone(), now.value.clone()));
            (row.to_string(), properties.collect())
        });
        full.collect()
    }
}

struct World {
    durable: Durable,
    service: Arc<Mutex<Service>>,
    processes: Vec<Arc<Mutex<Option<Process>>>>,
    chance: Arc<Mutex<Chance>>,
    /// Until then rows are changed, and processes killed.
    until: Instant,
}

/// Keeps a process running in this place: starts another one some time after a kill.
async fn supervise(world: Arc<World>, place: usize) {
    let until = world.until;
    loop {
        let below = |end| world.chance.lock().unwrap().below(end);
        let is_busy = Instant::now() < until;
        let steps = if is_busy {
            1 + below([60, 600][below(2)])
        } else {
            usize::MAX
        };
        let process = Process::start(&world, steps, below(1 << 30) as u64);
        let killed = process.killed();
        *world.processes[place].lock().unwrap() = Some(process);
        if timeout(
            until.saturating_duration_since(Instant::now()),
            killed.notified(),
        )
        .await
        .is_err()
        {
            // No more kills.
            if is_busy {
                let process = world.processes[place].lock().unwrap();
                process.as_ref().unwrap().spare();
            }
            return;
        }
        *world.processes[place].lock().unwrap() = None;
        world.service.lock().unwrap().kills += 1;
        sleep(Duration::from_secs(below(100) as u64)).await;
    }
}

async fn run(seed: u64) -> (u64, u64) {
    let start = Instant::now();
    let mut chance = Chance::new(seed);
    let service = Service::new(TestClock(start), &mut chance);
    let world = Arc::new(World {
        durable: Durable::new(TestClock(start)),
        service: Arc::new(Mutex::new(service)),
        processes: (0..2).map(|_| Arc::default()).collect(),
        chance: Arc::new(Mutex::new(Chance::new(chance.next()))),
        until: start + BUSY,
    });
    // Some rows exist before the first event.
    for _ in 0..2 {
        world.service.lock().unwrap().change(&mut chance);
    }
    world
        .durable_app()
        .fill(sender::Source::new(&world))
        .await
        .unwrap();
    let supervisors: Vec<_> = (0..world.processes.len())
        .map(|place| tokio::spawn(supervise(Arc::clone(&world), place)))
        .collect();
    while Instant::now() < world.until {
        // Bursts of changes, some in one second.
        for _ in 0..1 + chance.below(6) {
            let event = world.service.lock().unwrap().change(&mut chance);
            tokio::spawn(sender::send(Arc::clone(&world), event, chance.next()));
            sleep(Duration::from_millis(chance.below(1_500) as u64)).await;
        }
        sleep(Duration::from_secs(chance.below(120) as u64)).await;
    }
    for supervisor in supervisors {
        supervisor.await.unwrap();
    }
    // The last retries, and three passes after them.
    sleep(31 * 60 * MINUTE).await;
    let (expected, counted) = {
        let service = world.service.lock().unwrap();
        (service.table(), (service.kills, service.repairs))
    };
    assert_eq!(world.durable.rows(), expected, "seed {seed}");
    let model = MODEL.into();
    let states = world.durable.mirror.list(&model, None, usize::MAX);
    for (row, known) in states.await.unwrap() {
        assert!(!known.state.is_doubtful(), "seed {seed}: {row}");
        let is_live = known.state.life == Life::Live;
        assert_eq!(
            is_live,
            expected.contains_key(row.as_str()),
            "seed {seed}: {row}"
        );
    }
    counted
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

// fault M20: the process is killed after an event was written to the mirror and before its order was recorded: its redelivery is taken as known, and never handled
// fault M21: the process is killed in a handler, and the event does not come again: the table stays wrong, and the mirror equals the service
#[test]
fn a_table_ends_equal_to_the_service_whatever_step_its_program_is_killed_at() {
    let seeds = match number("HOOKGATE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("HOOKGATE_SEEDS").unwrap_or(6),
    };
    let (mut kills, mut repairs) = (0, 0);
    for seed in seeds {
        // A runtime of its own: what a killed process has left in it ends with it.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        let counted = runtime.block_on(run(seed));
        kills += counted.0;
        repairs += counted.1;
    }
    println!("{kills} kills, {repairs} repairs");
    assert!(kills > 0 && repairs > 0, "{kills} {repairs}");
}

// fault M24: a filling pass fills the mirror alone: the rows are listed a second time for the table, and what changes in between is in one of the two
#[tokio::test(flavor = "multi_thread")]
async fn the_example_has_the_services_rows_after_an_outage() {
    let rows = example::followed().await.unwrap();
    let of_seed = |row: &str| row.contains("Harbour") || row.contains("Mill");
    let (_, rows): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| of_seed(row));
    assert_eq!(rows, [r#""Ada": 20"#, r#""Cy": 7"#]);
}

/// As after a crash that came before the record of the update.
// fault G9: the process is killed between the handler of an update and its record: a late creation is told to be the newest, and the update's values are lost
#[test]
fn a_creation_that_a_guard_calls_the_newest_leaves_what_a_newer_event_has_named() {
    let table = example::Table::default();
    let changes = json!({ "changes": { "Name": { "before": "a", "after": "b" } } });
    let old = json!({ "properties": { "Name": "z", "Note": "of a former row" } });
    let new = json!({ "properties": { "Name": "a", "Total": 1 } });
    for (kind, seconds, data) in [
        ("row.created", 9, old),
        ("row.updated", 11, changes),
        ("row.created", 10, new),
    ] {
        table.apply(&event(kind, seconds, "row_1", data), Order::Newest);
    }
    let rows = table.rows();
    let row = rows.values().next().unwrap();
    let row: Vec<_> = row
        .iter()
        .map(|(name, now)| format!("{name} {}", now.value))
        .collect();
    assert_eq!(row, [r#"Name "b""#, "Total 1"]);
}

/// The program that is killed here is the one that the page shows.
// fault M24: a filling pass fills the mirror alone: the rows are listed a second time for the table, and what changes in between is in one of the two
#[test]
fn the_page_shows_the_program_that_is_killed() {
    let example = include_str!("../../../examples/repaired.rs");
    let page = include_str!("../../../../../docs/reconciliation.md");
    let (_, part) = example.split_once("the part from here.\n").unwrap();
    let (part, _) = part.split_once("// The page shows").unwrap();
    let part = part.replace("pub(crate) ", "");
    assert!(page.contains(part.trim_end()), "{part}");
}
