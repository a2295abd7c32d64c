//! A wall clock that a test sets, for processes that are set to read it: libfaketime's. Their
//! monotonic clock stays as it is.

use std::fs;
use std::path::{Path, PathBuf};

use super::server::program;

pub struct Skew {
    file: PathBuf,
    library: PathBuf,
}

impl Skew {
    /// Kept in this folder; not set yet.
    pub fn within(folder: &Path) -> Option<Self> {
        program("faketime", &[])?;
        // Debian keeps it beside the libraries of the machine's architecture.
        let folders = fs::read_dir("/usr/lib").ok()?.flatten();
        let mut files = folders.map(|folder| folder.path().join("faketime/libfaketimeMT.so.1"));
        let library = files.find(|file| file.exists());
        let skew = Self {
            file: folder.join("skew"),
            library: library.expect("faketime is here without its library"),
        };
        skew.set(0);
        Some(skew)
    }

    /// The variables that make a process and its children read it. These libraries are preloaded as
    /// well.
    pub fn environment(&self, also: &[PathBuf]) -> Vec<(String, String)> {
        let libraries = [&self.library].into_iter().chain(also);
        let libraries: Vec<_> = libraries.map(|file| file.to_str().unwrap()).collect();
        let libraries = libraries.join(":");
        let pairs = [
            ("LD_PRELOAD", &*libraries),
            ("FAKETIME_TIMESTAMP_FILE", self.file.to_str().unwrap()),
            ("FAKETIME_NO_CACHE", "1"),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
            ("DONT_FAKE_MONOTONIC", "1"),
        ];
        pairs
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into()
    }

    /// Sets it to so many seconds ahead of the machine's own, for all processes that read it.
    pub fn set(&self, ahead: i64) {
        // One step: a file that is read half written would be another time.
        let next = self.file.with_extension("next");
        fs::write(&next, format!("{ahead:+}\n")).unwrap();
        fs::rename(&next, &self.file).unwrap();
    }
}
