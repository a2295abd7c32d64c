//! The test program a second time, as another process of the same service.

use std::process::{Child as Process, Command, ExitStatus, Stdio};

use super::server::signal;

/// Names what the child is given by its parent.
const GIVEN: &str = "HOOKGATE_TEST_CHILD";

/// What the parent gave, where this process is the child of a test: it runs that test alone, and then its other branch.
pub fn given() -> Option<String> {
    std::env::var(GIVEN).ok()
}

/// A child, killed by its own id when it goes out of scope.
pub struct Child(Process);

impl Child {
    /// Runs `test`, by its whole name such as `redis::race::two_processes`, in a process of its own, where [`given`] is `text`.
    pub fn start(test: &str, text: &str) -> Self {
        let child = Command::new(std::env::current_exe().unwrap())
            .args([test, "--exact", "--nocapture", "--test-threads=1"])
            .env(GIVEN, text)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self(child)
    }

    pub fn signal(&self, name: &str) {
        signal(self.0.id(), name);
    }

    pub fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }

    pub fn wait(&mut self) -> ExitStatus {
        self.0.wait().unwrap()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}
