//! The processes of a loop: killed, and started again on the same port and with the same task.

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

    /// Sends SIGKILL. The ledger then holds its steps, and behind them the line that the process is
    /// gone.
    pub fn kill(&mut self, ledger: &Ledger) {
        if let Some(mut child) = self.child.take() {
            child.kill();
            ledger.add_of(Step::Killed, "-", child.id());
        }
    }

    /// Stands still for longer than a lease, and continues.
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
