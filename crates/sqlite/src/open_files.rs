//! The path of the file: whether its file system is suitable, and whether it still leads to the file that was opened.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use hookgate::dedupe::{StoreError, StoreErrorKind as Kind};

/// Finds or creates the file. Returns its absolute path, so that the path stays valid when the program changes its working
/// directory.
pub(crate) fn find(path: &Path, create: bool) -> Result<PathBuf, StoreError> {
    let text = path.to_string_lossy();
    if text.is_empty() || text == ":memory:" || text.starts_with("file:") {
        return Err(StoreError::saying(
            Kind::NotDurable,
            "it must be a file on a disk: give its plain path",
        ));
    }
    let failed = |error: io::Error| {
        let (kind, advice) = match error.kind() {
            io::ErrorKind::NotFound if is_dangling_link(path) => (
                Kind::Missing,
                "a part of the path is a symbolic link, and its target does not exist: mount or create the target, or name another path",
            ),
            io::ErrorKind::NotFound if create => (
                Kind::Missing,
                "there is no such folder: make it first, writable for this program alone",
            ),
            io::ErrorKind::NotFound => (
                Kind::Missing,
                "there is no inbox: name the file that the receiver opens",
            ),
            io::ErrorKind::NotADirectory => (
                Kind::Missing,
                "a part of the path is a file and no folder: name another path",
            ),
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => (
                Kind::Denied,
                "this program may not read and write there: give the file and its folder to its user",
            ),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                (Kind::Full, "the disk is full: make room")
            }
            _ => (Kind::Unavailable, "the file can't be opened"),
        };
        let refused = StoreError::saying(kind, advice);
        // The advice replaces the system's error, except for an error of unknown kind.
        if kind == Kind::Unavailable {
            refused.caused_by(error)
        } else {
            refused
        }
    };
    // Beside an empty file, SQLite deletes a log without an error. The log is looked for first: the file is written before its log.
    let file = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let is_empty = |file: &Path| match fs::metadata(file) {
        Ok(found) => found.is_file() && found.len() == 0,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
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
            return Err(StoreError::saying(
                Kind::NotAStore,
                "this is not a file: name a file in it",
            ));
        }
        Err(error)
            if error.kind() == io::ErrorKind::NotFound && create && !is_dangling_link(path) =>
        {
            let folder = path
                .parent()
                .filter(|folder| !folder.as_os_str().is_empty());
            let folder = folder.unwrap_or(Path::new("."));
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

/// Returns the path of one of the files that SQLite keeps beside the file.
pub(crate) fn beside(file: &Path, suffix: &str) -> PathBuf {
    let mut beside = file.as_os_str().to_owned();
    beside.push(suffix);
    beside.into()
}

pub(crate) fn has_bytes(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|found| found.len() > 0)
}

/// Returns whether the path, or a folder on it, is a symbolic link to a place that does not exist.
fn is_dangling_link(path: &Path) -> bool {
    path.ancestors()
        .any(|part| part.is_symlink() && matches!(part.try_exists(), Ok(false)))
}

/// Creates an empty file that its owner alone may read. SQLite creates the files beside it with the same mode.
fn create_private_file(path: &Path, folder: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        // The file's name must be durable, as its content is.
        Ok(_) if cfg!(unix) => File::open(folder)?.sync_all(),
        Ok(_) => Ok(()),
        // Another process was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Checks the file system. SQLite shares its log through memory, and its locks must hold: neither works on file systems of a
/// network. What is in memory is lost with the machine.
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
    let refused = |advice| {
        let error = StoreError::saying(Kind::NotDurable, advice);
        Err(error.caused_by(format!("the file system is {kind}")))
    };
    if is_of_a_network(kind, source) {
        return refused(
            "this is a file system of a network or of another machine, where SQLite's locks and shared memory don't hold: use a disk of this machine, or PostgreSQL",
        );
    }
    if is_in_memory(kind) && !is_temporary(file, &std::env::temp_dir()) {
        return refused(
            "this is memory, and no disk: what was accepted would be lost when the machine ends. Use a disk of this machine",
        );
    }
    Ok(())
}

fn is_in_memory(kind: &str) -> bool {
    matches!(kind, "tmpfs" | "ramfs" | "devtmpfs")
}

/// Returns whether the file is in the folder for temporary files, which need not be kept. It is often in memory,
/// and the files of tests are there. Below `/dev` it is always memory, whatever `TMPDIR` says.
fn is_temporary(file: &Path, folder: &Path) -> bool {
    let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    file.starts_with(folder) && !file.starts_with("/dev")
}

/// Returns the place, the kind and the source of the file system of a path, from the list of mounts in Linux.
fn file_system<'a>(mounts: &'a str, file: &Path) -> Option<(String, &'a str, &'a str)> {
    let mut nearest: Option<(usize, (String, &str, &str))> = None;
    for line in mounts.lines() {
        // "36 35 98:0 /root /mount/point options - type source options", with a varying number of words before the dash.
        let Some((before, after)) = line.split_once(" - ") else {
            continue;
        };
        let mut after = after.split(' ');
        let (Some(point), Some(kind)) = (before.split(' ').nth(4), after.next()) else {
            continue;
        };
        let source = after.next().unwrap_or_default();
        let point = point.replace("\\040", " ").replace("\\134", "\\");
        let depth = Path::new(&point).components().count();
        // A later mount hides an earlier one at the same path.
        if file.starts_with(&point) && nearest.as_ref().is_none_or(|(most, _)| depth >= *most) {
            nearest = Some((depth, (point, kind, source)));
        }
    }
    nearest.map(|(_, found)| found)
}

fn is_of_a_network(kind: &str, source: &str) -> bool {
    // Of networks, and of the host of a virtual machine.
    const KINDS: [&str; 14] = [
        "9p", "afs", "beegfs", "ceph", "cifs", "davfs", "gfs2", "lustre", "prl_fs", "smb3",
        "smbfs", "vboxsf", "virtiofs", "vmhgfs",
    ];
    // Programs that show a network as a folder. Some are the kind, as in `fuse.sshfs`, others the source of the kind `fuse`.
    const PROGRAMS: [&str; 16] = [
        "blobfuse",
        "blobfuse2",
        "ceph",
        "davfs",
        "davfs2",
        "gcsfuse",
        "geesefs",
        "glusterfs",
        "goofys",
        "grpcfuse",
        "juicefs",
        "mountpoint-s3",
        "rclone",
        "s3fs",
        "sshfs",
        "vmhgfs-fuse",
    ];
    let by = |program: &str| {
        PROGRAMS
            .iter()
            .any(|known| program.eq_ignore_ascii_case(known))
    };
    kind.starts_with("nfs")
        || KINDS.contains(&kind)
        || kind.strip_prefix("fuse.").is_some_and(by)
        || (kind == "fuse" && (by(source) || source.contains("://")))
}

/// The files that were opened: the database, the log beside it, and the index of the log. If one of the first two is moved or deleted,
/// SQLite goes on writing to a file without a name, and all those writes would be lost at the end of the process. If the index is
/// deleted, the next process has an index and locks of its own, and each of the two writes over what the other one has written.
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
        let [(database, _), ..] = &self.0;
        fs::metadata(database).ok()?.modified().ok()
    }

    /// Whether another process may have written to a log of its own, or to this one with an index of its own. Then the log is left
    /// to the next opening. An empty log that was made with our index has no writes.
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

    #[test]
    fn memory_is_known_by_its_kind_and_passes_for_temporary_files_alone() {
        for kind in ["tmpfs", "ramfs", "devtmpfs"] {
            assert!(is_in_memory(kind), "{kind}");
        }
        assert!(!is_in_memory("ext4"));
        for (file, folder, passes) in [
            ("/made up/inbox.db", "/made up", true),
            ("/srv/inbox.db", "/made up", false),
            ("/dev/shm/inbox.db", "/dev/shm", false),
            ("/dev/shm/inbox.db", "/made up", false),
            ("/dev/inbox.db", "/", false),
        ] {
            let is_one = is_temporary(Path::new(file), Path::new(folder));
            assert_eq!(is_one, passes, "{file} {folder}");
        }
    }

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
