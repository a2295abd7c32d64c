//! The file behind a recorder: appends lines, and rotates the file when it is full.

use std::error::Error;
use std::fmt;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use crate::rotated::{numbered, numbers};

/// The line that a recorder writes after a line that is incomplete. A line of deliveries that are
/// missing is `{"dropped":2}`. Readers ignore both as deliveries.
pub const TORN_LINE: &str = r#"{"torn":true}"#;

/// The maximum size of a file, and the number of rotated files that are kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rotation {
    pub(crate) max_bytes: u64,
    pub(crate) keep: u64,
}

#[derive(Debug)]
pub(crate) struct LogFile {
    path: PathBuf,
    rotation: Rotation,
    open: Option<OpenFile>,
}

#[derive(Debug)]
struct OpenFile {
    file: File,
    identity: (u64, u64),
    bytes: u64,
    /// The last line has no line break: the next line would continue it.
    torn: bool,
    /// Whether this is a regular file. Devices and pipes take no disk space, and can't be rotated.
    regular: bool,
}

impl LogFile {
    /// Opens the file, or creates it.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn open(path: PathBuf, rotation: Rotation) -> io::Result<Self> {
        let mut file = Self {
            path,
            rotation,
            open: None,
        };
        file.opened()?;
        if file.open.as_ref().is_some_and(|open| open.regular) {
            for number in numbers(&file.path)? {
                let rotated = File::open(numbered(&file.path, number))?;
                restrict_to_owner(&rotated, &rotated.metadata()?)?;
            }
        }
        Ok(file)
    }

    /// Call this before lines are written: another program may have moved the file, removed it, or
    /// made it shorter.
    pub(crate) fn check_file(&mut self) {
        let Some(open) = &mut self.open else { return };
        if !open.regular {
            return;
        }
        match fs::metadata(&self.path) {
            Ok(metadata) if identity(&metadata) == open.identity => open.bytes = metadata.len(),
            _ => self.open = None,
        }
    }

    /// Writes a line, which ends in a line break. Readers see the whole line or no line. Returns
    /// why a full file could not be rotated, if that has failed: a file that is too large is better
    /// than deliveries that are missing from the log.
    pub(crate) fn append(&mut self, line: &[u8]) -> io::Result<Option<io::Error>> {
        let most = self.rotation.max_bytes;
        let open = self.opened()?;
        if open.torn {
            // The mark begins with a line break of its own, so that the incomplete line ends here.
            let mark = format!("\n{TORN_LINE}\n");
            open.write(mark.as_bytes())?;
        }
        let with_it = open.bytes.saturating_add(line.len() as u64);
        let is_full = open.regular && open.bytes > 0 && with_it > most;
        let unrotated = is_full.then(|| self.rotate().err()).flatten();
        self.opened()?.write(line)?;
        Ok(unrotated)
    }

    fn opened(&mut self) -> io::Result<&mut OpenFile> {
        let open = match self.open.take() {
            Some(open) => open,
            None => OpenFile::of(&self.path)?,
        };
        Ok(self.open.insert(open))
    }

    /// Renames each file to the next higher number, over the last one. A failure in between loses
    /// only that last file, and leaves a gap at most.
    fn rotate(&mut self) -> io::Result<()> {
        let rotated = |number| numbered(&self.path, number);
        for number in (1..self.rotation.keep).rev() {
            match fs::rename(rotated(number), rotated(number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        if self.rotation.keep == 0 {
            fs::remove_file(&self.path)?;
        } else {
            fs::rename(&self.path, rotated(1))?;
        }
        self.open = None;
        Ok(())
    }
}

impl OpenFile {
    fn of(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path)?;
        let metadata = file.metadata()?;
        let regular = metadata.is_file();
        let mut torn = false;
        if regular {
            restrict_to_owner(&file, &metadata)?;
            if metadata.len() > 0 {
                let mut last = [0];
                file.seek(SeekFrom::End(-1))?;
                file.read_exact(&mut last)?;
                torn = last != *b"\n";
            }
        }
        Ok(Self {
            file,
            identity: identity(&metadata),
            bytes: metadata.len(),
            torn,
            regular,
        })
    }

    /// Uses one system call where the system takes all bytes: then the lines of two processes in
    /// one file do not mix.
    fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.file.write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    bytes = &bytes[written..];
                    self.bytes += written as u64;
                    self.torn = !bytes.is_empty();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Returns a file's device and inode, which tell it from another file of the same name.
#[cfg(unix)]
fn identity(metadata: &Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt as _;
    (metadata.dev(), metadata.ino())
}

#[cfg(not(unix))]
fn identity(_: &Metadata) -> (u64, u64) {
    (0, 0)
}

/// Removes all permissions on a file except the owner's.
#[cfg(unix)]
fn restrict_to_owner(file: &File, metadata: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    if metadata.permissions().mode() & 0o077 == 0 {
        return Ok(());
    }
    file.set_permissions(fs::Permissions::from_mode(0o600))
}

#[cfg(not(unix))]
fn restrict_to_owner(_: &File, _: &Metadata) -> io::Result<()> {
    Ok(())
}

/// The reason why a delivery log can't be opened for writing, written, closed to other users, or
/// rotated. The source is the system's error. `Debug`, which a `main` that returns it prints, is
/// one line with path and cause.
///
/// ```
/// use std::error::Error;
/// use hookgate_record::Recorder;
///
/// let error = Recorder::to("no/such/folder/log.jsonl").open().unwrap_err();
/// assert_eq!(error.to_string(), "the log no/such/folder/log.jsonl can't be written");
/// let cause = error.source().unwrap();
/// assert_eq!(format!("{error:?}"), format!("RecordError: {error}: {cause}"));
/// ```
pub struct RecordError {
    pub(crate) path: PathBuf,
    pub(crate) source: io::Error,
}

impl RecordError {
    /// Returns the path of the log.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the log {} can't be written", self.path.display())
    }
}

impl fmt::Debug for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RecordError: {self}: {}", self.source)
    }
}

impl Error for RecordError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.source)
    }
}
