//! The kill loop of the examples with a queue: each example's tests have this module, and start
//! their own server.

#![allow(dead_code)] // some items are needed only by some examples

#[path = "../servers/support/folder.rs"]
pub(crate) mod folder;
#[path = "../it/process.rs"]
pub(crate) mod process;
#[path = "../servers/support/server.rs"]
pub(crate) mod server;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use process::{Example, own_secret};

/// Far more time than any step here takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// An example's program and the place of its server.
pub(crate) struct Halves {
    program: &'static str,
    variables: Vec<(&'static str, String)>,
}

impl Halves {
    pub(crate) fn new(program: &'static str, variables: &[(&'static str, &str)]) -> Self {
        let own = [("WEBHOOK_SECRET", own_secret())];
        let variables = own.iter().chain(variables);
        Self {
            program,
            variables: variables
                .map(|(name, value)| (*name, (*value).to_owned()))
                .collect(),
        }
    }

    pub(crate) fn producer(&self) -> Example {
        let variables = self.variables.iter();
        let variables: Vec<_> = variables.map(|(name, value)| (*name, &**value)).collect();
        let until = Instant::now() + PATIENCE;
        loop {
            // It ends where its server takes connections and is not ready yet. Its supervisor
            // starts it again.
            let started = || Example::start(self.program, &variables);
            match std::panic::catch_unwind(std::panic::AssertUnwindSafe(started)) {
                Ok(producer) => return producer,
                Err(ended) if Instant::now() > until => std::panic::resume_unwind(ended),
                Err(_) => {}
            }
        }
    }

    pub(crate) fn consumer(&self) -> Consumer<'_> {
        let lines = Arc::default();
        Consumer {
            child: self.spawn_consumer(&lines),
            lines,
            halves: self,
        }
    }

    fn spawn_consumer(&self, lines: &Arc<Mutex<Vec<String>>>) -> Child {
        let mut child = Command::new(self.program)
            .arg("consume")
            .envs(self.variables.iter().cloned())
            .stdout(Stdio::piped())
            // Why it ended, where an event is lost.
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let (output, lines) = (child.stdout.take().unwrap(), Arc::clone(lines));
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                lines.lock().unwrap().push(line);
            }
        });
        child
    }

    /// Kills producer and consumer in turn, and the server where it can be, each `HOOKGATE_KILLS`
    /// times, while a sender retries until 2xx.
    pub(crate) fn nothing_is_lost(&self, mut kill_server: Option<&mut dyn FnMut()>) {
        let kills = std::env::var("HOOKGATE_KILLS").map_or(1, |kills| kills.parse().unwrap());
        let kinds = 2 + usize::from(kill_server.is_some());
        let producer = Mutex::new(Arc::new(self.producer()));
        let mut consumer = self.consumer();
        let (stop, sent) = (AtomicBool::new(false), AtomicUsize::new(0));
        let accepted = std::thread::scope(|scope| {
            let sender = || {
                let mut accepted = BTreeSet::new();
                while !stop.load(Ordering::SeqCst) {
                    let id = format!("evt_{}", sent.fetch_add(1, Ordering::SeqCst));
                    let until = Instant::now() + PATIENCE;
                    while !is_accepted(&Arc::clone(&producer.lock().unwrap()), &id) {
                        assert!(Instant::now() < until, "{id} is not accepted");
                        std::thread::sleep(Duration::from_millis(50));
                    }
                    accepted.insert(id);
                }
                accepted
            };
            let senders = [(); 2].map(|()| scope.spawn(sender));
            for kill in 0..kinds * kills {
                std::thread::sleep(Duration::from_millis(300 + 97 * (kill as u64 % 7)));
                match (kill % kinds, &mut kill_server) {
                    (0, _) => {
                        let next = Arc::new(self.producer());
                        std::mem::replace(&mut *producer.lock().unwrap(), next).kill();
                    }
                    (2, Some(kill_server)) => kill_server(),
                    _ => {
                        // Each kill meets a consumer at work, also where it takes a while until the
                        // queue gives it messages.
                        let handled = consumer.lines().len();
                        consumer.wait_for(handled + 1);
                        consumer.kill();
                    }
                }
                consumer.start_again_if_ended();
            }
            stop.store(true, Ordering::SeqCst);
            let accepted = senders.map(|sender| sender.join().unwrap());
            accepted.into_iter().flatten().collect::<BTreeSet<_>>()
        });
        // What a killed consumer had received is delivered again after the queue's own wait.
        // Meanwhile the senders went on, so that thousands of events may wait: as long as the
        // consumer goes on, nothing is lost.
        let (mut runs, mut until) = (0, Instant::now() + 3 * PATIENCE);
        while !accepted.is_subset(&consumer.handled()) && Instant::now() < until {
            consumer.start_again_if_ended();
            std::thread::sleep(Duration::from_millis(50));
            let now = consumer.lines().len();
            if now > runs {
                (runs, until) = (now, Instant::now() + 3 * PATIENCE);
            }
        }
        let lost: Vec<_> = accepted.difference(&consumer.handled()).cloned().collect();
        let runs = consumer.lines().len();
        println!(
            "{kills} kills each of {kinds} kinds: {} accepted, {runs} runs, {} lost",
            accepted.len(),
            lost.len()
        );
        assert!(
            lost.is_empty() && accepted.len() > kinds * kills,
            "{lost:?}"
        );
    }
}

/// A connection that breaks with the process is not an answer.
fn is_accepted(producer: &Example, id: &str) -> bool {
    let (body, producer) = (whole(id), std::panic::AssertUnwindSafe(producer));
    let reply = std::panic::catch_unwind(|| producer.deliver(own_secret(), &body).status);
    reply.is_ok_and(|status| status == 200)
}

/// Delivers again until it is accepted.
pub(crate) fn until_accepted(producer: &Example, body: &str) {
    let until = Instant::now() + PATIENCE;
    while producer.deliver(own_secret(), body).status != 200 {
        assert!(Instant::now() < until, "{body} is not accepted");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The other program: it handles the messages of the queue. It is killed by its process id when
/// this value is dropped.
pub(crate) struct Consumer<'a> {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
    halves: &'a Halves,
}

impl Consumer<'_> {
    /// As its supervisor would.
    pub(crate) fn start_again_if_ended(&mut self) {
        if self.child.try_wait().unwrap().is_some() {
            self.child = self.halves.spawn_consumer(&self.lines);
        }
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }

    pub(crate) fn handled(&self) -> BTreeSet<String> {
        let lines = self.lines();
        let ids = lines
            .iter()
            .filter_map(|line| line.strip_prefix("handled "));
        ids.map(str::to_owned).collect()
    }

    /// Waits until it has printed as many lines.
    pub(crate) fn wait_for(&mut self, lines: usize) -> Vec<String> {
        let until = Instant::now() + PATIENCE;
        while self.lines().len() < lines && Instant::now() < until {
            self.start_again_if_ended();
            std::thread::sleep(Duration::from_millis(20));
        }
        self.lines()
    }
}

impl Drop for Consumer<'_> {
    fn drop(&mut self) {
        self.kill();
    }
}

/// An event that the consumer can read as a whole.
pub(crate) fn whole(id: &str) -> String {
    format!(
        r#"{{"id":"{id}","type":"page.created","createdAt":"2026-11-21T09:30:00Z","workspaceId":"ws_1","data":{{}}}}"#
    )
}
