//! Disk space that is reserved for events that were accepted: a file beside the database, whose blocks are freed when the disk is
//! full.
//!
//! A commit needs space in the log, and the log's pages need space in the file when they are copied there. If another program has
//! used the last space of the disk, no entry could be leased or settled any more, and the file could not even be opened. So
//! deliveries are accepted, and events claimed, only while the whole reserve exists. A lease or a settlement that finds no space uses
//! the reserve, which is enough to copy the log into the file, if no body is larger than [`LARGEST_BODY`]. After that the log is
//! written from its beginning again, and needs no more space. The reserve is filled again as soon as there is room, at the latest
//! when the file is closed: the space that is left must not go to another program, since the next start needs a little of it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hookgate::clock::{Clock, Monotonic, SystemClock};

/// When the log has pages of this number of bytes, they are copied from the log into the file. The writer does this itself, after
/// it has answered. At four times this number SQLite does it, in whichever process writes.
pub(crate) const LOG_BYTES: i64 = 1_000 * 4_096;
/// No delivery is added to a group that has this number of bytes of bodies: the reserve must have room for what one commit adds.
pub(crate) const GROUP_BYTES: usize = 1024 * 1024;
/// The file grows by at most the pages that the log has and the file lacks: [`LOG_BYTES`], and those of one group. The bodies of a
/// group have fewer than [`GROUP_BYTES`] before the last body is added. The rest is left for the log, which may grow before it is
/// written from its beginning again.
const BYTES: u64 = 16 * 1024 * 1024;
/// The size of the largest body for which the reserve is enough. `docs/guarantees.md` names it. A page of 1,024 bytes holds 1,020 of
/// a body.
const LARGEST_BODY: u64 = 8 * 1024 * 1024;
/// The pages of one group that hold no body: 1,024 entries with 512 bytes each, and their keys in the indexes.
const OTHER_BYTES: u64 = 1024 * 1024;
const _: () = {
    let bodies = (GROUP_BYTES as u64 + LARGEST_BODY).div_ceil(1_020) * 1_024;
    let file_grows = LOG_BYTES.cast_unsigned() + bodies + OTHER_BYTES;
    assert!(file_grows + OTHER_BYTES <= BYTES);
};
/// The number of bytes that are written at a time. They are random, so that no file system can compress them.
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
        let mut file = database.as_os_str().to_owned();
        file.push("-reserve");
        Self {
            file: file.into(),
            filled_at: None,
            short_since: None,
        }
    }

    /// Whether the reserve has its full size. If not, it is filled first, at most once per [`AGAIN`].
    pub(crate) fn ensure_whole(&mut self) -> bool {
        if self.bytes() >= BYTES {
            return true;
        }
        let now = SystemClock.monotonic();
        let is_time = self
            .filled_at
            .is_none_or(|filled_at| now.saturating_since(filled_at) >= AGAIN);
        if is_time {
            self.filled_at = Some(now);
            self.fill();
        }
        is_time && self.bytes() >= BYTES
    }

    /// Fills a reserve that was used, as far as the disk has room. A file that never had a reserve gets none: it is open for an
    /// operator only.
    pub(crate) fn refill(&self) {
        if self.is_short() {
            self.fill();
        }
    }

    /// As [`refill`](Self::refill), when the reserve has been too short for [`AGAIN`]: another process that has just released it
    /// needs the space first.
    pub(crate) fn refill_in_time(&mut self, now: Monotonic) {
        if !self.is_short() {
            self.short_since = None;
            return;
        }
        let since = *self.short_since.get_or_insert(now);
        if now.saturating_since(since) >= AGAIN {
            self.short_since = Some(now);
            self.fill();
        }
    }

    fn is_short(&self) -> bool {
        fs::metadata(&self.file).is_ok_and(|found| found.is_file() && found.len() < BYTES)
    }

    /// Adds the missing bytes. After an error the reserve is too short, which its size shows. The bytes written before stay, so that
    /// they are not written twice.
    fn fill(&self) {
        let _ = self.open().and_then(|mut file| fill_up(&mut file));
    }

    /// Frees the space of the reserve. Returns whether there was any.
    pub(crate) fn release(&self) -> bool {
        if self.bytes() == 0 {
            return false;
        }
        // The file is not removed: a full disk may have no room for a new name.
        let emptied = OpenOptions::new().write(true).open(&self.file);
        emptied.and_then(|file| file.set_len(0)).is_ok()
    }

    fn bytes(&self) -> u64 {
        let found = fs::metadata(&self.file).ok().filter(fs::Metadata::is_file);
        found.map_or(0, |found| found.len())
    }

    /// Opens the file. It is readable for its owner alone, as the database is, because it may be taken for a part of it.
    fn open(&self) -> io::Result<File> {
        // Opening a named pipe waits for a reader.
        match fs::metadata(&self.file) {
            Ok(found) if !found.is_file() => return Err(not_regular()),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(&self.file)
    }
}

/// Adds the missing bytes to this file. The number of writes is fixed at the beginning, so that the call ends also if another
/// program removes or shortens the file in the meantime.
fn fill_up(file: &mut File) -> io::Result<()> {
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(not_regular());
    }
    let mut chunk = vec![0; CHUNK];
    fastrand::fill(&mut chunk);
    let missing = BYTES.saturating_sub(found.len());
    for _ in 0..missing.div_ceil(CHUNK as u64) {
        file.write_all(&chunk)?;
    }
    Ok(())
}

fn not_regular() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        "the reserve is not a regular file",
    )
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

    #[test]
    fn a_fill_ends_if_the_path_is_removed_meanwhile() {
        let folder = Folder::new();
        let reserve = reserve(&folder);
        let mut file = reserve.open().unwrap();
        fs::remove_file(&reserve.file).unwrap();
        fill_up(&mut file).unwrap();
        assert_eq!(file.metadata().unwrap().len(), BYTES);
        assert_eq!(reserve.bytes(), 0);
    }

    #[cfg(unix)]
    #[test]
    fn a_reserve_that_is_a_device_or_a_pipe_is_never_whole() {
        let folder = Folder::new();
        let path = reserve(&folder).file;
        let is_refused = || {
            let mut reserve = reserve(&folder);
            let filled = reserve.open().and_then(|mut file| fill_up(&mut file));
            let error = filled.unwrap_err();
            error.kind() == io::ErrorKind::InvalidInput
                && !reserve.ensure_whole()
                && !reserve.release()
        };
        std::os::unix::fs::symlink("/dev/null", &path).unwrap();
        assert!(is_refused());
        let mut device = OpenOptions::new().append(true).open(&path).unwrap();
        assert!(fill_up(&mut device).is_err());
        fs::remove_file(&path).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        if made.is_ok_and(|status| status.success()) {
            assert!(is_refused());
        }
    }
}
