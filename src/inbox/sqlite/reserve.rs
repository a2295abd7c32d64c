//! Disk space that is reserved for the workers: a file beside the inbox, whose blocks are freed when the disk is full.
//!
//! A commit needs space in the log, and the log's pages need space in the file when they are copied there. If another program has
//! used the last space of the disk, no entry could be leased or settled any more, and the file could not even be opened. So
//! deliveries are accepted only while the whole reserve exists. A lease or a settlement that finds no space uses the reserve,
//! which is enough to copy the log into the file. After that the log is written from its beginning again, and needs no more
//! space.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::clock::{Clock, Monotonic, SystemClock};

/// Twice the size of the log's pages that are not in the file yet (`LOG_PAGES`, and those of one group): once for the file, which
/// grows by them, and once for the log, which grows in the meantime.
const BYTES: u64 = 16 * 1024 * 1024;
/// The number of bytes that are written at a time. They are random, so that no file system can compress them.
const CHUNK: usize = 256 * 1024;
/// The time between two calls that fill the reserve.
const AGAIN: Duration = Duration::from_secs(1);

pub(super) struct Reserve {
    file: PathBuf,
    tried: Option<Monotonic>,
}

impl Reserve {
    /// Returns the reserve of the inbox in this file.
    pub(super) fn of(inbox: &Path) -> Self {
        let mut file = inbox.as_os_str().to_owned();
        file.push("-reserve");
        Self {
            file: file.into(),
            tried: None,
        }
    }

    /// Whether the reserve has its full size. If not, it is filled first, at most once per [`AGAIN`].
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
            // After an error the reserve is too short, and its size is checked next.
            let _ = self.fill();
        }
        is_time && self.bytes() >= BYTES
    }

    /// Frees the space of the reserve. Returns whether there was any.
    pub(super) fn release(&self) -> bool {
        // The file is not removed: a full disk may have no room for a new name.
        let emptied = OpenOptions::new().write(true).open(&self.file);
        self.bytes() > 0 && emptied.and_then(|file| file.set_len(0)).is_ok()
    }

    fn bytes(&self) -> u64 {
        let found = fs::metadata(&self.file).ok().filter(fs::Metadata::is_file);
        found.map_or(0, |found| found.len())
    }

    /// Adds the missing bytes. The bytes written before an error stay, so that they are not written twice.
    fn fill(&self) -> io::Result<()> {
        let mut file = self.open()?;
        let mut chunk = vec![0; CHUNK];
        fastrand::fill(&mut chunk);
        while self.bytes() < BYTES {
            file.write_all(&chunk)?;
        }
        Ok(())
    }

    /// Opens the file. It is readable for its owner alone, as the inbox is, because it may be taken for a part of the inbox.
    fn open(&self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(&self.file)
    }
}
