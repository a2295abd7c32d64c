//! Disk space that is reserved for events that were accepted: a file beside the database, whose
//! blocks are freed when the disk is full.
//!
//! A commit needs space in the log, and the log's pages need space in the file when they are copied
//! there. So deliveries are accepted, and events claimed, only while the whole reserve exists. A
//! lease or a settlement that finds no space uses the reserve, which is enough to copy the log into
//! the file, if no body is larger than [`LARGEST_BODY`]. After that the log is written from its
//! beginning again, and needs no more space. The reserve is filled again as soon as there is room,
//! at the latest when the file is closed: the space that is left must not go to another program,
//! since the next start needs a little of it.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hookgate::clock::{Clock, Monotonic, SystemClock};

use super::open_files::beside;

/// When the log has pages of this number of bytes, they are copied from the log into the file. The
/// writer does this itself, after it has answered. At four times this number SQLite does it, in
/// whichever process writes.
pub(crate) const LOG_BYTES: i64 = 1_000 * 4_096;
/// No delivery is added to a group that has this number of bytes of bodies: the reserve must have
/// room for what one commit adds.
pub(crate) const GROUP_BYTES: usize = 1024 * 1024;
/// The file grows by at most the pages that the log has and the file lacks: [`LOG_BYTES`], and
/// those of one group. The rest is left for the log, which may grow before it is written from its
/// beginning again.
const BYTES: u64 = 16 * 1024 * 1024;
/// The size of the largest body for which the reserve is enough. `docs/guarantees.md` names it. A
/// page of 1,024 bytes holds 1,020 of a body.
const LARGEST_BODY: u64 = 8 * 1024 * 1024;
/// The pages of one group that hold no body: 1,024 entries with 512 bytes each, and their keys in
/// the indexes.
const OTHER_BYTES: u64 = 1024 * 1024;
const _: () = {
    let bodies = (GROUP_BYTES as u64 + LARGEST_BODY).div_ceil(1_020) * 1_024;
    assert!(LOG_BYTES.cast_unsigned() + bodies + 2 * OTHER_BYTES <= BYTES);
};
/// The number of bytes that are written at a time. They are random, so that no file system can
/// compress them.
const CHUNK: usize = 256 * 1024;
/// The time between two calls that fill the reserve.
const AGAIN: Duration = Duration::from_secs(1);

pub(crate) struct Reserve {
    file: PathBuf,
    filled_at: Option<Monotonic>,
    short_since: Option<Monotonic>,
}

impl Reserve {
    /// Returns the reserve of this file.
    pub(crate) fn of(database: &Path) -> Self {
        Self {
            file: beside(database, "-reserve"),
            filled_at: None,
            short_since: None,
        }
    }

    /// Whether the reserve has its full size. If not, it is filled first, at most once per
    /// [`AGAIN`].
    pub(crate) fn ensure_whole(&mut self) -> bool {
        let now = SystemClock.monotonic();
        let paced = |at: Monotonic| now.saturating_since(at) >= AGAIN;
        if self.bytes() < BYTES && self.filled_at.is_none_or(paced) {
            self.filled_at = Some(now);
            self.fill();
        }
        self.bytes() >= BYTES
    }

    /// Fills a reserve that was used, as far as the disk has room. A file that never had a reserve
    /// gets none: it is open for an operator only.
    pub(crate) fn refill(&self) {
        if self.is_short() {
            self.fill();
        }
    }

    /// As [`refill`](Self::refill), when the reserve has been too short for [`AGAIN`]: another
    /// process that has just released it needs the space first.
    pub(crate) fn refill_in_time(&mut self, now: Monotonic) {
        if !self.is_short() {
            self.short_since = None;
        } else if now.saturating_since(*self.short_since.get_or_insert(now)) >= AGAIN {
            self.short_since = Some(now);
            self.fill();
        }
    }

    /// Frees the space of the reserve. Returns whether there was any. The file is not removed: a
    /// full disk may have no room for a new name.
    pub(crate) fn release(&self) -> bool {
        let emptied = || OpenOptions::new().write(true).open(&self.file)?.set_len(0);
        self.bytes() > 0 && emptied().is_ok()
    }

    /// Adds the missing bytes. After an error the reserve is too short, which its size shows. The
    /// bytes written before stay, so that they are not written twice.
    fn fill(&self) {
        let _ = self.add_missing();
    }

    /// The file is readable for its owner alone, as the database is, because it may be taken for a
    /// part of it. The number of writes is fixed at the beginning, so that the call ends also if
    /// another program removes or shortens the file in the meantime.
    fn add_missing(&self) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&self.file)?;
        let mut chunk = vec![0; CHUNK];
        fastrand::fill(&mut chunk);
        let missing = BYTES.saturating_sub(file.metadata()?.len());
        for _ in 0..missing.div_ceil(CHUNK as u64) {
            file.write_all(&chunk)?;
        }
        Ok(())
    }

    fn is_short(&self) -> bool {
        self.file.exists() && self.bytes() < BYTES
    }

    fn bytes(&self) -> u64 {
        fs::metadata(&self.file).map_or(0, |found| found.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::Folder;

    fn reserve(folder: &Folder) -> Reserve {
        Reserve::of(&folder.file())
    }

    #[test]
    fn a_reserve_is_filled_and_released_and_filled_again() {
        let folder = Folder::new();
        assert!(reserve(&folder).ensure_whole());
        assert!(reserve(&folder).release());
        assert!(!reserve(&folder).release());
        assert!(reserve(&folder).ensure_whole());
        assert_eq!(reserve(&folder).bytes(), BYTES);
    }

    // fault F14: a full disk stops the work, and the inbox can't be opened, also where an operator's change used the reserve before
    #[test]
    fn a_reserve_that_was_used_is_refilled_after_a_time_and_none_is_made() {
        let folder = Folder::new();
        let mut reserve = reserve(&folder);
        reserve.refill();
        assert!(!reserve.file.exists());
        reserve.fill();
        assert!(reserve.release());
        reserve.refill_in_time(Monotonic::new(9 * AGAIN));
        assert_eq!(reserve.bytes(), 0);
        reserve.refill_in_time(Monotonic::new(10 * AGAIN));
        assert_eq!(reserve.bytes(), BYTES);
    }
}
