//! The test program a second time, as another process of the same service.

use std::path::Path;
use std::process::{Child as Process, Command, ExitStatus, Stdio};

use super::server::signal;

/// The variable with the value that the parent gives to its child.
const GIVEN: &str = "HOOKGATE_TEST_CHILD";

/// The value that the parent gave, where this process is the child of a test: it runs that test
/// alone, and then its other branch.
pub fn given() -> Option<String> {
    std::env::var(GIVEN).ok()
}

/// A child, killed by its own id when it goes out of scope.
pub struct Child(Process);

impl Child {
    /// Runs `test`, by its whole name such as `redis::race::two_processes`, in a process of its
    /// own, where [`given`] is `text`.
    pub fn start(test: &str, text: &str) -> Self {
        Self::start_under(&[], &[], test, text)
    }

    /// The same by way of another program, such as `["strace", "-f"]`, and with these variables.
    pub fn start_under(
        program: &[&str],
        variables: &[(&str, &str)],
        test: &str,
        text: &str,
    ) -> Self {
        let this = std::env::current_exe().unwrap();
        Self::start_program(&this, program, variables, test, text)
    }

    /// The same with a copy of the test program, for a user who may not read the first.
    pub fn start_program(
        this: &Path,
        program: &[&str],
        variables: &[(&str, &str)],
        test: &str,
        text: &str,
    ) -> Self {
        let this = this.to_str().unwrap();
        let words = [
            program,
            &[this, test, "--exact", "--nocapture", "--test-threads=1"],
        ]
        .concat();
        let child = Command::new(words[0])
            .args(&words[1..])
            .env(GIVEN, text)
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self(child)
    }

    /// Runs `test` in the same way to its end, and returns what it wrote to stderr.
    pub fn stderr_of(test: &str, text: &str) -> String {
        let ran = Command::new(std::env::current_exe().unwrap())
            .args([test, "--exact", "--nocapture", "--test-threads=1"])
            .env(GIVEN, text)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(ran.status.success());
        String::from_utf8(ran.stderr).unwrap()
    }

    pub fn id(&self) -> u32 {
        self.0.id()
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
