//! The path of the file: whether its file system is suitable, and whether it still leads to the
//! file that was opened.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use hookgate::dedupe::{StoreError, StoreErrorKind as Kind};

/// Finds or creates the file. Returns its absolute path, which stays valid when the program changes
/// its working directory.
pub(crate) fn find(path: &Path, create: bool) -> Result<PathBuf, StoreError> {
    let text = path.to_string_lossy();
    if text.is_empty() || text == ":memory:" || text.starts_with("file:") {
        let advice = "it must be a file on a disk: give its plain path";
        return Err(StoreError::saying(Kind::NotDurable, advice));
    }
    let failed = |error: io::Error| refused(error, create);
    // Beside an empty file, SQLite deletes a log without an error. The log is looked for first: the
    // file is written before its log.
    let file = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let is_empty = |file: &Path| match fs::metadata(file) {
        Ok(found) => found.is_file() && found.len() == 0,
        Err(error) => error.kind() == ErrorKind::NotFound,
    };
    if has_bytes(&beside(&file, "-wal")) && is_empty(&file) {
        return Err(StoreError::saying(
            Kind::Corrupt,
            "the file is missing or empty, and the log beside it (-wal) belongs to it. To keep the log: put the file back. To begin with a new file: delete -wal and -shm",
        ));
    }
    match fs::metadata(path) {
        Ok(found) if found.is_file() => {}
        Ok(_) => {
            let advice = "this is not a file: name a file in it";
            return Err(StoreError::saying(Kind::NotAStore, advice));
        }
        Err(error) if error.kind() == ErrorKind::NotFound && create => {
            let folder = match path.parent() {
                Some(folder) if !folder.as_os_str().is_empty() => folder,
                _ => Path::new("."),
            };
            let folder = fs::canonicalize(folder).map_err(failed)?;
            keeps(&folder)?;
            create_private_file(path, &folder).map_err(failed)?;
        }
        Err(error) => return Err(failed(error)),
    }
    let file = fs::canonicalize(path).map_err(failed)?;
    keeps(&file)?;
    #[cfg(unix)]
    if std::os::unix::fs::MetadataExt::nlink(&fs::metadata(&file).map_err(failed)?) > 1 {
        return Err(StoreError::saying(
            Kind::NotDurable,
            "the file has a second name (a hard link), and what was accepted last is in -wal beside one name alone: remove the other name, or make it a symbolic link",
        ));
    }
    Ok(file)
}

fn refused(error: io::Error, create: bool) -> StoreError {
    let (kind, advice) = match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory if create => (
            Kind::Missing,
            "there is no such folder: make it first, writable for this program alone",
        ),
        ErrorKind::NotFound | ErrorKind::NotADirectory => (
            Kind::Missing,
            "there is no inbox: name the file that the receiver opens",
        ),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => (
            Kind::Denied,
            "this program may not read and write there: give the file and its folder to its user",
        ),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            (Kind::Full, "the disk is full: make room")
        }
        _ => {
            let advice = "the file can't be opened";
            return StoreError::saying(Kind::Unavailable, advice).caused_by(error);
        }
    };
    StoreError::saying(kind, advice)
}

/// Returns the path of one of the files that SQLite keeps beside the file.
pub(crate) fn beside(file: &Path, suffix: &str) -> PathBuf {
    let mut beside = file.as_os_str().to_owned();
    beside.push(suffix);
    beside.into()
}

pub(crate) fn has_bytes(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|found| found.len() > 0)
}

/// Creates an empty file that its owner alone may read. SQLite creates the files beside it with the
/// same mode.
fn create_private_file(path: &Path, folder: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        // The file's name must be durable, as its content is.
        Ok(_) if cfg!(unix) => File::open(folder)?.sync_all(),
        // Another process was faster.
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Refuses a file that is mounted alone, and a file system of a network: SQLite shares its log
/// through memory, and its locks must hold.
fn keeps(file: &Path) -> Result<(), StoreError> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let Some((point, kind, source)) = file_system(&mounts, file) else {
        return Ok(());
    };
    if Path::new(&point) == file && file.is_file() {
        return Err(StoreError::saying(
            Kind::NotDurable,
            "the file alone is mounted here, and what was accepted last is in -wal beside it, which would be lost with the container: mount the folder that holds the file",
        ));
    }
    if is_of_a_network(kind, source) {
        let error = StoreError::saying(
            Kind::NotDurable,
            "this is a file system of a network or of another machine, where SQLite's locks and shared memory don't hold: use a disk of this machine, or PostgreSQL",
        );
        return Err(error.caused_by(format!("the file system is {kind}")));
    }
    Ok(())
}

/// Returns the place, the kind and the source of the file system of a path, from the list of mounts
/// in Linux. Its lines are "36 35 98:0 /root /mount/point options - type source options", with a
/// varying number of words before the dash.
fn file_system<'a>(mounts: &'a str, file: &Path) -> Option<(String, &'a str, &'a str)> {
    let mounted = mounts.lines().filter_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let (point, mut after) = (before.split(' ').nth(4)?, after.split(' '));
        let point = point.replace("\\040", " ").replace("\\134", "\\");
        Some((point, after.next()?, after.next().unwrap_or_default()))
    });
    // Of several at one path, the last hides the others, and `max_by_key` returns the last.
    mounted
        .filter(|(point, ..)| file.starts_with(point))
        .max_by_key(|(point, ..)| Path::new(point).components().count())
}

/// File systems of a network or of the host of a virtual machine, and programs that show a network
/// as a folder.
const NETWORKS: &str = "9p afs beegfs blobfuse blobfuse2 ceph cifs davfs davfs2 gcsfuse geesefs gfs2 glusterfs goofys grpcfuse \
    juicefs lustre mountpoint-s3 nfs nfs4 prl_fs rclone s3fs smb3 smbfs sshfs vboxsf virtiofs vmhgfs vmhgfs-fuse";

/// A program is named by the kind, as in `fuse.sshfs`, or by the source of the kind `fuse`.
fn is_of_a_network(kind: &str, source: &str) -> bool {
    let is_one = |name: &str| {
        let mut known = NETWORKS.split_ascii_whitespace();
        known.any(|known| name.eq_ignore_ascii_case(known))
    };
    is_one(kind.strip_prefix("fuse.").unwrap_or(kind))
        || (kind == "fuse" && (is_one(source) || source.contains("://")))
}

/// The files that were opened: the database, the log beside it, and the index of the log. If one of
/// the first two is moved or deleted, SQLite goes on writing to a file without a name, and all
/// those writes would be lost at the end of the process. If the index is deleted, the next process
/// has an index and locks of its own, and each of the two writes over what the other one has
/// written.
#[derive(Debug)]
pub(crate) struct OpenFiles([(PathBuf, Option<(u64, u64)>); 3]);

impl OpenFiles {
    /// Notes the files of an open database: while it is open, no other process may replace them.
    pub(crate) fn of(file: &Path) -> Self {
        Self(["", "-wal", "-shm"].map(|suffix| {
            let file = beside(file, suffix);
            let file_id = file_id(&file);
            (file, file_id)
        }))
    }

    /// When the database was written last.
    pub(crate) fn written(&self) -> Option<SystemTime> {
        fs::metadata(&self.0[0].0).ok()?.modified().ok()
    }

    /// Whether another process may have written to a log of its own, or to this one with an index
    /// of its own. Then the log is left to the next opening. An empty log that was made with our
    /// index has no writes.
    pub(crate) fn have_successors(&self) -> bool {
        let [_, (log, opened_log), (index, opened_index)] = &self.0;
        let index = file_id(index);
        match file_id(log) == *opened_log {
            true => index != *opened_index,
            false => has_bytes(log) || index.is_some() && index != *opened_index,
        }
    }

    pub(crate) fn database_stands(&self) -> bool {
        let [(database, opened), ..] = &self.0;
        file_id(database) == *opened
    }

    pub(crate) fn stands(&self) -> bool {
        self.0.iter().all(|(file, opened)| file_id(file) == *opened)
    }
}

#[cfg(unix)]
fn file_id(file: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let metadata = fs::metadata(file).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

/// On other systems an open file cannot be moved or deleted.
#[cfg(not(unix))]
fn file_id(_: &Path) -> Option<(u64, u64)> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
40 27 0:40 / /mnt/team\\040share rw - nfs4 files:/team rw
41 27 0:41 / /mnt/team\\040share/local rw - xfs /dev/vdb rw
42 27 0:42 / /data rw - ext4 /dev/vdc rw
43 27 0:43 / /data rw - cifs //files/data rw
44 27 0:44 / /database rw - ext4 /dev/vdd rw
";

    // fault Q44: the file alone is mounted, or has two names: the log is in the container, or beside the other name, and what is acknowledged is not found again
    #[test]
    fn a_file_that_is_mounted_alone_is_known_by_the_place_of_its_mount() {
        let mounts =
            format!("{MOUNTS}45 27 254:0 /srv/i.db /data\\040of/inbox.db rw - ext4 /dev/vda rw\n");
        for (file, place) in [
            ("/data of/inbox.db", "/data of/inbox.db"),
            ("/data of/inbox.db-wal", "/"),
            ("/database/inbox.db", "/database"),
        ] {
            let found = file_system(&mounts, Path::new(file));
            assert_eq!(found.unwrap().0, place, "{file}");
        }
    }

    #[test]
    fn the_file_system_is_that_of_the_nearest_mount() {
        for (file, kind) in [
            ("/srv/inbox.db", "ext4"),
            ("/mnt/team share/inbox.db", "nfs4"),
            ("/mnt/team share/local/inbox.db", "xfs"),
            ("/data/inbox.db", "cifs"),
            ("/database/inbox.db", "ext4"),
        ] {
            let found = file_system(MOUNTS, Path::new(file));
            assert_eq!(found.map(|(_, kind, _)| kind), Some(kind), "{file}");
        }
        assert_eq!(file_system("", Path::new("/srv/inbox.db")), None);
    }

    // fault P5: an inbox on a share of a virtual machine's host counts as durable
    #[test]
    fn networks_are_known_by_their_kind() {
        for kind in [
            "nfs",
            "nfs4",
            "cifs",
            "smb3",
            "fuse.sshfs",
            "ceph",
            "9p",
            "virtiofs",
            "vboxsf",
            "davfs",
            "fuse.gcsfuse",
            "fuse.blobfuse2",
        ] {
            assert!(is_of_a_network(kind, "made_up"), "{kind}");
        }
        for source in [
            "blobfuse2",
            "gcsfuse",
            "mountpoint-s3",
            "https://files.example/dav",
        ] {
            assert!(is_of_a_network("fuse", source), "{source}");
        }
        for kind in [
            "ext4",
            "xfs",
            "btrfs",
            "zfs",
            "tmpfs",
            "overlay",
            "apfs",
            "fuseblk",
            "fuse.mergerfs",
            "fuse",
        ] {
            assert!(!is_of_a_network(kind, "/dev/vda"), "{kind}");
        }
    }
}
