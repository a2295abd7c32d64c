//! Each example is started as a process, gets deliveries over TCP, and behaves as its header says.

#![allow(clippy::unwrap_used, clippy::expect_used)] // A test panics on an unexpected result.

mod glue;
mod lambda;
#[allow(dead_code)] // not everything in it is used here
#[path = "../../../tests/it/process.rs"]
mod process;
mod rules;
mod tonic;

use std::path::PathBuf;

/// A file for the handlers to write to. Its folder does not exist until it is made.
struct LedgerFile {
    folder: PathBuf,
}

impl LedgerFile {
    fn missing(name: &str) -> Self {
        let name = format!("ledger-{name}-{}", std::process::id());
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&folder);
        Self { folder }
    }

    fn made(name: &str) -> Self {
        let ledger = Self::missing(name);
        ledger.make();
        ledger
    }

    fn make(&self) {
        std::fs::create_dir_all(&self.folder).unwrap();
    }

    fn path(&self) -> String {
        self.folder.join("ledger.txt").to_str().unwrap().to_owned()
    }

    fn lines(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.path()).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

impl Drop for LedgerFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
