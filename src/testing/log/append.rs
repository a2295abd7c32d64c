//! The file behind a recorder: lines at its end, moved aside when it is full.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;

use super::line::Mark;
use super::rotated::{numbered, numbers};

/// How large a file may grow, and how many are kept beside it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rotation {
    pub(super) max_bytes: u64,
    pub(super) keep: u64,
}

#[derive(Debug)]
pub(super) struct LogFile {
    path: PathBuf,
    rotation: Rotation,
    open: Option<Open>,
    /// Why it could not be moved aside, until somebody asks.
    unmoved: Option<io::Error>,
}

#[derive(Debug)]
struct Open {
    file: File,
    identity: Identity,
    bytes: u64,
    /// Its last line has no end: what was written next would be glued to it.
    torn: bool,
    /// Devices and pipes grow on nobody's disk, and can't be moved aside.
    regular: bool,
}

impl LogFile {
    /// Opens the file, or makes it.
    pub(super) fn open(path: PathBuf, rotation: Rotation) -> io::Result<Self> {
        let mut file = Self {
            path,
            rotation,
            open: None,
            unmoved: None,
        };
        file.opened()?;
        if file.open.as_ref().is_some_and(|open| open.regular) {
            for number in numbers(&file.path)? {
                let aside = File::open(numbered(&file.path, number))?;
                close_to_others(&aside, &aside.metadata()?)?;
            }
        }
        Ok(file)
    }

    /// To be called before some lines are written: somebody may have moved the file, removed it, or made it shorter.
    pub(super) fn look(&mut self) {
        let Some(open) = &mut self.open else { return };
        if !open.regular {
            return;
        }
        match fs::metadata(&self.path) {
            Ok(metadata) if Identity::of(&metadata) == open.identity => open.bytes = metadata.len(),
            _ => self.open = None,
        }
    }

    /// Writes a line, which ends in a line break, as a whole or not at all as far as readers can see.
    pub(super) fn append(&mut self, line: &[u8]) -> io::Result<()> {
        let full = |open: &Open, rotation: Rotation| {
            let with_it = open.bytes.saturating_add(line.len() as u64);
            open.regular && open.bytes > 0 && with_it > rotation.max_bytes
        };
        let rotation = self.rotation;
        let open = self.opened()?;
        if open.torn {
            // Behind a line break of its own, so that the torn line ends here.
            let mark = format!("\n{}\n", Mark::Torn(true).to_line());
            open.write(mark.as_bytes())?;
        }
        if full(open, rotation)
            && let Err(error) = self.rotate()
        {
            // Too large a file is better than deliveries that nobody finds.
            self.unmoved = Some(error);
        }
        self.opened()?.write(line)
    }

    /// Why a full file could not be moved aside, if it could not since this was asked.
    pub(super) fn unmoved(&mut self) -> Option<io::Error> {
        self.unmoved.take()
    }

    fn opened(&mut self) -> io::Result<&mut Open> {
        let open = match self.open.take() {
            Some(open) => open,
            None => Open::of(&self.path)?,
        };
        Ok(self.open.insert(open))
    }

    /// Each file moves up by one, over the last one. A failure in between loses none but that, and leaves a gap at most.
    fn rotate(&mut self) -> io::Result<()> {
        let aside = |number| numbered(&self.path, number);
        for number in (1..self.rotation.keep).rev() {
            match fs::rename(aside(number), aside(number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        if self.rotation.keep == 0 {
            fs::remove_file(&self.path)?;
        } else {
            fs::rename(&self.path, aside(1))?;
        }
        self.open = None;
        Ok(())
    }
}

impl Open {
    fn of(path: &std::path::Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path)?;
        let metadata = file.metadata()?;
        let regular = metadata.is_file();
        let mut torn = false;
        if regular {
            close_to_others(&file, &metadata)?;
            if metadata.len() > 0 {
                let mut last = [0];
                file.seek(SeekFrom::End(-1))?;
                file.read_exact(&mut last)?;
                torn = last != *b"\n";
            }
        }
        Ok(Self {
            file,
            identity: Identity::of(&metadata),
            bytes: metadata.len(),
            torn,
            regular,
        })
    }

    /// In one call of the system where it takes all: what two processes append to one file does not mix.
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

/// What tells one file from another of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    #[cfg(unix)]
    device_and_inode: (u64, u64),
}

impl Identity {
    #[cfg(unix)]
    fn of(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt as _;
        Self {
            device_and_inode: (metadata.dev(), metadata.ino()),
        }
    }

    #[cfg(not(unix))]
    fn of(_: &Metadata) -> Self {
        Self {}
    }
}

/// Takes from everybody but its owner what they may do with a file.
#[cfg(unix)]
fn close_to_others(file: &File, metadata: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    if metadata.permissions().mode() & 0o077 == 0 {
        return Ok(());
    }
    file.set_permissions(fs::Permissions::from_mode(0o600))
}

#[cfg(not(unix))]
fn close_to_others(_: &File, _: &Metadata) -> io::Result<()> {
    Ok(())
}
