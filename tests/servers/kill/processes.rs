//! The processes of a loop: killed, and started again on the same port and with the same task.

use std::path::Path;
use std::time::Duration;

use fastrand::Rng;

use super::ledger::{Ledger, Step};
use super::role::{LEASE, Task};
use crate::support::Child;

pub struct Process {
    test: &'static str,
    task: Task,
    environment: Vec<(String, String)>,
    child: Option<Child>,
}

impl Process {
    /// Runs the branch for children of `test`.
    pub fn start(test: &'static str, task: Task, environment: Vec<(String, String)>) -> Self {
        let mut this = Self {
            test,
            task,
            environment,
            child: None,
        };
        this.begin();
        this
    }

    fn begin(&mut self) {
        let task = self.task.write();
        let variables = self.environment.iter();
        let variables: Vec<_> = variables.map(|(name, value)| (&**name, &**value)).collect();
        self.child = Some(Child::start_under(&[], &variables, self.test, &task));
    }

    /// SIGKILL. What it has done is in the ledger, and so is, behind it, that it is gone.
    pub fn kill(&mut self, ledger: &Ledger) {
        if let Some(mut child) = self.child.take() {
            child.kill();
            ledger.add_of(Step::Killed, "-", child.id());
        }
    }

    /// Stands still for longer than a lease, and goes on.
    pub fn pause(&self, chance: &mut Rng) {
        if let Some(child) = &self.child {
            child.signal("STOP");
            std::thread::sleep(LEASE + Duration::from_millis(chance.u64(100..800)));
            child.signal("CONT");
        }
    }

    /// As another process, to which other things happen.
    pub fn restart(&mut self, chance: &mut Rng) {
        self.task.seed = chance.u64(..);
        self.begin();
    }
}

/// What makes a process and its children read their wall clock `seconds` ahead, as the file says at any time. The monotonic clock stays.
pub fn clock_in(file: &Path) -> Option<Vec<(String, String)>> {
    let libraries = [
        "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
        "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
    ];
    let Some(library) = libraries.into_iter().find(|file| Path::new(file).exists()) else {
        assert!(
            std::env::var_os("HOOKGATE_REQUIRE_TOOLS").is_none(),
            "libfaketime is missing: scripts/test installs it"
        );
        println!("left out, for want of libfaketime");
        return None;
    };
    let pairs = [
        ("LD_PRELOAD", library),
        ("FAKETIME_TIMESTAMP_FILE", file.to_str().unwrap()),
        ("FAKETIME_NO_CACHE", "1"),
        ("DONT_FAKE_MONOTONIC", "1"),
    ];
    Some(
        pairs
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
    )
}

/// Sets that clock, for all who read it.
pub fn set_clock(file: &Path, ahead: i64) {
    let next = file.with_extension("next");
    std::fs::write(&next, format!("{ahead:+}\n")).unwrap();
    std::fs::rename(&next, file).unwrap();
}
