//! Room on the disk that is kept for the work: a file beside the inbox, whose blocks are given back when the disk is full.
//!
//! A commit takes room in the log, and the log's pages take room in the file when they are copied there. Where another program has taken the
//! last of it, nothing could be leased or settled any more, and the file not even be opened. So deliveries are accepted only while the
//! whole reserve is there. Work that finds no room takes the reserve's, which is enough to copy the log into the file; from then on the
//! log is written from its beginning again, and takes no more room.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::clock::{Clock, Monotonic, SystemClock};

/// More than the log has of pages that are not in the file yet (`LOG_PAGES`, and one group's), twice: once for the file, which grows by
/// them, and once for the log, which goes on meanwhile.
const BYTES: u64 = 16 * 1024 * 1024;
/// Written at a time. By chance, so that no file system keeps it in less room.
const CHUNK: usize = 256 * 1024;
/// How often it is tried to make it whole.
const AGAIN: Duration = Duration::from_secs(1);

pub(super) struct Reserve {
    file: PathBuf,
    tried: Option<Monotonic>,
}

impl Reserve {
    /// Of the inbox in this file.
    pub(super) fn of(inbox: &Path) -> Self {
        let mut file = inbox.as_os_str().to_owned();
        file.push("-reserve");
        Self {
            file: file.into(),
            tried: None,
        }
    }

    /// Whether all of it is there, after what is missing was tried to be made, now and then.
    pub(super) fn is_whole(&mut self) -> bool {
        if self.bytes() >= BYTES {
            return true;
        }
        let now = SystemClock.monotonic();
        let is_time = self
            .tried
            .is_none_or(|tried| now.saturating_since(tried) >= AGAIN);
        if is_time {
            self.tried = Some(now);
            // What fails leaves it too short, which is looked at.
            let _ = self.fill();
        }
        is_time && self.bytes() >= BYTES
    }

    /// Gives its room back. Says whether there was any.
    pub(super) fn release(&self) -> bool {
        // Not removed: a full disk may have no room for a new name.
        let emptied = OpenOptions::new().write(true).open(&self.file);
        self.bytes() > 0 && emptied.and_then(|file| file.set_len(0)).is_ok()
    }

    fn bytes(&self) -> u64 {
        let found = fs::metadata(&self.file).ok().filter(fs::Metadata::is_file);
        found.map_or(0, |found| found.len())
    }

    /// Adds what is missing. What there was room for stays, so that nothing is written twice.
    fn fill(&self) -> io::Result<()> {
        let mut file = self.open()?;
        let mut chunk = vec![0; CHUNK];
        fastrand::fill(&mut chunk);
        while self.bytes() < BYTES {
            file.write_all(&chunk)?;
        }
        Ok(())
    }

    /// For its owner alone, as the inbox: it may be taken for part of it.
    fn open(&self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(&self.file)
    }
}
