//! One loop: a sender, receivers and workers, random kills, and the account at the end.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use hookgate::Scheme;
use hookgate_inbox::{EntryState, Inbox, Page, Selection};

use super::ledger::{Account, Follower, Ledger};
use super::processes::Process;
use super::role::{Role, TRIES, Task, effects_file};
use super::sender::Sender;
use crate::support::{Folder, PostgresServer, RedisServer, Skew, client_at, free_port, given};

/// A generous time limit, so that a busy machine fails no test.
const PATIENCE: Duration = Duration::from_secs(180);
/// The time of load and kills, where no number of kills is set.
const LOAD: Duration = Duration::from_secs(7);

pub struct Topology {
    /// The whole name of the test.
    pub test: &'static str,
    pub engine: Engine,
    pub roles: &'static [Role],
    /// The wall clock of all processes is set by an hour, back and forth.
    pub clock_jumps: bool,
    /// How the sender signs.
    pub scheme: Scheme,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    Sqlite,
    Redis,
    Postgres,
}

enum Server {
    File(PathBuf),
    Redis(RedisServer),
    Postgres(PostgresServer),
}

impl Server {
    fn start(engine: Engine, folder: &Folder) -> Option<Self> {
        match engine {
            Engine::Sqlite => Some(Self::File(folder.path().join("inbox.db"))),
            Engine::Redis => {
                let always = ["--appendonly", "yes", "--appendfsync", "always"];
                RedisServer::start(&always).map(Self::Redis)
            }
            Engine::Postgres => PostgresServer::start(&[]).map(Self::Postgres),
        }
    }

    fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Redis(server) => server.url(),
            Self::Postgres(server) => server.config(),
        }
    }

    /// Ends it as a crash would, if it is a server; returns whether it is one.
    fn crash(&mut self) -> bool {
        match self {
            Self::File(_) => return false,
            Self::Redis(server) => server.restart(),
            Self::Postgres(server) => server.restart(),
        }
        true
    }
}

/// The result of a loop.
#[derive(Default)]
pub struct Report {
    topology: &'static str,
    seed: u64,
    kills: u32,
    crashes: u32,
    pauses: u32,
    events: usize,
    acknowledged: usize,
    attempts: usize,
    answers: BTreeMap<u16, usize>,
    runs: usize,
    repeats: usize,
    failed: usize,
    lost: usize,
    cut_off: usize,
    /// Dead letters, by reason.
    dead: BTreeMap<String, usize>,
    jumps: u32,
    elapsed: Duration,
    /// Violations of the guarantees. Empty where there are none.
    pub wrong: Vec<String>,
}

impl Topology {
    /// Runs the loop, and fails where something was lost, or was done twice without a reason. In a
    /// child it is that child.
    pub fn run(&self) {
        if let Some(report) = self.report() {
            assert!(report.wrong.is_empty(), "{report}");
            println!("{report}");
        }
    }

    /// `None` where the server is not installed.
    pub fn report(&self) -> Option<Report> {
        if let Some(task) = given() {
            Task::perform(&task);
        }
        let kills = setting("HOOKGATE_KILLS");
        let seed = setting("HOOKGATE_SEED").unwrap_or_else(|| fastrand::u64(..1_000_000));
        // Shown where the test fails, whatever it fails by.
        println!("{}: HOOKGATE_SEED={seed}", self.test);
        let mut chance = Rng::with_seed(seed);

        let folder = Folder::new();
        let clock = if self.clock_jumps {
            Some(Skew::within(folder.path())?)
        } else {
            None
        };
        let environment = clock.as_ref().map(|clock| clock.environment(&[]));
        let environment = environment.unwrap_or_default();
        let mut server = Server::start(self.engine, &folder)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let database = match &server {
            Server::Postgres(server) => Some(server.config()),
            _ => None,
        };
        if let Some(config) = &database {
            runtime.block_on(tables(config));
        } else if self.has(Role::HandlesInTransaction) {
            tables_in_file(&server.name());
        }

        let ledger = Ledger::within(folder.path());
        let tasks: Vec<_> = self
            .roles
            .iter()
            .map(|&role| Task {
                role,
                folder: folder.path().to_owned(),
                store: server.name(),
                address: SocketAddr::from(([127, 0, 0, 1], free_port())),
                seed: chance.u64(..),
                scheme: self.scheme,
            })
            .collect();
        let receivers = tasks.iter().filter(|task| task.role != Role::Works);
        let receivers = receivers.map(|task| task.address).collect();
        // With the layer a 2xx proves a run that ended. In a transaction it may stand for a run
        // that was killed behind its commit.
        let follower = self.has(Role::Handles).then(|| Follower::of(&ledger));
        let sender = Arc::new(Sender::to(self.scheme, receivers, follower));
        let sending = runtime.spawn(Arc::clone(&sender).run(chance.fork()));
        let started = tasks
            .iter()
            .map(|task| Process::start(self.test, task.clone(), environment.clone()));
        let mut processes: Vec<_> = started.collect();

        let mut report = Report {
            topology: self.test,
            seed,
            ..Report::default()
        };
        let begun = Instant::now();
        let wanted = kills.map(|kills| kills as u32);
        let mut next_crash = 4;
        while wanted.map_or(begun.elapsed() < LOAD, |kills| report.kills < kills) {
            thread::sleep(Duration::from_millis(chance.u64(100..600)));
            let process = chance.choice(&mut processes).unwrap();
            if chance.u8(..) < 25 {
                process.pause(&mut chance);
                report.pauses += 1;
                continue;
            }
            process.kill(&ledger);
            report.kills += 1;
            // Often at once, and sometimes so late that others take over.
            if chance.bool() {
                thread::sleep(Duration::from_millis(chance.u64(0..800)));
            }
            process.restart(&mut chance);
            if let Some(clock) = &clock
                && chance.bool()
            {
                let ahead = chance.choice([3_600, -3_600]).unwrap();
                let is_right = sender.ahead.load(Ordering::SeqCst) == 0;
                let ahead = if is_right { ahead } else { 0 };
                clock.set(ahead);
                sender.ahead.store(ahead, Ordering::SeqCst);
                report.jumps += 1;
            }
            if report.kills >= next_crash && server.crash() {
                report.crashes += 1;
                next_crash = report.kills + wanted.map_or(6, |kills| (kills / 6).max(6));
            }
        }
        if let Some(clock) = &clock {
            // This process reads the inbox too, and by its own clock.
            clock.set(0);
            sender.ahead.store(0, Ordering::SeqCst);
        }
        sender.stop.store(true, Ordering::SeqCst);
        let limit = Instant::now() + PATIENCE;
        while !sending.is_finished() {
            if Instant::now() > limit {
                let wrong = "some events are never answered 2xx";
                report.wrong.push(wrong.into());
                sending.abort();
                break;
            }
            thread::sleep(Duration::from_millis(20));
        }
        runtime.block_on(self.settle(&tasks[0], &ledger, &sender, &mut report));
        for process in &mut processes {
            process.kill(&ledger);
        }
        report.elapsed = begun.elapsed();
        if self.has(Role::HandlesInTransaction) {
            let sent = &sender.heard.lock().unwrap().sent;
            let rows = match &database {
                Some(config) => runtime.block_on(effects(config)),
                None => effects_in_file(&server.name()),
            };
            report.effects(&rows, sent);
        }
        report.hear(&sender);
        Some(report)
    }

    fn has(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }

    /// Waits until nothing is under way, and reads the account.
    async fn settle(&self, task: &Task, ledger: &Ledger, sender: &Sender, report: &mut Report) {
        let limit = Instant::now() + PATIENCE;
        let accept = [Role::Accepts, Role::AcceptsAndWorks, Role::AcceptsTooEarly];
        if accept.iter().any(|role| self.has(*role)) {
            let inbox = task.inbox().await;
            while let Ok(stats) = inbox.stats().await
                && stats.queued + stats.running > 0
            {
                if Instant::now() > limit {
                    let wrong = format!("accepted and not handled: {stats:?}");
                    report.wrong.push(wrong);
                    break;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            let entries = entries(&inbox).await;
            let account = wait_for_ends(ledger, limit).await;
            let heard = sender.heard.lock().unwrap();
            report.inbox(&entries, &heard.acknowledged, &account);
            drop(heard);
            report.count(account);
        } else {
            let account = wait_for_ends(ledger, limit).await;
            let heard = sender.heard.lock().unwrap();
            if self.has(Role::Handles) {
                for event in &heard.acknowledged {
                    if !account.ended.contains(event) {
                        report
                            .wrong
                            .push(format!("{event} was acknowledged, and has no effect"));
                    }
                }
            }
            report.count(account);
        }
    }
}

/// All runs have come to an end, or their process is gone.
async fn wait_for_ends(ledger: &Ledger, limit: Instant) -> Account {
    loop {
        let account = Account::of(&ledger.lines());
        if account.wrong.is_empty() || Instant::now() > limit {
            return account;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// The state of each entry, and its last error.
async fn entries(inbox: &Inbox) -> HashMap<String, (EntryState, Option<String>)> {
    let mut entries = HashMap::new();
    let mut page = Page::first(500);
    loop {
        let listed = inbox.list(Selection::all(), page).await.unwrap();
        let Some(last) = listed.last() else {
            return entries;
        };
        page = Page::after(last.id, 500);
        for entry in listed {
            let event = entry.event_id.as_str().to_owned();
            entries.insert(event, (entry.state, entry.last_error));
        }
    }
}

pub async fn tables(config: &str) {
    let client = client_at(config).await;
    hookgate_postgres::migrate(&client).await.unwrap();
    let effects = "CREATE TABLE effects (event_id text NOT NULL, process bigint NOT NULL)";
    client.batch_execute(effects).await.unwrap();
}

fn tables_in_file(file: &str) {
    let file = effects_file(file).unwrap();
    hookgate_sqlite::migrate(&file).unwrap();
    let effects = "PRAGMA journal_mode = WAL;
        CREATE TABLE effects (event_id TEXT NOT NULL, process INTEGER NOT NULL)";
    file.execute_batch(effects).unwrap();
}

/// The event of each effect.
async fn effects(config: &str) -> Vec<String> {
    let client = client_at(config).await;
    let rows = client.query("SELECT event_id FROM effects", &[]);
    rows.await.unwrap().iter().map(|row| row.get(0)).collect()
}

fn effects_in_file(file: &str) -> Vec<String> {
    let file = effects_file(file).unwrap();
    let mut rows = file.prepare("SELECT event_id FROM effects").unwrap();
    let rows = rows.query_map([], |row| row.get(0)).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

impl Report {
    /// Exactly one effect for each event.
    fn effects(&mut self, rows: &[String], sent: &[String]) {
        let distinct: HashSet<&String> = rows.iter().collect();
        let sent: HashSet<&String> = sent.iter().collect();
        if distinct != sent || rows.len() != sent.len() {
            self.wrong.push(format!(
                "{} effects of {} events for {} that were sent",
                rows.len(),
                distinct.len(),
                sent.len()
            ));
        }
    }

    /// Nothing that was acknowledged is missing, and nothing is done that was not handled.
    fn inbox(
        &mut self,
        entries: &HashMap<String, (EntryState, Option<String>)>,
        acknowledged: &[String],
        account: &Account,
    ) {
        for event in acknowledged {
            if !entries.contains_key(event) {
                self.wrong
                    .push(format!("{event} was acknowledged, and is not in the inbox"));
            }
        }
        for (event, (state, error)) in entries {
            let reason = error.clone().unwrap_or_default();
            match state {
                EntryState::Done if account.ended.contains(event) => {}
                EntryState::Dead if !reason.is_empty() => {
                    *self.dead.entry(reason).or_default() += 1
                }
                _ => self.wrong.push(format!("{event} is {state:?}, {reason:?}")),
            }
        }
    }

    fn count(&mut self, account: Account) {
        self.runs = account.runs;
        self.repeats = account.repeats;
        self.failed = account.failed;
        self.lost = account.lost;
        self.cut_off = account.cut_off;
        self.wrong.extend(account.wrong);
    }

    fn hear(&mut self, sender: &Sender) {
        let heard = sender.heard.lock().unwrap();
        self.events = heard.sent.len();
        self.acknowledged = heard.acknowledged.len();
        self.attempts = heard.attempts;
        self.answers.clone_from(&heard.answers);
        for event in &heard.early {
            self.wrong.push(format!(
                "a 2xx for {event} was heard before its run had ended"
            ));
        }
        // A loop in which nothing happens shows nothing.
        if self.kills == 0 || self.acknowledged < 20 || self.runs == 0 {
            self.wrong.push("too little has happened".into());
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            topology,
            seed,
            kills,
            crashes,
            pauses,
            events,
            acknowledged,
            attempts,
            runs,
            repeats,
            ..
        } = self;
        writeln!(
            f,
            "{topology}, seed {seed}, {:.0} s",
            self.elapsed.as_secs_f64()
        )?;
        writeln!(
            f,
            "  {kills} kills, {pauses} pauses, {crashes} crashes of the server, {} jumps of the clock",
            self.jumps
        )?;
        writeln!(
            f,
            "  {events} events, {attempts} attempts, answers {:?}, {acknowledged} acknowledged",
            self.answers
        )?;
        writeln!(
            f,
            "  {runs} runs, {repeats} of them repeats: {} failed, {} lost their lease, {} cut off by a kill",
            self.failed, self.lost, self.cut_off
        )?;
        writeln!(f, "  dead letters {:?} (tries: {TRIES})", self.dead)?;
        for wrong in self.wrong.iter().take(20) {
            writeln!(f, "  WRONG: {wrong}")?;
        }
        if self.wrong.len() > 20 {
            writeln!(f, "  and {} more", self.wrong.len() - 20)?;
        }
        Ok(())
    }
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}
